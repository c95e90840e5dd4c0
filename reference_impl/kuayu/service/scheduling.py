"""Placements, Pareto fronts, allocation plans and routes, from the bytes of a request to those of its answer.

Workers run this. A state holds thousands of jobs, so it stays what JSON made of it: the schema has judged it, and no
objects are made.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from kuayu.service import bodies, patching
from kuayu.service.bases import Base, Bases
from kuayu.service.computations import Decided, check, check_instants, or_problem
from kuayu.service.problems import ProblemException
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu.scheduling import typed
    from kuayu.scheduling.policy_network import PolicyNetwork
    from kuayu_schemas import documents

MOST_WAYS = 5_000_000
"""Most jobs × pools of a placement or a plan; each is looked at, alone and with others."""

MOST_PATHS = 10_000_000
"""Most domains × links of a state; paths lead from every domain over all links."""

MOST_DEVICES = 20_000_000
"""Most pools × devices of the largest pool, and most devices that run; when each of them will be free is kept."""

MOST_SCHEDULED = 200
"""Most waiting jobs of a Pareto front; schedules of all of them are improved over and over."""

MOST_DEMANDS = 5_000_000
"""Most forecasts × pools of a plan."""

MOST_ROUTED = 50_000_000
"""Most demands × sources × links of a request for routes."""

REQUESTS = ("PlacementRequest", "ParetoRequest", "AllocationPlanRequest", "RouteRequest")

_bases = Bases()
"""Of this worker. What a decision is does not depend on them; whether a patch is taken does."""

CACHED_BYTES = 1 << 24
"""Bytes of texts of jobs that a worker remembers having read; those of ten thousand jobs are 9 MB."""


@cache
def _caches() -> "typed.JobCaches":
    """Of this worker. They save time alone."""
    from kuayu.scheduling import typed

    return typed.JobCaches(CACHED_BYTES)


def warm() -> None:
    """Load what the first request will need: the algorithms and the validators."""
    from kuayu.scheduling import capacity_plan, pareto, place, routing, typed  # noqa: F401

    for name in REQUESTS:
        schema.is_valid(name, {})
    typed.read(b"{}")


EDGE = 1 << 18
"""Bytes at either end of a body outside of which only members of a state can begin: others are not as long."""


def may_need_bases(body: bytes) -> bool:
    """Whether a request for placements may state a digest or bring a patch, from a look that costs next to nothing."""
    edges = (body,) if len(body) <= 2 * EDGE else (body[:EDGE], body[-EDGE:])
    return any(name in edge for name in (b'"patch"', b'"digest"') for edge in edges) or (
        b"\\" in body and b"\\u00" in body
    )


def place(body: bytes, tenant: str = "", room: int = 0, most: int = 0, learned: bool = False) -> Decided:  # noqa: FBT001, FBT002 - workers pass it on
    """Answer a request for placements, class PlacementRequest.

    Args:
        body: The request.
        tenant: Whose bases a patch may start from.
        room: Bytes of canonical JSON of the bases that this worker may hold; where it is nought it holds none.
        most: Bytes of the largest state.
        learned: Whether the network sets the rule's constants.
    """

    def decide() -> Decided:
        from kuayu.scheduling import parse, policy_network
        from kuayu.scheduling import place as placement

        network = policy_network.shipped() if learned else None
        if (report := _placed(body, tenant, network)) is not None:
            return _decided(report)
        request: documents.PlacementRequest = _read(body, "PlacementRequest")
        base, canonical = None, None
        if "patch" in request:
            base, canonical = patching.patched(_bases, tenant, request, most)
            request = patching.with_state(request, canonical.state)
            _check_instants_of(canonical.state, base.canonical.parts)
        elif "digest" in request:
            canonical = patching.whole(request)
        _check_state(request["state"])
        parsed = parse.parse_jobs(request["state"], base.parsed if base else None)
        report = placement.place(request, parsed=parsed, network=network)
        if canonical is not None:
            _bases.hold(tenant, Base(canonical, parsed), room)
        return _decided(report)

    return or_problem(decide)


def _placed(body: bytes, tenant: str, network: "PolicyNetwork | None") -> "documents.PlacementReport | None":
    """The answer to a request in which nothing is wrong; None where something may be, which is then looked for."""
    from kuayu.scheduling import parse, typed, validation
    from kuayu.scheduling import place as placement

    try:
        bodies.check_values(body)
    except bodies.TooManyValuesError:
        return None
    before = _caches().of(tenant)
    if before.parsed is not None and before.parsed.specs.stale:
        before = typed.JobCache()
    found = typed.read(body, before)
    if found is None:
        return None
    request, jobs = found
    state, parsed = request["state"], parse.ParsedJobs(jobs, before.parsed)
    jobs.cache.parsed = parsed
    _caches().keep(tenant, jobs.cache)
    shared = [share["domain"] for share in request.get("shares") or ()]
    if len(set(shared)) < len(shared) or not validation.is_sound(state, parsed, shared):
        return None
    try:
        datetime.fromisoformat(state["now"])
        _check_work(state, len(parsed.names), sum(parsed.holdings.devices))
    except (ValueError, ProblemException):
        return None
    snapshot = parse.snapshot_of(state, parsed)
    return placement.report(request, snapshot, lambda job: typed.plain(jobs.placements[job].shares[0]), network=network)


def _decided(report: "documents.PlacementReport") -> Decided:
    decisions: Counter[tuple[str, ...]] = Counter((decision["verb"],) for decision in report["decisions"])
    return Decided(200, orjson.dumps(report), decisions, fallback=report["method"].get("fallback", False))


def find_front(body: bytes, *, arrived: float | None = None) -> Decided:
    """Answer a request for a Pareto front, class ParetoRequest, whose time limit runs since it arrived."""

    def decide() -> Decided:
        from kuayu.scheduling import pareto

        request: documents.ParetoRequest = _read(body, "ParetoRequest")
        _check_state(request["state"])
        check(len(request["state"]["waiting"]), MOST_SCHEDULED, "waiting jobs", "jobs")
        return Decided(200, orjson.dumps(pareto.front(request, arrived)))

    return or_problem(decide)


def plan_allocation(body: bytes) -> Decided:
    """Answer a request for an allocation plan, class AllocationPlanRequest."""

    def decide() -> Decided:
        from kuayu.scheduling import capacity_plan

        request: documents.AllocationPlanRequest = _read(body, "AllocationPlanRequest")
        _check_state(request["state"])
        forecasts = len(request.get("forecast", ())) * _pools(request["state"])
        check(forecasts, MOST_DEMANDS, "forecasts × pools", "forecasts or pools")
        return Decided(200, orjson.dumps(capacity_plan.plan(request)))

    return or_problem(decide)


def find_routes(body: bytes) -> Decided:
    """Answer a request for routes, class RouteRequest."""

    def decide() -> Decided:
        from kuayu.scheduling import routing

        request: documents.RouteRequest = _read(body, "RouteRequest")
        sources = sum(len(demand["sources"]) for demand in request["demands"])
        check(sources * len(request["links"]), MOST_ROUTED, "sources of demands × links", "demands, sources or links")
        return Decided(200, orjson.dumps(routing.route(request)))

    return or_problem(decide)


def _read(body: bytes, class_name: str) -> Any:
    """Read a body as a valid instance of a class whose instants exist; whoever asks knows its type.

    Raises:
        ProblemException: malformed-json or invalid-body.
    """
    request = bodies.parse(body, class_name)
    if "state" in request:
        _check_instants_of(request["state"])
    return request


def _check_instants_of(state: "documents.SchedulingState", known: Container[int] = ()) -> None:
    """Refuse a state with instants that there are not.

    Args:
        state: That of a request.
        known: Numbers of jobs and specifications that have been looked at before.

    Raises:
        ProblemException: invalid-body.
    """
    if not _all_exist(state, known):
        check_instants(_instants(state))


def _all_exist(state: "documents.SchedulingState", known: Container[int]) -> bool:
    """Whether there are such days; where one is not, :func:`_instants` tells which."""
    texts = {state["now"]}
    queues: tuple[Sequence[documents.WaitingJob | documents.RunningJob], ...] = (state["waiting"], state["running"])
    for queue in queues:
        specs = [job["spec"] for job in queue if id(job) not in known and id(job["spec"]) not in known]
        texts.update(spec["submitted_at"] for spec in specs)
        texts.update(spec["deadline"] for spec in specs if "deadline" in spec)
    texts.update(job["ready_at"] for job in state["running"] if "ready_at" in job)
    try:
        for text in texts:
            datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _instants(state: "documents.SchedulingState") -> Iterator[tuple[str, str]]:
    """Pointer and text of all instants of a state."""
    yield "/state/now", state["now"]
    queues: dict[str, Sequence[documents.WaitingJob | documents.RunningJob]]
    queues = {"waiting": state["waiting"], "running": state["running"]}
    for queue, jobs in queues.items():
        for position, job in enumerate(jobs):
            place = f"/state/{queue}/{position}"
            spec = job["spec"]
            yield f"{place}/spec/submitted_at", spec["submitted_at"]
            if "deadline" in spec:
                yield f"{place}/spec/deadline", spec["deadline"]
            if "ready_at" in job:
                yield f"{place}/ready_at", job["ready_at"]


def _check_state(state: "documents.SchedulingState") -> None:
    """Hold the work that a state makes, products that the length of the body does not show, against limits.

    Raises:
        ProblemException: invalid-body.
    """
    shares = (share for job in state["running"] for share in job["placement"]["shares"])
    _check_work(state, len(state["waiting"]) + len(state["running"]), sum(share["devices"] for share in shares))


def _check_work(state: "documents.SchedulingState", jobs: int, held: int) -> None:
    """The same, of a state with so many jobs, which hold so many devices.

    Raises:
        ProblemException: invalid-body.
    """
    check(jobs * _pools(state), MOST_WAYS, "jobs × pools", "jobs or pools")
    check(len(state["domains"]) * len(state["links"]), MOST_PATHS, "domains × links", "domains or links")
    largest = max((pool["devices"] for domain in state["domains"] for pool in domain["pools"]), default=0)
    check(_pools(state) * largest, MOST_DEVICES, "pools × devices of the largest", "devices or pools")
    check(held, MOST_DEVICES, "devices of running jobs", "devices")


def _pools(state: "documents.SchedulingState") -> int:
    return sum(len(domain["pools"]) for domain in state["domains"])
