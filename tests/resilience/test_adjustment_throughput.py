"""Rates and the best policy by the law of the clause, and divisions of parts that are exact."""

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resilience.adjustment_requests import (
    adjusting,
    adjustments,
    all_linked,
    best_rate,
    in_force,
    job,
    law,
    linked,
    loaded,
    shares,
)

from kuayu.resilience import throughput_model
from kuayu.resilience.adjustment_planner import adjustment

Json = dict[str, Any]

COSTS = st.lists(st.sampled_from([1e-9, 0.5, 1.0, 1.0, 3.7, 1e20, throughput_model.ENDLESS_S]), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(adjustments())
def test_rates_are_those_of_the_law_by_the_policy_in_force_and_by_the_last_change(asked: Json) -> None:
    for told, made in zip(asked["jobs"], adjustment(asked)["jobs"], strict=True):
        assert made["rate"] == pytest.approx(law(asked, told, in_force(told)), rel=1e-9)
        last = [in_force(told), *told.get("planned", []), *made["changes"]][-1]
        assert made["expected_rate"] == pytest.approx(law(asked, told, last), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(adjustments(most_parts=12))
def test_a_job_that_makes_less_than_nine_tenths_of_the_best_is_adjusted(asked: Json) -> None:
    made = adjustment(asked)
    for told, each in zip(asked["jobs"], made["jobs"], strict=True):
        outlook = [in_force(told), *told.get("planned", [])][-1]
        if made["triggers"] and law(asked, told, outlook) < 0.9 * best_rate(asked, told):
            assert each["changes"]


@pytest.mark.parametrize("loads", [(0.2, 0.2, 0.2), (0.1, 0.5, 0.7), (0.0, 0.9, 0.3)])
@pytest.mark.parametrize("exchange", [1e6, 2e8, 5e9])
def test_with_time_enough_a_job_comes_to_the_best_policy(loads: tuple[float, ...], exchange: float) -> None:
    domains = [loaded(name, 0.0, load, level=0.95) for name, load in zip("abc", loads, strict=True)]
    asked = adjusting(*domains, links=all_linked("abc", before=0.001, now=0.05))
    asked["jobs"] = [job(shares=shares(a=9, b=9, c=9), exchange=exchange, move_time=0.0, switch_time=0.0)]
    made = adjustment(asked)["jobs"][0]
    assert made["expected_rate"] >= 0.999 * best_rate(asked, asked["jobs"][0])


def test_a_ring_goes_around_a_link_whose_latency_has_risen() -> None:
    links = [linked(one, other, now=0.5 if one + other == "ab" else None) for one, other in ("ab", "ba", "ac", "ca")]
    links += [linked(one, other) for one, other in ("bc", "cb")]
    asked = adjusting(*(loaded(name) for name in "abc"), links=links)
    asked["jobs"] = [job(shares=shares(a=30, b=30, c=30), order=["a", "b", "c"])]
    made = adjustment(asked)
    assert [(each["kind"], each["domain"], each["target"]) for each in made["triggers"]] == [("latency", "a", "b")]
    order = made["jobs"][0]["changes"][-1]["order"]
    assert ("a", "b") not in list(zip(order, [*order[1:], order[0]], strict=True))


def test_a_job_whose_links_have_become_slow_exchanges_more_rarely_and_by_a_period_that_suits_it() -> None:
    asked = adjusting(links=all_linked("ab", before=0.01, now=0.6, bandwidth=1e9), jobs=[job(exchange=2e9)])
    change = adjustment(asked)["jobs"][0]["changes"][-1]
    assert change["collective"] == "low_communication"
    around = {
        period: law(asked, asked["jobs"][0], change | {"period": period})
        for period in range(max(1, change["period"] - 20), change["period"] + 20)
    }
    assert around[change["period"]] >= 0.999 * max(around.values())


@settings(max_examples=300, deadline=None)
@given(COSTS, st.integers(0, 2**32))
def test_no_division_within_bounds_is_quicker(costs: list[float], seed: int) -> None:
    chance = random.Random(seed)
    least = [chance.randint(0, 4) for _ in costs]
    most = [low + chance.randint(0, 5) for low in least]
    total = chance.randint(sum(least), sum(most))
    parts = throughput_model.divided(total, costs, least, most)
    assert sum(parts) == total
    assert all(low <= number <= high for low, number, high in zip(least, parts, most, strict=True))
    ranges = (range(low, high + 1) for low, high in zip(least, most, strict=True))
    others = (each for each in product(*ranges) if sum(each) == total)
    quickest = min(max(map(float.__mul__, map(float, each), costs)) for each in others)
    assert max(map(float.__mul__, map(float, parts), costs)) <= quickest * (1 + 1e-12)


def test_millions_of_parts_are_divided_as_quickly_as_few() -> None:
    parts = throughput_model.best_division([0.01 * (1 + number % 5) for number in range(64)], 64_000_000)
    assert sum(parts) == 64_000_000
    assert parts[0] == pytest.approx(2 * parts[1], abs=1)


def test_the_nearest_division_moves_no_more_parts_than_it_has_to() -> None:
    costs = [1.0, 1.0, 1.0]
    assert throughput_model.near_division([10, 5, 3], costs, within_s=8.0) in ([8, 5, 5], [8, 6, 4])
    assert throughput_model.near_division([10, 5, 3], costs, within_s=6.0) == [6, 6, 6]
    assert throughput_model.near_division([6, 6, 6], costs, within_s=6.0) == [6, 6, 6]


def test_the_way_to_a_division_relieves_the_slowest_first() -> None:
    assert throughput_model.partial_division([10, 7, 2], [5, 6, 8], [1.0, 1.0, 1.0], moved=3) == [7, 7, 5]
    assert throughput_model.partial_division([10, 7, 2], [5, 6, 8], [1.0, 1.0, 1.0], moved=6) == [5, 6, 8]
