"""Allocations while the service runs: requests and results go to the writer, domains hear of what they are asked.

What a domain is shown is read from the database, so that it is durable before anyone can act on it. Time is kept by a
clock that is on the wall when the process begins and steady from then on: a clock that is set aborts nothing. Deadlines
outlive the process; whoever has to answer gets the time anew when the service was away, or its database.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from kuayu.service import instants
from kuayu.service.allocating.commands import (
    DUE_AT_ONCE,
    Change,
    Expire,
    Forget,
    Lapse,
    PutAllocation,
    Resume,
    Stored,
    WithdrawAllocation,
)
from kuayu.service.allocating.leases import LOOK, Leases
from kuayu.service.allocating.reads import AllocationStore
from kuayu.service.allocating.storage import Record
from kuayu.service.bells import Bell
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.writer import Writer
from kuayu_schemas.models import AllocationPhase

logger = logging.getLogger(__name__)

RETRY = 1.0
"""Seconds after which timekeeping tries again where the database failed."""


class Coordinator:
    """Allocations of all tenants. Make it in the event loop."""

    def __init__(self, settings: Settings, metrics: Metrics, database: Database, writer: Writer, bell: Bell) -> None:
        self.store = AllocationStore(database)
        self.leases = Leases()
        self.clock = instants.Clock()
        self._bell = bell
        self._settings = settings
        self._metrics = metrics
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._sooner = asyncio.Event()
        self._due: int | None = None
        self._leased = asyncio.Event()
        self._tasks: Sequence[asyncio.Task[None]] = ()

    def start(self) -> None:
        """Begin to keep time, with the allocations that were under way when the service ended."""
        self._tasks = [
            asyncio.create_task(self._keep_time(), name="deadlines of allocations"),
            asyncio.create_task(self._keep_leases(), name="leases of allocations"),
            asyncio.create_task(self._forget(), name="forgotten allocations"),
        ]

    async def close(self) -> None:
        """Stop keeping time."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def put(self, tenant: str, spec: dict[str, Any]) -> Stored:
        """Begin an allocation, class Allocation, unless it was begun before.

        Raises:
            ProblemException: invalid-body, where another allocation has the name; quota-exceeded.
        """
        now, offset = self.clock.milliseconds(), self.clock.offset()
        command = PutAllocation(tenant, spec, now, self.follow, offset=offset, quota=self._settings.quota)
        return await self._writer.write(command, tenant)

    async def withdraw(self, tenant: str, name: str) -> Record:
        """Let go of what an allocation holds or asks for.

        Raises:
            ProblemException: not-found.
        """
        now, offset = self.clock.milliseconds(), self.clock.offset()
        return await self._writer.write(WithdrawAllocation(tenant, name, now, self.follow, offset=offset), tenant)

    def follow(self, changes: Sequence[Change]) -> None:
        """Changes are durable; called in the writer's thread."""
        try:
            self._loop.call_soon_threadsafe(self._heed, changes)
        except RuntimeError:
            logger.debug("the service ends; nobody waits for what was asked of domains")

    def _heed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for domain in change.asked:
                self._bell.ring((change.tenant, domain))
            if change.deadline is not None and (self._due is None or change.deadline < self._due):
                self._sooner.set()
            if change.entered is not None:
                self._metrics.allocations.labels(change.entered.value).inc()
            if change.entered is AllocationPhase.committing:
                self._leased.set()  # there may be a lease from now on
            if change.entered is AllocationPhase.committed:
                self._metrics.allocation_seconds.observe(change.age / 1000)

    async def _keep_time(self) -> None:
        await self._persist(self._keep_deadlines)

    async def _keep_deadlines(self) -> None:
        """Look after them until the database fails; domains get their time anew when it is there again."""
        await self._resume()
        while True:
            await self._expire()

    async def _resume(self) -> None:
        await self._writer.write(Resume(self.clock.milliseconds()))

    async def _expire(self) -> None:
        """Wait for the first deadline, or for one that is sooner, and look after what is due."""
        self._sooner.clear()
        self._due = None
        due = await run_in_threadpool(self.store.earliest_deadline)
        self._due = due
        left = None if due is None else (due - self.clock.milliseconds()) / 1000
        if left is None or left > 0:
            try:
                await asyncio.wait_for(self._sooner.wait(), left)
            except TimeoutError:
                pass
            else:
                return
        while await self._writer.write(self._expired(), urgent=True) == DUE_AT_ONCE:
            pass

    def _expired(self) -> Expire:
        return Expire(self.clock.milliseconds(), self.follow, offset=self.clock.offset())

    async def _keep_leases(self) -> None:
        """Look at all leases, for as long as there are any; the first time also at those of an earlier process."""
        while True:
            await self._persist(self._look_at_leases)
            await asyncio.sleep(LOOK)
            await self._leased.wait()

    async def _look_at_leases(self) -> None:
        self._leased.clear()
        leased = await run_in_threadpool(self.store.leased)
        if leased:
            self._leased.set()
            if over := self.leases.over(leased):
                now, offset = self.clock.milliseconds(), self.clock.offset()
                await self._writer.write(Lapse(over, now, self.follow, offset=offset), urgent=True)
        else:
            self.leases.idle()

    async def _persist(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it, again and again where the database or the writer fail: nobody else would look after deadlines."""
        while True:
            try:
                await work()
            except ProblemException:
                # That the database is away is logged once, by whoever notices it.
                logger.debug("allocations could not be looked after", exc_info=True)
                await asyncio.sleep(RETRY)
            except Exception:
                logger.exception("allocations could not be looked after; again in %g s", RETRY)
                await asyncio.sleep(RETRY)
            else:
                return

    async def _forget(self) -> None:
        while True:
            await asyncio.sleep(self._settings.maintenance_period)
            await self._persist(self._forget_once)

    async def _forget_once(self) -> None:
        before = instants.now() - round(self._settings.allocation_retention * 1000)
        while await self._writer.write(Forget(before, self._settings.history)):
            pass  # a piece at a time, so that others can write between
