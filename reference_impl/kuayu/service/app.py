"""The application: routes, failures as problem+json, and the life of what stands behind them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from kuayu import __version__
from kuayu.service import openapi, problems
from kuayu.service.access import Gate
from kuayu.service.edge import Admission
from kuayu.service.metrics import Metrics, MetricsMiddleware
from kuayu.service.rate_limits import RateLimits
from kuayu.service.routes import about, jobs, observation, pure, resources, telemetry
from kuayu.service.runtime import RuntimeSupervisor
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu_schemas.base import build_models

TOKENS_EVERY = 1.0
"""Seconds between two looks at the files of tokens and of accounts."""


def create_app(settings: Settings | None = None, database: Database | None = None) -> FastAPI:
    """Make the application.

    Args:
        settings: What the operator set; the defaults where absent.
        database: The database, where it is open already; otherwise it is opened when the application starts.
    """
    build_models()
    settings = settings or Settings()
    metrics = Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        supervisor = RuntimeSupervisor(app, settings, metrics)
        await supervisor.begin(database)
        following = [asyncio.create_task(_read_files_again(settings), name="tokens and accounts")]
        if settings.issuer is not None:
            following.append(asyncio.create_task(settings.issuer.keys.follow(), name="keys of tokens"))
        yield
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await supervisor.end()

    app = FastAPI(
        title="Kuayu",
        version=__version__,
        summary="Cross-domain AI compute: resources, telemetry, indicators, scheduling, demand, forecast, resilience.",
        description="Errors are problem+json. Requests are closed; readers of answers ignore what they do not know.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.settings = settings
    problems.install(app)
    openapi.install(app)
    routers = (
        *(about.router, resources.router, telemetry.router, observation.router, pure.index_router),
        *(pure.placement_router, jobs.router, pure.router, observation.fault_router),
    )
    for router in routers:
        # Flat, not nested: who asks which methods a path takes must see every route.
        app.router.routes.extend(router.routes)
    gate = Gate(app.router.routes, settings, RateLimits(settings, metrics.rate_limited))
    app.add_middleware(Admission, gate=gate, settings=settings)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    return app


async def _read_files_again(settings: Settings) -> None:
    """Look again and again whether the files of tokens and of accounts have changed."""
    files = [file for file in (settings.token_file, settings.accounts) if file is not None]
    while files:
        await asyncio.sleep(TOKENS_EVERY)
        for file in files:
            await run_in_threadpool(file.read_again)
