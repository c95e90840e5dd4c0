"""Opening a database, SQLite or PostgreSQL: connections, migrations, and the epoch.

1. Connections as the service wants them, to SQLite; those to PostgreSQL are in :mod:`.postgresql`.
2. Opening the database: connections as the service wants them, the schema brought up to date, the epoch decided.
"""

import contextlib
import logging
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from kuayu.service.storage import availability
from kuayu.service.storage.availability import (
    Doubt,
    DoubtError,
    Files,
    HeldError,
    LastOpening,
    OpeningMark,
    Presence,
    is_absence,
)
from kuayu.service.storage.tables import meta
from kuayu_schemas.models import Durability

if TYPE_CHECKING:
    from kuayu.service.storage.postgresql import Server, Sessions

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


logger = logging.getLogger(__name__)

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
            raise _held(error) from error
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
        return availability.hold_file(file)
    except OSError as error:
        raise DatabaseError(
            f"cannot write {file}.lock: {error.strerror}", "Name a folder that may be written"
        ) from error


def _held(error: HeldError) -> DatabaseError:
    return DatabaseError(
        str(error), "Stop it, or give each a database of its own; where its host has died, wait for half a minute"
    )


def _migrate(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
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
    connection: Connection, facts: Mapping[str, str], held: Mapping[str, str], *, lost: bool
) -> tuple[str, bytes]:
    """Epoch and secret of the database; the epoch is renewed where acknowledged writes may be missing.

    Args:
        connection: In a transaction.
        facts: What the database says of itself.
        held: What it is to say from now on.
        lost: Whether acknowledged writes may be missing.
    """
    epoch = facts["epoch"]
    if lost and "new" not in facts:
        epoch = _new_name()
        connection.execute(update(meta).where(meta.c.name == "epoch").values(value=epoch))
    connection.execute(delete(meta).where(meta.c.name.in_(held)))
    connection.execute(insert(meta), [{"name": name, "value": value} for name, value in held.items()])
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
