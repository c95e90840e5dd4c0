"""Commands of the writer that change faults: by what was seen, by results of actions, by time."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import delete, insert, select

from kuayu.resilience.watching import Change, Subject
from kuayu.service import instants
from kuayu.service.allocating.rules import SUCCESSES, Result
from kuayu.service.kinds import NODE
from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import fault, resource, response, watched
from kuayu.service.storage.writer import Outcome, Transaction
from kuayu.service.watching import responses, storage
from kuayu.service.watching.responses import MOST_WORDS
from kuayu.service.watching.storage import FAULTS, Json, Record, Response
from kuayu_schemas.models import ActionKind, ActionOutcome, ActionPhase, FaultState

FORGOTTEN_AT_ONCE = 500
"""Faults that are forgotten in one transaction."""

ENDS = frozenset({SUCCESSES[ActionPhase.commit], ActionOutcome.failed, ActionOutcome.refused, ActionOutcome.unknown})
"""How an action may end that is committed at once."""


@dataclass(slots=True)
class Told:
    """What has come of changes.

    Attributes:
        tenant: Whose they are.
        records: Faults as they have come to be, in order.
        asked: Domains that were asked for something.
    """

    tenant: str
    records: list[Record] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Remember:
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
        there = set(connection.execute(registered).scalars())
        new = there.difference(connection.execute(noted).scalars())
        if new:
            connection.execute(insert(watched), [{"tenant": self.tenant, "node": node} for node in sorted(new)])
        return Outcome(None, partial(self.follower, self.tenant, there))


@dataclass(frozen=True, slots=True)
class Tell:
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
    follower: Callable[[Told], None]
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Write."""
        told = Told(self.tenant)
        for change in self.changes:
            held = storage.find_open(transaction.connection, self.tenant, self.epoch, change.subject)
            if change.open and held is None:
                self._begin(transaction, change, told)
            elif held is not None and not change.open:
                self._end(transaction, change, held, told)
        return Outcome(None, partial(self.follower, told) if told.records else None)

    def _begin(self, transaction: Transaction, change: Change, told: Told) -> None:
        at, subject = self._next(transaction), change.subject
        # A fault must not get the name of one that was forgotten, nor of one that was lost with an epoch.
        name = f"fault-{at.epoch}-{at.number:010d}"
        devices = 1 if subject.node is None else self.devices(subject.node)
        asked = list(responses.to_fault(name, change, devices, at))
        body = {
            "id": name,
            "kind": subject.kind,
            "state": FaultState.open.value,
            **_about(subject),
            **({} if change.code is None else {"code": change.code}),
            "since": instants.to_text(self._instant(change)),
            "told_at": instants.to_text(self.now),
            "because": change.because[:MOST_WORDS],
            "actions": [each.body["id"] for each in asked],
        }
        self._keep(transaction, change, Record(body, at), asked, told)

    def _end(self, transaction: Transaction, change: Change, held: Record, told: Told) -> None:
        at, connection = self._next(transaction), transaction.connection
        before = [storage.find_response(connection, self.tenant, action) for action in held.body["actions"]]
        asked = [
            responses.to_end(each, change, at) for each in before if each is not None and each.is_a(ActionKind.fence)
        ]
        for each in before:
            # A fence may have been carried out though nobody said so, and is asked for until somebody does.
            if each is not None and each.open and each.is_a(ActionKind.stop):
                storage.close(connection, self.tenant, each.body["id"], ActionOutcome.aborted.value)
        body = held.body | {
            "state": FaultState.cleared.value,
            "cleared_at": instants.to_text(self._instant(change)),
            "actions": [*held.body["actions"], *(each.body["id"] for each in asked)],
        }
        self._keep(transaction, change, Record(body, at), asked, told)

    def _keep(
        self, transaction: Transaction, change: Change, record: Record, asked: Sequence[Response], told: Told
    ) -> None:
        connection = transaction.connection
        storage.save(connection, self.tenant, change.subject, record, None if change.open else self.now)
        storage.ask(connection, self.tenant, asked, transaction.sequence)
        told.records.append(record)
        told.asked.update(each.body["domain"] for each in asked)

    def _next(self, transaction: Transaction) -> Revision:
        return Revision(self.epoch, FAULTS.next_number(transaction.connection, self.tenant))

    def _instant(self, change: Change) -> int:
        """Since when it is so, in milliseconds; no later than it was seen."""
        return min(round(change.since * 1000) + self.offset, self.now)


@dataclass(frozen=True, slots=True)
class Answered:
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

    def apply(self, transaction: Transaction) -> Outcome[Record]:
        """Take the answer: the first one counts, but that it cannot be told yet leaves the question open."""
        _check_fits(self.result)
        connection = transaction.connection
        if self.asked.open and self.result.outcome is not ActionOutcome.unknown:
            storage.close(connection, self.tenant, self.result.action, self.result.outcome.value)
        return Outcome(storage.find(connection, self.tenant, self.epoch, self.asked.fault))


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget faults that are over, with what was asked because of them, and old versions.

    Those with actions that were not answered stay.

    Attributes:
        before: Since when they have been over, in milliseconds.
        revisions: Changes of faults that are kept for each tenant.
        weight: How much of the writer's queue it takes.
    """

    before: int
    revisions: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[bool]:
        """Forget; tells whether some are left that should go."""
        connection = transaction.connection
        unanswered = select(response.c.action).where(
            response.c.tenant == fault.c.tenant, response.c.fault == fault.c.id, response.c.open_since.is_not(None)
        )
        gone = connection.execute(
            select(fault.c.tenant, fault.c.id)
            .where(FAULTS.valid(), fault.c.cleared.is_not(None), fault.c.cleared < self.before)
            .where(~unanswered.exists())
            .limit(FORGOTTEN_AT_ONCE)
        ).all()
        for row in gone:
            FAULTS.retire(connection, row.tenant, row.id, FAULTS.next_number(connection, row.tenant))
            connection.execute(delete(response).where(response.c.tenant == row.tenant, response.c.fault == row.id))
        FAULTS.forget(connection, self.revisions)
        return Outcome(len(gone) == FORGOTTEN_AT_ONCE)


def _about(subject: Subject) -> Json:
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
    if result.outcome not in ENDS:
        raise _misfit("/outcome", f"the phase {result.phase.value} does not end {result.outcome.value}")


def _misfit(pointer: str, detail: str) -> ProblemException:
    return invalid_body(Place(detail, pointer))
