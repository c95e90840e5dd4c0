"""Time without forced interruption under a load that varies: a near miss, a control, and what must hold beside."""

from dataclasses import replace

import pytest
from conformance.scheduling_scores import score, windows

from kuayu_conformance.checks.scheduling.scores import Window
from kuayu_conformance.checks.scheduling.stability import CHECK, StabilityWindows, judge
from kuayu_conformance.findings import Claim, Figure
from kuayu_conformance.run.judgement import conclude
from kuayu_schemas import registers
from kuayu_schemas.models import Replay

STABLE = next(each for each in registers.requirements().requirements if each.id == "SCH-008")


def verdict(**swings: tuple[Window, ...]) -> str:
    """Verdict on windows by form of load."""
    findings = list(judge(StabilityWindows(swings, None)))
    return conclude(STABLE, findings, CHECK.name, Replay.deterministic, None).verdict.value


def interrupted(share: float, count: int = 8) -> tuple[Window, ...]:
    """Windows in which so much of the jobs' time is interrupted."""
    return windows(score(interrupted=share), count=count)


def test_an_interruption_of_eleven_thousandths_is_too_much_and_one_of_nine_is_not() -> None:
    assert verdict(step=interrupted(0.011), ramp=interrupted(0.0)) == "fail"
    assert verdict(step=interrupted(0.009), ramp=interrupted(0.0)) == "pass"


def test_the_worst_form_of_load_counts() -> None:
    figure = next(
        each
        for each in judge(StabilityWindows({"step": interrupted(0.001), "ramp": interrupted(0.004)}, None))
        if isinstance(each, Figure)
    )
    assert figure.estimate == pytest.approx(0.996)
    assert [part.label for part in figure.parts] == ["step", "ramp"]


def test_windows_that_do_not_agree_decide_nothing() -> None:
    rough = interrupted(0.0, 7) + interrupted(0.07, 1)
    assert verdict(step=rough) == "inconclusive"


def test_a_window_of_each_form_proves_nothing() -> None:
    assert verdict(step=interrupted(0.0, 1), ramp=interrupted(0.0, 1)) == "inconclusive"
    assert verdict(step=interrupted(0.02, 1)) == "inconclusive", "luck fails nobody"
    assert verdict(step=interrupted(0.02, 5)) == "fail"


def test_jobs_are_not_moved_about() -> None:
    assert verdict(step=windows(score(migrations=10))) == "pass", "a tenth for each hour of a job"
    assert verdict(step=windows(score(migrations=11))) == "fail"


def test_whoever_interrupts_nobody_may_not_leave_them_waiting() -> None:
    assert verdict(step=windows(score(queued=0.51))) == "fail"
    assert verdict(step=windows(score(queued=0.51), B1=score(queued=0.6))) == "pass", "B1 could do no better"


def test_a_job_time_of_nothing_is_no_pass() -> None:
    nobody = replace(score(), lived_seconds=0.0, interrupted=0.0)
    assert verdict(step=windows(nobody)) == "fail"


def test_windows_that_do_not_agree_fail_nobody() -> None:
    assert verdict(step=interrupted(0.0, 7) + interrupted(0.2, 1)) == "inconclusive", "one of eight, 97.5 % in all"


def test_a_service_that_answers_nothing_fails() -> None:
    findings = list(judge(StabilityWindows({}, None)))
    assert [each.met for each in findings if isinstance(each, Claim)] == [False]
