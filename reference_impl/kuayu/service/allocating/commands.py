"""Commands of the writer that change allocations: by requests, by results, by time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from kuayu.service.allocating import forgetting, rules, storage
from kuayu.service.allocating.leases import Leased
from kuayu.service.allocating.rules import Result
from kuayu.service.allocating.standing import Standing
from kuayu.service.allocating.storage import Record
from kuayu.service.problems import Place, invalid_body, not_found, unknown_reference
from kuayu.service.storage.quotas import Quota
from kuayu.service.storage.writer import Outcome, Transaction
from kuayu_schemas.models import AllocationPhase

DUE_AT_ONCE = 100
"""Allocations whose time is up that are looked after in one transaction."""


@dataclass(frozen=True, slots=True)
class Change:
    """An allocation has changed.

    Attributes:
        tenant: Whose it is.
        asked: Domains that were asked for something by it.
        deadline: Until when answers are waited for, in milliseconds; None where nothing depends on time.
        entered: Phase that it came into by it; None where it stayed in the one that it was in.
        age: How old the allocation is by now, in milliseconds.
    """

    tenant: str
    asked: tuple[str, ...]
    deadline: int | None
    entered: AllocationPhase | None
    age: int


Follower = Callable[[Sequence[Change]], None]
"""Who is told of changes once they are durable, in the writer's thread; must not raise."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Result of a put."""

    record: Record
    created: bool


@dataclass(slots=True)
class _Changes:
    """Keeps allocations in a transaction, and what is to be told of that."""

    transaction: Transaction
    now: int
    offset: int
    made: list[Change] = field(default_factory=list)

    def keep(self, tenant: str, before: Record | None, after: Standing) -> Record:
        """The allocation as it is held now; nothing is written where nothing has changed."""
        if before is not None and before.standing == after:
            return before
        stamp, connection = self.now + self.offset, self.transaction.connection
        record = storage.save(connection, tenant, before, after, stamp, self.transaction.sequence)
        old = None if before is None else before.standing
        held = {} if old is None else {each.key: each for each in old.steps}
        asked = (each.domain for each in after.steps if each.open and held.get(each.key) != each)
        entered = None if old is not None and old.phase is after.phase else after.phase
        domains = tuple(dict.fromkeys(asked))
        self.made.append(Change(tenant, domains, after.deadline, entered, stamp - after.created))
        return record

    def keep_in_turn(self, tenant: str, before: Record | None, after: Standing) -> Record:
        """The same; it commits where its turn has come, or another of its job where it has let go.

        All writes are one after the other, so that no two of a job can take the same turn.
        """
        connection, job = self.transaction.connection, after.spec["job"]
        if after.ready:
            others = [each for each in storage.of_job(connection, tenant, job) if each.name != after.spec["id"]]
            if not any(each.standing.may_be_held for each in others):
                after = rules.committing(after, self.now)
        record = self.keep(tenant, before, after)
        if before is not None and before.standing.may_be_held and not after.may_be_held:
            self._give_turn(tenant, storage.of_job(connection, tenant, job))
        return record

    def _give_turn(self, tenant: str, of_job: Sequence[Record]) -> None:
        """Have the oldest allocation that waits commit, where none of its job may be held."""
        waiting = next((each for each in of_job if each.standing.ready), None)
        if waiting is not None and not any(each.standing.may_be_held for each in of_job):
            self.keep(tenant, waiting, rules.committing(waiting.standing, self.now))

    def told(self, follower: Follower) -> Callable[[], None] | None:
        """What is to be done once it is durable."""
        return partial(follower, tuple(self.made)) if self.made else None


@dataclass(frozen=True, slots=True)
class PutAllocation:
    """Begin an allocation; a put of what is there already changes nothing.

    Raises when applied: invalid-body, where another allocation has the name; quota-exceeded.
    """

    tenant: str
    spec: dict[str, Any]
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0
    quota: Quota | None = None

    def apply(self, transaction: Transaction) -> Outcome[Stored]:
        """Carry the put out."""
        held = storage.find(transaction.connection, self.tenant, self.spec["id"])
        if held is not None:
            _check_same(held.standing.spec, self.spec)
            return Outcome(Stored(held, created=False))
        if self.quota is not None:
            characters = len(orjson.dumps(self.spec).decode())
            self.quota.check_all(transaction.connection, self.tenant, 1, characters)
        changes = _Changes(transaction, self.now, self.offset)
        record = changes.keep(self.tenant, None, rules.begun(self.spec, self.now, self.now + self.offset))
        return Outcome(Stored(record, created=True), changes.told(self.follower))


@dataclass(frozen=True, slots=True)
class WithdrawAllocation:
    """Let go of what is held or being asked for.

    Raises when applied: not-found.
    """

    tenant: str
    name: str
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[Record]:
        """Carry the withdrawal out."""
        held = storage.find(transaction.connection, self.tenant, self.name)
        if held is None:
            raise not_found(f"there is no allocation {self.name!r}")
        changes = _Changes(transaction, self.now, self.offset)
        record = changes.keep_in_turn(self.tenant, held, rules.withdrawn(held.standing, self.now))
        return Outcome(record, changes.told(self.follower))


@dataclass(frozen=True, slots=True)
class TakeResult:
    """A domain has answered.

    Raises when applied: unknown-reference, invalid-body.
    """

    tenant: str
    result: Result
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[Record]:
        """Take the answer; one that was given before changes nothing."""
        connection = transaction.connection
        name = storage.allocation_of(connection, self.tenant, self.result.action)
        held = None if name is None else storage.find(connection, self.tenant, name)
        if held is None:
            raise unknown_reference("/action", f"there is no action {self.result.action!r}")
        try:
            after = rules.answered(held.standing, self.result, self.now)
        except rules.NotAskedError as error:
            detail = f"{self.result.action!r} was not asked to {self.result.phase.value}"
            raise unknown_reference("/phase", detail) from error
        except rules.MisfitError as error:
            raise invalid_body(Place(str(error), f"/{error.member}")) from error
        changes = _Changes(transaction, self.now, self.offset)
        return Outcome(changes.keep_in_turn(self.tenant, held, after), changes.told(self.follower))


@dataclass(frozen=True, slots=True)
class Expire:
    """Go on where the time for answers is up."""

    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Look after those whose time is up; tells how many there were."""
        changes = _Changes(transaction, self.now, self.offset)
        names = storage.due(transaction.connection, self.now, DUE_AT_ONCE)
        for tenant, name in names:
            held = storage.find(transaction.connection, tenant, name)
            assert held is not None
            changes.keep_in_turn(tenant, held, rules.expired(held.standing, self.now))
        return Outcome(len(names), changes.told(self.follower))


@dataclass(frozen=True, slots=True)
class Lapse:
    """Go on where leases are over, so that domains have let go by themselves."""

    over: Sequence[Leased]
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Look after those allocations."""
        changes = _Changes(transaction, self.now, self.offset)
        for each in self.over:
            held = storage.find(transaction.connection, each.tenant, each.name)
            if held is not None:
                changes.keep_in_turn(each.tenant, held, rules.lapsed(held.standing, each.domains, self.now))
        return Outcome(None, changes.told(self.follower))


@dataclass(frozen=True, slots=True)
class Resume:
    """Give domains their time anew after the service was away."""

    now: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Move all deadlines that are nearer than an allocation's patience."""
        connection = transaction.connection
        for tenant, name in storage.waiting(connection):
            held = storage.find(connection, tenant, name)
            assert held is not None
            deadline = rules.resumed(held.standing, self.now).deadline
            assert deadline is not None
            storage.postpone(connection, tenant, name, deadline)
        return Outcome(None)


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget allocations that hold nothing any more, and old versions.

    Attributes:
        before: Since when they have held nothing, in milliseconds.
        revisions: Changes of allocations that are kept for each tenant.
        weight: How much of the writer's queue it takes.
    """

    before: int
    revisions: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[bool]:
        """Forget; tells whether some are left that should go."""
        return Outcome(forgetting.forget(transaction.connection, self.before, self.revisions))


def _check_same(held: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    """Hold what is sent against what is there.

    Raises:
        ProblemException: invalid-body, at every member that differs.
    """
    differing = sorted(name for name in held.keys() | sent.keys() if held.get(name) != sent.get(name))
    if differing:
        detail = "an allocation is immutable; give another one another name"
        raise invalid_body(*(Place(detail, f"/{name}" if name in sent else "") for name in differing))
