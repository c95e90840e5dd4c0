"""The aggregator's HTTP interface, and the life of what stands behind it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.concurrency import run_in_threadpool

from kuayu import __version__
from kuayu.engine.agent.committer import Committer
from kuayu.engine.agent.downsampling import Downsampler
from kuayu.engine.agent.forwarder import Forwarder
from kuayu.engine.agent.intake import SpoolWrite, digest, validate
from kuayu.engine.agent.metrics import Metrics
from kuayu.engine.agent.proxy import Proxy
from kuayu.engine.agent.settings import AgentSettings
from kuayu.engine.agent.spool import Spool
from kuayu.engine.agent.upstream import Upstream
from kuayu.service import auth, bodies, instants, parameters, problems
from kuayu.service.problems import ProblemException, invalid_parameter
from kuayu.service.settings import Settings

logger = logging.getLogger(__name__)

LARGE_BODY: Final = 512 * 1024
"""Bytes from which a batch is validated in a worker thread, so that it does not hold up everyone else."""
UPKEEP_S: Final = 5.0
PAUSE_UP_S, PAUSE_DOWN_S = 1.0, 10.0
"""Seconds after which a sender may try again when the spool is full, by whether the service takes anything."""


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
        key = parameters.idempotency_key(request)
        body = await bodies.read(request, "application/json", self.settings.max_body)
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
