"""Serving jobs in the database: what was told of their load, and the replicas that are added to them.

1. *Load* is kept second by second, the most that was told of each; of a job no more than :data:`KEPT_SECONDS`.
2. *Replicas* are jobs with a name of their own: that of the serving job and a number which no other has. What they
   ask for is what the serving job does (class JobRequest), without what holds for all of them together.
3. With a serving job it is kept how many replicas it has had (``serial``), what is announced of its load
   (``announced``), and what is told of its replicas, class ReplicaState (``told``). Replicas are added only where
   ``serial`` is what it was when that was decided, so that none is added twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import Connection, delete, func, insert, select, update

from kuayu.jobs.replicas import MAX_STEPS, step_of
from kuayu.service import instants, job_rules, job_store
from kuayu.service.allocation_store import Follower
from kuayu.service.job_rules import JobStanding, Json
from kuayu.service.job_store import JobChanges, JobRecord
from kuayu.service.problems import Place, ProblemException, invalid_body, unknown_reference
from kuayu.service.storage.resources import Quota
from kuayu.service.storage.tables import job_load
from kuayu.service.storage.writer import Outcome, Transaction

if TYPE_CHECKING:
    from kuayu_schemas import documents

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


def of_request(request: Mapping[str, Any]) -> Iterator[Place]:
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
        second = instants.to_milliseconds(self.load["observed_at"]) // 1000
        this = (job_load.c.tenant == self.tenant) & (job_load.c.job == name)
        before = connection.execute(select(job_load.c.rate).where(this, job_load.c.at == second)).scalar()
        if before is None:
            row = {"tenant": self.tenant, "job": name, "at": second, "rate": self.load["rate"]}
            connection.execute(insert(job_load), row)
            connection.execute(delete(job_load).where(this, job_load.c.at < second - KEPT_SECONDS))
        elif before < self.load["rate"]:
            connection.execute(update(job_load).where(this, job_load.c.at == second).values(rate=self.load["rate"]))
        changes = JobChanges(transaction, self.now, self.offset)
        memory = kept_of(existing.standing)
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
        memory = kept_of(standing)
        if memory["serial"] != self.serial:
            return Outcome(existing)
        names, serial, reason = list(self.replicas["jobs"]), self.serial, self.reason
        for _ in range(self.add):
            request, serial = self._request(transaction, standing, serial)
            try:
                if self.quota is not None:
                    size = len(orjson.dumps(request).decode())
                    self.quota.check_all(transaction.connection, self.tenant, 1, size)
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


def kept_of(standing: JobStanding) -> Json:
    """What is kept with a serving job."""
    return standing.serving or {"serial": 0, "announced": [], "told": None}


def loads(
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
    newest = select(job_load.c.at, job_load.c.rate).where(this, past).order_by(job_load.c.at.desc()).limit(1)
    row = connection.execute(newest).first()
    if row is None:
        return [], None
    number = job_load.c.at - job_load.c.at % step
    since = job_load.c.at > now // 1000 - MAX_STEPS * step
    query = select(number.label("first"), func.max(job_load.c.rate).label("rate")).where(this, past, since)
    rows = connection.execute(query.group_by(number).order_by(number))
    return [(float(entry.first), float(entry.rate)) for entry in rows], (float(row.at), float(row.rate))
