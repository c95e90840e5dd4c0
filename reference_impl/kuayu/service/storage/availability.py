"""Availability of the database: whether it can be used, is the one that was opened, and is ours alone.

1. Whether the database can be used now: it may be away, slow or full, or not be the one that was opened. What the
   service holds in memory follows from what it has read and written. So once the database is not as it was left,
   going on would mean to show what is not so: the service then begins anew, under another epoch where something was
   lost.
2. The files of a SQLite database while it is open: nobody but SQLite may put others in their place or shorten them.
   SQLite does not look: it goes on writing into a file that was deleted, and reading what it remembers of one that
   was emptied. A copy of the same length that is written over the file is found only by what it holds. The file is
   opened once, and closed after SQLite has closed it: a process that closes a file lets go of all of its locks on it,
   those of SQLite too (https://www.sqlite.org/howtocorrupt.html, 2.2), and whoever makes a backup would then take the
   log for left over and delete it.
3. A mark beside a SQLite file: which opening of it was the last, and how far it came. An older copy that is put back
   while the service is stopped is a sound database that ends earlier. That it is not the newest can only be told from
   outside the file: each opening gives it another name, which is kept in both places, and each commit raises the
   number in the mark before anybody is told of the commit. So a file with another name, or with a smaller number, is
   not the one that was left. Without a mark nobody can tell. A copy of the whole folder brings its mark along and is
   not noticed.
4. Who has a database open: one service at a time, since two would not see each other's registrations and heartbeats.
   For SQLite that is a lock on a file beside it, for PostgreSQL an advisory lock of the very session that writes;
   either is let go of when its holder dies, and says who that is.
"""

import contextlib
import fcntl
import logging
import os
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from kuayu.service.problems import ProblemException

if TYPE_CHECKING:
    import psycopg

logger = logging.getLogger(__name__)

RETRY_AFTER = 2.0
"""Seconds after which who was turned away may try again."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The database is not as it was left.

    Attributes:
        cause: How that was noticed, in words.
        lost: Whether what was acknowledged may be missing, so that the epoch is to be renewed.
    """

    cause: str
    lost: bool


class DoubtError(Exception):
    """The database is not as it was left, so that nothing may be written."""

    def __init__(self, cause: str, *, lost: bool) -> None:
        super().__init__(cause)
        self.doubt = Doubt(cause, lost)


class HeldError(Exception):
    """Another service has the database open; the message says which."""


class Presence:
    """Whether the database can be used. Any thread may ask and tell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._absence: str | None = None
        self._doubt: Doubt | None = None
        self._follower: Callable[[], object] | None = None

    @property
    def doubt(self) -> Doubt | None:
        """Why the service has to begin anew, or None. Once there is a doubt it stays."""
        return self._doubt

    @property
    def absence(self) -> str | None:
        """Why the database cannot be used now, in words, or None."""
        doubt = self._doubt
        return self._absence if doubt is None else f"{doubt.cause}; the service begins anew"

    def check(self) -> None:
        """Turn away whoever needs the database while it cannot be used.

        Raises:
            ProblemException: overloaded.
        """
        absence = self.absence
        if absence is not None:
            raise unavailable(absence)

    def failed(self, error: Exception) -> ProblemException:
        """Note that the database did not do what was asked of it; what to answer because of that."""
        cause = words(error)
        with self._lock:
            doubted = isinstance(error, DoubtError) and self._doubt is None
            new = doubted or (self._doubt is None and self._absence is None)
            if isinstance(error, DoubtError):
                self._doubt = self._doubt or error.doubt
            else:
                self._absence = cause
            follower = self._follower if doubted else None
        if follower is not None:
            follower()
        if new:
            logger.error("%s; until that is over requests that need it are turned away", cause)
        return unavailable(self.absence or cause)

    def follow(self, follower: Callable[[], object]) -> None:
        """Have somebody called once there is a doubt, in whichever thread finds it; the last one who asks."""
        with self._lock:
            self._follower = follower
            doubted = self._doubt is not None
        if doubted:
            follower()

    def present(self) -> None:
        """Note that it has carried out what was asked of it."""
        with self._lock:
            before, self._absence = self._absence, None
        if before is not None:
            logger.warning("the database can be used again")


def unavailable(absence: str) -> ProblemException:
    """The answer while the database cannot be used."""
    return ProblemException("overloaded", absence, retry_after=RETRY_AFTER)


def is_absence(error: BaseException) -> bool:
    """Whether an exception tells that the database cannot be used, rather than that a statement is wrong."""
    if isinstance(error, PoolTimeoutError | DoubtError | HeldError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        # SQLite says of a damaged file that it is a DatabaseError, and of a wrong statement an OperationalError.
        narrow = type(error.orig) in {sqlite3.OperationalError, sqlite3.DatabaseError}
        return narrow and getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) != sqlite3.SQLITE_ERROR
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)


def words(error: BaseException) -> str:
    """What is the matter, in a line."""
    if isinstance(error, DoubtError | HeldError):
        return str(error)
    if isinstance(error, TimeoutError | PoolTimeoutError):
        return "the database does not answer in time"
    cause = str(getattr(error, "orig", None) or error).strip()
    return f"the database cannot be used: {cause.splitlines()[0] if cause else type(error).__name__}"


HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class _FileIdentity:
    file: tuple[int, int]
    size: int


class Files:
    """The database and its write-ahead log. To be made while the database is open.

    Args:
        database: The file that the URL names.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(database.name + "-wal")
        self._descriptor: int | None = os.open(database, os.O_RDONLY | os.O_CLOEXEC)
        self._seen = {file: seen for file in (self._database, self._log) if (seen := _look(file)) is not None}

    def check(self) -> None:
        """See that they are those that were opened, and are not shorter than they were.

        Raises:
            DoubtError: They are not.
            OSError: They cannot be read.
        """
        for file, before in list(self._seen.items()):
            now = _look(file)
            if now is None:
                raise DoubtError(f"{file} was deleted", lost=True)
            if now.file != before.file:
                raise DoubtError(f"another file was put in the place of {file}", lost=True)
            if now.size < before.size:
                raise DoubtError(f"{file} was shortened from {before.size} to {now.size} bytes", lost=True)
            self._seen[file] = now
        assert self._descriptor is not None
        if self._seen[self._database].size and os.pread(self._descriptor, len(HEADER), 0) != HEADER:
            raise DoubtError(f"{self._database} was overwritten", lost=True)

    def close(self) -> None:
        """Let go of the file, once nobody has it open with SQLite any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _look(file: Path) -> _FileIdentity | None:
    try:
        result = file.stat()
    except FileNotFoundError:
        return None
    return _FileIdentity((result.st_dev, result.st_ino), result.st_size)


_FORM = re.compile(rb"([0-9a-f]{16}) ([0-9]{20})\n")


@dataclass(frozen=True, slots=True)
class LastOpening:
    """How a database was left.

    Attributes:
        opening: Name of its last opening.
        sequence: Number of the newest commit.
    """

    opening: str
    sequence: int


class OpeningMark:
    """The mark of a database, whose lock the caller holds.

    Args:
        database: The file that the URL names.
    """

    def __init__(self, database: Path) -> None:
        whole = database.resolve()
        self._file = whole.with_name(whole.name + ".mark")
        self._descriptor: int | None = None
        self._opening = ""

    def read(self) -> LastOpening | None:
        """How the database was left; None where there is no mark, or none that can be read."""
        with contextlib.suppress(OSError):
            result = _FORM.fullmatch(self._file.read_bytes())
            if result is not None:
                return LastOpening(result[1].decode(), int(result[2]))
        return None

    def begin(self, left: LastOpening) -> None:
        """Note another opening, whose name the database holds by now.

        Raises:
            OSError: The file cannot be written.
        """
        # In place: a host that goes down must not leave an empty file.
        self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._opening = left.opening
        self._write(left.sequence)
        os.ftruncate(self._descriptor, len(_line(left)))
        os.fsync(self._descriptor)

    def note(self, sequence: int) -> None:
        """Note a commit. What is written survives the end of this process."""
        try:
            self._write(sequence)
        except OSError:
            logger.warning("the mark of the database was not written", exc_info=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, sequence: int) -> None:
        if self._descriptor is not None:
            os.pwrite(self._descriptor, _line(LastOpening(self._opening, sequence)), 0)


def _line(left: LastOpening) -> bytes:
    return f"{left.opening} {left.sequence:020d}\n".encode()


KIND = 0x6B756179
"""First half of the advisory lock, "kuay"; the second stands for the schema, of which a database may have several."""

SESSION_ENDS = 3.0
"""Seconds in which PostgreSQL notices that a service was killed, whose lock it then lets go of."""

_RETRY_SECONDS = 0.1


def own_name() -> str:
    """What others are told of who holds a database."""
    return f"kuayu serve {socket.gethostname()}:{os.getpid()}"


def hold_file(file: Path) -> IO[str]:
    """Keep others off a SQLite file, for as long as what is returned stays open.

    Raises:
        HeldError: Another service has it.
        OSError: There is no such folder, or nobody may write into it.
    """
    whole = file.resolve()  # another name of the same file is no way round the lock
    lock = whole.with_name(whole.name + ".lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.readline().strip() or "somebody"
        lock.close()
        raise HeldError(f"another service has {file} open: {holder}") from error
    lock.truncate(0)
    lock.write(f"{own_name()} since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n")
    lock.flush()
    return lock


def hold_session(connection: "psycopg.Connection[tuple[object, ...]]", patience: float) -> None:
    """Keep others off the schema that a session of PostgreSQL writes into, for as long as the session lasts.

    Args:
        connection: The session, in no transaction; it is in none afterwards.
        patience: Seconds for which another may still have it.

    Raises:
        HeldError: Another service has it.
    """
    until = time.monotonic() + patience
    while True:
        row = connection.execute(
            "SELECT pg_try_advisory_lock(%s, hashtext(current_schema()::text))", (KIND,)
        ).fetchone()
        connection.commit()
        if row is not None and row[0]:
            return
        if time.monotonic() >= until:
            raise HeldError(f"another service has the database open: {_holder(connection)}")
        time.sleep(_RETRY_SECONDS)


def _holder(connection: "psycopg.Connection[tuple[object, ...]]") -> str:
    row = connection.execute(
        "SELECT a.application_name, a.pid,"
        " to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        " FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %s"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        (KIND,),
    ).fetchone()
    connection.commit()
    if row is None:
        return "somebody"
    return f"{row[0] or 'somebody'}, session {row[1]} of PostgreSQL" + (f" since {row[2]}" if row[2] else "")
