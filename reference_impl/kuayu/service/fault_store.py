"""Faults in the database: reads, what domains are asked to do because of them, and commands that change them.

1. Faults in the database: one row for each version, and one for each action that responds to them.
2. What domains are asked to do because of a fault, and when it is over.
3. What requests read of faults, each time one state of the database.
4. Batches of heartbeats and log lines: from the bytes of a request to what can be taken and what cannot.
5. Commands of the writer that change faults: by what was seen, by results of actions, by time.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import orjson
from sqlalchemy import Connection, bindparam, insert, select, true, update

from kuayu.resilience.faults import Change, Subject
from kuayu.service import ingest, instants, requests, streams
from kuayu.service.allocation_rules import SUCCESSES, Result
from kuayu.service.problems import Place, ProblemException, invalid_body, unknown_reference
from kuayu.service.requests import ItemForm
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import NODE, Listing, Retention, Revision, Versions
from kuayu.service.storage.tables import fault, resource, response, tenant, watched
from kuayu.service.storage.writer import Outcome, Transaction
from kuayu.service.streams import StreamStart
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, FaultKind, FaultState

if TYPE_CHECKING:
    from kuayu_schemas import documents

FAULTS = Versions(fault, tenant.c.faults)
"""Versions of faults."""

FAULT_RETENTION = Retention(
    FAULTS,
    fault.c.cleared,
    true(),
    response,
    response.c.fault,
    (response.c.fault,),
    per_transaction=500,
    counted=False,
)
"""Faults that are over; those with actions that were not answered stay."""


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """A fault as it stood after a change.

    Attributes:
        body: Class Fault but for its revision.
        revision: Of the faults, at which it came to be so.
    """

    body: dict[str, Any]
    revision: Revision

    @property
    def name(self) -> str:
        """Its identifier."""
        return str(self.body["id"])

    @property
    def number(self) -> int:
        """Number of its revision."""
        return self.revision.number

    def to_wire(self) -> "documents.Fault":
        """The fault as class Fault has it."""
        return cast("documents.Fault", self.body | {"revision": self.revision.to_wire()})

    def event(self) -> bytes:
        """The fault as an event; the same bytes whenever it is told."""
        return streams.event("fault", self.revision.epoch, self.number, orjson.dumps(self.to_wire()))


@dataclass(frozen=True, slots=True)
class Response:
    """Something that a domain is asked to do because of a fault, or was.

    Attributes:
        fault: The fault's identifier.
        body: The action, as the domain is shown it.
        open: Whether it is shown; it is until it is answered.
    """

    fault: str
    body: "documents.Action"
    open: bool = True

    def is_a(self, kind: ActionKind) -> bool:
        """Whether it is an action of a kind."""
        return self.body["kind"] == kind.value


def find_open(connection: Connection, owner: str, epoch: str, subject: Subject) -> FaultRecord | None:
    """The fault that is open about something, or None."""
    query = select(fault.c.body, fault.c.valid_from).where(
        fault.c.tenant == owner, fault.c.subject == _key(subject), fault.c.cleared.is_(None), FAULTS.valid()
    )
    row = connection.execute(query).first()
    return None if row is None else record_of(epoch, row)


def find(connection: Connection, owner: str, epoch: str, name: str) -> FaultRecord:
    """A fault as it stands; it must be there."""
    query = select(fault.c.body, fault.c.valid_from).where(FAULTS.current(owner, name))
    return record_of(epoch, connection.execute(query).one())


def save(connection: Connection, owner: str, subject: Subject, record: FaultRecord, cleared: int | None) -> None:
    """Keep a fault as it has come to be; ``cleared`` tells when it was over, in milliseconds."""
    body = record.body
    FAULTS.retire(connection, owner, record.name, record.number)
    connection.execute(
        insert(fault).values(
            tenant=owner,
            id=record.name,
            valid_from=record.number,
            subject=_key(subject),
            state=body["state"],
            domain=body.get("domain"),
            body=orjson.dumps(body).decode(),
            cleared=cleared,
        )
    )


def ask(connection: Connection, owner: str, responses: Sequence[Response], sequence: int) -> None:
    """Keep what domains are asked; ``sequence`` is that of the commit by which they are."""
    rows = [
        {
            "tenant": owner,
            "action": entry.body["id"],
            "fault": entry.fault,
            "domain": entry.body["domain"],
            "body": orjson.dumps(entry.body).decode(),
            "open_since": sequence,
        }
        for entry in responses
    ]
    if rows:
        connection.execute(insert(response), rows)


_RESPONSE = select(response.c.fault, response.c.body, response.c.open_since).where(
    response.c.tenant == bindparam("owner"), response.c.action == bindparam("action")
)


def find_response(connection: Connection, owner: str, action: str) -> Response | None:
    """What a domain was asked under a name, or None."""
    row = connection.execute(_RESPONSE, {"owner": owner, "action": action}).first()
    return None if row is None else Response(row.fault, orjson.loads(row.body), row.open_since is not None)


def close(connection: Connection, owner: str, action: str, outcome: str) -> None:
    """Note how something ended that a domain was asked; it is not shown any more."""
    named = (response.c.tenant == owner) & (response.c.action == action)
    connection.execute(update(response).where(named).values(open_since=None, outcome=outcome))


def record_of(epoch: str, row: Any) -> FaultRecord:
    """The version of a fault in a row with ``body`` and ``valid_from``."""
    return FaultRecord(orjson.loads(row.body), Revision(epoch, row.valid_from))


def subject_of(body: Mapping[str, Any]) -> Subject:
    """What a fault, class Fault with its revision or without, is about."""
    return Subject(body["kind"], body.get("domain"), body.get("node"), body.get("job"), body.get("rank"))


def _key(subject: Subject) -> str:
    parts = (subject.kind, subject.domain, subject.node, subject.job, subject.rank)
    return orjson.dumps(parts).decode()


FENCED = frozenset({FaultKind.node_dead.value, FaultKind.node_failing.value})
"""Kinds of faults whose node is fenced."""

STOPPED = frozenset({FaultKind.job_hung.value})
"""Kinds of faults whose job is stopped."""

MAX_TEXT_CHARACTERS = 2048
"""Characters of a text at most."""


def to_fault(name: str, change: Change, devices: int, revision: Revision) -> Iterator[Response]:
    """What is asked because of a fault that has come.

    Args:
        name: The fault's identifier.
        change: What has come.
        devices: Devices of the node that it is about, if it is about one.
        revision: Revision of the faults at which it came.
    """
    subject = change.subject
    if subject.kind in FENCED:
        assert subject.domain is not None
        assert subject.node is not None
        action = _action(f"{name}.fence", ActionKind.fence, subject.domain, revision)
        nodes: list[documents.NodeShare] = [{"node": subject.node, "devices": devices}]
        yield Response(name, action | {"nodes": nodes, "cause": _words(change)})
    elif subject.kind in STOPPED:
        assert subject.job is not None
        for number, domain in enumerate(change.domains):
            action = _action(f"{name}.stop-{number}", ActionKind.stop, domain, revision)
            yield Response(name, action | {"job": subject.job, "cause": _words(change)})


def to_end(fence: Response, change: Change, revision: Revision) -> Response:
    """What is asked when a fault is over because of which a node was fenced."""
    existing = fence.body
    action = _action(f"{fence.fault}.release", ActionKind.release, existing["domain"], revision)
    return Response(
        fence.fault, action | {"reservation": existing["id"], "nodes": existing["nodes"], "cause": _words(change)}
    )


def _action(name: str, kind: ActionKind, domain: str, revision: Revision) -> "documents.Action":
    return {
        "id": name,
        "kind": kind.value,
        "phase": "commit",
        "revision": revision.to_wire(),
        "domain": domain,
    }


def _words(change: Change) -> str:
    over = "" if change.open else " is over"
    return f"{change.subject.kind}{over}: {change.because}"[:MAX_TEXT_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Past:
    """What a tenant's watch has to go on from.

    Attributes:
        nodes: Nodes that have sent a heartbeat.
        open: Faults that are open.
    """

    nodes: set[str]
    open: list[FaultRecord]


class FaultStore:
    """Reads of faults, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def listing(
        self, owner: str, *, revision: Revision | None, after: str, limit: int, domain: str | None, state: str | None
    ) -> Listing[FaultRecord] | None:
        """Part of the list in order of identifier, pinned to a revision; None where that is no longer held."""
        with self._database.reading() as connection:
            revision = revision or Revision(self._database.epoch, FAULTS.number(connection, owner))
            if revision.epoch != self._database.epoch or not FAULTS.holds(connection, owner, revision.number):
                return None
            query = (
                select(fault.c.body, fault.c.valid_from)
                .where(fault.c.tenant == owner, fault.c.id > after, FAULTS.valid_at(revision.number))
                .order_by(fault.c.id)
                .limit(limit + 1)
            )
            if domain is not None:
                query = query.where(fault.c.domain == domain)
            if state is not None:
                query = query.where(fault.c.state == state)
            result = [record_of(self._database.epoch, row) for row in connection.execute(query)]
            return Listing(result[:limit], len(result) > limit, revision)

    def join(self, owner: str, last: Revision | None) -> StreamStart[FaultRecord]:
        """Begin to follow faults: each version is a change, so a stream goes on across restarts of the service.

        Args:
            owner: The tenant.
            last: Revision of the last event that the reader has seen; None to begin with the next change.

        Raises:
            ProblemException: revision-expired.
        """
        with self._database.reading() as connection:
            number = FAULTS.number(connection, owner)
            if last is None:
                return StreamStart(number, [])
            if last.epoch != self._database.epoch or not FAULTS.holds(connection, owner, last.number):
                raise ProblemException(
                    "revision-expired", f"the changes after {last.epoch}:{last.number} are not held; list the faults"
                )
            missed = (
                select(fault.c.body, fault.c.valid_from)
                .where(fault.c.tenant == owner, fault.c.valid_from > last.number)
                .order_by(fault.c.valid_from)
            )
            return StreamStart(number, [record_of(self._database.epoch, row) for row in connection.execute(missed)])

    def past(self) -> dict[str, Past]:
        """What each tenant's watch has to go on from after a restart of the service."""
        result: dict[str, Past] = {}
        with self._database.reading() as connection:
            for row in connection.execute(select(watched)):
                result.setdefault(row.tenant, Past(set(), [])).nodes.add(row.node)
            opened = select(fault.c.tenant, fault.c.body, fault.c.valid_from)
            for row in connection.execute(opened.where(fault.c.cleared.is_(None), FAULTS.valid())):
                record = record_of(self._database.epoch, row)
                result.setdefault(row.tenant, Past(set(), [])).open.append(record)
        return result


_INSTANT = "2000-01-01T00:00:00Z"

BEATS = ItemForm("HeartbeatBatch", "beats", "Heartbeat", {"node": "a", "number": 0, "sent_at": _INSTANT})
LINES = ItemForm("LogBatch", "lines", "LogLine", {"node": "a", "logged_at": _INSTANT, "text": ""})

STATED = {BEATS.item: "sent_at", LINES.item: "logged_at"}
"""Member of each kind of item that is an instant of the sender's clock."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A batch, sorted into what can be taken and what cannot.

    Attributes:
        received: When it was received, in milliseconds.
        good: Items of registered nodes, of the class that the form of the batch names.
        rejected: The others by their index, each with its problem.
    """

    received: int
    good: Sequence[Any]
    rejected: Sequence[tuple[int, ProblemException]]

    def result(self) -> bytes:
        """The answer, class IntakeResult."""
        return orjson.dumps(
            {
                "accepted": len(self.good),
                "rejected": requests.rejected(self.rejected),
                "received_at": instants.to_text(self.received),
            }
        )


def read_batch(body: bytes, form: ItemForm, max_batch: int, registered: Mapping[str, str], received: int) -> Intake:
    """Read the body of a batch, judge and sort its items.

    Args:
        body: A batch of the form, it is hoped.
        form: :data:`BEATS` or :data:`LINES`.
        max_batch: Most items.
        registered: Domain of each node.
        received: Milliseconds since 1970.

    Raises:
        ProblemException: malformed-json or invalid-body, for the request as a whole.
    """
    value = requests.parse_json(body)
    broken = form.judge(value, max_batch)
    good: list[Any] = []
    rejected: list[tuple[int, ProblemException]] = []
    for index, item in enumerate(value[form.member]):
        problem = broken.get(index) or _problem(item, STATED[form.item], registered)
        if problem is None:
            good.append(item)
        else:
            rejected.append((index, problem))
    return Intake(received, good, rejected)


def _problem(item: Mapping[str, Any], stated: str, registered: Mapping[str, str]) -> ProblemException | None:
    """Why an item that keeps to the schema cannot be taken, or None where it can."""
    if item["node"] not in registered:
        return unknown_reference("/node", f"no node {item['node']!r} is registered")
    try:
        ingest.read_instant(item[stated], f"/{stated}")
    except ProblemException as problem:
        return problem
    return None


FINAL_OUTCOMES = frozenset(
    {SUCCESSES[ActionPhase.commit], ActionOutcome.failed, ActionOutcome.refused, ActionOutcome.unknown}
)
"""How an action may end that is committed at once."""


@dataclass(slots=True)
class FaultChanges:
    """What has come of changes.

    Attributes:
        tenant: Whose they are.
        records: Faults as they have come to be, in order.
        domains: Those that were asked for something.
    """

    tenant: str
    records: list[FaultRecord] = field(default_factory=list)
    domains: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class NoteHeartbeats:
    """Note that nodes have sent their first heartbeats; those that are no longer registered are passed over.

    Attributes:
        tenant: Whose they are.
        nodes: Their names.
        follower: Is told which are watched from now on, in the writer's thread, once that is durable.
        weight: How much of the writer's queue it takes.
    """

    tenant: str
    nodes: Collection[str]
    follower: Callable[[str, Collection[str]], None]
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Note them."""
        connection = transaction.connection
        registered = select(resource.c.id).where(
            resource.c.tenant == self.tenant,
            resource.c.kind == NODE.name,
            resource.c.id.in_(self.nodes),
            resource.c.valid_to.is_(None),
        )
        noted = select(watched.c.node).where(watched.c.tenant == self.tenant, watched.c.node.in_(self.nodes))
        present = set(connection.execute(registered).scalars())
        new = present.difference(connection.execute(noted).scalars())
        if new:
            connection.execute(insert(watched), [{"tenant": self.tenant, "node": node} for node in sorted(new)])
        return Outcome(None, partial(self.follower, self.tenant, present))


@dataclass(frozen=True, slots=True)
class RecordFaults:
    """Write what has changed, and ask domains for what responds to it. What was written before changes nothing.

    Attributes:
        tenant: Whose faults.
        epoch: Epoch of their revisions.
        changes: In order.
        now: When they were seen, in milliseconds.
        offset: Milliseconds by which the clock on the wall is ahead of that of the changes.
        devices: Tells how many devices a node has.
        follower: Is told of what has come of it, in the writer's thread, once that is durable; must not raise.
        weight: How much of the writer's queue it takes.
    """

    tenant: str
    epoch: str
    changes: Sequence[Change]
    now: int
    offset: int
    devices: Callable[[str], int]
    follower: Callable[[FaultChanges], None]
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Write."""
        report = FaultChanges(self.tenant)
        for change in self.changes:
            existing = find_open(transaction.connection, self.tenant, self.epoch, change.subject)
            if change.open and existing is None:
                self._begin(transaction, change, report)
            elif existing is not None and not change.open:
                self._end(transaction, change, existing, report)
        return Outcome(None, partial(self.follower, report) if report.records else None)

    def _begin(self, transaction: Transaction, change: Change, outcome: FaultChanges) -> None:
        revision, subject = self._next(transaction), change.subject
        # A fault must not get the name of one that was forgotten, nor of one that was lost with an epoch.
        name = f"fault-{revision.epoch}-{revision.number:010d}"
        devices = 1 if subject.node is None else self.devices(subject.node)
        request = list(to_fault(name, change, devices, revision))
        body = {
            "id": name,
            "kind": subject.kind,
            "state": FaultState.open.value,
            **_about(subject),
            **({} if change.code is None else {"code": change.code}),
            "since": instants.to_text(self._instant(change)),
            "told_at": instants.to_text(self.now),
            "because": change.because[:MAX_TEXT_CHARACTERS],
            "actions": [entry.body["id"] for entry in request],
        }
        self._keep(transaction, change, FaultRecord(body, revision), request, outcome)

    def _end(self, transaction: Transaction, change: Change, record: FaultRecord, outcome: FaultChanges) -> None:
        revision, connection = self._next(transaction), transaction.connection
        before = [find_response(connection, self.tenant, action) for action in record.body["actions"]]
        request = [
            to_end(entry, change, revision) for entry in before if entry is not None and entry.is_a(ActionKind.fence)
        ]
        for entry in before:
            # A fence may have been carried out though nobody said so, and is asked for until somebody does.
            if entry is not None and entry.open and entry.is_a(ActionKind.stop):
                close(connection, self.tenant, entry.body["id"], ActionOutcome.aborted.value)
        body = record.body | {
            "state": FaultState.cleared.value,
            "cleared_at": instants.to_text(self._instant(change)),
            "actions": [*record.body["actions"], *(entry.body["id"] for entry in request)],
        }
        self._keep(transaction, change, FaultRecord(body, revision), request, outcome)

    def _keep(
        self,
        transaction: Transaction,
        change: Change,
        record: FaultRecord,
        request: Sequence[Response],
        outcome: FaultChanges,
    ) -> None:
        connection = transaction.connection
        save(connection, self.tenant, change.subject, record, None if change.open else self.now)
        ask(connection, self.tenant, request, transaction.sequence)
        outcome.records.append(record)
        outcome.domains.update(entry.body["domain"] for entry in request)

    def _next(self, transaction: Transaction) -> Revision:
        return Revision(self.epoch, FAULTS.next_number(transaction, self.tenant))

    def _instant(self, change: Change) -> int:
        """Since when it is so, in milliseconds; no later than it was seen."""
        return min(round(change.since * 1000) + self.offset, self.now)


@dataclass(frozen=True, slots=True)
class TakeResponseResult:
    """A domain has answered what it was asked because of a fault. The fault does not change by that.

    Raises when applied: invalid-body.

    Attributes:
        tenant: Whose it is.
        epoch: Epoch of the faults' revisions.
        response: What the domain was asked to do.
        result: Its answer.
    """

    tenant: str
    epoch: str
    response: Response
    result: Result

    def apply(self, transaction: Transaction) -> Outcome[FaultRecord]:
        """Take the answer: the first one counts, but that it cannot be told yet leaves the question open."""
        _check_fits(self.result)
        connection = transaction.connection
        if self.response.open and self.result.outcome is not ActionOutcome.unknown:
            close(connection, self.tenant, self.result.action, self.result.outcome.value)
        return Outcome(find(connection, self.tenant, self.epoch, self.response.fault))


def _about(subject: Subject) -> dict[str, str | int]:
    """What a fault is about, as class Fault has it."""
    about = {"domain": subject.domain, "node": subject.node, "job": subject.job, "rank": subject.rank}
    return {name: value for name, value in about.items() if value is not None}


def _check_fits(result: Result) -> None:
    """Hold an answer against what was asked, which is to commit.

    Raises:
        ProblemException: invalid-body.
    """
    if result.phase is not ActionPhase.commit:
        raise _misfit("/phase", f"{result.action!r} was asked to be committed at once")
    if result.outcome not in FINAL_OUTCOMES:
        raise _misfit("/outcome", f"the phase {result.phase.value} does not end {result.outcome.value}")


def _misfit(pointer: str, detail: str) -> ProblemException:
    return invalid_body(Place(detail, pointer))
