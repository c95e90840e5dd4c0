"""What the service does for itself while it runs: samples are rolled up, and what need not be kept is forgotten.

All of it is cut into pieces. They are read beside everything else and written by the one writer, and between two of
them this rests for as long as the last one took, so that a backlog of months takes at most half of a processor and
requests are answered meanwhile.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy import Select
from starlette.concurrency import run_in_threadpool

from kuayu.service import instants
from kuayu.service.settings import Settings
from kuayu.service.storage.database import Database
from kuayu.service.storage.prune import ForgetRollups, ForgetSamples, Prune, with_old_rollups, with_old_samples
from kuayu.service.storage.rollup import MARGIN, Advance, Frontier, frontier, next_advance
from kuayu.service.storage.writer import Command, Writer
from kuayu.service.watching.commands import Forget

logger = logging.getLogger(__name__)

SHORTEST_REST = 0.01
"""Seconds between two pieces of work."""

LONGEST_REST = 1.0


@dataclass(slots=True)
class Maintenance:
    """Rounds of maintenance, one after the other.

    Attributes:
        settings: How long what is kept.
        database: What is read.
        writer: What writes.
        swept: The frontier up to which everything that it has left behind is deleted; nobody knows at the beginning.
        warned: Whether it was told that samples within the retention are rolled up.
    """

    settings: Settings
    database: Database
    writer: Writer
    swept: Frontier | None = None
    warned: bool = False

    async def round(self) -> None:
        """Do all that is due.

        Raises:
            ProblemException: The writer has no room just now.
            SQLAlchemyError: The database failed.
        """
        await self._prune()
        while True:
            began = time.monotonic()
            advance = await run_in_threadpool(self._next_advance)
            if advance is None:
                break
            await self.writer.write(advance)
            await _rest(began)
            await self._sweep(advance.frontier)
        if self.swept is None:
            await self._sweep(await run_in_threadpool(self._frontier))

    async def _prune(self) -> None:
        answers_before = instants.now() - round(self.settings.idempotency * 1000)
        began = time.monotonic()
        while await self.writer.write(Prune(answers_before, self.settings.history)):
            await _rest(began)
            began = time.monotonic()
        over_before = instants.now() - round(self.settings.fault_retention * 1000)
        while await self.writer.write(Forget(over_before, self.settings.history)):
            await _rest(began)
            began = time.monotonic()

    async def _sweep(self, reached: Frontier | None) -> None:
        """Delete what the frontier has left behind, wherever it has moved on to a new block or day.

        Samples within the retention stay wherever the frontier stands: the retention may have been made longer, or the
        clock may have been ahead when it moved.
        """
        if reached is None:
            return
        promised = instants.now() - round(self.settings.retention * 1000)
        if reached.block > promised and not self.warned:
            self.warned = True
            logger.warning(
                "samples are rolled up to %s, which is within the retention: it was shorter, or the clock was ahead",
                instants.to_text(reached.block),
            )
        before, swept = replace(reached, block=min(reached.block, promised - MARGIN)), self.swept
        if swept is None or before.block > swept.block:
            await self._forget(
                lambda after: with_old_samples(before.block, after),
                lambda subjects: ForgetSamples(subjects, before.block),
            )
        if swept is None or before.forgotten > swept.forgotten:
            await self._forget(
                lambda after: with_old_rollups(before.forgotten, after),
                lambda subjects: ForgetRollups(subjects, before.forgotten),
            )
        self.swept = before

    async def _forget(self, find: Callable[[int], Select[int]], forget: Callable[[list[int]], Command[int]]) -> None:
        after = 0
        while subjects := await run_in_threadpool(self._subjects, find(after)):
            while subjects:
                began = time.monotonic()
                after = await self.writer.write(forget(subjects))
                subjects = [number for number in subjects if number > after]
                await _rest(began)

    def _next_advance(self) -> Advance | None:
        with self.database.reading() as connection:
            return next_advance(
                connection,
                instants.now(),
                round(self.settings.retention * 1000),
                round(self.settings.rollup_retention * 1000),
            )

    def _frontier(self) -> Frontier | None:
        with self.database.reading() as connection:
            return frontier(connection)

    def _subjects(self, query: Select[int]) -> list[int]:
        with self.database.reading() as connection:
            return list(connection.execute(query).scalars())


async def _rest(began: float) -> None:
    await asyncio.sleep(min(LONGEST_REST, max(SHORTEST_REST, time.monotonic() - began)))
