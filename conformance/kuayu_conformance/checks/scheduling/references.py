"""Requests for decisions that name what they do not hold, or one thing twice (SCH-012)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import (
    INVALID,
    NOWHERE,
    UNKNOWN,
    BadRequest,
    Fault,
    bad_requests,
    repeated,
)
from kuayu_conformance.checks.scheduling.placement_requests import (
    FRONTS,
    PLACEMENTS,
    PLANS,
    ROUTES,
    StateBuilder,
    alone,
    queued,
    take,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Finding, answered, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents


def observe(episode: Episode) -> tuple[BadRequest, ...]:
    """Ask for each decision as it should be, then with one thing wrong each time.

    Raises:
        SetUpFailure: What is right is not answered.
    """
    return bad_requests(episode, requests(StateBuilder.of(episode)), _faults)


def requests(draft: StateBuilder) -> dict[str, Mapping[str, Any]]:
    """A small request for each decision, with a name in every place that may hold one."""
    state = _state(draft)
    first, second = (domain["id"] for domain in state["domains"][:2])
    nothing_runs: documents.SchedulingState = {**state, "running": []}
    demand: documents.DemandForecast = {
        "domain": first,
        "profile": state["waiting"][0]["spec"]["task_profile"],
        "expected": 2.0,
        "high": 3.0,
        "movable": 1.0,
        "interruptible": 0.0,
    }
    routed: documents.RouteDemand = {"id": draft.name(), "sources": [first], "targets": [second], "size": 1e9}
    placements: documents.PlacementRequest = {
        "state": state,
        "shares": [{"domain": first, "share": 0.5}, {"domain": second, "share": 0.5}],
    }
    fronts: documents.ParetoRequest = {"state": nothing_runs, "slot": 3600.0, "solutions": 5}
    plans: documents.AllocationPlanRequest = {"state": state, "horizon": 3600.0, "forecast": [demand]}
    routes: documents.RouteRequest = {
        "revision": state["revision"],
        "links": state["links"],
        "demands": [routed, {**routed, "id": draft.name()}],
    }
    return {PLACEMENTS: placements, FRONTS: fronts, PLANS: plans, ROUTES: routes}


def _state(draft: StateBuilder) -> "documents.SchedulingState":
    """A state that would hold together without its last accelerator, domain, pool, node or job."""
    profile = draft.name()
    kinds = [draft.accelerator([profile], speed=1.0), *(draft.accelerator([profile]) for _ in range(2))]
    domains = [draft.domain(draft.pool(kinds[0], 2, switches=2), draft.pool(kinds[1], 2)) for _ in range(3)]
    names = [domain["id"] for domain in domains]
    state = draft.state(kinds, domains, draft.mesh(names))
    specs = [draft.spec(profile, names[number % 3], (4, 4, 4)) for number in range(2)]
    held = draft.spec(profile, names[0], (4, 4, 4))
    placement = alone(names[0], domains[0]["pools"][0], 4)
    take(domains[0]["pools"][0], placement["shares"][0])
    running: documents.RunningJob = {
        "spec": held,
        "placement": placement,
        "phase": "running",
        "done": 100.0,
        "rate": 4.0,
    }
    copies: list[documents.ArtefactCopies] = [{"artefact": specs[0]["data"][0]["id"], "domains": [names[0], names[1]]}]
    return {**queued(state, specs), "running": [running], "copies": copies}


def _faults(path: str, whole: Mapping[str, Any]) -> Iterator[Fault]:
    """What can be wrong with the request for a decision."""
    for what, pointer in USED[path]:
        yield Fault(what, UNKNOWN, pointer, False, dict.fromkeys((pointer, *_WITH.get(pointer, ())), NOWHERE))
    for what, pointer, source in TWICE[path]:
        yield repeated(what, pointer, whole, source)


_STATE_USED = (
    ("accelerator of a pool", "/state/domains/1/pools/0/accelerator"),
    ("domain of a copy", "/state/copies/0/domains/1"),
    ("home of a job", "/state/waiting/1/spec/home_domain"),
    ("domain of data", "/state/waiting/1/spec/data/0/domains/0"),
)
_STATE_TWICE = (
    ("accelerator", "/state/accelerators/2/id", "/state/accelerators/0/id"),
    ("domain", "/state/domains/2/id", "/state/domains/0/id"),
    ("pool of a domain", "/state/domains/0/pools/1/accelerator", "/state/domains/0/pools/0/accelerator"),
    ("node of a pool", "/state/domains/0/pools/0/nodes/1/id", "/state/domains/0/pools/0/nodes/0/id"),
    ("job that waits", "/state/waiting/1/spec/id", "/state/waiting/0/spec/id"),
)
_HELD_DEVICES = "/state/running/0/placement/shares/0"
USED = {
    PLACEMENTS: (
        *_STATE_USED,
        ("domain where a job runs", f"{_HELD_DEVICES}/domain"),
        ("accelerator on which a job runs", f"{_HELD_DEVICES}/accelerator"),
        ("node on which a job runs", f"{_HELD_DEVICES}/nodes/0/node"),
        ("domain of a planned share", "/shares/1/domain"),
    ),
    FRONTS: _STATE_USED,
    PLANS: (*_STATE_USED, ("domain of a forecast", "/forecast/0/domain")),
    ROUTES: (
        ("source of a demand", "/demands/1/sources/0"),
        ("target of a demand", "/demands/0/targets/0"),
    ),
}
"""Places of names that point at something, by operation; each is given one that nothing has."""
TWICE = {
    PLACEMENTS: (
        *_STATE_TWICE,
        ("job that waits and runs", "/state/running/0/spec/id", "/state/waiting/0/spec/id"),
        ("domain of planned shares", "/shares/1/domain", "/shares/0/domain"),
    ),
    FRONTS: _STATE_TWICE,
    PLANS: _STATE_TWICE,
    ROUTES: (("demand", "/demands/1/id", "/demands/0/id"),),
}
"""Places of names that something else has already, and where, by operation."""


_WITH = {
    "/demands/1/sources/0": ("/demands/0/sources/0",),
    "/demands/0/targets/0": ("/demands/1/targets/0",),
}
"""Places that get the same wrong name: both demands have the same ends, and committed runs were asked so."""


def judge(observation: tuple[BadRequest, ...]) -> Iterable[Finding]:
    """Claims about refusals."""
    for wrong in observation:
        fault, pointers = wrong.fault, wrong.pointers
        because = f"{wrong.what}, {'twice' if fault.problem == INVALID else 'unknown'}"
        yield answered("SCH-012", wrong.answer, 422, because, problem=fault.problem)
        yield holds("SCH-012", fault.pointer in pointers, f"{because}: the place {fault.where}", pointers, wrong.answer)


CHECK = Check("sch_names", ("SCH-012",), observe, judge)
