"""The suite's own account of a state, worked out by hand; its paths, fronts and distances; its streams of states."""

import json
import random
from itertools import islice, pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuayu_conformance.checks.kit.decisions import Json
from kuayu_conformance.checks.scheduling.account import Account
from kuayu_conformance.checks.scheduling.cluster import ClusterState
from kuayu_conformance.checks.scheduling.explanations import crossroads, open_field, run_alone
from kuayu_conformance.checks.scheduling.pareto import coverage, distance, hypervolume, small
from kuayu_conformance.checks.scheduling.placement_requests import (
    TRAPS,
    Roads,
    Scale,
    StateBuilder,
    Stream,
    alone,
    congested,
    crowd,
)
from kuayu_conformance.checks.scheduling.shares import spread
from kuayu_schemas import schema

AT = "2026-11-21T08:00:00Z"


def pool(free: int = 8, **members: object) -> Json:
    return {"accelerator": "x", "devices": 8, "free": free, "devices_per_node": 8, **members}


def job(name: str = "j", devices: tuple[int, int] = (2, 8), **members: object) -> Json:
    least, most = devices
    spec = {"id": name, "submitted_at": AT, "devices": {"minimum": least, "maximum": most}, "task_profile": "any",
            "split_modes": ["none"], "duration": {"expected": 600.0, "low": 1.0, "high": 1e4, "coverage": 0.8},
            **members}  # fmt: skip
    return {"spec": spec}


def link(source: str, target: str, **members: float) -> Json:
    figures = {"bandwidth": 8e9, "available": 8e9, "round_trip_time": 0.02, "tariff": 1e-10, **members}
    return {"source": source, "target": target, **figures}


def world(*waiting: Json, pools: tuple[Json, ...] = (), **members: object) -> Json:
    """Domains a and b of eight devices each, joined by a link each way."""
    one, other = pools or (pool(), pool())
    return {
        "revision": {"epoch": "e", "number": 1},
        "now": AT,
        "accelerators": [{"id": "x", "kind": "gpu", "memory": 80e9, "indices": [{"profile": "any", "value": 2.0}]}],
        "domains": [{"id": "a", "pools": [one]}, {"id": "b", "pools": [other]}],
        "links": [link("a", "b"), link("b", "a")],
        "waiting": list(waiting),
        "running": [],
        **members,
    }


def start(devices: int, where: str = "a", name: str = "j", **members: object) -> Json:
    share = {"domain": where, "accelerator": "x", "devices": devices, **members}
    return {"job": name, "verb": "start", "placement": {"shares": [share], "split_mode": "none"}}


def over_both(devices: int, split: str, **members: object) -> Json:
    shares = [{"domain": where, "accelerator": "x", "devices": devices} for where in ("a", "b")]
    return {"job": "j", "verb": "start", "placement": {"shares": shares, "split_mode": split, **members}}


TALK = {"step_time": 1.0, "exchange": 1e9, "boundary": 1e9, "checkpoint_size": 1e9}


@pytest.mark.parametrize(
    ("waiting", "decision", "fault"),
    [
        (job(), start(8), ""),
        (job(), start(9), "9 devices, where 2 to 8"),
        (job(), start(1), "1 devices, where 2 to 8"),
        (job(devices=(2, 20)), start(9), "9 devices of x in a, of which 8 are free"),
        (job(), start(4, "c"), "no pool of x in c"),
        (job(), start(4, name="k"), "does not say that it waits"),
        (job(), {"job": "j", "verb": "stop"}, "does not say that it runs"),
        (job(), {"job": "j", "verb": "start"}, "without a placement"),
        (job(), {"job": "j", "verb": "wait"}, ""),
        (job(memory_per_device=81e9), start(4), "too little memory"),
        (job(task_profile="other"), start(4), "no index"),
        (job(device_kinds=["npu"]), start(4), "another kind"),
        (job(devices=(2, 16)), over_both(4, "periodic", sync_period=9), "may not be spread by periodic"),
        (job(devices=(2, 16), split_modes=["none", "periodic"]), over_both(4, "periodic", sync_period=9), "may not be"),
        (
            job(devices=(2, 16), split_modes=["none", "periodic"], communication=TALK, sync_period=8),
            over_both(4, "periodic", sync_period=9),
            "every 8 steps, not every 9",
        ),
        (
            job(devices=(2, 16), split_modes=["none", "periodic"], communication=TALK, sync_period=9),
            over_both(4, "periodic", sync_period=9),
            "",
        ),
        (
            job(devices=(2, 16), split_modes=["synchronous"], communication=TALK, links={"round_trip_time": 0.01}),
            over_both(4, "synchronous"),
            "0.02 s apart",
        ),
        (
            job(devices=(2, 16), split_modes=["synchronous"], communication=TALK, links={"bandwidth": 9e9}),
            over_both(4, "synchronous"),
            "only 8e+09 bit/s",
        ),
        (job(), over_both(4, "none"), "split none over 2 domains"),
        (job(data=[{"id": "d", "size": 1.0, "domains": ["b"], "pinned": True}]), start(4), "may not leave b"),
        (job(data=[{"id": "d", "size": 1.0, "domains": ["b"]}]), start(4), ""),
    ],
)
def test_what_cannot_be_carried_out_is_said(waiting: Json, decision: Json, fault: str) -> None:
    found = Account(world(waiting)).faults([decision])
    assert (fault in "; ".join(found)) if fault else not found


def test_what_is_given_out_is_gone() -> None:
    account = Account(world(job("j"), job("k"), job("l")))
    decisions = [start(6, name="j"), start(3, name="k"), start(2, name="l"), start(2, name="l")]
    assert account.alone(decisions[1:2]) == []
    assert account.faults(decisions) == [
        "start of k: 3 devices of x in a, of which 2 are free",
        "l is decided on twice",
    ]


def test_nodes_make_up_a_share_and_give_no_more_than_they_have() -> None:
    nodes = [{"id": "m", "devices": 4, "free": 1, "switch": "s"}, {"id": "n", "devices": 4, "free": 4, "switch": "s"}]
    state = world(job("j"), job("k"), pools=(pool(5, nodes=nodes), pool()))

    def on(**devices: int) -> list[Json]:
        return [{"node": node, "devices": count} for node, count in devices.items()]

    assert "do not make up" in Account(state).faults([start(4)])[0]
    assert "has no node o" in Account(state).faults([start(4, nodes=on(o=4))])[0]
    assert Account(state).faults([start(2, nodes=on(m=2))]) == ["start of j: 2 devices of node m, of which 1 are free"]
    both = [start(2, nodes=on(n=2)), start(3, name="k", nodes=on(n=2, m=1))]
    assert Account(state).faults(both) == []


def test_offers_bound_what_is_bought_in_each_way() -> None:
    offers = [{"purchase": "spot", "devices": 3, "price": 1.0}, {"purchase": "reserved", "devices": 5, "price": 0.0}]
    state = world(job("j"), job("k"), pools=(pool(offers=offers), pool()))
    assert "is not offered" in Account(state).faults([start(2)])[0]
    assert "is not offered on_demand" in Account(state).faults([start(2, purchase="on_demand")])[0]
    assert Account(state).faults([start(4, purchase="spot")]) == [
        "start of j: 4 devices of x in a spot, more than the offer"
    ]
    assert Account(state).faults([start(3, purchase="spot"), start(5, name="k", purchase="reserved")]) == []


@pytest.mark.parametrize(
    ("verb", "devices", "where", "phase", "fault"),
    [
        ("stop", 0, "", "running", ""),
        ("stop", 0, "", "staging", "which is staging"),
        ("resize", 8, "a", "running", ""),
        ("resize", 4, "b", "running", "to other pools"),
        ("migrate", 8, "b", "running", ""),
        ("migrate", 9, "b", "running", "9 devices, where"),
    ],
)
def test_a_job_that_runs_keeps_what_it_has(verb: str, devices: int, where: str, phase: str, fault: str) -> None:
    """It holds four of eight, the other four are free; resized to eight it takes those."""
    held = start(4)["placement"]
    running = {**job(), "placement": held, "phase": phase, "done": 1.0}
    state = world(pools=(pool(4), pool()), running=[running])
    placement = {"placement": start(devices, where)["placement"]} if devices else {}
    found = Account(state).faults([{"job": "j", "verb": verb, **placement}])
    assert (fault in "; ".join(found)) if fault else not found


def test_a_domain_that_cannot_be_reached_takes_and_gives_nothing() -> None:
    state = world(job(), running=[{**job("k"), "placement": start(4)["placement"], "phase": "running", "done": 1.0}])
    state["domains"][0]["reachable"] = False
    assert "cannot be reached" in Account(state).faults([start(2)])[0]
    assert "cannot be reached" in Account(state).faults([{"job": "k", "verb": "stop"}])[0]
    state["links"] = []
    reads = job(data=[{"id": "d", "size": 1.0, "domains": ["a"]}])
    assert "no links lead from a to b" in Account({**state, "waiting": [reads]}).faults([start(2, "b")])[0]
    copied = {**state, "waiting": [reads], "copies": [{"artefact": "d", "domains": ["b"]}]}
    assert Account(copied).faults([start(2, "b")]) == []


def test_a_job_alone_takes_what_the_text_says() -> None:
    """10 GB over 8 Gbit/s are 10 s and 8 yuan; 600 s on 8 of index 2 are 300 s at 3 yuan an hour each."""
    reads = job(data=[{"id": "d", "size": 1e10, "domains": ["a"]}])
    offers = [{"purchase": "on_demand", "devices": 8, "price": 3.0}]
    scene = ClusterState(world(reads, pools=(pool(), pool(offers=offers))))
    placement = start(8, "b", purchase="on_demand")["placement"]
    course = scene.course(reads, placement)
    assert [course.staging, course.seconds] == pytest.approx([10.0, 310.0])
    assert course.communication == pytest.approx(8.0)
    assert course.price == pytest.approx(8 * 3.0 * 310.0 / 3600.0)
    assert course.efficiency == pytest.approx(2.0)
    assert list(run_alone(scene, reads, placement)) == pytest.approx([10.0, 310.0, 8.0])


def test_paths_are_found_by_what_counts() -> None:
    """From a to c directly it is near, over b wide, over d cheap."""
    links = [
        link("a", "c", available=1e9),
        link("a", "b", available=5e9), link("b", "c", available=4e9),
        link("a", "d", tariff=1e-12), link("d", "c", tariff=1e-12, available=2e9),
    ]  # fmt: skip
    demand = {"sources": ["a"], "targets": ["c"]}
    roads = Roads(links)
    assert roads.nearest(demand) == ["a", "c"]
    assert roads.widest(demand) == ["a", "b", "c"]
    assert roads.cheapest(demand) == ["a", "d", "c"]
    assert roads.bandwidth_left(["a", "b", "c"]) == 4e9
    assert roads.widest({"sources": ["c"], "targets": ["a"]}) == []
    assert roads.widest({"sources": ["c"], "targets": ["a", "c"]}) == ["c"]
    routes = [{"path": ["a", "b", "c"], "bandwidth": 3e9}, {"path": ["a", "b"], "bandwidth": 2e9}]
    assert list(congested(links, routes)) == []
    assert list(congested(links, [*routes, {"path": ["a", "b"], "bandwidth": 1e6}])) == [
        "5.001e+09 of 5e+09 bit/s from a to b"
    ]
    assert Roads(links, routes).widest(demand) == ["a", "d", "c"]


def test_fronts_are_measured_by_hand() -> None:
    points = [(10.0, 4.0), (20.0, 1.0), (30.0, 0.0)]
    assert coverage(points, points) == 1.0
    assert coverage(points, [(10.1, 4.04), (20.3, 1.0), (30.0, 0.0)]) == pytest.approx(2 / 3)
    assert coverage(points, [(9.0, 0.0)]) == 1.0
    assert coverage(points, []) == 0.0
    # corner at (32, 4.4): 22·0.4 + 12·3 + 2·1
    assert hypervolume(points, [(10.0, 4.0)]) == pytest.approx(22 * 0.4 / (22 * 0.4 + 12 * 3 + 2 * 1), rel=1e-4)
    assert hypervolume(points, points) == 1.0
    assert distance(points, points) == 0.0
    assert distance(points, [(10.0, 4.0)]) == pytest.approx((0.0 + 0.75 + 1.0) / 3)
    assert distance(points, []) == inf


def test_a_front_on_which_nothing_costs_money_can_be_measured() -> None:
    free = [(10.0, 0.0)]
    assert coverage(free, free) == hypervolume(free, free) == 1.0
    assert distance(free, free) == 0.0
    assert hypervolume(free, [(10.0, 3.0)]) == 0.0
    assert distance(free, [(10.0, 3.0)]) == pytest.approx(3.0)


@given(st.lists(st.tuples(st.floats(1.0, 9.0), st.floats(0.0, 9.0)), min_size=1, max_size=8))
def test_more_schedules_never_make_a_front_worse(found: list[tuple[float, float]]) -> None:
    points = [(1.0, 9.0), (3.0, 3.0), (9.0, 0.0)]
    for one, other in pairwise([found[:number] for number in range(1, len(found) + 1)]):
        assert coverage(points, other) >= coverage(points, one)
        assert hypervolume(points, other) >= hypervolume(points, one) - 1e-12
        assert distance(points, other) <= distance(points, one) + 1e-12


def test_devices_are_as_far_apart_as_their_nodes() -> None:
    """Two on a node and two beside it: four of six pairs are a switch apart."""
    switches = {"m": "s", "n": "s", "o": "t"}

    def over(**devices: int) -> list[Json]:
        return [{"domain": "a", "nodes": [{"node": node, "devices": count} for node, count in devices.items()]}]

    assert spread(over(m=4), switches) == 0.0
    assert spread(over(m=2, n=2), switches) == pytest.approx(4 / 6)
    assert spread(over(m=2, o=2), switches) == pytest.approx(8 / 6)
    assert spread([*over(m=2), {"domain": "b", "nodes": [{"node": "o", "devices": 2}]}], switches) == pytest.approx(2.0)


@pytest.mark.parametrize("name", [*TRAPS, "crowd", "open field", "crossroads", "small"])
def test_states_are_valid_and_hold_together(name: str) -> None:
    made = {"crowd": lambda d: crowd(d, 20), "open field": open_field, "crossroads": crossroads,
            "small": lambda d: small(d, 4), **TRAPS}[name]  # fmt: skip
    for seed in range(3):
        state = made(StateBuilder(random.Random(seed)))
        assert not schema.errors("PlacementRequest", {"state": state})
        _hangs_together(state)


def _hangs_together(state: Json) -> None:
    names = {each["id"] for each in state["domains"]}
    for domain in state["domains"]:
        for each in domain["pools"]:
            assert 0 <= each["free"] <= each["devices"]
            assert sum(node["free"] for node in each.get("nodes", [])) in {0, each["free"]}
            assert all(0 <= offer["devices"] <= each["free"] for offer in each.get("offers", []))
            held = sum(
                share["devices"] for entry in state["running"] for share in entry["placement"]["shares"]
                if (share["domain"], share["accelerator"]) == (domain["id"], each["accelerator"])
            )  # fmt: skip
            assert held + each["free"] <= each["devices"]
    for entry in [*state["waiting"], *state["running"]]:
        assert entry["spec"]["home_domain"] in names
        assert all(names.issuperset(data["domains"]) for data in entry["spec"]["data"])


def test_a_stream_shows_a_new_state_each_minute_in_which_nothing_is_held_twice() -> None:
    scale = Scale(domains=5, nodes=10, running=100, waiting=40)
    states = [json.loads(text)["state"] for text in islice(Stream(StateBuilder(random.Random(1)), scale), 12)]
    for state in states:
        assert not schema.errors("PlacementRequest", {"state": state})
        _hangs_together(state)
        assert len(state["waiting"]) == scale.waiting
        assert scale.running * 0.6 < len(state["running"]) <= scale.running
        assert any(each["free"] for domain in state["domains"] for each in domain["pools"])
    for before, after in pairwise(states):
        assert after["now"] > before["now"]
        assert after["revision"]["number"] > before["revision"]["number"]
        kept = {entry["spec"]["id"] for entry in before["waiting"]} & {e["spec"]["id"] for e in after["waiting"]}
        assert 0 < len(kept) < scale.waiting


def test_a_placement_in_one_pool_takes_its_first_free_nodes() -> None:
    nodes = [{"id": "m", "devices": 4, "free": 1, "switch": "s"}, {"id": "n", "devices": 4, "free": 4, "switch": "s"}]
    share = alone("a", pool(5, nodes=nodes), 3)["shares"][0]
    assert share["nodes"] == [{"node": "m", "devices": 1}, {"node": "n", "devices": 2}]
