"""Looks again and again whether the database can be used, also where nobody asks anything of it.

The writer is asked to look, since it is its session that counts. Where it does not come to that, it may be at work on
something large, or wait for a PostgreSQL that is frozen; a session of the prober's own tells which. Nobody waits for a
frozen one for longer than twice :data:`SILENT` and a period: many clients give up after five seconds (httpx does unless
told otherwise), and who gives up does not read what is the matter.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError

from psycopg.errors import ConnectionTimeout

from kuayu.service.enduring import Enduring
from kuayu.service.storage.database import Database
from kuayu.service.storage.presence import DoubtError
from kuayu.service.storage.writer import Writer

PERIOD = 0.5
"""Seconds between two looks."""

SILENT = 2.0
"""Seconds after which a PostgreSQL that answers nothing at all counts as away, and those who wait for it are let go, by
ending the sessions that they wait on. It is asked for a number: that takes a thousandth of it."""

SLOW = 10.0
"""Seconds after which a database that answers, but not to the writer, counts as away: nobody else waits for it then."""

STUCK = 20.0
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
        self._enduring = Enduring("the database could not be looked at")
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
        while not self._closing.wait(PERIOD):
            with self._enduring():
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
            if self._answered(probe, PERIOD):
                return

    def _comes(self, probe: Future[None]) -> bool:
        """Whether the writer comes to the probe while there is somebody who answers, though slowly."""
        sessions, waited = self._database.sessions, 0.0
        while waited < STUCK:
            # Asked again each time: it may freeze after it has answered.
            pulse = None if sessions is None else self._pulse.submit(sessions.ask)
            if self._answered(probe, SILENT):
                return True
            if pulse is not None and not _was_answered(pulse):
                return False
            waited += SILENT
            if waited >= SLOW:
                self._database.presence.failed(TimeoutError())
        return False

    def _answered(self, probe: Future[None], seconds: float) -> bool:
        """Whether the writer has come to the probe, however it has ended: the writer itself tells the presence."""
        waited = 0.0
        while waited < seconds and not self._closing.is_set():
            try:
                probe.exception(timeout=PERIOD)
            except NotYetError:
                waited += PERIOD
            else:
                return True
        return self._closing.is_set()


def _was_answered(pulse: Future[None]) -> bool:
    """Whether PostgreSQL has said something, be it that it takes no more sessions."""
    return pulse.done() and not isinstance(getattr(pulse.exception(), "orig", None), ConnectionTimeout)
