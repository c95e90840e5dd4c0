"""Paths and their ends over small networks, some of them against all paths that there are."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuayu.refusals import RepeatedName, UnknownName
from kuayu.scheduling.routing import route
from kuayu_schemas import schema

GIGABIT = 1e9
GIGABYTE = 1e9
REVISION = {"epoch": "e", "number": 7}


def link(
    source: str, target: str, available: float = 10.0, tariff: float = 1.0, round_trip: float = 0.01
) -> dict[str, Any]:
    """Gbit/s, and money for a gigabit."""
    return {
        "source": source,
        "target": target,
        "bandwidth": available * GIGABIT,
        "available": available * GIGABIT,
        "round_trip_time": round_trip,
        "tariff": tariff / GIGABIT,
    }


def demand(
    name: str, sources: Sequence[str], targets: Sequence[str], size: float = 10.0, **more: float
) -> dict[str, Any]:
    """Gigabytes."""
    return {"id": name, "sources": list(sources), "targets": list(targets), "size": size * GIGABYTE, **more}


def asked(links: Sequence[dict[str, Any]], *demands: dict[str, Any], **weights: float) -> dict[str, Any]:
    request: dict[str, Any] = {"revision": REVISION, "links": list(links), "demands": list(demands)}
    if weights:
        request["weights"] = weights
    assert schema.is_valid("RouteRequest", request)
    answer = route(request)
    assert schema.errors("RoutePlan", answer) == []
    return answer


def test_a_route_states_what_follows_from_it() -> None:
    """80 Gbit over two links of 10 and 4 Gbit/s take 20 s and cost 1 + 2 for each Gbit."""
    answer = asked([link("a", "b"), link("b", "c", 4.0, 2.0)], demand("d", "a", "c"))
    (found,) = answer["routes"]
    assert found.pop("communication_cost") == pytest.approx(240.0)
    assert found == {"demand": "d", "path": ["a", "b", "c"], "bandwidth": 4e9, "duration": 20.0}
    assert answer["unserved"] == []
    assert answer["revision"] == REVISION


def test_weights_choose_between_a_quick_path_and_a_cheap_one() -> None:
    links = [link("a", "b", 40.0, 9.0), link("a", "x", 8.0, 1.0), link("x", "b", 8.0, 1.0)]
    assert asked(links, demand("d", "a", "b"), period=1.0)["routes"][0]["path"] == ["a", "b"]
    assert asked(links, demand("d", "a", "b"), communication=1.0)["routes"][0]["path"] == ["a", "x", "b"]


def test_only_the_ratio_of_weights_matters_and_weights_of_other_things_do_not() -> None:
    links = [link("a", "b", 40.0, 9.0), link("a", "x", 8.0, 1.0), link("x", "b", 8.0, 1.0)]
    one = asked(links, demand("d", "a", "b"), period=1.0, communication=0.01)["routes"]
    assert one == asked(links, demand("d", "a", "b"), period=200.0, communication=2.0)["routes"]
    assert asked(links, demand("d", "a", "b"), price=1.0)["routes"][0]["path"] == ["a", "b"]


def test_path_and_ends_are_chosen_together() -> None:
    """The nearest copy is behind a slow link; the farther one is quicker and costs the same."""
    links = [link("near", "b", 0.1, round_trip=0.001), link("far", "b", 10.0, round_trip=0.05)]
    assert asked(links, demand("d", ["near", "far"], "b"))["routes"][0]["path"] == ["far", "b"]
    there = [link("s", "t1", 1.0), link("s", "t2", 5.0)]
    assert asked(there, demand("d", "s", ["t1", "t2"]))["routes"][0]["path"] == ["s", "t2"]


def test_what_is_there_already_is_not_moved() -> None:
    answer = asked([link("a", "b")], demand("d", ["a", "b"], ["b"]))
    assert answer["routes"] == [
        {"demand": "d", "path": ["b"], "bandwidth": 0.0, "duration": 0.0, "communication_cost": 0.0}
    ]


def test_the_urgent_is_served_first_and_nothing_is_given_twice() -> None:
    answer = asked([link("a", "b", 10.0)], demand("first", "a", "b", bandwidth=7e9), demand("next", "a", "b"))
    assert [(each["demand"], each["bandwidth"]) for each in answer["routes"]] == [("first", 7e9), ("next", 3e9)]
    full = asked([link("a", "b", 10.0)], demand("first", "a", "b"), demand("next", "a", "b"))
    assert full["unserved"] == ["next"]


def test_later_demands_go_round_what_is_full() -> None:
    links = [link("a", "b"), link("a", "x"), link("x", "b")]
    answer = asked(links, demand("first", "a", "b"), demand("next", "a", "b"), demand("last", "a", "b"))
    assert [each["path"] for each in answer["routes"]] == [["a", "b"], ["a", "x", "b"]]
    assert answer["unserved"] == ["last"]


def test_an_urgent_demand_does_not_cut_off_others_where_a_plain_choice_serves_all() -> None:
    """Through x it is a little quicker for the first, but then nothing is left for the second."""
    links = [link("a", "b", 10.0, 0.0), link("a", "x", 11.0, 0.0, 0.1), link("x", "b", 11.0, 0.0, 0.1)]
    answer = asked(links, demand("first", "a", "b"), demand("second", "x", "b"))
    assert answer["unserved"] == []


def test_a_round_trip_time_may_forbid_the_cheapest_path() -> None:
    links = [link("a", "b", tariff=9.0), link("a", "x", tariff=1.0), link("x", "b", tariff=1.0)]
    assert asked(links, demand("d", "a", "b"), communication=1.0)["routes"][0]["path"] == ["a", "x", "b"]
    near = asked(links, demand("d", "a", "b", round_trip_time=0.015), communication=1.0)
    assert near["routes"][0]["path"] == ["a", "b"]
    assert asked(links, demand("d", "a", "b", round_trip_time=0.005))["unserved"] == ["d"]


def test_a_stream_of_no_size_takes_what_it_can_use() -> None:
    answer = asked([link("a", "b", 4.0), link("a", "c", 6.0)], demand("d", "a", ["b", "c"], 0.0), period=1.0)
    assert answer["routes"][0]["path"] == ["a", "c"]
    assert answer["routes"][0]["bandwidth"] == 6e9
    assert answer["routes"][0]["duration"] == 0.0


def test_of_two_links_between_the_same_places_the_quicker_counts() -> None:
    answer = asked([link("a", "b", 40.0, round_trip=0.5), link("a", "b", 10.0)], demand("d", "a", "b"))
    assert answer["routes"][0]["bandwidth"] == 10e9


def test_cut_links_and_links_to_oneself_lead_nowhere() -> None:
    assert asked([link("a", "b", 0.0), link("a", "a")], demand("d", "a", "b"))["unserved"] == ["d"]


def test_places_that_no_link_knows_are_pointed_at() -> None:
    with pytest.raises(UnknownName) as caught:
        asked([link("a", "b")], demand("d", ["a", "u"], ["v"]))
    assert [pointer for pointer, _ in caught.value.pointers] == ["/demands/0/sources/1", "/demands/0/targets/0"]
    with pytest.raises(RepeatedName) as again:
        asked([link("a", "b")], demand("d", "a", "b"), demand("d", "a", "b"))
    assert [pointer for pointer, _ in again.value.pointers] == ["/demands/1/id"]


PLACES = "abcde"
figures = st.integers(1, 9).map(float)


@st.composite
def networks(draw: st.DrawFn) -> list[dict[str, Any]]:
    pairs = [(one, other) for one in PLACES for other in PLACES if one != other]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=4, max_size=14, unique=True))
    ring = list(pairwise(PLACES + PLACES[0]))
    return [link(*pair, draw(figures), draw(figures), draw(figures) / 100) for pair in dict.fromkeys([*ring, *chosen])]


def simple_paths(links: Sequence[dict[str, Any]], sources: str, targets: str) -> Iterator[list[dict[str, Any]]]:
    """All paths without a loop."""
    for source in sources:
        stack: list[tuple[str, list[dict[str, Any]]]] = [(source, [])]
        while stack:
            place, path = stack.pop()
            if place in targets and path:
                yield path
            seen = {source, *(each["target"] for each in path)}
            stack.extend(
                (each["target"], [*path, each])
                for each in links
                if each["source"] == place and each["target"] not in seen
            )


@given(networks(), figures, figures, st.sampled_from([inf, 3e9]), st.sampled_from([inf, 0.08]))
@settings(max_examples=150, deadline=None)
def test_one_demand_takes_the_best_path_of_all(
    links: list[dict[str, Any]], period: float, communication: float, most: float, longest: float
) -> None:
    limits = {name: value for name, value in (("bandwidth", most), ("round_trip_time", longest)) if value < inf}
    answer = asked(links, demand("d", "ab", "de", **limits), period=period, communication=communication / 100)
    scores = [
        period * 80e9 / min(most, *(each["available"] for each in path))
        + communication / 100 * 80e9 * sum(each["tariff"] for each in path)
        for path in simple_paths(links, "ab", "de")
        if sum(each["round_trip_time"] for each in path) <= longest + 1e-9
    ]
    if not scores:
        assert answer["unserved"] == ["d"]
        return
    (found,) = answer["routes"]
    assert period * found["duration"] + communication / 100 * found["communication_cost"] == pytest.approx(min(scores))


@given(
    networks(), st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(PLACES), figures), min_size=1, max_size=8)
)
@settings(max_examples=100, deadline=None)
def test_links_never_carry_more_than_they_have(
    links: list[dict[str, Any]], pairs: list[tuple[str, str, float]]
) -> None:
    demands = [
        demand(f"d{number}", source, target, size, bandwidth=2e9 * size)
        for number, (source, target, size) in enumerate(pairs)
    ]
    answer = asked(links, *demands)
    left = {(each["source"], each["target"]): each["available"] for each in links}
    for found in answer["routes"]:
        for pair in pairwise(found["path"]):
            left[pair] -= found["bandwidth"]
    assert min(left.values()) >= -1e-3
    assert {each["demand"] for each in answer["routes"]} | set(answer["unserved"]) == {each["id"] for each in demands}


@given(networks(), st.permutations(PLACES))
@settings(max_examples=50, deadline=None)
def test_names_do_not_matter(links: list[dict[str, Any]], order: list[str]) -> None:
    other = dict(zip(PLACES, order, strict=True))
    renamed = [each | {"source": other[each["source"]], "target": other[each["target"]]} for each in links]
    one = asked(links, demand("d", "ab", "de"), demand("e", "c", "a"))
    two = asked(
        renamed, demand("d", [other["a"], other["b"]], [other["d"], other["e"]]), demand("e", other["c"], other["a"])
    )
    assert [[other[place] for place in each["path"]] for each in one["routes"]] == [
        each["path"] for each in two["routes"]
    ]
