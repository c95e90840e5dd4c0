"""Phases of small trainings, worked by hand from the definition, and what holds of every training."""

from itertools import pairwise
from math import log
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.curves import (
    FAST,
    NEVER,
    PHASES,
    POINTS,
    SLOW,
    STABLE,
    WARM_UP,
    Curve,
    DelayedRecogniser,
    Switches,
    begin_of_stability,
    known_at,
    settled,
    slopes_of,
    switches,
)
from kuayu_conformance.testbed.curves import curve as generated


def curve(losses: list[float], rates: list[float] | None = None, steps: list[int] | None = None) -> Curve:
    at = np.array(steps or range(1, len(losses) + 1), dtype=np.int64)
    return Curve("small", "by hand", at, np.array(losses), np.array(rates or [1.0] * len(losses)))


def dropping(at: int, points: int = 39) -> Curve:
    """A loss of four that is one from a place on, at each of the first steps.

    Until step 39 all stretches hold ten points. A slope is small as long as one of the ten behind is low at most:
    ln(4/3.7) over ln(15.5/5.5) is 0.075 at step 10, ln(4/3.4) over it 0.157. So it is not at ``at`` - 9, and is again
    at ``at`` + 9, where no high point is left of the ten before.
    """
    return curve([4.0] * at + [1.0] * (points - at))


def test_a_stretch_holds_the_ten_nearest_points_where_it_would_hold_fewer() -> None:
    """At step 10 there are 1 to 10 and 11 to 20, of 5.5 and 15.5 in the mean."""
    found = slopes_of(np.arange(1, 26), np.array([4.0] * 10 + [1.0] * 10 + [9.0] * 5))
    assert found[9] == pytest.approx(log(4.0) / log(15.5 / 5.5))


def test_a_stretch_holds_all_points_of_a_fifth_or_a_quarter_of_the_steps_where_these_are_more() -> None:
    """At step 100 there are 81 to 100 and 101 to 125, of 90.5 and 113 in the mean."""
    losses = [9.0] * 80 + [4.0] * 20 + [2.0] * 25 + [1.0] * 75
    assert slopes_of(np.arange(1, 201), np.array(losses))[99] == pytest.approx(log(2.0) / log(113 / 90.5))


def test_what_there_is_of_a_stretch_is_taken_and_without_any_there_is_no_slope() -> None:
    found = slopes_of(np.arange(1, 6), np.array([4.0, 4.0, 2.0, 2.0, 2.0]))
    assert found[[0, 3]] == pytest.approx([log(4.0 / 2.5) / log(3.5 / 1.0), log(3.0 / 2.0) / log(5.0 / 2.5)])
    assert np.isnan(found).tolist() == [False, False, False, False, True]


def test_points_that_lie_far_apart_have_a_slope_all_the_same() -> None:
    steps = 2 ** np.arange(30)
    found = slopes_of(steps, np.array([4.0] * 15 + [2.0] * 15))
    assert found[14] == pytest.approx(log(2.0) / log(1024))


def test_the_slope_of_a_power_of_the_steps_is_that_power() -> None:
    steps = np.arange(1, 2001)
    assert slopes_of(steps, np.asarray(steps**-0.3, np.float64))[100:1600] == pytest.approx(0.3, abs=0.003)


@pytest.mark.parametrize(
    ("of", "stable"),
    [
        (dropping(18), 27),  # nine points fall slowly at first, which are too few
        (dropping(19), 0),  # ten do; what falls fast again is stable all the same
        (dropping(30), 0),
        (dropping(10), 19),
        (curve([1.0] * 18 + [4.0] * 21), 0),  # a loss that rises does not fall fast
        (curve([step**-0.3 for step in range(1, 100)]), None),
        (curve([2.0] * 11), 0),
        (curve([2.0] * 10), None),  # of the last point nobody knows how it goes on
    ],
)
def test_stable_convergence_begins_with_ten_slow_points(of: Curve, stable: int | None) -> None:
    assert switches(of) == Switches(0, stable)


@pytest.mark.parametrize(("drop", "stable"), [(126, 80), (125, 155)])
def test_later_on_it_begins_with_a_quarter_of_the_steps_that_are_slow(drop: int, stable: int) -> None:
    """Behind a warm-up of 80 steps these are 80 to 100; behind step 100 a mean looks at 101 to 125.

    One low point of those 25 makes the slope 0.137. From step 155 on the mean before looks at none until 124.
    """
    rates = [*map(float, range(1, 81)), *[80.0] * 320]
    found = switches(curve([4.0] * (drop - 1) + [1.0] * (401 - drop), rates))
    assert found == Switches(79, stable - 1)


def test_a_label_is_known_when_the_last_slope_is_that_it_depends_on() -> None:
    """At step 1 it depends on ten points, and thus on ten behind; at 64 on those until 80, and thus until 100."""
    found = known_at(np.arange(1, 101))
    assert found[[0, 63]].tolist() == [19, 99]
    assert found[64] == NEVER
    assert [settled(np.arange(1, points + 1)) for points in (19, 20, 100)] == [0, 1, 64]
    assert settled(2 ** np.arange(30)) == 11


def warm(rates: list[float], steps: list[int] | None = None) -> int | None:
    return switches(curve([2.0] * len(rates), rates, steps)).fast


def test_warm_up_ends_where_the_rate_stops_rising() -> None:
    assert warm([1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 3.0]) == 3
    assert warm([1.0] * 5) == 0
    assert warm([1.0, 2.0, 3.0]) is None
    assert warm([1.0]) is None


def test_a_rate_that_rises_again_within_ten_points_still_warms_up() -> None:
    pause = [1.0, 2.0, *[1.5] * (POINTS - 1), 3.0, 3.0]
    assert warm(pause) == 11
    longer = [1.0, 2.0, *[1.5] * POINTS, 3.0, 3.0]
    assert warm(longer) == 1


def test_later_on_a_tenth_of_the_steps_is_waited() -> None:
    """At step 500 a tenth more is 50 steps and thus 50 points."""
    rates = [*np.linspace(0.01, 1.0, 500).tolist(), *[0.9] * 49, 2.0, 2.0]
    assert warm(rates) == 549
    rates = [*np.linspace(0.01, 1.0, 500).tolist(), *[0.9] * 50, 2.0, 2.0]
    assert warm(rates) == 499


def test_a_training_is_never_stable_before_its_warm_up_is_over() -> None:
    rates = [*np.linspace(0.1, 1.0, 20).tolist(), *[1.0] * 30]
    found = switches(curve([2.0] * 50, rates))
    assert found == Switches(19, 19)
    assert [found.phase(place) for place in (0, 18, 19, 49)] == [WARM_UP, WARM_UP, STABLE, STABLE]


def test_phases_begin_where_they_are_said_to() -> None:
    found = Switches(3, 7)
    assert [found.phase(place) for place in range(9)] == [WARM_UP] * 3 + [FAST] * 4 + [STABLE] * 2
    assert [found.since(place) for place in (0, 2, 3, 6, 7, 8)] == [0, 0, 3, 3, 7, 7]
    assert Switches(None, None).phase(5) == WARM_UP


@pytest.mark.parametrize(
    ("steps", "losses"), [([0, 1], [1.0, 1.0]), ([1, 1], [1.0, 1.0]), ([1, 2], [1.0, 0.0]), ([1, 2], [1.0])]
)
def test_what_is_no_course_of_a_training_is_refused(steps: list[int], losses: list[float]) -> None:
    with pytest.raises(ValueError, match="small"):
        curve(losses, steps=steps)


SOME = st.integers(0, 400).map(lambda number: generated("laws", number))


@given(SOME)
def test_phases_never_go_back(of: Curve) -> None:
    found = switches(of)
    order = [PHASES.index(found.phase(place)) for place in range(len(of.steps))]
    assert all(later >= earlier for earlier, later in pairwise(order))


@given(SOME, st.sampled_from([0.25, 0.5, 2.0, 1024.0]))
def test_the_unit_of_the_loss_and_of_the_rate_plays_no_part(of: Curve, factor: float) -> None:
    scaled = Curve(of.name, of.source, of.steps, of.losses * factor, of.rates / factor)
    assert switches(scaled) == switches(of)


@given(SOME, st.floats(0.1, 1.0))
def test_what_comes_after_a_label_is_known_plays_no_part(of: Curve, share: float) -> None:
    told = max(2, round(share * len(of.steps)))
    shorter = Curve(of.name, of.source, of.steps[:told], of.losses[:told], of.rates[:told])
    long, short = switches(of), switches(shorter)
    for place in range(settled(shorter.steps)):
        assert long.phase(place) == short.phase(place)


@given(st.integers(0), st.integers(20, 120), st.sampled_from([1, 3, 60]), st.floats(0.05, 0.3), st.integers(0, 30))
def test_labels_are_those_that_the_definition_says_word_by_word(
    seed: int, points: int, apart: int, power: float, since: int
) -> None:
    """With gaps of chance between points, a loss that falls by a power until a third of them, and noise."""
    chance = np.random.default_rng(seed)
    steps = np.cumsum(chance.integers(1, apart + 1, points))
    trend = np.minimum(steps, steps[points // 3]) ** -power
    losses = np.asarray(3.0 * trend * np.exp(0.05 * chance.standard_normal(points)), np.float64)
    expected = word_by_word(steps.tolist(), losses.tolist(), since)
    assert begin_of_stability(steps, losses, since) == expected


def word_by_word(steps: list[int], losses: list[float], since: int) -> int | None:
    """Place of the first point of stable convergence, without any haste."""
    points = list(zip(steps, losses, strict=True))

    def slow(step: int) -> bool:
        before = [one for one in points if step / 1.25 < one[0] <= step]
        behind = [one for one in points if step < one[0] <= 1.25 * step]
        if len(before) < POINTS:
            before = [one for one in points if one[0] <= step][-POINTS:]
        if len(behind) < POINTS:
            behind = [one for one in points if one[0] > step][:POINTS]
        if not behind:
            return False
        (early, high), (late, low) = (
            [fmean(column) for column in zip(*side, strict=True)] for side in (before, behind)
        )
        return log(high / low) / log(late / early) < SLOW

    for place, step in enumerate(steps):
        stretch = [one for one in steps if step <= one <= 1.25 * step]
        stretch = max(stretch, steps[place : place + POINTS], key=len)
        if place >= since and all(map(slow, stretch)):
            return place
    return None


@given(SOME, st.floats(0.05, 1.0))
def test_the_simple_recogniser_knows_nothing_of_the_future(of: Curve, share: float) -> None:
    place = round(share * (len(of.steps) - 1))
    until = Curve(of.name, of.source, of.steps[: place + 1], of.losses[: place + 1], of.rates[: place + 1])
    assert DelayedRecogniser.of(until, switches(until)).phase(place) == DelayedRecogniser.of(of, switches(of)).phase(
        place
    )


def test_the_simple_recogniser_is_right_in_the_end() -> None:
    """Stable from place 27 on; ten points are slow until 36, and behind that ten are looked at."""
    of = dropping(18, 60)
    truth = switches(of)
    recogniser = DelayedRecogniser.of(of, truth)
    assert [truth.phase(place) for place in (26, 27)] == [FAST, STABLE]
    assert [recogniser.phase(place) for place in (0, 1, 45, 46, 59)] == [WARM_UP, FAST, FAST, STABLE, STABLE]


def test_the_simple_recogniser_says_nothing_of_a_stretch_that_goes_on() -> None:
    """Behind a warm-up of 80 steps it depends on steps until 125, which is place 124."""
    of = curve([2.0] * 200, [*map(float, range(1, 81)), *[80.0] * 120])
    recogniser = DelayedRecogniser.of(of, switches(of))
    assert [recogniser.phase(place) for place in (79, 80, 123, 124)] == [WARM_UP, FAST, FAST, STABLE]
