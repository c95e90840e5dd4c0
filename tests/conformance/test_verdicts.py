"""From findings to verdicts to exit codes."""

import pytest

from kuayu_conformance.answers import Answer
from kuayu_conformance.findings import Claim, Figure, Finding
from kuayu_conformance.run.judgement import conclude, exit_code, without_verdict
from kuayu_schemas import registers
from kuayu_schemas.models import Modal, Replay, Requirement, RequirementResult, Verdict


def requirement(identifier: str) -> Requirement:
    return next(row for row in registers.requirements().requirements if row.id == identifier)


def concluded(identifier: str, *findings: Finding) -> RequirementResult:
    return conclude(requirement(identifier), findings, "episode", Replay.deterministic, 1.0)


def accuracy(estimate: float, bound: float) -> Figure:
    return Figure("MET-003", estimate, bound, 450, "by hand")


@pytest.mark.parametrize(
    ("estimate", "bound", "verdict"),
    [
        (0.99, 0.981, Verdict.pass_),
        (0.98, 0.98, Verdict.pass_),
        (0.99, 0.979, Verdict.inconclusive),
        (0.979, 0.97, Verdict.fail),
    ],
)
def test_a_figure_passes_by_its_bound_and_fails_by_its_estimate(
    estimate: float, bound: float, verdict: Verdict
) -> None:
    assert concluded("MET-003", accuracy(estimate, bound)).verdict is verdict


@pytest.mark.parametrize(
    ("estimate", "ceiling", "verdict"),
    [(0.97, 0.981, Verdict.inconclusive), (0.97, 0.979, Verdict.fail), (0.99, 0.979, Verdict.inconclusive)],
)
def test_a_figure_with_a_ceiling_fails_only_where_both_miss(estimate: float, ceiling: float, verdict: Verdict) -> None:
    figure = Figure("MET-003", estimate, 0.9, 3, "by hand", ceiling=ceiling)
    assert concluded("MET-003", figure).verdict is verdict


def test_a_figure_that_must_be_small_is_held_the_other_way() -> None:
    assert concluded("MET-002", Figure("MET-002", 60.0, 60.0, 3, "by hand")).verdict is Verdict.pass_
    assert concluded("MET-002", Figure("MET-002", 60.1, 60.1, 3, "by hand")).verdict is Verdict.fail


def test_an_aim_is_printed_and_never_judged() -> None:
    result = concluded("MET-003", accuracy(0.985, 0.981))
    assert result.verdict is Verdict.pass_
    assert result.aim_met is False


def test_one_unmet_claim_fails_whatever_the_figure() -> None:
    unmet = Claim("MET-003", "something", met=False, found="nothing")
    assert concluded("MET-003", accuracy(1.0, 0.99), unmet).verdict is Verdict.fail


def test_evidence_is_what_speaks_against_it() -> None:
    claims = [Claim("COM-004", f"thing {i}", met=i > 0, found="x") for i in range(5)]
    result = concluded("COM-004", *claims)
    assert [piece.expected for piece in result.evidence] == ["thing 0"]
    assert result.n == 5


def test_a_check_that_asks_nothing_and_finds_nothing_is_a_fault_of_the_suite() -> None:
    assert concluded("COM-004").verdict is Verdict.harness_error


def test_answers_that_say_nothing_about_a_requirement_do_not_meet_it() -> None:
    last = Answer(7, "GET /v1/domains", 200, {"content-type": "text/html"}, b"<form>")
    result = conclude(requirement("COM-004"), [], "com_errors", Replay.deterministic, 1.0, last)
    assert (result.verdict, result.reason) == (Verdict.fail, "nothing that could be judged was answered")
    assert [(piece.exchange, piece.answer) for piece in result.evidence] == [(7, "200 <form>")]


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([Verdict.pass_, Verdict.not_applicable, Verdict.not_supported], 0),
        ([Verdict.pass_, Verdict.fail], 1),
        ([Verdict.pass_, Verdict.inconclusive], 2),
        ([Verdict.pass_, Verdict.not_testable], 2),
        ([Verdict.fail, Verdict.inconclusive], 1),
        ([Verdict.pass_, Verdict.harness_error], 3),
        ([Verdict.inconclusive, Verdict.harness_error], 3),
        ([Verdict.fail, Verdict.harness_error], 1),
    ],
)
def test_the_exit_code_is_that_of_the_gravest_verdict(verdicts: list[Verdict], code: int) -> None:
    row = requirement("COM-004")
    assert exit_code(without_verdict(row, verdict, "because") for verdict in verdicts) == code


def test_a_run_of_which_nothing_can_be_claimed_is_no_success() -> None:
    met = without_verdict(requirement("COM-004"), Verdict.pass_, "because")
    assert (exit_code([met]), exit_code([met], nothing_claimed=True)) == (0, 2)


def test_what_is_only_recommended_does_not_decide_the_exit_code() -> None:
    recommended = requirement("COM-004").model_copy(update={"modal": Modal.should})
    assert exit_code([without_verdict(recommended, Verdict.not_testable, "because")]) == 0


@pytest.mark.parametrize(("estimate", "met"), [(0.09, True), (0.5, False)])
def test_a_figure_that_is_only_aimed_at_is_told_and_not_judged(estimate: float, met: bool) -> None:
    result = concluded("DEM-001", Figure("DEM-001", estimate, estimate + 0.1, 7, "by hand"))
    assert result.verdict is Verdict.pass_
    assert (result.estimate, result.aim_met, result.unit) == (estimate, met, "1")
    unmet = Claim("DEM-001", "an answer to every case", met=False, found="none")
    assert concluded("DEM-001", Figure("DEM-001", estimate, estimate, 7, "by hand"), unmet).verdict is Verdict.fail
