"""A check tells how far it is and what came of it, on a terminal and where there is none."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from kuayu_conformance import terminal
from kuayu_conformance.check import Check
from kuayu_conformance.episode import Episode, Settings
from kuayu_conformance.findings import Figure
from kuayu_conformance.run.judgement import Results, conclude, without_verdict
from kuayu_conformance.terminal import TerminalProgress, left
from kuayu_schemas.models import Evidence, Replay, Verdict
from kuayu_schemas.registers import requirements

CHECK: Check[None] = Check("long", (), lambda _: None, lambda _: ())


def test_time_left_follows_from_the_time_that_it_took_so_far() -> None:
    assert left([(5.0, 0)], 10, 65.0) == ""
    assert left([(5.0, 0), (35.0, 1), (65.0, 2)], 10, 65.0) == "about 4 min left"
    assert left([(5.0, 0), (65.0, 2)], 10, 65.0) == "about 4 min left"
    assert left([(5.0, 0), (60.0, 9)], 10, 65.0) == "less than a minute left"
    assert left([(5.0, 0), (60.0, 10)], 10, 65.0) == ""


def test_what_a_run_before_had_done_makes_the_rest_no_quicker() -> None:
    kept = [(0.0, 0), *((number / 100, number) for number in range(1, 101))]
    assert left([*kept, (60.0, 101), (120.0, 102)], 112, 120.0) == "about 10 min left"


def test_an_episode_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    settings = Settings("n", "r", full=False, features=frozenset(), limits={}, other_tenant=False)
    nobody: Any = None
    Episode("long", settings, nobody, lambda done, of: told.append((done, of))).passed(1, 3)
    Episode("long", settings, nobody).passed(1, 3)
    assert told == [(1, 3)]


@pytest.mark.parametrize("drawn", [True, False])
def test_a_bar_or_a_line_now_and_then(drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "SAID_EVERY", 0.0)
    out = io.StringIO()
    with TerminalProgress(Console(file=out, force_terminal=drawn, width=100)) as progress:
        progress.planned([CHECK])
        progress.started(CHECK)
        progress.passed("long", 3, 4)
        if drawn:
            progress._bar.refresh()  # noqa: SLF001 - it draws itself ten times a second only
        progress.finished(CHECK, {})
        progress.judging()
    assert ("3/4" in out.getvalue()) == drawn
    assert ("long: 3 of 4" in out.getvalue()) != drawn


def ended(results: Results, *, drawn: bool, width: int = 100) -> list[str]:
    """What is printed as a check ends, line by line, without colours."""
    out = io.StringIO()
    with TerminalProgress(Console(file=out, force_terminal=drawn, width=width, color_system=None)) as progress:
        progress.started(CHECK)
        progress.finished(CHECK, results)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue()).replace("\u202f", " ").splitlines()
    return [line.rstrip() for line in lines if re.search(r"[A-Z]{3}-\d{3}", line)]


def results_of_every_kind() -> Results:
    rows = {row.id: row for row in requirements().requirements}
    missed = Figure("MET-003", 0.9, 0.89, 100, "by hand")
    failed = without_verdict(rows["COM-008"], Verdict.fail, "2 of 9 expectations were not met")
    evidence = Evidence(episode="long", expected="200 again", found="409 \x1b[31mconflict")
    aside = {"COM-019": Verdict.not_supported, "COM-009": Verdict.not_applicable, "COM-012": Verdict.pass_}
    return {
        "MET-003": conclude(rows["MET-003"], [missed], "long", Replay.deterministic, 1.0),
        "COM-008": failed.model_copy(update={"evidence": [evidence]}),
        "MET-002": without_verdict(rows["MET-002"], Verdict.not_testable, "the target cannot reach the exporter"),
    } | {name: without_verdict(rows[name], verdict, "beside the point") for name, verdict in aside.items()}


def test_why_a_check_did_not_pass_is_said_as_it_ends() -> None:
    verdicts, *why = ended(results_of_every_kind(), drawn=False, width=200)
    assert all(name in verdicts for name in results_of_every_kind())
    assert [line.strip() for line in why] == [
        "COM-008: 2 of 9 expectations were not met; expected 200 again, found 409 ⟨U+001B⟩[31mconflict",
        "MET-002: the target cannot reach the exporter",
        "MET-003: the figure misses the threshold: 90 % against at least 98 %",
    ]


def test_on_a_terminal_a_reason_takes_one_line() -> None:
    results = {"COM-008": results_of_every_kind()["COM-008"]}
    *_, why = ended(results, drawn=True, width=60)
    assert len(why) == 60
    assert why.endswith("…")
    assert why.strip().startswith("COM-008: 2 of 9 expectations")
