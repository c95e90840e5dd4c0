"""Time: instants on the wire and in the database, clocks, and deadlines that outlive the process.

1. Instants: RFC 3339 text on the wire, whole milliseconds since 1970 everywhere else.
2. Deadlines that are kept in the database and outlive the process, and work that is done until it succeeds.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from starlette.concurrency import run_in_threadpool

from kuayu.service.problems import ProblemException

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def now() -> int:
    """The clock on the wall."""
    return time.time_ns() // 1_000_000


class Clock:
    """Seconds since 1970 that never go back nor leap: the clock on the wall when it begins, and steady from then on.

    What is waited for is timed by it, so that a clock that is set neither ends waiting nor draws it out.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        """The instant."""
        return time.monotonic() + self._ahead

    def milliseconds(self) -> int:
        """The instant, in whole milliseconds."""
        return round(self.now() * 1000)

    def offset(self) -> int:
        """Milliseconds by which the clock on the wall is ahead of this one by now."""
        return now() - self.milliseconds()


def to_milliseconds(text: str) -> int:
    """Read an instant that has the form of the schema.

    Raises:
        ValueError: There is no such day, or no such year.
    """
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


def to_text(milliseconds: int) -> str:
    """Write an instant with three fractional digits."""
    return (_EPOCH + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds")[:-6] + "Z"


logger = logging.getLogger(__name__)

RETRY = 1.0
"""Seconds after which it is tried again where the database failed."""


class Deadlines:
    """Looks after what has a deadline. Make it in the event loop.

    Args:
        words: What it looks after, for the log.
        clock: That deadlines are kept by.
        earliest: Reads the first deadline, in milliseconds; None where there is none. Called in a worker thread.
        resume: Gives everything its time anew; called first, and whenever the database was away.
        expire: Looks after some of what is due; tells whether there may be more.
    """

    def __init__(
        self,
        words: str,
        clock: Clock,
        earliest: Callable[[], int | None],
        resume: Callable[[], Awaitable[None]],
        expire: Callable[[], Awaitable[bool]],
    ) -> None:
        self._words = words
        self._clock = clock
        self._earliest = earliest
        self._resume = resume
        self._expire = expire
        self._sooner = asyncio.Event()
        self._due: int | None = None

    def heed(self, deadline: int | None) -> None:
        """There is a deadline, in milliseconds, or none."""
        if deadline is not None and (self._due is None or deadline < self._due):
            self._sooner.set()

    async def keep(self) -> None:
        """Look after them until cancelled."""
        await persist(self._words, self._keep)

    async def _keep(self) -> None:
        await self._resume()
        while True:
            await self._next()

    async def _next(self) -> None:
        """Wait for the first deadline, or for one that is sooner, and look after what is due."""
        self._sooner.clear()
        self._due = None
        due = await run_in_threadpool(self._earliest)
        self._due = due
        left = None if due is None else (due - self._clock.milliseconds()) / 1000
        if left is None or left > 0:
            try:
                await asyncio.wait_for(self._sooner.wait(), left)
            except TimeoutError:
                pass
            else:
                return
        while await self._expire():
            pass


async def persist(words: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do it, again and again where the database or the writer fail: nobody else would look after it.

    Args:
        words: What could not be looked after, for the log.
        work: What is to be done.
    """
    while True:
        try:
            await work()
        except ProblemException:
            # That the database is away is logged once, by whoever notices it.
            logger.debug("%s could not be looked after", words, exc_info=True)
            await asyncio.sleep(RETRY)
        except Exception:
            logger.exception("%s could not be looked after; again in %g s", words, RETRY)
            await asyncio.sleep(RETRY)
        else:
            return
