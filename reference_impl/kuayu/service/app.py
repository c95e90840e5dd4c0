"""The application: routes, failures as problem+json, and the life of what stands behind them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from kuayu import __version__
from kuayu.service import openapi, problems
from kuayu.service.admission import Admission
from kuayu.service.lives import Lives
from kuayu.service.metrics import Metrics, MetricsMiddleware
from kuayu.service.routes import (
    about,
    actions,
    adjustments,
    allocations,
    demands,
    expositions,
    faults,
    forecasts,
    graph,
    identifiers,
    indices,
    otlp,
    placements,
    recovery,
    reports,
    resources,
    samples,
    series,
    targets,
    transfers,
)
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu_schemas.base import build_models

TOKENS_EVERY = 1.0
"""Seconds between two looks at the file of tokens."""


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
        lives = Lives(app, settings, metrics)
        await lives.begin(database)
        tokens = asyncio.create_task(_read_tokens_again(settings), name="tokens")
        yield
        tokens.cancel()
        await asyncio.gather(tokens, return_exceptions=True)
        await lives.end()

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
    app.add_middleware(Admission, settings=settings)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    problems.install(app)
    openapi.install(app)
    groups = (
        *(about, resources, identifiers, samples, series, expositions, otlp, reports, graph, targets, indices),
        *(placements, allocations, actions, demands, forecasts, transfers, recovery, adjustments, faults),
    )
    for group in groups:
        # Flat, not nested: who asks which methods a path takes must see every route.
        app.router.routes.extend(group.router.routes)
    return app


async def _read_tokens_again(settings: Settings) -> None:
    """Look again and again whether the file of tokens has changed."""
    while settings.token_file is not None:
        await asyncio.sleep(TOKENS_EVERY)
        await run_in_threadpool(settings.token_file.read_again)
