"""Placements, Pareto fronts, allocation plans and routes, from the bytes of a request to those of its answer.

1. Workers run this. A state holds thousands of jobs, so it stays what JSON made of it: the schema has judged it, and
   no objects are made.
2. States that patches can start from are those that were sent last, tenant by tenant, in bounded memory. A worker holds
   them, and forgets them when it ends; who sends a patch then gets unknown-base and sends the whole state.
3. A state that is sent as a patch is judged as the whole state would be. What the patch did not touch has been judged
   with its base, so that the schema looks at the rest; where that breaks it, the whole state is judged anew, which says
   where and how.
"""

from collections import Counter, OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

import orjson

from kuayu import json_patch
from kuayu.scheduling.state_digest import STAYING, CanonicalState, grouped
from kuayu.service import requests
from kuayu.service.computations import ComputedAnswer, check, check_instants, or_problem
from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu.service.requests import MAX_DEPTH
from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu.scheduling import typed
    from kuayu.scheduling.parse import ParsedJobs
    from kuayu.scheduling.policy_network import PolicyNetwork
    from kuayu_schemas import documents


@dataclass(frozen=True, slots=True)
class Base:
    """A state that was answered.

    Attributes:
        canonical: The state, and its canonical JSON in parts.
        parsed: What was read of its jobs.
    """

    canonical: "CanonicalState"
    parsed: "ParsedJobs"


class Bases:
    """Bases by tenant and digest.

    Where there is no more room, the tenant with most bytes loses the base that it has not used for longest.
    """

    def __init__(self) -> None:
        self._held: dict[str, OrderedDict[str, Base]] = {}
        self._sizes: dict[str, int] = {}

    def get(self, tenant: str, digest: str) -> Base | None:
        """A base of a tenant; None where it is not held."""
        bases = self._held.get(tenant)
        if bases is None or digest not in bases:
            return None
        bases.move_to_end(digest)
        return bases[digest]

    def hold(self, tenant: str, base: Base, capacity: int) -> None:
        """Hold a base of a tenant.

        Args:
            tenant: Whose it is.
            base: The base; one that is larger than all the room is not held.
            capacity: Bytes of canonical JSON that all bases of all tenants may have together.
        """
        digest, size = base.canonical.digest, base.canonical.size
        if size > capacity:
            return
        bases = self._held.setdefault(tenant, OrderedDict())
        if digest in bases:
            bases.move_to_end(digest)
            return
        bases[digest] = base
        self._sizes[tenant] = self._sizes.get(tenant, 0) + size
        while sum(self._sizes.values()) > capacity:
            self._forget_one()

    def _forget_one(self) -> None:
        tenant = max(self._sizes, key=self._sizes.__getitem__)
        _, base = self._held[tenant].popitem(last=False)
        self._sizes[tenant] -= base.canonical.size
        if not self._held[tenant]:
            del self._held[tenant], self._sizes[tenant]


LABEL = "x-label-zh"

Queue = Literal["waiting", "running"]
"""Member of a state that holds jobs."""


def whole(request: "documents.PlacementRequest") -> CanonicalState:
    """The state of a request that states its digest.

    Args:
        request: A valid one with a state and a digest.

    Raises:
        ProblemException: invalid-body, where that is another state's.
    """
    canonical = CanonicalState(request["state"])
    digest = _digest(canonical, "/state")
    if digest != request["digest"]:
        raise invalid_body(Place(f"the state has the digest {digest}; send that, or none", "/digest"))
    return canonical


def patched(bases: Bases, tenant: str, request: "documents.PlacementRequest", most: int) -> tuple[Base, CanonicalState]:
    """What the patch of a request leads from and to.

    Args:
        bases: What it may start from.
        tenant: Who sends it.
        request: A valid one with a patch.
        most: Bytes of the largest state.

    Returns:
        The base, and the state as valid as if it had been sent whole.

    Raises:
        ProblemException: unknown-base, or invalid-body where the patch cannot be applied, does not lead to the stated
            digest, or leads to a state that is not valid; payload-too-large.
    """
    patch = request["patch"]
    base = bases.get(tenant, patch["base"])
    if base is None:
        detail = f"no state of the digest {patch['base']} is held; send the whole state"
        raise ProblemException("unknown-base", detail, [Place(detail, "/patch/base")])
    try:
        # of a whole request the state is the second level
        state = json_patch.apply(base.canonical.state, patch["operations"], MAX_DEPTH - 1)
    except json_patch.PatchError as error:
        raise invalid_body(Place(error.detail, f"/patch/operations/{error.position}")) from error
    canonical = CanonicalState(state, base.canonical) if _is_valid(state, base.canonical) else None
    digest = _digest(canonical or state, "/patch/operations")
    if digest != patch["result"]:
        detail = f"the patch leads to {digest} and not to what it states; make it anew, or send the whole state"
        raise invalid_body(Place(detail, "/patch/result"))
    if canonical is None:
        errors = schema.errors("PlacementRequest", with_state(request, state))
        raise invalid_body(*(Place(error.detail, error.pointer) for error in errors))
    if canonical.size > most:
        raise ProblemException("payload-too-large", f"the state that the patch leads to is larger than {most} bytes")
    return base, canonical


def with_state(request: "documents.PlacementRequest", state: Any) -> "documents.PlacementRequest":
    """The request that brings a state in place of the patch that leads to it; as valid as the state is."""
    others = {name: value for name, value in request.items() if name != "patch"}
    return cast("documents.PlacementRequest", others | {"state": state})


def _digest(state: Any, pointer: str) -> str:
    """Digest of a state, or of what is none.

    Raises:
        ProblemException: invalid-body, where it has none.
    """
    try:
        return state.digest if isinstance(state, CanonicalState) else schema.digest(state)
    except schema.NotCanonicalError as error:
        raise invalid_body(Place(str(error), pointer)) from error


def _is_valid(state: Any, base: CanonicalState) -> bool:
    """Whether a state is valid that was made of a valid one by a patch.

    The class of states judges jobs one by one, and the class of running jobs its members each by itself; so what is the
    very same object as in the base need not be looked at again, and the rest of running jobs is judged by columns.
    """
    if not isinstance(state, dict):
        return False
    queues: dict[Queue, list[Any]] = {}
    for queue, most in _longest().items():
        entries = state.get(queue)
        if not isinstance(entries, list) or len(entries) > most:
            return False
        seen = {id(entry) for entry in base.state[queue]}
        queues[queue] = [entry for entry in entries if id(entry) not in seen]
    judged = base.parts
    moved: list[dict[str, object]] = []
    others: list[Any] = []
    for entry in queues["running"]:
        (moved if _stays(entry, judged) else others).append(entry)
    queues["running"] = others
    return schema.is_valid("SchedulingState", state | queues) and _have_valid_members(moved)


def _stays(entry: Any, judged: Mapping[int, Any]) -> bool:
    """Whether a running job has the very same specification and placement as before."""
    return isinstance(entry, dict) and id(entry.get("spec")) in judged and id(entry.get("placement")) in judged


def _have_valid_members(entries: Sequence[Mapping[str, object]]) -> bool:
    """Whether running jobs are valid whose specifications and placements are."""
    known, required = _members()
    for names, indices in grouped(entries).items():
        if not required <= set(names) <= known:
            return False
        for name in set(names).difference(STAYING):
            if not schema.are_valid("RunningJob", name, [entries[index][name] for index in indices]):
                return False
    return True


@cache
def _longest() -> dict[Queue, int]:
    """How many jobs may stand in each queue."""
    members = schema.document()["$defs"]["SchedulingState"]["properties"]
    return {"waiting": members["waiting"]["maxItems"], "running": members["running"]["maxItems"]}


@cache
def _members() -> tuple[AbstractSet[str], AbstractSet[str]]:
    """Names of the members that a running job may have, and of those that it has to have.

    Raises:
        LookupError: The schema has come to judge running jobs by something that this module does not know.
    """
    judging = schema.document()["$defs"]["RunningJob"]
    unknown = judging.keys() - {"type", "title", "description", "properties", "required", "additionalProperties", LABEL}
    if unknown or judging["additionalProperties"] is not False:
        raise LookupError(f"running jobs are judged by {', '.join(unknown) or 'open members'}")
    return judging["properties"].keys(), frozenset(judging["required"])


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


def place(body: bytes, tenant: str = "", capacity: int = 0, most: int = 0, learned: bool = False) -> ComputedAnswer:  # noqa: FBT001, FBT002 - workers pass it on
    """Answer a request for placements, class PlacementRequest.

    Args:
        body: The request.
        tenant: Whose bases a patch may start from.
        capacity: Bytes of canonical JSON of the bases that this worker may hold; where it is zero it holds none.
        most: Bytes of the largest state.
        learned: Whether the network sets the rule's constants.
    """

    def decide() -> ComputedAnswer:
        from kuayu.scheduling import parse, policy_network
        from kuayu.scheduling import place as placement

        network = policy_network.shipped() if learned else None
        if (report := _placed(body, tenant, network)) is not None:
            return _decided(report)
        request: documents.PlacementRequest = _read(body, "PlacementRequest")
        base, canonical = None, None
        if "patch" in request:
            base, canonical = patched(_bases, tenant, request, most)
            request = with_state(request, canonical.state)
            _check_instants_of(canonical.state, base.canonical.parts)
        elif "digest" in request:
            canonical = whole(request)
        _check_state(request["state"])
        parsed = parse.parse_jobs(request["state"], base.parsed if base else None)
        report = placement.place(request, parsed=parsed, network=network)
        if canonical is not None:
            _bases.hold(tenant, Base(canonical, parsed), capacity)
        return _decided(report)

    return or_problem(decide)


def _placed(body: bytes, tenant: str, network: "PolicyNetwork | None") -> "documents.PlacementReport | None":
    """The answer to a request in which nothing is wrong; None where something may be, which is then looked for."""
    from kuayu.scheduling import parse, typed, validation
    from kuayu.scheduling import place as placement

    try:
        requests.check_values(body)
    except requests.TooManyValuesError:
        return None
    before = _caches().of(tenant)
    if before.parsed is not None and before.parsed.specs.stale:
        before = typed.JobCache()
    request_and_jobs = typed.read(body, before)
    if request_and_jobs is None:
        return None
    request, jobs = request_and_jobs
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


def _decided(report: "documents.PlacementReport") -> ComputedAnswer:
    decisions: Counter[tuple[str, ...]] = Counter((decision["verb"],) for decision in report["decisions"])
    return ComputedAnswer(200, orjson.dumps(report), decisions, fallback=report["method"].get("fallback", False))


def find_front(body: bytes, *, arrived: float | None = None) -> ComputedAnswer:
    """Answer a request for a Pareto front, class ParetoRequest, whose time limit runs since it arrived."""

    def decide() -> ComputedAnswer:
        from kuayu.scheduling import pareto

        request: documents.ParetoRequest = _read(body, "ParetoRequest")
        _check_state(request["state"])
        check(len(request["state"]["waiting"]), MOST_SCHEDULED, "waiting jobs", "jobs")
        return ComputedAnswer(200, orjson.dumps(pareto.front(request, arrived)))

    return or_problem(decide)


def plan_allocation(body: bytes) -> ComputedAnswer:
    """Answer a request for an allocation plan, class AllocationPlanRequest."""

    def decide() -> ComputedAnswer:
        from kuayu.scheduling import capacity_plan

        request: documents.AllocationPlanRequest = _read(body, "AllocationPlanRequest")
        _check_state(request["state"])
        forecasts = len(request.get("forecast", ())) * _pools(request["state"])
        check(forecasts, MOST_DEMANDS, "forecasts × pools", "forecasts or pools")
        return ComputedAnswer(200, orjson.dumps(capacity_plan.plan(request)))

    return or_problem(decide)


def find_routes(body: bytes) -> ComputedAnswer:
    """Answer a request for routes, class RouteRequest."""

    def decide() -> ComputedAnswer:
        from kuayu.scheduling import routing

        request: documents.RouteRequest = _read(body, "RouteRequest")
        sources = sum(len(demand["sources"]) for demand in request["demands"])
        check(sources * len(request["links"]), MOST_ROUTED, "sources of demands × links", "demands, sources or links")
        return ComputedAnswer(200, orjson.dumps(routing.route(request)))

    return or_problem(decide)


def _read(body: bytes, class_name: str) -> Any:
    """Read a body as a valid instance of a class whose instants exist; whoever asks knows its type.

    Raises:
        ProblemException: malformed-json or invalid-body.
    """
    request = requests.parse(body, class_name)
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
            pointer = f"/state/{queue}/{position}"
            spec = job["spec"]
            yield f"{pointer}/spec/submitted_at", spec["submitted_at"]
            if "deadline" in spec:
                yield f"{pointer}/spec/deadline", spec["deadline"]
            if "ready_at" in job:
                yield f"{pointer}/ready_at", job["ready_at"]


def _check_state(state: "documents.SchedulingState") -> None:
    """Hold the work that a state makes, products that the length of the body does not show, against limits.

    Raises:
        ProblemException: invalid-body.
    """
    shares = (share for job in state["running"] for share in job["placement"]["shares"])
    _check_work(state, len(state["waiting"]) + len(state["running"]), sum(share["devices"] for share in shares))


def _check_work(state: "documents.SchedulingState", jobs: int, devices: int) -> None:
    """The same, of a state with so many jobs, which hold so many devices.

    Raises:
        ProblemException: invalid-body.
    """
    check(jobs * _pools(state), MOST_WAYS, "jobs × pools", "jobs or pools")
    check(len(state["domains"]) * len(state["links"]), MOST_PATHS, "domains × links", "domains or links")
    largest = max((pool["devices"] for domain in state["domains"] for pool in domain["pools"]), default=0)
    check(_pools(state) * largest, MOST_DEVICES, "pools × devices of the largest", "devices or pools")
    check(devices, MOST_DEVICES, "devices of running jobs", "devices")


def _pools(state: "documents.SchedulingState") -> int:
    return sum(len(domain["pools"]) for domain in state["domains"])
