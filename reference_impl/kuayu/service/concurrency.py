"""Concurrency: fair shares of what is scarce, notifiers, and guarded loops.

1. Lanes: what is scarce is shared out between tenants, so that none of them can take all of it. A lane has so many
   places. A tenant may have a share of them at a time; whoever finds none waits in the tenant's own queue, and the
   queues take turns. So a tenant waits for its own requests, and for at most one of each other tenant. For the event
   loop alone. Source of taking turns: Nagle, "On Packet Switches With Infinite Storage", RFC 970 (1985).
2. Bells: who waits for something to be asked of a domain is woken, whichever part of the service asks it.
3. Threads that nothing may end: what goes wrong is logged, and they go on.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar, TypeVarTuple, Unpack

from fastapi import Request

from kuayu.service.problems import ClientGone, ProblemException

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
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(tenant)
            else:
                self._forget(tenant, turn)
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

    def _forget(self, tenant: str, turn: "asyncio.Future[None]") -> None:
        queue = self._queues.get(tenant)
        if queue is not None and turn in queue:
            queue.remove(turn)
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
        return await asyncio.wrap_future(future)

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


logger = logging.getLogger(__name__)

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
