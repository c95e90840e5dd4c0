"""Wires vary as links between clouds did, and the weather is the same whenever it is asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.topology.link_variation import (
    ELECTRICITY,
    TARIFF,
    Daily,
    Rhythm,
    Trouble,
    Weather,
)

DAY = 86_400.0
ENDS = [(a, b) for a in range(12) for b in range(12) if a != b]
WIRES = np.arange(len(ENDS))
RHYTHM = Rhythm(cell=21_600, tide=216_000, busy=0.5, depth=1.0)
CUT = Trouble("cut", period=86_400, chance=0.5, lasting=7_200, factor=0.0)


def made(seed: str = "here", troubles: tuple[Trouble, ...] = (), rhythm: Rhythm = RHYTHM) -> Weather:
    return Weather(ENDS, rhythm, troubles, 0.05, seed)


STORM = made(troubles=(CUT, Trouble("dip", 10_800, 0.5, 1_800, 0.3)))


def test_of_the_same_pair_five_days_apart_ratios_are_as_measured() -> None:
    """From a busy day to a free one: 0.94, 1.32 and 2.81 at the 5th, 50th and 95th percentile (3906 pairs)."""
    ratios = []
    for seed in range(40):
        weather = made(str(seed))
        for day in range(0, 40, 5):
            before, after = (weather.factor(WIRES, at * DAY) for at in (day, day + 5))
            if (before != 1).all() and (after == 1).all():
                ratios += (after / before).tolist()
    assert len(ratios) > 5000
    assert np.percentile(ratios, [5, 50, 95]) == pytest.approx([0.94, 1.32, 2.81], rel=0.05)


def test_the_network_is_busy_half_of_the_time_and_often_for_days() -> None:
    weather = made()
    busy = [float((weather.factor(WIRES, hour * 3_600.0) != 1).mean()) for hour in range(0, 24 * 365, 6)]
    assert np.mean(busy) == pytest.approx(0.5, abs=0.1)
    # wires follow within a cell, so that in most hours nearly all are in the same state
    assert np.mean([min(share, 1 - share) < 0.05 for share in busy]) > 0.8


def test_factors_are_positive_and_little_above_one_without_troubles() -> None:
    factors = np.concatenate([made().factor(WIRES, at * DAY) for at in range(100)])
    assert factors.min() == pytest.approx(1 / 3.9453, rel=0.01)
    assert 1 < factors.max() <= 1 / 0.7087


@given(st.floats(0, 200 * DAY))
def test_nothing_changes_before_the_next_change_and_something_does_then(at: float) -> None:
    now, until = STORM.factor(WIRES, at), STORM.until(WIRES, at)
    assert (until > at).all()
    for wire in WIRES[::11]:
        only = WIRES[wire : wire + 1]
        for share in (0.1, 0.5, 0.999):
            assert STORM.factor(only, at + (until[wire] - at) * share)[0] == now[wire]
        assert STORM.factor(only, until[wire])[0] != now[wire]


@given(st.lists(st.integers(0, len(ENDS) - 1), min_size=1), st.floats(0, 200 * DAY))
def test_each_wire_has_its_own_weather_whoever_else_is_asked_for(wires: list[int], at: float) -> None:
    chosen = np.array(wires)
    assert STORM.factor(chosen, at).tolist() == STORM.factor(WIRES, at)[chosen].tolist()
    assert STORM.until(chosen, at).tolist() == STORM.until(WIRES, at)[chosen].tolist()


@given(st.lists(st.floats(0, 60 * DAY), min_size=2, max_size=6))
def test_it_does_not_matter_what_was_asked_before(moments: list[float]) -> None:
    asked = made(troubles=(CUT,))
    for at in moments:
        fresh = made(troubles=(CUT,))
        assert asked.until(WIRES[::7], at).tolist() == fresh.until(WIRES[::7], at).tolist()
        assert asked.factor(WIRES, at).tolist() == fresh.factor(WIRES, at).tolist()


def test_what_is_answered_is_the_askers_own() -> None:
    before = STORM.factor(WIRES, 0.0).tolist()
    STORM.factor(WIRES, 0.0)[:] = 7.0
    assert STORM.factor(WIRES, 0.0).tolist() == before


def test_no_wires_have_no_weather() -> None:
    none = np.array([], dtype=np.intp)
    assert STORM.factor(none, 0.0).shape == STORM.until(none, 0.0).shape == (0,)


def test_another_seed_is_another_weather() -> None:
    at = [day * DAY for day in range(30)]
    here, there = ([made(seed).factor(WIRES, when).tolist() for when in at] for seed in ("here", "there"))
    assert here != there


def test_without_depth_nothing_ever_changes() -> None:
    calm = made(rhythm=Rhythm(21_600, 216_000, 0.5, 0.0))
    assert (calm.factor(WIRES, 5 * DAY) == 1).all()
    assert np.isinf(calm.until(WIRES, 5 * DAY)).all()


def test_a_cut_line_is_cut_in_both_directions_for_as_long_as_it_lasts() -> None:
    weather = made(troubles=(CUT,), rhythm=Rhythm(21_600, 216_000, 0.5, 0.0))
    there, back = np.array([ENDS.index((3, 7))]), np.array([ENDS.index((7, 3))])
    cut, at = [], 0.0
    while at < 400 * DAY:
        assert weather.factor(there, at)[0] == weather.factor(back, at)[0]
        until = float(weather.until(there, at)[0])
        if weather.factor(there, at)[0] == 0:
            cut.append(until - at)
        at = until
    assert set(cut) == {7_200.0}
    assert len(cut) == pytest.approx(200, abs=35)


def test_collapses_and_dips_leave_a_share() -> None:
    weather = build("collapse", 8, "here").weather
    factors = np.concatenate([weather.factor(np.arange(56), hour * 1_800.0) for hour in range(1_000)])
    assert factors.min() < 0.05
    assert np.mean(factors < 0.31) == pytest.approx(1 / 6, abs=0.05)


def test_lines_of_the_faulty_family_are_cut_for_six_hours_in_twenty_days() -> None:
    weather = build("faulty", 8, "here").weather
    cut = [float((weather.factor(np.arange(56), hour * 3_600.0) == 0).mean()) for hour in range(24 * 200)]
    assert np.mean(cut) == pytest.approx(6 / 480, rel=0.25)


def test_before_the_scenario_there_is_no_weather() -> None:
    with pytest.raises(ValueError, match="begins at second 0"):
        STORM.factor(WIRES, -1.0)


def test_nights_are_half_as_dear() -> None:
    weather = made()
    assert [weather.tariff(hour * 3_600.0) for hour in (0, 7.99, 8, 23.99, 24, 32)] == [0.5, 0.5, 1, 1, 0.5, 1]
    assert weather.tariff_seconds(0.0, DAY) == 8 * 3_600 * 0.5 + 16 * 3_600
    assert weather.tariff_seconds(7 * 3_600.0, 9 * 3_600.0) == 3_600 * 1.5


@given(st.floats(0, 30 * DAY), st.floats(0, 5 * DAY), st.floats(0, 1))
def test_what_is_held_in_two_parts_costs_as_much(since: float, length: float, share: float) -> None:
    weather, between, until = made(), since + length * share, since + length
    parts = weather.tariff_seconds(since, between) + weather.tariff_seconds(between, until)
    assert parts == pytest.approx(weather.tariff_seconds(since, until), abs=1e-6)
    assert length * 0.5 - 1e-6 <= parts <= length + 1e-6


def test_electricity_is_dear_by_day_and_neutral_over_it() -> None:
    daily = Daily(ELECTRICITY)
    assert daily.mean == 1
    assert daily.at(11 * 3_600.0) / daily.at(0.0) == 3
    assert Daily(TARIFF).mean == pytest.approx(20 / 24)


def test_prices_follow_electricity_as_far_as_it_counts() -> None:
    weather = build("reference", 8, "here").weather
    assert weather.price(0.0) == pytest.approx(0.975, abs=0.01)
    assert weather.price(11 * 3_600.0) == pytest.approx(1.025, abs=0.01)
