"""Lives of what stands behind the routes: one as a rule, and another where the database is not as it was left.

What is in memory follows from the database, so that nothing of it can be kept then. Requests are turned away until the
database was opened anew.
"""

import asyncio
import logging

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from kuayu.service.metrics import Metrics
from kuayu.service.problems import ProblemException
from kuayu.service.runtime import Runtime
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database, DatabaseError
from kuayu.service.storage.presence import Doubt

logger = logging.getLogger(__name__)

AGAIN = 1.0
"""Seconds after which it is tried again to open the database."""


class Lives:
    """Begins and ends them, in the event loop.

    Args:
        app: Its state holds the present one.
        settings: What the operator set.
        metrics: Go on over all of them.
    """

    def __init__(self, app: FastAPI, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._task: asyncio.Task[None] | None = None

    async def begin(self, database: Database | None) -> None:
        """Begin the first.

        Raises:
            DatabaseError: The database cannot be used.
        """
        self._start(await run_in_threadpool(Runtime.open, self._settings, self._metrics, database))
        self._task = asyncio.create_task(self._go_on(), name="lives")

    async def end(self) -> None:
        """End the present one, in order."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._runtime.close()

    @property
    def _runtime(self) -> Runtime:
        runtime: Runtime = self._app.state.runtime
        return runtime

    def _start(self, runtime: Runtime) -> None:
        runtime.start()
        self._app.state.runtime = runtime

    async def _go_on(self) -> None:
        """Have the database looked after, and begin another life whenever there is a doubt."""
        while True:
            maintaining = asyncio.create_task(self._runtime.maintain(), name="maintenance")
            try:
                doubt = await self._runtime.doubted()
            finally:
                maintaining.cancel()
                await asyncio.gather(maintaining, return_exceptions=True)
            logger.error("%s; the service begins anew%s", doubt.cause, ", with another epoch" if doubt.lost else "")
            try:
                await self._runtime.close()
            except Exception:
                logger.exception("what was in memory was not ended in order")
            self._start(await self._opened(doubt))

    async def _opened(self, doubt: Doubt) -> Runtime:
        said = ""
        while True:
            try:
                return await run_in_threadpool(Runtime.open, self._settings, self._metrics, None, doubt)
            except (DatabaseError, ProblemException) as error:
                cause = str(error)
            if cause != said:
                said = cause
                logger.error("%s; again every %g s", said, AGAIN)
            await asyncio.sleep(AGAIN)
