"""A small request for each decision service in which nothing is wrong, with a name in every place that may hold one.

1. There are two of everything that has a name, so that one can be given the name of the other.
2. Names tell nothing, and numbers are drawn, so that no two runs ask the same.
3. What is allowed and easily taken for a fault is in the requests: a store in a domain without jobs, a node of a job
   that is not in the request, a link that leads back nowhere.
4. No library of numbers is needed: a light installation tests COM (:mod:`kuayu_conformance.extras`).

Sources: the classes of requests in ``spec/model``; clauses IDX to RES for what belongs together.
"""

from collections.abc import Mapping
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.checks.demand.demand_requests import DEMANDS, LAYOUTS, SIZES, case, hardware, model, strategy
from kuayu_conformance.checks.kit.decisions import name, present, revision
from kuayu_conformance.checks.resilience.recovery_invariants import FAILED, FailoverRequestBuilder, fenced
from kuayu_conformance.checks.resilience.resilience_requests import ADJUSTMENTS, BACKUPS, COLLECTIVES, FAILOVERS, SHARDS
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
from kuayu_conformance.episode import instant

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
