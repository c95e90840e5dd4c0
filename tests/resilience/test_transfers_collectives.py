"""Choices of a collective on the wire: by the clause's law, with the past for a memory."""

import json
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resilience.transfer_requests import choosing

from kuayu.refusals import Impossible, Refusal, RepeatedName, UnknownName
from kuayu.resilience.collectives import collective
from kuayu_schemas.models import CollectiveChoice, CollectiveRequest

Json = dict[str, Any]
ABC = ["a", "b", "c"]
FAST, SLOW = 20e9, 1e9


def law(asked: Json, kind: str, period: int, order: Sequence[str]) -> float:
    """Steps a second by the clause, from what links carried last."""
    carried = {(each["source"], each["target"]): each for each in asked["links"]}
    domains, nodes, bits = len(asked["domains"]), asked["nodes"], 8 * asked["exchange"]

    def message(one: str, other: str, size: float) -> float:
        link = carried[one, other]
        rate = link["bandwidths"][-1] if link.get("up", True) else 0.0
        return float(link["latency"] + size / rate) if rate else math.inf

    ring = list(zip(order, [*order[1:], order[0]], strict=True)) if domains > 1 else []
    within = {
        size: asked["node_latency"] + size / asked["node_bandwidth"] for size in (bits / nodes / domains, bits / nodes)
    }
    step, hidden = asked["step_time"], 2 / 3 * asked["step_time"]
    if kind == "ring":
        together = domains * nodes
        slowest = [message(one, other, bits / together) for one, other in ring]
        slowest += [within[bits / nodes / domains]] if nodes > 1 else []
        return 1 / (step + max(0.0, 2 * (together - 1) * max(slowest, default=0.0) - hidden))
    inside = 2 * (nodes - 1) * within[bits / nodes]
    over = 2 * (domains - 1) * max((message(one, other, bits / domains) for one, other in ring), default=0.0)
    if kind == "hierarchical":
        return 1 / (step + max(0.0, inside + over - hidden))
    lasts = period * (step + max(0.0, inside - hidden)) + max(0.0, over - max(0.0, hidden - inside))
    charge = (1 + 0.0240 * (domains - 1) ** 0.818 * math.log(1 + period / 18.4)) ** (1 / 0.3658) if domains > 1 else 1.0
    return period / lasts / charge


def test_with_nothing_in_use_the_quickest_is_chosen_and_nothing_is_switched() -> None:
    thick, thin = collective(choosing([FAST] * 5)), collective(choosing([SLOW] * 5))
    assert (thick["collective"], thick["period"], thick["switched"]) == ("hierarchical", 1, False)
    assert (thin["collective"], thin["switched"]) == ("low_communication", False)
    for made in (thick, thin):
        best = max(made["candidates"], key=lambda each: float(each["rate"]))
        assert (made["collective"], made["period"]) == (best["collective"], best["period"])


def test_a_collapse_that_has_cost_less_than_a_switch_is_borne() -> None:
    asked = choosing([FAST] * 20 + [SLOW], order=ABC, switch_time=40.0)
    made = collective(asked)
    assert (made["collective"], made["order"], made["switched"]) == ("hierarchical", ABC, False)
    assert "a switch takes 40 s" in made["reasons"][0]


def test_a_collapse_that_has_cost_more_than_a_switch_is_left() -> None:
    made = collective(choosing([FAST] * 20 + [SLOW] * 2, order=ABC, switch_time=40.0))
    assert (made["collective"], made["switched"]) == ("low_communication", True)


def test_what_was_before_the_one_in_use_came_into_use_counts_for_nothing() -> None:
    asked = choosing([SLOW] * 20, order=ABC, switch_time=40.0)
    asked["in_use"]["since"] = 30.0
    assert not collective(asked)["switched"]
    asked["in_use"]["since"] = 90.0
    assert collective(asked)["switched"]


def test_of_an_interval_only_the_part_counts_in_which_it_was_in_use() -> None:
    asked = choosing([SLOW] * 20, order=ABC, switch_time=9.0)
    asked["in_use"]["since"] = 9.0
    assert not collective(asked)["switched"]  # not all of the time would have been saved
    asked["in_use"]["since"] = 15.0
    assert collective(asked)["switched"]


def test_gains_that_were_lost_again_count_for_nothing() -> None:
    before = choosing([SLOW] * 4 + [FAST] * 20 + [SLOW], order=ABC, switch_time=60.0)
    assert not collective(before)["switched"]


def test_one_that_cannot_go_on_is_left_at_once() -> None:
    asked = choosing([FAST] * 5, order=ABC, domains=4) | {"domains": [*ABC, "d"]}
    asked["in_use"] |= {"order": [*ABC, "d"], "since": 0.0}
    asked["links"][0]["up"] = False  # from a to b
    made = collective(asked)
    assert made["switched"]
    assert made["order"] != [*ABC, "d"]
    assert "is out" in made["reasons"][0]


def test_one_that_cannot_go_on_is_kept_where_a_switch_takes_longer_than_outages_do() -> None:
    asked = choosing([FAST] * 5, order=ABC, switch_time=3600.0)
    asked["links"][0]["up"] = False
    assert not collective(asked)["switched"]


def test_where_nothing_goes_on_what_is_in_use_stays() -> None:
    asked = choosing([FAST] * 5, order=ABC)
    for link in asked["links"]:
        link["up"] = False
    made = collective(asked)
    assert not made["switched"]
    assert {each["rate"] for each in made["candidates"]} == {0.0}


def test_a_ring_around_a_slow_link_is_another_one_and_worth_a_switch() -> None:
    asked = choosing([FAST] * 20, order=ABC)
    asked["links"][0]["bandwidths"] = [0.3 * FAST] * 20  # from a to b
    made = collective(asked)
    assert made["switched"]
    assert (made["collective"], made["order"]) == ("hierarchical", ["a", "c", "b"])
    assert "in another order" in made["reasons"][0]


def test_where_a_ring_begins_is_no_switch_and_stays_as_it_is() -> None:
    made = collective(choosing([FAST] * 20, order=["b", "c", "a"]))
    assert (made["order"], made["switched"]) == (["b", "c", "a"], False)


def test_a_period_of_ones_own_is_a_candidate() -> None:
    asked = choosing([SLOW] * 3)
    asked["in_use"] = {"collective": "low_communication", "period": 12, "order": ABC, "since": 0.0}
    made = collective(asked)
    assert (made["collective"], made["period"], made["switched"]) == ("low_communication", 12, False)
    assert made["candidates"][0]["rate"] == pytest.approx(law(asked, "low_communication", 12, ABC))


def test_one_of_which_nothing_is_known_is_left() -> None:
    asked = choosing([FAST] * 3)
    asked["in_use"] = {"collective": "unknown", "period": 7, "order": ABC, "since": 0.0}
    made = collective(asked)
    assert (made["collective"], made["switched"]) == ("hierarchical", True)


def test_a_domain_alone_exchanges_nothing_over_domains() -> None:
    made = collective(choosing([], domains=1))
    assert made["order"] == ["a"]
    assert {round(each["rate"], 6) for each in made["candidates"]} <= {round(1 / 4.0, 6)}


@st.composite
def requests(draw: st.DrawFn) -> Json:
    domains = draw(st.integers(1, 6))
    asked = choosing(
        [], domains, nodes=draw(st.sampled_from([1, 2, 8])), exchange=draw(st.sampled_from([1e6, 4e9, 3e11]))
    )
    asked |= {"step_time": draw(st.sampled_from([0.1, 4.0])), "switch_time": draw(st.sampled_from([0.0, 10.0, 1e4]))}
    asked["node_bandwidth"] = draw(st.sampled_from([1e8, 2e11]))
    many = draw(st.integers(0, 8))
    for link in asked["links"]:
        link["latency"] = draw(st.floats(0.0, 0.1))
        link["bandwidths"] = draw(st.lists(st.sampled_from([0.0, 1e8, 1e9, 5e9, 1e11]), min_size=many, max_size=many))
        link.update(draw(st.sampled_from([{}, {}, {"up": True}, {"up": False}])))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["ring", "hierarchical", "low_communication", "unknown"]))
        period = draw(st.integers(1, 1000)) if kind == "low_communication" else 1
        order = draw(st.permutations(asked["domains"]))
        asked["in_use"] = {"collective": kind, "period": period, "order": order, "since": draw(st.floats(0.0, 300.0))}
    return asked


@settings(max_examples=200, deadline=None)
@given(requests())
def test_whatever_is_asked_a_choice_is_whole_lawful_and_given_again(asked: Json) -> None:
    CollectiveRequest.model_validate_json(json.dumps(asked))
    made = collective(asked)
    CollectiveChoice.model_validate_json(json.dumps(made, allow_nan=False))
    assert made == collective(json.loads(json.dumps(asked)))
    assert made["revision"] == asked["revision"]
    assert sorted(made["order"]) == asked["domains"]
    rates = {(each["collective"], each["period"]): each["rate"] for each in made["candidates"]}
    assert len(rates) == len(made["candidates"])
    chosen = made["collective"], made["period"]
    if all(link["bandwidths"] for link in asked["links"]):
        assert rates[chosen] == pytest.approx(law(asked, *chosen, made["order"]), rel=1e-9)
    assert chosen in rates
    used = asked.get("in_use")
    if used is None:
        assert not made["switched"]
        assert rates[chosen] == max(rates.values())
        return
    turned = used["order"].index(made["order"][0])
    same_order = [*used["order"][turned:], *used["order"][:turned]] == made["order"]
    assert made["switched"] == (not same_order or chosen != (used["collective"], used["period"]))


@pytest.mark.parametrize(
    ("change", "refusal", "pointer"),
    [
        (lambda asked: asked["domains"].append("a"), RepeatedName, "/domains/3"),
        (lambda asked: asked["links"].append(asked["links"][0]), RepeatedName, "/links/6/target"),
        (lambda asked: asked["links"][1].update(source="z"), UnknownName, "/links/1/source"),
        (lambda asked: asked["links"][1].update(target="z"), UnknownName, "/links/1/target"),
        (lambda asked: asked["in_use"].update(order=["a", "z", "c"]), UnknownName, "/in_use/order/1"),
        (lambda asked: asked["in_use"].update(order=["a", "b"]), Impossible, "/in_use/order"),
        (lambda asked: asked["in_use"].update(order=["a", "b", "b"]), Impossible, "/in_use/order"),
        (lambda asked: asked["in_use"].update(period=5), Impossible, "/in_use/period"),
        (lambda asked: asked["in_use"].update(collective="ring", period=5), Impossible, "/in_use/period"),
        (lambda asked: asked["in_use"].update(since=1e300), Impossible, "/in_use/since"),
        (lambda asked: asked["links"].pop(), Impossible, "/links"),
        (lambda asked: asked["links"].append(asked["links"][0] | {"target": "a"}), Impossible, "/links/6/target"),
        (lambda asked: asked.update(step_time=1e-9), Impossible, "/step_time"),
        (lambda asked: asked.update(exchange=1e30), Impossible, "/exchange"),
        (lambda asked: asked.update(switch_time=1e30), Impossible, "/switch_time"),
        (lambda asked: asked.update(node_bandwidth=1e30), Impossible, "/node_bandwidth"),
        (lambda asked: asked.update(node_bandwidth=1e-9), Impossible, "/node_bandwidth"),
        (lambda asked: asked["links"][2].update(bandwidths=[1e30]), Impossible, "/links/2/bandwidths/0"),
    ],
)
def test_what_contradicts_itself_is_refused_where_it_stands(change: Any, refusal: type[Refusal], pointer: str) -> None:
    asked = choosing([FAST] * 3, order=ABC)
    change(asked)
    with pytest.raises(refusal) as raised:
        collective(asked)
    assert [each[0] for each in raised.value.pointers] == [pointer]


WIDE = st.sampled_from([0.0, 5e-324, 1e-9, 1.0, 1e9, 1e18, 1e30])
WIDER = WIDE.filter(lambda each: each > 0.0)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_the_numbers_a_choice_is_finite_or_refused(data: st.DataObject) -> None:
    draw = data.draw
    asked = choosing([], order=ABC, nodes=draw(st.sampled_from([1, 10**6])))
    for name in ("interval", "node_bandwidth", "exchange", "step_time"):
        asked[name] = draw(WIDER)
    for name in ("node_latency", "switch_time"):
        asked[name] = draw(WIDE)
    for link in asked["links"]:
        link |= {"latency": draw(WIDE), "bandwidths": draw(st.lists(WIDE, max_size=3))}
    asked["in_use"]["since"] = draw(WIDE)
    with suppress(Impossible):
        CollectiveChoice.model_validate_json(json.dumps(collective(asked), allow_nan=False))


def test_sixty_four_domains_with_a_long_past_are_answered_soon() -> None:
    names = [f"d{number}" for number in range(64)]
    pairs = [(one, other) for one in names for other in names if one != other]
    links = [{"source": one, "target": other, "latency": 0.02, "bandwidths": [FAST] * 1000} for one, other in pairs]
    asked = choosing([]) | {"domains": names, "links": links}
    began = time.process_time()
    assert sorted(collective(asked)["order"]) == sorted(names)
    assert time.process_time() - began < 2.0
