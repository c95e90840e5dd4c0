"""The one thread that writes to the spool, and commits in groups.

Whatever waits shares a transaction, and nobody is told before it is committed. The busier the aggregator, the larger
the groups. A job that raises a problem must not have written anything before.
"""

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kuayu.engine.agent.spool import Spool
from kuayu.service.problems import ProblemException

logger = logging.getLogger(__name__)

R = TypeVar("R")
Job = Callable[[Spool], R]
DISK_PAUSE_S: Final = 10.0
"""Seconds after which a sender may try again whose samples the disk did not take."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: Job[Any]
    future: Future[Any] = field(default_factory=Future)


class Committer:
    """The thread and its queue.

    Args:
        spool: What it writes to; nobody else may.
        most: Samples that may wait.
        rolled_back: Told when something that seemed done was undone.
    """

    def __init__(self, spool: Spool, most: int, rolled_back: Callable[[], None] = lambda: None) -> None:
        self._spool, self._most, self._rolled_back = spool, most, rolled_back
        self._queue: deque[_Waiting] = deque()
        self._weight = 0
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what waits and end; the spool may be closed then."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def submit(self, job: Job[R], weight: int = 0) -> "Future[R]":
        """Queue a job; its result comes when it is committed.

        Args:
            job: What to do with the spool.
            weight: Samples that it brings.

        Raises:
            ProblemException: overloaded where too much waits already.
        """
        waiting = _Waiting(job)
        with self._changed:
            if self._closing or (weight and self._weight and self._weight + weight > self._most):
                raise ProblemException("overloaded", "the disk does not keep up with what arrives", retry_after=1)
            self._queue.append(waiting)
            self._weight += weight
            self._changed.notify()
        return waiting.future

    async def write(self, job: Job[R], weight: int = 0) -> R:
        """As :meth:`submit`, for the event loop; a sender that goes away does not take its samples with it."""
        return await asyncio.shield(asyncio.wrap_future(self.submit(job, weight)))

    def _run(self) -> None:
        while group := self._next_group():
            try:
                outcomes = self._commit(group)
            except Exception:
                logger.exception("a group of %d jobs was rolled back; now one by one", len(group))
                outcomes = [self._commit_alone(waiting) for waiting in group]
            for waiting, outcome in zip(group, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    waiting.future.set_exception(outcome)
                else:
                    waiting.future.set_result(outcome)

    def _next_group(self) -> list[_Waiting]:
        with self._changed:
            while not self._queue and not self._closing:
                self._changed.wait()
            group = list(self._queue)
            self._queue.clear()
            self._weight = 0
            return group

    def _commit(self, group: list[_Waiting]) -> list[Any]:
        outcomes: list[Any] = []
        try:
            self._spool.begin()
            for waiting in group:
                try:
                    outcomes.append(waiting.job(self._spool))
                except ProblemException as problem:
                    outcomes.append(problem)
            self._spool.commit()
        except BaseException:
            self._spool.rollback()
            self._rolled_back()
            raise
        return outcomes

    def _commit_alone(self, waiting: _Waiting) -> Any:
        try:
            return self._commit([waiting])[0]
        except sqlite3.OperationalError as error:
            logger.error("the spool could not be written: %s", error)  # noqa: TRY400 - the first one was told in full
            return ProblemException("overloaded", f"the spool cannot be written: {error}", retry_after=DISK_PAUSE_S)
        except Exception as error:
            logger.exception("a job could not be done")
            return error
