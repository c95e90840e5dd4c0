"""Requests for decisions that name what is not in them, one thing twice, or contradict themselves (COM-042).

1. For each decision service there is a small request in which nothing is wrong, with a name in every place that may
   hold one, and two of everything that has a name, so that one can be given the name of the other. Names tell nothing,
   and numbers are drawn, so that no two runs ask the same.
2. What is allowed and easily taken for a fault is in the requests: a store in a domain without jobs, a node of a job
   that is not in the request, a link that leads back nowhere.
3. A row of the table is one thing that can be wrong: in words, the problem that it calls for, the place that has to be
   named, and an edit that puts it into a request in which nothing is wrong.
4. Each decision service of the declared profiles, or of the parts that a run is about, is sent the right request, and
   then one for each of its rows. Others are not asked.
5. Each answer is a problem of that type with status 422 and a pointer to the place (RFC 9457, RFC 6901). Where members
   contradict each other, a place within what holds them will do.
6. Where the right request is not answered, nothing can be said of that operation, and nothing is said of the
   requirement unless a row of another one speaks against it.
7. No library of numbers is needed: a light installation tests COM (:mod:`kuayu_conformance.run.plan`).

    twice("load", "/loads/1/id", "/loads/0/id")   # the second load is named as the first: invalid-body, /loads/1/id

Sources: requirement COM-042; the classes of requests in ``spec/model``; the clauses IDX to RES for what belongs
together, and for what contradicts itself.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand.demand_requests import DEMANDS, LAYOUTS, SIZES, case, hardware, model, strategy
from kuayu_conformance.checks.kit.decisions import RequestT, name, present, revision
from kuayu_conformance.checks.kit.requests import decision_services
from kuayu_conformance.checks.resilience.resilience_requests import (
    ADJUSTMENTS,
    BACKUPS,
    COLLECTIVES,
    FAILED,
    FAILOVERS,
    SHARDS,
    FailoverRequestBuilder,
    fenced,
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
from kuayu_conformance.episode import Episode, SetUpFailure, instant
from kuayu_conformance.findings import Claim, Finding, answered, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

INDICES, PROBE_PLANS = "/v1/compute-indices", "/v1/probe-plans"
FORECASTS, WAVEFORMS = "/v1/forecasts", "/v1/waveforms"
PEAKS, RESERVATIONS, PHASES = "/v1/peak-plans", "/v1/reservations", "/v1/training-phases"

HOUR = 3_600.0
STEP_BYTES = 1e8
"""Bytes of a training step's data."""


def requests(chance: Random, naming: Random | None = None) -> dict[str, Mapping[str, Any]]:
    """The requests by operation, in order of the profiles.

    Args:
        chance: What numbers are drawn from.
        naming: What names are drawn from; the same where it is absent.
    """
    names = naming or chance
    return {
        **index_requests(chance, names),
        **demand_requests(chance, names),
        **forecast_requests(chance, names),
        **scheduling_requests(StateBuilder(chance, names)),
        SHARDS: shards(chance),
        COLLECTIVES: collectives(chance),
        BACKUPS: backup(chance),
        FAILOVERS: failover(chance),
        ADJUSTMENTS: adjustment(chance),
    }


def index_requests(chance: Random, naming: Random) -> dict[str, Mapping[str, Any]]:
    """Three devices, of which the third was not measured, two tasks, and two groups of devices."""
    devices, tasks = ([name(naming) for _ in range(count)] for count in (3, 2))
    corpus: documents.Corpus = {
        "devices": [
            {
                "id": device,
                "stack": name(naming),
                "peak_matrix_throughput": {"fp16": chance.uniform(1e14, 1e15)},
                "accelerator_memory_capacity": chance.uniform(1.6e10, 1.4e11),
                "accelerator_memory_bandwidth": chance.uniform(6e11, 3.4e12),
                "scale_out_bandwidth": chance.uniform(3e10, 9e11),
            }
            for device in devices
        ],
        "tasks": [{"id": task, "precisions": ["fp16"]} for task in tasks],
        "measurements": [
            {"device": device, "task": task, "throughput": chance.uniform(100.0, 1_000.0)}
            for device in devices[:2]
            for task in tasks
        ],
    }
    cells: list[documents.CorpusCell] = [{"device": devices[2], "task": task} for task in tasks]
    indices: documents.IndexRequest = {
        "revision": revision(naming),
        "corpus": corpus,
        "reference": devices[0],
        "devices": devices[:2],
        "tasks": tasks,
        "groups": [{"id": name(naming), "members": [{"device": devices[number], "count": 2}]} for number in range(2)],
    }
    plan: documents.ProbePlanRequest = {
        "revision": revision(naming),
        "corpus": corpus,
        "candidates": cells,
        "targets": cells,
        "probes": 1,
    }
    return {INDICES: indices, PROBE_PLANS: plan}


def demand_requests(chance: Random, naming: Random) -> dict[str, Mapping[str, Any]]:
    """Two kinds of hardware with a measured run each, two cases of a model with experts, and two tasks."""
    kinds, source, kind = [name(naming) for _ in range(2)], name(naming), name(naming)
    machines = [hardware(chance, label) for label in kinds]
    structure = model(chance, "experts")
    spread = strategy(chance, structure)
    runs: list[documents.MeasuredRun] = [
        {
            "source": source,
            "model": structure,
            "strategy": spread,
            "hardware": label,
            "step_time": chance.uniform(1.0, 30.0),
        }
        for label in kinds
    ]
    demands: documents.TrainingDemandRequest = {
        "revision": revision(naming),
        "hardware": machines,
        "runs": runs,
        "cases": [case(name(naming), structure, spread, kinds[0]) for _ in range(2)],
    }
    layouts: documents.LayoutRequest = {
        "revision": revision(naming),
        "hardware": machines,
        "runs": runs,
        "model": structure,
        "kind": kinds[0],
        "devices": 8,
        "global_batch": 64,
    }
    requested: documents.TaskResources = {"devices": 1.0, "cores": 8.0, "memory": 3.2e10}
    used: documents.TaskResources = {"devices": 0.5, "cores": 3.0, "memory": 1.1e10}
    sizes: documents.SizingRequest = {
        "revision": revision(naming),
        "history": [{"kind": kind, "requested": requested, "used": used, "duration": chance.uniform(100.0, 1000.0)}],
        "tasks": [{"id": name(naming), "kind": kind, "requested": requested} for _ in range(2)],
    }
    return {DEMANDS: demands, LAYOUTS: layouts, SIZES: sizes}


def forecast_requests(chance: Random, naming: Random) -> dict[str, Mapping[str, Any]]:
    """Two series of two tenants that end now, two trainings of which one runs, two loads and two curves."""
    now = float(present(chance) // 60 * 60)
    tenants = [name(naming), name(naming)]
    series = [_series(chance, naming, tenant, now) for tenant in tenants]
    jobs = [_foreseen(chance, naming, now, submitted=HOUR, started=300.0), _foreseen(chance, naming, now, 60.0)]
    points: list[documents.CurvePoint] = [
        {"step": 10 * (number + 1), "loss": 9.0 - number, "learning_rate": 1e-4} for number in range(5)
    ]
    forecast: documents.ForecastRequest = {
        "revision": revision(naming),
        "now": instant(now),
        "series": series,
        "jobs": jobs,
        "horizons": [600.0, HOUR],
        "levels": [0.1, 0.5, 0.9],
    }
    waveform: documents.WaveformRequest = {
        "revision": revision(naming),
        "now": instant(now),
        "period": HOUR,
        "step": 600.0,
        "jobs": jobs,
    }
    peaks: documents.PeakRequest = {
        "revision": revision(naming),
        "step": 600.0,
        "base": _devices(chance, 12),
        "loads": [
            {"id": name(naming), "devices": 8, "slots": 3, "earliest": 2, "latest": 9, "planned": 4} for _ in range(2)
        ],
    }
    reservation: documents.ReservationRequest = {
        "revision": revision(naming),
        "now": instant(now),
        "series": series,
        "jobs": jobs,
        "horizon": HOUR,
        "qualities": [{"tenant": tenant, "violations": 0.1} for tenant in tenants],
    }
    phases: documents.PhaseRequest = {
        "revision": revision(naming),
        "curves": [{"id": name(naming), "points": points} for _ in range(2)],
    }
    return {FORECASTS: forecast, WAVEFORMS: waveform, PEAKS: peaks, RESERVATIONS: reservation, PHASES: phases}


def _devices(chance: Random, count: int) -> list[float]:
    return [float(chance.randrange(100, 300)) for _ in range(count)]


def _series(chance: Random, naming: Random, tenant: str, now: float) -> "documents.DemandSeries":
    values: list[float | None] = [*_devices(chance, 200)]
    return {
        "id": name(naming),
        "quantity": "demanded_devices",
        "tenant": tenant,
        "domain": name(naming),
        "begin": instant(now - 60.0 * (len(values) - 1)),
        "step": 60.0,
        "values": values,
    }


def _foreseen(
    chance: Random, naming: Random, now: float, submitted: float, started: float | None = None
) -> "documents.ForeseenJob":
    """A training of two periods, submitted and perhaps started so many seconds ago."""
    periods: list[documents.DemandPeriod] = []
    phases: tuple[documents.TrainingPhase, ...] = ("warm_up", "fast_convergence")
    for phase in phases:
        expected = float(round(chance.uniform(0.5, 2.0) * HOUR))
        duration: documents.Estimate = {
            "expected": expected,
            "low": 0.8 * expected,
            "high": 1.25 * expected,
            "coverage": 0.8,
        }
        periods.append({"phase": phase, "devices": 8 * chance.randrange(1, 65), "duration": duration})
    job: documents.ForeseenJob = {"id": name(naming), "submitted_at": instant(now - submitted), "periods": periods}
    return job if started is None else {**job, "started_at": instant(now - started)}


def scheduling_requests(parts: StateBuilder) -> dict[str, Mapping[str, Any]]:
    """Requests about one state, and two demands for transfers between two of its domains."""
    state = _state(parts)
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
    demands: list[documents.RouteDemand] = [
        {"id": parts.name(), "sources": [first], "targets": [second], "size": 1e9} for _ in range(2)
    ]
    placements: documents.PlacementRequest = {
        "state": state,
        "shares": [{"domain": first, "share": 0.5}, {"domain": second, "share": 0.5}],
    }
    fronts: documents.ParetoRequest = {"state": nothing_runs, "slot": HOUR, "solutions": 5}
    plans: documents.AllocationPlanRequest = {"state": state, "horizon": HOUR, "forecast": [demand]}
    routes: documents.RouteRequest = {"revision": state["revision"], "links": state["links"], "demands": demands}
    return {PLACEMENTS: placements, FRONTS: fronts, PLANS: plans, ROUTES: routes}


def _state(parts: StateBuilder) -> "documents.SchedulingState":
    """A state that would hold together without its last accelerator, domain, pool, node or job."""
    profile = parts.name()
    kinds = [parts.accelerator([profile], speed=1.0), *(parts.accelerator([profile]) for _ in range(2))]
    domains = [parts.domain(parts.pool(kinds[0], 2, switches=2), parts.pool(kinds[1], 2)) for _ in range(3)]
    names = [domain["id"] for domain in domains]
    state = parts.state(kinds, domains, parts.mesh(names))
    specs = [parts.spec(profile, names[number % 3], (4, 4, 4)) for number in range(2)]
    placement = alone(names[0], domains[0]["pools"][0], 4)
    take(domains[0]["pools"][0], placement["shares"][0])
    running: documents.RunningJob = {
        "spec": parts.spec(profile, names[0], (4, 4, 4)),
        "placement": placement,
        "phase": "running",
        "done": 100.0,
        "rate": 4.0,
    }
    copies: list[documents.ArtefactCopies] = [{"artefact": specs[0]["data"][0]["id"], "domains": [names[0], names[1]]}]
    return {**queued(state, specs), "running": [running], "copies": copies}


def shards(chance: Random) -> "documents.ShardPlanRequest":
    """Two streams to one domain, of which a step each is there and two are on their way."""
    target, elsewhere, *sources = (name(chance) for _ in range(5))
    return {
        "revision": revision(chance),
        "interval": 10.0,
        "horizon": 60.0,
        "links": [_link(chance, source, target) for source in sources],
        "rooms": [{"domain": domain, "size": 20 * STEP_BYTES} for domain in (target, elsewhere)],
        "streams": [_stream(chance, target, [*sources[:2], elsewhere]) for _ in range(2)],
    }


def collectives(chance: Random) -> "documents.CollectiveRequest":
    """Three domains with all links, and a collective in use."""
    domains = [name(chance) for _ in range(3)]
    return {
        "revision": revision(chance),
        "interval": 30.0,
        "domains": domains,
        "links": [_link(chance, *ends) for ends in permutations(domains, 2)],
        "nodes": 4,
        "node_bandwidth": 1e11,
        "node_latency": 1e-5,
        "exchange": 1e9,
        "step_time": 5.0,
        "switch_time": 10.0,
        "in_use": {"collective": "hierarchical", "period": 1, "order": domains, "since": 600.0},
    }


def _link(chance: Random, source: str, target: str) -> "documents.MeasuredLink":
    bandwidths: list[float] = [round(chance.uniform(1e9, 9e9)) for _ in range(10)]
    return {"source": source, "target": target, "latency": 0.02, "bandwidths": bandwidths}


def _stream(chance: Random, target: str, sources: list[str]) -> "documents.DataStream":
    """Twenty steps, of which two are under way and one is there."""
    begin = 3 * STEP_BYTES
    transfers: list[documents.DataTransfer] = [
        {"begin": place * STEP_BYTES, "end": (place + 1) * STEP_BYTES, "source": source, "left": 0.5 * STEP_BYTES}
        for place, source in enumerate(sources[:2])
    ]
    return {
        "id": name(chance),
        "target": target,
        "sources": sources,
        "step_size": STEP_BYTES,
        "step_time": 2.0,
        "due": 1.0,
        "remote_steps": 20,
        "missing": [{"begin": begin, "end": 10 * STEP_BYTES}, {"begin": 12 * STEP_BYTES, "end": 20 * STEP_BYTES}],
        "transfers": transfers,
    }


def adjustment(chance: Random) -> "documents.AdjustmentRequest":
    """Three jobs, in one, two and three of four domains, the second with two changes planned for the same instant.

    No job is in the fourth domain, and a link leads there but none back: this is allowed.
    """
    one, two, three, aside = (name(chance) for _ in range(4))
    changes: list[tuple[documents.CollectiveKind, int, list[str]]]
    changes = [("hierarchical", 1, [two, one]), ("low_communication", 50, [one, two])]
    planned: list[documents.PolicyChange] = [
        {"after": 5.0, "parts": [9 + number, 7 - number], "collective": kind, "period": period, "order": order}
        for number, (kind, period, order) in enumerate(changes)
    ]
    return {
        "revision": revision(chance),
        "interval": 2.0,
        "patience": 10.0,
        "window": 10.0,
        "allowance": 0.1,
        "domains": [{"id": entry, "level": 0.4, "loads": [0.39, 0.41]} for entry in (one, two, three, aside)],
        "links": [_adjusted_link(*ends) for ends in (*permutations((one, two, three), 2), (one, aside))],
        "jobs": [
            _job(chance, [one], collective="ring"),
            _job(chance, [one, two], collective="ring", changed=0.0, planned=planned),
            _job(chance, [one, two, three], collective="low_communication", period=15, changed=40.0),
        ],
    }


def _adjusted_link(source: str, target: str) -> "documents.DelayedLink":
    return {"source": source, "target": target, "bandwidth": 1e10, "level": 0.02, "latencies": [0.021, 0.019, 0.02]}


def _job(chance: Random, domains: list[str], **members: object) -> "documents.AdjustedJob":
    job = {
        "id": name(chance),
        "shares": [{"domain": domain, "parts": 8, "part_time": 0.1} for domain in domains],
        "nodes": 4,
        "node_bandwidth": 1e11,
        "node_latency": 1e-5,
        "exchange": 1e9,
        "period": 1,
        "order": domains[::-1],
        "move_time": 0.01,
        "switch_time": 0.3,
        **members,
    }
    return cast("documents.AdjustedJob", job)


def backup(chance: Random) -> "documents.BackupRequest":
    """Two jobs in two of three domains, and a store beyond them, which is allowed."""
    parts = FailoverRequestBuilder(chance)
    elsewhere = name(chance)
    return {
        "revision": revision(chance),
        "interval": 10.0,
        "share": 0.25,
        "risk": 0.01,
        "domains": [
            {
                "id": entry,
                "nodes": 40,
                "free": 10,
                "time_between_failures": 1e6,
                "repair_time": 3600.0,
                "price": 2.5,
            }
            for entry in parts.domains
        ],
        "links": [*parts.links(), parts.link(parts.here, elsewhere)],
        "stores": [{"domain": row, "bandwidth": 1e11, "free": 1e13} for row in (parts.here, parts.near, elsewhere)],
        "jobs": [_backed_up(chance, item) for item in (parts.here, parts.near)],
    }


def _backed_up(chance: Random, domain: str) -> "documents.BackedUpJob":
    return {
        "id": name(chance),
        "priority": 0,
        "domain": domain,
        "replicas": 4,
        "least_replicas": 2,
        "nodes_each": 2,
        "state_size": 1e11,
        "pause": 5.0,
    }


def failover(chance: Random) -> "documents.FailoverRequest":
    """Two jobs that lack a node each.

    A node is held by a job that is not in the request, another one is free in a domain without a store, and a link
    leads there: all of this is allowed.
    """
    parts = FailoverRequestBuilder(chance)
    elsewhere = name(chance)
    jobs = [parts.job(2, 1, 2), parts.job(2, 1, 2)]
    nodes = [
        *parts.nodes_of(jobs[0], {(1, 1): FAILED}),
        *parts.nodes_of(jobs[1], {(0, 0): fenced(30.0)}),
        parts.node(parts.here, job=name(chance), replica=9),
        parts.node(elsewhere),
        *parts.free(parts.here, 2),
    ]
    return {
        "revision": revision(chance),
        "interval": 10.0,
        "links": [*parts.links(), parts.link(parts.here, elsewhere)],
        "stores": [{"domain": domain, "bandwidth": 1e11} for domain in parts.domains],
        "nodes": nodes,
        "jobs": jobs,
    }


REQUIREMENT = "COM-042"
UNKNOWN, INVALID = "unknown-reference", "invalid-body"
"""Problems: a name that is not in the request, and all else."""
NOWHERE = "nowhere"
"""A name that nothing has."""

Edit = Callable[[Any], Mapping[str, Any]]
"""What is put where in a request, by pointers."""


@dataclass(frozen=True)
class Row:
    """One thing that can be wrong with a request.

    Attributes:
        what: In words.
        problem: What it calls for.
        pointer: The place that is to be named.
        edit: Puts it into a request that is right.
        within: Whether a place within that one may be named, too.
        instead: Another place that may be named as well as that one, or a place within it; none where it is empty.
    """

    what: str
    problem: str
    pointer: str
    edit: Edit
    within: bool = False
    instead: str = ""

    @property
    def where(self) -> str:
        """Places that may be named, in words."""
        first = f"{self.pointer} or a place within it" if self.within else self.pointer
        return first + (f", or {self.instead} or a place within it" if self.instead else "")

    def names(self, pointer: str) -> bool:
        """Whether that is one of them."""
        roots = [self.pointer] * self.within + [self.instead] * bool(self.instead)
        return pointer in {self.pointer, *roots} or any(pointer.startswith(f"{root}/") for root in roots)

    def spoil(self, request: RequestT) -> RequestT:
        """A copy of a request with that wrong in it."""
        return edited(request, self.edit(request))


def edited(request: RequestT, values: Mapping[str, Any]) -> RequestT:
    """A copy of a request with other values at some places, put there one after the other."""
    # what stands in two places is one thing to a deep copy
    body: RequestT = json.loads(json.dumps(request))
    for pointer, value in values.items():
        parent_pointer, _, last = pointer.rpartition("/")
        parent = value_at(body, parent_pointer)
        parent[int(last) if isinstance(parent, list) else last] = json.loads(json.dumps(value))
    return body


def value_at(request: Any, pointer: str) -> Any:
    """What stands at a place of a request.

    Raises:
        LookupError: Nothing does.
    """
    value = request
    for step in pointer.split("/")[1:]:
        value = value[int(step) if isinstance(value, list) else step]
    return value


def unknown(what: str, pointer: str) -> Row:
    """A name that nothing has, at a place that points at something."""
    return Row(f"{what}, unknown", UNKNOWN, pointer, put(pointer, NOWHERE))


def twice(what: str, pointer: str, source: str) -> Row:
    """A name that something else in the request has already, at another place."""
    return Row(f"{what}, twice", INVALID, pointer, copied(pointer, source))


def repeated(what: str, pointer: str) -> Row:
    """The first entry of a list once more, at the place behind its last one."""
    return Row(f"{what}, twice", INVALID, pointer, like_first(pointer), within=True)


def contradiction(what: str, pointer: str, edit: Edit, instead: str = "") -> Row:
    """Members beneath a place that cannot all be."""
    return Row(what, INVALID, pointer, edit, True, instead)


def put(pointer: str, value: object) -> Edit:
    """The same value whatever the request is."""
    return lambda _: {pointer: value}


def copied(pointer: str, source: str) -> Edit:
    """What stands at another place of the request."""
    return lambda request: {pointer: value_at(request, source)}


def like_first(pointer: str, end: str = "", value: Callable[[Any], object] = str) -> Edit:
    """One entry more at the end of a list, where the place is: the first once more, with another value of a member."""
    rows = pointer.rpartition("/")[0]

    def edit(request: Any) -> Mapping[str, Any]:
        entries = value_at(request, rows)
        return {rows: [*entries, {**entries[0], end: value(entries[0])} if end else entries[0]]}

    return edit


def one_more(pointer: str, source: str) -> Edit:
    """A number that is greater by one than the one at another place."""
    return lambda request: {pointer: value_at(request, source) + 1}


def replaced(pointer: str, change: Callable[[Any], object]) -> Edit:
    """Something else in its place, which follows from it."""
    return lambda request: {pointer: change(value_at(request, pointer))}


def both(first: Edit, second: Edit) -> Edit:
    """Two edits as one."""
    return lambda request: {**first(request), **second(request)}


def _links(pointer: str, *, known_ends: bool = False) -> Iterator[Row]:
    """A link more, behind the last one: the first once more, one that leads nowhere else, ones with an unknown end."""
    yield repeated("link", pointer)
    yield contradiction("a link to its source", pointer, like_first(pointer, "target", lambda link: link["source"]))
    for end in ("source", "target") if known_ends else ():
        edit = like_first(pointer, end, lambda _: NOWHERE)
        yield Row(f"{end} of a link, unknown", UNKNOWN, f"{pointer}/{end}", edit)


def _experts(what: str, pointer: str) -> Row:
    """A model whose tokens go to more experts than there are."""
    return contradiction(
        f"{what} with more experts for a token than there are",
        pointer,
        one_more(f"{pointer}/experts_per_token", f"{pointer}/experts"),
    )


_HARDWARE = (
    unknown("hardware of a run", "/runs/1/hardware"),
    twice("hardware", "/hardware/1/id", "/hardware/0/id"),
    _experts("a model of a run", "/runs/1/model"),
)
_SERIES = (
    twice("series", "/series/1/id", "/series/0/id"),
    contradiction(
        "a series that reaches beyond now",
        "/series/1",
        lambda request: {"/series/1/values": [*value_at(request, "/series/1/values"), 1.0, 2.0]},
    ),
)
_FORESEEN = (
    twice("job", "/jobs/1/id", "/jobs/0/id"),
    contradiction("a job without periods", "/jobs/1", put("/jobs/1/periods", [])),
)
_STATE = (
    unknown("accelerator of a pool", "/state/domains/1/pools/0/accelerator"),
    unknown("domain of a copy", "/state/copies/0/domains/1"),
    unknown("home of a job", "/state/waiting/1/spec/home_domain"),
    unknown("domain of data", "/state/waiting/1/spec/data/0/domains/0"),
    twice("accelerator", "/state/accelerators/2/id", "/state/accelerators/0/id"),
    twice("domain", "/state/domains/2/id", "/state/domains/0/id"),
    twice("pool of a domain", "/state/domains/0/pools/1/accelerator", "/state/domains/0/pools/0/accelerator"),
    twice("node of a pool", "/state/domains/0/pools/0/nodes/1/id", "/state/domains/0/pools/0/nodes/0/id"),
    twice("job that waits", "/state/waiting/1/spec/id", "/state/waiting/0/spec/id"),
)
_HELD_DEVICES = "/state/running/0/placement/shares/0"
_PROTECTED = (
    twice("job", "/jobs/1/id", "/jobs/0/id"),
    twice("store", "/stores/2/domain", "/stores/0/domain"),
    *_links("/links/7"),
    contradiction(
        "a least number above the number of replicas", "/jobs/1", one_more("/jobs/1/least_replicas", "/jobs/1/replicas")
    ),
)


def _streams() -> Iterator[Row]:
    """What can be wrong with the second of two streams: its bytes are missing, under way or there."""
    stream = "/streams/1"
    missing, transfers = f"{stream}/missing", f"{stream}/transfers"
    for what, rows, more in (
        ("missing bytes", missing, {}),
        ("transfers", transfers, {f"{transfers}/1/left": 0.0}),
    ):
        yield contradiction(f"{what} without a byte", f"{rows}/1", _ending(f"{rows}/1", 1.0, more))
        yield contradiction(f"{what} that end before they begin", f"{rows}/1", _ending(f"{rows}/1", 0.5, more))
        yield contradiction(f"{what} beyond the last step", stream, _beyond(f"{rows}/1", f"{stream}/remote_steps"))
    yield contradiction("missing bytes that do not rise", missing, replaced(missing, lambda entries: entries[::-1]))
    yield contradiction("missing bytes that overlap", missing, put(f"{missing}/1/begin", 9 * STEP_BYTES))
    yield contradiction("transfers that overlap", stream, put(f"{transfers}/1/begin", 0.5 * STEP_BYTES))
    yield contradiction("a transfer of missing bytes", stream, put(f"{transfers}/1/end", 3.5 * STEP_BYTES))
    yield contradiction(
        "a transfer with more left than it has", f"{transfers}/1", put(f"{transfers}/1/left", 2.0 * STEP_BYTES)
    )


def _ending(rows: str, share: float, more: Mapping[str, Any]) -> Edit:
    """Bytes that end at a share of where they begin."""
    return lambda request: {**more, f"{rows}/end": share * value_at(request, f"{rows}/begin")}


def _beyond(rows: str, steps: str) -> Edit:
    """Bytes of the step behind the last one."""

    def edit(request: Any) -> Mapping[str, Any]:
        last = value_at(request, steps) * STEP_BYTES
        return {f"{rows}/begin": last, f"{rows}/end": last + STEP_BYTES}

    return edit


def _policies() -> Iterator[Row]:
    """What can be wrong with the policy in force of the second job, and with the last change that is planned for it."""
    change = "/jobs/1/planned/1"
    for what, policy in (("in force", "/jobs/1"), ("planned", change)):
        order = f"{policy}/order"
        yield unknown(f"domain in an order {what}", f"{order}/1")
        yield contradiction(f"an order {what} that leaves one out", order, _without_first(order))
        yield contradiction(f"an order {what} that holds one twice", order, copied(f"{order}/1", f"{order}/0"))
        yield contradiction(f"an order {what} with one beyond", order, _extended(order, "/domains/3/id"))
        yield from _periods(policy, f" {what}")
    parts = f"{change}/parts"
    for what, divided in (
        ("for a domain too few", lambda pair: [sum(pair)]),
        ("for a domain too many", lambda pair: [pair[1], 1, pair[0] - 1]),
        ("of another sum", lambda pair: [pair[0], pair[1] + 1]),
        ("of zero", lambda pair: [sum(pair), 0]),
    ):
        yield contradiction(f"planned parts {what}", change, replaced(parts, divided))
    yield contradiction(
        "a change that is planned for sooner than the one before",
        "/jobs/1/planned",
        lambda request: {f"{change}/after": value_at(request, "/jobs/1/planned/0/after") - 0.5},
    )


def _without_first(rows: str) -> Edit:
    """A list without its first entry."""
    return replaced(rows, lambda entries: entries[1:])


def _extended(rows: str, source: str) -> Edit:
    """A list with what stands at another place behind its entries."""
    return lambda request: {rows: [*value_at(request, rows), value_at(request, source)]}


def _periods(policy: str, when: str = "") -> Iterator[Row]:
    """A period of several steps with collectives that have none."""
    for collective in ("ring", "hierarchical"):
        edit = both(put(f"{policy}/collective", collective), put(f"{policy}/period", 5))
        yield contradiction(f"a period of 5 with {collective}{when}", policy, edit)


ROWS: Mapping[str, tuple[Row, ...]] = {
    INDICES: (
        unknown("device of a measurement", "/corpus/measurements/0/device"),
        unknown("task of a measurement", "/corpus/measurements/0/task"),
        unknown("reference", "/reference"),
        unknown("device asked for", "/devices/1"),
        unknown("task asked for", "/tasks/0"),
        unknown("device of a group", "/groups/0/members/0/device"),
        Row(
            "a group of one that stands later",
            UNKNOWN,
            "/groups/0/members/0/group",
            lambda request: {"/groups/0/members/0": {"group": value_at(request, "/groups/1/id"), "count": 1}},
        ),
        twice("group", "/groups/1/id", "/groups/0/id"),
        twice("device", "/corpus/devices/2/id", "/corpus/devices/0/id"),
        Row("task, twice", INVALID, "/corpus/tasks/2/id", like_first("/corpus/tasks/2")),
    ),
    PROBE_PLANS: (
        unknown("device of a candidate", "/candidates/1/device"),
        unknown("task of a candidate", "/candidates/1/task"),
        unknown("device of a target", "/targets/1/device"),
        unknown("task of a target", "/targets/1/task"),
    ),
    DEMANDS: (
        *_HARDWARE,
        unknown("hardware of a case", "/cases/1/hardware"),
        twice("case", "/cases/1/id", "/cases/0/id"),
        _experts("a model of a case", "/cases/1/model"),
    ),
    LAYOUTS: (*_HARDWARE, unknown("kind of hardware", "/kind"), _experts("a model", "/model")),
    SIZES: (twice("task", "/tasks/1/id", "/tasks/0/id"),),
    FORECASTS: (
        *_SERIES,
        *_FORESEEN,
        contradiction("horizons that do not rise", "/horizons", put("/horizons", [HOUR, 600.0])),
        contradiction("a horizon that stands twice", "/horizons", put("/horizons", [600.0, 600.0])),
        contradiction("levels that do not rise", "/levels", put("/levels", [0.1, 0.9, 0.5])),
        contradiction("a level that stands twice", "/levels", put("/levels", [0.5, 0.5])),
        contradiction("a level of zero", "/levels", put("/levels", [0.0, 0.5])),
        contradiction("a level of one", "/levels", put("/levels", [0.5, 1.0])),
    ),
    PHASES: (
        twice("curve", "/curves/1/id", "/curves/0/id"),
        contradiction(
            "steps of a curve that fall", "/curves/1", copied("/curves/1/points/2/step", "/curves/1/points/0/step")
        ),
        contradiction(
            "a step of a curve that stands twice",
            "/curves/1",
            copied("/curves/1/points/2/step", "/curves/1/points/1/step"),
        ),
    ),
    WAVEFORMS: _FORESEEN,
    PEAKS: (
        twice("load", "/loads/1/id", "/loads/0/id"),
        contradiction(
            "a load whose window is too short",
            "/loads/1",
            both(put("/loads/1/earliest", 8), put("/loads/1/planned", 8)),
        ),
    ),
    RESERVATIONS: (
        *_SERIES,
        *_FORESEEN,
        twice("tenant of a promise", "/qualities/1/tenant", "/qualities/0/tenant"),
    ),
    PLACEMENTS: (
        *_STATE,
        unknown("domain where a job runs", f"{_HELD_DEVICES}/domain"),
        unknown("accelerator on which a job runs", f"{_HELD_DEVICES}/accelerator"),
        unknown("node on which a job runs", f"{_HELD_DEVICES}/nodes/0/node"),
        unknown("domain of a planned share", "/shares/1/domain"),
        twice("job that waits and runs", "/state/running/0/spec/id", "/state/waiting/0/spec/id"),
        twice("domain of planned shares", "/shares/1/domain", "/shares/0/domain"),
    ),
    FRONTS: _STATE,
    PLANS: (*_STATE, unknown("domain of a forecast", "/forecast/0/domain")),
    ROUTES: (
        unknown("source of a demand", "/demands/1/sources/0"),
        unknown("target of a demand", "/demands/0/targets/0"),
        twice("demand", "/demands/1/id", "/demands/0/id"),
    ),
    ADJUSTMENTS: (
        unknown("domain of a share", "/jobs/0/shares/0/domain"),
        *_links("/links/7", known_ends=True),
        # the last link between domains of a job: either end of the contradiction may be named
        contradiction(
            "domains without a link",
            "/links",
            replaced("/links", lambda links: [*links[:5], *links[6:]]),
            instead="/jobs/2",
        ),
        repeated("domain", "/domains/4"),
        twice("job", "/jobs/1/id", "/jobs/0/id"),
        repeated("share", "/jobs/2/shares/3"),
        *_policies(),
    ),
    BACKUPS: (
        unknown("domain of a job", "/jobs/1/domain"),
        twice("domain", "/domains/2/id", "/domains/0/id"),
        *_PROTECTED,
    ),
    FAILOVERS: (
        unknown("store of a copy", "/jobs/1/copies/1/domain"),
        contradiction(
            "copy, twice", "/jobs/1/copies/1/domain", copied("/jobs/1/copies/1/domain", "/jobs/1/copies/0/domain")
        ),
        twice("node", "/nodes/11/id", "/nodes/0/id"),
        contradiction("a replica without a job", "/nodes/11", put("/nodes/11/replica", 0)),
        contradiction(
            "a job without a replica",
            "/nodes/6",
            replaced("/nodes/6", lambda node: {key: node[key] for key in node if key != "replica"}),
        ),
        contradiction("a fit node that is fenced", "/nodes/6", put("/nodes/6/fenced_in", 30.0)),
        contradiction("a failed node that is fenced", "/nodes/3", put("/nodes/3/fenced_in", 30.0)),
        contradiction("a replica beyond the last", "/nodes/6", copied("/nodes/6/replica", "/jobs/1/replicas")),
        contradiction(
            "a node in another domain than its job", "/nodes/6", copied("/nodes/6/domain", "/nodes/9/domain")
        ),
        contradiction(
            "a replica with more nodes than it needs",
            "/nodes",
            both(copied("/nodes/11/job", "/nodes/6/job"), copied("/nodes/11/replica", "/nodes/6/replica")),
        ),
        *_PROTECTED,
    ),
    SHARDS: (
        unknown("source of a transfer", "/streams/1/transfers/1/source"),
        twice("stream", "/streams/1/id", "/streams/0/id"),
        twice("room", "/rooms/1/domain", "/rooms/0/domain"),
        contradiction("link, twice", "/links/2", copied("/links/2/source", "/links/0/source")),
        contradiction("a link to its source", "/links/2", copied("/links/2/target", "/links/2/source")),
        *_streams(),
    ),
    COLLECTIVES: (
        *_links("/links/6", known_ends=True),
        unknown("domain in use", "/in_use/order/1"),
        contradiction("domain, twice", "/domains", _extended("/domains", "/domains/0")),
        contradiction("domains without a link", "/links", _without_first("/links")),
        contradiction("an order that leaves one out", "/in_use/order", _without_first("/in_use/order")),
        contradiction("an order that holds one twice", "/in_use/order", copied("/in_use/order/1", "/in_use/order/0")),
        *_periods("/in_use"),
    ),
}
"""What can be wrong with a request, one thing each, by operation."""


@dataclass(frozen=True)
class SpoiltRequest:
    """A request with one thing wrong, and what came.

    Attributes:
        path: Operation.
        row: What is wrong.
        answer: The exchange.
    """

    path: str
    row: Row
    answer: Answer

    def claims(self) -> Iterator[Claim]:
        """It is refused with the problem that it calls for, and the place is named."""
        what = f"{self.row.what} ({self.path})"
        yield answered(REQUIREMENT, self.answer, 422, what, problem=self.row.problem)
        pointers = [str(error.get("pointer")) for error in self.answer.items("errors") if isinstance(error, dict)]
        named = any(map(self.row.names, pointers))
        yield holds(REQUIREMENT, named, f"{what}: the place {self.row.where}", pointers, self.answer)


@dataclass(frozen=True)
class SpoiltRequests:
    """What came of all that was asked.

    Attributes:
        requests: With one thing wrong each.
        unanswered: Why nothing was asked of an operation; empty where all right requests were answered.
    """

    requests: tuple[SpoiltRequest, ...]
    unanswered: tuple[SetUpFailure, ...] = ()


def observe(episode: Episode) -> SpoiltRequests:
    """Ask each service as it should be asked, then with one thing wrong each time."""
    bodies = requests(episode.random, episode.naming)
    spoilt, unanswered = list[SpoiltRequest](), list[SetUpFailure]()
    for service in decision_services(episode):
        path = service.removeprefix("POST ")
        try:
            episode.set_up("POST", path, bodies[path])
        except SetUpFailure as failed:
            unanswered.append(failed)
            continue
        spoilt += [SpoiltRequest(path, row, episode.ask("POST", path, row.spoil(bodies[path]))) for row in ROWS[path]]
    return SpoiltRequests(tuple(spoilt), tuple(unanswered))


def judge(observation: SpoiltRequests) -> list[Finding]:
    """Claims about every row.

    Raises:
        SetUpFailure: An operation did not answer what is right, and nothing speaks against the others.
    """
    claims = [claim for request in observation.requests for claim in request.claims()]
    if observation.unanswered and all(claim.met for claim in claims):
        raise observation.unanswered[0]
    return list(claims)


CHECK = Check("com_names", (REQUIREMENT,), observe, judge)
