"""Pure computations that workers run: from the bytes of a request to those of its answer, or to a problem.

1. A refusal of an algorithm becomes a problem with JSON Pointers; whatever is more than the limits is refused.
2. Compute indices and probe plans.
3. Demands of trainings, layouts and sizes of tasks.
4. Forecasts, phases, waveforms, peaks and reservations.
5. Shard plans and choices of collectives. How much is answered at once is limited by
   :mod:`kuayu.resilience.shard_planner` and :mod:`kuayu.resilience.collectives`.
6. Backup plans and failover plans. How much is answered at once is limited by
   :mod:`kuayu.resilience.recovery_validation`.
7. Adjustments of running jobs. How much is answered at once is limited by
   :mod:`kuayu.resilience.adjustment_planner`.
8. A pass of the control loop, from the bytes of a snapshot to the steps that follow.
9. What the schema has judged stays what JSON made of it, and no objects are made; the processes of
   :mod:`kuayu.service.concurrency` run all of it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from pydantic import ValidationError

from kuayu.jobs.decisions import PassResult, decide
from kuayu.jobs.federation import FederationSnapshot
from kuayu.refusals import Refusal, UnknownName
from kuayu.service import instants, requests
from kuayu.service.problems import Place, ProblemException, invalid_body, unknown_references
from kuayu_schemas import schema
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import Corpus, IndexRequest, ProbePlanRequest

if TYPE_CHECKING:
    from kuayu_schemas import documents


@dataclass(frozen=True, slots=True)
class ComputedAnswer:
    """An answer, and what the metrics are to know of it.

    Attributes:
        status: Of HTTP; a problem from 400 on.
        body: JSON.
        counted: How much of the answer has each combination of labels of the operation's own counter.
        fallback: Whether a simpler method had to answer.
    """

    status: int
    body: bytes
    counted: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    fallback: bool = False


def or_problem(decide: Callable[[], ComputedAnswer]) -> ComputedAnswer:
    """What is decided, or the problem that stands in the way."""
    try:
        return decide()
    except ProblemException as error:
        problem = error
    except Refusal as error:
        refused = unknown_references if isinstance(error, UnknownName) else invalid_body
        problem = refused(*(Place(detail, pointer) for pointer, detail in error.pointers))
    return ComputedAnswer(problem.status, orjson.dumps(problem.to_wire()))


def answered(
    body: bytes,
    class_name: str,
    answer: Callable[[Any], Mapping[str, Any]],
    count: Callable[[Any], Counter[tuple[str, ...]]] = lambda _: Counter(),
) -> ComputedAnswer:
    """What is made of a request that has the form of a class, and what of it is counted."""

    def decide() -> ComputedAnswer:
        report = answer(requests.parse(body, class_name))
        return ComputedAnswer(200, orjson.dumps(report), count(report))

    return or_problem(decide)


def check(number: int, most: int, of: str, fewer: str) -> None:
    """Refuse what is more than the service takes on, and say what to name fewer of.

    Raises:
        ProblemException: invalid-body.
    """
    if number > most:
        raise invalid_body(Place(f"{number} {of}, where {most} are the most; name fewer {fewer}"))


def check_instants(pairs: Iterable[tuple[str, str]]) -> None:
    """Refuse instants whose form is right although there is no such day.

    Args:
        pairs: JSON Pointer and text of each.

    Raises:
        ProblemException: invalid-body.
    """
    faults = []
    for pointer, text in pairs:
        try:
            instants.to_milliseconds(text)
        except ValueError as error:
            faults.append(Place(f"there is no such instant: {error}", pointer))
    if faults:
        raise invalid_body(*faults)


RequestT = TypeVar("RequestT", bound=KuayuModel)

MAX_TASKS = 200
"""Most tasks of a corpus that may have measurements; calibration inverts a matrix of several rows for each."""

MAX_PAIRS = 20_000
"""Most pairs of device and task that may have measurements; repetitions of a pair cost next to nothing."""

MAX_MEMBERS = 1_000_000
"""Most members of groups, over all groups and each task asked for; each is put together by itself."""

MAX_STEPS = 10_000_000
"""Most candidates × targets × probes of a plan, each of which is looked at."""

MAX_CELLS = 4_000
"""Most candidates and targets together, whose covariances are kept for all of them at once."""


def warm_indices() -> None:
    """Load what the first request will need: the algorithm and the validators."""
    from kuayu import index  # noqa: F401

    for model in (IndexRequest, ProbePlanRequest):
        schema.is_valid(model.__name__, {})


def compute_indices(body: bytes, most: int) -> ComputedAnswer:
    """Answer a request for compute indices.

    Args:
        body: The request, class IndexRequest.
        most: How many indices an answer may hold.
    """
    from kuayu.index import compute_indices

    def decide() -> ComputedAnswer:
        request = _read(body, IndexRequest)
        _check_size(request, most)
        _check_corpus(request.corpus)
        report = compute_indices(request)
        outcomes = ((entry.basis.value, "abstained" if entry.abstained else "given") for entry in report.indices)
        counted: Counter[tuple[str, ...]] = Counter(outcomes)
        return ComputedAnswer(200, report.to_json(), counted)

    return or_problem(decide)


def plan_probes(body: bytes) -> ComputedAnswer:
    """Answer a request for a probe plan.

    Args:
        body: The request, class ProbePlanRequest.
    """
    from kuayu.index import plan_probes

    def decide() -> ComputedAnswer:
        request = _read(body, ProbePlanRequest)
        steps = len(request.candidates) * len(request.targets) * request.probes
        check(steps, MAX_STEPS, "steps of candidates × targets × probes", "candidates, targets or probes")
        check(len(request.candidates) + len(request.targets), MAX_CELLS, "cells", "candidates or targets")
        _check_corpus(request.corpus)
        return ComputedAnswer(200, plan_probes(request).to_json())

    return or_problem(decide)


def _read(body: bytes, model: type[RequestT]) -> RequestT:
    """Read a body as an object of the model.

    The object is made from the bytes, which is quicker than from the value that the schema has judged.

    Raises:
        ProblemException: malformed-json or invalid-body.
    """
    requests.parse(body, model.__name__)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:  # the form of an instant is right but there is no such day
        places = [Place(entry["msg"], "".join(f"/{step}" for step in entry["loc"])) for entry in error.errors()]
        raise invalid_body(*places) from error


def _check_size(request: IndexRequest, most: int) -> None:
    """Hold the length and the work of the answer, products that the length of the body does not show, against limits.

    Raises:
        ProblemException: invalid-body.
    """
    corpus = request.corpus
    groups = request.groups or ()
    devices = len(corpus.devices if request.devices is None else request.devices)
    tasks = len(corpus.tasks if request.tasks is None else request.tasks)
    check((devices + len(groups)) * tasks, most, "indices", "devices, groups or tasks")
    members = sum(len(group.members) for group in groups)
    check(members * tasks, MAX_MEMBERS, "members of groups over all tasks", "members or tasks")


def _check_corpus(corpus: Corpus) -> None:
    """Hold the work that calibration takes against limits.

    Raises:
        ProblemException: invalid-body.
    """
    pairs = {(measurement.device, measurement.task) for measurement in corpus.measurements}
    check(len({task for _, task in pairs}), MAX_TASKS, "measured tasks", "tasks in the measurements")
    check(len(pairs), MAX_PAIRS, "measured pairs of device and task", "devices or tasks in the measurements")


MAX_TRAININGS = 12_000
"""Most cases, phases of cases and measured runs together; each goes through the law."""

MAX_KINDS = 500
"""Most kinds of tasks that have run; of each a model is made."""

DEMAND_REQUESTS = ("TrainingDemandRequest", "LayoutRequest", "SizingRequest")


def warm_demands() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    from kuayu.demand import demand_report, search, sizing  # noqa: F401

    for name in DEMAND_REQUESTS:
        schema.is_valid(name, {})


def demand_trainings(body: bytes) -> ComputedAnswer:
    """Answer a request for demands, class TrainingDemandRequest."""

    def decide() -> ComputedAnswer:
        from kuayu.demand import demand_report

        request = requests.parse(body, "TrainingDemandRequest")
        phases = sum(len(case.get("phases", ())) for case in request["cases"])
        _check_trainings(request, len(request["cases"]) + phases)
        report = demand_report.demand(request)
        counted: Counter[tuple[str, ...]] = Counter(
            ("fits" if demand["fits"] else "obstacles",) for demand in report["demands"]
        )
        return ComputedAnswer(200, orjson.dumps(report), counted)

    return or_problem(decide)


def rank_layouts(body: bytes) -> ComputedAnswer:
    """Answer a request for layouts, class LayoutRequest."""

    def decide() -> ComputedAnswer:
        from kuayu.demand import search

        request = requests.parse(body, "LayoutRequest")
        _check_trainings(request, 1)
        return ComputedAnswer(200, orjson.dumps(search.rank(request)))

    return or_problem(decide)


def size_tasks(body: bytes) -> ComputedAnswer:
    """Answer a request for sizes of tasks, class SizingRequest."""

    def decide() -> ComputedAnswer:
        from kuayu.demand import sizing

        request = requests.parse(body, "SizingRequest")
        check(len({entry["kind"] for entry in request["history"]}), MAX_KINDS, "kinds of tasks in the history", "kinds")
        report = sizing.size(request)
        counted: Counter[tuple[str, ...]] = Counter(
            ("as-asked" if reported["recommended"] == task["requested"] else "less",)
            for reported, task in zip(report["tasks"], request["tasks"], strict=True)
        )
        return ComputedAnswer(200, orjson.dumps(report), counted)

    return or_problem(decide)


def _check_trainings(request: Mapping[str, Any], others: int) -> None:
    """Hold the work that a request makes against the limit.

    Raises:
        ProblemException: invalid-body.
    """
    check(len(request.get("runs", ())) + others, MAX_TRAININGS, "runs, cases and phases", "runs, cases or phases")


MAX_FORECAST_POINTS = 100_000
"""Most series × horizons of a forecast; each is told with its quantiles."""

MAX_FORECAST_QUANTILES = 1_000_000
"""Most series × horizons × levels of a forecast."""

MAX_PERIODS = 200_000
"""Most periods of jobs; when each begins and ends is uncertain."""

MAX_WAVE_POINTS = 100_000
"""Most points of a waveform."""

MAX_WAVE_CONTRIBUTIONS = 100_000_000
"""Most points of a waveform × periods of jobs; each adds to each."""

MAX_LOAD_STEPS = 1_000_000
"""Most steps that loads run, over all loads; each is told."""

MAX_LOAD_POSITIONS = 50_000_000
"""Most loads × steps of the base; that often it is asked where a load could begin."""

FORECAST_REQUESTS = ("ForecastRequest", "PhaseRequest", "WaveformRequest", "PeakRequest", "ReservationRequest")

INSTANT_MEMBERS: Mapping[str, Sequence[str]] = {
    "series": ("begin",),
    "jobs": ("submitted_at", "started_at"),
    "events": ("begins_at", "ends_at"),
}
"""Members of the entries of a request's lists that are instants."""


def warm_forecasts() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    for part in ("forecasting", "peaks", "phases", "reservations", "waveforms"):
        import_module(f"kuayu.forecast.{part}")

    for name in FORECAST_REQUESTS:
        schema.is_valid(name, {})


def forecast(body: bytes) -> ComputedAnswer:
    """Answer a request for forecasts."""

    def answer(request: "documents.ForecastRequest") -> "documents.ForecastReport":
        from kuayu.forecast.forecasting import forecast as made

        points = len(request["series"]) * len(request["horizons"])
        check(points, MAX_FORECAST_POINTS, "series × horizons", "series or horizons")
        check(
            points * len(request["levels"]),
            MAX_FORECAST_QUANTILES,
            "series × horizons × levels",
            "series, horizons or levels",
        )
        return made(request)

    return _forecast_answered(body, "ForecastRequest", answer)


def recognise_phases(body: bytes) -> ComputedAnswer:
    """Answer a request for phases of trainings."""

    def answer(request: "documents.PhaseRequest") -> "documents.PhaseReport":
        from kuayu.forecast.phases import recognise

        return recognise(request)

    def count(report: "documents.PhaseReport") -> Counter[tuple[str, ...]]:
        return Counter((phase["phase"],) for phase in report["phases"])

    return _forecast_answered(body, "PhaseRequest", answer, count)


def make_waveform(body: bytes) -> ComputedAnswer:
    """Answer a request for a waveform."""

    def answer(request: "documents.WaveformRequest") -> "documents.Waveform":
        from kuayu.forecast.waveforms import waveform

        points = 1 + int(request["period"] // request["step"])
        check(points, MAX_WAVE_POINTS, "points of the waveform", "steps")
        check(points * _periods(request), MAX_WAVE_CONTRIBUTIONS, "points × periods of jobs", "steps or jobs")
        return waveform(request)

    return _forecast_answered(body, "WaveformRequest", answer)


def plan_peaks(body: bytes) -> ComputedAnswer:
    """Answer a request for a plan that lowers peaks."""

    def answer(request: "documents.PeakRequest") -> "documents.PeakPlan":
        from kuayu.forecast.peaks import shave

        slots = sum(load["slots"] for load in request["loads"])
        check(slots, MAX_LOAD_STEPS, "steps of loads", "loads or steps")
        check(
            len(request["loads"]) * len(request["base"]),
            MAX_LOAD_POSITIONS,
            "loads × steps of the base",
            "loads or steps",
        )
        return shave(request)

    return _forecast_answered(body, "PeakRequest", answer)


def reserve(body: bytes) -> ComputedAnswer:
    """Answer a request for reservations."""

    def answer(request: "documents.ReservationRequest") -> "documents.ReservationReport":
        from kuayu.forecast.forecasting import reserve as made

        return made(request)

    return _forecast_answered(body, "ReservationRequest", answer)


def _forecast_answered(
    body: bytes,
    class_name: str,
    answer: Callable[[Any], Mapping[str, Any]],
    count: Callable[[Any], Counter[tuple[str, ...]]] = lambda _: Counter(),
) -> ComputedAnswer:
    def decide() -> ComputedAnswer:
        request = requests.parse(body, class_name)
        check_instants(_instants(request))
        check(_periods(request), MAX_PERIODS, "periods of jobs", "jobs or periods")
        report = answer(request)
        return ComputedAnswer(200, orjson.dumps(report), count(report))

    return or_problem(decide)


def _periods(request: Mapping[str, Any]) -> int:
    return sum(len(job["periods"]) for job in request.get("jobs", ()))


def _instants(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Pointer and text of all instants of a request."""
    if "now" in request:
        yield "/now", request["now"]
    for where, members in INSTANT_MEMBERS.items():
        for position, entry in enumerate(request.get(where, ())):
            for member in members:
                if member in entry:
                    yield f"/{where}/{position}/{member}", entry[member]


TRANSFER_REQUESTS = ("ShardPlanRequest", "CollectiveRequest")


def warm_transfers() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    for part in ("shard_planner", "collectives"):
        import_module(f"kuayu.resilience.{part}")
    for name in TRANSFER_REQUESTS:
        schema.is_valid(name, {})


def plan_shards(body: bytes) -> ComputedAnswer:
    """Answer a request for a shard plan."""

    def answer(request: "documents.ShardPlanRequest") -> "documents.ShardPlan":
        from kuayu.resilience.shard_planner import shard_plan

        return shard_plan(request)

    return answered(body, "ShardPlanRequest", answer)


def choose_collective(body: bytes) -> ComputedAnswer:
    """Answer a request for a collective."""

    def answer(request: "documents.CollectiveRequest") -> "documents.CollectiveChoice":
        from kuayu.resilience.collectives import collective

        return collective(request)

    def count(choice: "documents.CollectiveChoice") -> Counter[tuple[str, ...]]:
        return Counter({(choice["collective"], str(choice["switched"]).lower()): 1})

    return answered(body, "CollectiveRequest", answer, count)


RECOVERY_REQUESTS = ("BackupRequest", "FailoverRequest")


def warm_recovery() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    for part in ("backup_planner", "failover_planner"):
        import_module(f"kuayu.resilience.{part}")
    for name in RECOVERY_REQUESTS:
        schema.is_valid(name, {})


def plan_backups(body: bytes) -> ComputedAnswer:
    """Answer a request for a backup plan."""

    def answer(request: "documents.BackupRequest") -> "documents.BackupPlan":
        from kuayu.resilience.backup_planner import backup_plan

        return backup_plan(request)

    return answered(body, "BackupRequest", answer)


def plan_failover(body: bytes) -> ComputedAnswer:
    """Answer a request for a failover plan."""

    def answer(request: "documents.FailoverRequest") -> "documents.FailoverPlan":
        from kuayu.resilience.failover_planner import failover_plan

        return failover_plan(request)

    def count(plan: "documents.FailoverPlan") -> Counter[tuple[str, ...]]:
        return Counter((recovery["strategy"],) for recovery in plan["recoveries"])

    return answered(body, "FailoverRequest", answer, count)


ADJUSTMENT_REQUEST = "AdjustmentRequest"


def warm_adjustments() -> None:
    """Load what the first request will need: the algorithm and the validator."""
    import_module("kuayu.resilience.adjustment_planner")
    schema.is_valid(ADJUSTMENT_REQUEST, {})


def plan_adjustments(body: bytes) -> ComputedAnswer:
    """Answer a request to adjust jobs."""

    def answer(request: "documents.AdjustmentRequest") -> "documents.Adjustment":
        from kuayu.resilience.adjustment_planner import adjustment

        return adjustment(request)

    def count(outcome: "documents.Adjustment") -> Counter[tuple[str, ...]]:
        return Counter((trigger["kind"],) for trigger in outcome["triggers"])

    return answered(body, ADJUSTMENT_REQUEST, answer, count)


JOB_DECISION = "jobPass"
"""What passes are called among decisions, for the metrics."""

_DOMAIN: "documents.Domain" = {"id": "domain"}
_DEVICE: "documents.Device" = {"id": "0", "kind": "gpu", "vendor": "Any", "model": "Any"}
_NODE: "documents.Node" = {"id": "node", "domain": "domain", "devices": [_DEVICE]}


def warm_passes() -> None:
    """Load what the first pass will need, by making one of which nothing comes."""
    revision: documents.Revision = {"epoch": "none", "number": 0}
    now = "2000-01-01T00:00:00.000Z"
    decide(FederationSnapshot(now=now, revision=revision, domains=[_DOMAIN], nodes=[_NODE]))


def run_pass(registry: bytes, others: bytes) -> PassResult:
    """Decide what becomes of the jobs of a snapshot.

    Args:
        registry: Its members ``domains``, ``nodes`` and ``links``, as JSON; the same from pass to pass, mostly.
        others: Its other members.

    Raises:
        BrokenInvariantError: Nothing of what was decided may be carried out.
    """
    return decide(FederationSnapshot.from_json(_registry(registry) | orjson.loads(others)))


@lru_cache(maxsize=8)
def _registry(written: bytes) -> dict[str, Any]:
    """What is registered; of the last few registries that this worker was given it is known. Nobody changes it."""
    result: dict[str, Any] = orjson.loads(written)
    return result
