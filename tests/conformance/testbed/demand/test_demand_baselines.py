"""Forecasts that anybody can make, waveforms and peaks, on cases worked by hand."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu_conformance.testbed.demand.baselines import (
    DRIFT,
    EMPTY_AT_FIRST,
    LAST,
    SEASONAL,
    SMOOTHING,
    Laid,
    Load,
    cases,
    greedy,
    last_with_errors,
    least_peak,
    level,
    prices_at,
    series,
    simple,
    smoothed,
)
from kuayu_conformance.testbed.demand.world import Period

DAY = 1_440


def test_last_value_season_and_drift() -> None:
    """A series that rises by one each ten minutes: the day before it was 144 less, an hour on it is six more."""
    values = np.floor(np.arange(2 * DAY + 1) / 10.0)
    found = simple(values, 60)
    assert found[LAST] == 288.0
    assert found[SEASONAL] == 288.0 - 144.0 + 6.0
    assert found[DRIFT] == pytest.approx(294.0)
    assert 288.0 < found[SMOOTHING] < 296.0
    with pytest.raises(ValueError, match="a day"):
        simple(values[:DAY], 60)


def test_smoothing_of_what_stands_still_and_of_a_jump() -> None:
    assert smoothed(np.full(145, 7.0), 6.0) == pytest.approx(7.0)
    jumped = np.concatenate((np.full(100, 10.0), np.full(45, 50.0)))
    assert smoothed(jumped, 1.0) == pytest.approx(50.0, abs=1.0)


def test_the_last_value_with_its_errors() -> None:
    """Errors a step ahead are 1, 1, 1 and -3: three quarters do not exceed 1, a quarter not -3."""
    assert last_with_errors(np.array([0.0, 1.0, 2.0, 3.0, 0.0]), 1, (0.25, 0.5, 0.9)) == (0.0, 1.0, 1.0)


def test_a_waveform_of_periods_that_are_known() -> None:
    """From 100 s on 8 devices for 200 s, then 2 for 100 s; at its end a period has its devices no more."""
    sure = (Period("warm_up", 8, 200.0, 0.0), Period("stable_convergence", 2, 100.0, 0.0))
    found = cases([Laid(100.0, sure)], np.array([0.0, 100.0, 299.0, 300.0, 400.0]), 3, "seed")
    assert found.tolist() == [[0.0, 8.0, 8.0, 2.0, 0.0]] * 3


def test_half_of_the_cases_are_longer_than_the_median() -> None:
    unsure = (Period("warm_up", 4, 1_000.0, 0.5),)
    found = cases([Laid(0.0, unsure)], np.array([1_000.0]), 4_000, "seed")
    assert found.mean() == pytest.approx(2.0, abs=0.1)
    later = cases([Laid(0.0, unsure)], np.array([1_000.0 * np.exp(0.5)]), 4_000, "seed")
    assert later.mean() == pytest.approx(4.0 * 0.1587, abs=0.08), "one standard deviation"


def test_prices_hold_until_the_next_and_begin_anew_at_midnight() -> None:
    at = np.array([0.0, 21_599.0, 21_600.0, 86_399.0, 86_400.0])
    assert prices_at([0.0, 21_600.0], [1.0, 3.0], at).tolist() == [1.0, 1.0, 3.0, 3.0, 1.0]


BASE = (10.0, 10.0, 2.0, 2.0)
MOVABLE = Load(4, 2, 0, 3, 0, interruptible=False)


def test_a_load_goes_into_the_valley() -> None:
    assert level(BASE, [MOVABLE], [MOVABLE.as_planned]).max() == 14.0
    assert greedy(BASE, [MOVABLE]) == [[2, 3]]
    assert level(BASE, [MOVABLE], greedy(BASE, [MOVABLE])).max() == 10.0
    assert least_peak(BASE, [MOVABLE]) == pytest.approx(10.0)


def test_what_may_pause_uses_two_valleys() -> None:
    base = (0.0, 9.0, 0.0)
    assert greedy(base, [Load(5, 2, 0, 2, 0, interruptible=True)]) == [[0, 2]]
    assert greedy(base, [Load(5, 2, 0, 2, 0, interruptible=False)]) == [[0, 1]]
    assert least_peak((0.0, 0.0), [Load(5, 1, 0, 1, 0, interruptible=True)]) == pytest.approx(2.5), "in halves"


@st.composite
def questions(draw: st.DrawFn) -> tuple[tuple[float, ...], list[Load]]:
    """A base and loads that fit in their windows."""
    steps = draw(st.integers(3, 12))
    base = tuple(float(each) for each in draw(st.lists(st.integers(0, 50), min_size=steps, max_size=steps)))
    loads = []
    for _ in range(draw(st.integers(1, 5))):
        slots = draw(st.integers(1, steps))
        earliest = draw(st.integers(0, steps - slots))
        latest = draw(st.integers(earliest + slots - 1, steps - 1))
        planned = draw(st.integers(earliest, latest - slots + 1))
        loads.append(Load(draw(st.integers(1, 20)), slots, earliest, latest, planned, draw(st.booleans())))
    return base, loads


@given(questions())
@settings(max_examples=50, deadline=None)
def test_no_plan_is_below_the_least_peak_and_all_work_is_done(its: tuple[tuple[float, ...], list[Load]]) -> None:
    base, loads = its
    where = greedy(base, loads)
    least = least_peak(base, loads)
    for plan in (where, [load.as_planned for load in loads]):
        assert level(base, loads, plan).max() >= least - 1e-6
    for load, steps in zip(loads, where, strict=True):
        assert len(set(steps)) == load.slots
        assert load.earliest <= min(steps)
        assert max(steps) <= load.latest
        assert load.interruptible or max(steps) - min(steps) == load.slots - 1


def test_real_series_lose_their_first_days_and_clusters_that_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "demand_series").mkdir()
    rows = ["time_s,one,two", *(f"{60 * n},{n if n < EMPTY_AT_FIRST else 30},1" for n in range(EMPTY_AT_FIRST + 3))]
    name = tmp_path / "demand_series" / "itp_cluster_gpus_demand_1min.csv.gz"
    name.write_bytes(gzip.compress("\n".join(rows).encode()))
    found = series("itp-demand", tmp_path)
    assert {cluster: values.tolist() for cluster, values in found.items()} == {"one": [30.0] * 3}
