"""Choices of a collective one after the other, over links that change, each told what is in use."""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from resilience.transfer_requests import choosing

from kuayu.resilience.collectives import collective

Json = dict[str, Any]
Way = tuple[str, int]
GIGABIT = 1e9
INTERVAL_S = 30.0


def way(answer: Json) -> Way:
    """Kind and period."""
    return answer["collective"], answer["period"]


def best(gigabits: float, **changed: Any) -> Way:
    """What is chosen where nothing is in use."""
    return way(collective(choosing([gigabits * GIGABIT], **changed)))


def follow(gigabits: list[float], cost_s: float = 10.0) -> tuple[list[Way], int]:
    """Choices over links that carry so many Gbit/s, asked after each measurement; and how many switches."""
    made: list[Way] = []
    switches, used = 0, {}
    for row in range(len(gigabits)):
        past = [each * GIGABIT for each in gigabits[: row + 1]]
        answer = collective(choosing(past, switch_time=cost_s, **({"in_use": used} if used else {})))
        since = used["since"] + INTERVAL_S if used and not answer["switched"] else INTERVAL_S
        used = {name: answer[name] for name in ("collective", "period", "order")} | {"since": since}
        switches += answer["switched"]
        made.append(way(answer))
    return made, switches


def test_near_domains_form_one_ring_far_ones_reduce_inside_first_and_thin_links_are_used_rarely() -> None:
    near = choosing([400.0 * GIGABIT], domains=2, node_bandwidth=25.0 * GIGABIT)
    for link in near["links"]:
        link["latency"] = 1e-4
    assert way(collective(near)) == ("ring", 1)
    assert best(20.0) == ("hierarchical", 1)
    thin, thinner = best(2.0), best(0.1)
    assert thin[0] == thinner[0] == "low_communication"
    assert thinner[1] > thin[1]


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 100.0), st.floats(1.0, 5.0), st.integers(1, 5), st.integers(1, 16))
def test_more_bandwidth_makes_nothing_slower(gigabits: float, times: float, domains: int, nodes: int) -> None:
    before, after = (
        collective(choosing([each * GIGABIT], domains=domains, nodes=nodes))["candidates"]
        for each in (gigabits, gigabits * times)
    )
    for one, other in zip(before, after, strict=True):
        assert way(one) == way(other)
        assert other["rate"] >= one["rate"] * (1 - 1e-12)


def test_noise_around_a_tie_does_not_flap() -> None:
    gigabits = (5.0 * np.exp(0.1 * np.random.default_rng(3).standard_normal(400))).tolist()
    restless = sum(one != other for one, other in pairwise(best(each) for each in gigabits))
    assert restless > 20
    assert follow(gigabits)[1] <= restless / 10


def test_a_lasting_collapse_is_followed_within_minutes_and_back() -> None:
    made, switches = follow([20.0] * 20 + [1.0] * 40 + [20.0] * 60)
    assert made[19][0] == "hierarchical"
    assert made[24][0] == "low_communication"
    assert made[-1][0] == "hierarchical"
    assert switches <= 4


def test_a_cheap_switch_is_made_sooner_than_a_dear_one() -> None:
    course = [100.0] * 5 + [6.0] * 100
    cheap, dear = (
        next(row for row, each in enumerate(follow(course, cost_s)[0]) if each[0] == "low_communication")
        for cost_s in (5.0, 300.0)
    )
    assert cheap < dear
