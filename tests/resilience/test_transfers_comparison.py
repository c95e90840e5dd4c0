import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.resilience.transfers.scene import Floats
from kuayu.training.resilience import collectives_compare, shards_compare
from kuayu.training.resilience.shards_clairvoyant import clairvoyant
from kuayu.training.resilience.shards_measured import ratios
from kuayu.training.resilience.shards_policies import Planned
from kuayu.training.resilience.shards_run import Run
from kuayu.training.resilience.shards_schedules import ON_DEMAND, ONE_AHEAD, PULL, Schedule, Static
from kuayu.training.resilience.shards_world import FAMILIES, RATIOS, STEP_S, Window, draw

SEED = 1003
WAN = Path(os.environ.get("KUAYU_DATA", "../shared/data")) / "wan" / "throughput.csv.gz"


def plain(rates: Floats, *, room: float = 4.0, local: int = 0, steps: int = 60) -> Window:
    """One source that carries for both jobs, whose steps need a byte a second each."""
    seconds = rates.shape[-1]
    one = np.ones(1)
    return Window(
        "plain",
        0,
        2.0 * one,
        0.0 * one,
        np.full((1, 60), 2.0),
        rates.reshape(1, seconds),
        np.ones((1, seconds)),
        np.full(2, STEP_S),
        np.ones((2, 1), dtype=bool),
        steps,
        local,
        room * 2 * STEP_S,
        60.0,
        0.5,
    )


def test_on_demand_a_step_waits_for_its_transfer_and_every_transfer_is_blocked() -> None:
    """Both jobs ask at once; one transfer after the other takes 2.5 s at 2 bytes a second."""
    outcome = Run(plain(np.full(4000, 2.0), steps=1), Static(plain(np.full(4000, 2.0), steps=1), ON_DEMAND)).play()
    assert outcome.blocked == 1.0
    assert outcome.waiting == pytest.approx((2.5 / 7.5 + 5.0 / 10.0) / 2)


def test_with_twice_the_bandwidth_one_step_ahead_waits_for_nothing() -> None:
    window = plain(np.full(4000, 4.5))
    outcome = Run(window, Static(window, ONE_AHEAD)).play()
    assert (outcome.waiting, outcome.blocked) == (0.0, 0.0)


def test_an_outage_longer_than_the_buffer_is_waited_for_to_the_second() -> None:
    rates = np.full(4000, 4.0)
    rates[200:260] = 0.0
    window = plain(rates, room=4)
    outcome = Run(window, Static(window, Schedule(1.0, 4, PULL, "evenly"))).play()
    waited = outcome.waiting / (1 - outcome.waiting) * window.steps * STEP_S
    assert 35.0 <= waited <= 60.0  # a minute, less the four steps that were here and the one that ran


def test_local_data_bridge_the_same_outage_under_the_plan() -> None:
    rates = np.full(4000, 4.0)
    rates[200:260] = 0.0
    window = plain(rates, room=4, local=15)
    assert Run(window, Planned(window)).play().waiting == 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plan_waits_and_blocks_less_than_fixed_shards_in_every_family(family: str) -> None:
    window = draw(family, SEED)
    ours = Run(window, Planned(window)).play()
    for schedule in (ON_DEMAND, ONE_AHEAD):
        theirs = Run(window, Static(window, schedule)).play()
        assert ours.waiting <= theirs.waiting
        assert ours.blocked <= theirs.blocked


def test_a_window_follows_from_its_seed_and_its_outcome_from_the_window() -> None:
    one, other = draw("outages", SEED), draw("outages", SEED)
    assert np.array_equal(one.rates, other.rates)
    assert Run(one, Planned(one)).play() == Run(other, Planned(other)).play()
    assert not np.array_equal(one.rates, draw("outages", SEED + 1).rates)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(1.0, 3.0), st.sampled_from(FAMILIES))
def test_more_bandwidth_never_makes_one_who_knows_it_wait_more(seed: int, times: float, family: str) -> None:
    window = dataclasses.replace(draw(family, seed), steps=40, local=4)
    slow = dataclasses.replace(window, rates=0.5 * window.rates)
    fast = dataclasses.replace(slow, rates=times * slow.rates)
    assert clairvoyant(fast).waiting <= clairvoyant(slow).waiting + 1e-6


def test_reductions_are_of_means_and_bounds_hold_them() -> None:
    found = shards_compare.reduction(np.array([1.0, 0.0, 1.0]), np.array([2.0, 4.0, 2.0]), 1)
    assert found is not None
    assert found["value"] == pytest.approx(0.75)
    assert found["low"] is not None
    assert found["high"] is not None
    assert found["low"] <= 0.75 <= found["high"]
    unbounded = shards_compare.reduction(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 1)
    assert unbounded is not None
    assert unbounded["low"] is None
    assert shards_compare.reduction(np.zeros(3), np.zeros(3), 1) is None


def test_the_best_schedule_is_the_one_that_did_best_over_all_windows() -> None:
    made = shards_compare.Played("±30 %")
    windows = [dataclasses.replace(draw("±30 %", SEED + each), steps=30, local=3) for each in range(2)]
    schedules = [Schedule(1.0, depth, way, "evenly") for depth in (1, 8) for way in ("nearest", PULL)]
    for each in schedules:
        made.schedules[each] = [Run(window, Static(window, each)).play() for window in windows]
    found = shards_compare.best(made.schedules, "waiting", pulling=False)
    assert found.way == "nearest"
    others = [each for each in schedules if each.way == "nearest"]
    assert shards_compare.mean(made.schedules[found], "waiting") == min(
        shards_compare.mean(made.schedules[each], "waiting") for each in others
    )


def test_collectives_are_compared_with_every_fixed_one_and_json_holds_all() -> None:
    found = collectives_compare.played("busy", SEED)
    assert found["quickest"] >= max(found["chosen"], *(found[name] for name in collectives_compare.NAMES))
    rows = collectives_compare.figures([SEED], 1, lambda: None)
    assert {row["family"] for row in rows} == {*collectives_compare.FAMILIES, "all"}
    assert json.loads(json.dumps(rows)) == rows


@pytest.mark.skipif(not WAN.is_file(), reason="public data are not here")
def test_levels_are_off_as_was_measured_between_cloud_regions() -> None:
    found = ratios(WAN)
    assert len(found) == 3906
    assert np.quantile(found, np.linspace(0.05, 0.95, 19)).round(3).tolist() == list(RATIOS)
