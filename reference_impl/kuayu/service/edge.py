"""Connections and admission: what is checked before a request reaches its route.

1. What a connection may do before there is a request: how many there are, how long a head may be and take. uvicorn
   leaves this to a proxy, and so would a service that is never reached but through one. Here it is bounded in any
   case: connections in all and from one address, bytes and fields of a head and of what follows the chunks of a body,
   seconds until a head is complete, and seconds for which a client may take nothing of its answer. How fast a body
   has to come is looked at where it is read. A request that a proxy may have read as another one is refused: without
   a host or with several, in any transfer coding but chunks, or in chunks of HTTP/1.0. Whoever is refused is answered
   first, in turn, and the connection is closed so that the answer arrives. Sources: RFC 6585, 5 (431); RFC 9110,
   15.5.9 (408) and 15.6.4 (503); RFC 9112, 3.2 and 6.1 (hosts, transfer codings), 9.3 and 9.6 (connections that
   persist, and how they are closed); RFC 9457 for what the answers look like.
2. What is looked at before a request is: who sends it, how fast requests of the same sender come, how much is in hand
   already, and how fast its body comes. Requests that tell of faults, and of what is done about them, have places of
   their own; the others of all tenants share the rest. Bodies are counted while they come, so that what is in hand at
   a time is bounded, whoever sends it. A body that hardly comes is given up, with an answer that lets its sender try
   again (RFC 9110, 15.6.4).
"""

import asyncio
import re
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from kuayu.service.access import URGENT, Gate, Watch
from kuayu.service.concurrency import Lane
from kuayu.service.problems import MEDIA_TYPE, ProblemException
from kuayu.service.rate_limits import RateLimitedError
from kuayu.service.settings import Settings

LINGER = 5.0
"""Seconds in which what is left of a body may still come once it was answered without being read."""

CROWDED_SHARE, CROWDED_KEEP_ALIVE_S = 0.5, 5
"""Share of the connections that there may be, in all or from an address, beyond which further ones are kept for so many
seconds without a request, in place of the server's."""

MAX_TURNED_AWAY = 64
"""Connections above the number that there may be, each of which is still read from until its answer has arrived."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What connections may do.

    Attributes:
        connections: That there may be.
        per_address: That there may be from one address; behind a proxy all come from its own.
        head_bytes: Of the target and the fields of a request.
        head_fields: Fields of a request.
        head_seconds: Until a head is complete.
        stalled_seconds: For which a client may take nothing of its answer.
        counts: Connections from each address.
        turned_away: Connections above the number that there may be, which are being closed.
    """

    connections: int = 4_096
    per_address: int = 1_024
    head_bytes: int = 32 * 1024
    head_fields: int = 100
    head_seconds: float = 10.0
    stalled_seconds: float = 60.0
    counts: Counter[str] = field(default_factory=Counter)
    turned_away: set[object] = field(default_factory=set)


def protocol(edge: Edge) -> type[HttpToolsProtocol]:
    """The protocol that uvicorn is to speak."""

    class LimitedProtocol(_GuardedProtocol):
        limits = edge

    return LimitedProtocol


class _GuardedProtocol(HttpToolsProtocol):
    limits: Edge
    _address: str | None = None
    _head: asyncio.TimerHandle | None = None
    _rest: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _since = 0
    """Bytes that came since a head was complete, a piece of a body came or a chunk began."""
    _over = False
    """Whether nothing more is read."""
    _refusal = b""
    """What is answered once the requests before have been."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        limits, address = self.limits, self.client[0] if self.client else ""
        if limits.counts.total() >= limits.connections or limits.counts[address] >= limits.per_address:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "there are as many connections as the service takes")
            return
        self._address = address
        limits.counts[address] += 1
        if (
            limits.counts.total() > CROWDED_SHARE * limits.connections
            or limits.counts[address] > CROWDED_SHARE * limits.per_address
        ):
            self.timeout_keep_alive = CROWDED_KEEP_ALIVE_S
        self._await_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head, self._rest, self._stall):
            if timer is not None:
                timer.cancel()
        self.limits.turned_away.discard(self)
        if self._address is not None:
            self.limits.counts[self._address] -= 1
            if not self.limits.counts[self._address]:
                del self.limits.counts[self._address]
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self._over or self.transport.is_closing():
            return
        if self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body):
            self._await_head()
        rest = memoryview(data)
        while rest and not self._over:
            # Of a head no more is parsed at once than it may have: each of its fields is a call.
            piece = rest if self._head is None else rest[: self.limits.head_bytes + 1]
            rest = rest[len(piece) :]
            self._since += len(piece)
            super().data_received(bytes(piece))
            # What is left of a head that has come to its end is looked at there.
            if self._since > self.limits.head_bytes:
                self._refuse_head()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._unset_keepalive_if_required()
        self._await_head()

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if self._over:
            return
        if len(self.headers) >= self.limits.head_fields:
            self._refuse_head()
        else:
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        self._forget_head()
        self._since = 0
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.head_bytes:
            self._refuse_head()
        elif not _is_framed(self.parser.get_http_version(), self.headers):
            self.send_400_response("hosts, or transfer codings")
        if not self._over:
            super().on_headers_complete()
            self.cycle.transport = cast("asyncio.Transport", _AnswerTransport(self, self.cycle))

    def on_chunk_header(self) -> None:
        """A chunk of a body begins; the last one is empty, and fields may follow."""
        self._since = 0

    @override
    def on_body(self, body: bytes) -> None:
        self._since = 0
        if not self._over:
            super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        self._since = 0
        if self._over:
            return
        super().on_message_complete()
        if self._rest is not None:  # it was answered before its end, and the connection persists as after other answers
            self._rest.cancel()
            self._rest = None
            self.cycle.more_body = False
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    @override
    def on_response_complete(self) -> None:
        if self._over and not self._refusal:
            return
        if self._over and self._ends_here():
            self.pipeline.clear()
            self._send_refusal()
            return
        super().on_response_complete()
        if self._head is not None:  # what has begun to come has its own time
            self._unset_keepalive_if_required()
        if self.cycle.response_complete and self.cycle.more_body:
            self._rest = self.loop.call_later(LINGER, self.transport.close)

    @override
    def send_400_response(self, msg: str) -> None:
        self._refuse(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self.limits.stalled_seconds, self.transport.abort)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def close_after(self, cycle: RequestResponseCycle) -> None:
        """Close the connection with the answer to a request.

        To close a connection on which something has come that was not read resets it, and its other end may then lose
        the answer (RFC 9112, 9.6). So what still comes is read, and dropped, until the other end closes too.
        """
        if self._over:
            return
        if not cycle.response_complete or (cycle is self.cycle and not cycle.more_body and self._head is None):
            self._over = True
            self.transport.close()
        else:
            self._linger()

    def _linger(self) -> None:
        self._over = True
        self._forget_head()
        self._unset_keepalive_if_required()
        if self._rest is not None:
            self._rest.cancel()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._rest = self.loop.call_later(LINGER, self.transport.close)

    def _await_head(self) -> None:
        if self._head is None and not self._over:
            self._head = self.loop.call_later(self.limits.head_seconds, self._time_out)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _time_out(self) -> None:
        self._head = None
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT, f"the head of a request did not come within {self.limits.head_seconds:g} s"
        )

    def _refuse_head(self) -> None:
        limits = self.limits
        detail = f"the head of a request has more than {limits.head_bytes} bytes or {limits.head_fields} fields"
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer, after the requests before, what is no request that could be, and close the connection."""
        if self._over or self.transport.is_closing():
            return
        self._over = True
        self._forget_head()
        self._refusal = _answer(status, detail)
        if self._ends_here():
            self._send_refusal()
        elif self.cycle.more_body and not self.pipeline:
            # The end of the body is what is wrong with the request that is being worked on.
            if self.cycle.response_started:
                self.transport.close()
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._send_refusal()

    def _ends_here(self) -> bool:
        """Whether every request before the refused one is answered."""
        if self.pipeline:
            return len(self.pipeline) == 1 and self.cycle.more_body
        return self.cycle is None or self.cycle.response_complete

    def _send_refusal(self) -> None:
        if self.transport.is_closing():
            return
        answered_early = self.cycle is not None and self.cycle.response_complete and self.cycle.more_body
        if self._refusal and not answered_early:
            self.transport.write(self._refusal)
        self._refusal = b""
        if self._address is not None:
            self._linger()
        elif len(self.limits.turned_away) < MAX_TURNED_AWAY:
            self.limits.turned_away.add(self)
            self._linger()
        else:
            self.transport.close()


class _AnswerTransport:
    """The transport as the answer to one request has it: to close it is left to the protocol."""

    def __init__(self, protocol: _GuardedProtocol, cycle: RequestResponseCycle) -> None:
        self._protocol = protocol
        self._cycle = cycle

    def write(self, data: bytes) -> None:
        """Write."""
        self._protocol.transport.write(data)

    def is_closing(self) -> bool:
        """Whether the transport is being closed."""
        return self._protocol.transport.is_closing()

    def close(self) -> None:
        """Close the connection with this answer."""
        self._protocol.close_after(self._cycle)


def _is_framed(version: str, fields: list[tuple[bytes, bytes]]) -> bool:
    """Whether nobody before the service may have read another request out of its bytes (RFC 9112, 3.2 and 6.1).

    Args:
        version: Of HTTP, as ``1.1``.
        fields: Its fields, names in lower case.
    """
    hosts = sum(name == b"host" for name, _ in fields)
    codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
    if version == "1.1":
        return hosts == 1 and codings in ([], [b"chunked"])
    return hosts <= 1 and not codings


def _answer(status: HTTPStatus, detail: str) -> bytes:
    """An answer in problem+json, after which the connection is closed."""
    problem = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    retry = b""
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        problem, retry = ProblemException("overloaded", detail, retry_after=1).to_wire(), b"retry-after: 1\r\n"
    body = orjson.dumps(problem)
    return b"HTTP/1.1 %d %s\r\ncontent-type: %s\r\n%scontent-length: %d\r\nconnection: close\r\n\r\n%s" % (
        *(status.value, status.phrase.encode(), MEDIA_TYPE.encode(), retry, len(body)),
        body,
    )


MAX_CONCURRENT_REQUESTS = 64
"""Requests that are worked on at a time, in each lane."""

MAX_WAITING = 4_096
"""Requests that may wait in each lane."""

NOT_LIMITED_HERE = {
    *("/v1/health", "/v1/actions", "/v1/faults/events", "/v1/graph/events", "/v1/jobs/events"),
    *("/v1/placements", "/v1/pareto-fronts", "/v1/allocation-plans", "/v1/routes"),
    *("/v1/training-demands", "/v1/layouts", "/v1/task-sizes", "/v1/compute-indices", "/v1/probe-plans"),
    *("/v1/forecasts", "/v1/training-phases", "/v1/waveforms", "/v1/peak-plans", "/v1/reservations"),
    *("/v1/shard-plans", "/v1/collectives", "/v1/backup-plans", "/v1/failover-plans", "/v1/adjustments"),
}
"""Where little is done, or where who waits is bounded by who does the work."""

_LOG = re.compile(r"/v1/jobs/[^/]+/logs")
"""The log of a job; whoever reads it may wait for lines, and those who wait are bounded by who keeps them."""


class Admission:
    """Lets requests in, and counts their bodies.

    Args:
        app: What answers.
        gate: Knows who may call what.
        settings: What the operator set.
    """

    def __init__(self, app: ASGIApp, gate: Gate, settings: Settings) -> None:
        self._app = app
        self._gate = gate
        self._settings = settings
        self._urgent, self._others = (
            Lane(
                MAX_CONCURRENT_REQUESTS,
                settings.share(MAX_CONCURRENT_REQUESTS),
                MAX_WAITING,
                settings.share(MAX_WAITING),
            )
            for _ in range(2)
        )
        self._bytes: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once there is a place for it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = self._gate.call(scope)
        watch = Watch(self._settings.audit_log, scope, call, send)
        try:
            try:
                grant = await self._gate.admit(scope, call)
            except ProblemException as problem:
                watch.recorded = not isinstance(problem, RateLimitedError) or problem.first
                await problem.response()(scope, receive, watch.send)
                return
            if grant is None:  # what needs no token takes no body
                await self._app(scope, receive, watch.send)
            else:
                urgent = call is not None and call.operation in URGENT
                await self._pass(grant.tenant, self._urgent if urgent else self._others, scope, receive, watch.send)
        finally:
            watch.end()

    async def _pass(self, tenant: str, lane: Lane, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(self, tenant, receive)
        async with AsyncExitStack() as stack:
            stack.callback(body.let_go)
            if scope["path"] not in NOT_LIMITED_HERE and not _LOG.fullmatch(scope["path"]):
                try:
                    await stack.enter_async_context(lane.place(tenant))
                except ProblemException as problem:
                    await problem.response()(scope, receive, send)
                    return
            await self._app(scope, body.receive, send)

    def take(self, tenant: str, size: int) -> None:
        """Take so many bytes more in hand.

        Raises:
            ProblemException: overloaded.
        """
        most = self._settings.body_bytes
        if self._bytes.total() + size > most or self._bytes[tenant] + size > self._settings.share(most):
            raise ProblemException(
                "overloaded", "more bodies are in hand than the service takes", retry_after=1, headers=CLOSE
            )
        self._bytes[tenant] += size

    def give_back(self, tenant: str, size: int) -> None:
        """Have so many bytes less in hand."""
        self._bytes[tenant] -= size
        if not self._bytes[tenant]:
            del self._bytes[tenant]

    def patience(self, size: int) -> float:
        """Seconds that so many bytes may take to come."""
        return self._settings.body_grace + size / self._settings.body_rate


CLOSE = {"Connection": "close"}
"""What is left of the body is not read."""


class _Body:
    """The body of one request, as it comes."""

    def __init__(self, admission: Admission, tenant: str, receive: Receive) -> None:
        self._admission = admission
        self._tenant = tenant
        self._receive = receive
        self._size = 0
        self._whole = False
        self._waited = 0.0

    async def receive(self) -> Message:
        """The next piece; after the last, what the client does.

        Raises:
            ProblemException: overloaded, where too much is in hand or the body comes too slowly.
        """
        if self._whole:
            return await self._receive()
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(max(0.0, self._admission.patience(self._size) - self._waited)):
                message = await self._receive()
        except TimeoutError:
            seconds = self._waited + clock() - began
            detail = f"{self._size} bytes of the body came in {seconds:.0f} s; the service waits no longer for the rest"
            raise ProblemException("overloaded", detail, retry_after=1, headers=CLOSE) from None
        self._waited += clock() - began
        self._whole = not message.get("more_body", False)
        size = len(message.get("body", b""))
        self._admission.take(self._tenant, size)
        self._size += size
        return message

    def let_go(self) -> None:
        """The request is over."""
        self._admission.give_back(self._tenant, self._size)
