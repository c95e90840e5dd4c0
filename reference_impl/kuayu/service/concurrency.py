"""Concurrency: fair shares of what is scarce, threads and worker processes, notifiers, and guarded loops.

1. Lanes: what is scarce is shared out between tenants, so that none of them can take all of it. A lane has so many
   places. A tenant may have a share of them at a time; whoever finds none waits in the tenant's own queue, and the
   queues take turns. So a tenant waits for its own requests, and for at most one of each other tenant. For the event
   loop alone. Source of taking turns: Nagle, "On Packet Switches With Infinite Storage", RFC 970 (1985).
2. Notifiers: who waits for something to be asked of a domain is woken, whichever part of the service asks it.
3. Threads that nothing may end: what goes wrong is logged, and they go on.
4. Decisions are computed in processes of their own, few at once, so that ingest goes on beside them. A decision is
   pure: what comes out follows from the request alone, so that it can be computed anywhere. Reading a large body,
   computing and writing the answer each hold Python's lock for up to a tenth of a second; in a thread of the service
   they would make everyone wait that long.
"""

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

from fastapi import Request

from kuayu.service.metrics import Metrics
from kuayu.service.problems import ClientGone, ProblemException
from kuayu.service.settings import SOLE_TENANT, share_of

logger = logging.getLogger(__name__)


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Lane:
    """Places, and who waits for one.

    Args:
        size: Places.
        share: Places that a tenant may have at a time.
        max_waiting: Requests that may wait, of all tenants.
        waiting_share: Requests of one tenant that may wait; as many as of all where absent.
        words: What is said to who is turned away.
    """

    def __init__(
        self,
        size: int,
        share: int,
        max_waiting: int,
        waiting_share: int | None = None,
        words: str = "more requests wait than the service takes",
    ) -> None:
        self._size = size
        self._share = share
        self._max_waiting = max_waiting
        self._waiting_share = max_waiting if waiting_share is None else waiting_share
        self._words = words
        self._taken: Counter[str] = Counter()
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return sum(map(len, list(self._queues.values())))

    async def enter(self, tenant: str) -> None:
        """Take a place, as soon as there is one; who is cancelled meanwhile has none.

        Raises:
            ProblemException: overloaded, where too many wait.
        """
        if self._has_place(tenant) and tenant not in self._queues:
            self._taken[tenant] += 1
            return
        if self.waiting >= self._max_waiting or len(self._queues.get(tenant, ())) >= self._waiting_share:
            raise ProblemException("overloaded", self._words, retry_after=1)
        ticket = asyncio.get_running_loop().create_future()
        self._queues.setdefault(tenant, deque()).append(ticket)
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                self.leave(tenant)
            else:
                self._forget(tenant, ticket)
            raise

    def leave(self, tenant: str) -> None:
        """Give a place back."""
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]
        for other in list(self._queues):
            if self._has_place(other):
                queue = self._queues.pop(other)
                while queue and queue[0].done():  # cancelled, and not yet told so
                    queue.popleft()
                if not queue:
                    continue
                queue.popleft().set_result(None)
                self._taken[other] += 1
                if queue:
                    self._queues[other] = queue  # behind the others: they are next
                return

    @contextlib.asynccontextmanager
    async def place(self, tenant: str) -> AsyncIterator[None]:
        """A place for as long as the block lasts.

        Raises:
            ProblemException: overloaded, where too many wait.
        """
        await self.enter(tenant)
        try:
            yield
        finally:
            self.leave(tenant)

    def _has_place(self, tenant: str) -> bool:
        return self._taken[tenant] < self._share and self._taken.total() < self._size

    def _forget(self, tenant: str, ticket: "asyncio.Future[None]") -> None:
        queue = self._queues.get(tenant)
        if queue is not None and ticket in queue:
            queue.remove(ticket)
            if not queue:
                del self._queues[tenant]


class Threads:
    """Threads in which what would hold up the event loop is done, shared out like the places of a lane.

    Args:
        name: Of the threads.
        size: How many there are. They share one lock, so that few keep each other waiting less than many.
        share: How many a tenant may have at a time.
        max_waiting: Requests of one tenant that may wait for one.
    """

    def __init__(self, name: str, size: int, share: int, max_waiting: int = 1_024) -> None:
        self._lane = Lane(size, share, 1 << 30, max_waiting)
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=f"kuayu-{name}")

    async def run(self, tenant: str, call: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call a function in a thread.

        Raises:
            ProblemException: overloaded, where too many wait.
            Exception: Whatever the function raises.
        """
        await self._lane.enter(tenant)
        try:
            future = self._pool.submit(call, *arguments)
        except RuntimeError as error:
            self._lane.leave(tenant)
            raise ProblemException("overloaded", "the service is ending", retry_after=1) from error
        # Who is cancelled leaves the thread at work, so that the place is taken until the thread is done.
        release(self._lane, tenant, future)
        try:
            return await asyncio.wrap_future(future)
        finally:
            # Its exception's traceback holds this frame and those of the request, with the body. Held by this frame in
            # turn, all of them would stay until garbage is next collected, by the hundred where requests are refused.
            del future

    def close(self) -> None:
        """Let the threads end; blocks until they have."""
        self._pool.shutdown()


async def while_wanted(request: Request, answer: Awaitable[T]) -> T:
    """Wait for an answer as long as the client does; the body of the request has been read.

    Raises:
        ClientGone: The client has hung up. What the answer waited for is cancelled.
        Exception: Whatever comes instead of an answer.
    """
    answering = asyncio.ensure_future(answer)
    hanging_up = asyncio.create_task(_hung_up(request))
    tasks: tuple[asyncio.Future[Any], ...] = (answering, hanging_up)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        raise ClientGone
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        del answering, hanging_up, tasks, task  # as in Threads.run


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def release(lane: Lane, tenant: str, future: "Future[Any]") -> None:
    """Give a place back once a future is done, in whichever thread that is. Call it in the event loop."""
    loop = asyncio.get_running_loop()

    def leave(_: "Future[Any]") -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever would be next
            loop.call_soon_threadsafe(lane.leave, tenant)

    future.add_done_callback(leave)


class Notifier:
    """Wakes those who wait for something to be asked of a domain. For the event loop alone."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._closed = False

    @contextmanager
    def subscription(self, key: tuple[str, str]) -> Iterator[asyncio.Event]:
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

    def notify(self, key: tuple[str, str]) -> None:
        """Wake those who wait for this tenant and domain."""
        for event in self._waiting.get(key, ()):
            event.set()

    def close(self) -> None:
        """Wake everyone, now and from now on."""
        self._closed = True
        for key in list(self._waiting):
            self.notify(key)

    def waiting_of(self, tenant: str) -> int:
        """How many of a tenant wait."""
        return sum(len(events) for (owner, _), events in self._waiting.items() if owner == tenant)

    def __len__(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))


REPEATED_LOG_SECONDS = 60.0
"""Seconds after which the same failure is logged again."""


class GuardedLoop:
    """Lets a thread not end by what goes wrong, and logs it, if not each time.

    Args:
        words: What could not be done.
    """

    def __init__(self, words: str) -> None:
        self._words = words
        self._said: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Whatever goes wrong within is logged, and is over."""
        try:
            yield
        except Exception as error:
            now = time.monotonic()
            if now >= self._said.get(repr(error), float("-inf")) + REPEATED_LOG_SECONDS:
                self._said = {
                    what: instant for what, instant in self._said.items() if now < instant + REPEATED_LOG_SECONDS
                } | {repr(error): now}
                logger.exception(self._words)


NICENESS = 5
"""By how much a decision yields to ingest where both want the same core."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What tells numerical libraries how many threads to use. Several would take the cores that ingest needs, and the order
in which they sum can change the last digits of an answer."""


COLLECTION_EVERY = 200
"""Decisions after which a worker looks for cycles in all that it holds."""


class WorkerPool:
    """Takes turns at computing. Make it in the event loop.

    Args:
        workers: How many are computed at once for a tenant, each in a process; one begins when it is first needed.
        max_waiting: How many requests may wait for a worker before others are turned away.
        metrics: Are told how long each took and how many wait.
        shared: Whether several tenants use it; then there is one worker more than a tenant may have, and none may have
            all places to wait.
        deadline: Seconds after which a decision is given up and its worker ended.
    """

    def __init__(
        self, workers: int, max_waiting: int, metrics: Metrics, *, shared: bool = False, deadline: float = 120.0
    ) -> None:
        self._workers = workers + shared
        self._deadline = deadline
        self._metrics = metrics
        self._lane = Lane(
            self._workers,
            workers,
            max_waiting,
            share_of(max_waiting, shared=shared),
            "more wait to be decided than the service takes",
        )
        self._pool = self._new_pool()
        metrics.decisions_waiting.set_function(lambda: self.waiting)

    def prepare(self, *parts: Callable[[], None]) -> None:
        """Begin a worker now and have it load what it will need, so that the first request need not wait for that."""
        self._pool.submit(_call_all, parts).add_done_callback(Future.exception)

    async def compute(
        self, operation: str, decide: Callable[[Unpack[Ts]], T], *arguments: *Ts, tenant: str = SOLE_TENANT
    ) -> T:
        """Compute a decision in a worker.

        Args:
            operation: Name of the operation, for the metrics.
            decide: Function of a module. It tells of problems by what it returns: exceptions are for failures.
            arguments: What it is called with.
            tenant: Who asks.

        Raises:
            ProblemException: overloaded, where too many wait already, where it takes longer than the deadline, or where
                the worker died, as it does when memory runs out; the next request gets a new one.
        """
        await self._lane.enter(tenant)
        pool = self._pool
        try:
            future = pool.submit(_timed, partial(decide, *arguments))
        except (BrokenProcessPool, RuntimeError) as error:
            self._lane.leave(tenant)
            self._replace(pool)
            raise ProblemException("overloaded", "the process that was to decide it ended", retry_after=1) from error
        # A worker goes on with a request whose client is gone, so that it counts until the worker is done.
        release(self._lane, tenant, future)
        self._watch(future, pool)
        try:
            seconds, result = await asyncio.wrap_future(future)
        except BrokenProcessPool as error:
            self._replace(pool)
            raise ProblemException("overloaded", "the process that was to decide it ended", retry_after=1) from error
        finally:
            del future  # as above
        self._metrics.decision_seconds.labels(operation).observe(seconds)
        return result

    def close(self) -> None:
        """End the workers, also those at work: a decision leaves nothing behind, so nothing is lost."""
        _end(self._pool)

    @property
    def waiting(self) -> int:
        """How many wait for a worker."""
        return self._lane.waiting

    def _watch(self, future: "Future[Any]", pool: ProcessPoolExecutor) -> None:
        """End the workers of a pool if a decision is overdue, also one whose client is gone."""
        loop = asyncio.get_running_loop()
        overdue = loop.call_later(self._deadline, self._replace, pool)

        def forget(_: "Future[Any]") -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(overdue.cancel)

        future.add_done_callback(forget)

    def _replace(self, pool: ProcessPoolExecutor) -> None:
        """End a pool and begin another, unless that was done before."""
        if pool is self._pool:
            self._pool = self._new_pool()
            _end(pool)

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, multiprocessing.get_context("spawn"), _settle_in)


def _end(pool: ProcessPoolExecutor) -> None:
    """Kill the workers of a pool without waiting for them; they do not listen to milder signals."""
    # The standard library has nothing public for this before Python 3.14.
    processes, results = pool._processes, pool._result_queue  # noqa: SLF001
    if processes is None:
        return  # it was ended before
    workers = list(processes.values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.kill()
    # Who reads an answer that was cut off would wait for its rest for ever while anyone could still write it.
    results._writer.close()  # type: ignore[attr-defined] # noqa: SLF001


def _call_all(parts: Sequence[Callable[[], None]]) -> None:
    for part in parts:
        part()
    gc.freeze()  # modules stay for good, so that nobody need look at them again


_decided = count(1)


def _timed(decide: Callable[[], T]) -> tuple[float, T]:
    """Result of a function, and the seconds that it took.

    Thousands of jobs are hundreds of thousands of objects, hardly any of them in a cycle, and gone with the request.
    The garbage collector would look at all of them several times; so it looks once, at what is left of them by then,
    which is next to nothing. That is not counted in the seconds.
    """
    began = time.perf_counter()
    gc.disable()
    try:
        result = decide()
    finally:
        gc.enable()
    seconds = time.perf_counter() - began
    gc.collect(2 if next(_decided) % COLLECTION_EVERY == 0 else 0)
    return seconds, result


def _settle_in() -> None:
    """Begin the life of a worker: it ends when the service says so, or when the service is there no more.

    Signals to stop often go to all processes of a service at once. The service first answers what it has taken on, for
    which it needs its workers.
    """
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    os.nice(NICENESS)
    for name in THREADS:
        os.environ.setdefault(name, "1")
    threading.Thread(target=_end_with_the_service, daemon=True).start()


def _end_with_the_service() -> None:
    service = multiprocessing.parent_process()
    assert service is not None
    service.join()
    os._exit(1)
