"""Commands that change allocations, and the coordinator that issues them while the service runs.

1. What is wrong with bodies beyond what the schema can state.
2. Commands of the writer that change allocations: by requests, by results, by time. Jobs of theirs follow at once.
3. Allocations while the service runs: requests and results go to the writer, domains hear of what they are asked.
   What a domain is shown is read from the database, so that it is durable before anyone can act on it. Time is kept
   by a clock that is on the wall when the process begins and steady from then on: a clock that is set aborts nothing.
   Deadlines outlive the process; whoever has to answer gets the time anew when the service was away, or its database.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from starlette.concurrency import run_in_threadpool

from kuayu.service import allocation_rules, allocation_store, instants
from kuayu.service.allocation_rules import Result, placements
from kuayu.service.allocation_store import (
    LEASE_CHECK_SECONDS,
    AllocationChange,
    AllocationLease,
    AllocationRecord,
    AllocationStore,
    Change,
    Follower,
    Leases,
)
from kuayu.service.concurrency import Notifier
from kuayu.service.instants import Deadlines, persist
from kuayu.service.job_store import ExpireDue, JobChanges
from kuayu.service.metrics import Metrics
from kuayu.service.problems import Place, invalid_body, not_found, unknown_reference
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import Quota
from kuayu.service.storage.writer import Outcome, Transaction, Writer
from kuayu_schemas.models import AllocationPhase

if TYPE_CHECKING:
    from kuayu_schemas import documents


def of_allocation(allocation: "documents.Allocation") -> Iterator[Place]:
    """Faults of an allocation: names that stand twice, and nodes that do not make up their share."""
    for position, placement in enumerate(placements(allocation)):
        pointer = f"/alternatives/{position - 1}" if position else "/placement"
        domains: set[str] = set()
        for number, share in enumerate(placement["shares"]):
            place = f"{pointer}/shares/{number}"
            if share["domain"] in domains:
                yield Place(f"the domain {share['domain']!r} stands twice", f"{place}/domain")
            domains.add(share["domain"])
            yield from _twice(share.get("nodes", ()), f"{place}/nodes")
            named = sum(node["devices"] for node in share.get("nodes", ()))
            if share.get("nodes") and named != share["devices"]:
                yield Place(f"the nodes have {named} devices, the share {share['devices']}", f"{place}/nodes")


def of_result(result: "documents.ActionResult") -> Iterator[Place]:
    """Faults of a result: instants that no calendar has, and nodes that stand twice."""
    for name, text in (("at", result["at"]), ("expires_at", result.get("expires_at", "1970-01-01T00:00:00Z"))):
        try:
            instants.to_milliseconds(text)
        except ValueError as error:
            yield Place(f"there is no such instant: {error}", f"/{name}")
    yield from _twice(result.get("nodes", ()), "/nodes")


def _twice(nodes: "Iterable[documents.NodeShare]", pointer: str) -> Iterator[Place]:
    seen: set[str] = set()
    for number, node in enumerate(nodes):
        if node["node"] in seen:
            yield Place(f"the node {node['node']!r} stands twice", f"{pointer}/{number}/node")
        seen.add(node["node"])


@dataclass(frozen=True, slots=True)
class StoredAllocation:
    """Result of a put."""

    record: AllocationRecord
    created: bool


@dataclass(frozen=True, slots=True)
class PutAllocation:
    """Begin an allocation; a put of what is there already changes nothing.

    Raises when applied: invalid-body, where another allocation has the name; quota-exceeded.
    """

    tenant: str
    spec: "documents.Allocation"
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0
    quota: Quota | None = None

    def apply(self, transaction: Transaction) -> Outcome[StoredAllocation]:
        """Carry the put out."""
        existing = allocation_store.find(transaction.connection, self.tenant, self.spec["id"])
        if existing is not None:
            _check_same(existing.standing.spec, self.spec)
            return Outcome(StoredAllocation(existing, created=False))
        if self.quota is not None:
            characters = len(orjson.dumps(self.spec).decode())
            self.quota.check_all(transaction, self.tenant, 1, characters)
        changes = JobChanges(transaction, self.now, self.offset)
        record = changes.keep(self.tenant, None, allocation_rules.begin(self.spec, self.now, self.now + self.offset))
        return Outcome(StoredAllocation(record, created=True), changes.notification(self.follower))


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

    def apply(self, transaction: Transaction) -> Outcome[AllocationRecord]:
        """Carry the withdrawal out."""
        existing = allocation_store.find(transaction.connection, self.tenant, self.name)
        if existing is None:
            raise not_found(f"there is no allocation {self.name!r}")
        changes = JobChanges(transaction, self.now, self.offset)
        record = changes.keep_in_turn(self.tenant, existing, allocation_rules.withdraw(existing.standing, self.now))
        return Outcome(record, changes.notification(self.follower))


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

    def apply(self, transaction: Transaction) -> Outcome[AllocationRecord]:
        """Take the answer; one that was given before changes nothing."""
        existing = allocation_store.of_action(transaction.connection, self.tenant, self.result.action)
        if existing is None:
            raise unknown_reference("/action", f"there is no action {self.result.action!r}")
        return self.take(transaction, existing)

    def take(self, transaction: Transaction, existing: AllocationRecord) -> Outcome[AllocationRecord]:
        """The same, of an action of this allocation."""
        try:
            after = allocation_rules.take_result(existing.standing, self.result, self.now)
        except allocation_rules.NotAskedError as error:
            detail = f"{self.result.action!r} was not asked to {self.result.phase.value}"
            raise unknown_reference("/phase", detail) from error
        except allocation_rules.MisfitError as error:
            raise invalid_body(Place(str(error), f"/{error.member}")) from error
        changes = JobChanges(transaction, self.now, self.offset)
        return Outcome(changes.keep_in_turn(self.tenant, existing, after), changes.notification(self.follower))


def expire_allocations(now: int, follower: Follower, offset: int = 0) -> ExpireDue:
    """Go on with allocations whose domains should have answered by now."""
    return ExpireDue(allocation_store.due, _expire_allocation, now, follower, offset=offset)


def _expire_allocation(changes: JobChanges, tenant: str, name: str) -> None:
    record = allocation_store.find(changes.transaction.connection, tenant, name)
    assert record is not None
    changes.keep_in_turn(tenant, record, allocation_rules.expire(record.standing, changes.now))


@dataclass(frozen=True, slots=True)
class LapseLeases:
    """Go on where leases are over, so that domains have let go by themselves."""

    over: Sequence[AllocationLease]
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Look after those allocations."""
        changes = JobChanges(transaction, self.now, self.offset)
        for entry in self.over:
            existing = allocation_store.find(transaction.connection, entry.tenant, entry.name)
            if existing is not None:
                changes.keep_in_turn(
                    entry.tenant, existing, allocation_rules.lapse(existing.standing, entry.domains, self.now)
                )
        return Outcome(None, changes.notification(self.follower))


@dataclass(frozen=True, slots=True)
class ResumeAllocations:
    """Give domains their time anew after the service was away."""

    now: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Move all deadlines that are nearer than an allocation's patience."""
        connection = transaction.connection
        for tenant, name in allocation_store.waiting(connection):
            existing = allocation_store.find(connection, tenant, name)
            assert existing is not None
            deadline = allocation_rules.resume(existing.standing, self.now).deadline
            assert deadline is not None
            allocation_store.postpone(connection, tenant, name, deadline)
        return Outcome(None)


def _check_same(existing: "documents.Allocation", sent: "documents.Allocation") -> None:
    """Hold what is sent against what is there.

    Raises:
        ProblemException: invalid-body, at every member that differs.
    """
    differing = sorted(name for name in existing.keys() | sent.keys() if existing.get(name) != sent.get(name))
    if differing:
        detail = "an allocation is immutable; give another one another name"
        raise invalid_body(*(Place(detail, f"/{name}" if name in sent else "") for name in differing))


logger = logging.getLogger(__name__)

WORDS = "allocations"
"""What is looked after here, for the log."""


class AllocationCoordinator:
    """Allocations of all tenants. Make it in the event loop."""

    def __init__(
        self, settings: Settings, metrics: Metrics, database: Database, writer: Writer, notifier: Notifier
    ) -> None:
        self.store = AllocationStore(database)
        self.leases = Leases()
        self.clock = instants.Clock()
        self._notifier = notifier
        self._settings = settings
        self._metrics = metrics
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(WORDS, self.clock, self.store.earliest_deadline, self._resume, self._expire)
        self._leased = asyncio.Event()
        self._listeners: list[Callable[[Change], None]] = []
        self._tasks: Sequence[asyncio.Task[None]] = ()

    def start(self) -> None:
        """Begin to keep time, with the allocations that were under way when the service ended."""
        self._tasks = [
            asyncio.create_task(self._deadlines.keep(), name="deadlines of allocations"),
            asyncio.create_task(self._keep_leases(), name="leases of allocations"),
        ]

    async def close(self) -> None:
        """Stop keeping time."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def put(self, tenant: str, spec: "documents.Allocation") -> StoredAllocation:
        """Begin an allocation unless it was begun before.

        Raises:
            ProblemException: invalid-body, where another allocation has the name; quota-exceeded.
        """
        now, offset = self.clock.milliseconds(), self.clock.offset()
        command = PutAllocation(tenant, spec, now, self.follow, offset=offset, quota=self._settings.quota)
        return await self._writer.write(command, tenant)

    async def withdraw(self, tenant: str, name: str) -> AllocationRecord:
        """Let go of what an allocation holds or asks for.

        Raises:
            ProblemException: not-found.
        """
        now, offset = self.clock.milliseconds(), self.clock.offset()
        return await self._writer.write(WithdrawAllocation(tenant, name, now, self.follow, offset=offset), tenant)

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Have somebody told of changes of allocations and of others, in the event loop, once they are durable."""
        self._listeners.append(listener)

    def follow(self, changes: Sequence[Change]) -> None:
        """Changes are durable; called in the writer's thread."""
        try:
            self._loop.call_soon_threadsafe(self._heed, changes)
        except RuntimeError:
            logger.debug("the service ends; nobody waits for what was asked of domains")

    def _heed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for domain in change.domains:
                self._notifier.notify((change.tenant, domain))
            if isinstance(change, AllocationChange):
                self._heed_allocation(change)
            for listener in self._listeners:
                listener(change)

    def _heed_allocation(self, change: AllocationChange) -> None:
        self._deadlines.heed(change.deadline)
        if change.entered is not None:
            self._metrics.allocations.labels(change.entered.value).inc()
        if change.entered is AllocationPhase.committing:
            self._leased.set()  # there may be a lease from now on
        if change.entered is AllocationPhase.committed:
            self._metrics.allocation_seconds.observe(change.age / 1000)

    async def _resume(self) -> None:
        await self._writer.write(ResumeAllocations(self.clock.milliseconds()))

    async def _expire(self) -> bool:
        command = expire_allocations(self.clock.milliseconds(), self.follow, self.clock.offset())
        return await self._writer.write(command, urgent=True)

    async def _keep_leases(self) -> None:
        """Look at all leases, for as long as there are any; the first time also at those of an earlier process."""
        while True:
            await persist(WORDS, self._look_at_leases)
            await asyncio.sleep(LEASE_CHECK_SECONDS)
            await self._leased.wait()

    async def _look_at_leases(self) -> None:
        self._leased.clear()
        leased = await run_in_threadpool(self.store.leased)
        if leased:
            self._leased.set()
            if over := self.leases.over(leased):
                now, offset = self.clock.milliseconds(), self.clock.offset()
                await self._writer.write(LapseLeases(over, now, self.follow, offset=offset), urgent=True)
        else:
            self.leases.idle()
