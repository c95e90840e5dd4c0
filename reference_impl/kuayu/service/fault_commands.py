"""Commands of the writer that change faults, and the batches of heartbeats and log lines before them.

1. Batches of heartbeats and log lines: from the bytes of a request to what can be taken and what cannot.
2. Commands of the writer that change faults: by what was seen, by results of actions, by time.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson
from sqlalchemy import insert, select

from kuayu.resilience.faults import Change, Subject
from kuayu.service import bodies, fault_store, ingest, instants
from kuayu.service.allocation_rules import SUCCESSES, Result
from kuayu.service.bodies import ItemForm
from kuayu.service.fault_store import FAULTS, MAX_TEXT_CHARACTERS, FaultRecord, Response
from kuayu.service.kinds import NODE
from kuayu.service.problems import Place, ProblemException, invalid_body, unknown_reference
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import resource, watched
from kuayu.service.storage.writer import Outcome, Transaction
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, FaultState

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
                "rejected": bodies.rejected(self.rejected),
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
    value = bodies.parse_json(body)
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
        asked: Domains that were asked for something.
    """

    tenant: str
    records: list[FaultRecord] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)


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
            existing = fault_store.find_open(transaction.connection, self.tenant, self.epoch, change.subject)
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
        request = list(fault_store.to_fault(name, change, devices, revision))
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

    def _end(self, transaction: Transaction, change: Change, held: FaultRecord, outcome: FaultChanges) -> None:
        revision, connection = self._next(transaction), transaction.connection
        before = [fault_store.find_response(connection, self.tenant, action) for action in held.body["actions"]]
        request = [
            fault_store.to_end(entry, change, revision)
            for entry in before
            if entry is not None and entry.is_a(ActionKind.fence)
        ]
        for entry in before:
            # A fence may have been carried out though nobody said so, and is asked for until somebody does.
            if entry is not None and entry.open and entry.is_a(ActionKind.stop):
                fault_store.close(connection, self.tenant, entry.body["id"], ActionOutcome.aborted.value)
        body = held.body | {
            "state": FaultState.cleared.value,
            "cleared_at": instants.to_text(self._instant(change)),
            "actions": [*held.body["actions"], *(entry.body["id"] for entry in request)],
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
        fault_store.save(connection, self.tenant, change.subject, record, None if change.open else self.now)
        fault_store.ask(connection, self.tenant, request, transaction.sequence)
        outcome.records.append(record)
        outcome.asked.update(entry.body["domain"] for entry in request)

    def _next(self, transaction: Transaction) -> Revision:
        return Revision(self.epoch, FAULTS.next_number(transaction.connection, self.tenant))

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
        asked: What the domain was asked.
        result: Its answer.
    """

    tenant: str
    epoch: str
    asked: Response
    result: Result

    def apply(self, transaction: Transaction) -> Outcome[FaultRecord]:
        """Take the answer: the first one counts, but that it cannot be told yet leaves the question open."""
        _check_fits(self.result)
        connection = transaction.connection
        if self.asked.open and self.result.outcome is not ActionOutcome.unknown:
            fault_store.close(connection, self.tenant, self.result.action, self.result.outcome.value)
        return Outcome(fault_store.find(connection, self.tenant, self.epoch, self.asked.fault))


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
