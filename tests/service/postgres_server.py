"""A PostgreSQL of one's own that can be stopped as a power cut stops it, frozen, and started again."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

START_PATIENCE_S = 120.0
"""Seconds in which a server begins; the package that has it waits for ten, which is too little on a busy machine."""


class PostgresServer:
    """A running server.

    Attributes:
        url: SQLAlchemy URL of its first database.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self.url: str = server.get_uri().replace("postgresql://", "postgresql+psycopg://")

    def crash(self) -> None:
        """Stop at once, without a checkpoint: what is not in the log on the disk is lost (``-m immediate``)."""
        self._control("stop", "-m", "immediate")

    def stop(self) -> None:
        """Stop in order, whoever is connected."""
        self._control("stop", "-m", "fast")

    def start(self) -> None:
        """Start it again, where it answered before."""
        self._server.ensure_postgres_running()

    def freeze(self) -> None:
        """Let it answer nothing, with all connections open.

        The process that starts all others is stopped first: a session that it began meanwhile would go on answering.
        """
        main = self._main()
        main.suspend()
        while main.status() != psutil.STATUS_STOPPED:
            time.sleep(0.001)
        for session in main.children():
            session.suspend()

    def thaw(self) -> None:
        """Let it go on."""
        main = self._main()
        for process in (*main.children(), main):
            with contextlib.suppress(psutil.NoSuchProcess):  # a session may end with its first step
                process.resume()

    def remove(self) -> None:
        """End it and delete its data."""
        self._server.cleanup()

    def sql(self, command: str) -> str:
        """Carry out a command as its superuser; what psql prints."""
        return str(self._server.psql(command))

    @contextmanager
    def session(self, database: str) -> Iterator["Session"]:
        """A session of a superuser, for several commands one after the other."""
        with psycopg.connect(self._server.get_uri(database), autocommit=True) as connection:
            yield Session(connection)

    def _main(self) -> psutil.Process:
        return psutil.Process(int((self._server.pgdata / "postmaster.pid").read_text().splitlines()[0]))

    def _control(self, *arguments: str) -> None:
        import pgserver

        pgserver.pg_ctl(["-w", *arguments], pgdata=self._server.pgdata, user=self._server.system_user)


class Session:
    """A session of a superuser."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection

    def value(self, query: str) -> object:
        """First value that a query gives; None where it gives no row."""
        row = self._connection.execute(query).fetchone()  # type: ignore[call-overload]
        return None if row is None else row[0]


def _patient(pg_ctl: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, which gives the server longer."""

    def wait_longer(*arguments: Any, **members: Any) -> Any:
        return pg_ctl(*arguments, **members | {"timeout": START_PATIENCE_S})

    return wait_longer


@contextmanager
def running() -> Iterator[PostgresServer]:
    """A server while it is needed; the test is skipped where none can be started.

    Its folder is not below pytest's, from which another pytest that begins shuts out all other users, as the one that
    the server runs as where the tests are root's.
    """
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setenv("XDG_RUNTIME_DIR", name)
        try:
            import pgserver

            patch.setattr("pgserver.postgres_server.pg_ctl", _patient(pgserver.pg_ctl))
            server = pgserver.get_server(  # type: ignore[attr-defined]
                folder / "data", cleanup_mode="delete"
            )
        except Exception as error:  # noqa: BLE001 - whatever keeps the server's own binaries from running
            pytest.skip(f"no PostgreSQL can be started here: {error}")
        found = PostgresServer(server)
        try:
            yield found
        finally:
            found.remove()
