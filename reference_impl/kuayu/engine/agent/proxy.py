"""Requests that an aggregator does not answer itself, handed on to the service and its answers back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from urllib.parse import unquote_to_bytes

import httpx
import orjson
from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.background import BackgroundTask
from starlette.types import Send
from typing_extensions import override

from kuayu.client import LOOPBACK
from kuayu.engine.agent.settings import AgentSettings
from kuayu.service.problems import ProblemException, not_found

logger = logging.getLogger(__name__)

CONNECT_S = 3.0
SILENCE_S = 60.0
"""Seconds that the service may say nothing; on a stream it sends a comment after 15."""
CONNECTIONS = 500
OK = 200
EVENTS = "text/event-stream"

HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
"""Header fields that are about one connection (RFC 9110, 7.6.1)."""
OWN = frozenset({b"date", b"server"})
"""Header fields that this server writes itself."""


class Proxy:
    """The way to the service for everything but samples.

    Args:
        settings: Of the aggregator.
    """

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._base = httpx.URL(settings.url.rstrip("/"))
        self._ending = asyncio.Event()
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S, pool=CONNECT_S),
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=20),
            trust_env=self._base.host not in LOOPBACK,
        )

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    def end_streams(self) -> None:
        """End the streams that are open; they would not end by themselves."""
        self._ending.set()

    async def hand_on(self, request: Request, body: bytes | None = None) -> Response:
        """Hand a request on; its answer may be a stream.

        Args:
            request: The request.
            body: Its body, where that has been read already.

        Raises:
            ProblemException: not-found for a path that could lead out of the service, overloaded where it does not
                answer, or payload-too-large.
        """
        content = await self._body(request) if body is None else body
        onward = self._http.build_request(
            request.method, self._url(request), headers=self._headers(request), content=content
        )
        try:
            answer = await self._http.send(onward, stream=True)
        except httpx.HTTPError as error:
            detail = f"the service does not answer: {error or type(error).__name__}"
            raise ProblemException("overloaded", detail, retry_after=2) from error
        if request.url.path == "/v1/conformance" and answer.status_code == OK:
            return await self._declared(answer)
        endless = answer.headers.get("content-type", "").startswith(EVENTS)
        chunks = _until(self._ending, _chunks(answer)) if endless else _chunks(answer)
        response = _Onward(chunks, answer.status_code, background=BackgroundTask(answer.aclose))
        response.what, response.endless = f"{request.method} {request.url.path}", endless
        response.raw_headers = [pair for pair in _end_to_end(answer.headers.raw) if pair[0] not in OWN]
        return response

    async def _body(self, request: Request) -> bytes:
        found = bytearray()
        async for chunk in request.stream():
            found += chunk
            if len(found) > self._settings.max_body:
                detail = f"the body is larger than {self._settings.max_body} bytes"
                raise ProblemException("payload-too-large", detail, headers={"Connection": "close"})
        return bytes(found)

    def _url(self, request: Request) -> httpx.URL:
        query: bytes = request.scope["query_string"]
        decoded = unquote_to_bytes(request.scope["raw_path"])
        if not {b".", b".."}.isdisjoint(decoded.replace(b"\\", b"/").split(b"/")):
            # The client would follow them, with the agent's token, beyond the base URL.
            raise not_found(f"there is no {request.url.path}")
        path = self._base.raw_path.rstrip(b"/") + request.scope["raw_path"]
        return self._base.copy_with(raw_path=path + (b"?" + query if query else b""))

    def _headers(self, request: Request) -> httpx.Headers:
        headers = httpx.Headers(
            [pair for pair in _end_to_end(request.headers.raw) if pair[0] not in {b"host", b"content-length"}]
        )
        # Otherwise the client would ask for encodings that the sender did not.
        headers.setdefault("accept-encoding", "identity")
        if self._settings.tokens:
            # It was for the aggregator.
            headers.pop("authorization", None)
        if self._settings.token:
            headers["authorization"] = f"Bearer {self._settings.token}"
        return headers

    async def _declared(self, answer: httpx.Response) -> Response:
        """The service's declaration, with what the aggregator promises and takes in its place."""
        try:
            said = orjson.loads(await answer.aread())
            limits = said["limits"]
            limits["max_body"] = min(limits["max_body"], self._settings.max_body)
            limits["max_batch"] = min(limits["max_batch"], self._settings.max_batch)
            limits["idempotency"] = min(limits["idempotency"], self._settings.idempotency)
            said["durability"] = self._settings.durability.value
        except (httpx.HTTPError, orjson.JSONDecodeError, KeyError, TypeError) as error:
            detail = f"the service did not declare itself: {error or type(error).__name__}"
            raise ProblemException("overloaded", detail, retry_after=2) from error
        finally:
            await answer.aclose()
        return Response(orjson.dumps(said), media_type="application/json")


def _end_to_end(fields: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Header fields that are not about one connection, names in small letters."""
    small = [(name.lower(), value) for name, value in fields]
    named = {word.strip().lower() for name, value in small if name == b"connection" for word in value.split(b",")}
    return [pair for pair in small if pair[0] not in HOP_BY_HOP | named]


class _Onward(StreamingResponse):
    """An answer that is handed on as it comes.

    Attributes:
        what: The request that it is to.
        endless: Whether it is a stream of events, of which any part is whole.
    """

    what = ""
    endless = False

    @override
    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except httpx.HTTPError as error:
            logger.warning("the service broke off its answer to %s: %s", self.what, error or type(error).__name__)
            if self.endless:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            # Any other is left incomplete, so that nobody takes a part for the whole: the connection is cut.


async def _until(ending: asyncio.Event, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Chunks as they come, until there are no more or the aggregator ends."""

    async def following() -> bytes | None:
        return await anext(chunks, None)

    end = asyncio.ensure_future(ending.wait())
    more = asyncio.ensure_future(following())
    try:
        while True:
            await asyncio.wait((end, more), return_when=asyncio.FIRST_COMPLETED)
            if not more.done() or (chunk := more.result()) is None:
                return
            yield chunk
            more = asyncio.ensure_future(following())
    finally:
        for task in (end, more):
            task.cancel()
        await asyncio.gather(end, more, return_exceptions=True)


async def _chunks(answer: httpx.Response) -> AsyncIterator[bytes]:
    """The answer's bytes as they come; a path that breaks in the midst breaks the answer too."""
    try:
        async for chunk in answer.aiter_raw():
            yield chunk
    finally:
        # The server may be ending: the connection goes back all the same.
        await asyncio.shield(answer.aclose())
