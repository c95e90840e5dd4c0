"""From what is known of a federation to the scheduling state."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.federations import (
    ASCEND,
    DOUBLE,
    H100,
    NOW,
    Json,
    allocation,
    before,
    federation,
    job,
    link,
    node,
    placed,
    running,
)

from kuayu.jobs.federation import FederationSnapshot, FederationState, scheduling_state
from kuayu.jobs.progress import INTERRUPTED
from kuayu.scheduling.validation import check_state
from kuayu_schemas import schema

A = "nvidia-a100-sxm4-80gb"
H = "nvidia-h100-80gb-hbm3"


def dead(name: str, domain: str, kind: str = "node_dead") -> Json:
    return {"id": f"fault-{name}", "kind": kind, "domain": domain, "node": name}


def state_of(snapshot: FederationSnapshot) -> FederationState:
    """The state of a snapshot, which must be valid and sound."""
    state = scheduling_state(snapshot)
    assert schema.errors("SchedulingState", state.document) == []
    check_state(state.document)
    return state


def pool(state: FederationState, domain: str, accelerator: str | None = None) -> Json:
    [found] = [each for each in state.document["domains"] if each["id"] == domain]
    [told] = [each for each in found["pools"] if accelerator in {None, each["accelerator"]}]
    result: Json = told
    return result


def free(state: FederationState, domain: str) -> dict[str, int]:
    return {each["id"]: each["free"] for each in pool(state, domain)["nodes"]}


def three() -> tuple[Json, ...]:
    """Three domains with unlike devices."""
    return (
        *(node("a1", "a"), node("a2", "a")),
        *(node("b1", "b", 4, H100 | DOUBLE), node("b2", "b")),
        node("c1", "c", 8, ASCEND),
    )


def test_three_domains_with_unlike_devices_become_pools_with_indices() -> None:
    state = state_of(federation(*three(), links=[link("a", "b"), link("b", "a")], waiting=[job("j")]))
    document = state.document
    assert [each["id"] for each in document["domains"]] == ["a", "b", "c"]
    assert [(each["accelerator"], each["devices"]) for each in document["domains"][1]["pools"]] == [(A, 8), (H, 4)]
    assert pool(state, "a")["free"] == 16
    assert pool(state, "a")["devices_per_node"] == 8
    values = {each["id"]: each["indices"][0]["value"] for each in document["accelerators"]}
    assert values[H] == 2 * values[A]
    assert document["accelerators"][0]["kind"] == "npu"
    assert "offers" not in pool(state, "a")


def test_a_node_with_a_fault_and_one_that_is_fenced_or_offline_give_out_nothing() -> None:
    nodes = [node(f"n{number}", "a") for number in range(6)]
    state = state_of(
        federation(
            *nodes,
            faults=[dead("n0", "a"), dead("n1", "a", "node_failing"), dead("n2", "a", "rank_straggling")],
            fenced=["n3"],
            states={"n4": "offline", "n5": "straggling"},
        )
    )
    assert free(state, "a") == {"n0": 0, "n1": 0, "n2": 8, "n3": 0, "n4": 0, "n5": 8}
    assert (pool(state, "a")["devices"], pool(state, "a")["free"]) == (16, 16)


def test_devices_that_are_reported_broken_do_not_count() -> None:
    state = state_of(federation(node("n", "a"), broken={"n": ["0", "3"]}))
    assert pool(state, "a")["nodes"] == [{"id": "n", "devices": 6, "free": 6}]


def test_a_domain_whose_controller_or_whose_nodes_are_not_heard_cannot_be_reached() -> None:
    unheard = {"id": "f", "kind": "domain_unreachable", "domain": "b"}
    state = state_of(federation(*three(), reachable=["a", "b"], faults=[unheard]))
    assert [each.get("reachable", True) for each in state.document["domains"]] == [True, False, False]


def test_what_is_allocated_is_not_free_whatever_its_phase_and_whoever_it_is_for() -> None:
    held = placed(("a", A, {"n0": 8, "n1": 2}))
    promised = placed(("a", A, {"n1": 3}))
    state = state_of(
        federation(
            *(node(f"n{number}", "a") for number in range(3)),
            allocations=[
                allocation("x", "job-x", held, "releasing"),
                allocation("y", "somebody", promised, "preparing"),
            ],
        )
    )
    assert free(state, "a") == {"n0": 0, "n1": 3, "n2": 8}
    assert state.document["running"] == []


def test_an_allocation_that_names_no_nodes_takes_the_first_that_have_room() -> None:
    unnamed = {"shares": [{"domain": "a", "accelerator": A, "devices": 10}], "split_mode": "none"}
    named = placed(("a", A, {"n0": 4}))
    state = state_of(
        federation(
            *(node(f"n{number}", "a") for number in range(3)),
            allocations=[allocation("x", "j", unnamed), allocation("y", "k", named)],
        )
    )
    assert free(state, "a") == {"n0": 0, "n1": 2, "n2": 8}
    assert any("allocated without nodes" in note for note in state.notes)


def test_an_allocation_that_calls_its_devices_otherwise_is_known_by_its_nodes_or_its_domain() -> None:
    by_node = placed(("b", "h100", {"b1": 3}))
    alone = {"shares": [{"domain": "a", "accelerator": "a800", "devices": 5}], "split_mode": "none"}
    state = state_of(federation(*three(), allocations=[allocation("x", "j", by_node), allocation("y", "k", alone)]))
    assert pool(state, "b", H)["free"] == 1
    assert pool(state, "b", A)["free"] == 8
    assert pool(state, "a")["free"] == 11


def test_jobs_that_wait_stand_by_priority_and_then_by_age() -> None:
    waiting = [
        job("young", age=1),
        job("old", age=9),
        job("late-but-urgent", age=0, priority=5),
        job("low", priority=-1),
    ]
    state = state_of(federation(node("n", "a"), waiting=waiting))
    assert [each["spec"]["id"] for each in state.document["waiting"]] == ["late-but-urgent", "old", "young", "low"]


def test_a_running_job_is_told_with_what_it_holds_how_far_it_is_and_how_fast() -> None:
    held = placed(("a", A, {"a1": 8}))
    told = running(
        "j",
        held,
        step=250,
        checkpoint="file:///ckpt",
        training={"model": {"layers": 2}, "strategy": {"data": 8}, "steps": 1000},
    )
    state = state_of(
        federation(
            *three(),
            active=[told],
            allocations=[allocation("j.1.1", "j", held)],
            steps_per_second={"j": 0.1},
        )
    )
    [entry] = state.document["running"]
    work = 8 * 3600
    assert entry["phase"] == "running"
    assert entry["placement"] == held
    assert entry["done"] == pytest.approx(0.25 * work)
    assert entry["rate"] == pytest.approx(0.1 / 1000 * work)
    assert entry["used"] == 1.0
    assert pool(state, "a")["free"] == 8


def test_a_job_without_a_checkpoint_cannot_be_interrupted_since_it_would_begin_anew() -> None:
    """The state does not tell what it keeps busy, and what is not known to run undisturbed is left alone."""
    held = placed(("a", A, {"a1": 8}))
    state = state_of(federation(*three(), active=[running("j", held)], allocations=[allocation("j.1.1", "j", held)]))
    [entry] = state.document["running"]
    assert entry["rate"] > 0
    assert "used" not in entry


def test_what_starts_is_staging_and_what_is_being_ended_gives_its_devices_back_soon() -> None:
    held = [placed(("a", A, {"a1": 4})), placed(("a", A, {"a1": 4})), placed(("a", A, {"a2": 4}))]
    state = state_of(
        federation(
            *three(),
            active=[
                running("starts", held[0], state="starting"),
                running("ends", held[1], state="restarting", grace=20.0),
                running("off", held[2], cancelling=True),
            ],
            allocations=[
                allocation(f"{name}.1.1", name, each)
                for name, each in zip(("starts", "ends", "off"), held, strict=True)
            ],
        )
    )
    phases = {each["spec"]["id"]: (each["phase"], each["ready_at"]) for each in state.document["running"]}
    assert phases == {
        "ends": ("interrupted", "2026-01-05T00:00:20.000Z"),
        "off": ("interrupted", "2026-01-05T00:00:10.000Z"),
        "starts": ("staging", "2026-01-05T00:00:30.000Z"),
    }


def test_a_job_that_starts_counts_by_what_its_allocation_tries() -> None:
    tried = placed(("b", H, {"b1": 4}))
    told = running("j", tried, state="starting")
    del told["placement"]
    state = state_of(federation(*three(), active=[told], allocations=[allocation("j.1.1", "j", tried, "preparing")]))
    assert state.document["running"][0]["placement"] == tried


def test_a_job_on_a_dead_node_still_holds_what_no_longer_works() -> None:
    held = placed(("a", A, {"a1": 8, "a2": 8}))
    state = state_of(
        federation(
            *three(),
            active=[running("j", held)],
            allocations=[allocation("j.1.1", "j", held)],
            faults=[dead("a1", "a")],
        )
    )
    assert (pool(state, "a")["devices"], pool(state, "a")["free"]) == (16, 0)


def test_a_job_that_holds_what_is_registered_no_more_is_left_out_and_that_is_said() -> None:
    held = placed(("gone", A, {"g1": 8}))
    state = state_of(federation(*three(), active=[running("j", held)], allocations=[allocation("j.1.1", "j", held)]))
    assert state.document["running"] == []
    assert any(note.startswith("j: it holds") for note in state.notes)


def test_when_a_decision_interrupted_a_job_last_is_known_from_its_own_record() -> None:
    held = placed(("a", A, {"a1": 8}))
    told = running("j", held)
    told["transitions"].insert(
        0, {"state": "restarting", "at": before(3000), "attempt": 1, "reason": f"{INTERRUPTED}it makes room"}
    )
    state = state_of(federation(*three(), active=[told], allocations=[allocation("j.1.1", "j", held)]))
    assert state.document["running"][0]["interrupted_at"] == before(3000)


def test_links_are_as_measured_else_as_registered_and_lead_both_ways() -> None:
    measured = {"inter_domain_bandwidth": 4e9, "round_trip_time": 0.012, "state": "up"}
    priced = link("a", "b", extensions={"org.kuayu/tariff": 2e-11})
    bare = {"id": "b-c", "source": "b", "destination": "c"}
    state = state_of(federation(*three(), links=[priced, bare], quality={"a-b": measured}))
    links = {(each["source"], each["target"]): each for each in state.document["links"]}
    assert links["a", "b"] == {
        "source": "a",
        "target": "b",
        "bandwidth": 1e10,
        "available": 4e9,
        "round_trip_time": 0.012,
        "tariff": 2e-11,
    }
    assert links["b", "a"]["available"] == 4e9
    assert links["b", "c"]["bandwidth"] == links["c", "b"]["bandwidth"] == 1e9
    assert sum("no link is registered" in note for note in state.notes) == 2
    assert sum("nobody states" in note for note in state.notes) == 2


def test_a_link_that_is_down_offers_nothing() -> None:
    state = state_of(federation(*three(), links=[link("a", "b"), link("b", "a")], quality={"a-b": {"state": "down"}}))
    offered = {(each["source"], each["target"]): each["available"] for each in state.document["links"]}
    assert offered == {("a", "b"): 0.0, ("b", "a"): 1e10}


def test_prices_of_nodes_and_domains_become_offers_at_the_dearest() -> None:
    nodes = [node("n0", "a", extensions={"org.kuayu/price": 3.0}), node("n1", "a")]
    state = state_of(federation(*nodes, domains=[{"id": "a", "extensions": {"org.kuayu/price": 2.0}}]))
    assert pool(state, "a")["offers"] == [{"purchase": "on_demand", "devices": 16, "price": 3.0}]
    odd = node("n", "a", extensions={"org.kuayu/price": "much"})
    assert "offers" not in pool(state_of(federation(odd)), "a")


def test_a_job_whose_devices_contradict_each_other_or_that_rests_stands_apart() -> None:
    wrong = job("wrong", devices={"minimum": 8, "maximum": 4})
    tired = job("tired")
    tired["transitions"] += [
        {"state": state, "at": before(1), "attempt": 1, "reason": "no room"} for state in ("starting", "queued") * 5
    ]
    state = state_of(federation(node("n", "a"), waiting=[wrong, tired, job("fine")]))
    assert [each["spec"]["id"] for each in state.document["waiting"]] == ["fine"]
    assert "at least 8" in state.apart["wrong"]
    assert "again and again" in state.apart["tired"]


def test_who_was_refused_lately_is_told_as_refused() -> None:
    told = job("j")
    told["transitions"] += [
        {"state": state, "at": before(5), "attempt": 1, "reason": "no room"} for state in ("starting", "queued")
    ]
    state = state_of(federation(node("n", "a"), waiting=[told]))
    assert state.document["refused"] == [{"job": "j", "verb": "start", "reason": "no_room"}]


def test_nodes_without_accelerators_and_domains_without_nodes_offer_nothing() -> None:
    bare = {"id": "head", "domain": "a"}
    state = state_of(federation(bare, domains=[{"id": "a"}, {"id": "b"}]))
    assert [each["pools"] for each in state.document["domains"]] == [[], []]


def test_the_order_in_which_things_are_given_changes_nothing() -> None:
    members: dict[str, Any] = {
        "links": [link("a", "b"), link("b", "c"), link("c", "a")],
        "waiting": [job("j", age=3), job("k", age=2), job("l", age=1)],
        "allocations": [
            allocation("x", "x", placed(("a", A, {"a1": 5}))),
            allocation("y", "y", {"shares": [{"domain": "a", "accelerator": A, "devices": 6}], "split_mode": "none"}),
        ],
    }
    forth = federation(*three(), **members)
    back = federation(*reversed(three()), **{name: list(reversed(each)) for name, each in members.items()})
    assert json.dumps(scheduling_state(forth).document) == json.dumps(scheduling_state(back).document)


def test_a_snapshot_goes_through_json_and_back() -> None:
    snapshot = federation(*three(), waiting=[job("j")], fenced={"a1"}, broken={"a2": {"1", "0"}}, copies={"d": {"a"}})
    again = FederationSnapshot.from_json(json.loads(json.dumps(snapshot.to_json())))
    assert scheduling_state(again) == scheduling_state(snapshot)


SHARES = st.dictionaries(st.sampled_from(["a1", "a2", "b1", "c1", "unknown"]), st.integers(1, 12), max_size=4)


@st.composite
def allocations(draw: st.DrawFn) -> list[Json]:
    """Allocations that overlap as they like, some without nodes, some elsewhere, some under other names."""
    made = []
    for number in range(draw(st.integers(0, 6))):
        domain = draw(st.sampled_from(["a", "b", "c", "gone"]))
        accelerator = draw(st.sampled_from([A, H, "another"]))
        nodes = draw(SHARES)
        share: Json = {"domain": domain, "accelerator": accelerator, "devices": draw(st.integers(1, 40))}
        if nodes:
            share["nodes"] = [{"node": name, "devices": count} for name, count in nodes.items()]
            share["devices"] = sum(nodes.values())
        name = f"job{number}.1.1"
        made.append(allocation(name, f"job{number}", {"shares": [share], "split_mode": "none"}))
    return made


@settings(max_examples=60)
@given(allocations(), st.sets(st.sampled_from(["a1", "a2", "b1", "b2", "c1"])), st.data())
def test_whatever_is_allocated_and_out_of_service_the_state_is_sound_and_nothing_free_below_zero(
    held: list[Json], out: set[str], data: st.DataObject
) -> None:
    names = [each["job"] for each in held]
    runs = data.draw(st.sets(st.sampled_from(names))) if names else set()
    active = [running(each["job"], each["placement"]) for each in held if each["job"] in runs]
    snapshot = federation(*three(), allocations=held, fenced=out, active=active, waiting=[job("w")])
    state = state_of(snapshot)
    for domain in state.document["domains"]:
        for each in domain["pools"]:
            assert 0 <= each["free"] <= each["devices"]
            assert sum(one["free"] for one in each["nodes"]) == each["free"]
            assert all(one["free"] >= 0 for one in each["nodes"])
            assert all(one["free"] == 0 for one in each["nodes"] if one["id"] in out)
    assert state.document["now"] == NOW
