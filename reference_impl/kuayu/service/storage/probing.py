"""Looks again and again whether the database can be used, also where nobody asks anything of it."""

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError

from kuayu.service.enduring import Enduring
from kuayu.service.storage.database import Database
from kuayu.service.storage.presence import DoubtError
from kuayu.service.storage.writer import Writer

PERIOD = 0.5
"""Seconds between two looks."""

SLOW = 10.0
"""Seconds after which a database that does not answer counts as away, so that nobody else waits for it."""

FROZEN = 20.0
"""Seconds after which those who wait for it already are let go, by ending the connections that they wait on."""


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
        self._thread = threading.Thread(target=self._run, name="kuayu-database")

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop, before the writer does; blocks until then."""
        self._closing.set()
        self._thread.join()

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
        if self._answered(probe, SLOW):
            return
        presence.failed(TimeoutError())
        while not self._answered(probe, FROZEN - SLOW):
            if self._database.sessions is not None:
                self._database.sessions.break_off()

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
