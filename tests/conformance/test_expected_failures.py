"""Failures that are expected do not turn a build red, as long as they are true."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run as called
from conformance.rendering.samples import sample
from mutants.serve import served

from kuayu_conformance.expected_failures import MalformedListError, entries_of, outcome_of
from kuayu_schemas.registers import requirements

BROKEN, WHOLE = "COM-004", "COM-012"
UNCHECKED = next(row.id for row in requirements().requirements if not row.check)


@pytest.fixture(scope="module")
def mutant() -> Iterator[str]:
    """Base URL of a server that breaks one of the two requirements."""
    with served("unknown-path-is-ok") as target:
        yield target


def expecting(target: str, folder: Path, text: str, *more: str) -> tuple[int, str]:
    """Exit code, and what is said, of a run of both with a file of expected failures."""
    file = folder / "expected-failures.txt"
    file.write_text(text, "utf-8")
    answer = called(
        *("conformance", "run", "--target", target, "--header", "Authorization: Bearer own"),
        *("-o", folder / "report"),
        *("--requirement", BROKEN, "--requirement", WHOLE, "--seed", "5", "--expected-failures", str(file), *more),
    )
    return answer.returncode, " ".join(answer.stderr.split())


def test_a_failure_that_is_expected_is_printed_and_the_report_stays_the_truth(mutant: str, tmp_path: Path) -> None:
    text = f"# until release 4\n\n{BROKEN.lower()}  the gateway answers 200  # soon\n"
    code, said = expecting(mutant, tmp_path, text)
    assert code == 0, said
    assert f"expected {BROKEN} fails: the gateway answers 200; found:" in said
    report = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    assert report["exit_code"] == 1
    verdicts = {row["requirement"]: row["verdict"] for row in report["results"]}
    assert (verdicts[BROKEN], verdicts[WHOLE]) == ("fail", "pass")
    assert called("conformance", "verify", tmp_path / "report").returncode == 0


def test_a_failure_that_nobody_expected_counts(mutant: str, tmp_path: Path) -> None:
    code, _ = expecting(mutant, tmp_path, "# none\n")
    assert code == 1


def test_an_entry_that_passes_by_now_makes_the_run_fail(minimal_server: str, mutant: str, tmp_path: Path) -> None:
    code, said = expecting(minimal_server, tmp_path, f"{BROKEN} the gateway answers 200\n")
    assert code == 1
    assert f"stale {BROKEN} is expected to fail, but passes" in said
    assert "out of the file" in said
    code, said = expecting(mutant, tmp_path, f"{BROKEN} the gateway answers 200\n{WHOLE} pages\n")
    assert code == 1, "beside one that is true, too"
    assert f"stale {WHOLE}" in said


def test_an_entry_that_was_not_tested_makes_the_run_fail(mutant: str, tmp_path: Path) -> None:
    text = f"{BROKEN} the gateway answers 200\nMET-003 not asked for\n{UNCHECKED} has no check\n"
    code, said = expecting(mutant, tmp_path, text)
    assert code == 1
    assert "stale MET-003 is expected to fail, but was not tested (was not asked for)" in said
    assert f"stale {UNCHECKED} is expected to fail, but the suite has no check for it" in said


@pytest.mark.parametrize(
    ("text", "code", "cause", "hint"),
    [
        ("COM-04 x\n", 1, "line 1: there is no requirement COM-04; did you mean COM-004?", "list"),
        ("\nCOM-004\n", 2, "line 2: COM-004 has no reason", "ID reason"),
        ("COM-004 # a comment is no reason\n", 2, "line 1: COM-004 has no reason", "ID reason"),
        ("COM-004 x\ncom-004 y\n", 2, "line 2: COM-004 is named twice", "once"),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_anything_is_asked(
    text: str, code: int, cause: str, hint: str, tmp_path: Path
) -> None:
    found, said = expecting("http://127.0.0.1:9", tmp_path, text)
    assert (found, cause in said, hint in said) == (code, True, True), said
    assert not (tmp_path / "report").exists()


def test_a_reason_may_hold_the_sign_of_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("COM-004\tticket GW-1#2   # a comment\n", "utf-8")
    assert [(entry.name, entry.reason) for entry in entries_of(path)] == [("COM-004", "ticket GW-1#2")]
    path.write_bytes(b"COM-004 \xff\n")
    with pytest.raises(MalformedListError, match="not UTF-8"):
        entries_of(path)
    with pytest.raises(MalformedListError, match="cannot be read"):
        entries_of(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("verdicts", "expected", "code"),
    [
        ({"COM-004": "fail"}, ["COM-004"], 0),
        ({"COM-004": "fail", "COM-008": "fail"}, ["COM-004"], 1),
        ({"COM-004": "fail", "COM-008": "inconclusive"}, ["COM-004"], 2),
        ({"COM-004": "fail", "COM-008": "harness-error"}, ["COM-004"], 3),
        ({"COM-004": "inconclusive"}, ["COM-004"], 2),
        ({"COM-004": "not-testable"}, ["COM-004"], 2),
        ({"COM-004": "fail"}, ["COM-004", "COM-008"], 1),
        ({"COM-004": "fail", "COM-008": "not-supported"}, ["COM-004", "COM-008"], 1),
    ],
)
def test_only_failures_are_excused_and_only_those_that_are_named(
    verdicts: dict[str, str], expected: list[str], code: int
) -> None:
    report = sample(verdicts)
    assert outcome_of(report, dict.fromkeys(expected, "known")).exit_code == code
