"""Commands of the writer that change jobs, serving jobs among them, and what their requests may not say.

1. What is wrong with bodies beyond what the schema can state.
2. Commands of the writer that change jobs: by requests, by decisions, by what domains say, by time.
3. Load of serving jobs is kept second by second, the most that was told of each; of a job no more than
   :data:`KEPT_SECONDS`.
4. Replicas are jobs with a name of their own: that of the serving job and a number which no other has. What they ask
   for is what the serving job does (class JobRequest), without what holds for all of them together.
5. With a serving job it is kept how many replicas it has had (``serial``), what is announced of its load
   (``announced``), and what is told of its replicas, class ReplicaState (``told``). Replicas are added only where
   ``serial`` is what it was when that was decided, so that none is added twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from sqlalchemy import BindParameter, Connection, bindparam, delete, func, insert, select, update

from kuayu.jobs.replicas import MAX_STEPS, step_of
from kuayu.service import allocation_rules, instants, job_rules, job_store
from kuayu.service import allocation_store as allocations
from kuayu.service.allocation_rules import Result
from kuayu.service.allocation_store import Follower
from kuayu.service.job_rules import JobStanding, Json
from kuayu.service.job_store import JOBS, ExpireDue, JobChanges, JobRecord, OrderRecord
from kuayu.service.problems import Place, ProblemException, invalid_body, unknown_reference
from kuayu.service.storage import resources
from kuayu.service.storage.resources import OWNER, Quota
from kuayu.service.storage.tables import job, job_decision, job_load
from kuayu.service.storage.writer import Outcome, Transaction
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, JobState, NodeScope, SplitMode

if TYPE_CHECKING:
    from kuayu_schemas import documents

RESERVED = frozenset({"events"})
"""Names that no job can have: under ``/v1/jobs/events`` stands the stream."""

INSIDE = SplitMode.none.value
"""The one way to be spread that asks for no communication."""


def of_request(request: Json) -> Iterator[Place]:
    """Faults of class JobRequest: what contradicts itself, stands twice, or could never be placed."""
    if request["id"] in RESERVED:
        yield Place(f"{request['id']!r} is the name of the stream of jobs; take another", "/id")
    yield from _of_devices(request["devices"], request.get("nodes", {}))
    yield from _of_duration(request.get("duration"))
    for name in ("device_kinds", "domains", "split_modes"):
        yield from _twice(request.get(name, ()), f"/{name}")
    variables = (variable["name"] for variable in request["workload"].get("environment", ()))
    yield from _twice(variables, "/workload/environment", "/name")
    yield from _of_spread(request)
    yield from _of_data(request)
    yield from _of_instants(request, "deadline")
    yield from of_serving(request)


def of_report(report: Json) -> Iterator[Place]:
    """Faults of class RunReport: an instant that no calendar has."""
    yield from _of_instants(report, "at")


def of_lines(batch: Json) -> Iterator[Place]:
    """Faults of class RunLogBatch: lines that do not follow each other, and instants that no calendar has."""
    first = batch["lines"][0]["number"]
    for position, line in enumerate(batch["lines"]):
        if line["number"] != first + position:
            detail = f"after line {first + position - 1} comes {first + position}, not {line['number']}"
            yield Place(detail, f"/lines/{position}/number")
            return
        yield from _of_instants(line, "at", f"/lines/{position}")


def _of_devices(devices: Mapping[str, Any], nodes: Mapping[str, Any]) -> Iterator[Place]:
    """How many devices; each number is the minimum plus a multiple of the step."""
    least, most = devices["minimum"], devices["maximum"]
    if most < 1:
        yield Place("a job has at least one device", "/devices/maximum")
    if least > most:
        yield Place(f"the minimum, {least}, is more than the maximum, {most}", "/devices/minimum")
    step, wanted = devices.get("step", 1), devices.get("requested", most)
    if step < 1:
        yield Place("the step is at least one", "/devices/step")
        return
    if "requested" in devices and not max(least, 1) <= wanted <= most:
        yield Place(f"{wanted} lies outside the limits, {max(least, 1)} to {most}", "/devices/requested")
    elif "requested" in devices and (wanted - least) % step:
        detail = f"{wanted} is not the minimum, {least}, plus a multiple of the step, {step}"
        yield Place(detail, "/devices/requested")
    alone, within = nodes.get("devices_per_node", 0), nodes.get("within")
    if alone > most:
        yield Place(f"one node alone would have more than the job may, {most}", "/nodes/devices_per_node")
    elif alone and within == NodeScope.node.value and least > alone:
        yield Place(f"on one node it has {alone} devices, and needs at least {least}", "/nodes/devices_per_node")


def _of_duration(duration: Mapping[str, Any] | None) -> Iterator[Place]:
    """How long a job takes."""
    if duration and not duration["low"] <= duration["expected"] <= duration["high"]:
        yield Place("what is expected lies between both ends", "/duration/expected")


def _of_spread(request: Json) -> Iterator[Place]:
    """How a job may be spread over domains, and what that asks for."""
    modes = request.get("split_modes", [INSIDE])
    if set(modes) - {INSIDE} and "communication" not in request:
        position = next(number for number, mode in enumerate(modes) if mode != INSIDE)
        detail = "what it sends between domains has to be stated (communication), or it is not spread"
        yield Place(detail, f"/split_modes/{position}")


def _of_data(request: Json) -> Iterator[Place]:
    """What it reads; what may not leave its domains has to lie where the job may run."""
    allowed = set(request.get("domains", ()))
    yield from _twice((entry["id"] for entry in request.get("data", ())), "/data", "/id")
    for position, artefact in enumerate(request.get("data", ())):
        if artefact.get("pinned") and allowed and allowed.isdisjoint(artefact["domains"]):
            detail = f"{artefact['id']!r} may not leave its domains, and the job may run in none of them"
            yield Place(detail, f"/data/{position}/domains")


def _twice(names: Iterable[str], pointer: str, member: str = "") -> Iterator[Place]:
    seen: set[str] = set()
    for position, name in enumerate(names):
        if name in seen:
            yield Place(f"{name!r} stands twice", f"{pointer}/{position}{member}")
        seen.add(name)


def _of_instants(body: Mapping[str, Any], member: str, pointer: str = "") -> Iterator[Place]:
    if member in body:
        try:
            instants.to_milliseconds(body[member])
        except ValueError as error:
            yield Place(f"there is no such instant: {error}", f"{pointer}/{member}")


MAX_ALTERNATIVES = 10
"""Placements of an allocation beside the first, by the published model."""

FINAL_OUTCOMES = frozenset({ActionOutcome.committed, ActionOutcome.unknown}) | job_rules.NOT_STARTED
"""How an action may end that is committed at once."""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """Result of a submission."""

    record: JobRecord
    created: bool


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """Take a job in; a submission of what is there already changes nothing.

    Raises when applied: invalid-body, where another job has the name; quota-exceeded.
    """

    tenant: str
    request: Json
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0
    quota: Quota | None = None

    def apply(self, transaction: Transaction) -> Outcome[StoredJob]:
        """Carry the submission out."""
        connection = transaction.connection
        existing = job_store.find(connection, self.tenant, self.request["id"])
        if existing is not None:
            _check_same(existing.standing.spec, self.request)
            return Outcome(StoredJob(existing, created=False))
        if self.quota is not None:
            self.quota.check_all(transaction, self.tenant, 1, len(orjson.dumps(self.request).decode()))
        changes = JobChanges(transaction, self.now, self.offset)
        record = changes.keep_job(self.tenant, None, job_rules.submit(self.request, changes.stamp))
        return Outcome(StoredJob(record, created=True), changes.notification(self.follower))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a job is to run, as it was decided.

    Attributes:
        placement: First choice.
        revision: Of the state that it was decided on.
        alternatives: What will do instead where a domain refuses, in this order.
        weights: Compute index of accelerators by domain, by which device hours are counted; one where it is absent.
        decision: What is kept for whoever asks why; None to keep what was decided before.
        reason: Why, in words.
    """

    placement: "documents.JobPlacement"
    revision: "documents.Revision"
    alternatives: "Sequence[documents.JobPlacement]" = ()
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    decision: "documents.JobDecision | None" = None
    reason: str = "it was decided where it is to run; its devices are being reserved"


@dataclass(frozen=True, slots=True)
class PlaceJob:
    """Have a job that is queued begin, with the allocation of its attempt.

    One that is not queued any more, as where it was called off meanwhile, stays as it is.

    Attributes:
        tenant: Whose it is.
        job: Its name.
        placement: Where it is to run.
        now: By the clock of deadlines, in milliseconds.
        follower: Is told of what changes.
        lease: Of its allocation, in seconds; None for one without end.
        patience: Of its allocation, in seconds.
        starting: Seconds within which all its runs have to run.
        weight: How much of the writer's queue it takes.
        offset: Milliseconds by which the clock on the wall is ahead of that of deadlines.
    """

    tenant: str
    job: str
    placement: Placement
    now: int
    follower: Follower
    lease: float | None
    patience: float
    starting: float
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[JobRecord | None]:
        """Carry the placement out; the job as it stands then, or None where there is none."""
        connection, decided = transaction.connection, self.placement
        existing = job_store.find(connection, self.tenant, self.job)
        if existing is None or existing.standing.state is not JobState.queued:
            return Outcome(existing)
        changes = JobChanges(transaction, self.now, self.offset)
        standing = existing.standing
        name, tries = self._free_name(transaction, standing)
        deadline = self.now + round(self.starting * 1000)
        after = job_rules.place(
            *(standing, name, tries, decided.revision, decided.weights, decided.reason),
            deadline=deadline,
            now=changes.stamp,
        )
        changes.keep_job(self.tenant, existing, after)
        spec = self._allocation(name)
        changes.keep(self.tenant, None, allocation_rules.begin(spec, self.now, changes.stamp))
        if decided.decision is not None:
            _keep_decisions(transaction, self.tenant, [decided.decision])
        return Outcome(changes.newest(self.tenant, self.job), changes.notification(self.follower))

    def _free_name(self, transaction: Transaction, standing: JobStanding) -> tuple[str, int]:
        """A name for the allocation that no other has, and how many that makes."""
        tries = standing.tries + 1
        while True:
            name = job_rules.allocation_name(standing.spec, standing.submitted, standing.begun + 1, tries)
            if allocations.find(transaction.connection, self.tenant, name) is None:
                return name, tries
            tries += 1

    def _allocation(self, name: str) -> Json:
        """The allocation of the attempt, class Allocation."""
        decided = self.placement
        spec: Json = {
            "id": name,
            "job": self.job,
            "revision": decided.revision,
            "placement": decided.placement,
            "patience": self.patience,
        }
        if decided.alternatives:
            spec["alternatives"] = list(decided.alternatives[:MAX_ALTERNATIVES])
        if self.lease is not None:
            spec["lease"] = self.lease
        return spec


@dataclass(frozen=True, slots=True)
class KeepDecisions:
    """Keep what was decided about jobs that wait; jobs that are gone are passed over."""

    tenant: str
    decisions: "Sequence[documents.JobDecision]"

    @property
    def weight(self) -> int:
        """How much of the writer's queue it takes."""
        return len(self.decisions)

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Keep them."""
        _keep_decisions(transaction, self.tenant, self.decisions)
        return Outcome(None)


class Rule(Protocol):
    """What becomes of a job at an instant, in milliseconds."""

    def __call__(self, standing: JobStanding, *, now: int) -> JobStanding:
        """The job as it stands afterwards."""


@dataclass(frozen=True, slots=True)
class AlterJob:
    """Change a job by a rule; one that the rule leaves as it is stays so.

    Attributes:
        tenant: Whose it is.
        job: Its name.
        rule: Gives the job as it stands afterwards, from how it stands and the instant on the wall (``now``).
        now: By the clock of deadlines, in milliseconds.
        follower: Is told of what changes.
        weight: How much of the writer's queue it takes.
        offset: Milliseconds by which the clock on the wall is ahead of that of deadlines.
    """

    tenant: str
    job: str
    rule: Rule
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[JobRecord | None]:
        """Carry the change out; the job as it stands then, or None where there is none."""
        existing = job_store.find(transaction.connection, self.tenant, self.job)
        if existing is None:
            return Outcome(None)
        changes = JobChanges(transaction, self.now, self.offset)
        record = changes.keep_job(self.tenant, existing, self.rule(existing.standing, now=changes.stamp))
        return Outcome(record, changes.notification(self.follower))


@dataclass(frozen=True, slots=True)
class TakeReport:
    """A domain has reported how its run stands, class RunReport.

    Raises when applied: unknown-reference.
    """

    tenant: str
    report: Json
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[JobRecord]:
        """Take the report; one of a run that is over, or of an attempt that is, changes nothing."""
        connection, report = transaction.connection, self.report
        existing = job_store.find(connection, self.tenant, report["job"])
        if existing is None:
            raise unknown_reference("/job", f"there is no job {report['job']!r}")
        standing, attempt, domain = existing.standing, report["attempt"], report["domain"]
        if not (standing.active and standing.begun == attempt and standing.run(domain)):
            if not job_store.was_run(connection, self.tenant, existing.name, attempt, domain):
                raise _no_run(existing.name, attempt, domain)
            return Outcome(existing)
        changes = JobChanges(transaction, self.now, self.offset)
        record = changes.keep_job(self.tenant, existing, job_rules.take_report(standing, report, changes.stamp))
        return Outcome(record, changes.notification(self.follower))


@dataclass(frozen=True, slots=True)
class TakeRunAnswer:
    """A domain has answered an order to start or to stop a run.

    Raises when applied: invalid-body.

    Attributes:
        tenant: Whose it is.
        order: What the domain was asked for.
        result: Its answer.
        now: By the clock of deadlines, in milliseconds.
        follower: Is told of what changes.
        weight: How much of the writer's queue it takes.
        offset: Milliseconds by which the clock on the wall is ahead of that of deadlines.
    """

    tenant: str
    order: OrderRecord
    result: Result
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[JobRecord]:
        """Take the answer; where the attempt is over, it is noted and changes nothing else."""
        _check_fits(self.result)
        request, outcome = self.order, self.result.outcome
        existing = job_store.find(transaction.connection, self.tenant, request.job)
        assert existing is not None
        standing = existing.standing
        changes = JobChanges(transaction, self.now, self.offset)
        if not (standing.active and standing.begun == request.attempt):
            done = outcome is ActionOutcome.committed
            if request.outcome is None and (
                done or (request.kind is ActionKind.start and outcome in job_rules.NOT_STARTED)
            ):
                job_store.close(transaction.connection, self.tenant, self.result.action, outcome)
            return Outcome(existing)
        if request.kind is ActionKind.start:
            after = job_rules.take_start_answer(standing, request.domain, outcome, self.result.why, changes.stamp)
        else:
            after = job_rules.take_stop_answer(standing, request.domain, outcome, changes.stamp)
        return Outcome(changes.keep_job(self.tenant, existing, after), changes.notification(self.follower))


@dataclass(frozen=True, slots=True)
class KeepLines:
    """Keep what processes of a run have printed, class RunLogBatch.

    Raises when applied: unknown-reference.

    Attributes:
        tenant: Whose it is.
        batch: The lines.
        most: Characters of a run that are kept at most.
    """

    tenant: str
    batch: Json
    most: int

    @property
    def weight(self) -> int:
        """How much of the writer's queue it takes."""
        return len(self.batch["lines"])

    def apply(self, transaction: Transaction) -> Outcome[job_store.KeptLines]:
        """Keep the lines that are new; none where there would be a gap."""
        connection, batch = transaction.connection, self.batch
        run_of = (batch["job"], batch["attempt"], batch["domain"])
        stored = job_store.keep_lines(connection, self.tenant, *run_of, batch["lines"], self.most)
        if stored is None:
            if job_store.find(connection, self.tenant, batch["job"]) is None:
                raise unknown_reference("/job", f"there is no job {batch['job']!r}")
            raise _no_run(*run_of)
        return Outcome(stored)


def expire_starts(now: int, follower: Follower, offset: int = 0) -> ExpireDue:
    """Give up attempts that should run by now and do not."""
    return ExpireDue(job_store.due, _expire_start, now, follower, offset=offset)


def _expire_start(changes: JobChanges, tenant: str, name: str) -> None:
    record = job_store.find(changes.transaction.connection, tenant, name)
    assert record is not None
    changes.keep_job(tenant, record, job_rules.expire(record.standing, changes.now, changes.stamp))


@dataclass(frozen=True, slots=True)
class ResumeStarts:
    """Give jobs that are starting their time anew after the service was away: nobody could report meanwhile.

    Attributes:
        deadline: Until when they have to run, in milliseconds.
        weight: How much of the writer's queue it takes.
    """

    deadline: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Move all deadlines."""
        job_store.postpone(transaction.connection, self.deadline)
        return Outcome(None)


_NAMES: BindParameter[Any] = bindparam("names", expanding=True)
_KNOWN = select(job.c.id).where(job.c.tenant == OWNER, job.c.id.in_(_NAMES), JOBS.valid())
_DROP_DECISIONS = delete(job_decision).where(job_decision.c.tenant == OWNER, job_decision.c.job.in_(_NAMES))
_INSERT_DECISIONS = insert(job_decision)


def _keep_decisions(transaction: Transaction, owner: str, decisions: "Sequence[documents.JobDecision]") -> None:
    """Keep decisions in the place of what was decided before."""
    connection, newest = transaction.connection, {decision["job"]: decision for decision in decisions}
    named = {"owner": owner, "names": list(newest)}
    rows = [
        {"tenant": owner, "job": name, "body": orjson.dumps(newest[name]).decode()}
        for name in connection.execute(_KNOWN, named).scalars()
    ]
    if rows:
        resources.execute_all(connection, [(_DROP_DECISIONS, named), (_INSERT_DECISIONS, rows)])


def _check_same(existing: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    """Hold what is sent against what is there.

    Raises:
        ProblemException: invalid-body, at every member that differs.
    """
    differing = sorted(name for name in existing.keys() | sent.keys() if existing.get(name) != sent.get(name))
    if differing:
        detail = "a job does not change once it is submitted; give another one another name"
        raise invalid_body(*(Place(detail, f"/{name}" if name in sent else "") for name in differing))


def _check_fits(result: Result) -> None:
    """Hold an answer against what was asked, which is to commit.

    Raises:
        ProblemException: invalid-body.
    """
    if result.phase is not ActionPhase.commit:
        raise invalid_body(Place(f"{result.action!r} was asked to be committed at once", "/phase"))
    if result.outcome not in FINAL_OUTCOMES:
        detail = f"the phase {result.phase.value} does not end {result.outcome.value}"
        raise invalid_body(Place(detail, "/outcome"))


def _no_run(job_name: str, attempt: int, domain: str) -> ProblemException:
    detail = f"{domain!r} was never asked to start a run of attempt {attempt} of {job_name!r}"
    return unknown_reference("/domain", detail)


KEPT_SECONDS = 14 * 86_400
"""Seconds for which load is kept."""

MAX_NAME_CHARACTERS = 120
"""Characters of the name of a serving job: those of its replicas are longer."""

REPLICA_RETRIES = 1000
"""How often a replica is started again after a failure of its own, where its job does not say; it rests in between."""

OF_ALL = ("id", "label", "serving", "retries")
"""Members of a serving job that do not hold for each of its replicas."""

WITH_AN_END = ("deadline", "budget", "duration", "training", "checkpoint")
"""Members of jobs that come to an end by themselves."""


def of_serving(request: Mapping[str, Any]) -> Iterator[Place]:
    """Faults of a serving job, class JobRequest: limits that contradict each other, and what has no meaning for it."""
    if "serving" not in request:
        return
    need = request["serving"]
    if need["minimum"] > need["maximum"]:
        detail = f"the minimum, {need['minimum']}, is more than the maximum, {need['maximum']}"
        yield Place(detail, "/serving/minimum")
    if need["rate"] <= 0:
        yield Place("a replica answers some requests", "/serving/rate")
    if len(request["id"]) > MAX_NAME_CHARACTERS:
        yield Place(f"the name of a serving job has at most {MAX_NAME_CHARACTERS} characters", "/id")
    for name in WITH_AN_END:
        if name in request:
            yield Place("a serving job runs until it is called off, and keeps nothing", f"/{name}")


def of_load(load: Mapping[str, Any]) -> Iterator[Place]:
    """Faults of class JobLoad: instants that no calendar has, and times that end before they begin."""
    places = [(load, "observed_at", "")]
    for position, entry in enumerate(load.get("announced", ())):
        places += [(entry, name, f"/announced/{position}") for name in ("begins_at", "ends_at")]
    wrong = False
    for entry, name, pointer in places:
        try:
            instants.to_milliseconds(entry[name])
        except ValueError as error:
            wrong = True
            yield Place(f"there is no such instant: {error}", f"{pointer}/{name}")
    for position, entry in enumerate(() if wrong else load.get("announced", ())):
        if instants.to_milliseconds(entry["ends_at"]) < instants.to_milliseconds(entry["begins_at"]):
            yield Place("it ends before it begins", f"/announced/{position}/ends_at")


@dataclass(frozen=True, slots=True)
class KeepLoad:
    """The load of a serving job was told, class JobLoad.

    Raises when applied: unknown-reference, where there is no such job; invalid-body, where it does not serve.
    """

    tenant: str
    load: Json
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[JobRecord]:
        """Keep it; of a job that has ended nothing is kept."""
        connection, name = transaction.connection, self.load["job"]
        existing = job_store.find(connection, self.tenant, name)
        if existing is None:
            raise unknown_reference("/job", f"there is no job {name!r}")
        if "serving" not in existing.standing.spec:
            raise invalid_body(Place(f"{name!r} is no serving job", "/job"))
        if existing.standing.over:
            return Outcome(existing)
        observed, rate = instants.to_milliseconds(self.load["observed_at"]), self.load["rate"]
        second = observed // 1000
        this = (job_load.c.tenant == self.tenant) & (job_load.c.job == name)
        before = connection.execute(select(job_load).where(this, job_load.c.at == second)).first()
        last = {"last_at": observed, "last_rate": rate}
        if before is None:
            row = {"tenant": self.tenant, "job": name, "at": second, "rate": rate, **last}
            connection.execute(insert(job_load), row)
            connection.execute(delete(job_load).where(this, job_load.c.at < second - KEPT_SECONDS))
        else:
            values = {"rate": max(before.rate, rate), **(last if observed >= before.last_at else {})}
            connection.execute(update(job_load).where(this, job_load.c.at == second).values(**values))
        changes = JobChanges(transaction, self.now, self.offset)
        memory = serving_memory(existing.standing)
        if "announced" in self.load and self.load["announced"] != memory["announced"]:
            after = replace(existing.standing, serving={**memory, "announced": self.load["announced"]})
            existing = changes.keep_job(self.tenant, existing, after)
        return Outcome(existing, changes.notification(self.follower))


@dataclass(frozen=True, slots=True)
class Serve:
    """Add replicas to a serving job, and tell of them.

    Attributes:
        tenant: Whose it is.
        job: Its name.
        replicas: What is told, class ReplicaState, without those that are added.
        add: How many are added.
        serial: How many it has had, when this was decided.
        reason: Why, in words.
        now: By the clock of deadlines, in milliseconds.
        follower: Is told of what changes.
        offset: Milliseconds by which the clock on the wall is ahead of that of deadlines.
        quota: What the tenant may have; None without limits.
    """

    tenant: str
    job: str
    replicas: "documents.ReplicaState"
    add: int
    serial: int
    reason: str
    now: int
    follower: Follower
    offset: int = 0
    quota: Quota | None = None

    @property
    def weight(self) -> int:
        """How much of the writer's queue it takes."""
        return 1 + self.add

    def apply(self, transaction: Transaction) -> Outcome[JobRecord | None]:
        """Carry it out; the job as it stands then, None where there is none."""
        existing = job_store.find(transaction.connection, self.tenant, self.job)
        if existing is None or existing.standing.over:
            return Outcome(existing)
        changes = JobChanges(transaction, self.now, self.offset)
        standing = existing.standing
        if standing.cancelling:
            record = changes.keep_job(self.tenant, existing, job_rules.end_serving(standing, changes.stamp))
            return Outcome(record, changes.notification(self.follower))
        memory = serving_memory(standing)
        if memory["serial"] != self.serial:
            return Outcome(existing)
        names, serial, reason = list(self.replicas["jobs"]), self.serial, self.reason
        for _ in range(self.add):
            request, serial = self._request(transaction, standing, serial)
            try:
                if self.quota is not None:
                    size = len(orjson.dumps(request).decode())
                    self.quota.check_all(transaction, self.tenant, 1, size)
            except ProblemException as problem:
                reason = f"{reason} There are no more replicas: {problem}."
                break
            changes.keep_job(self.tenant, None, job_rules.submit(request, changes.stamp))
            names.append(request["id"])
        state = {**self.replicas, "jobs": sorted(names)}
        after = job_rules.serve(
            standing,
            {**memory, "serial": serial, "told": state},
            running=bool(state["running"]),
            reason=reason,
            now=changes.stamp,
        )
        return Outcome(changes.keep_job(self.tenant, existing, after), changes.notification(self.follower))

    def _request(self, transaction: Transaction, standing: JobStanding, serial: int) -> tuple[Json, int]:
        """A replica as it is submitted, under a name that no other job has, and how many that makes."""
        spec = standing.spec
        while True:
            serial += 1
            name = f"{self.job}.{serial}"
            if job_store.find(transaction.connection, self.tenant, name) is None:
                break
        request = {member: value for member, value in spec.items() if member not in OF_ALL}
        retries = spec.get("retries", REPLICA_RETRIES)
        return {**request, "id": name, "retries": retries, "replica_of": self.job}, serial


def serving_memory(standing: JobStanding) -> Json:
    """What is kept with a serving job."""
    return standing.serving or {"serial": 0, "announced": [], "told": None}


def serving_load(
    connection: Connection, owner: str, request: Mapping[str, Any], now: int
) -> tuple[list[tuple[float, float]], tuple[float, float] | None]:
    """What was told of the load of a serving job.

    Args:
        connection: Reads the database.
        owner: The tenant.
        request: The job, class JobRequest.
        now: The present instant, in milliseconds.

    Returns:
        Seconds since 1970 and the most requests a second, for each step in which load was told; and the last that was
        told, None where none was.
    """
    step = int(step_of(request["serving"]))
    this = (job_load.c.tenant == owner) & (job_load.c.job == request["id"])
    past = job_load.c.at <= now // 1000 + step  # clocks of those who tell it differ
    newest = select(job_load.c.last_at, job_load.c.last_rate).where(this, past).order_by(job_load.c.at.desc()).limit(1)
    row = connection.execute(newest).first()
    if row is None:
        return [], None
    number = job_load.c.at - job_load.c.at % step
    since = job_load.c.at > now // 1000 - MAX_STEPS * step
    query = select(number.label("first"), func.max(job_load.c.rate).label("rate")).where(this, past, since)
    rows = connection.execute(query.group_by(number).order_by(number))
    return [(float(entry.first), float(entry.rate)) for entry in rows], (row.last_at / 1000, float(row.last_rate))
