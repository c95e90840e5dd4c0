"""Allocations in the database: leases, versions, reads, and changes within one transaction.

1. Which domains have let go by themselves since their leases are over (clause Allocations, where a job may run). A
   domain counts from when it sent a request that was answered, the service from when it answered; so the service's
   count ends later, and it waits a tenth longer, since clocks count unlike seconds.
2. Allocations in the database: one row for each version, and one for each step.
3. Forgetting allocations that hold nothing any more, and versions that no listing needs.
4. What requests read of allocations, each time one state of the database.
5. Changes of allocations in one transaction, and whom they are told to.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import orjson
from sqlalchemy import ColumnElement, CompoundSelect, Connection, bindparam, func, insert, select, update

from kuayu.service import allocation_rules, instants
from kuayu.service.allocation_rules import FINISHED, MAYBE_HELD, AllocationStanding, Step, domains
from kuayu.service.storage import resources
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import NAME, OWNER, Listing, Retention, Revision, Statement, Versions
from kuayu.service.storage.tables import allocation, step, tenant
from kuayu.service.storage.writer import Transaction
from kuayu_schemas.models import ActionOutcome, AllocationPhase

if TYPE_CHECKING:
    from kuayu_schemas import documents

LEASE_MARGIN_FACTOR = 1.1
"""Times a lease that a domain is silent before it is taken to have let go."""

LEASE_CHECK_SECONDS = 0.25
"""Seconds from one look to the next."""

SERVICE_ABSENCE_SECONDS = 1.0
"""Seconds between two looks from which on it was the service that was away."""

MAX_LEASE_SECONDS = 86_400.0
"""Seconds of the longest lease there can be, by the published model."""


@dataclass(frozen=True, slots=True)
class AllocationLease:
    """An allocation with a lease that domains may hold.

    Attributes:
        tenant: Whose it is.
        name: Its name.
        lease: Its lease, in seconds.
        domains: Domains that it may be held in.
    """

    tenant: str
    name: str
    lease: float
    domains: Collection[str]


class Leases:
    """When domains were last answered. Use it in the event loop.

    Args:
        clock: Seconds of any steady clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = self._looked = clock()
        self._answered: dict[tuple[str, str], float] = {}

    def answered(self, tenant: str, domain: str) -> None:
        """A request of a domain for its open actions is answered now."""
        self._answered[tenant, domain] = self._clock()

    def over(self, leased: Collection[AllocationLease]) -> list[AllocationLease]:
        """Allocations whose leases are over, with domains that released them; call it every ``LEASE_CHECK_SECONDS``."""
        now = self._clock()
        if now - self._looked > SERVICE_ABSENCE_SECONDS:
            self._since = now  # nobody could be answered meanwhile
            self._answered.clear()
        self._looked = now
        self._answered = {
            key: instant
            for key, instant in self._answered.items()
            if now - instant <= LEASE_MARGIN_FACTOR * MAX_LEASE_SECONDS
        }
        result = [(entry, self._silent(entry, now)) for entry in leased]
        return [AllocationLease(entry.tenant, entry.name, entry.lease, silent) for entry, silent in result if silent]

    def idle(self) -> None:
        """There are no leases to look at until :meth:`over` is called again; that is no absence."""
        self._looked = float("inf")

    def _silent(self, leased: AllocationLease, now: float) -> list[str]:
        limit = LEASE_MARGIN_FACTOR * leased.lease
        last = ((domain, self._answered.get((leased.tenant, domain), self._since)) for domain in leased.domains)
        return [domain for domain, instant in last if now - instant > limit]


ALLOCATIONS = Versions(allocation, tenant.c.allocations)
"""Versions of allocations."""

_STEP_COLUMNS = ("allocation", "attempt", "domain", "action", "phase", "body", "open_since", "outcome", "nodes")


@dataclass(frozen=True, slots=True)
class AllocationRecord:
    """An allocation as it is held.

    Attributes:
        standing: How it stands.
        updated: When it last changed, in milliseconds.
    """

    standing: AllocationStanding
    updated: int

    @property
    def name(self) -> str:
        """Name of the allocation."""
        return self.standing.spec["id"]

    def to_wire(self) -> "documents.AllocationRecord":
        """The allocation as class AllocationRecord has it."""
        document: dict[str, object] = {
            **self.standing.spec,
            "phase": self.standing.phase.value,
            "created_at": instants.to_text(self.standing.created),
            "updated_at": instants.to_text(self.updated),
        }
        if self.standing.holding is not None:
            document["held"] = self.standing.holding
        if self.standing.reason is not None:
            document["reason"] = self.standing.reason
        return cast("documents.AllocationRecord", document)


_STEP_ORDER = ("step_attempt", "step_domain", "step_action", "step_phase")


def _with_steps(condition: ColumnElement[bool]) -> CompoundSelect[Any]:
    """Allocations with their steps."""
    versions = select(allocation).where(allocation.c.tenant == OWNER, ALLOCATIONS.valid(), condition)
    columns = (step.c[name].label(f"step_{name}") for name in _STEP_COLUMNS)
    of_them = step.c.allocation.in_(versions.with_only_columns(allocation.c.id))
    return resources.with_parts(versions, select(*columns).where(step.c.tenant == OWNER, of_them))


_ASKED = select(step.c.allocation).where(step.c.tenant == OWNER, step.c.action == NAME).limit(1)
_FIND, _OF_ACTION = _with_steps(allocation.c.id == NAME), _with_steps(allocation.c.id == _ASKED.scalar_subquery())
_UNANSWERED = select(step.c.action).where(
    step.c.tenant == allocation.c.tenant, step.c.allocation == allocation.c.id, step.c.open_since.is_not(None)
)
_OF_JOB = _with_steps(
    (allocation.c.job == NAME)
    & (~allocation.c.phase.in_([phase.value for phase in FINISHED]) | _UNANSWERED.correlate(allocation).exists())
)
_ANSWER = (
    update(step)
    .where(step.c.tenant == OWNER, step.c.action == NAME, step.c.phase == bindparam("of_phase"))
    .values(open_since=bindparam("open_since"), outcome=bindparam("outcome"), nodes=bindparam("nodes"))
)
_INSERT, _INSERT_STEP = insert(allocation), insert(step)


def find(connection: Connection, owner: str, name: str) -> AllocationRecord | None:
    """An allocation as it stands with all its steps, or None."""
    return next(_records(connection, owner, _FIND, name), None)


def of_action(connection: Connection, owner: str, action: str) -> AllocationRecord | None:
    """The allocation that an action belongs to, or None."""
    return next(_records(connection, owner, _OF_ACTION, action), None)


def of_job(connection: Connection, owner: str, job: str) -> list[AllocationRecord]:
    """Allocations of a job that are not over, or have asked something that was not answered; the oldest first."""
    return list(_records(connection, owner, _OF_JOB, job))


def _records(connection: Connection, owner: str, query: CompoundSelect[Any], name: str) -> Iterator[AllocationRecord]:
    rows = connection.execute(query, {"owner": owner, "name": name}).mappings().all()
    steps: dict[str, list[Step]] = defaultdict(list)
    for row in sorted((row for row in rows if row["id"] is None), key=itemgetter(*_STEP_ORDER)):
        steps[row["step_allocation"]].append(_step(row))
    for row in sorted((row for row in rows if row["id"] is not None), key=itemgetter("created", "id")):
        record = record_of(row)
        yield replace(record, standing=replace(record.standing, steps=tuple(steps[row["id"]])))


def due(connection: Connection, now: int, limit: int) -> list[tuple[str, str]]:
    """Tenant and name of allocations whose time is up."""
    query = select(allocation.c.tenant, allocation.c.id).where(
        ALLOCATIONS.valid(), allocation.c.deadline.is_not(None), allocation.c.deadline <= now
    )
    return [(row.tenant, row.id) for row in connection.execute(query.order_by(allocation.c.deadline).limit(limit))]


def leased(connection: Connection) -> list[AllocationLease]:
    """Allocations with a lease that domains may hold, with the domains of all of their placements."""
    columns = allocation.c
    query = select(columns.tenant, columns.id, columns.lease, columns.body).where(
        ALLOCATIONS.valid(), columns.lease.is_not(None), columns.phase.in_([phase.value for phase in MAYBE_HELD])
    )
    return [
        AllocationLease(row.tenant, row.id, row.lease, domains(orjson.loads(row.body)))
        for row in connection.execute(query)
    ]


def waiting(connection: Connection) -> list[tuple[str, str]]:
    """Tenant and name of all allocations that wait for answers until some instant."""
    query = select(allocation.c.tenant, allocation.c.id).where(ALLOCATIONS.valid(), allocation.c.deadline.is_not(None))
    return [(row.tenant, row.id) for row in connection.execute(query)]


def save(
    transaction: Transaction, owner: str, before: AllocationRecord | None, after: AllocationStanding, now: int
) -> AllocationRecord:
    """Keep an allocation as it stands now; it must differ from what it was."""
    record = AllocationRecord(after, now)
    if before is not None and before.to_wire() == replace(record, updated=before.updated).to_wire():
        record = replace(record, updated=before.updated)  # nobody sees that it has changed
    name, body = after.spec["id"], orjson.dumps(after.spec).decode()
    number = ALLOCATIONS.next_number(transaction, owner, int(before is None), len(body))
    statements = [] if before is None else [ALLOCATIONS.retirement(owner, name, number)]
    values: dict[str, object] = {
        "job": after.spec["job"],
        "body": body,
        "phase": after.phase.value,
        "attempt": after.attempt,
        "withdrawn": after.withdrawn,
        "reason": after.reason,
        "held": None if after.holding is None else orjson.dumps(after.holding).decode(),
        "deadline": after.deadline,
        "lease": after.spec.get("lease"),
        "created": after.created,
        "updated": record.updated,
    }
    statements.append((_INSERT, {"tenant": owner, "id": name, "valid_from": number, **values}))
    existing = {} if before is None else {entry.key: entry for entry in before.standing.steps}
    statements += [
        _change_of_step(owner, name, entry, transaction.sequence, new=entry.key not in existing)
        for entry in after.steps
        if entry != existing.get(entry.key)
    ]
    resources.execute_all(transaction.connection, statements)
    return record


def postpone(connection: Connection, owner: str, name: str, deadline: int) -> None:
    """Give an allocation's domains time until ``deadline``, in milliseconds; nobody sees that."""
    connection.execute(update(allocation).where(ALLOCATIONS.current(owner, name)).values(deadline=deadline))


def _change_of_step(owner: str, name: str, entry: Step, sequence: int, *, new: bool) -> Statement:
    action, phase = entry.key
    values: dict[str, object] = {
        "open_since": sequence if entry.open else None,
        "outcome": None if entry.outcome is None else entry.outcome.value,
        "nodes": None if entry.nodes is None else orjson.dumps(entry.nodes).decode(),
    }
    if new:
        key = {"tenant": owner, "action": action, "phase": phase.value}
        outcome = {"allocation": name, "attempt": entry.attempt, "domain": entry.domain}
        body = orjson.dumps(dict(entry.body)).decode()
        return _INSERT_STEP, {**key, **outcome, "body": body, **values}
    return _ANSWER, {"owner": owner, "name": action, "of_phase": phase.value, **values}


def record_of(row: Mapping[Any, Any]) -> AllocationRecord:
    """The version of an allocation in a row, without its steps."""
    standing = AllocationStanding(
        spec=orjson.loads(row["body"]),
        created=row["created"],
        phase=AllocationPhase(row["phase"]),
        attempt=row["attempt"],
        deadline=row["deadline"],
        withdrawn=row["withdrawn"],
        reason=row["reason"],
        holding=None if row["held"] is None else orjson.loads(row["held"]),
    )
    return AllocationRecord(standing, row["updated"])


def _step(row: Mapping[Any, Any]) -> Step:
    return Step(
        attempt=row["step_attempt"],
        body=orjson.loads(row["step_body"]),
        open=row["step_open_since"] is not None,
        outcome=None if row["step_outcome"] is None else ActionOutcome(row["step_outcome"]),
        nodes=None if row["step_nodes"] is None else tuple(orjson.loads(row["step_nodes"])),
    )


ALLOCATION_RETENTION = Retention(
    ALLOCATIONS,
    allocation.c.updated,
    allocation.c.phase.in_([phase.value for phase in FINISHED]),
    step,
    step.c.allocation,
    (step.c.allocation,),
    per_transaction=500,
)
"""Allocations that hold nothing any more; those whose aborts a domain has not answered stay."""


class AllocationStore:
    """Reads of allocations, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, owner: str, name: str) -> AllocationRecord | None:
        """An allocation as it stands, or None."""
        with self._database.reading() as connection:
            return find(connection, owner, name)

    def listing(
        self, owner: str, *, revision: Revision | None, after: str, limit: int
    ) -> Listing[AllocationRecord] | None:
        """Part of the list in order of identifier, pinned to a revision; None where that is no longer held."""
        with self._database.reading() as connection:
            revision = revision or Revision(self._database.epoch, ALLOCATIONS.number(connection, owner))
            if revision.epoch != self._database.epoch or not ALLOCATIONS.holds(connection, owner, revision.number):
                return None
            rows = connection.execute(
                select(allocation)
                .where(allocation.c.tenant == owner, allocation.c.id > after, ALLOCATIONS.valid_at(revision.number))
                .order_by(allocation.c.id)
                .limit(limit + 1)
            ).mappings()
            result = [record_of(row) for row in rows]
            return Listing(result[:limit], len(result) > limit, revision)

    def leased(self) -> list[AllocationLease]:
        """Allocations with a lease that domains may hold."""
        with self._database.reading() as connection:
            return leased(connection)

    def earliest_deadline(self) -> int | None:
        """When time is up for the first of all allocations, in milliseconds; None where nothing depends on time."""
        query = select(func.min(allocation.c.deadline)).where(ALLOCATIONS.valid(), allocation.c.deadline.is_not(None))
        with self._database.reading() as connection:
            result: int | None = connection.execute(query).scalar()
            return result


@dataclass(frozen=True, slots=True)
class Change:
    """Something has changed for which domains may have been asked.

    Attributes:
        tenant: Whose it is.
        domains: Those that were asked for something by it.
    """

    tenant: str
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllocationChange(Change):
    """An allocation has changed.

    Attributes:
        deadline: Until when answers are waited for, in milliseconds; None where nothing depends on time.
        entered: Phase that it came into by it; None where it stayed in the one that it was in.
        age: How old the allocation is by now, in milliseconds.
    """

    deadline: int | None
    entered: AllocationPhase | None
    age: int


Follower = Callable[[Sequence[Change]], None]
"""Who is told of changes once they are durable, in the writer's thread; must not raise."""


class AllocationChanges:
    """Keeps allocations in a transaction, and what is to be told of that.

    Args:
        transaction: In which they are kept.
        now: By the clock that deadlines are kept by, in milliseconds.
        offset: Milliseconds by which the clock on the wall is ahead of it.
    """

    def __init__(self, transaction: Transaction, now: int, offset: int) -> None:
        self.transaction = transaction
        self.now = now
        self.stamp = now + offset
        self.changes: list[Change] = []

    def keep(self, tenant: str, before: AllocationRecord | None, after: AllocationStanding) -> AllocationRecord:
        """The allocation as it is held now; nothing is written where nothing has changed."""
        if before is not None and before.standing == after:
            return before
        record = save(self.transaction, tenant, before, after, self.stamp)
        old = None if before is None else before.standing
        existing = {} if old is None else {entry.key: entry for entry in old.steps}
        request = (entry.domain for entry in after.steps if entry.open and existing.get(entry.key) != entry)
        entered = None if old is not None and old.phase is after.phase else after.phase
        domains = tuple(dict.fromkeys(request))
        self.changes.append(AllocationChange(tenant, domains, after.deadline, entered, self.stamp - after.created))
        return record

    def keep_in_turn(self, tenant: str, before: AllocationRecord | None, after: AllocationStanding) -> AllocationRecord:
        """The same; it commits where its turn has come, or another of its job where it has let go.

        All writes are one after the other, so that no two of a job can take the same turn.
        """
        connection, job = self.transaction.connection, after.spec["job"]
        if after.ready:
            others = [entry for entry in of_job(connection, tenant, job) if entry.name != after.spec["id"]]
            if not any(other.standing.may_be_held for other in others):
                after = allocation_rules.begin_commit(after, self.now)
        record = self.keep(tenant, before, after)
        if before is not None and before.standing.may_be_held and not after.may_be_held:
            self._give_turn(tenant, of_job(connection, tenant, job))
        return record

    def _give_turn(self, tenant: str, of_job: Sequence[AllocationRecord]) -> None:
        """Have the oldest allocation that waits commit, where none of its job may be held."""
        waiting = next((entry for entry in of_job if entry.standing.ready), None)
        if waiting is not None and not any(entry.standing.may_be_held for entry in of_job):
            self.keep(tenant, waiting, allocation_rules.begin_commit(waiting.standing, self.now))

    def notification(self, follower: Follower) -> Callable[[], None] | None:
        """What is to be done once it is durable."""
        return partial(follower, tuple(self.changes)) if self.changes else None
