"""What the benchmarks measure: the service in a process of its own, on a new SQLite file or a PostgreSQL database."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import httpx
import psutil
import psycopg

DATABASES = ("sqlite", "postgresql")

COMMAND = (sys.executable, "-c", "from kuayu.cli import main; main()", "serve", "--log-level", "warning")

NewDatabase = Callable[[], str]
"""Gives the URL of a database that nobody has used."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast rows were taken in.

    Attributes:
        rate: Rows in a second.
        processor: Microseconds of processors for a row, of all processes together.
        durable: Whether commits were as durable as those of the service.
    """

    rate: float
    processor: float
    durable: bool = True


class Stopwatch:
    """Measures from when it is made: the clock, and processors' time of this process and of some others.

    Args:
        others: Numbers of the other processes, which live until it has been read.
    """

    def __init__(self, *others: int) -> None:
        self._processes = [psutil.Process(number) for number in (os.getpid(), *others)]
        self._busy = self._used()
        self._began = time.perf_counter()

    def speed(self, rows: int, *, durable: bool = True) -> Speed:
        """What so many rows have taken."""
        seconds = time.perf_counter() - self._began
        return Speed(rows / seconds, (self._used() - self._busy) / rows * 1e6, durable)

    def _used(self) -> float:
        return sum(times.user + times.system for times in (process.cpu_times() for process in self._processes))


@contextmanager
def sqlite_files() -> Iterator[NewDatabase]:
    """SQLite files in a folder that goes away in the end."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1_000_000))
        yield lambda: f"sqlite:///{Path(folder) / f'{next(numbers)}.db'}"


@contextmanager
def postgresql_databases() -> Iterator[NewDatabase]:
    """Databases of a PostgreSQL server that begins and ends with this."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        import pgserver

        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")  # type: ignore[attr-defined]
        numbers = iter(range(1_000_000))

        def new() -> str:
            name = f"new{next(numbers)}"
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            return str(server.get_uri(name)).replace("postgresql://", "postgresql+psycopg://")

        try:
            yield new
        finally:
            server.cleanup()


def processes_behind(database: str) -> list[int]:
    """Numbers of the process of the service that was begun here and, on PostgreSQL, of its sessions."""
    found = [child.pid for child in psutil.Process().children() if "serve" in child.cmdline()]
    if database.startswith("postgresql"):
        with psycopg.connect(plain(database)) as connection:
            query = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'kuayu serve%'"
            found += [pid for (pid,) in connection.execute(query)]
    return found


def wait_until_settled(process: psutil.Process, rest: float = 0.5, patience: float = 60.0) -> None:
    """Wait until a service has nothing to do any more: its workers load what they need after it has begun to answer.

    Args:
        process: The service.
        rest: Seconds for which it and its workers have to use less than a twentieth of a processor.
        patience: Seconds after which it is taken as it is.
    """
    service, deadline = Service("", process), time.monotonic() + patience
    while time.monotonic() < deadline:
        before = service.processor_seconds()
        time.sleep(rest)
        if service.processor_seconds() - before < rest / 20:
            return


def databases(kind: str) -> AbstractContextManager[NewDatabase]:
    """Databases of one of the kinds."""
    return sqlite_files() if kind == "sqlite" else postgresql_databases()


def plain(url: str) -> str:
    """A PostgreSQL URL as psycopg takes it."""
    return url.replace("postgresql+psycopg://", "postgresql://")


PACKAGES = ("schemas", "conformance", "reference_impl")


@dataclass(frozen=True)
class Service:
    """A service that runs.

    Attributes:
        url: Where it answers.
        process: It; its workers are its children.
    """

    url: str
    process: psutil.Process

    def processor_seconds(self) -> float:
        """Time of processors that it and its workers have used, in steps of 10 ms."""
        times = [each.cpu_times() for each in (self.process, *self.process.children(recursive=True))]
        return sum(each.user + each.system for each in times)


@contextmanager
def service(database: str, checkout: Path | None = None, options: tuple[str, ...] = ()) -> Iterator[Service]:
    """The service on a database, of this commit or of another one that lies in a folder, with further options."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = dict(os.environ)
    if checkout is not None:
        env["PYTHONPATH"] = os.pathsep.join(str(checkout.absolute() / each) for each in PACKAGES)
    process = subprocess.Popen(
        [*COMMAND, "--port", str(port), "--database", database, *options], stdout=subprocess.DEVNULL, env=env
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                httpx.get(f"{url}/v1/health")
                break
            except httpx.TransportError:
                if process.poll() is not None:
                    raise SystemExit("the service ended") from None
                time.sleep(0.05)
        yield Service(url, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def serving(database: str) -> Iterator[str]:
    """Where the service on a database answers."""
    with service(database) as begun:
        yield begun.url


def versions(*packages: str) -> dict[str, str]:
    """Versions of the packages that figures depend on."""
    return {name: version(name) for name in packages}


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
