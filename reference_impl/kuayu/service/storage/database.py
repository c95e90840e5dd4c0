"""The database, SQLite or PostgreSQL: opening it, whether it can be used, and who has it open.

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
5. Opening it: connections as the service wants them, the schema brought up to date, the epoch decided. Sessions with a
   PostgreSQL are in :mod:`.postgresql`, which is imported where the database is one.
"""

import contextlib
import fcntl
import logging
import os
import re
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from kuayu.service.problems import ProblemException
from kuayu.service.storage.tables import meta
from kuayu_schemas.models import Durability

if TYPE_CHECKING:
    import psycopg

    from kuayu.service.storage.postgresql import Server, Sessions

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
        cause = cause_of(error)
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


def cause_of(error: BaseException) -> str:
    """What is the matter, in a line."""
    if isinstance(error, DoubtError | HeldError):
        return str(error)
    if isinstance(error, TimeoutError | PoolTimeoutError):
        return "the database does not answer in time"
    cause = str(getattr(error, "orig", None) or error).strip()
    return f"the database cannot be used: {cause.splitlines()[0] if cause else type(error).__name__}"


SQLITE_HEADER = b"SQLite format 3\0"


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
        if self._seen[self._database].size and os.pread(self._descriptor, len(SQLITE_HEADER), 0) != SQLITE_HEADER:
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


CACHED_STATEMENTS = 512


def sqlite(url: str, durability: Durability) -> tuple[Engine, Engine]:
    """Engines to write and to read a file."""
    write = create_engine(
        url, pool_size=1, max_overflow=0, connect_args={"timeout": 30, "cached_statements": CACHED_STATEMENTS}
    )
    read = create_engine(url, pool_size=4, max_overflow=16)
    synchronous = "FULL" if durability is Durability.host else "NORMAL"
    for engine, begin in ((write, "BEGIN IMMEDIATE"), (read, "BEGIN")):
        _prepare_sqlite(engine, begin, synchronous)
    return write, read


def _prepare_sqlite(engine: Engine, begin: str, synchronous: str) -> None:
    """Take transactions out of sqlite3's hands, which begins them too late for a reader to see one state."""

    @event.listens_for(engine, "connect")
    def connected(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute(f"PRAGMA synchronous={synchronous}")
        cursor.execute("PRAGMA wal_autocheckpoint=16000")
        cursor.execute("PRAGMA cache_size=-65536")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(begin)


SPARE_BYTES = 64 * 1024 * 1024
"""Space of deleted rows in a SQLite file from which on it is given back when the file is opened, and"""

SPARE_SHARE = 0.5
"""share of the file that it has to be: what is left is copied for that."""

MIGRATIONS = Path(__file__).parents[1] / "migrations"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class DatabaseError(Exception):
    """The database cannot be used; the message gives the cause, the hint what to do."""

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause}. {hint}")
        self.cause = cause
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Database:
    """An open database.

    Attributes:
        write: Engine for the one writer; each transaction takes the write lock at once.
        read: Engine for readers; each transaction sees one state of the database throughout.
        epoch: Life of the state.
        secret: Key that cursors are signed with.
        presence: Whether it can be used now.
        sessions: Those with PostgreSQL; None for SQLite.
        files: Those of SQLite; None for PostgreSQL.
        mark: That of a SQLite file, which says how far it came; None for PostgreSQL.
        lock: Held while the database is open, so that no second service opens it; None for PostgreSQL, where the
            session that writes holds it.
    """

    write: Engine
    read: Engine
    epoch: str
    secret: bytes
    presence: Presence = field(default_factory=Presence)
    sessions: "Sessions | None" = None
    files: Files | None = None
    mark: OpeningMark | None = None
    lock: IO[str] | None = None

    @property
    def shown(self) -> str:
        """URL for people, without a password."""
        return self.write.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads one state of the database.

        Raises:
            ProblemException: overloaded, where the database cannot be used now.
        """
        self.presence.check()
        try:
            with self.read.connect() as connection, connection.begin():
                yield connection
        except Exception as error:
            if is_absence(error):
                raise self.presence.failed(error) from error
            raise

    def close(self) -> None:
        """Note that nothing was lost, and let go of all connections."""
        try:
            if self.presence.doubt is None:
                with self.write.begin() as connection:
                    connection.execute(delete(meta).where(meta.c.name == "open_since_boot"))
        except Exception as error:
            # It is opened as after a crash then, which is what this is.
            if not is_absence(error):
                raise
        finally:
            self.write.dispose()
            self.read.dispose()
            for beside in (self.sessions, self.files, self.mark):
                if beside is not None:
                    beside.close()
            if self.lock is not None:
                self.lock.close()


def open_database(url: str, durability: Durability, doubt: Doubt | None = None) -> Database:
    """Open a database, creating or migrating its tables.

    Args:
        url: Where it is.
        durability: Which crash an acknowledged write is to survive.
        doubt: Why it is opened anew by the service that had it open, where that is so.

    Raises:
        DatabaseError: The URL is wrong, the database does not answer, or it was made by a newer version.
    """
    lock: IO[str] | None = None
    try:
        parsed = make_url(url)
        _check_known(parsed)
        if parsed.get_backend_name() == "postgresql":
            return _open_postgresql(url, durability, doubt)
        file = Path(str(parsed.database))
        lock = _hold(file)
        return _open_sqlite(url, file, lock, durability, doubt)
    except BaseException as error:
        if lock is not None:
            lock.close()
        if isinstance(error, ArgumentError | NoSuchModuleError | ModuleNotFoundError):
            hint = "Use sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
            raise DatabaseError(f"{url!r} is not a database URL", hint) from error
        if isinstance(error, HeldError):
            raise _database_in_use(error) from error
        if isinstance(error, SQLAlchemyError | DoubtError):
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            hint = "See that it exists and may be written"
            raise DatabaseError(f"the database does not open: {cause}", hint) from error
        raise


def _check_known(url: URL) -> None:
    backend = url.get_backend_name()
    if backend not in {"sqlite", "postgresql"}:
        raise DatabaseError(
            f"{backend} is not a database that Kuayu knows", "Use sqlite:///FILE or postgresql+psycopg://…"
        )
    if backend == "sqlite" and url.database in {None, "", ":memory:"}:
        raise DatabaseError("SQLite in memory cannot be shared between connections", "Name a file: sqlite:///FILE")


def _check_durability(durability: Durability, server: "Server") -> None:
    if durability is Durability.host and not server.flushes:
        raise DatabaseError(
            "PostgreSQL runs with fsync=off and may lose with its host what it has acknowledged",
            "Set fsync=on there, or serve with --durability process",
        )


def _open_sqlite(url: str, file: Path, lock: IO[str], durability: Durability, doubt: Doubt | None) -> Database:
    write, read = sqlite(url, durability)
    mark = OpeningMark(file)
    try:
        with write.begin() as connection:
            if doubt is not None:
                _check_sound(connection, file)
            _migrate(connection)
            facts = _facts(connection)
            lost = _lost_on_host(facts, durability) or _lost_behind(facts, mark.read())
            existing = {"open_since_boot": _boot(), "opening": _new_name()}
            epoch, secret = _identity(connection, facts, existing, lost=lost or (doubt is not None and doubt.lost))
        try:
            mark.begin(LastOpening(existing["opening"], _sequence(facts)))
        except OSError as error:
            raise DatabaseError(f"cannot write {file}.mark: {error.strerror}", "See that it may be written") from error
        _give_back(write)
    except BaseException:
        write.dispose()
        mark.close()
        raise
    return Database(write, read, epoch, secret, files=Files(file), mark=mark, lock=lock)


def _give_back(write: Engine) -> None:
    """Let go of disk space that deleted rows have left, where it is much; before anybody is served."""
    with contextlib.closing(write.raw_connection()) as connection:
        cursor = connection.cursor()

        def pragma(name: str) -> int:
            return int(cursor.execute(f"PRAGMA {name}").fetchone()[0])

        pages, free = pragma("page_count"), pragma("freelist_count")
        if free * pragma("page_size") < SPARE_BYTES or free < pages * SPARE_SHARE:
            return
        try:
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError:
            logger.warning("disk space of deleted rows could not be given back", exc_info=True)


def _check_sound(connection: Connection, file: Path) -> None:
    """See that a file in doubt is whole: SQLite itself finds out only where it happens to read."""
    result = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if result != "ok":
        raise DatabaseError(
            f"{file} is damaged: {result}",
            "Put a copy in its place, or move it away with its -wal and -shm; there will be another epoch",
        )


def _open_postgresql(url: str, durability: Durability, doubt: Doubt | None) -> Database:
    from kuayu.service.storage.postgresql import Sessions

    presence = Presence()
    sessions = Sessions(presence)
    write, read = sessions.engines(url)
    try:
        with write.begin() as connection:
            server = sessions.server
            assert server is not None
            _check_durability(durability, server)
            _migrate(connection)
            facts = _facts(connection)
            lost = _lost_on_server(facts, server) or (doubt is not None and doubt.lost)
            existing = {"open_since_boot": _boot(), "server_home": server.home, "server_started": server.started}
            epoch, secret = _identity(connection, facts, existing, lost=lost)
    except BaseException:
        write.dispose()
        raise
    return Database(write, read, epoch, secret, presence, sessions=sessions)


def _hold(file: Path) -> IO[str]:
    try:
        return hold_file(file)
    except OSError as error:
        raise DatabaseError(
            f"cannot write {file}.lock: {error.strerror}", "Name a folder that may be written"
        ) from error


def _database_in_use(error: HeldError) -> DatabaseError:
    return DatabaseError(
        str(error), "Stop it, or give each a database of its own; where its host has died, wait for half a minute"
    )


def _migrate(connection: Connection) -> None:
    """Bring tables to the newest version. Alembic is imported by who opens a database, and by no worker."""
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    current = MigrationContext.configure(connection).get_current_revision()
    known = {revision.revision for revision in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise DatabaseError(
            f"the database is at version {current}, which this version of Kuayu does not know",
            "It was made by a newer version; run that one, or give another database",
        )
    command.upgrade(config, "head")


def _facts(connection: Connection) -> dict[str, str]:
    """What the database says of itself; a new one is given an epoch and a secret."""
    facts = {row.name: row.value for row in connection.execute(select(meta.c.name, meta.c.value))}
    if not facts:
        facts = {"epoch": _new_name(), "secret": secrets.token_hex(32), "sequence": "0"}
        connection.execute(insert(meta), [{"name": name, "value": value} for name, value in facts.items()])
        facts["new"] = ""
    return facts


def _identity(
    connection: Connection, facts: Mapping[str, str], values: Mapping[str, str], *, lost: bool
) -> tuple[str, bytes]:
    """Epoch and secret of the database; the epoch is renewed where acknowledged writes may be missing.

    Args:
        connection: In a transaction.
        facts: What the database says of itself.
        values: What it is to say from now on.
        lost: Whether acknowledged writes may be missing.
    """
    epoch = facts["epoch"]
    if lost and "new" not in facts:
        epoch = _new_name()
        connection.execute(update(meta).where(meta.c.name == "epoch").values(value=epoch))
    connection.execute(delete(meta).where(meta.c.name.in_(values)))
    connection.execute(insert(meta), [{"name": name, "value": value} for name, value in values.items()])
    return epoch, bytes.fromhex(facts["secret"])


def _boot() -> str:
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else "unknown"


def _lost_on_host(facts: Mapping[str, str], durability: Durability) -> bool:
    """Whether the last commits to a file may be missing.

    So it is where the service did not end in order, the host was started anew since, and commits were not flushed.
    """
    return facts.get("open_since_boot") not in {None, _boot()} and durability is Durability.process


def _lost_behind(facts: Mapping[str, str], left: LastOpening | None) -> bool:
    """Whether a file may not be the one that was left, but an older copy or one that went on elsewhere."""
    return left is None or facts.get("opening") != left.opening or _sequence(facts) < left.sequence


def _sequence(facts: Mapping[str, str]) -> int:
    """Number of the newest commit; none where the database does not hold what it should, which the writer will see."""
    return int(facts.get("sequence", "0"))


def _lost_on_server(facts: Mapping[str, str], server: "Server") -> bool:
    """Whether the last commits to PostgreSQL may be missing.

    So it is where another copy of the database answers, or where the service did not end in order and the server was
    started anew without having flushed commits. Versions of Kuayu that did not note the server did not wait for them.
    """
    if "server_home" not in facts:
        return "open_since_boot" in facts
    if facts["server_home"] != server.home:
        return True
    return "open_since_boot" in facts and facts["server_started"] != server.started and not server.flushes


def _new_name() -> str:
    return secrets.token_hex(8)
