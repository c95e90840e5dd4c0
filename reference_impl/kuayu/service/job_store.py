"""Jobs in the database: versions, runs, printed lines, reads, expiry and retention.

1. Jobs in the database: one row for each version, one for each run, and one for each action that asks for something.
2. Changes of jobs and of their allocations in one transaction: whichever changes, the other follows at once. So
   nothing that was acknowledged can be lost between the two: an allocation that was committed is never without the
   orders to start, and a job that is to let go is never without the allocation's withdrawal.
3. What processes of jobs print: kept line by line, in the order in which it came, and no more of a run than is
   allowed. Domains number the lines of each run; so what is sent again is passed over, and a gap is noticed. Readers
   go by positions, which count the lines of all runs of a job. Where a run has printed more than is kept, its oldest
   lines go, and in the place of the last of them stands how many there were.
4. What requests and the control loop read of jobs, each time one state of the database.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    delete,
    func,
    insert,
    select,
    true,
    update,
)

from kuayu.service import account_store, allocation_rules, allocation_store, instants, job_rules, streams
from kuayu.service import allocation_store as allocations
from kuayu.service.allocation_rules import FINISHED, AllocationStanding
from kuayu.service.allocation_store import Change, Follower
from kuayu.service.job_rules import WAITING, AllocationView, JobStanding, Json, Order, Run, Transition, Verdict
from kuayu.service.problems import ProblemException
from kuayu.service.requests import Cursors
from kuayu.service.storage import resources
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import NAME, OWNER, Listing, Retention, Revision, Statement, Versions
from kuayu.service.storage.tables import job, job_action, job_decision, job_load, job_log, meta, run, run_log, tenant
from kuayu.service.storage.writer import Outcome, Transaction
from kuayu.service.streams import StreamStart
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, AllocationPhase, JobState, RunState

JOBS = Versions(job, tenant.c.jobs)
"""Versions of jobs."""

MILLISECONDS_PER_HOUR = 3_600_000.0

OPEN = tuple(sorted(state.value for state in WAITING))
"""Names of the states in which a job waits."""

UNDER_WAY = (JobState.starting.value, JobState.running.value, JobState.restarting.value)
"""Names of the states in which an attempt is under way."""

_STORED_APART = frozenset({"spec", "state", "allocation", "deadline", "submitted", "runs", "ended"})
"""Parts of a standing that have columns or tables of their own; the others are kept as JSON."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it is held.

    Attributes:
        standing: How it stands.
        revision: Of the jobs, at which it came to be so.
        updated: When, in milliseconds.
    """

    standing: JobStanding
    revision: Revision
    updated: int

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.standing.name

    @property
    def number(self) -> int:
        """Number of its revision."""
        return self.revision.number

    def to_wire(self) -> Json:
        """The job as class JobRecord has it. What it has held is counted up to its last change."""
        standing = self.standing
        document = {
            **standing.spec,
            "state": standing.state.value,
            "reason": standing.reason,
            "attempt": standing.attempt,
            "failures": standing.failures,
            "device_hours": standing.used_until(self.updated) / MILLISECONDS_PER_HOUR,
            "submitted_at": instants.to_text(standing.submitted),
            "transitions": [_transition_to_wire(transition) for transition in standing.transitions],
            "revision": self.revision.to_wire(),
        }
        stated = {
            "allocation": standing.allocation,
            "placement": standing.holding,
            "step": standing.step,
            "checkpoint_step": standing.checkpoint_step,
            "started_at": _instant(standing.started),
            "ended_at": _instant(standing.ended),
            "cancelling": standing.cancelling or None,
            "resize": standing.resize,
            "replicas": None if standing.serving is None else standing.serving["told"],
        }
        return document | {name: value for name, value in stated.items() if value is not None}

    def event(self) -> bytes:
        """The job as an event; the same bytes whenever it is told."""
        return streams.event("job", self.revision.epoch, self.number, orjson.dumps(self.to_wire()))


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """What a domain was asked for under the name of an action.

    Attributes:
        job: For which job.
        attempt: For which attempt.
        domain: Who was asked.
        kind: For what.
        outcome: How it ended; None until the domain has answered.
    """

    job: str
    attempt: int
    domain: str
    kind: ActionKind
    outcome: ActionOutcome | None


def find(connection: Connection, owner: str, name: str) -> JobRecord | None:
    """A job as it stands, with the runs that are under way, or None."""
    return _record(connection, owner, _FIND, name)


def of_allocation(connection: Connection, owner: str, allocation: str) -> JobRecord | None:
    """The job of which an attempt under way has this allocation, or None."""
    return _record(connection, owner, _OF_ALLOCATION, allocation)


def versions() -> Select[Any]:
    """Versions of jobs, each with the epoch of its revision; :func:`record_of` reads the rows."""
    epoch = select(meta.c.value).where(meta.c.name == "epoch").scalar_subquery()
    return select(job, epoch.label("epoch"))


_RUN_COLUMNS, _ORDER_COLUMNS = ("position", "state", "report", "over"), ("body", "open_since", "outcome")


def _with_runs(condition: ColumnElement[bool]) -> CompoundSelect[Any]:
    """A job, and its runs that are under way with what domains were asked for them."""
    under_way = (run.c.tenant == job.c.tenant) & (run.c.job == job.c.id) & (run.c.attempt == job.c.attempt)
    runs = select(*(run.c[name].label(f"run_{name}") for name in _RUN_COLUMNS)).where(condition)
    joined = job.join(run, under_way)
    for kind in (ActionKind.start, ActionKind.stop):
        order = job_action.alias(kind.value)
        of_run = (order.c.tenant == run.c.tenant) & (order.c.job == run.c.job) & (order.c.attempt == run.c.attempt)
        joined = joined.outerjoin(order, of_run & (order.c.domain == run.c.domain) & (order.c.kind == kind.value))
        runs = runs.add_columns(*(order.c[name].label(f"{kind.value}_{name}") for name in _ORDER_COLUMNS))
    return resources.with_parts(versions().where(condition), runs.select_from(joined))


_FIND = _with_runs(JOBS.current(OWNER, NAME))
_OF_ALLOCATION = _with_runs((job.c.tenant == OWNER) & (job.c.allocation == NAME) & JOBS.valid())
_ORDER = select(
    job_action.c.job, job_action.c.attempt, job_action.c.domain, job_action.c.kind, job_action.c.outcome
).where(job_action.c.tenant == OWNER, job_action.c.action == NAME)
_ANSWER = (
    update(job_action)
    .where(job_action.c.tenant == OWNER, job_action.c.action == NAME)
    .values(open_since=bindparam("open_since"), outcome=bindparam("outcome"))
)
_REPORT = (
    update(run)
    .where(run.c.tenant == OWNER, run.c.job == NAME)
    .where(run.c.attempt == bindparam("of_attempt"), run.c.domain == bindparam("of_domain"))
    .values(state=bindparam("state"), report=bindparam("report"), over=bindparam("over"))
)
_EPOCH = select(meta.c.value).where(meta.c.name == "epoch")
_INSERT, _INSERT_RUN, _INSERT_ORDER = insert(job), insert(run), insert(job_action)


def record_of(row: Mapping[Any, Any], runs: Iterable[Run] = ()) -> JobRecord:
    """The version of a job in a row."""
    stored: Json = orjson.loads(row["standing"])
    stored["holding"] = stored.pop("held")
    standing = JobStanding(
        **stored
        | {
            "spec": orjson.loads(row["body"]),
            "submitted": row["submitted"],
            "state": JobState(row["state"]),
            "allocation": row["allocation"],
            "deadline": row["deadline"],
            "ended": row["ended"],
            "verdict": None if stored["verdict"] is None else Verdict(stored["verdict"]),
            "transitions": tuple(
                Transition(JobState(change["state"]), change["at"], change["attempt"], change["reason"])
                for change in stored["transitions"]
            ),
            "runs": tuple(runs),
        }
    )
    return JobRecord(standing, Revision(row["epoch"], row["valid_from"]), row["updated"])


def save(transaction: Transaction, owner: str, before: JobRecord | None, after: JobStanding, now: int) -> JobRecord:
    """Keep a job as it stands now.

    Where only its runs have changed, which nobody is shown, there is no other version of it.
    """
    connection, known = transaction.connection, () if before is None else before.standing.runs
    statements = list(_changes_of_runs(owner, known, after, transaction.sequence))
    if before is not None and replace(before.standing, runs=after.runs) == after:
        resources.execute_all(connection, statements)
        return replace(before, standing=after)
    body = orjson.dumps(after.spec).decode()
    number = JOBS.next_number(transaction, owner, int(before is None), len(body))
    if before is not None:
        statements.append(JOBS.retirement(owner, after.name, number))
    row = {
        "tenant": owner,
        "id": after.name,
        "valid_from": number,
        "body": body,
        "state": after.state.value,
        "standing": _standing_to_json(after),
        "allocation": after.allocation,
        "attempt": after.begun if after.active else 0,
        "deadline": after.deadline,
        "submitted": after.submitted,
        "ended": after.ended,
        "updated": now,
    }
    statements.append((_INSERT, row))
    resources.execute_all(connection, statements)
    epoch = before.revision.epoch if before is not None else _epoch(connection)
    return JobRecord(after, Revision(epoch, number), now)


def find_order(connection: Connection, owner: str, action: str) -> OrderRecord | None:
    """What a domain was asked for under a name, or None."""
    row = connection.execute(_ORDER, {"owner": owner, "name": action}).first()
    if row is None:
        return None
    outcome = None if row.outcome is None else ActionOutcome(row.outcome)
    return OrderRecord(row.job, row.attempt, row.domain, ActionKind(row.kind), outcome)


def close(connection: Connection, owner: str, action: str, outcome: ActionOutcome) -> None:
    """Note how something ended that a domain was asked for an attempt that is over; it is not shown any more."""
    connection.execute(_ANSWER, {"owner": owner, "name": action, "open_since": None, "outcome": outcome.value})


def was_run(connection: Connection, owner: str, name: str, attempt: int, domain: str) -> bool:
    """Whether a domain was ever asked to start a run of this attempt."""
    return connection.execute(select(run.c.job).where(is_run(owner, name, attempt, domain))).first() is not None


def is_run(owner: str, name: str, attempt: int, domain: str) -> ColumnElement[bool]:
    """The row of a run."""
    return (run.c.tenant == owner) & (run.c.job == name) & (run.c.attempt == attempt) & (run.c.domain == domain)


def due(connection: Connection, now: int, limit: int) -> list[tuple[str, str]]:
    """Tenant and name of jobs that should run by now and do not."""
    query = select(job.c.tenant, job.c.id).where(JOBS.valid(), job.c.deadline.is_not(None), job.c.deadline <= now)
    return [(row.tenant, row.id) for row in connection.execute(query.order_by(job.c.deadline).limit(limit))]


def postpone(connection: Connection, deadline: int) -> None:
    """Give all jobs that are starting until ``deadline``, in milliseconds; nobody sees that."""
    connection.execute(update(job).where(JOBS.valid(), job.c.deadline.is_not(None)).values(deadline=deadline))


def _record(connection: Connection, owner: str, query: CompoundSelect[Any], name: str) -> JobRecord | None:
    rows = connection.execute(query, {"owner": owner, "name": name}).mappings().all()
    version = next((row for row in rows if row["id"] is not None), None)
    if version is None:
        return None
    runs = sorted((row for row in rows if row["id"] is None), key=itemgetter("run_position"))
    return record_of(version, map(_run, runs))


def _run(row: Mapping[Any, Any]) -> Run:
    """The run in a row, with what its domain was asked for it."""
    start = _order(row, ActionKind.start)
    assert start is not None, "a run is kept with the order to start it"
    return Run(
        start=start,
        stop=_order(row, ActionKind.stop),
        state=None if row["run_state"] is None else RunState(row["run_state"]),
        report=None if row["run_report"] is None else orjson.loads(row["run_report"]),
        over=row["run_over"],
    )


def _order(row: Mapping[Any, Any], kind: ActionKind) -> Order | None:
    body, open_since, outcome = (row[f"{kind.value}_{name}"] for name in _ORDER_COLUMNS)
    if body is None:
        return None
    return Order(orjson.loads(body), open_since is not None, None if outcome is None else ActionOutcome(outcome))


def _changes_of_runs(owner: str, before: Iterable[Run], after: JobStanding, sequence: int) -> Iterator[Statement]:
    existing = {item.start.action: item for item in before}
    for position, entry in enumerate(after.runs):
        known = existing.get(entry.start.action)
        if known == entry:
            continue
        values: Json = {
            "state": None if entry.state is None else entry.state.value,
            "report": None if entry.report is None else orjson.dumps(entry.report).decode(),
            "over": entry.over,
        }
        if known is None:
            key = {"tenant": owner, "job": after.name, "attempt": after.begun, "domain": entry.domain}
            yield _INSERT_RUN, {**key, "position": position, **values}
        else:
            named = {"owner": owner, "name": after.name, "of_attempt": after.begun, "of_domain": entry.domain}
            yield _REPORT, {**named, **values}
        yield from _changes_of_order(owner, after, None if known is None else known.start, entry.start, sequence)
        if entry.stop is not None:
            yield from _changes_of_order(owner, after, None if known is None else known.stop, entry.stop, sequence)


def _changes_of_order(
    owner: str, standing: JobStanding, before: Order | None, after: Order, sequence: int
) -> Iterator[Statement]:
    if before == after:
        return
    values = {
        "open_since": sequence if after.open else None,
        "outcome": None if after.outcome is None else after.outcome.value,
    }
    if before is None:
        key = {"tenant": owner, "action": after.action, "job": standing.name, "attempt": standing.begun}
        body = orjson.dumps(dict(after.body)).decode()
        outcome = {"domain": after.domain, "kind": after.kind.value, "body": body}
        yield _INSERT_ORDER, {**key, **outcome, **values}
    else:
        yield _ANSWER, {"owner": owner, "name": after.action, **values}


def _standing_to_json(standing: JobStanding) -> str:
    stored = {name: getattr(standing, name) for name in JobStanding.__dataclass_fields__ if name not in _STORED_APART}
    stored["held"] = stored.pop("holding")
    stored["transitions"] = [
        {"state": change.state.value, "at": change.instant, "attempt": change.attempt, "reason": change.reason}
        for change in standing.transitions
    ]
    return orjson.dumps(stored).decode()


def _transition_to_wire(change: Transition) -> Json:
    return {
        "state": change.state.value,
        "at": instants.to_text(change.instant),
        "attempt": change.attempt,
        "reason": change.reason,
    }


def _instant(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else instants.to_text(milliseconds)


def _epoch(connection: Connection) -> str:
    return str(connection.execute(_EPOCH).scalar_one())


REPORTED_PHASES = FINISHED | {AllocationPhase.committed, AllocationPhase.releasing}
"""Phases of an allocation that its job has to hear of."""


@dataclass(frozen=True, slots=True)
class JobChange(Change):
    """A job has changed.

    Attributes:
        record: The job as it is held now.
        entered: State that it came into by it; None where it stayed in the one that it was in.
        shown: Whether anything has changed that its record shows.
    """

    record: JobRecord
    entered: JobState | None
    shown: bool


class JobChanges(allocation_store.AllocationChanges):
    """Keeps allocations and jobs in a transaction, and what is to be told of that."""

    def keep(
        self, tenant: str, before: allocations.AllocationRecord | None, after: AllocationStanding
    ) -> allocations.AllocationRecord:
        """The allocation as it is held now; the job that it is for goes on by that."""
        record = super().keep(tenant, before, after)
        old = None if before is None else before.standing.phase
        if old is not after.phase and after.phase in REPORTED_PHASES:
            self._tell_job(tenant, record)
        return record

    def keep_job(self, tenant: str, before: JobRecord | None, after: JobStanding) -> JobRecord:
        """The job as it is held now; its allocation is let go where it is to be. Writes only what has changed."""
        if before is not None and before.standing == after:
            return before
        record = save(self.transaction, tenant, before, after, self.stamp)
        old = None if before is None else before.standing
        if old is not None and old.held_since is not None and after.held_since is None:
            account_store.note_attempt(self.transaction.connection, tenant, old, self.stamp)
        entered = None if old is not None and old.state is after.state else after.state
        shown = before is None or record.revision != before.revision
        self.changes.append(JobChange(tenant, _newly_ordered_domains(old, after), record, entered, shown))
        if after.withdrawing and not (old is not None and old.withdrawing):
            return self._let_go(tenant, record)
        return record

    def _let_go(self, tenant: str, record: JobRecord) -> JobRecord:
        """Withdraw the allocation of a job; the job as it stands after that."""
        name = record.standing.allocation
        assert name is not None
        existing = allocations.find(self.transaction.connection, tenant, name)
        assert existing is not None
        self.keep_in_turn(tenant, existing, allocation_rules.withdraw(existing.standing, self.now))
        return self.newest(tenant, record.name)

    def newest(self, tenant: str, name: str) -> JobRecord:
        """A job that has changed in this transaction, as it is held now."""
        changes = (change for change in reversed(self.changes) if isinstance(change, JobChange))
        return next(change.record for change in changes if (change.tenant, change.record.name) == (tenant, name))

    def _tell_job(self, tenant: str, allocation: allocations.AllocationRecord) -> None:
        """Have the job of an allocation go on, where it has one."""
        connection, standing = self.transaction.connection, allocation.standing
        record = of_allocation(connection, tenant, allocation.name)
        reservations = {entry.domain: entry.action for entry in standing.current(ActionPhase.commit)}
        view = AllocationView(allocation.name, standing.phase, standing.holding, reservations, standing.reason)
        while record is not None:
            after = job_rules.follow_allocation(record.standing, view, self.stamp)
            if after == record.standing:
                return
            record = self.keep_job(tenant, record, after)


def _newly_ordered_domains(before: JobStanding | None, after: JobStanding) -> tuple[str, ...]:
    """Domains that are shown an order now, and were not before."""
    shown = set() if before is None else {order.action for order in _open_orders(before.runs)}
    domains = (order.domain for order in _open_orders(after.runs) if order.action not in shown)
    return tuple(dict.fromkeys(domains))


def _open_orders(runs: tuple[Run, ...]) -> list[Order]:
    return [order for run in runs for order in (run.start, run.stop) if order is not None and order.open]


LINE_OVERHEAD = 64
"""Characters that a line counts for beside its text: what else is kept with it."""

KEPT_SHARE = 0.75
"""Part of the allowance that is left when lines have to go, so that they do not go one by one."""

DROPPED_LINES_PER_READ = 5_000
"""Lines that are looked at together when some have to go."""


@dataclass(frozen=True, slots=True)
class KeptLines:
    """What became of lines.

    Attributes:
        last: Number of the last line of the run that was kept.
        accepted: Lines that are new.
        repeated: Lines that were kept before.
        dropped: Older lines that had to go for them.
    """

    last: int
    accepted: int
    repeated: int
    dropped: int


@dataclass(frozen=True, slots=True)
class LogPage:
    """Part of the log of a job.

    Attributes:
        lines: Each of class JobLogLine.
        position: Where to go on.
        more: Whether there are further lines by now.
    """

    lines: list[Json]
    position: int
    more: bool


def keep_lines(
    connection: Connection, owner: str, job: str, attempt: int, domain: str, lines: Sequence[Json], most: int
) -> KeptLines | None:
    """Keep lines of a run, class RunLogLine, whose numbers follow each other; None where there is no such run.

    Args:
        connection: In a transaction of the writer.
        owner: The tenant.
        job: Which job.
        attempt: Which attempt.
        domain: Which domain.
        lines: At least one.
        most: Characters of a run that are kept at most.
    """
    this = is_run(owner, job, attempt, domain)
    row = connection.execute(select(run.c.last, run.c.characters).where(this)).first()
    if row is None:
        return None
    new = [line for line in lines if line["number"] > row.last]
    repeated = len(lines) - len(new)
    if not new or new[0]["number"] != row.last + 1:
        return KeptLines(row.last, 0, repeated, 0)
    position = _next_position(connection, owner, job, len(new))
    rows = [
        {
            "tenant": owner,
            "job": job,
            "position": position + place,
            "attempt": attempt,
            "domain": domain,
            "number": line["number"],
            "rank": line["rank"],
            "at": line["at"],
            "text": line["text"],
        }
        for place, line in enumerate(new)
    ]
    connection.execute(insert(run_log), rows)
    last, characters = new[-1]["number"], row.characters + sum(map(_size, new))
    dropped = 0
    if characters > most:
        characters, dropped = _drop(connection, owner, job, attempt, domain, characters, most)
    connection.execute(update(run).where(this).values(last=last, characters=characters))
    return KeptLines(last, len(new), repeated, dropped)


def read_lines(connection: Connection, owner: str, job: str, after: int, limit: int) -> LogPage:
    """Lines of a job that came after a position, at most so many."""
    columns = run_log.c
    rows = connection.execute(
        select(run_log)
        .where(columns.tenant == owner, columns.job == job, columns.position > after)
        .order_by(columns.position)
        .limit(limit + 1)
    ).all()
    lines = [
        {
            "number": row.number,
            "rank": row.rank,
            "at": row.at,
            "text": row.text,
            "attempt": row.attempt,
            "domain": row.domain,
        }
        for row in rows[:limit]
    ]
    return LogPage(lines, rows[:limit][-1].position if lines else after, len(rows) > limit)


def forget_lines(connection: Connection, owner: str, job: str) -> None:
    """Forget the log of a job."""
    for table in (run_log, job_log):
        connection.execute(delete(table).where(table.c.tenant == owner, table.c.job == job))


JOB_RETENTION = Retention(
    JOBS,
    job.c.ended,
    true(),
    job_action,
    job_action.c.job,
    (run.c.job, job_action.c.job, job_decision.c.job, job_load.c.job),
    per_transaction=20,
    forget_part=forget_lines,
)
"""Jobs that have ended, with all that they have printed; those with orders that a domain has not answered stay."""

DUE_PER_TRANSACTION = 100
"""Allocations or jobs whose time is up that are advanced in one transaction."""


@dataclass(frozen=True, slots=True)
class ExpireDue:
    """Advance what should have gone on by now: allocations that domains had to answer, jobs that had to run.

    Attributes:
        due: Tenants and names of what is due at an instant, at most so many.
        advance: Keeps one of them as it stands after its deadline.
        now: By the clock that deadlines are kept by, in milliseconds.
        follower: Is told of what changes.
        weight: How much of the writer's queue it takes.
        offset: Milliseconds by which the clock on the wall is ahead of that of deadlines.
    """

    due: Callable[[Connection, int, int], Sequence[tuple[str, str]]]
    advance: Callable[[JobChanges, str, str], None]
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[bool]:
        """Advance some; tells whether there may be more."""
        changes = JobChanges(transaction, self.now, self.offset)
        names = self.due(transaction.connection, self.now, DUE_PER_TRANSACTION)
        for owner, name in names:
            self.advance(changes, owner, name)
        return Outcome(len(names) == DUE_PER_TRANSACTION, changes.notification(self.follower))


def _next_position(connection: Connection, owner: str, job: str, number: int) -> int:
    """The first of so many positions that are taken now."""
    this = (job_log.c.tenant == owner) & (job_log.c.job == job)
    moved = update(job_log).where(this).values(position=job_log.c.position + number).returning(job_log.c.position)
    reached: int | None = connection.execute(moved).scalar()
    if reached is None:
        connection.execute(insert(job_log).values(tenant=owner, job=job, position=number))
        reached = number
    return reached - number + 1


def _drop(
    connection: Connection, owner: str, job: str, attempt: int, domain: str, characters: int, most: int
) -> tuple[int, int]:
    """Have the oldest lines of a run go; how many characters are left, and how many lines went."""
    columns = run_log.c
    this = (columns.tenant == owner) & (columns.job == job) & (columns.attempt == attempt) & (columns.domain == domain)
    left, reached, gone = characters, 0, 0
    while left > most * KEPT_SHARE:
        oldest = connection.execute(
            select(columns.number, (func.length(columns.text) + LINE_OVERHEAD).label("size"))
            .where(this, columns.number > reached)
            .order_by(columns.number)
            .limit(DROPPED_LINES_PER_READ)
        ).all()
        for row in oldest[:-1] if len(oldest) < DROPPED_LINES_PER_READ else oldest:
            if left <= most * KEPT_SHARE:
                break
            left, reached, gone = left - row.size, row.number, gone + 1
        if len(oldest) < DROPPED_LINES_PER_READ:
            break  # the newest line stays, whatever it is
    if not gone:
        return left, 0
    connection.execute(delete(run_log).where(this, columns.number < reached))
    note = f"[lines 1 to {reached} are not kept: of the log of a run at most {most} characters are]"
    connection.execute(update(run_log).where(this, columns.number == reached).values(text=note))
    return left + len(note) + LINE_OVERHEAD, gone


def _size(line: Json) -> int:
    return len(line["text"]) + LINE_OVERHEAD


_LOGS = "/v1/jobs/logs"
"""What tells cursors of logs from others."""


@dataclass(frozen=True, slots=True)
class Log:
    """Part of the log of a job.

    Attributes:
        page: Its lines.
        cursor: Where to go on after them.
        over: Whether the job has ended.
    """

    page: LogPage
    cursor: str
    over: bool


class JobStore:
    """Reads of jobs, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, owner: str, name: str) -> JobRecord | None:
        """A job as it stands, with its runs, or None."""
        with self._database.reading() as connection:
            return find(connection, owner, name)

    def listing(self, owner: str, *, revision: Revision | None, after: str, limit: int) -> Listing[JobRecord] | None:
        """Part of the list in order of identifier, pinned to a revision; None where that is no longer held."""
        with self._database.reading() as connection:
            revision = revision or Revision(self._database.epoch, JOBS.number(connection, owner))
            if revision.epoch != self._database.epoch or not JOBS.holds(connection, owner, revision.number):
                return None
            rows = connection.execute(
                versions()
                .where(job.c.tenant == owner, job.c.id > after, JOBS.valid_at(revision.number))
                .order_by(job.c.id)
                .limit(limit + 1)
            ).mappings()
            result = [record_of(row) for row in rows]
            return Listing(result[:limit], len(result) > limit, revision)

    def join(self, owner: str, last: Revision | None) -> StreamStart[JobRecord]:
        """Begin to follow jobs: each version is a change, so a stream goes on across restarts of the service.

        Args:
            owner: The tenant.
            last: Revision of the last event that the reader has seen; None to begin with the next change.

        Raises:
            ProblemException: revision-expired.
        """
        with self._database.reading() as connection:
            number = JOBS.number(connection, owner)
            if last is None:
                return StreamStart(number, [])
            if last.epoch != self._database.epoch or not JOBS.holds(connection, owner, last.number):
                raise ProblemException(
                    "revision-expired", f"the changes after {last.epoch}:{last.number} are not held; list the jobs"
                )
            missed = versions().where(job.c.tenant == owner, job.c.valid_from > last.number)
            rows = connection.execute(missed.order_by(job.c.valid_from)).mappings()
            return StreamStart(number, [record_of(row) for row in rows])

    def decision(self, owner: str, name: str) -> bytes | None:
        """What was last decided about a job, class JobDecision as JSON; None where nothing was."""
        query = select(job_decision.c.body).where(job_decision.c.tenant == owner, job_decision.c.job == name)
        with self._database.reading() as connection:
            body: str | None = connection.execute(query).scalar()
            return None if body is None else body.encode()

    def log(self, owner: str, name: str, cursor: str | None, limit: int) -> Log | None:
        """Part of the log of a job, at most so many lines; None where there is no such job.

        Raises:
            ProblemException: invalid-cursor.
        """
        with self._database.reading() as connection:
            row = connection.execute(select(job.c.submitted, job.c.ended).where(JOBS.current(owner, name))).first()
            if row is None:
                return None
            # A job that has the name of one that was forgotten has another log.
            cursors = Cursors(self._database.secret, (owner, _LOGS, name, str(row.submitted)))
            after = 0 if cursor is None else int(cursors.read(cursor)["after"])
            page = read_lines(connection, owner, name, after, limit)
            return Log(page, cursors.write({"after": page.position}), row.ended is not None)

    def tenants(self) -> list[str]:
        """Tenants that have jobs which have not ended."""
        query = select(job.c.tenant).where(JOBS.valid(), job.c.ended.is_(None)).distinct()
        with self._database.reading() as connection:
            return sorted(connection.execute(query).scalars())

    def waiting(self, owner: str) -> list[JobRecord]:
        """Jobs that are queued or held, in the order of their submission; without runs, for they have none."""
        return self._standing(owner, OPEN)

    def running(self, owner: str) -> list[JobRecord]:
        """Jobs of which an attempt is under way: that start, run, or are being ended. Their runs are not read."""
        return self._standing(owner, UNDER_WAY)

    def since(self, owner: str, number: int) -> tuple[int, list[JobRecord]]:
        """Jobs that have changed after a change, as they stand now, and the number of the last change.

        Whoever holds all jobs that have not ended keeps them up to date by this. Runs are not read.
        """
        with self._database.reading() as connection:
            newest = JOBS.number(connection, owner)
            changed = versions().where(job.c.tenant == owner, JOBS.valid(), job.c.valid_from > number)
            rows = connection.execute(changed.order_by(job.c.valid_from)).mappings()
            return newest, [record_of(row) for row in rows]

    def earliest_deadline(self) -> int | None:
        """When time is up for the first job that starts, in milliseconds; None where none does."""
        query = select(func.min(job.c.deadline)).where(JOBS.valid(), job.c.deadline.is_not(None))
        with self._database.reading() as connection:
            result: int | None = connection.execute(query).scalar()
            return result

    def used_hours(self, owner: str, now: int) -> tuple[dict[str, float], float]:
        """Hours of reference devices that accounts have used at an instant, by name, and the half-life in seconds."""
        query = versions().where(job.c.tenant == owner, JOBS.valid(), job.c.state.in_(UNDER_WAY))
        with self._database.reading() as connection:
            active = [record_of(row).standing for row in connection.execute(query).mappings()]
            used = account_store.used_hours(connection, owner, active, now)
            return used, account_store.half_life(connection)

    def _standing(self, owner: str, states: tuple[str, ...]) -> list[JobRecord]:
        query = versions().where(job.c.tenant == owner, JOBS.valid(), job.c.state.in_(states))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(job.c.submitted, job.c.id)).mappings()
            return [record_of(row) for row in rows]
