"""Allocations while the service runs: requests and results go to the writer, domains hear of what they are asked.

What a domain is shown is read from the database, so that it is durable before anyone can act on it. Time is kept by the
clock on the wall, since deadlines outlive the process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool

from kuayu.service import instants
from kuayu.service.allocating.commands import (
    DUE_AT_ONCE,
    Change,
    Expire,
    Forget,
    PutAllocation,
    Resume,
    Stored,
    TakeResult,
    WithdrawAllocation,
)
from kuayu.service.allocating.reads import AllocationStore
from kuayu.service.allocating.rules import Result
from kuayu.service.allocating.storage import Record
from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.writer import Writer
from kuayu_schemas.models import AllocationPhase

logger = logging.getLogger(__name__)

RETRY = 1.0
"""Seconds after which timekeeping tries again where the database failed."""


class Bell:
    """Wakes those who wait for something to be asked of a domain. For the event loop alone."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._closed = False

    @contextmanager
    def heard(self, key: tuple[str, str]) -> Iterator[asyncio.Event]:
        """An event that is set when the bell rings for this tenant and domain, or for the last time."""
        event = asyncio.Event()
        if self._closed:
            event.set()
        self._waiting.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            left = self._waiting[key]
            left.discard(event)
            if not left:
                del self._waiting[key]

    @property
    def closed(self) -> bool:
        """Whether nobody may wait any longer."""
        return self._closed

    def ring(self, key: tuple[str, str]) -> None:
        """Wake those who wait for this tenant and domain."""
        for event in self._waiting.get(key, ()):
            event.set()

    def close(self) -> None:
        """Wake everyone, now and from now on."""
        self._closed = True
        for key in list(self._waiting):
            self.ring(key)

    def __len__(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))


class Coordinator:
    """Allocations of all tenants. Make it in the event loop."""

    def __init__(self, settings: Settings, metrics: Metrics, database: Database, writer: Writer) -> None:
        self.store = AllocationStore(database)
        self.bell = Bell()
        self._settings = settings
        self._metrics = metrics
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._sooner = asyncio.Event()
        self._due: int | None = None
        self._tasks: Sequence[asyncio.Task[None]] = ()
        metrics.action_readers.set_function(lambda: len(self.bell))

    def start(self) -> None:
        """Begin to keep time, with the allocations that were under way when the service ended."""
        self._tasks = [
            asyncio.create_task(self._keep_time(), name="deadlines of allocations"),
            asyncio.create_task(self._forget(), name="forgotten allocations"),
        ]

    async def close(self) -> None:
        """Stop keeping time and let nobody wait any longer."""
        self.bell.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def put(self, tenant: str, spec: dict[str, Any]) -> Stored:
        """Begin an allocation, class Allocation, unless it was begun before.

        Raises:
            ProblemException: invalid-body, where another allocation has the name.
        """
        return await self._writer.write(PutAllocation(tenant, spec, instants.now(), self._follow))

    async def withdraw(self, tenant: str, name: str) -> Record:
        """Let go of what an allocation holds or asks for.

        Raises:
            ProblemException: not-found.
        """
        return await self._writer.write(WithdrawAllocation(tenant, name, instants.now(), self._follow))

    async def take(self, tenant: str, result: Result) -> Record:
        """A domain has answered; the allocation that the answer belongs to.

        Raises:
            ProblemException: unknown-reference or invalid-body.
        """
        record = await self._writer.write(TakeResult(tenant, result, instants.now(), self._follow))
        self._metrics.action_results.labels(result.phase.value, result.outcome.value).inc()
        return record

    async def open_actions(self, tenant: str, domain: str, seconds: float) -> list[bytes]:
        """What a domain is asked and has not answered, class Action as JSON; where there is nothing, waits for it.

        Raises:
            ProblemException: overloaded, where too many wait already.
        """
        if seconds and len(self.bell) >= self._settings.max_action_readers:
            raise ProblemException("overloaded", "more domains wait for actions than the service takes", retry_after=1)
        until = self._loop.time() + seconds
        while True:
            with self.bell.heard((tenant, domain)) as event:
                # Whatever comes after this look rings, so nothing is missed.
                found = await run_in_threadpool(self.store.open_actions, tenant, domain)
                left = until - self._loop.time()
                if found or left <= 0 or self.bell.closed:
                    return found
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    return []

    def _follow(self, changes: Sequence[Change]) -> None:
        """Changes are durable; called in the writer's thread."""
        try:
            self._loop.call_soon_threadsafe(self._heed, changes)
        except RuntimeError:
            logger.debug("the service ends; nobody waits for what was asked of domains")

    def _heed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for domain in change.asked:
                self.bell.ring((change.tenant, domain))
            if change.deadline is not None and (self._due is None or change.deadline < self._due):
                self._sooner.set()
            if change.entered is not None:
                self._metrics.allocations.labels(change.entered.value).inc()
            if change.entered is AllocationPhase.committed:
                self._metrics.allocation_seconds.observe(change.age / 1000)

    async def _keep_time(self) -> None:
        await self._persist(self._resume)
        while True:
            await self._persist(self._expire)

    async def _resume(self) -> None:
        await self._writer.write(Resume(instants.now()))

    async def _expire(self) -> None:
        """Wait for the first deadline, or for one that is sooner, and look after what is due."""
        self._sooner.clear()
        self._due = None
        due = await run_in_threadpool(self.store.earliest_deadline)
        self._due = due
        left = None if due is None else (due - instants.now()) / 1000
        if left is None or left > 0:
            try:
                await asyncio.wait_for(self._sooner.wait(), left)
            except TimeoutError:
                pass
            else:
                return
        while await self._writer.write(Expire(instants.now(), self._follow)) == DUE_AT_ONCE:
            pass

    async def _persist(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it, again and again where the database or the writer fail: nobody else would look after deadlines."""
        while True:
            try:
                await work()
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
