"""What a connection may do before there is a request: how many there are, how long a head may be and take.

uvicorn leaves this to a proxy, and so would a service that is never reached but through one. Here it is bounded in any
case: connections in all and from one address, bytes and fields of a head, seconds until it is complete, and seconds for
which a client may take nothing of its answer. How fast a body has to come is looked at where it is read.

Sources: RFC 6585, 5 (431); RFC 9110, 15.5.9 (408) and 15.6.4 (503); RFC 9457 for what the answers look like.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus

import orjson
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LINGER = 5.0
"""Seconds in which what is left of a body may still come once it was answered without being read."""


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
    """

    connections: int = 4_096
    per_address: int = 1_024
    head_bytes: int = 32 * 1024
    head_fields: int = 100
    head_seconds: float = 10.0
    stalled_seconds: float = 60.0
    counts: Counter[str] = field(default_factory=Counter)


def protocol(edge: Edge) -> type[HttpToolsProtocol]:
    """The protocol that uvicorn is to speak."""

    class Guarded(_Guarded):
        limits = edge

    return Guarded


class _Guarded(HttpToolsProtocol):
    limits: Edge
    _address: str | None = None
    _head: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _pending = 0
    _refused = False

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        limits, address = self.limits, self.client[0] if self.client else ""
        if limits.counts.total() >= limits.connections or limits.counts[address] >= limits.per_address:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "there are as many connections as the service takes")
            return
        self._address = address
        limits.counts[address] += 1
        self._await_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head, self._stall):
            if timer is not None:
                timer.cancel()
        if self._address is not None:
            self.limits.counts[self._address] -= 1
            if not self.limits.counts[self._address]:
                del self.limits.counts[self._address]
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        if self.cycle is None or (self.cycle.response_complete and not self.cycle.more_body):
            self._await_head()
        if self._head is not None:
            self._pending += len(data)
        super().data_received(data)
        # What is left of a head that has come to its end is looked at there.
        if self._head is not None and self._pending > self.limits.head_bytes:
            self._refuse_head()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= self.limits.head_fields:
            self._refuse_head()
        else:
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        if self._head is not None:
            self._head.cancel()
        self._head, self._pending = None, 0
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.head_bytes:
            self._refuse_head()
        if not self._refused:
            super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self.loop.call_later(LINGER, self.transport.close)

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

    def _await_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self.limits.head_seconds, self._time_out)

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
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        problem = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
        body = orjson.dumps(problem)
        retry = b"retry-after: 1\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else b""
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/problem+json\r\n%scontent-length: %d\r\n"
            b"connection: close\r\n\r\n%s" % (status.value, status.phrase.encode(), retry, len(body), body)
        )
        self.transport.close()
