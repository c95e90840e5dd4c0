"""What a PostgreSQL needs and a SQLite file does not: sessions, statements sent together, and statistics.

1. Sessions: how one is opened, whose it is, and what answers there.
2. Statements whose results nobody needs are sent before the first has been answered.
3. Statistics by which it plans are gathered as soon as half of a table is new.

Imported where a database is a PostgreSQL, and not before: who serves from a SQLite file does not load a driver.
"""

import contextlib
import os
import socket
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, bindparam, create_engine, event, text
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from kuayu.service.storage import database
from kuayu.service.storage.database import DoubtError, Presence
from kuayu.service.storage.tables import metadata

POSTGRESQL_TIMEOUTS_SECONDS = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""How soon a connection to PostgreSQL is given up whose other end does not answer, in seconds; a URL may say others."""

_Session = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL and a life of it.

    Attributes:
        home: Cluster, database and timeline: another one where a copy was put in its place or a standby took over.
        started: When the server was started.
        flushes: Whether what is committed is on the disk, so that a restart loses nothing.
    """

    home: str
    started: str
    flushes: bool


class Sessions:
    """All sessions with a PostgreSQL.

    The one that writes holds the lock that keeps other services off. Commits are waited for, whatever the durability:
    the server is a process of its own, and what it has not written to its log is lost when it dies.

    Args:
        presence: Whether it can be used now.

    Attributes:
        server: What answered last; None until something has.
    """

    def __init__(self, presence: Presence) -> None:
        self.server: Server | None = None
        self._presence = presence
        self._asked: Engine | None = None
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[_Session] = weakref.WeakSet()

    def engines(self, url: str) -> tuple[Engine, Engine]:
        """Engines to write and to read."""
        write = create_engine(url, pool_size=1, max_overflow=0)
        # a reader is not to find out that its session was ended while the database was away
        read = create_engine(url, pool_size=4, max_overflow=16, pool_pre_ping=True, isolation_level="REPEATABLE READ")

        self._asked = create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True)

        @event.listens_for(write, "do_connect")
        def writing(_: Dialect, __: ConnectionPoolEntry, ___: object, options: dict[str, Any]) -> _Session:
            return self._connect(options, writes=True)

        @event.listens_for(read, "do_connect")
        def reading(_: Dialect, __: ConnectionPoolEntry, ___: object, options: dict[str, Any]) -> _Session:
            absence = self._presence.absence
            if absence is not None:  # whose session was ended because of it need not wait for another
                raise psycopg.OperationalError(absence)
            return self._connect(options, writes=False)

        @event.listens_for(self._asked, "do_connect")
        def asking(_: Dialect, __: ConnectionPoolEntry, ___: object, options: dict[str, Any]) -> _Session:
            return self._connect(options, writes=False)

        return write, read

    def ask(self) -> None:
        """See whether somebody answers, in a session that nobody else waits on.

        Raises:
            SQLAlchemyError: Nobody does.
        """
        assert self._asked is not None
        with self._asked.connect() as connection:
            connection.exec_driver_sql("SELECT 1")

    def close(self) -> None:
        """Let go of the session that is asked; the engines are closed by whoever has them."""
        if self._asked is not None:
            self._asked.dispose()

    def break_off(self) -> None:
        """End all sessions from this side: whoever waits for an answer gets an error instead."""
        with self._lock:
            sessions = list(self._open)
        for session in sessions:
            with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(session.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)

    def _connect(self, options: dict[str, Any], *, writes: bool) -> _Session:
        """Connect.

        Raises:
            psycopg.Error: Nobody answers, or lets us in.
            HeldError: Another service writes.
            DoubtError: It is not the server that it was.
        """
        session = psycopg.connect(**{**POSTGRESQL_TIMEOUTS_SECONDS, "application_name": database.own_name(), **options})
        try:
            session.execute(
                "SELECT set_config('synchronous_commit', 'on', false)"
                " WHERE current_setting('synchronous_commit') = 'off'"
            )
            for name in ("idle", "interval", "count"):  # so that it notices soon when our host is gone
                session.execute(f"SET tcp_keepalives_{name} = {POSTGRESQL_TIMEOUTS_SECONDS[f'keepalives_{name}']}")
            session.commit()
            if writes:
                database.hold_session(session, database.SESSION_ENDS if self.server is None else 0.0)
                self._recognise(_server(session))
        except BaseException:
            session.close()
            raise
        with self._lock:
            self._open.add(session)
        return session

    def _recognise(self, server: Server) -> None:
        known, self.server = self.server, server
        if known is None:
            return
        if known.home != server.home:
            raise DoubtError("another database answers than before", lost=True)
        if known.started != server.started and not (known.flushes and server.flushes):
            raise DoubtError("PostgreSQL was started anew, and with fsync=off it may have lost commits", lost=True)


@contextlib.contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Send the statements of the block without waiting for answers; none may have a result that somebody reads.

    Sources: PostgreSQL's manual, libpq, *Pipeline Mode*; psycopg's, *Pipeline mode support*.

    Raises:
        DBAPIError: One of them failed, as SQLAlchemy tells of it; at the latest at the end of the block.
    """
    session = connection.connection.driver_connection
    assert isinstance(session, psycopg.Connection)
    try:
        with session.pipeline():
            yield
    except psycopg.Error as error:  # of an answer that came at the end; those before have come through SQLAlchemy
        broken = session.broken
        if broken:
            connection.invalidate(error)
        raise DBAPIError.instance(
            None, None, error, psycopg.Error, connection_invalidated=broken, dialect=connection.dialect
        ) from error


FEW_ROWS = 100
"""Rows up to which a table need not be looked at: it is as soon read as a whole."""

_GROWN = text(
    "SELECT relid::regclass::text FROM pg_stat_user_tables AS counted JOIN pg_class ON pg_class.oid = relid"
    " WHERE counted.relname IN :tables AND pg_table_is_visible(relid) AND pg_has_role(relowner, 'USAGE')"
    " AND n_live_tup > :few AND 2 * n_mod_since_analyze >= n_live_tup ORDER BY 1"
).bindparams(bindparam("tables", sorted(metadata.tables), expanding=True), few=FEW_ROWS)


def gather_statistics(engine: Engine) -> list[str]:
    """Have the statistics gathered of tables of which half is new since they were last; which those are.

    PostgreSQL looks by itself once a minute (autovacuum_naptime). A table that grew from nothing meanwhile is taken for
    one that holds next to nothing, for which one index is as good as the other: a job would be sought by its name among
    all that wait. Tables of another role are left to it, and those that somebody is at work on.

    Sources: PostgreSQL's manual, *Routine Vacuuming* (24.1.3), *ANALYZE*, and *pg_stat_all_tables*.

    Raises:
        SQLAlchemyError: PostgreSQL does not answer.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        grown = list(connection.execute(_GROWN).scalars())
        for table in grown:
            connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {table}")
        return grown


def _server(session: _Session) -> Server:
    row = session.execute(
        "SELECT pg_postmaster_start_time()::text, current_setting('fsync'),"
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
    ).fetchone()
    assert row is not None
    started, fsync, database = row
    session.commit()
    try:
        control = session.execute(
            "SELECT system_identifier, timeline_id FROM pg_control_system(), pg_control_checkpoint()"
        ).fetchone()
        session.commit()
    except psycopg.errors.InsufficientPrivilege:
        session.rollback()
        control = None
    cluster, timeline = control or ("unknown", "unknown")
    return Server(f"{cluster}:{database}:{timeline}", str(started), fsync == "on")
