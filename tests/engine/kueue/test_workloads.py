"""What a Workload says: whether it waits for a cluster, what it asks for, and what stands in its annotation."""

from typing import Any

import pytest

from kuayu.cli.kueue import describe
from kuayu.engine.kueue.workloads import (
    RESOURCES,
    DeviceNeed,
    cluster_of,
    device_need,
    offers,
    priorities,
    record_of,
    request_of,
)

GPU = RESOURCES["nvidia.com/gpu"]
CHECKS = {"kuayu": ["east", "west"]}
WAITING = {
    "conditions": [{"type": "QuotaReserved", "status": "True"}],
    "admissionChecks": [{"name": "kuayu", "state": "Pending"}],
}


def pods(count: int, *limits: dict[str, str], name: str = "main", annotation: str = "") -> dict[str, Any]:
    containers = [{"name": f"c{number}", "resources": {"limits": limit}} for number, limit in enumerate(limits)]
    template: dict[str, Any] = {"spec": {"containers": containers}}
    if annotation:
        template["metadata"] = {"annotations": {"kuayu.dev/job": annotation}}
    return {"name": name, "count": count, "template": template}


def workload(*sets: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "train", "namespace": "team-a", "uid": "u-1", "creationTimestamp": "2026-11-29T12:00:00Z"}
    return {"metadata": metadata, "spec": {"podSets": list(sets), **spec}, "status": status or dict(WAITING)}


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": []},
        {"conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "Finished", "status": "True"}]},
        {"clusterName": "west"},
        {"admissionChecks": [{"name": "kuayu", "state": "Ready"}]},
        {"admissionChecks": [{"name": "another", "state": "Pending"}]},
        {"admissionChecks": [{"name": "kuayu", "state": "Pending"}, {"name": "budget", "state": "Pending"}]},
        {"admissionChecks": []},
    ],
    ids=["no quota", "finished", "assigned", "checked", "not ours", "other checks pending", "no check"],
)
def test_workloads_that_are_not_to_be_dispatched_are_left_alone(status: dict[str, Any]) -> None:
    body = workload(pods(1, {"nvidia.com/gpu": "8"}), status={**WAITING, **status})
    assert list(offers([body], CHECKS, RESOURCES)) == []


def test_workloads_come_in_the_order_of_the_queue() -> None:
    """Higher priority first, then the older one."""
    old, young, urgent = (workload(pods(1, {"nvidia.com/gpu": "8"}), priority=number) for number in (0, 0, 9))
    old["metadata"]["uid"], young["metadata"]["uid"], urgent["metadata"]["uid"] = "b", "a", "c"
    young["metadata"]["creationTimestamp"] = "2026-11-29T12:00:01Z"
    assert [offer.uid for offer in offers([young, old, urgent], CHECKS, RESOURCES)] == ["c", "b", "a"]


def test_one_that_runs_holds_devices_in_its_cluster_until_it_has_finished() -> None:
    admitted = {**WAITING, "clusterName": "west"}
    assert cluster_of(workload(status=admitted)) == "west"
    over = {**admitted, "conditions": [*WAITING["conditions"], {"type": "Finished", "status": "True"}]}
    assert cluster_of(workload(status=over)) is None


@pytest.mark.parametrize(
    ("sets", "need"),
    [
        ([pods(1, {"nvidia.com/gpu": "8", "cpu": "4"})], DeviceNeed(8, 8, 1, GPU)),
        ([pods(4, {"nvidia.com/gpu": "8"})], DeviceNeed(32, 8, 4, GPU)),
        ([pods(2, {"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"})], DeviceNeed(6, 3, 2, GPU)),
        ([pods(1, {"cpu": "4"}, name="driver"), pods(3, {"nvidia.com/gpu": "4"}, name="w")], DeviceNeed(12, 4, 3, GPU)),
        ([pods(2, {"huawei.com/Ascend910": "8"})], DeviceNeed(16, 8, 2, RESOURCES["huawei.com/Ascend910"])),
        ([pods(1, {"cpu": "4"})], DeviceNeed(0, 0, 0, None)),
    ],
    ids=["one pod", "four pods", "several containers", "a driver without", "ascend", "none"],
)
def test_devices_are_those_of_all_pods(sets: list[dict[str, Any]], need: DeviceNeed) -> None:
    assert device_need(workload(*sets), RESOURCES) == need


def test_pods_that_kueue_has_admitted_in_part_count_as_admitted() -> None:
    admission = {"podSetAssignments": [{"name": "main", "count": 2}]}
    body = workload(pods(4, {"nvidia.com/gpu": "8"}), status={**WAITING, "admission": admission})
    assert device_need(body, RESOURCES).total == 16


@pytest.mark.parametrize(
    ("count", "devices", "node_sizes", "nodes"),
    [
        (1, 4, {8}, {"within": "node"}),
        (4, 8, {8}, {"devices_per_node": 8}),
        (4, 8, {8, 16}, None),
        (4, 2, {8}, None),
    ],
    ids=["one pod lies on one node", "a node each", "two may share a node", "four may share a node"],
)
def test_pods_lie_on_nodes_as_they_must(count: int, devices: int, node_sizes: set[int], nodes: Any) -> None:
    body = workload(pods(count, {"nvidia.com/gpu": str(devices)}))
    request = request_of(body, device_need(body, RESOURCES), node_sizes, describe)
    assert request.get("nodes") == nodes
    assert request["devices"] == {"minimum": count * devices, "maximum": count * devices}


def test_what_no_pod_tells_stands_in_an_annotation_with_the_keys_of_a_job_file() -> None:
    annotation = "data: {name: corpus, place: west, size: 2TB}\nduration: 2h\ndevices: {memory: 40GiB}\ndomains: [west]"
    body = workload(pods(2, {"nvidia.com/gpu": "8"}, annotation=annotation), maximumExecutionTimeSeconds=60)
    request = request_of(body, device_need(body, RESOURCES), {8}, describe)
    assert request["data"] == [{"id": "corpus", "size": 2e12, "domains": ["west"]}]
    assert request["duration"]["expected"] == 7200.0
    assert request["memory_per_device"] == 40 * 2**30
    assert request["domains"] == ["west"]
    assert request["devices"] == {"minimum": 16, "maximum": 16}


def test_an_annotation_that_is_misspelt_is_an_error_that_says_what_was_meant() -> None:
    body = workload(pods(1, {"nvidia.com/gpu": "8"}, annotation="dta: {place: west, size: 2TB}"))
    with pytest.raises(ValueError, match=r"kuayu\.dev/job:1.*dta.*data"):
        request_of(body, device_need(body, RESOURCES), {8}, describe)


def test_a_time_limit_bounds_how_long_one_takes_that_says_nothing_else() -> None:
    body = workload(pods(1, {"nvidia.com/gpu": "8"}), maximumExecutionTimeSeconds=1800)
    duration = request_of(body, device_need(body, RESOURCES), {8}, describe)["duration"]
    assert (duration["low"], duration["expected"], duration["high"]) == (60.0, 1800.0, 1800.0)


def test_priorities_keep_their_order_within_what_a_job_may_have() -> None:
    bodies = [workload(priority=number) for number in (-5, 7, 2_000_000_000, 1_000_000)]
    assert priorities(bodies) == {-5: -1, 0: 0, 7: 1, 1_000_000: 2, 2_000_000_000: 3}


def test_one_that_runs_has_run_since_it_was_admitted() -> None:
    conditions = [
        *WAITING["conditions"],
        {"type": "Admitted", "status": "True", "lastTransitionTime": "2026-11-29T13:00:00Z"},
    ]
    body = workload(pods(1, {"nvidia.com/gpu": "8"}), status={**WAITING, "conditions": conditions})
    request = request_of(body, device_need(body, RESOURCES), {8}, describe)
    share: Any = {"domain": "west", "accelerator": "h100", "devices": 8}
    record = record_of(body, request, 0, {"shares": [share], "split_mode": "none"})
    assert (record["state"], record["started_at"]) == ("running", "2026-11-29T13:00:00Z")
    assert record["transitions"][-1]["at"] == "2026-11-29T13:00:00Z"
