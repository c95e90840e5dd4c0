"""What counts as a change, at its edges; and what a request says, read."""

import pytest

from kuayu_conformance.testbed.adjustment.world import Motion, latency_motion, level, load_motion, looked_at

CALM, BETWEEN, CHANGED = Motion.CALM, Motion.BETWEEN, Motion.CHANGED


@pytest.mark.parametrize(
    ("before", "now", "motion"),
    [
        (0.5, 0.5, CALM),
        (0.5, 0.549, CALM),
        (0.5, 0.451, CALM),
        (0.5, 0.551, BETWEEN),
        (0.5, 0.449, BETWEEN),
        (0.5, 0.599, BETWEEN),
        (0.5, 0.601, CHANGED),
        (0.5, 0.399, CHANGED),
        (0.5, 0.0, CHANGED),
        (0.0, 0.0, CALM),
        (0.0, 0.01, CHANGED),
    ],
)
def test_a_load_has_changed_by_a_fifth_of_itself_and_is_calm_within_a_tenth(
    before: float, now: float, motion: Motion
) -> None:
    assert load_motion(before, now) is motion


@pytest.mark.parametrize(
    ("before", "now", "motion"),
    [
        (0.1, 0.1, CALM),
        (0.1, 0.1249, CALM),
        (0.1, 0.0751, CALM),
        (0.1, 0.1251, BETWEEN),
        (0.1, 0.1499, BETWEEN),
        (0.1, 0.1501, CHANGED),
        (0.1, 0.0749, BETWEEN),
        (0.1, 0.0, BETWEEN),
        (0.0, 0.0, CALM),
        (0.0, 1e-6, CHANGED),
    ],
)
def test_a_latency_has_changed_when_it_is_half_as_much_again_and_never_by_falling(
    before: float, now: float, motion: Motion
) -> None:
    assert latency_motion(before, now) is motion


def test_at_the_very_edge_either_is_right() -> None:
    assert load_motion(0.5, 0.6) is BETWEEN
    assert load_motion(0.5, 0.55) is BETWEEN
    assert latency_motion(0.1, 0.15) is BETWEEN
    assert latency_motion(0.1, 0.125) is BETWEEN


@pytest.mark.parametrize(
    ("interval", "patience", "count"), [(2.0, 10.0, 5), (2.0, 9.0, 5), (0.1, 0.3, 3), (10.0, 2.0, 1), (3.0, 10.0, 4)]
)
def test_as_many_intervals_are_looked_at_as_patience_needs(interval: float, patience: float, count: int) -> None:
    assert looked_at(interval, patience) == count


def test_the_level_is_the_median_of_the_last_ones() -> None:
    assert level([9.0, 9.0, 1.0, 5.0, 2.0, 4.0, 3.0], 2.0, 10.0) == 3.0
    assert level([1.0, 2.0, 7.0, 8.0], 2.0, 10.0) == 4.5
    assert level([1.0, 7.0], 2.0, 1.0) == 7.0
