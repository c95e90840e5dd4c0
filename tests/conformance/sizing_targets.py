"""Services that size tasks, for stories about that check: one that keeps to the text, and some that do not.

The conforming one cuts cores of each kind by one rate, so far that tasks that ran would have been little slower on the
mean, and memory and accelerators so far that hardly any of them would have felt it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode, Request, Settings

Json = dict[str, Any]

Sizer = Callable[[Json], Json]


class Target:
    """Answers from a function; a source of episodes without a network."""

    def __init__(self, answer: Sizer) -> None:
        self._answer = answer
        self.bodies: list[Json] = []

    def exchange(self, request: Request) -> Answer:
        """One answer."""
        body = json.loads(request.body)
        self.bodies.append(body)
        said = json.dumps(self._answer(body)).encode()
        return Answer(len(self.bodies), f"POST {request.path}", 200, {"content-type": "application/json"}, said)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is of no use to this check")


def episode(target: Target, nonce: str = "nonce", *, full: bool = False) -> Episode:
    """An episode of a run."""
    return Episode("dem_sizing", Settings(nonce, "run", full, frozenset(), {}, False), target)


def conforming(body: Json) -> Json:
    """Sizes from what ran."""
    by_kind: dict[str, list[Json]] = {}
    for record in body["history"]:
        by_kind.setdefault(record["kind"], []).append(record)
    rates = {kind: _rates(its, body.get("slow_down", 0.05)) for kind, its in by_kind.items()}
    return report(body, lambda task: rates.get(task["kind"], {}), by_kind)


def halving(body: Json) -> Json:
    """Half of everything."""
    return report(body, lambda _task: dict.fromkeys(("devices", "cores", "memory"), 0.5))


def idle(body: Json) -> Json:
    """What was asked for."""
    return report(body, lambda _task: {})


def report(
    body: Json,
    rates: Callable[[Json], Mapping[str, float]],
    by_kind: Mapping[str, Sequence[Json]] | None = None,
) -> Json:
    """A report that gives each task a part of each resource."""
    ran = {record["kind"]: [record] for record in body["history"]} if by_kind is None else by_kind
    tasks = []
    for task in body["tasks"]:
        its = rates(task)
        recommended = {name: amount * its.get(name, 1.0) for name, amount in task["requested"].items()}
        tasks.append({"task": task["id"], "recommended": recommended, "slow_down": 0.0, "reason": "as others used"})
    return {
        "revision": body["revision"],
        "method": {"name": "rates", "version": "1"},
        "tasks": tasks,
        "importance": [{"kind": kind, **_importance(ran[kind])} for kind in sorted(ran)],
    }


def _rates(its: Sequence[Json], allowed: float) -> dict[str, float]:
    """Part of each resource that suffices."""
    parts = {name: np.array([r["peak"][name] / r["requested"][name] for r in its]) for name in its[0]["requested"]}
    rates = {"memory": float(np.quantile(parts["memory"], 0.995))}
    for name, part in parts.items():
        if name != "memory":
            tried = np.linspace(0.5, 1.0, 101)
            slower = [float(np.maximum(part / rate, 1.0).mean() / np.maximum(part, 1.0).mean()) - 1.0 for rate in tried]
            rates[name] = float(next(r for r, s in zip(tried, slower, strict=True) if s <= allowed / 2.0 or r == 1.0))
    return rates


def _importance(its: Sequence[Json]) -> Json:
    """Squared correlation of the logarithm of time with that of use."""
    found: Json = {"error": 0.2, "records": len(its)}
    time = np.log([record["duration"] for record in its])
    for name in ("devices", "cores", "memory"):
        use = np.log([record["used"][name] for record in its])
        found[name] = float(np.corrcoef(time, use)[0, 1] ** 2) if len(its) > 2 else 0.0
    return found
