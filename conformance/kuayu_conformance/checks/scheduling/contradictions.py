"""States whose numbers contradict each other are refused (SCH-020).

Whatever is decided on such a state is wrong, and so is the reason that is given for it: the job of a state with more
free devices than there are would wait for ever, for want of a pool that can hold it.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import ask
from kuayu_conformance.checks.scheduling.placement_requests import (
    FRONTS,
    PLACEMENTS,
    PLANS,
    StateBuilder,
    alone,
    queued,
    take,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

POOL = "/state/domains/0/pools/0"
DEVICES = 8
"""Devices of a node."""


@dataclass(frozen=True)
class Contradiction:
    """A request whose state contradicts itself: in what, where, and the answer."""

    what: str
    place: str
    answer: Answer


def observe(episode: Episode) -> tuple[Contradiction, ...]:
    """Ask for each decision on a state that holds together, then with one contradiction in it each time.

    Raises:
        SetUpFailure: The state that holds together is not answered.
    """
    builder = StateBuilder.of(episode)
    contradictions = []
    bodies = {path: body for path, body in requests(builder).items() if episode.settings.asks(f"POST {path}")}
    for path, body in bodies.items():
        ask(episode, path, body)
        for what, place, change in CONTRADICTIONS:
            wrong = deepcopy(body)
            if change(wrong["state"]):
                contradictions.append(Contradiction(f"{what} ({path})", place, episode.ask("POST", path, wrong)))
    return tuple(contradictions)


def requests(builder: StateBuilder) -> dict[str, Mapping[str, Any]]:
    """A request for each decision on a state: two domains, of which the first has a job that runs, and one waits."""
    profile = builder.name()
    kind = builder.accelerator([profile], speed=1.0)
    domains = [builder.domain(builder.pool(kind, 2, switches=1)) for _ in range(2)]
    names = [domain["id"] for domain in domains]
    state = queued(builder.state([kind], domains, builder.mesh(names)), [builder.spec(profile, names[0], (4, 4, 8))])
    idle = deepcopy(state)
    placement = alone(names[0], domains[0]["pools"][0], 4)
    take(domains[0]["pools"][0], placement["shares"][0])
    spec = builder.spec(profile, names[0], (4, 4, 4))
    state["running"] = [{"spec": spec, "placement": placement, "phase": "running", "done": 10.0, "rate": 4.0}]
    demand: documents.DemandForecast = {
        "domain": names[0],
        "profile": profile,
        "expected": 2.0,
        "high": 3.0,
        "movable": 1.0,
        "interruptible": 0.0,
    }
    placements: documents.PlacementRequest = {"state": state}
    fronts: documents.ParetoRequest = {"state": idle, "slot": 3600.0, "solutions": 3}
    plans: documents.AllocationPlanRequest = {"state": state, "horizon": 3600.0, "forecast": [demand]}
    return {PLACEMENTS: placements, FRONTS: fronts, PLANS: plans}


def _more_free(state: "documents.SchedulingState") -> bool:
    """One device more is free than there are, of the pool and so of one of its nodes."""
    pool = state["domains"][0]["pools"][0]
    pool["free"] = pool["devices"] + 1
    return True


def _more_free_on_a_node(state: "documents.SchedulingState") -> bool:
    state["domains"][0]["pools"][0]["nodes"][1]["free"] = DEVICES + 1
    return True


def _more_held(state: "documents.SchedulingState") -> bool:
    """Running jobs hold one device more than the pool has; none of them is free."""
    for job in state["running"]:
        pool = state["domains"][0]["pools"][0]
        share = job["placement"]["shares"][0]
        share["devices"] = pool["devices"] + 1
        share["nodes"] = [{"node": node["id"], "devices": node["devices"]} for node in pool["nodes"]]
        pool["free"] = 0
        for node in pool["nodes"]:
            node["free"] = 0
        job["spec"]["devices"] = {"minimum": 1, "maximum": pool["devices"] + 1}
    return bool(state["running"])


def _least_above_most(state: "documents.SchedulingState") -> bool:
    state["waiting"][0]["spec"]["devices"] = {"minimum": 8, "maximum": 4}
    return True


def _asks_for_less(state: "documents.SchedulingState") -> bool:
    state["waiting"][0]["spec"]["devices"] = {"minimum": 4, "maximum": 8, "requested": 3}
    return True


def _asks_for_more(state: "documents.SchedulingState") -> bool:
    state["waiting"][0]["spec"]["devices"] = {"minimum": 4, "maximum": 8, "requested": 9}
    return True


JOB = "/state/waiting/0/spec/devices"
CONTRADICTIONS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("more devices of a pool are free than work", POOL, _more_free),
    ("more devices of a node are free than work", POOL, _more_free_on_a_node),
    ("running jobs hold more devices than work", POOL, _more_held),
    ("the least that a job works with is above the most", JOB, _least_above_most),
    ("a job asks for fewer devices than the least", JOB, _asks_for_less),
    ("a job asks for more devices than the most", JOB, _asks_for_more),
)
"""What contradicts itself, the place that a pointer has to lie in, and how a state is made so, if it can be."""


def judge(observation: tuple[Contradiction, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    for entry in observation:
        yield answered("SCH-020", entry.answer, 422, entry.what, problem="invalid-body")
        pointers = [error.get("pointer") for error in entry.answer.items("errors") if isinstance(error, dict)]
        inside = any(isinstance(pointer, str) and f"{pointer}/".startswith(f"{entry.place}/") for pointer in pointers)
        yield holds("SCH-020", inside, f"{entry.what}: a place in {entry.place}", pointers, entry.answer)


CHECK = Check("sch_contradictions", ("SCH-020",), observe, judge)
