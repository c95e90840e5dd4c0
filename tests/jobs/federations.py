"""Small federations and their jobs as plain JSON."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kuayu.jobs.federation import FederationSnapshot

Json = dict[str, Any]

NOW = "2026-01-05T00:00:00.000Z"
A100 = {"kind": "gpu", "vendor": "NVIDIA", "model": "A100-SXM4-80GB", "memory_capacity": 85e9}
H100 = {"kind": "gpu", "vendor": "NVIDIA", "model": "H100 80GB HBM3", "memory_capacity": 85e9}
ASCEND = {"kind": "npu", "vendor": "Huawei", "model": "Ascend 910B", "memory_capacity": 64e9}

PEAK = {"peak_matrix_throughput": {"bf16": 312e12, "fp16": 312e12}}
DOUBLE = {"peak_matrix_throughput": {"bf16": 624e12}}


def before(seconds: float) -> str:
    """An instant so many seconds before the present one."""
    moment = datetime.fromisoformat(NOW).astimezone(UTC) - timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def node(name: str, domain: str, count: int = 8, device: Json | None = None, **members: Any) -> Json:
    """A node with devices of one kind, A100 with their peak unless it is said."""
    kind = A100 | PEAK if device is None else device
    return {"id": name, "domain": domain, "devices": [{"id": str(n), **kind} for n in range(count)], **members}


def link(source: str, destination: str, **members: Any) -> Json:
    """A link of 10 Gbit/s."""
    return {"id": f"{source}-{destination}", "source": source, "destination": destination, "capacity": 1e10, **members}


def job(name: str, count: int = 8, *, age: float = 10.0, **members: Any) -> Json:
    """A job that waits and says how long it takes, class JobRecord."""
    submitted = before(age)
    first = {"state": "queued", "at": submitted, "attempt": 0, "reason": "it was submitted"}
    return {
        "id": name,
        "workload": {"command": ["train"]},
        "devices": {"minimum": count, "maximum": count},
        "duration": {"expected": 3600.0, "low": 1800.0, "high": 7200.0, "coverage": 0.8},
        "state": "queued",
        "reason": "it was submitted",
        "attempt": 0,
        "failures": 0,
        "device_hours": 0.0,
        "submitted_at": submitted,
        "transitions": [first],
        "revision": {"epoch": "once", "number": 1},
        **members,
    }


def placed(*shares: tuple[str, str, dict[str, int]]) -> Json:
    """A placement: domain, accelerator, and devices by node, for each share."""
    return {
        "shares": [
            {
                "domain": domain,
                "accelerator": accelerator,
                "devices": sum(nodes.values()),
                "nodes": [{"node": name, "devices": count} for name, count in nodes.items()],
            }
            for domain, accelerator, nodes in shares
        ],
        "split_mode": "none" if len(shares) == 1 else "synchronous",
    }


def running(name: str, placement: Json, *, since: float = 600.0, state: str = "running", **members: Any) -> Json:
    """A job that runs for so many seconds, class JobRecord."""
    count = sum(share["devices"] for share in placement["shares"])
    told = job(name, count, age=since + 60.0)
    changes = [("starting", since + 30.0), ("running", since)]
    if state != "running":
        changes = [*changes, (state, 1.0)] if state == "restarting" else changes[:1]
    told["transitions"] += [
        {"state": each, "at": before(age), "attempt": 1, "reason": f"it is {each}"} for each, age in changes
    ]
    return told | {"state": state, "attempt": 1, "allocation": f"{name}.1.1", "placement": placement} | members


def allocation(name: str, of: str, placement: Json, phase: str = "committed") -> Json:
    """An allocation that is not finished."""
    return {"id": name, "job": of, "phase": phase, "placement": placement}


def federation(*nodes: Json, **members: Any) -> FederationSnapshot:
    """A federation of these nodes, whose domains can all be reached unless it is said."""
    names = sorted({each["domain"] for each in nodes})
    told: Json = {
        "now": NOW,
        "revision": {"epoch": "once", "number": 7},
        "domains": [{"id": name} for name in names],
        "nodes": list(nodes),
        "reachable": names,
        **members,
    }
    return FederationSnapshot(**told)
