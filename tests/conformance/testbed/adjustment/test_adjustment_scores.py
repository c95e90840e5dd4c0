"""What is lost and when a job has recovered: by hand, and by laws that hold for every window."""

from collections.abc import Sequence
from math import inf

import numpy as np
import pytest
from conformance.testbed.adjustment.calm_windows import running, window
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.adjustment.run import (
    ChangeInForce,
    Course,
    Courses,
    Disturbance,
    JobCourse,
    Outcome,
    Scorer,
    greatest_loss,
    recovered_at,
)
from kuayu_conformance.testbed.adjustment.world import RISE, Event, Policy
from kuayu_conformance.testbed.collectives import HIERARCHICAL, Method

WAY = Method(HIERARCHICAL)
EVEN, SHIFTED = Policy((50, 50), WAY, (0, 1)), Policy((63, 37), WAY, (0, 1))
RISEN = Event(40.0, RISE, 1, 1.4)
"""The second domain is left 0.3 of its compute instead of 0.5."""


def course(*pieces: tuple[float, float]) -> Course:
    """So many seconds at such a rate, one after the other."""
    seconds, rates = np.array(pieces).T
    at = np.concatenate([[0.0], np.cumsum(seconds)])
    return Course(at, np.concatenate([[0.0], np.cumsum(seconds * rates)]))


@pytest.mark.parametrize("pause", [0.9, 1.0, 1.1])
def test_a_pause_costs_its_part_of_ten_seconds(pause: float) -> None:
    made, kept = course((30.0, 2.0), (pause, 0.0), (30.0, 2.0)), course((60.0 + pause, 2.0))
    assert greatest_loss(made, kept, 30.0, 30.0 + pause, 10.0) == pytest.approx(pause / 10.0)


def test_two_pauses_within_a_window_cost_both_and_further_apart_the_longer_one() -> None:
    near = course((30.0, 1.0), (0.5, 0.0), (4.0, 1.0), (0.8, 0.0), (30.0, 1.0))
    far = course((30.0, 1.0), (0.5, 0.0), (10.0, 1.0), (0.8, 0.0), (30.0, 1.0))
    kept = course((80.0, 1.0))
    assert greatest_loss(near, kept, 30.0, 35.3, 10.0) == pytest.approx(0.13)
    assert greatest_loss(far, kept, 30.0, 41.3, 10.0) == pytest.approx(0.08)


def test_what_is_gained_after_a_pause_does_not_make_up_for_it() -> None:
    """The window that ends with the pause sees nothing of what comes then."""
    made, kept = course((30.0, 1.0), (1.0, 0.0), (30.0, 3.0)), course((61.0, 1.0))
    assert greatest_loss(made, kept, 30.0, 31.0, 10.0) == pytest.approx(0.1)


def test_who_is_never_slower_loses_nothing() -> None:
    made, kept = course((30.0, 1.0), (30.0, 3.0)), course((60.0, 1.0))
    assert greatest_loss(made, kept, 30.0, 30.0, 10.0) == 0.0


def test_a_loss_at_either_end_of_the_window_is_seen_in_the_windows_that_there_are() -> None:
    early, late, kept = course((1.0, 0.0), (29.0, 1.0)), course((29.0, 1.0), (1.0, 0.0)), course((30.0, 1.0))
    assert greatest_loss(early, kept, 0.0, 1.0, 10.0) == pytest.approx(0.1)
    assert greatest_loss(late, kept, 29.0, 30.0, 10.0) == pytest.approx(0.1)


def test_a_job_has_recovered_when_it_makes_enough_steps_and_goes_on_doing_so() -> None:
    """A window that begins at 24 s would have nine tenths as well, but the job is slow then."""
    made, most = course((25.0, 0.5), (35.0, 1.0)), course((60.0, 1.0))
    assert recovered_at(made, most, 10.0, 60.0, 10.0, 0.9) == 25.0


def test_who_falls_back_has_recovered_after_that() -> None:
    made = course((20.0, 1.0), (20.0, 0.5), (20.0, 1.0))
    most = course((60.0, 1.0))
    assert recovered_at(made, most, 0.0, 60.0, 10.0, 0.9) == 40.0
    assert recovered_at(made, most, 45.0, 60.0, 10.0, 0.9) == 45.0


def test_a_pause_that_leaves_nine_tenths_of_a_window_is_no_fall_and_a_longer_one_is() -> None:
    most = course((60.0, 1.0))
    short, long = course((20.0, 1.0), (0.9, 0.0), (39.1, 1.0)), course((20.0, 1.0), (1.1, 0.0), (38.9, 1.0))
    assert recovered_at(short, most, 5.0, 60.0, 10.0, 0.9) == 5.0
    assert recovered_at(long, most, 5.0, 60.0, 10.0, 0.9) == pytest.approx(21.1)


def test_who_makes_too_little_at_the_end_never_has() -> None:
    made, most = course((50.0, 1.0), (10.0, 0.8)), course((60.0, 1.0))
    assert recovered_at(made, most, 0.0, 60.0, 10.0, 0.9) == inf
    assert recovered_at(course((60.0, 0.9)), most, 5.0, 60.0, 10.0, 0.9) == 5.0


PIECES = st.lists(st.tuples(st.floats(0.1, 9.0), st.floats(0.05, 5.0)), min_size=8, max_size=20)


@given(PIECES, PIECES, st.floats(0.0, 20.0), st.floats(0.0, 20.0))
def test_no_window_loses_more_than_the_greatest_loss_and_one_loses_as_much(
    one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]], begins: float, lasts: float
) -> None:
    made, kept = course(*one, (60.0, 1.0)), course(*other, (60.0, 1.0))
    found = greatest_loss(made, kept, begins, begins + lasts, 10.0)
    first = np.linspace(max(0.0, begins - 10.0), begins + lasts, 400)
    lost = 1.0 - made.steps(first, first + 10.0) / kept.steps(first, first + 10.0)
    assert lost.max() <= found + 1e-9
    assert found <= max(0.0, lost.max()) + 0.6 * max(rate for _, rate in (*one, *other)) / 0.05 * (10.0 + lasts) / 400


@given(PIECES, st.lists(st.floats(0.05, 5.0), min_size=20, max_size=20))
def test_from_the_recovery_on_every_window_has_enough(
    pieces: Sequence[tuple[float, float]], rates: Sequence[float]
) -> None:
    best = [(seconds, rate) for (seconds, _), rate in zip(pieces, rates, strict=False)]
    made, most = course(*pieces, (20.0, 1.0)), course(*best, (20.0, 1.0))
    ends = made.instants[-1]
    found = recovered_at(made, most, 0.0, ends, 10.0, 0.9)
    assert found <= ends - 20.0 + 1e-6
    first = np.linspace(found, ends - 10.0, 300)
    spare = made.steps(first, first + 10.0) - 0.9 * most.steps(first, first + 10.0)
    assert spare.min() >= -1e-6
    soon = np.array([found])
    assert made.steps(soon, soon + 1e-6) >= 0.9 * most.steps(soon, soon + 1e-6) - 1e-9


def test_progress_is_additive_and_exact_where_rates_change_within_a_cell() -> None:
    """A step a second until 40 s, then 0.6 of it; from 50.1 s on a second's pause, and a step in 1.26 s after it."""
    courses = Courses(window(RISEN), running())
    made = courses.carried(EVEN, [ChangeInForce(50.1, 51.1, SHIFTED, 0)])
    at = np.array([0.0, 40.0, 50.1, 51.1, 120.0])
    steps = made.steps(at[:-1], at[1:])
    assert steps[0] == pytest.approx(40.0, rel=1e-3)
    assert steps[1] == pytest.approx(10.1 * 0.6, rel=1e-3)
    assert steps[2] == pytest.approx(0.0, abs=1e-9)
    assert steps[3] == pytest.approx(68.9 / 1.26, rel=1e-3)
    assert made.total == pytest.approx(steps.sum())


def test_a_change_that_changes_nothing_costs_nothing_and_nobody_makes_more_than_the_best() -> None:
    courses = Courses(window(RISEN), running())
    again = courses.carried(EVEN, [ChangeInForce(50.0, 50.0, EVEN, 0)])
    assert again.total == pytest.approx(courses.with_policy(EVEN).total)
    assert courses.carried(EVEN, [ChangeInForce(52.0, 52.65, SHIFTED, 0)]).total <= courses.best().total


ASKED = tuple(4.0 * number for number in range(30))


def scored(*changes: ChangeInForce, answers: Sequence[int] = ()) -> Disturbance:
    """What the rise comes to for a job with such changes, planned by such answers."""
    world = window(RISEN)
    planned = tuple((0,) if number in answers else () for number in range(len(ASKED)))
    (found,) = Scorer(world).score(Outcome(ASKED, planned, (JobCourse(EVEN, changes),))).disturbances
    return found


def test_a_disturbance_that_nobody_answers_loses_nothing_and_never_recovers() -> None:
    found = scored()
    assert (found.loss, found.recovery_s, found.changes, found.until) == (0.0, inf, 0, 120.0)


def test_a_quick_change_has_recovered_when_it_is_in_force() -> None:
    found = scored(ChangeInForce(52.0, 52.65, SHIFTED, 13), answers=[13])
    assert found.recovery_s == 0.0
    assert found.loss == pytest.approx(0.065)


@pytest.mark.parametrize("seconds", [19.0, 21.0])
def test_recovery_is_counted_from_the_first_answer_that_has_changes(seconds: float) -> None:
    """That moves a part in vain and is in force at 48.05 s; what helps is in force so many seconds later."""
    vain, ends = Policy((51, 49), WAY, (0, 1)), 48.05 + seconds
    found = scored(ChangeInForce(48.0, 48.05, vain, 12), ChangeInForce(ends - 0.6, ends, SHIFTED, 15), answers=[12, 15])
    assert found.recovery_s == pytest.approx(seconds)


def test_changes_that_a_later_answer_replaces_are_not_waited_for() -> None:
    """Those of the first answer never begin: it is counted from the answer, and from nothing that does not happen."""
    found = scored(ChangeInForce(60.0, 60.65, SHIFTED, 14), answers=[11, 14])
    assert found.recovery_s == pytest.approx(60.65 - 44.0)


def test_the_slowest_job_and_the_greatest_loss_are_those_of_the_disturbance() -> None:
    world = window(RISEN, jobs=[running(), running(), running(domains=(0, 2))])
    jobs = (
        JobCourse(EVEN, (ChangeInForce(52.0, 52.65, SHIFTED, 13),)),
        JobCourse(EVEN, (ChangeInForce(52.0, 53.65, SHIFTED, 13),)),
        JobCourse(EVEN, ()),
    )
    planned = tuple((0, 1) if number == 13 else () for number in range(len(ASKED)))
    score = Scorer(world).score(Outcome(ASKED, planned, jobs))
    assert score.disturbances[0].loss == pytest.approx(0.165)
    assert score.disturbances[0].recovery_s == 0.0
    assert 0.9 < score.share < 1.0
    left = (jobs[0], JobCourse(EVEN, ()), jobs[2])
    (found,) = Scorer(world).score(Outcome(ASKED, planned, left)).disturbances
    assert found.recovery_s == inf
