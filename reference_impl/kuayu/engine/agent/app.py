"""The aggregator's HTTP interface, and the life of what stands behind it.

1. Samples are taken here (:mod:`~kuayu.engine.agent.intake`) and answered once they are committed.
2. Requests that an aggregator does not answer itself are handed on to the service, and its answers back.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

import httpx
import orjson
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.types import Send
from typing_extensions import override

from kuayu import __version__
from kuayu.client import LOOPBACK, authorities
from kuayu.engine.agent.forwarder import Forwarder, Metrics, Upstream
from kuayu.engine.agent.intake import Committer, Downsampler, SpoolWrite, digest, validate
from kuayu.engine.agent.settings import AgentSettings
from kuayu.engine.agent.spool import Spool
from kuayu.service import auth, instants, problems, requests
from kuayu.service.problems import ProblemException, invalid_parameter, not_found
from kuayu.service.settings import Settings

logger = logging.getLogger(__name__)

LARGE_BODY: Final = 512 * 1024
"""Bytes from which a batch is validated in a worker thread, so that it does not hold up everyone else."""
UPKEEP_S: Final = 5.0
PAUSE_UP_S, PAUSE_DOWN_S = 1.0, 10.0
"""Seconds after which a sender may try again when the spool is full, by whether the service takes anything."""


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
            verify=authorities(self._base),
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
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._settings.max_body:
                detail = f"the body is larger than {self._settings.max_body} bytes"
                raise ProblemException("payload-too-large", detail, headers={"Connection": "close"})
        return bytes(body)

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


@dataclass(slots=True)
class Agent:
    """The parts of a running aggregator."""

    settings: AgentSettings
    spool: Spool
    committer: Committer
    forwarder: Forwarder
    proxy: Proxy
    downsampler: Downsampler
    metrics: Metrics
    senders: Settings
    oldest: int | None = None

    @classmethod
    def of(cls, settings: AgentSettings, spool: Spool) -> "Agent":
        """Put an aggregator together around its open spool."""
        metrics = Metrics(settings.domain, __version__)
        downsampler = Downsampler(round(settings.thin * 1000))
        committer = Committer(spool, settings.max_queue, rolled_back=downsampler.forget)
        upstream = Upstream(settings.url, settings.token, settings.timeout)
        forwarder = Forwarder(spool, committer, upstream, settings, metrics)
        senders = Settings(tokens=settings.tokens)
        agent = cls(settings, spool, committer, forwarder, Proxy(settings), downsampler, metrics, senders)
        metrics.watch(lambda: spool.level, agent.age_of_oldest, up=lambda: forwarder.up)
        return agent

    async def close(self) -> None:
        """Drain what can be drained, and let go of the spool."""
        await self.proxy.close()
        await run_in_threadpool(self.forwarder.close)
        await run_in_threadpool(self.committer.close)
        self.spool.close()

    async def maintain(self) -> None:
        """Forget old answers, and see how old the oldest sample is."""
        while True:
            before = instants.now() - round(self.settings.idempotency * 1000)

            def upkeep(spool: Spool, before: int = before) -> int | None:
                spool.prune(before)
                return spool.oldest()

            try:
                self.oldest = await self.committer.write(upkeep)
            except Exception:
                # Whatever it was, nobody else would look after it.
                logger.exception("the spool was not looked after this time")
            await asyncio.sleep(UPKEEP_S)

    def age_of_oldest(self) -> float:
        """Seconds for which the oldest sample has been in the spool, as it was seen last."""
        if self.oldest is None or not self.spool.level.samples:
            return 0.0
        return max(0.0, (instants.now() - self.oldest) / 1000)

    async def take(self, request: Request) -> Response:
        """Answer a batch once it is durable.

        Raises:
            ProblemException: The batch cannot be taken, or not now.
        """
        auth.identify(request, self.senders)
        for name in request.query_params:
            raise invalid_parameter(name, f"there is no parameter {name!r}")
        key = requests.idempotency_key(request)
        body = await requests.read(request, "application/json", self.settings.max_body)
        said = self.forwarder.greeting
        most = self.settings.max_batch if said is None else min(said.max_batch, self.settings.max_batch)
        retention = round(self.settings.retention * 1000) if said is None else said.retention
        thinned = bool(self.settings.thin)
        if len(body) < LARGE_BODY:
            validated = validate(body, most, retention, outlined=thinned)
        else:
            validated = await run_in_threadpool(validate, body, most, retention, outlined=thinned)
        if validated.atomic:
            # Whether all of it can be taken hangs on what is registered, which the service alone knows.
            return await self.proxy.hand_on(request, body)
        pause = PAUSE_UP_S if self.forwarder.up else PAUSE_DOWN_S
        write = SpoolWrite(validated, key, digest(body), self.settings.durability, self.downsampler, pause)
        try:
            answer = await self.committer.write(write, len(validated.bodies))
        except ProblemException as problem:
            self.metrics.turned_away.labels(problem.name).inc()
            raise
        if not answer.replayed:
            self.metrics.received.labels("accepted").inc(len(validated.bodies))
            self.metrics.received.labels("rejected").inc(len(validated.result.rejected))
            self.metrics.dropped.labels("thinned").inc(answer.thinned)
        headers = {"Idempotency-Replayed": "true"} if answer.replayed else None
        return Response(answer.body, headers=headers, media_type="application/json")


def create_app(settings: AgentSettings, spool: Spool) -> FastAPI:
    """Make the application around an open spool, which it closes when it ends."""
    agent = Agent.of(settings, spool)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        agent.forwarder.start()
        upkeep = asyncio.create_task(agent.maintain(), name="upkeep")
        yield
        upkeep.cancel()
        await asyncio.gather(upkeep, return_exceptions=True)
        await agent.close()

    app = FastAPI(
        title="Kuayu agent",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.agent = agent
    problems.install(app)

    @app.get("/v1/health")
    async def health() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(agent.metrics.page(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @app.post("/v1/samples")
    async def samples(request: Request) -> Response:
        return await agent.take(request)

    @app.api_route("/{path:path}", methods=["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"])
    async def rest(request: Request) -> Response:
        auth.identify(request, agent.senders)
        return await agent.proxy.hand_on(request)

    return app


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
