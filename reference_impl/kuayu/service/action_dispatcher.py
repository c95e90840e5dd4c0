"""The action dispatcher: what domains are asked to do, whether they can be reached, and what they answer.

1. Which domains can be reached: those whose controllers ask for actions. A domain that asks for nothing starts
   nothing. Nothing of it is kept: whoever is there asks again within seconds after the service was away.
2. The contract of actions for whoever carries them out: what they are asked for allocations, for jobs, for faults.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, select, union_all

from kuayu.service import allocation_store as allocations
from kuayu.service import fault_store as faults
from kuayu.service import instants
from kuayu.service import job_store as jobs
from kuayu.service.allocation_commands import TakeResult
from kuayu.service.allocation_rules import Result
from kuayu.service.allocation_store import Follower, Leases
from kuayu.service.concurrency import Notifier, Threads
from kuayu.service.fault_store import TakeResponseResult
from kuayu.service.job_commands import TakeRunAnswer
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.tables import job_action, response, step
from kuayu.service.storage.writer import Outcome, Transaction, Writer

REACHABLE_SECONDS = 20.0
"""Seconds after its last request for actions for which a domain counts as there; a request that waits counts as long as
it waits. Controllers ask again at once, and after failures within a few seconds."""


@dataclass(slots=True)
class _ControllerPolls:
    """Requests of a domain that wait now, and when the last one ended."""

    waiting: int = 0
    last: float = float("-inf")

    def is_there(self, now: float) -> bool:
        return self.waiting > 0 or now - self.last <= REACHABLE_SECONDS


class DomainReachability:
    """Domains that ask for actions. For the event loop alone.

    Args:
        clock: Seconds of any steady clock.

    Attributes:
        came: Is told, by tenant, when a domain asks that was not there.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._askers: dict[str, dict[str, _ControllerPolls]] = {}
        self.came: Callable[[str], None] = lambda _: None

    @contextmanager
    def asking(self, tenant: str, domain: str) -> Iterator[None]:
        """A domain asks for actions for as long as the block lasts."""
        asker = self._askers.setdefault(tenant, {}).setdefault(domain, _ControllerPolls())
        was_there = asker.is_there(self._clock())
        asker.waiting += 1
        if not was_there:
            self.came(tenant)
        try:
            yield
        finally:
            asker.waiting -= 1
            asker.last = self._clock()

    def of(self, tenant: str) -> frozenset[str]:
        """Domains of a tenant that are there; others are forgotten."""
        now, askers = self._clock(), self._askers.get(tenant, {})
        for domain in [domain for domain, asker in askers.items() if not asker.is_there(now)]:
            del askers[domain]
        return frozenset(askers)


MAX_ACTIONS_PER_ANSWER = 1000
"""Actions that a domain is shown at once."""

ActionOwner = allocations.AllocationRecord | jobs.JobRecord | faults.FaultRecord
"""What an answer belongs to, as it stands afterwards."""


@dataclass(frozen=True, slots=True)
class TakeActionResult:
    """A domain has answered. Whose action it is, its name tells: no two have the same.

    Raises when applied: unknown-reference, invalid-body.

    Attributes:
        tenant: Whose it is.
        epoch: Epoch of the faults' revisions.
        result: The answer.
        now: When it came, in milliseconds by the clock of deadlines.
        follower: Is told of changes of allocations and jobs.
        weight: How much of the writer's queue it takes.
        offset: Milliseconds by which the clock on the wall is ahead of that of deadlines.
    """

    tenant: str
    epoch: str
    result: Result
    now: int
    follower: Follower
    weight: int = 1
    offset: int = 0

    def apply(self, transaction: Transaction) -> Outcome[ActionOwner]:
        """Take the answer; one that was given before changes nothing."""
        connection, action = transaction.connection, self.result.action
        of_allocation = TakeResult(self.tenant, self.result, self.now, self.follower, offset=self.offset)
        allocation = allocations.of_action(connection, self.tenant, action)  # most answers are about one
        if allocation is not None:
            return of_allocation.take(transaction, allocation)
        order = jobs.find_order(connection, self.tenant, action)
        if order is not None:
            command = TakeRunAnswer(self.tenant, order, self.result, self.now, self.follower, offset=self.offset)
            return command.apply(transaction)
        request = faults.find_response(connection, self.tenant, action)
        if request is not None:
            return TakeResponseResult(self.tenant, self.epoch, request, self.result).apply(transaction)
        return of_allocation.apply(transaction)  # which says that there is none


class ActionDispatcher:
    """Open actions of all domains, and their answers. Use it in the event loop.

    Args:
        settings: What the operator set.
        metrics: Are told of those who wait, and of results.
        database: Where actions are read.
        writer: Takes results.
        notifier: Rings when a domain is asked for something.
        leases: Are told when a domain is answered.
        follower: Is told of changes of allocations and jobs.
        threads: Where open actions are looked for.
        clock: Which deadlines are kept by.
        reach: Is told which domains ask.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        database: Database,
        writer: Writer,
        notifier: Notifier,
        leases: Leases,
        follower: Follower,
        threads: Threads,
        clock: instants.Clock,
        reach: DomainReachability,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._database = database
        self._writer = writer
        self._notifier = notifier
        self._leases = leases
        self._follower = follower
        self._threads = threads
        self._clock = clock
        self._reach = reach
        metrics.action_readers.set_function(lambda: len(notifier))

    async def take(self, tenant: str, result: Result) -> ActionOwner:
        """A domain has answered; the allocation, the job or the fault that the answer belongs to.

        Raises:
            ProblemException: unknown-reference or invalid-body.
        """
        now, offset = self._clock.milliseconds(), self._clock.offset()
        command = TakeActionResult(tenant, self._database.epoch, result, now, self._follower, offset=offset)
        matches = await self._writer.write(command, tenant, urgent=True)
        self._metrics.action_results.labels(result.phase.value, result.outcome.value).inc()
        return matches

    def domain_of(self, tenant: str, action: str) -> str | None:
        """Domain that is, or was, asked for an action; None where there is no such action. Blocking."""
        tables = (step, job_action, response)
        query = union_all(
            *(select(table.c.domain).where(table.c.tenant == tenant, table.c.action == action) for table in tables)
        )
        with self._database.reading() as connection:
            return connection.execute(query).scalars().first()

    async def open_actions(self, tenant: str, domain: str, seconds: float) -> list[bytes]:
        """What a domain is asked and has not answered, class Action as JSON; where there is nothing, waits for it.

        Raises:
            ProblemException: overloaded, where too many wait already.
        """
        most = self._settings.max_action_readers
        if seconds and (len(self._notifier) >= most or self._notifier.waiting_of(tenant) >= self._settings.share(most)):
            raise ProblemException("overloaded", "more domains wait for actions than the service takes", retry_after=1)
        with self._reach.asking(tenant, domain):
            result = await self._wait_for_actions(tenant, domain, asyncio.get_running_loop().time() + seconds)
        self._leases.answered(tenant, domain)
        return result

    async def _wait_for_actions(self, tenant: str, domain: str, until: float) -> list[bytes]:
        """Open actions, as soon as there are some or it is time."""
        loop = asyncio.get_running_loop()
        while True:
            with self._notifier.subscription((tenant, domain)) as event:
                # Whatever comes after this look rings, so nothing is missed.
                result = await self._threads.run(tenant, self._open_actions, tenant, domain)
                left = until - loop.time()
                if result or left <= 0 or self._notifier.closed:
                    return result
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    return []

    def _open_actions(self, owner: str, domain: str) -> list[bytes]:
        """Open actions, the oldest first: by the commits by which they were asked, which all of them share."""

        def shown(table: Table) -> Any:
            columns = table.c
            return select(columns.open_since, columns.action, columns.body).where(
                columns.tenant == owner, columns.domain == domain, columns.open_since.is_not(None)
            )

        whole = union_all(*map(shown, (step, job_action, response))).subquery()
        query = select(whole.c.body).order_by(whole.c.open_since, whole.c.action).limit(MAX_ACTIONS_PER_ANSWER)
        with self._database.reading() as connection:
            return [body.encode() for body in connection.execute(query).scalars()]
