"""Decisions and computations that a client asks for: scheduling, index, demand, forecast, resilience.

1. Decisions of a scheduler, allocations, and the actions of a domain.
2. Compute indices and probe plans.
3. Demands of trainings, layouts and sizes of tasks.
4. Forecasts of demand, phases of trainings, and what follows from both.
5. How training data and gradients travel between domains.
6. How jobs recover from faults.
7. How running jobs follow load and latency.
"""

from collections.abc import Iterator
from functools import partial

from kuayu.client.connection import Connection, path_of
from kuayu.client.placement_session import PlacementSession
from kuayu_schemas.models import (
    Action,
    ActionResult,
    Adjustment,
    AdjustmentRequest,
    Allocation,
    AllocationPage,
    AllocationPlan,
    AllocationPlanRequest,
    AllocationRecord,
    BackupPlan,
    BackupRequest,
    CollectiveChoice,
    CollectiveRequest,
    FailoverPlan,
    FailoverRequest,
    Fault,
    ForecastReport,
    ForecastRequest,
    IndexReport,
    IndexRequest,
    JobRecord,
    LayoutReport,
    LayoutRequest,
    OpenActions,
    ParetoFront,
    ParetoRequest,
    PeakPlan,
    PeakRequest,
    PhaseReport,
    PhaseRequest,
    PlacementReport,
    PlacementRequest,
    ProbePlan,
    ProbePlanRequest,
    ReservationReport,
    ReservationRequest,
    RoutePlan,
    RouteRequest,
    ShardPlan,
    ShardPlanRequest,
    SizingReport,
    SizingRequest,
    TrainingDemandReport,
    TrainingDemandRequest,
    Waveform,
    WaveformRequest,
)

_JSON = {"content-type": "application/json"}


class Scheduling(Connection):
    """Where jobs run, and what is held for them.

    Placements, fronts, plans and routes are decided on what the request holds. A name that the request does not hold is
    a :class:`RefusedError` that points to it.
    """

    def place(self, request: PlacementRequest) -> PlacementReport:
        """What to do with the jobs of a state, to be carried out in the order of the answer."""
        return self._ask(PlacementReport, "/v1/placements", request)

    def placement_session(self) -> PlacementSession:
        """What asks for placements epoch after epoch, and sends only what has changed in the state."""
        return PlacementSession(partial(self._read, PlacementReport, "POST", "/v1/placements", headers=_JSON))

    def pareto_front(self, request: ParetoRequest) -> ParetoFront:
        """The best compromises between the period of jobs and the money for communication, the quickest first.

        A search over hundreds of jobs goes on for some ten seconds: state a ``time_limit`` shorter than the timeout of
        this client, or give the client a longer one.
        """
        return self._ask(ParetoFront, "/v1/pareto-fronts", request)

    def allocation_plan(self, request: AllocationPlanRequest) -> AllocationPlan:
        """How much of which capacity to use over a horizon, and how to buy it."""
        return self._ask(AllocationPlan, "/v1/allocation-plans", request)

    def routes(self, request: RouteRequest) -> RoutePlan:
        """Paths for demands, and which of the places at their ends."""
        return self._ask(RoutePlan, "/v1/routes", request)

    def put_allocation(self, allocation: Allocation) -> AllocationRecord:
        """Have devices held in all domains of a placement or in none; :meth:`allocation` tells how that goes.

        An allocation is immutable. The same one may be put again; another of its name is a :class:`RefusedError`.
        """
        return self._put(AllocationRecord, "allocations", allocation)

    def allocation(self, identifier: str) -> AllocationRecord:
        """An allocation as it stands; :class:`NotFoundError` where there is none."""
        return self._read(AllocationRecord, "GET", path_of("allocations", identifier))

    def delete_allocation(self, identifier: str) -> AllocationRecord:
        """Have what is held given back, and what is being asked for let go."""
        return self._read(AllocationRecord, "DELETE", path_of("allocations", identifier))

    def allocations(self, *, page_size: int | None = None) -> Iterator[AllocationRecord]:
        """All allocations in order of name, page after page, as they stood when the first was asked for."""
        query = {} if page_size is None else {"limit": str(page_size)}
        while True:
            page = self._read(AllocationPage, "GET", "/v1/allocations", query)
            yield from page.items
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def open_actions(self, domain: str, *, wait_s: float = 0.0) -> list[Action]:
        """What a domain has been asked to do and has not answered, the oldest first.

        Args:
            domain: The domain.
            wait_s: Seconds to wait for something where there is nothing, at most 30.
        """
        query = {"domain": domain, "wait": f"{wait_s:g}"}
        return self._read(OpenActions, "GET", "/v1/actions", query, patience_s=wait_s).items

    def post_action_result(self, result: ActionResult) -> AllocationRecord | Fault | JobRecord:
        """Say what became of an action; may be repeated, the first result counts.

        Returns:
            How that stands then because of which the action was asked for: an allocation, a fault, or a job.
        """
        kinds: list[type[AllocationRecord | Fault | JobRecord]] = [AllocationRecord, Fault, JobRecord]
        return self._ask(kinds, "/v1/action-results", result)


class Indices(Connection):
    """What devices are worth for tasks."""

    def compute_indices(self, request: IndexRequest) -> IndexReport:
        """How many of a reference device other devices are worth for training tasks.

        The service keeps nothing of the request, so all that it is to know has to be in the corpus. A name that the
        corpus does not hold is a :class:`RefusedError` that points to it.
        """
        return self._ask(IndexReport, "/v1/compute-indices", request)

    def probe_plan(self, request: ProbePlanRequest) -> ProbePlan:
        """Which of the candidates to measure to make the targets surest, the most telling first."""
        return self._ask(ProbePlan, "/v1/probe-plans", request)


class Demands(Connection):
    """What trainings and tasks need.

    Everything is computed from what the request holds; the service keeps nothing of it. A name that the request does
    not hold is a :class:`RefusedError` that points to it; a training that cannot run is an answer that says why.
    """

    def training_demands(self, request: TrainingDemandRequest) -> TrainingDemandReport:
        """Work, memory, traffic and time of each case, in their order."""
        return self._ask(TrainingDemandReport, "/v1/training-demands", request)

    def layouts(self, request: LayoutRequest) -> LayoutReport:
        """The quickest strategies of a model on so many accelerators, the quickest first."""
        return self._ask(LayoutReport, "/v1/layouts", request)

    def task_sizes(self, request: SizingRequest) -> SizingReport:
        """What each task should be given, in their order."""
        return self._ask(SizingReport, "/v1/task-sizes", request)


class Forecasts(Connection):
    """What will be needed, and what to do about it.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def forecasts(self, request: ForecastRequest) -> ForecastReport:
        """What each series will show after each horizon, with quantiles."""
        return self._ask(ForecastReport, "/v1/forecasts", request)

    def training_phases(self, request: PhaseRequest) -> PhaseReport:
        """In which phase each training is at its last step that is known."""
        return self._ask(PhaseReport, "/v1/training-phases", request)

    def waveform(self, request: WaveformRequest) -> Waveform:
        """Demand over a coming period, from the course of jobs."""
        return self._ask(Waveform, "/v1/waveforms", request)

    def peak_plan(self, request: PeakRequest) -> PeakPlan:
        """When to do movable work so that peaks are low."""
        return self._ask(PeakPlan, "/v1/peak-plans", request)

    def reservations(self, request: ReservationRequest) -> ReservationReport:
        """How many devices to reserve for tenants."""
        return self._ask(ReservationReport, "/v1/reservations", request)


class Transfers(Connection):
    """What to fetch, and by which collective to agree.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def shard_plan(self, request: ShardPlanRequest) -> ShardPlan:
        """What training data to fetch, from where, in what pieces and how early."""
        return self._ask(ShardPlan, "/v1/shard-plans", request)

    def collective(self, request: CollectiveRequest) -> CollectiveChoice:
        """By which collective replicas are to agree."""
        return self._ask(CollectiveChoice, "/v1/collectives", request)


class Recovery(Connection):
    """What to hold against faults, and how jobs go on after one.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def backup_plan(self, request: BackupRequest) -> BackupPlan:
        """How many spare nodes and which copies of checkpoints to hold."""
        return self._ask(BackupPlan, "/v1/backup-plans", request)

    def failover_plan(self, request: FailoverRequest) -> FailoverPlan:
        """How jobs go on, and on which nodes."""
        return self._ask(FailoverPlan, "/v1/failover-plans", request)


class Adjustments(Connection):
    """How the policies of running jobs are adjusted.

    Everything is computed from what the request holds; the service keeps nothing of it.
    """

    def adjust(self, request: AdjustmentRequest) -> Adjustment:
        """Whether and how to adjust the policies of running jobs."""
        return self._ask(Adjustment, "/v1/adjustments", request)
