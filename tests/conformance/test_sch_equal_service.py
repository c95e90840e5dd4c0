"""Utilisation at equal service: the highest load that is sustained, by hand."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from conformance.scheduling_scores import score, windows

from kuayu_conformance.checks.scheduling.gains import SustainedLoad, sustained, utilisation_gain
from kuayu_conformance.checks.scheduling.scores import Window


def at(*rows: tuple[float, float]) -> SustainedLoad:
    """What is sustained by a policy that serves such a share at loads 1, 2, 3… and uses so much."""
    grid: Mapping[float, tuple[Window, ...]] = {
        1.0 + place: windows(score(served=served, used=used)) for place, (served, used) in enumerate(rows)
    }
    return sustained(grid, "service")


def test_between_two_loads_it_is_interpolated() -> None:
    """95 of 100 have to be served well, and 19 of 20 large ones: half of the way from all to nine of ten."""
    found = at((1.0, 0.4), (0.9, 0.8))
    assert found.load == pytest.approx(1.5)
    assert found.utilisation == pytest.approx(0.6)
    assert not found.beyond


def test_beyond_the_grid_nothing_is_assumed() -> None:
    found = at((1.0, 0.4), (0.99, 0.8))
    assert (found.load, found.utilisation, found.beyond) == (2.0, pytest.approx(0.8), True)


def test_whoever_serves_badly_at_the_lowest_load_sustains_nothing_but_is_compared_with_at_that() -> None:
    found = at((0.9, 0.4), (0.99, 0.8))
    assert (found.load, found.utilisation, found.floor) == (0.0, 0.0, pytest.approx(0.4))


def test_luck_at_a_higher_load_does_not_help() -> None:
    found = at((1.0, 0.4), (0.9, 0.6), (1.0, 0.9))
    assert found.load == pytest.approx(1.5)


def test_large_jobs_are_served_too() -> None:
    few = score(served=1.0)
    starving = windows(replace(few, large=replace(few.large, within=18)))
    assert sustained({1.0: starving, 2.0: starving}, "service").load == 0.0


def test_a_queue_that_grows_is_not_sustained() -> None:
    rows = {1.0: windows(score(queued=0.0, used=0.4)), 2.0: windows(score(queued=1.0, used=0.8))}
    assert sustained(rows, "service").load == pytest.approx(1.5), "half a day is the most, on half of the way"


def test_a_gain_is_over_what_b1_sustains() -> None:
    rows = {
        1.0: windows(score(used=0.4), B1=score(served=0.95, used=0.4)),
        2.0: windows(score(used=0.6), B1=score(served=0.5, used=0.5)),
    }
    found = {name: sustained(rows, name) for name in ("B1", "service")}
    gain = utilisation_gain(found)
    assert gain.estimate == pytest.approx(0.5)
    assert gain.bound(0.01) == pytest.approx(0.5), "all windows are alike"


def test_one_window_leaves_it_open() -> None:
    rows = dict.fromkeys((1.0, 2.0), windows(score(), count=1))
    found = {name: sustained(rows, name) for name in ("B1", "service")}
    assert utilisation_gain(found).bound(0.05) == -1.0
