"""What the reference is known to miss is named; anything else that is amiss still counts."""

import pytest

from kuayu import shortfalls
from kuayu.cli import check
from kuayu_conformance.run.judgement import EXCUSE
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, RequirementResult, RunLevel, Verdict


def result(requirement: str, verdict: Verdict, estimate: float | None = None) -> RequirementResult:
    return RequirementResult(
        requirement=requirement, verdict=verdict, required=True, estimate=estimate, parts=[], evidence=[]
    )


@pytest.fixture
def known() -> shortfalls.Shortfall:
    return shortfalls.KNOWN[0]


@pytest.mark.parametrize("verdict", [Verdict.inconclusive, Verdict.fail])
def test_a_known_shortfall_is_named_and_nothing_else_is_amiss(known: shortfalls.Shortfall, verdict: Verdict) -> None:
    results = [result("COM-001", Verdict.pass_), result(known.requirement, verdict, known.worst)]
    assert shortfalls.of(results) == ([known], [])


def test_a_shortfall_that_is_no_more_is_not_named(known: shortfalls.Shortfall) -> None:
    assert shortfalls.of([result(known.requirement, Verdict.pass_, 0.0)]) == ([], [])


def test_a_worse_figure_than_the_known_one_counts(known: shortfalls.Shortfall) -> None:
    worse = result(known.requirement, Verdict.fail, known.worst * 1.01)
    assert shortfalls.of([worse]) == ([], [known.requirement])


def test_where_more_is_better_a_lower_figure_is_the_worse_one(monkeypatch: pytest.MonkeyPatch) -> None:
    (threshold,) = [row.threshold for row in registers.requirements().requirements if row.id == "MET-016"]
    known = shortfalls.Shortfall("MET-016", 0.8, "for the sake of the story")
    monkeypatch.setattr(shortfalls, "KNOWN", (known,))
    better, worse = (
        result("MET-016", Verdict.fail, known.worst + change).model_copy(update={"threshold": threshold})
        for change in (0.01, -0.01)
    )
    assert shortfalls.of([better]) == ([known], [])
    assert shortfalls.of([worse]) == ([], ["MET-016"])


def test_a_known_shortfall_without_a_figure_counts(known: shortfalls.Shortfall) -> None:
    assert shortfalls.of([result(known.requirement, Verdict.harness_error)]) == ([], [known.requirement])


def test_what_is_not_on_the_list_counts() -> None:
    assert shortfalls.of([result("COM-001", Verdict.fail)]) == ([], ["COM-001"])


def test_the_list_names_requirements_that_have_a_check() -> None:
    checked = {row.id for row in registers.requirements().requirements if row.check}
    assert {each.requirement for each in shortfalls.KNOWN} <= checked


def test_the_last_words_say_what_is_amiss_and_how_to_see_it_again(
    known: shortfalls.Shortfall, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (threshold,) = [row.threshold for row in registers.requirements().requirements if row.id == "MET-016"]
    unknown = result("MET-016", Verdict.fail, 0.8).model_copy(update={"threshold": threshold, "reason": "too few"})
    shown = result(known.requirement, Verdict.inconclusive, known.worst)
    report = ConformanceReport.model_construct(
        results=[unknown, shown], exit_code=1, run_level=RunLevel.quick, nonce="0f1e"
    )
    monkeypatch.setattr(check.console, "width", 200)
    assert check.beyond_shortfalls(report) == 1
    *_, amiss, again = capsys.readouterr().out.splitlines()
    assert amiss == "amiss MET-016: fail; estimate 0.8, at least 0.9; too few"
    assert again == "just these again: kuayu check --level quick --nonce 0f1e --requirement MET-016"


def test_what_the_machine_was_too_busy_for_is_open_unless_that_is_tolerated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = f"this machine was busy with something else (load 14){EXCUSE}; found all the same: fail"
    untested = result("RES-002", Verdict.not_testable).model_copy(update={"reason": reason})
    report = ConformanceReport.model_construct(results=[untested], exit_code=2, run_level=RunLevel.smoke, nonce="0f1e")
    monkeypatch.setattr(check.console, "width", 200)
    assert check.beyond_shortfalls(report) == 2
    assert "untested RES-002: not-testable; this machine was busy" in capsys.readouterr().out
    assert check.beyond_shortfalls(report, tolerate_busy=True) == 0
    failed = ConformanceReport.model_construct(
        results=[untested, result("COM-001", Verdict.fail)], exit_code=1, run_level=RunLevel.smoke, nonce="0f1e"
    )
    assert check.beyond_shortfalls(failed, tolerate_busy=True) == 1
