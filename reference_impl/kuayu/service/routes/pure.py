"""Routes of pure computations: the body goes to a worker, what comes back is the answer.

1. An answer follows from what travels in the request; nothing is kept, so a request may be repeated freely.
2. Each operation is a row of ``INDEX_COMPUTATIONS`` or ``COMPUTATIONS``, in the order of the OpenAPI document; a row
   has all that the document says of it, and the function by which a worker answers it. Those on a scheduling state,
   placements, Pareto fronts, allocation plans and routes, are written out.
3. What may rest on documents that the service was sent before is answered by the tenant's own worker
   (``decide_on_bases``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Annotated, TypeVarTuple, Unpack

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from prometheus_client import Counter

from kuayu.scheduling import Scheduler
from kuayu.service import computations, concurrency, openapi, requests, scheduling
from kuayu.service.computations import ComputedAnswer
from kuayu.service.metrics import Metrics
from kuayu.service.problems import MEDIA_TYPE
from kuayu.service.requests import NoQuery
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu.service.settings import Settings

Ts = TypeVarTuple("Ts")


async def decide(
    request: Request,
    operation: str,
    decide: Callable[[bytes, Unpack[Ts]], ComputedAnswer],
    *arguments: *Ts,
    search: bool = False,
) -> ComputedAnswer:
    """Have a worker answer a request.

    Args:
        request: The request.
        operation: Name of the operation, for the metrics.
        decide: Function of a module, from the body and the arguments.
        arguments: What it is called with after the body.
        search: Whether it may take seconds, and so waits for a worker of its kind.

    Raises:
        ProblemException: unauthorised, unsupported-media-type, payload-too-large or overloaded.
    """
    runtime = runtime_of(request)
    tenant = tenant_of(request)
    body = await requests.read(request, "application/json", runtime.settings.max_body)
    workers = runtime.searches if search else runtime.decisions
    return await concurrency.while_wanted(request, workers.compute(operation, decide, body, *arguments, tenant=tenant))


async def decide_on_bases(
    request: Request,
    operation: str,
    decide: Callable[[bytes, str, int, int], ComputedAnswer],
    may_need_bases: Callable[[bytes], bool],
) -> ComputedAnswer:
    """Have a request answered that may rest on what the service was sent before.

    Args:
        request: The request.
        operation: Name of the operation, for the metrics.
        decide: Function of a module, from the body, the tenant, the bytes that its worker may hold for patches, and
            those of the largest document.
        may_need_bases: Whether the body may rest on that; the tenant's own worker then answers it, and any worker else.

    Raises:
        ProblemException: unauthorised, unsupported-media-type, payload-too-large or overloaded.
    """
    runtime = runtime_of(request)
    tenant = tenant_of(request)
    body = await requests.read(request, "application/json", runtime.settings.max_body)
    workers = runtime.holders(tenant) if may_need_bases(body) else runtime.decisions
    capacity, most = runtime.settings.base_bytes, runtime.settings.max_body
    computed = workers.compute(operation, decide, body, tenant, capacity, most, tenant=tenant)
    return await concurrency.while_wanted(request, computed)


def answer(decided: ComputedAnswer) -> Response:
    """The answer of a worker as that of the service."""
    failed = decided.status >= 400  # noqa: PLR2004 - where HTTP's failures begin
    return Response(decided.body, decided.status, media_type=MEDIA_TYPE if failed else "application/json")


@dataclass(frozen=True, slots=True)
class Computation:
    """An operation that computes its answer from its request alone.

    Attributes:
        path: Of HTTP.
        operation: Its name in the OpenAPI document and for the metrics.
        tag: Which part of the interface it belongs to.
        request: Class of the body.
        report: Class of the answer.
        decide: What a worker calls with the body, and with the arguments after it.
        summary: What it answers.
        answer: What the answer holds.
        description: What it is, and that nothing is kept; that a request may be repeated freely is added.
        counter: Of the metrics, counts what was answered by its labels.
        names: Whether the request may name what it does not hold, which is refused.
        arguments: Of ``decide`` after the body, from what the operator set.
    """

    path: str
    operation: str
    tag: str
    request: str
    report: str
    decide: Callable[..., ComputedAnswer]
    summary: str
    answer: str
    description: str
    counter: Callable[[Metrics], Counter] | None = None
    names: bool = False
    arguments: Callable[[Settings], tuple[int, ...]] = lambda _: ()


INDEX_COMPUTATIONS: tuple[Computation, ...] = (
    Computation(
        "/v1/compute-indices",
        "computeIndices",
        "index",
        "IndexRequest",
        "IndexReport",
        computations.compute_indices,
        summary="How many of a reference device others are worth for each task",
        answer="An index for each device and task, and for each group and task.",
        description="Compute indices of devices and groups; nothing is kept",
        counter=lambda metrics: metrics.indices,
        names=True,
        arguments=lambda settings: (settings.max_indices,),
    ),
    Computation(
        "/v1/probe-plans",
        "planProbes",
        "index",
        "ProbePlanRequest",
        "ProbePlan",
        computations.plan_probes,
        summary="Which measurements would make indices surest",
        answer="Measurements to make, the most telling first.",
        description="A plan of probes; nothing is kept",
        names=True,
    ),
)
"""Compute indices and probe plans, on a corpus that travels in the request."""

COMPUTATIONS: tuple[Computation, ...] = (
    Computation(
        "/v1/training-demands",
        "demandTrainings",
        "demand",
        "TrainingDemandRequest",
        "TrainingDemandReport",
        computations.demand_trainings,
        summary="What trainings need of compute, memory and network",
        answer="Demands in the order of the cases.",
        description="Demands of trainings; nothing is kept",
        counter=lambda metrics: metrics.training_demands,
        names=True,
    ),
    Computation(
        "/v1/layouts",
        "rankLayouts",
        "demand",
        "LayoutRequest",
        "LayoutReport",
        computations.rank_layouts,
        summary="The quickest strategies of a model on so many accelerators",
        answer="Strategies that can run, the quickest first.",
        description="Strategies of a model; nothing is kept",
        names=True,
    ),
    Computation(
        "/v1/task-sizes",
        "sizeTasks",
        "demand",
        "SizingRequest",
        "SizingReport",
        computations.size_tasks,
        summary="What tasks need, as those show that ran before",
        answer="Sizes in the order of the tasks.",
        description="Sizes of tasks; nothing is kept",
        counter=lambda metrics: metrics.sized_tasks,
    ),
    Computation(
        "/v1/forecasts",
        "forecastDemand",
        "forecast",
        "ForecastRequest",
        "ForecastReport",
        computations.forecast,
        summary="What series of demand will show after each horizon",
        answer="Forecasts in the order of the series.",
        description="Forecasts with their quantiles; nothing is kept",
    ),
    Computation(
        "/v1/training-phases",
        "recogniseTrainingPhases",
        "forecast",
        "PhaseRequest",
        "PhaseReport",
        computations.recognise_phases,
        summary="In which phase trainings are",
        answer="Phases in the order of the curves.",
        description="Phases of trainings; nothing is kept",
        counter=lambda metrics: metrics.training_phases,
    ),
    Computation(
        "/v1/waveforms",
        "makeWaveform",
        "forecast",
        "WaveformRequest",
        "Waveform",
        computations.make_waveform,
        summary="How demand runs over a coming period",
        answer="Demand from now, one point each step.",
        description="The waveform of jobs; nothing is kept",
    ),
    Computation(
        "/v1/peak-plans",
        "planPeaks",
        "forecast",
        "PeakRequest",
        "PeakPlan",
        computations.plan_peaks,
        summary="When to do movable work so that peaks are low",
        answer="Steps in which each load runs, in the order of the loads.",
        description="A plan that lowers peaks; nothing is kept",
    ),
    Computation(
        "/v1/reservations",
        "reserveForTenants",
        "forecast",
        "ReservationRequest",
        "ReservationReport",
        computations.reserve,
        summary="How many devices to reserve for tenants",
        answer="Reservations in the order of the series.",
        description="What to reserve; nothing is held by that or kept",
    ),
    Computation(
        "/v1/shard-plans",
        "planShards",
        "resilience",
        "ShardPlanRequest",
        "ShardPlan",
        computations.plan_shards,
        summary="What training data to fetch, from where, in what pieces and how early",
        answer="Shards in the order in which each link is to take its own.",
        description="A plan of transfers; none is begun by that and nothing is kept",
    ),
    Computation(
        "/v1/collectives",
        "chooseCollective",
        "resilience",
        "CollectiveRequest",
        "CollectiveChoice",
        computations.choose_collective,
        summary="By which collective replicas are to agree",
        answer="The choice, with what was looked at.",
        description="The choice of a collective; nothing is kept",
        counter=lambda metrics: metrics.collective_choices,
    ),
    Computation(
        "/v1/backup-plans",
        "planBackups",
        "resilience",
        "BackupRequest",
        "BackupPlan",
        computations.plan_backups,
        summary="How many spare nodes and which copies of checkpoints to hold against faults",
        answer="Pools in the order of domains, and copies.",
        description="A plan of what to hold; nothing is held by that and nothing is kept",
    ),
    Computation(
        "/v1/failover-plans",
        "planFailover",
        "resilience",
        "FailoverRequest",
        "FailoverPlan",
        computations.plan_failover,
        summary="How jobs go on after faults, and on which nodes",
        answer="Recoveries in the order of the request's jobs.",
        description="A plan of recoveries; nothing is begun by that and nothing is kept",
        counter=lambda metrics: metrics.recoveries,
    ),
    Computation(
        "/v1/adjustments",
        "planAdjustments",
        "resilience",
        "AdjustmentRequest",
        "Adjustment",
        computations.plan_adjustments,
        summary="Whether and how to adjust running jobs as load and latency change",
        answer="What has changed, and jobs in the order of the request.",
        description="Changes of policies; none is carried out by that and nothing is kept",
        counter=lambda metrics: metrics.adjustments,
    ),
)
"""Demands, forecasts, and what keeps trainings running: transfers, recovery and adjustments."""


def add_route(router: APIRouter, computation: Computation) -> None:
    """Have a router answer a computation."""

    async def compute(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
        runtime = runtime_of(request)
        arguments = computation.arguments(runtime.settings)
        decided = await decide(request, computation.operation, computation.decide, *arguments)
        if computation.counter is not None:
            counter = computation.counter(runtime.metrics)
            for labels, number in decided.counted.items():
                counter.labels(*labels).inc(number)
        return answer(decided)

    router.post(
        computation.path,
        name=computation.decide.__name__,
        operation_id=computation.operation,
        summary=computation.summary,
        description=f"{computation.description}, so a request may be repeated freely.",
        tags=[computation.tag],
        responses={
            200: openapi.answer(computation.report, computation.answer),
            **openapi.problems(*openapi.BODY, *(("unknown-reference",) if computation.names else ())),
        },
        openapi_extra=openapi.body(computation.request),
    )(compute)


index_router = APIRouter()
"""Compute indices and probe plans; listed by the document before placements, the others after jobs."""

router = APIRouter()

for _computation in INDEX_COMPUTATIONS:
    add_route(index_router, _computation)
for _computation in COMPUTATIONS:
    add_route(router, _computation)


placement_router = APIRouter()


@placement_router.post(
    "/v1/placements",
    operation_id="placeJobs",
    summary="What to do with the jobs of a state",
    tags=["scheduling"],
    responses={
        200: openapi.answer("PlacementReport", "What is to be done, in this order."),
        **openapi.problems(*openapi.BODY, "unknown-reference", "unknown-base"),
    },
    openapi_extra=openapi.body("PlacementRequest"),
)
async def place_jobs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Where jobs run, and why where that is asked for; no devices are held, so a request may be repeated freely.

    A state whose digest is stated may be held for a while, so that a patch can follow.
    """
    runtime = runtime_of(request)
    metrics = runtime.metrics
    place = partial(scheduling.place, learned=runtime.settings.scheduler is Scheduler.PPO)
    decided = await decide_on_bases(request, "placeJobs", place, scheduling.may_need_bases)
    for labels, number in decided.counted.items():
        metrics.placements.labels(*labels).inc(number)
    if decided.fallback:
        metrics.placement_fallbacks.inc()
    return answer(decided)


@placement_router.post(
    "/v1/pareto-fronts",
    operation_id="findParetoFront",
    summary="The best compromises between the period of jobs and the money for communication",
    tags=["scheduling"],
    responses={
        200: openapi.answer("ParetoFront", "Schedules, from the quickest to the cheapest."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("ParetoRequest"),
)
async def find_front(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Schedules that no other beats in both ends; nothing is kept, so a request may be repeated freely.

    Without a time limit the search takes up to some ten seconds; with one, what has been found by then is answered.
    """
    find_front = partial(scheduling.find_front, arrived=monotonic())
    return answer(await decide(request, "findParetoFront", find_front, search=True))


@placement_router.post(
    "/v1/allocation-plans",
    operation_id="planAllocation",
    summary="How much of which capacity to use, and how to buy it",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationPlan", "Capacity by domain, accelerator and way of buying."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("AllocationPlanRequest"),
)
async def plan_allocation(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A plan over a horizon; nothing is kept, so a request may be repeated freely."""
    return answer(await decide(request, "planAllocation", scheduling.plan_allocation, search=True))


@placement_router.post(
    "/v1/routes",
    operation_id="findRoutes",
    summary="Paths, and the places at their ends",
    tags=["scheduling"],
    responses={
        200: openapi.answer("RoutePlan", "Paths in the order of the demands."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("RouteRequest"),
)
async def find_routes(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Paths for demands; nothing is kept, so a request may be repeated freely."""
    return answer(await decide(request, "findRoutes", scheduling.find_routes))
