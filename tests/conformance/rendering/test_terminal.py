"""The table says what the page says, in one language."""

import io
import re

from conformance.rendering.samples import TESTED, every_verdict, hostile, sample
from rich.console import Console

from kuayu_conformance.rendering import summary
from kuayu_conformance.rendering.words import Language
from kuayu_schemas.models import ConformanceReport


def printed(report: ConformanceReport, language: Language = "en", width: int = 160) -> str:
    """What a terminal of some width shows."""
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=True, color_system="standard").print(summary(report, language))
    return out.getvalue()


def test_a_figure_stands_beside_bound_threshold_and_aim() -> None:
    line = next(line for line in printed(sample()).splitlines() if "MET-003" in line)
    figures = line.replace("\u202f", " ")
    positions = [figures.index(text) for text in ("99.94 %", "99.85 %", "≥ 98 %", "≥ 99.9 %")]
    assert positions == sorted(positions)


def test_a_failure_is_printed_with_clause_request_and_answer() -> None:
    text = printed(every_verdict())
    assert "clause com-08-writes" in text
    assert "PUT /v1/nodes/k41f-node-3" in text
    assert '"number": 13' in text
    assert f"kuayu does not meet 2 of {TESTED - 3} requirements tested; 1 more could not be judged" in text


def test_a_pass_is_not_explained() -> None:
    assert "clause" not in printed(sample())


def test_it_speaks_chinese() -> None:
    text = printed(every_verdict(), "zh")
    assert "幂等的 PUT" in text
    assert "不通过" in text
    assert "Idempotent PUT" not in text


def test_no_escape_of_the_target_reaches_the_terminal() -> None:
    text = printed(hostile())
    assert "\x1b[31mgnp" not in text
    assert "\u202e" not in text
    assert "\x08" not in text
    assert "⟨U+001B⟩[31m" in text


def test_markup_of_the_target_is_text() -> None:
    assert "[bold]x[/nonsense]" in printed(sample({"COM-008": "fail"}, words="[bold]x[/nonsense]"))


def test_what_passes_without_a_figure_is_counted_and_what_does_not_has_its_row() -> None:
    lines = printed(sample({"COM-008": "fail"})).splitlines()
    rows = [line for line in lines if re.match(r"[A-Z]{3}-\d{3} ", line)]
    assert any(line.startswith("COM-008") for line in rows)
    (count,) = (int(line.split()[0].removeprefix("\x1b[2m")) for line in lines if "more pass without a figure" in line)
    assert len(rows) + count == TESTED


def test_a_few_that_pass_have_their_rows_and_what_was_not_asked_for_has_none() -> None:
    others = {result.requirement: "not-applicable" for result in sample().results if result.requirement != "COM-008"}
    lines = printed(sample(others)).splitlines()
    assert [line.split()[0] for line in lines if re.match(r"[A-Z]{3}-\d{3} ", line)] == ["COM-008"]
    assert any("do not apply to this run" in line for line in lines)


def test_on_a_narrow_terminal_titles_give_way_and_figures_do_not() -> None:
    lines = [line.replace("\u202f", " ") for line in printed(sample(), width=76).splitlines()]
    line = next(line for line in lines if line.startswith("MET-003"))
    assert all(text in line for text in ("99.94 %", "99.85 %", "≥ 98 %", "≥ 99.9 %"))
    assert "…" in line
