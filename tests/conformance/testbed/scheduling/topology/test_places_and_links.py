"""Domains stand at real places, and light takes its time between them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.testbed.scheduling.topology import (
    EASTERN,
    FAMILIES,
    MAX_DOMAINS,
    PLACES,
    Place,
    build,
    fibre,
    hub_of,
    kilometres,
    round_trip,
    varied,
)
from kuayu_conformance.testbed.scheduling.values import Link

NAMED = {place.name: place for place in PLACES}
GIGABYTE = 8e9


def apart(one: str, other: str) -> float:
    return kilometres(NAMED[one], NAMED[other])


def link(links: tuple[Link, ...], source: str, target: str) -> Link:
    return next(one for one in links if (one.source, one.target) == (source, target))


def test_a_quarter_of_the_equator_is_ten_thousand_kilometres() -> None:
    greenwich, east = Place("", 0, 0.0, 0.0, ""), Place("", 0, 0.0, 90.0, "")
    assert kilometres(greenwich, east) == round(6371 * 3.14159265 / 2) == 10_008
    assert kilometres(greenwich, greenwich) == 0


def test_fibre_is_longer_than_the_way_of_a_bird_and_never_shrinks_with_it() -> None:
    assert [fibre(straight) for straight in (100, 1000, 1100, 1200, 2000)] == [150, 1500, 1500, 1500, 2500]
    lengths = [fibre(float(straight)) for straight in range(0, 3000, 7)]
    assert all(less <= more for less, more in pairwise(lengths))


def test_delays_are_those_that_were_measured() -> None:
    """Zhongwei to Beijing 8 to 10 ms, to Shanghai less than 15 (中国新闻网, 2022-08-29)."""
    assert 8e-3 <= round_trip(apart("zhongwei", "beijing")) / 2 <= 10e-3
    assert round_trip(apart("zhongwei", "shanghai")) / 2 < 15e-3


def test_from_shaoguan_the_greater_bay_is_three_milliseconds_away() -> None:
    """3 ms to the Greater Bay, 5 ms in the province (南方都市报, 2025-06-13)."""
    bay = [apart("shaoguan", name) for name in ("guangzhou", "shenzhen", "dongguan", "foshan", "zhuhai")]
    assert max(round_trip(straight) / 2 for straight in bay) <= 3e-3


@pytest.mark.parametrize(("circle", "reach"), [(1e-3, 100), (5e-3, 500), (20e-3, 2600)])
def test_the_published_circles_hold(circle: float, reach: float) -> None:
    assert round_trip(reach) / 2 <= circle


def test_hubs_are_within_twenty_milliseconds_of_each_other() -> None:
    links = build("reference", 8, "here").links
    assert max(one.round_trip for one in links) / 2 <= 20e-3


def test_the_first_five_hubs_hold_east_and_west() -> None:
    east = [hub_of(site.name) in EASTERN for site in build("reference", 5, "here").sites]
    assert east.count(True) == 3
    assert len({hub_of(place.name) for place in PLACES[:8]}) == 8


def test_places_stand_near_their_hubs_and_are_named_once() -> None:
    hubs = {place.hub: place for place in PLACES[:8]}
    assert len(NAMED) == len({place.number for place in PLACES}) == MAX_DOMAINS == 64
    assert max(kilometres(place, hubs[place.hub]) for place in PLACES) < 650


@given(st.integers(5, 64))
def test_all_domains_are_joined_and_links_grow_with_their_number(sites: int) -> None:
    topology = build("reference", sites, "here")
    hubs = min(sites, 8)
    assert len(topology.links) == hubs * (hubs - 1) + 2 * (sites - hubs)
    reached = {topology.sites[0].name}
    for one in topology.links * 2:
        if one.source in reached:
            reached.add(one.target)
    assert reached == {site.name for site in topology.sites}


def test_both_directions_of_a_line_are_alike() -> None:
    links = build("reference", 20, "here").links
    for one in links:
        back = link(links, one.target, one.source)
        assert (back.capacity, back.round_trip, back.tariff) == (one.capacity, one.round_trip, one.tariff)


def test_a_gigabyte_costs_what_lists_say() -> None:
    """0.01 to 0.0875 US dollars, by distance; replication to another region is 0.50 yuan at a large Chinese cloud."""
    links = build("reference", 8, "here").links
    costs = [one.tariff * GIGABYTE / 7.1 for one in links]
    assert 0.01 < min(costs) < max(costs) <= 0.0875
    assert sum(one.tariff for one in links) / len(links) * GIGABYTE == pytest.approx(0.39, abs=0.01)
    assert link(links, "qingyang", "zhongwei").tariff < link(links, "qingyang", "shaoguan").tariff


def test_the_median_of_leased_lines_is_ten_gigabits() -> None:
    capacities = sorted(one.capacity for seed in range(60) for one in build("reference", 8, str(seed)).links)
    assert capacities[len(capacities) // 2] == 10e9
    assert (capacities[0], capacities[-1]) == (5e9, 100e9)


def test_poor_and_rich_lines_frame_the_usual_ones() -> None:
    poor, usual, rich = (build(name, 8, "here").links for name in ("wan-poor", "reference", "wan-rich"))
    assert all(a.capacity <= b.capacity <= c.capacity for a, b, c in zip(poor, usual, rich, strict=True))


def test_free_traffic_costs_nothing() -> None:
    free, *_ = varied("tariff")
    assert all(one.tariff == 0 for one in build("reference", 5, "here", assumed=free).links)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_can_be_built_with_any_number_of_domains(name: str) -> None:
    for sites in (5, 8, 64):
        assert len(build(name, sites, "here").sites) == sites
