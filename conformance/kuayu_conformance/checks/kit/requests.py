"""What checks send: the operations that a declaration implies, the least of each request, and what is set up before.

1. What checks register and report at the target before they begin; none of it scores.
2. The operations that a declaration implies, with the least that each decision service can be asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode, instant
from kuayu_schemas import registers

if TYPE_CHECKING:
    from kuayu_schemas import documents

GRAVE = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
"""Line of a log that tells that a device has to be reset, in the words of its driver (NVIDIA, Xid 79)."""

TOLD = 10.0
"""Seconds in which a fault is told that lasts (RES-001)."""

GLANCE = 0.1
"""Seconds between two looks at faults."""

MOST_PAGES = 2000
"""Pages of one listing that are asked for; a target that never comes to an end must not keep the suite."""


def domain(episode: Episode, label: str = "d", *, tenant: str = "own") -> str:
    """Register a domain, which no other has the label of, and return its identifier."""
    identifier = episode.name_of(label)
    _register(episode, f"/v1/domains/{identifier}", {"id": identifier}, tenant)
    return identifier


def device(identifier: str, **members: Any) -> "documents.Device":
    """An accelerator."""
    body = {"id": identifier, "kind": "gpu", "vendor": "conformance", "model": "probe", **members}
    return cast("documents.Device", body)


def node(episode: Episode, in_domain: str, called: str = "n", *, names: Sequence[str] = (), **members: Any) -> str:
    """Register a node, which no other has the label of, with devices of these names and return its identifier."""
    identifier = episode.name_of(called)
    body = {"id": identifier, "domain": in_domain, "devices": [device(name) for name in names], **members}
    _register(episode, f"/v1/nodes/{identifier}", body, "own")
    return identifier


def _register(episode: Episode, path: str, body: Mapping[str, object], tenant: str) -> None:
    """Make what is not there yet: a check whose labels are no more than one would find less than it believes."""
    if (path, tenant) in episode.created:
        raise ValueError(f"{path} has been made before in {episode.name}")
    episode.set_up("PUT", path, body, tenant=tenant)


def sample(subject: str, observed_at: str, *, kind: str = "node", **measures: Any) -> "documents.Sample":
    """A sample."""
    body = {"subject": subject, "subject_kind": kind, "observed_at": observed_at, **measures}
    return cast("documents.Sample", body)


def post(
    episode: Episode, samples: Sequence[Mapping[str, object]], *, mode: str = "per_item", **members: Any
) -> Answer:
    """Send a batch of samples."""
    return episode.ask("POST", "/v1/samples", {"mode": mode, "samples": samples, **members})


def beat(subject: str, number: int, sent_at: str) -> "documents.Heartbeat":
    """A heartbeat."""
    return {"node": subject, "number": number, "sent_at": sent_at}


def line(subject: str, logged_at: str, text: str) -> "documents.LogLine":
    """A line of a log."""
    return {"node": subject, "logged_at": logged_at, "text": text}


def failing(episode: Episode, subjects: Sequence[str]) -> None:
    """Let nodes beat once, and their logs tell that their devices have to be reset.

    Raises:
        SetUpFailure: Heartbeats or log lines were refused.
    """
    now = instant(episode.now())
    episode.set_up("POST", "/v1/heartbeats", {"beats": [beat(subject, 1, now) for subject in subjects]})
    episode.set_up("POST", "/v1/log-lines", {"lines": [line(subject, now, GRAVE) for subject in subjects]})


def faults_of(episode: Episode, in_domain: str, state: str, least: int) -> Answer:
    """Faults of a domain that are open, or cleared: the first listing that has so many, or the last one in time."""
    until = episode.now() + TOLD
    while True:
        answer = episode.ask("GET", f"/v1/faults?domain={in_domain}&state={state}")
        if answer.status != 200 or len(answer.items("items")) >= least or episode.now() > until:
            return answer
        episode.sleep(GLANCE)


def read_samples(episode: Episode, subject: str, *, kind: str = "node", query: str = "") -> Answer:
    """Ask for the samples of a subject."""
    return episode.ask("GET", f"/v1/samples?subject={subject}&subject_kind={kind}{query}")


def pages(episode: Episode, path: str, first: Answer | None = None) -> Iterator[Answer]:
    """Pages of a listing, following the cursors; ``first`` where the first page is there already."""
    answer = first or episode.ask("GET", path)
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        yield answer
        cursor = answer.at("next_cursor")
        if not isinstance(cursor, str) or cursor in seen:
            return
        seen.add(cursor)
        answer = episode.ask("GET", f"{path}&cursor={quote(cursor, safe='')}")


def mandatory(declaration: Answer) -> list[str]:
    """Method and path of each mandatory operation of what is declared, profiles and parts, in order of the register."""
    declared = [*declaration.items("profiles"), *declaration.items("sub_profiles")]
    return list(registers.mandatory(["COM", *(name for name in declared if isinstance(name, str))]))


def decision_services(episode: Episode) -> list[str]:
    """Method and path of each decision service that a check asks, in order of the register.

    They are those of what the target declares or, where the run is about parts of profiles, of these parts.
    """
    services = mandatory(episode.ask("GET", "/v1/conformance"))
    if episode.settings.operations is not None:
        everything = registers.mandatory(registers.profiles())
        services = [operation for operation in everything if operation in episode.settings.operations]
    return [operation for operation in services if operation in DECISIONS]


REVISION = {"epoch": "none", "number": 0}
"""State that nothing was taken from."""

_CORPUS = {
    "devices": [{"id": "device", "stack": "none"}, {"id": "other", "stack": "none"}],
    "tasks": [{"id": "task", "precisions": ["fp16"]}],
    "measurements": [{"device": "device", "task": "task", "throughput": 1.0}],
}
_CELLS = [{"device": "other", "task": "task"}]
_DECISION = {"revision": REVISION, "corpus": _CORPUS}
_STATE = {
    "revision": REVISION,
    "now": "2026-01-01T00:00:00Z",
    "accelerators": [{"id": "device", "memory": 1e9, "indices": [{"profile": "profile", "value": 1.0}]}],
    "domains": [{"id": "domain", "pools": [{"accelerator": "device", "devices": 8, "free": 8, "devices_per_node": 8}]}],
    "links": [],
    "waiting": [],
    "running": [],
}
_LINK = {
    "source": "here",
    "target": "there",
    "bandwidth": 1e9,
    "available": 1e9,
    "round_trip_time": 0.01,
    "tariff": 0.0,
}
_HARDWARE = {
    "id": "device",
    "peak_matrix_throughput": {"bf16": 1e14},
    "accelerator_memory_capacity": 8e10,
    "accelerator_memory_bandwidth": 2e12,
    "devices_per_node": 8,
    "node_bandwidth": 3e11,
    "domain_bandwidth": 2.5e10,
}
_MODEL = {"layers": 2, "hidden": 256, "heads": 4, "sequence": 128, "vocabulary": 1000}
_STRATEGY = {"data": 1, "tensor": 1, "pipeline": 1, "micro_batch": 1, "global_batch": 8}
_TRAINING = {"revision": REVISION, "hardware": [_HARDWARE]}
_RESOURCES = {"devices": 1.0, "cores": 1.0, "memory": 1e9}
_NOW = "2026-01-01T00:00:00Z"
_SERIES = {
    "id": "series",
    "quantity": "held_devices",
    "tenant": "tenant",
    "begin": "2025-12-31T23:58:00Z",
    "step": 60.0,
    "values": [1.0, 1.0, 1.0],
}
_MEASURED = {"latency": 0.01, "bandwidths": [1e9]}
_STREAM = {
    "id": "stream",
    "target": "here",
    "sources": ["there"],
    "step_size": 1e6,
    "step_time": 1.0,
    "due": 1.0,
    "remote_steps": 1,
    "missing": [{"begin": 0.0, "end": 1e6}],
}
_JOB = {
    "id": "job",
    "priority": 0,
    "domain": "here",
    "replicas": 1,
    "least_replicas": 1,
    "nodes_each": 1,
    "state_size": 1e10,
}
DECISIONS: dict[str, Mapping[str, Any]] = {
    "POST /v1/compute-indices": {**_DECISION, "reference": "device"},
    "POST /v1/probe-plans": {**_DECISION, "candidates": _CELLS, "targets": _CELLS, "probes": 1},
    "POST /v1/placements": {"state": _STATE},
    "POST /v1/pareto-fronts": {"state": _STATE, "slot": 60.0},
    "POST /v1/allocation-plans": {"state": _STATE, "horizon": 3600.0},
    "POST /v1/routes": {
        "revision": REVISION,
        "links": [_LINK],
        "demands": [{"id": "demand", "sources": ["here"], "targets": ["there"], "size": 1.0}],
    },
    "POST /v1/training-demands": {
        **_TRAINING,
        "cases": [{"id": "case", "model": _MODEL, "strategy": _STRATEGY, "hardware": "device"}],
    },
    "POST /v1/layouts": {**_TRAINING, "model": _MODEL, "kind": "device", "devices": 1, "global_batch": 8},
    "POST /v1/task-sizes": {
        "revision": REVISION,
        "history": [{"kind": "kind", "requested": _RESOURCES, "used": _RESOURCES, "duration": 60.0}],
        "tasks": [{"id": "task", "kind": "kind", "requested": _RESOURCES}],
    },
    "POST /v1/forecasts": {
        "revision": REVISION,
        "now": _NOW,
        "series": [_SERIES],
        "horizons": [600.0],
        "levels": [0.5],
    },
    "POST /v1/training-phases": {
        "revision": REVISION,
        "curves": [{"id": "curve", "points": [{"step": 1, "loss": 1.0, "learning_rate": 1e-4}]}],
    },
    "POST /v1/waveforms": {"revision": REVISION, "now": _NOW, "period": 600.0, "step": 60.0, "jobs": []},
    "POST /v1/peak-plans": {"revision": REVISION, "step": 60.0, "base": [1.0], "loads": []},
    "POST /v1/reservations": {
        "revision": REVISION,
        "now": _NOW,
        "series": [_SERIES],
        "horizon": 600.0,
        "qualities": [{"tenant": "tenant", "violations": 0.1}],
    },
    "POST /v1/shard-plans": {
        "revision": REVISION,
        "interval": 10.0,
        "horizon": 10.0,
        "links": [{"source": "there", "target": "here", **_MEASURED}],
        "rooms": [{"domain": "here", "size": 1e7}],
        "streams": [_STREAM],
    },
    "POST /v1/collectives": {
        "revision": REVISION,
        "interval": 10.0,
        "domains": ["here", "there"],
        "links": [
            {"source": "here", "target": "there", **_MEASURED},
            {"source": "there", "target": "here", **_MEASURED},
        ],
        "nodes": 1,
        "node_bandwidth": 1e11,
        "node_latency": 0.0,
        "exchange": 1e9,
        "step_time": 1.0,
        "switch_time": 10.0,
    },
    "POST /v1/backup-plans": {
        "revision": REVISION,
        "interval": 10.0,
        "share": 0.5,
        "risk": 0.01,
        "domains": [
            {"id": "here", "nodes": 1, "free": 1, "time_between_failures": 1e6, "repair_time": 3600.0, "price": 1.0}
        ],
        "links": [],
        "stores": [{"domain": "here", "bandwidth": 1e11, "free": 1e12}],
        "jobs": [{**_JOB, "pause": 1.0}],
    },
    "POST /v1/failover-plans": {
        "revision": REVISION,
        "interval": 10.0,
        "links": [],
        "stores": [{"domain": "here", "bandwidth": 1e11}],
        "nodes": [
            {"id": "node", "domain": "here", "condition": "failed", "job": "job", "replica": 0},
            {"id": "spare", "domain": "here", "condition": "fit"},
        ],
        "jobs": [
            {
                **_JOB,
                "node_bandwidth": 1e11,
                "start_time": 10.0,
                "regroup_time": 1.0,
                "copies": [{"domain": "here", "age": 60.0}],
            }
        ],
    },
    "POST /v1/adjustments": {
        "revision": REVISION,
        "interval": 2.0,
        "patience": 10.0,
        "window": 10.0,
        "allowance": 0.1,
        "domains": [{"id": "here", "level": 0.5, "loads": [0.5]}],
        "links": [],
        "jobs": [
            {
                "id": "job",
                "shares": [{"domain": "here", "parts": 1, "part_time": 1.0}],
                "nodes": 1,
                "node_bandwidth": 1e11,
                "node_latency": 0.0,
                "exchange": 1e9,
                "collective": "ring",
                "period": 1,
                "order": ["here"],
                "move_time": 0.01,
                "switch_time": 0.1,
            }
        ],
    },
}
"""Body by operation, of each decision service."""


def reports(subject: str, observed_at: str) -> dict[str, Mapping[str, Any]]:
    """Body by operation, of each that takes what is told of a node; nothing is wrong with it."""
    return {
        "POST /v1/samples": {
            "mode": "per_item",
            "samples": [sample(subject, observed_at, accelerator_utilisation=0.5)],
        },
        "POST /v1/heartbeats": {"beats": [beat(subject, 0, observed_at)]},
        "POST /v1/log-lines": {"lines": [line(subject, observed_at, "systemd[1]: Started Session 1 of User root.")]},
    }
