"""Small placement requests as plain JSON."""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

NOW = "2026-01-05T00:00:00.000Z"
GIGABIT = 1e9


def accelerator(name: str = "plain", index: float = 1.0, memory: float = 80e9, **others: float) -> Json:
    """A kind of device that is worth so much for ``training``, and as said for other profiles."""
    indices = {"training": index, **others}
    return {"id": name, "memory": memory, "indices": [{"profile": key, "value": each} for key, each in indices.items()]}


def pool(devices: int, free: int | None = None, kind: str = "plain", **others: Any) -> Json:
    """Devices of a kind."""
    free = devices if free is None else free
    return {"accelerator": kind, "devices": devices, "free": free, "devices_per_node": 8, **others}


def domain(name: str, *pools: Json, **others: Any) -> Json:
    """A domain."""
    return {"id": name, "pools": list(pools), **others}


def links(*names: str, bandwidth: float = 10 * GIGABIT, round_trip: float = 0.02, tariff: float = 1e-11) -> list[Json]:
    """A link from each to each."""
    return [
        {
            "source": one,
            "target": other,
            "bandwidth": bandwidth,
            "available": bandwidth,
            "round_trip_time": round_trip,
            "tariff": tariff,
        }
        for one in names
        for other in names
        if one != other
    ]


def spec(name: str, count: int = 8, seconds: float = 3600.0, **others: Any) -> Json:
    """A job that runs on what it asks for and on nothing else, in one domain, unless it is said."""
    made: Json = {
        "id": name,
        "submitted_at": NOW,
        "devices": {"minimum": count, "maximum": count, "requested": count},
        "task_profile": "training",
        "duration": {"expected": seconds, "low": seconds, "high": seconds, "coverage": 0.8},
        "split_modes": ["none"],
    }
    return made | others


def data(name: str, size: float, *domains: str, pinned: bool = False) -> list[Json]:
    """One data set."""
    return [{"id": name, "size": size, "domains": list(domains), "pinned": pinned}]


def talks(step: float = 3.0, exchange: float = 2e9, boundary: float = 2e9, checkpoint: float = 1e9) -> Json:
    """A communication profile."""
    return {"step_time": step, "exchange": exchange, "boundary": boundary, "checkpoint_size": checkpoint}


def running(its: Json, shares: Sequence[tuple[str, int]], *, rate: float, used: float = 1.0, done: float = 0.0) -> Json:
    """A job that runs on plain devices of one domain."""
    held = [{"domain": where, "accelerator": "plain", "devices": count} for where, count in shares]
    return {
        "spec": its,
        "placement": {"shares": held, "split_mode": "none"},
        "phase": "running",
        "used": used,
        "done": done,
        "rate": rate,
    }


def request(domains: Sequence[Json], waiting: Sequence[Json] = (), **others: Any) -> Json:
    """A request about jobs that wait; ``running``, ``links``, ``accelerators`` and ``copies`` go into the state."""
    names = [each["id"] for each in domains]
    state: Json = {
        "revision": {"epoch": "once", "number": 1},
        "now": NOW,
        "accelerators": [accelerator()],
        "domains": list(domains),
        "links": links(*names),
        "waiting": [each if "spec" in each else {"spec": each} for each in waiting],
        "running": [],
    }
    inside = {"running", "links", "accelerators", "copies", "now"}
    state |= {name: value for name, value in others.items() if name in inside}
    return {"state": state} | {name: value for name, value in others.items() if name not in inside}
