"""Links vary as links between clouds did, and this is the same whenever it is asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.topology import build
from kuayu_conformance.testbed.scheduling.topology.link_variation import (
    ELECTRICITY,
    TARIFF,
    Daily,
    LinkFault,
    LinkVariation,
    Rhythm,
)

DAY = 86_400.0
ENDS = [(a, b) for a in range(12) for b in range(12) if a != b]
LINKS = np.arange(len(ENDS))
RHYTHM = Rhythm(cell=21_600, tide=216_000, busy=0.5, depth=1.0)
CUT = LinkFault("cut", period=86_400, chance=0.5, lasting=7_200, factor=0.0)


def made(seed: str = "here", link_faults: tuple[LinkFault, ...] = (), rhythm: Rhythm = RHYTHM) -> LinkVariation:
    return LinkVariation(ENDS, rhythm, link_faults, 0.05, seed)


STORM = made(link_faults=(CUT, LinkFault("dip", 10_800, 0.5, 1_800, 0.3)))


def test_of_the_same_pair_five_days_apart_ratios_are_as_measured() -> None:
    """From a busy day to a free one: 0.94, 1.32 and 2.81 at the 5th, 50th and 95th percentile (3906 pairs)."""
    ratios = []
    for seed in range(40):
        variation = made(str(seed))
        for day in range(0, 40, 5):
            before, after = (variation.factor(LINKS, at * DAY) for at in (day, day + 5))
            if (before != 1).all() and (after == 1).all():
                ratios += (after / before).tolist()
    assert len(ratios) > 5000
    assert np.percentile(ratios, [5, 50, 95]) == pytest.approx([0.94, 1.32, 2.81], rel=0.05)


def test_the_network_is_busy_half_of_the_time_and_often_for_days() -> None:
    variation = made()
    busy = [float((variation.factor(LINKS, hour * 3_600.0) != 1).mean()) for hour in range(0, 24 * 365, 6)]
    assert np.mean(busy) == pytest.approx(0.5, abs=0.1)
    # links follow within a cell, so that in most hours nearly all are in the same state
    assert np.mean([min(share, 1 - share) < 0.05 for share in busy]) > 0.8


def test_factors_are_positive_and_little_above_one_without_link_faults() -> None:
    factors = np.concatenate([made().factor(LINKS, at * DAY) for at in range(100)])
    assert factors.min() == pytest.approx(1 / 3.9453, rel=0.01)
    assert 1 < factors.max() <= 1 / 0.7087


@given(st.floats(0, 200 * DAY))
def test_nothing_changes_before_the_next_change_and_something_does_then(at: float) -> None:
    now, until = STORM.factor(LINKS, at), STORM.until(LINKS, at)
    assert (until > at).all()
    for link in LINKS[::11]:
        only = LINKS[link : link + 1]
        for share in (0.1, 0.5, 0.999):
            assert STORM.factor(only, at + (until[link] - at) * share)[0] == now[link]
        assert STORM.factor(only, until[link])[0] != now[link]


@given(st.lists(st.integers(0, len(ENDS) - 1), min_size=1), st.floats(0, 200 * DAY))
def test_each_link_has_its_own_variation_whoever_else_is_asked_for(links: list[int], at: float) -> None:
    chosen = np.array(links)
    assert STORM.factor(chosen, at).tolist() == STORM.factor(LINKS, at)[chosen].tolist()
    assert STORM.until(chosen, at).tolist() == STORM.until(LINKS, at)[chosen].tolist()


@given(st.lists(st.floats(0, 60 * DAY), min_size=2, max_size=6))
def test_it_does_not_matter_what_was_asked_before(moments: list[float]) -> None:
    asked = made(link_faults=(CUT,))
    for at in moments:
        fresh = made(link_faults=(CUT,))
        assert asked.until(LINKS[::7], at).tolist() == fresh.until(LINKS[::7], at).tolist()
        assert asked.factor(LINKS, at).tolist() == fresh.factor(LINKS, at).tolist()


def test_what_is_answered_is_the_askers_own() -> None:
    before = STORM.factor(LINKS, 0.0).tolist()
    STORM.factor(LINKS, 0.0)[:] = 7.0
    assert STORM.factor(LINKS, 0.0).tolist() == before


def test_no_links_have_no_variation() -> None:
    none = np.array([], dtype=np.intp)
    assert STORM.factor(none, 0.0).shape == STORM.until(none, 0.0).shape == (0,)


def test_another_seed_is_another_variation() -> None:
    at = [day * DAY for day in range(30)]
    here, there = ([made(seed).factor(LINKS, when).tolist() for when in at] for seed in ("here", "there"))
    assert here != there


def test_without_depth_nothing_ever_changes() -> None:
    calm = made(rhythm=Rhythm(21_600, 216_000, 0.5, 0.0))
    assert (calm.factor(LINKS, 5 * DAY) == 1).all()
    assert np.isinf(calm.until(LINKS, 5 * DAY)).all()


def test_a_cut_line_is_cut_in_both_directions_for_as_long_as_it_lasts() -> None:
    variation = made(link_faults=(CUT,), rhythm=Rhythm(21_600, 216_000, 0.5, 0.0))
    there, back = np.array([ENDS.index((3, 7))]), np.array([ENDS.index((7, 3))])
    cut, at = [], 0.0
    while at < 400 * DAY:
        assert variation.factor(there, at)[0] == variation.factor(back, at)[0]
        until = float(variation.until(there, at)[0])
        if variation.factor(there, at)[0] == 0:
            cut.append(until - at)
        at = until
    assert set(cut) == {7_200.0}
    assert len(cut) == pytest.approx(200, abs=35)


def test_collapses_and_dips_leave_a_share() -> None:
    variation = build("collapse", 8, "here").variation
    factors = np.concatenate([variation.factor(np.arange(56), hour * 1_800.0) for hour in range(1_000)])
    assert factors.min() < 0.05
    assert np.mean(factors < 0.31) == pytest.approx(1 / 6, abs=0.05)


def test_lines_of_the_faulty_family_are_cut_for_six_hours_in_twenty_days() -> None:
    variation = build("faulty", 8, "here").variation
    cut = [float((variation.factor(np.arange(56), hour * 3_600.0) == 0).mean()) for hour in range(24 * 200)]
    assert np.mean(cut) == pytest.approx(6 / 480, rel=0.25)


def test_before_the_scenario_nothing_varies() -> None:
    with pytest.raises(ValueError, match="begins at second 0"):
        STORM.factor(LINKS, -1.0)


def test_nights_are_half_as_dear() -> None:
    variation = made()
    assert [variation.tariff(hour * 3_600.0) for hour in (0, 7.99, 8, 23.99, 24, 32)] == [0.5, 0.5, 1, 1, 0.5, 1]
    assert variation.tariff_seconds(0.0, DAY) == 8 * 3_600 * 0.5 + 16 * 3_600
    assert variation.tariff_seconds(7 * 3_600.0, 9 * 3_600.0) == 3_600 * 1.5


@given(st.floats(0, 30 * DAY), st.floats(0, 5 * DAY), st.floats(0, 1))
def test_what_is_held_in_two_parts_costs_as_much(since: float, length: float, share: float) -> None:
    variation, between, until = made(), since + length * share, since + length
    parts = variation.tariff_seconds(since, between) + variation.tariff_seconds(between, until)
    assert parts == pytest.approx(variation.tariff_seconds(since, until), abs=1e-6)
    assert length * 0.5 - 1e-6 <= parts <= length + 1e-6


def test_electricity_is_dear_by_day_and_neutral_over_it() -> None:
    daily = Daily(ELECTRICITY)
    assert daily.mean == 1
    assert daily.at(11 * 3_600.0) / daily.at(0.0) == 3
    assert Daily(TARIFF).mean == pytest.approx(20 / 24)


def test_prices_follow_electricity_as_far_as_it_counts() -> None:
    variation = build("reference", 8, "here").variation
    assert variation.price(0.0) == pytest.approx(0.975, abs=0.01)
    assert variation.price(11 * 3_600.0) == pytest.approx(1.025, abs=0.01)
