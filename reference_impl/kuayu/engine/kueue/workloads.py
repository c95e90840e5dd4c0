"""What a Workload of Kueue says: whether it waits for a cluster, where it runs, and what it asks for.

1. A workload is ours to dispatch where it has quota, has not finished, has no cluster yet, its MultiKueue admission
   check is pending and all other checks are ready: only then does Kueue copy it to the clusters that are nominated
   (pkg/controller/admissionchecks/multikueue/workload.go).
2. What it asks for follows from its pod sets: devices from the limits of containers, which pods each have for
   themselves; what no pod tells (data and where they are, how long it takes, what it trains) stands in the annotation
   ``kuayu.dev/job`` of its pod template, which has the keys of a job file. Kueue keeps annotations of pod templates,
   and copies none of the job itself.
3. A workload whose annotation cannot be read is not dispatched: it may say that data must not leave a domain.
4. Where nothing tells how long it takes, ``maximumExecutionTimeSeconds`` bounds it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kuayu.engine.runs.kubernetes_connection import JsonObject
from kuayu.jobs.specification import UNKNOWN_DURATION

if TYPE_CHECKING:
    from kuayu_schemas import documents

JOB_ANNOTATION = "kuayu.dev/job"
"""Of a pod template: what no pod tells of a job, with the keys of a job file, in YAML or JSON."""


class DeviceKind(NamedTuple):
    """What devices a resource of pods stands for.

    Attributes:
        kind: Kind of processor.
        vendor: Who makes them, in lower case; empty where that does not matter.
    """

    kind: str
    vendor: str


RESOURCES: Mapping[str, DeviceKind] = {
    "nvidia.com/gpu": DeviceKind("gpu", "nvidia"),
    "amd.com/gpu": DeviceKind("gpu", "amd"),
    "huawei.com/Ascend910": DeviceKind("npu", "huawei"),
    "cambricon.com/mlu": DeviceKind("mlu", "cambricon"),
    "hygon.com/dcu": DeviceKind("dcu", "hygon"),
    "google.com/tpu": DeviceKind("tpu", "google"),
}
"""Resources by which pods ask for accelerators, as the device plugins of their vendors name them."""

Describe = Callable[[str, int], JsonObject]
"""Reads an annotation: its text, and how many devices the workload asks for; gives members of class JobRequest. A
ValueError says what is wrong with it."""

MAX_PRIORITY = 1000
"""Of a job of the standard."""


class DeviceNeed(NamedTuple):
    """Devices that a workload asks for.

    Attributes:
        total: All together.
        per_pod: Of the pods that have most; these lie on one node.
        pods: How many pods have some.
        kind: Which; None where it asks for none.
    """

    total: int
    per_pod: int
    pods: int
    kind: DeviceKind | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A workload that waits for a cluster.

    Attributes:
        body: The workload.
        clusters: Clusters of its admission check.
        nominated: Clusters that it is offered to, in order.
        need: Devices that it asks for.
    """

    body: JsonObject
    clusters: Sequence[str]
    nominated: Sequence[str]
    need: DeviceNeed

    @property
    def uid(self) -> str:
        """Its identifier, for good."""
        return uid_of(self.body)

    @property
    def version(self) -> str:
        """Which of its versions it is."""
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def name(self) -> str:
        """Its namespace and name, for people."""
        return name_of(self.body)


def uid_of(body: JsonObject) -> str:
    """Identifier of a workload, which is one of a job too."""
    return str(body["metadata"]["uid"])


def name_of(body: JsonObject) -> str:
    """Namespace and name of a workload."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def offers(
    workloads: Iterable[JsonObject], checks: Mapping[str, Sequence[str]], resources: Mapping[str, DeviceKind]
) -> Iterator[Offer]:
    """Workloads that wait for a cluster, those of higher priority first and of these the older ones.

    Args:
        workloads: All of them.
        checks: Clusters of each admission check that is MultiKueue's.
        resources: What resources of pods stand for.
    """
    for body in sorted(workloads, key=_place):
        clusters = _offered(body, checks)
        if clusters is not None:
            nominated = list(_status(body).get("nominatedClusterNames") or [])
            yield Offer(body, clusters, nominated, device_need(body, resources))


def _place(body: JsonObject) -> tuple[int, str, str]:
    return -priority_of(body), str(body["metadata"].get("creationTimestamp", "")), uid_of(body)


def _status(body: JsonObject) -> Mapping[str, Any]:
    return body.get("status") or {}


def _conditions(body: JsonObject) -> dict[str, JsonObject]:
    return {entry["type"]: entry for entry in _status(body).get("conditions") or []}


def _holds(body: JsonObject, condition: str) -> bool:
    return _conditions(body).get(condition, {}).get("status") == "True"


def _offered(body: JsonObject, checks: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
    """Clusters that a workload may be offered to; None where it is not to be dispatched now."""
    if "deletionTimestamp" in body["metadata"] or _status(body).get("clusterName"):
        return None
    if _holds(body, "Finished") or not _holds(body, "QuotaReserved"):
        return None
    states = {check["name"]: check.get("state") for check in _status(body).get("admissionChecks") or []}
    ours = next((name for name in states if name in checks), None)
    if ours is None or states.pop(ours) != "Pending" or set(states.values()) - {"Ready"}:
        return None
    return checks[ours]


def cluster_of(body: JsonObject) -> str | None:
    """Cluster in which a workload holds devices; None where it holds none."""
    cluster = _status(body).get("clusterName")
    return str(cluster) if cluster and not _holds(body, "Finished") and _holds(body, "QuotaReserved") else None


def priority_of(body: JsonObject) -> int:
    """Priority of a workload; Kueue's are of 32 bits."""
    return int(body.get("spec", {}).get("priority") or 0)


def device_need(body: JsonObject, resources: Mapping[str, DeviceKind]) -> DeviceNeed:
    """Devices that a workload asks for; of the kind of which it asks for most, where it asks for several."""
    assigned = {
        entry["name"]: entry["count"]
        for entry in (_status(body).get("admission") or {}).get("podSetAssignments") or []
        if entry.get("count") is not None
    }
    needs: dict[str, list[tuple[int, int]]] = {}
    for pods in body.get("spec", {}).get("podSets") or []:
        count = int(assigned.get(pods.get("name", "main"), pods.get("count", 1)))
        for resource, devices in _pod_devices(pods["template"]["spec"], resources).items():
            needs.setdefault(resource, []).append((count, devices))
    if not needs:
        return DeviceNeed(0, 0, 0, None)
    resource = max(needs, key=lambda name: (sum(count * devices for count, devices in needs[name]), name))
    sets = needs[resource]
    total, pods_with = sum(count * devices for count, devices in sets), sum(count for count, _ in sets)
    return DeviceNeed(total, max(devices for _, devices in sets), pods_with, resources[resource])


def _pod_devices(pod: JsonObject, resources: Collection[str]) -> dict[str, int]:
    """Devices of a pod by resource."""
    devices: dict[str, int] = {}
    for container in pod.get("containers") or []:
        limits = (container.get("resources") or {}).get("limits") or {}
        for resource, amount in limits.items():
            if resource in resources and str(amount).isdecimal() and int(amount):
                devices[resource] = devices.get(resource, 0) + int(amount)
    return devices


def annotation_of(body: JsonObject) -> str:
    """What the annotation of the first pod template that has one says; empty where none has."""
    for pods in body.get("spec", {}).get("podSets") or []:
        annotations = (pods["template"].get("metadata") or {}).get("annotations") or {}
        if annotations.get(JOB_ANNOTATION):
            return str(annotations[JOB_ANNOTATION])
    return ""


def request_of(body: JsonObject, need: DeviceNeed, node_sizes: Collection[int], describe: Describe) -> JsonObject:
    """What a workload asks of the service, class JobRequest without the domains that it may run in.

    Args:
        body: The workload.
        need: Devices that it asks for.
        node_sizes: Devices of nodes on which it may come to run.
        describe: Reads its annotation.

    Raises:
        ValueError: Its annotation cannot be read; the message says why.
    """
    assert need.kind is not None
    devices: JsonObject = {"minimum": need.total, "maximum": need.total}
    request: JsonObject = {"device_kinds": [need.kind.kind], "workload": {"command": ["kueue"]}}
    if nodes := _node_need(need, node_sizes):
        request["nodes"] = nodes
    if limit := body.get("spec", {}).get("maximumExecutionTimeSeconds"):
        unknown = UNKNOWN_DURATION
        bounds = {name: min(float(unknown[name]), float(limit)) for name in ("low", "expected", "high")}
        request["duration"] = {**bounds, "coverage": unknown["coverage"]}
    if text := annotation_of(body):
        request |= describe(text, need.total)
    return request | {"id": uid_of(body), "devices": devices, "split_modes": ["none"]}


def _node_need(need: DeviceNeed, node_sizes: Collection[int]) -> JsonObject:
    """How devices lie on nodes: those of a pod on one, and so many on each node only where no two pods fit on one."""
    if need.pods == 1:
        return {"within": "node"}
    if need.pods * need.per_pod == need.total and all(size < 2 * need.per_pod for size in node_sizes):
        return {"devices_per_node": need.per_pod}
    return {}


def priorities(workloads: Iterable[JsonObject]) -> dict[int, int]:
    """Priorities of workloads as those of jobs, in the same order: the standard's reach from -1000 to 1000."""
    values = sorted({0, *(priority_of(body) for body in workloads)})
    zero = values.index(0)
    return {value: max(-MAX_PRIORITY, min(place - zero, MAX_PRIORITY)) for place, value in enumerate(values)}


def record_of(
    body: JsonObject, request: Mapping[str, Any], priority: int, placement: "documents.JobPlacement | None" = None
) -> "documents.JobRecord":
    """A workload as a job of the service: one that runs where it has a placement, else one that is queued.

    Args:
        body: The workload.
        request: What it asks for.
        priority: Of the job.
        placement: Where it runs.
    """
    submitted = str(body["metadata"].get("creationTimestamp"))
    state = "queued" if placement is None else "running"
    since = submitted if placement is None else _running_since(body) or submitted
    record: JsonObject = {
        **request,
        "priority": priority,
        "state": state,
        "reason": "",
        "attempt": 1,
        "failures": 0,
        "device_hours": 0.0,
        "submitted_at": submitted,
        "transitions": [{"at": since, "state": state, "reason": ""}],
        "revision": {"epoch": "kueue", "number": 0},
    }
    if placement is not None:
        record |= {"placement": placement, "allocation": uid_of(body), "started_at": since}
    return cast("documents.JobRecord", record)


def _running_since(body: JsonObject) -> str | None:
    conditions = _conditions(body)
    for name in ("PodsReady", "Admitted", "QuotaReserved"):
        if conditions.get(name, {}).get("status") == "True" and "lastTransitionTime" in conditions[name]:
            return str(conditions[name]["lastTransitionTime"])
    return None
