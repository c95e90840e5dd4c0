"""Who has a database open: one service at a time, since two would not see each other's registrations and heartbeats.

For SQLite that is a lock on a file beside it, for PostgreSQL an advisory lock of the very session that writes; either
is let go of when its holder dies, and says who that is.
"""

import fcntl
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import psycopg

from kuayu.service.storage.presence import HeldError

KIND = 0x6B756179
"""First half of the advisory lock, "kuay"; the second stands for the schema, of which a database may have several."""

SESSION_ENDS = 3.0
"""Seconds in which PostgreSQL notices that a service was killed, whose lock it then lets go of."""

_AGAIN = 0.1


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
        time.sleep(_AGAIN)


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
