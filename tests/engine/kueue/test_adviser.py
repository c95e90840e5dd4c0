"""What a scheduling state shows of a federation and a manager cluster, and how domains are compared."""

from typing import Any

from kuayu.engine.kueue.adviser import Federation, PredictedOutcome, Situation, rank, state_of
from kuayu.engine.kueue.workloads import RESOURCES, DeviceKind, DeviceNeed, record_of, request_of

HOUR_PRICE = 60.0
NOW = "2026-11-29T12:00:00.000Z"
GPU = RESOURCES["nvidia.com/gpu"]


def outcomes() -> list[PredictedOutcome]:
    """West has the data and a queue of an hour, east would have to fetch them, and north is dear."""
    return [
        PredictedOutcome("west", delay_seconds=3600.0, cost=10.0),
        PredictedOutcome("east", delay_seconds=1200.0, cost=15.0),
        PredictedOutcome("north", delay_seconds=0.0, cost=200.0),
    ]


def ranked(hour_price: float) -> list[str]:
    return [outcome.domain for outcome in rank(outcomes(), hour_price)]


def test_domains_are_ranked_by_all_that_they_cost() -> None:
    """East: 15 and a third of an hour, 35. West: 10 and an hour, 70. Where waiting costs nothing, west is first."""
    assert ranked(HOUR_PRICE) == ["east", "west", "north"]
    assert ranked(0.0) == ["west", "east", "north"]
    assert ranked(1000.0) == ["north", "east", "west"]


def test_where_two_come_to_the_same_the_one_that_begins_earlier_goes_first() -> None:
    same = [PredictedOutcome("a", 3600.0, 0.0), PredictedOutcome("b", 0.0, HOUR_PRICE)]
    assert [outcome.domain for outcome in rank(same, HOUR_PRICE)] == ["b", "a"]


def node(name: str, domain: str, vendor: str = "NVIDIA", model: str = "H100") -> Any:
    devices = [{"id": str(number), "kind": "gpu", "vendor": vendor, "model": model} for number in range(8)]
    return {"id": name, "domain": domain, "devices": devices}


def federation(**more: Any) -> Federation:
    """Two clusters, and a store for data."""
    members: dict[str, Any] = {
        "reading": 1,
        "revision": {"epoch": "e", "number": 1},
        "domains": [{"id": name} for name in ("east", "store", "west")],
        "nodes": [node("e-1", "east"), node("s-1", "store"), node("w-1", "west"), node("w-2", "west")],
        "links": [{"id": "l", "source": "store", "destination": "east", "capacity": 1e10}],
        **more,
    }
    return Federation(**members)


def workload(uid: str, devices: int = 8) -> Any:
    metadata = {"name": uid, "namespace": "team-a", "uid": uid, "creationTimestamp": NOW}
    limits = {"nvidia.com/gpu": str(devices)}
    template = {"spec": {"containers": [{"resources": {"limits": limits}}]}}
    return {"metadata": metadata, "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]}}


def record(uid: str, domain: str | None = None, devices: int = 8) -> Any:
    body = workload(uid, devices)
    request = request_of(body, DeviceNeed(devices, devices, 1, GPU), {8}, lambda *_: {})
    return record_of(body, request, 0, federation().placement(domain, devices, GPU) if domain else None)


def free(known: Federation, clusters: set[str], *running: Any) -> dict[str, int]:
    """Free devices of each domain in a state."""
    document = state_of(Situation(known, clusters, running), [record("waits")], NOW).document
    return {domain["id"]: sum(pool["free"] for pool in domain["pools"]) for domain in document["domains"]}


def test_only_clusters_that_are_there_offer_devices_and_data_may_lie_anywhere() -> None:
    assert free(federation(), {"east", "west"}) == {"east": 8, "store": 0, "west": 16}
    assert free(federation(), {"east"}) == {"east": 8, "store": 0, "west": 0}


def test_workloads_that_run_hold_their_devices_and_so_does_what_the_service_has_allocated() -> None:
    share = {"domain": "east", "accelerator": "nvidia-h100", "devices": 3}
    allocation = {
        "id": "a-1",
        "job": "j-1",
        "phase": "committed",
        "placement": {"shares": [share], "split_mode": "none"},
    }
    known = federation(allocations=[allocation])
    assert free(known, {"east", "west"}, record("runs", "west", 8)) == {"east": 5, "store": 0, "west": 8}


def test_nothing_that_runs_may_be_moved_for_a_workload() -> None:
    """A job of the service's own with a checkpoint could be, by the service itself."""
    share = {"domain": "east", "accelerator": "nvidia-h100", "devices": 8}
    job = record("j-1") | {
        "state": "running",
        "checkpoint_step": 10,
        "checkpoint": "s3://checkpoints/j-1",
        "step": 12,
        "placement": {"shares": [share], "split_mode": "none"},
        "transitions": [{"at": "2026-11-29T11:00:00.000Z", "state": "running", "reason": ""}],
    }
    state = state_of(Situation(federation(jobs=[job]), {"east"}, ()), [record("waits")], NOW)
    [running] = state.document["running"]
    assert running["spec"]["id"] == "j-1"
    assert "used" not in running


def test_a_domain_has_devices_of_a_resource_where_vendor_and_kind_are_those() -> None:
    known = federation(
        nodes=[node("e-1", "east"), node("w-1", "west", "AMD", "MI300X"), node("s-1", "store", "unknown")]
    )
    offering = {domain for domain in ("east", "store", "west") if known.offers(domain, GPU)}
    assert offering == {"east", "store"}
    assert known.offers("west", DeviceKind("gpu", ""))
    assert not known.offers("east", RESOURCES["huawei.com/Ascend910"])


def test_why_nothing_can_be_sent_to_a_domain_is_told() -> None:
    known = federation(nodes=[node("e-1", "east"), node("w-1", "west")], unreachable=frozenset({"west"}))
    assert known.missing("east") is None
    assert known.missing("west") == "the service hears nothing of the domain west"
    assert known.missing("store") == "the service knows no accelerators in the domain store"
    assert known.missing("south") == "the service knows no domain south"
