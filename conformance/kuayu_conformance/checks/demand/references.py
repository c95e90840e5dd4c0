"""Requests for demand that name what they do not hold, one thing twice, or what cannot be (DEM-006)."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import (
    DEMANDS,
    LAYOUTS,
    SIZES,
    Json,
    case,
    hardware,
    model,
    names,
    revision,
    strategy,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

ID = "DEM-006"
NOWHERE = "nowhere"
UNKNOWN, INVALID = "unknown-reference", "invalid-body"


@dataclass(frozen=True)
class BadRequest:
    """A request with something wrong in it: what, the problem that it calls for, and where.

    ``within`` says that any place inside the one that is named will do.
    """

    what: str
    problem: str
    pointer: str
    answer: Answer
    within: bool = False


def observe(episode: Episode) -> tuple[BadRequest, ...]:
    """Ask as it should be, then with one thing wrong each time.

    Raises:
        SetUpFailed: What is right is not answered.
    """
    bodies = {path: body for path, body in requests(episode).items() if episode.settings.asks(f"POST {path}")}
    for path, body in bodies.items():
        episode.set_up("POST", path, body)
    return tuple(
        BadRequest(f"{what} ({path})", problem, pointer, episode.ask("POST", path, body), within)
        for path, whole in bodies.items()
        for what, problem, pointer, body, within in _wrong(path, whole)
    )


def requests(episode: Episode) -> dict[str, Json]:
    """A small request for each operation, with a name in every place that may hold one."""
    chance = episode.random
    labels = names(chance, "n", 8)
    machines = [hardware(chance, label) for label in labels[:2]]
    of = model(chance, "experts")
    spread = strategy(chance, of)
    run = {
        "source": labels[2],
        "model": of,
        "strategy": spread,
        "hardware": labels[0],
        "step_time": chance.uniform(1.0, 30.0),
    }
    head = {"revision": revision(episode), "hardware": machines, "runs": [run, {**run, "hardware": labels[1]}]}
    given = {"devices": 1.0, "cores": 8.0, "memory": 3.2e10}
    used = {"devices": 0.5, "cores": 3.0, "memory": 1.1e10}
    record = {"kind": labels[3], "requested": given, "used": used, "duration": chance.uniform(100.0, 1000.0)}
    return {
        DEMANDS: {**head, "cases": [case(label, of, spread, labels[0]) for label in labels[4:6]]},
        LAYOUTS: {**head, "model": of, "kind": labels[0], "devices": 8, "global_batch": 64},
        SIZES: {
            "revision": head["revision"],
            "history": [record],
            "tasks": [{"id": label, "kind": labels[3], "requested": given} for label in labels[6:8]],
        },
    }


USED: Mapping[str, tuple[tuple[str, str], ...]] = {
    DEMANDS: (("hardware of a case", "/cases/1/hardware"), ("hardware of a run", "/runs/1/hardware")),
    LAYOUTS: (("kind of hardware", "/kind"), ("hardware of a run", "/runs/1/hardware")),
    SIZES: (),
}
"""Places of names that point at something, by operation; each is given one that nothing has."""
TWICE: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    DEMANDS: (
        ("hardware", "/hardware/1/id", "/hardware/0/id"),
        ("case", "/cases/1/id", "/cases/0/id"),
    ),
    LAYOUTS: (("hardware", "/hardware/1/id", "/hardware/0/id"),),
    SIZES: (("task", "/tasks/1/id", "/tasks/0/id"),),
}
"""Places of names that something else has already, and where, by operation."""
IMPOSSIBLE: Mapping[str, tuple[str, ...]] = {
    DEMANDS: ("/cases/1/model", "/runs/1/model"),
    LAYOUTS: ("/model", "/runs/1/model"),
    SIZES: (),
}
"""Places of models; each is given tokens that go to more experts than there are."""


def _wrong(path: str, whole: Json) -> Iterator[tuple[str, str, str, Json, bool]]:
    """What is wrong, the problem that it calls for, the place, the request, and whether inside will do."""
    for what, pointer in USED[path]:
        yield f"{what} that is unknown", UNKNOWN, pointer, _with(whole, pointer, NOWHERE), False
    for what, pointer, source in TWICE[path]:
        yield f"{what} that stands twice", INVALID, pointer, _with(whole, pointer, _at(whole, source)), False
    for place in IMPOSSIBLE[path]:
        of = _at(whole, place)
        body = _with(whole, place, {**of, "experts_per_token": of["experts"] + 1})
        yield "more experts for a token than there are", INVALID, place, body, True


def _with(whole: Json, pointer: str, value: object) -> Json:
    """A copy of a request with something else at a place."""
    body = deepcopy(whole)
    place, _, last = pointer.rpartition("/")
    parent = _at(body, place)
    parent[int(last) if isinstance(parent, list) else last] = value
    return body


def _at(body: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        body = body[int(step) if isinstance(body, list) else step]
    return body


def judge(observation: tuple[BadRequest, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    for wrong in observation:
        yield answered(ID, wrong.answer, 422, wrong.what, problem=wrong.problem)
        pointers = [str(error.get("pointer")) for error in wrong.answer.items("errors") if isinstance(error, dict)]
        inside = wrong.within and any(pointer.startswith(f"{wrong.pointer}/") for pointer in pointers)
        met = wrong.pointer in pointers or inside
        yield holds(ID, met, f"{wrong.what}: the place {wrong.pointer}", pointers, wrong.answer)


CHECK = Check("dem_names", (ID,), observe, judge)
