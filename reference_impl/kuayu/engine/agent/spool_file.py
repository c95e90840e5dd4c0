"""The file of a spool: told from other files, kept from others, opened, its tables made."""

import sqlite3
from pathlib import Path
from typing import IO, Final

from kuayu.engine.locking import lock, lock_of
from kuayu_schemas.models import Durability

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sample (id INTEGER PRIMARY KEY AUTOINCREMENT, arrived INTEGER NOT NULL, waited REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS held (id INTEGER PRIMARY KEY, due INTEGER NOT NULL, arrived INTEGER NOT NULL, waited REAL NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS held_due ON held (due);
CREATE TABLE IF NOT EXISTS parcel (key TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, stamps TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, digest BLOB NOT NULL, body BLOB NOT NULL, created INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS answer_created ON answer (created);
"""  # noqa: E501 - a table a line

APPLICATION: Final = 0x6B757961
"""What a spool says in the header of the file (PRAGMA application_id)."""

_OLD: Final = {"fact", "sample", "held", "parcel", "answer"}
"""Tables of a spool that does not say it yet."""


class SpoolError(Exception):
    """The spool cannot be used; says why and what to do."""

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause}. {hint}")
        self.cause = cause
        self.hint = hint


def found(file: Path) -> Path:
    """Where a file really is, so that two names of it are one; nothing is written.

    Raises:
        SpoolError: There is something that is no spool and no empty file.
    """
    try:
        real = file.resolve()
        if real.exists() and not real.is_file():
            raise SpoolError(f"{file} is no file", "name a file for --spool; it is made where there is none")
        if not real.exists() or not real.stat().st_size:
            return real
        connection = sqlite3.connect(f"{real.as_uri()}?mode=ro", uri=True)
    except (OSError, RuntimeError, ValueError, sqlite3.Error) as error:
        raise SpoolError(f"{file} cannot be read: {error}", "name another file") from error
    try:
        named = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise SpoolError(f"{file} does not open as a spool: {error}", "name another file, or mend this one") from error
    finally:
        connection.close()
    if named == APPLICATION or (not named and (not tables or tables >= _OLD)):
        return real
    said = ", ".join(sorted(tables)[:5]) or "none"
    raise SpoolError(
        f"{file} is a database of something else (tables {said})", "name another file; this one is as it was"
    )


def make(connection: sqlite3.Connection) -> None:
    """Make the tables that are not there, in the transaction that is open."""
    for statement in _TABLES.strip().splitlines():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION}")


def locked(file: Path) -> IO[str]:
    """Keep other aggregators off a file for as long as the answer is open.

    Raises:
        SpoolError: Another one has it, or its folder cannot be written.
    """
    try:
        return lock(file)
    except BlockingIOError as error:
        raise SpoolError(f"another agent has the spool {file}", "stop it, or give each a spool of its own") from error
    except OSError as error:
        hint = "name a folder that may be written"
        raise SpoolError(f"cannot write {lock_of(file)}: {error.strerror}", hint) from error


def opened(file: Path, durability: Durability) -> sqlite3.Connection:
    """A connection to write with, which takes transactions as they are begun.

    Raises:
        sqlite3.Error: It is no database, or cannot be written.
    """
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, cached_statements=64)
    try:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={'FULL' if durability is Durability.host else 'NORMAL'}")
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA wal_autocheckpoint=4000")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
