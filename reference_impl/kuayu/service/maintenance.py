"""Maintenance: rollup, retention, and the probe of the database.

1. What the service does for itself while it runs: samples are rolled up, and what need not be kept is forgotten. All
   of it is cut into pieces. They are read beside everything else and written by the one writer, and between two of
   them this rests for as long as the last one took, so that a backlog of months takes at most half of a processor and
   requests are answered meanwhile.
2. Looks again and again whether the database can be used, also where nobody asks anything of it. The writer is asked
   to look, since it is its session that counts. Where it does not come to that, it may be at work on something large,
   or wait for a PostgreSQL that is frozen; a session of the prober's own tells which. Nobody waits for a frozen one
   for longer than twice :data:`SILENT_SECONDS` and a period: many clients give up after five seconds (httpx does
   unless told otherwise), and who gives up does not read what is the matter.
3. Forgetting what need not be kept any longer, in pieces that hold up the writer for a few tens of milliseconds.
4. Statistics by which PostgreSQL plans, gathered as soon as half of a table is new.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Select, delete, select
from starlette.concurrency import run_in_threadpool

from kuayu.service import instants
from kuayu.service.allocation_store import ALLOCATION_RETENTION
from kuayu.service.concurrency import GuardedLoop
from kuayu.service.fault_store import FAULT_RETENTION
from kuayu.service.job_store import JOB_RETENTION
from kuayu.service.settings import Settings
from kuayu.service.storage import queries, resources
from kuayu.service.storage.database import Database, DoubtError
from kuayu.service.storage.rollup import ROLLUP_MARGIN_MILLISECONDS, Advance, Frontier, frontier, next_advance
from kuayu.service.storage.tables import SCALAR_MEASURES, answer, rollup, sample, subject
from kuayu.service.storage.writer import Command, Outcome, Transaction, Writer

logger = logging.getLogger(__name__)

MIN_REST_SECONDS = 0.01
"""Seconds between two pieces of work."""

MAX_REST_SECONDS = 1.0


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
        for retention, seconds in (
            (FAULT_RETENTION, self.settings.fault_retention),
            (ALLOCATION_RETENTION, self.settings.allocation_retention),
            (JOB_RETENTION, self.settings.job_retention),
        ):
            before = instants.now() - round(seconds * 1000)
            while await self.writer.write(retention.forget(before, self.settings.history)):
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
        before, swept = replace(reached, block=min(reached.block, promised - ROLLUP_MARGIN_MILLISECONDS)), self.swept
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


STATISTICS_SECONDS = 2.0
"""Seconds between two looks for tables that have grown."""


async def keep_statistics(database: Database) -> None:
    """Have PostgreSQL know of its tables what it plans by; returns at once where the database is another."""
    if database.sessions is None:
        return
    from kuayu.service.storage import postgresql

    guarded = GuardedLoop("statistics of tables were not gathered")
    while True:
        await asyncio.sleep(STATISTICS_SECONDS)
        if database.presence.absence is None:
            with guarded():
                await run_in_threadpool(postgresql.gather_statistics, database.read)


async def _rest(began: float) -> None:
    await asyncio.sleep(min(MAX_REST_SECONDS, max(MIN_REST_SECONDS, time.monotonic() - began)))


PROBE_SECONDS = 0.5
"""Seconds between two looks."""

SILENT_SECONDS = 2.0
"""Seconds after which a PostgreSQL that answers nothing at all counts as away, and those who wait for it are let go, by
ending the sessions that they wait on. It is asked for a number: that takes a thousandth of it."""

SLOW_SECONDS = 10.0
"""Seconds after which a database that answers, but not to the writer, counts as away: nobody else waits for it then."""

STUCK_SECONDS = 20.0
"""Seconds after which those who wait for it already are let go."""


class Prober:
    """A thread that has the writer look, and looks at the files of SQLite itself.

    Args:
        database: What is looked at; its presence is told.
        writer: What looks.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._closing = threading.Event()
        self._guarded = GuardedLoop("the database could not be looked at")
        self._pulse = ThreadPoolExecutor(1, "kuayu-pulse")
        self._thread = threading.Thread(target=self._run, name="kuayu-database")

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop, before the writer does; blocks until then."""
        self._closing.set()
        self._thread.join()
        self._pulse.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        while not self._closing.wait(PROBE_SECONDS):
            with self._guarded():
                self._look()

    def _look(self) -> None:
        presence = self._database.presence
        if presence.doubt is not None:
            return
        if self._database.files is not None:
            try:
                self._database.files.check()
            except (DoubtError, OSError) as error:
                presence.failed(error)
                return
        if presence.absence is not None:
            self._database.read.dispose()  # what connections there are may be dead, and nobody takes one now
        probe = self._writer.probe()
        if self._comes(probe):
            return
        presence.failed(TimeoutError())
        sessions = self._database.sessions
        while sessions is not None and not self._closing.is_set():
            sessions.break_off()
            if self._answered(probe, PROBE_SECONDS):
                return

    def _comes(self, probe: Future[None]) -> bool:
        """Whether the writer comes to the probe while there is somebody who answers, though slowly."""
        sessions, waited = self._database.sessions, 0.0
        while waited < STUCK_SECONDS:
            # Asked again each time: it may freeze after it has answered.
            pulse = None if sessions is None else self._pulse.submit(sessions.ask)
            if self._answered(probe, SILENT_SECONDS):
                return True
            if pulse is not None and not _was_answered(pulse):
                return False
            waited += SILENT_SECONDS
            if waited >= SLOW_SECONDS:
                self._database.presence.failed(TimeoutError())
        return False

    def _answered(self, probe: Future[None], seconds: float) -> bool:
        """Whether the writer has come to the probe, however it has ended: the writer itself tells the presence."""
        waited = 0.0
        while waited < seconds and not self._closing.is_set():
            try:
                probe.exception(timeout=PROBE_SECONDS)
            except NotYetError:
                waited += PROBE_SECONDS
            else:
                return True
        return self._closing.is_set()


def _was_answered(pulse: Future[None]) -> bool:
    """Whether PostgreSQL has said something, be it that it takes no more sessions."""
    from psycopg.errors import ConnectionTimeout

    return pulse.done() and not isinstance(getattr(pulse.exception(), "orig", None), ConnectionTimeout)


PRUNED_ROWS_PER_TRANSACTION = 5_000
"""Rows after which a piece ends."""

PRUNED_SUBJECTS_PER_READ = 200
"""Subjects that are looked for at once."""


@dataclass(frozen=True, slots=True)
class Prune:
    """Forget old answers and versions of resources.

    Attributes:
        answers_before: Instant before which answers under idempotency keys go, in milliseconds.
        revisions: Revisions that are kept for each tenant.
        weight: How much of the writer's queue it takes.
    """

    answers_before: int
    revisions: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[bool]:
        """Forget; tells whether answers are left that should go."""
        connection = transaction.connection
        expired = answer.c.created < self.answers_before
        oldest = select(answer.c.created).where(expired).order_by(answer.c.created)
        last = connection.execute(oldest.offset(PRUNED_ROWS_PER_TRANSACTION).limit(1)).scalar()
        # Those of one instant go together, so that each piece forgets some.
        connection.execute(delete(answer).where(expired if last is None else answer.c.created <= last))
        for owner in transaction.counters.owners():
            revision = transaction.counters.of(owner)["number"] - self.revisions
            if revision > queries.oldest(connection, owner):
                resources.forget_versions(transaction, owner, revision)
        return Outcome(last is not None)


@dataclass(frozen=True, slots=True)
class ForgetSamples:
    """Forget old samples of some subjects.

    Attributes:
        subjects: Their numbers, in order.
        before: Instant before which samples go, in milliseconds.
        weight: How much of the writer's queue it takes.
    """

    subjects: Sequence[int]
    before: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Forget as many as make a piece; tells the number of the last subject that has none left."""
        connection = transaction.connection
        left = PRUNED_ROWS_PER_TRANSACTION
        for number in self.subjects:
            old = (sample.c.subject_no == number) & (sample.c.observed < self.before)
            within = select(sample.c.observed).where(old).order_by(sample.c.observed).offset(left).limit(1)
            last = connection.execute(within).scalar()
            if last is not None:
                connection.execute(delete(sample).where(old, sample.c.observed < last))
                return Outcome(number - 1)
            left -= connection.execute(delete(sample).where(old)).rowcount
        return Outcome(self.subjects[-1])


@dataclass(frozen=True, slots=True)
class ForgetRollups:
    """Forget what is rolled up of some subjects; there are few rows of each.

    Attributes:
        subjects: Their numbers, in order.
        before: Instant before which blocks go, in milliseconds.
        weight: How much of the writer's queue it takes.
    """

    subjects: Sequence[int]
    before: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Forget as many as make a piece; tells the number of the last subject that has none left."""
        left = PRUNED_ROWS_PER_TRANSACTION
        for number in self.subjects:
            old = delete(rollup).where(rollup.c.subject_no == number, *_before(self.before))
            left -= transaction.connection.execute(old).rowcount
            if left <= 0:
                return Outcome(number)
        return Outcome(self.subjects[-1])


def with_old_samples(before: int, after: int) -> Select[int]:
    """Next subjects, by number ``after`` one, that have samples older than an instant in milliseconds."""
    old = select(sample.c.observed).where(sample.c.subject_no == subject.c.no, sample.c.observed < before)
    return _subjects(after).where(old.exists())


def with_old_rollups(before: int, after: int) -> Select[int]:
    """Next subjects, by number ``after`` one, of which blocks are kept that are older than an instant."""
    old = select(rollup.c.start).where(rollup.c.subject_no == subject.c.no, *_before(before))
    return _subjects(after).where(old.exists())


def _subjects(after: int) -> Select[int]:
    return select(subject.c.no).where(subject.c.no > after).order_by(subject.c.no).limit(PRUNED_SUBJECTS_PER_READ)


def _before(instant: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions that the primary key leads to: the measures stand between subject and instant in it."""
    return rollup.c.measure.in_(SCALAR_MEASURES), rollup.c.start < instant
