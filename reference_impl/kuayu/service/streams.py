"""Readers who follow changes: server-sent events (WHATWG HTML, section 9.2), to each what it asked for.

What a change is, and what of it a reader may ask for, is for the publisher to say: the resource graph is followed
through here, and faults are. All of this runs in the event loop; publishers hand changes over through it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fastapi.responses import Response
from prometheus_client import Gauge
from starlette.types import Receive, Scope, Send

from kuayu.service.concurrency import Threads
from kuayu.service.problems import ProblemException

HEARTBEAT = 10.0
"""Seconds of silence after which a comment is sent; the clause allows 15."""

MAX_QUEUED_BYTES = 8 * 1024 * 1024
"""Bytes that may wait for a reader. One that is slower than that is let go; it may come back and resume."""

BYTES_PER_WRITE = 64 * 1024
"""Bytes that are sent at once, where so many wait."""

MISSED_CHANGE_BYTES = 512
"""Bytes that a change counts for which a reader has missed, whatever it holds of what was asked for."""

FAREWELL = 2.0
"""Seconds for a reader to take what was sent already, once its stream is to end."""

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
    # Whoever is let go may not notice for long, and would hold a connection that is kept for the next request.
    (b"connection", b"close"),
]


class NumberedChange(Protocol):
    """A change; its number is that of the revision that it led to."""

    @property
    def number(self) -> int:
        """Greater than that of the change before."""


ChangeT = TypeVar("ChangeT", bound=NumberedChange)
PartT = TypeVar("PartT", bound=Hashable)

Writing = Callable[[ChangeT, PartT], bytes | None]
"""Writes a change as an event for who asked for a part; None where it holds nothing of that."""


@dataclass(frozen=True, slots=True)
class StreamStart(Generic[ChangeT]):
    """Where a reader of changes begins.

    Attributes:
        number: Number of the revision up to which everything stands in the backlog.
        backlog: Changes that the reader has missed.
    """

    number: int
    backlog: Sequence[ChangeT]


def event(kind: str, epoch: str, number: int, data: bytes) -> bytes:
    """An event of a stream: its type, the revision that identifies it, and one line of data."""
    return b"id: %s:%d\nevent: %s\ndata: %s\n\n" % (epoch.encode(), number, kind.encode(), data)


class Subscriber(Generic[ChangeT, PartT]):
    """A reader: what waits for it, and whether its stream is to end."""

    def __init__(self, writing: Writing[ChangeT, PartT], part: PartT) -> None:
        self.part = part
        self.ended = asyncio.Event()
        self._writing = writing
        self._arrived = asyncio.Event()
        self._backlog: deque[ChangeT] = deque()
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._early: list[tuple[int, bytes]] | None = []

    def begin(self, joined: StreamStart[ChangeT]) -> None:
        """Begin with what was missed; whatever came meanwhile and is not part of that follows."""
        self._backlog.extend(joined.backlog)
        early, self._early = self._early or [], None
        for entry, written in early:
            if entry > joined.number:
                self.offer(entry, written)
        self._arrived.set()

    def offer(self, number: int, written: bytes) -> None:
        """Queue an event, or end the stream where too much waits already."""
        if self._early is not None:
            self._early.append((number, written))
            return
        self._queued += len(written)
        if self._queued > MAX_QUEUED_BYTES:
            self.ended.set()
            return
        self._queue.append(written)
        self._arrived.set()

    async def next(self) -> bytes:
        """Events that are to be sent now, or a comment where there was nothing to say for long."""
        while True:
            self._arrived.clear()
            if result := b"".join(self._ready()):
                return result
            if self._backlog:
                await asyncio.sleep(0)  # nothing of the last few was asked for; others may run before the next few
                continue
            try:
                await asyncio.wait_for(self._arrived.wait(), HEARTBEAT)
            except TimeoutError:
                return b": alive\n\n"

    def _ready(self) -> Iterator[bytes]:
        size = 0
        while size < BYTES_PER_WRITE:
            if self._backlog:
                written = self._writing(self._backlog.popleft(), self.part) or b""
                size += MISSED_CHANGE_BYTES
            elif self._queue:
                written = self._queue.popleft()
                self._queued -= len(written)
            else:
                return
            size += len(written)
            yield written


class Hub(Generic[ChangeT, PartT]):
    """All readers of all tenants.

    Args:
        writing: Writes a change as an event.
        most: Readers that there may be.
        share: Readers that a tenant may have.
        gauge: Is told how many there are.
    """

    def __init__(self, writing: Writing[ChangeT, PartT], most: int, share: int, gauge: Gauge) -> None:
        self._writing = writing
        self._most = most
        self._share = share
        self._readers: dict[str, set[Subscriber[ChangeT, PartT]]] = {}
        self._closed = False
        gauge.set_function(self._count)

    def has(self, tenant: str) -> bool:
        """Whether anyone follows a tenant's changes. Any thread may ask."""
        return bool(self._readers.get(tenant))

    async def follow(
        self, tenant: str, part: PartT, join: Callable[[], StreamStart[ChangeT]], threads: Threads
    ) -> Response:
        """The stream for a new reader.

        Args:
            tenant: Whose changes.
            part: What of them.
            join: Tells where the reader begins.
            threads: Where that is called.

        Raises:
            ProblemException: overloaded, or what ``join`` raises.
        """
        subscriber = self._enter(tenant, part)
        try:
            subscriber.begin(await threads.run(tenant, join))
        except BaseException:
            self.leave(tenant, subscriber)
            raise
        return EventStream(self, tenant, subscriber)

    def _enter(self, tenant: str, part: PartT) -> Subscriber[ChangeT, PartT]:
        """Let a reader in; what is delivered before it begins is kept for it.

        Raises:
            ProblemException: overloaded.
        """
        own = len(self._readers.get(tenant, ()))
        if self._closed or self._count() >= self._most or own >= self._share:
            raise ProblemException("overloaded", "the service has as many streams as it serves at once", retry_after=5)
        subscriber = Subscriber(self._writing, part)
        self._readers.setdefault(tenant, set()).add(subscriber)
        return subscriber

    def leave(self, tenant: str, subscriber: Subscriber[ChangeT, PartT]) -> None:
        """A reader is gone."""
        readers = self._readers.get(tenant, set())
        readers.discard(subscriber)
        if not readers:
            self._readers.pop(tenant, None)

    def deliver(self, tenant: str, change: ChangeT) -> None:
        """Hand a change to all readers of a tenant, written once for all who ask for the same part."""
        written: dict[PartT, bytes | None] = {}
        for subscriber in self._readers.get(tenant, ()):
            if subscriber.part not in written:
                written[subscriber.part] = self._writing(change, subscriber.part)
            result = written[subscriber.part]
            if result is not None:
                subscriber.offer(change.number, result)

    def close(self) -> None:
        """End all streams and let nobody in any more."""
        self._closed = True
        for readers in self._readers.values():
            for subscriber in readers:
                subscriber.ended.set()

    def _count(self) -> int:
        return sum(map(len, list(self._readers.values())))


class EventStream(Response, Generic[ChangeT, PartT]):
    """The answer that sends a reader its events until one of both ends it."""

    def __init__(self, hub: Hub[ChangeT, PartT], tenant: str, subscriber: Subscriber[ChangeT, PartT]) -> None:
        super().__init__(media_type="text/event-stream")
        self._hub = hub
        self._tenant = tenant
        self._subscriber = subscriber

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send."""
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(_gone(receive))
        ended = asyncio.create_task(self._subscriber.ended.wait())
        tasks = (pump, gone, ended)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._tenant, self._subscriber)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if pump in done:
            pump.result()  # it ends only by what went wrong
        if gone in done:
            return
        # A reader that takes nothing any more is not waited for long.
        try:
            async with asyncio.timeout(FAREWELL):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            return

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
        while True:
            result = await self._subscriber.next()
            await send({"type": "http.response.body", "body": result, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
