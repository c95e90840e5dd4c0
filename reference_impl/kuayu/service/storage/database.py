"""Opening the database: connections as the service wants them, the schema brought up to date, the epoch decided."""

import fcntl
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from kuayu.service.storage.tables import meta
from kuayu_schemas.models import Durability

MIGRATIONS = Path(__file__).parents[1] / "migrations"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
CACHED_STATEMENTS = 512


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
        lock: Held while the database is open, so that no second service opens it; None for PostgreSQL.
    """

    write: Engine
    read: Engine
    epoch: str
    secret: bytes
    lock: IO[str] | None

    @property
    def shown(self) -> str:
        """URL for people, without a password."""
        return self.write.url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Note that nothing was lost, and let go of all connections."""
        with self.write.begin() as connection:
            connection.execute(delete(meta).where(meta.c.name == "open_since_boot"))
        self.write.dispose()
        self.read.dispose()
        if self.lock is not None:
            self.lock.close()


def open_database(url: str, durability: Durability) -> Database:
    """Open a database, creating or migrating its tables.

    Raises:
        DatabaseError: The URL is wrong, the database does not answer, or it was made by a newer version.
    """
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend not in {"sqlite", "postgresql"}:
            raise DatabaseError(
                f"{backend} is not a database that Kuayu knows", "Use sqlite:///FILE or postgresql+psycopg://…"
            )
        if backend == "sqlite" and parsed.database in {None, "", ":memory:"}:
            raise DatabaseError("SQLite in memory cannot be shared between connections", "Name a file: sqlite:///FILE")
        lock = _lock(Path(str(parsed.database))) if backend == "sqlite" else None
        write, read = _sqlite(url, durability) if backend == "sqlite" else _postgresql(url, durability)
        with write.begin() as connection:
            _migrate(connection)
            epoch, secret = _identity(connection, durability)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        hint = "Use sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
        raise DatabaseError(f"{url!r} is not a database URL", hint) from error
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise DatabaseError(f"the database does not open: {cause}", "See that it exists and may be written") from error
    return Database(write, read, epoch, secret, lock)


def _lock(file: Path) -> IO[str]:
    """Keep others off a SQLite file: two services would not see each other's registrations.

    Raises:
        DatabaseError: Another service has it, or there is no such folder.
    """
    beside = file.with_name(file.name + ".lock")
    try:
        lock = beside.open("w", encoding="utf-8")
    except OSError as error:
        raise DatabaseError(f"cannot write {beside}: {error.strerror}", "Name a folder that may be written") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise DatabaseError(
            f"another service has {file} open", "Stop it, or give each a database of its own"
        ) from error
    return lock


def _sqlite(url: str, durability: Durability) -> tuple[Engine, Engine]:
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


def _postgresql(url: str, durability: Durability) -> tuple[Engine, Engine]:
    """`process` needs no flush at each commit: the server survives our end, and loses under a second with the host."""
    synchronous = "on" if durability is Durability.host else "off"
    write = create_engine(
        url, pool_size=1, max_overflow=0, connect_args={"options": f"-c synchronous_commit={synchronous}"}
    )
    return write, create_engine(url, pool_size=4, max_overflow=16, isolation_level="REPEATABLE READ")


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


def _identity(connection: Connection, durability: Durability) -> tuple[str, bytes]:
    """Epoch and secret of the database.

    The epoch is renewed where the last commits may be lost: the service did not end in order, the host was started
    anew since, and commits were not flushed.
    """
    facts = {row.name: row.value for row in connection.execute(select(meta.c.name, meta.c.value))}
    if not facts:
        facts = {"epoch": _new_epoch(), "secret": secrets.token_hex(32), "sequence": "0"}
        connection.execute(insert(meta), [{"name": name, "value": value} for name, value in facts.items()])
    boot = BOOT_ID.read_text().strip() if BOOT_ID.exists() else "unknown"
    open_since = facts.get("open_since_boot")
    if open_since not in {None, boot} and durability is Durability.process:
        facts["epoch"] = _new_epoch()
        connection.execute(update(meta).where(meta.c.name == "epoch").values(value=facts["epoch"]))
    connection.execute(delete(meta).where(meta.c.name == "open_since_boot"))
    connection.execute(insert(meta).values(name="open_since_boot", value=boot))
    return facts["epoch"], bytes.fromhex(facts["secret"])


def _new_epoch() -> str:
    return secrets.token_hex(8)
