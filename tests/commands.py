"""``kuayu`` in processes that begin with everything imported.

To import what a command needs costs a processor one to three seconds, a hundred times what most commands do with it,
and the tests start hundreds. A prefork server is a process that has imported it once, and forks. Each child is a
process of its own all the same: it has its own arguments, environment and folder, runs the same ``main``, ends as any
other program does, and can be killed. That each command also begins when it has to import everything itself is shown
where guides are carried out with programs of their own, and by the tests that start programs without this module.

Children of one prefork server share the seed of Python's hashes, so services and what is typed come from different
ones.

A service computes in workers, which import and prepare as much again as the service. Where ``workers`` are to be
forked too, they come from one process that has prepared them (:class:`WorkerContext`): each is a process with the
environment of its service, which its service kills and which ends with its service, but no child of its service. Who
looks for workers beneath a service starts one without.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import context, forkserver, resource_tracker
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import IO, Any, NoReturn
from unittest.mock import patch

from kuayu_schemas.base import build_models

TESTS = Path(__file__).resolve().parent
PATIENCE_S = 120.0
LONGEST_REQUEST = 1 << 17
STREAMS = 3
"""What each program has: its input, its output and where it complains."""

SERVING = (
    *("kuayu.cli.serve", "kuayu.service.app", "sqlite3.dbapi2", "uvloop", "anyio._backends._asyncio"),
    *("uvicorn", "uvicorn.lifespan.on", "uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl"),
    *("alembic.command", "alembic.runtime.migration", "alembic.script"),
)
"""What ``kuayu serve`` imports."""

SUITE = (
    *("typer", "rich.console", "rich.progress", "kuayu_conformance.proof", "kuayu_conformance.folder"),
    *(f"kuayu_conformance.run.{name}" for name in ("har", "live", "resumption")),
)
"""What the commands of the suite import, again without the commands themselves."""

TARGETS = ("mutants.serve", "conformance.part_services", "conformance.fault_slips")
"""Modules of this folder that serve what the suite is held against; each has a ``main``."""

WORKING = ("commands", "service_workers")
"""What workers of a service begin with: modules of this folder, the second of which prepares them."""

TYPED = (
    *("typer", "rich.console", "rich.table", "rich.progress", "uvicorn", "uvloop", "orjson"),
    *("kuayu.client", "kuayu.engine.agent.app", "kuayu.engine.controller", "kuayu.engine.holdings", "kuayu.index"),
    *(f"kuayu.scheduling.{name}" for name in ("place", "pareto", "capacity_plan", "routing")),
    *(f"kuayu.demand.{name}" for name in ("demand_report", "search", "sizing")),
    *(f"kuayu.resilience.{name}" for name in ("adjustment_planner", "backup_planner", "collectives")),
    *(f"kuayu.resilience.{name}" for name in ("failover_planner", "logs.reader", "shard_planner")),
)
"""What other commands import; not the commands themselves, which look at once how wide the terminal is."""

GUIDED = (*TYPED, *(name for name in SERVING if not name.startswith("kuayu.cli.")))
"""What the commands of guides import, which serve too."""


@contextlib.contextmanager
def killed_at_end(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """Kill a process that still runs: a test that fails within ``with subprocess.Popen`` would wait for it for ever."""
    try:
        yield
    finally:
        process.kill()


class Started:
    """A program that was started; what of :class:`subprocess.Popen` is needed of it.

    Attributes:
        pid: Its process.
        returncode: How it ended, below zero by a signal; None as long as nobody has seen it end.
    """

    def __init__(self, pid: int, end: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._end = end

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; its exit status.

        Raises:
            TimeoutError: It takes longer than so many seconds.
        """
        if self.returncode is None:
            self._end.settimeout(timeout)
            told = self._end.recv(100)
            assert told, "the prefork server ended before its child"
            self._end.close()
            self.returncode = int(told)
        return self.returncode

    def poll(self) -> int | None:
        """Its exit status where it has ended."""
        try:
            return self.wait(0.0)
        except BlockingIOError:
            return None

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is still there; until it was seen to end, its number is nobody else's."""
        if self.poll() is None:
            os.kill(self.pid, number)


KUAYU = "from kuayu.cli import main; main()"
"""What a program does unless it is said otherwise."""

TARGET = (
    f"import importlib, sys; sys.path.insert(0, {str(TESTS)!r}); "
    "name, *arguments = sys.argv[1:]; importlib.import_module(name).main(arguments)"
)
"""What a program does that is named by its module."""


CONFORMANCE = "from kuayu_conformance.cli import app; app()"
"""What a program does that is the suite's own command line."""


class PreforkServer:
    """Starts programs, each with everything imported that modules stand for.

    Args:
        modules: Their names.
        program: What each of them does, in Python.
        workers: What processes begin with that it spawns; where nothing is named, each imports all that it needs.
    """

    def __init__(self, modules: Sequence[str], program: str = KUAYU, workers: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before, after = (
            (f"commands.fork_workers({tuple(workers)!r}); ", "commands.take_workers(); ") if workers else ("", "")
        )
        prefork = (
            f"import sys; sys.path.append({str(TESTS)!r}); import commands; sys.path.pop(); {before}"
            f"commands.tend({theirs.fileno()}, {tuple(modules)!r}); {after}{program}"
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", prefork],
                cwd=TESTS.parent,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def start(
        self,
        arguments: Sequence[str],
        streams: Sequence[int | IO[Any]],
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> Started:
        """Start the program with some arguments.

        Args:
            arguments: What would be typed behind its name.
            streams: Its input, its output and where it complains.
            environment: Ours where none is given.
            folder: Where it begins, which is where we are if none is given.
        """
        request = [folder or str(Path.cwd()), dict(os.environ if environment is None else environment), list(arguments)]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        handed = [each if isinstance(each, int) else each.fileno() for each in streams]
        with theirs, self._lock:
            socket.send_fds(self._control, [json.dumps(request).encode()], [*handed, theirs.fileno()])
            told = self._control.recv(100)
            assert told, "the prefork server ended; it said why where we complain"
            return Started(int(told), ours)

    def close(self) -> None:
        """End it, and whatever of its children still runs."""
        self._control.close()
        self._process.wait(PATIENCE_S)


def service_server(*, spawns: bool = False) -> PreforkServer:
    """The prefork server of this test run that services come from, with workers forked too unless they spawn them."""
    return prefork_server(SERVING, KUAYU, () if spawns else WORKING)


def suite_server() -> PreforkServer:
    """The prefork server of this test run that the suite's own commands come from."""
    return prefork_server(SUITE, CONFORMANCE)


@functools.cache
def prefork_server(modules: Sequence[str], program: str = KUAYU, workers: Sequence[str] = ()) -> PreforkServer:
    """The prefork server of this test run that has imported some modules."""
    made = PreforkServer(modules, program, workers)
    atexit.register(made.close)
    return made


def run(
    *arguments: str | Path,
    text: str = "",
    timeout: float = PATIENCE_S,
    server: PreforkServer | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """What ``kuayu`` says and how it ends.

    Args:
        arguments: What is typed behind its name.
        text: Its standard input.
        timeout: Seconds that it may take.
        server: The prefork server that it comes from; that of commands unless it is said otherwise.
        environment: What differs from our environment.

    Raises:
        subprocess.TimeoutExpired: It took longer, and was killed.
    """
    typed = [str(each) for each in arguments]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        given.write(text.encode())
        given.seek(0)
        server = server or prefork_server(TYPED)
        started = server.start(typed, [given, said, complained], {**os.environ, **environment})
        try:
            status = started.wait(timeout)
        except TimeoutError as error:
            started.send_signal(signal.SIGKILL)
            started.wait()
            raise subprocess.TimeoutExpired(typed, timeout) from error
        said.seek(0)
        complained.seek(0)
        return subprocess.CompletedProcess(typed, status, said.read().decode(), complained.read().decode())


class Program:
    """A program that runs; what of :class:`subprocess.Popen` is needed of it.

    Attributes:
        stdin: What it is told.
        stdout: What it says.
        stderr: Where it complains.
    """

    def __init__(self, process: Started, stdin: IO[str], stdout: IO[str], stderr: IO[str]) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.poll, self.wait, self.send_signal = process.poll, process.wait, process.send_signal

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it still says and complains of until it has ended.

        Raises:
            TimeoutError: It takes longer than so many seconds; it is killed then.
        """
        with ThreadPoolExecutor(2) as readers:  # it may wait for either to be read
            parts = [readers.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except TimeoutError:
                self.send_signal(signal.SIGKILL)
                raise
            said, complained = (part.result() for part in parts)
        return said, complained


@contextlib.contextmanager
def running(*arguments: str | Path, modules: Sequence[str] = TYPED, **environment: str) -> Iterator[Program]:
    """``kuayu`` while it runs; it is killed where it has not ended by then.

    Args:
        arguments: What is typed behind its name.
        modules: What the prefork server has imported that it comes from.
        environment: What differs from our environment.
    """
    (given, tell), (said, say), (complained, complain) = (os.pipe() for _ in range(STREAMS))
    with os.fdopen(tell, "w") as stdin, os.fdopen(said) as stdout, os.fdopen(complained) as stderr:
        typed, theirs = [str(each) for each in arguments], [given, say, complain]
        try:
            process = prefork_server(modules).start(typed, theirs, {**os.environ, **environment})
        finally:
            for each in theirs:
                os.close(each)
        try:
            yield Program(process, stdin, stdout, stderr)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def target(module: str, *arguments: str) -> Iterator[str]:
    """One of :data:`TARGETS` as a process, until it is told to end; yields its base URL, the end of its first line."""
    read, write = os.pipe()
    with os.fdopen(read) as said, Path(os.devnull).open("r+b") as nothing:
        try:
            server = prefork_server(TARGETS, TARGET)
            process = server.start([module, *arguments], [nothing, write, nothing], folder=str(TESTS))
        finally:
            os.close(write)
        try:
            yield said.readline().rpartition(" ")[2].strip()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


RELAYED = """\
#!{python} -IS
import json, os, socket, sys
relay = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
relay.connect({address!r})
request = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])
socket.send_fds(relay, [request.encode()], [0, 1, 2])
status = int(relay.recv(100))
sys.exit(status if status >= 0 else 128 - status)
"""
"""A program that is ``kuayu`` for a shell, and has it started by :func:`relaying`."""


@contextlib.contextmanager
def relaying(folder: Path) -> Iterator[str]:
    """Text of a program that a shell can start as ``kuayu``: what it does is done by a child of a prefork server.

    The child has the program's arguments, environment, folder, input and outputs, and is killed when the program is.

    Args:
        folder: A folder for the socket over which such programs ask.
    """
    server = prefork_server(GUIDED, KUAYU, WORKING)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as relay:
        relay.bind(address := str(folder / "relay"))
        relay.listen()

        def accept() -> None:
            with contextlib.suppress(OSError):  # it has been shut down
                while True:
                    threading.Thread(target=_relay, args=(server, relay.accept()[0]), daemon=True).start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield RELAYED.format(python=sys.executable, address=address)
        finally:
            relay.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _relay(server: PreforkServer, program: socket.socket) -> None:
    """Start what a program stands for, and tell it how that ended, or end it where the program has ended before."""
    with program:
        request, streams, _, _ = socket.recv_fds(program, LONGEST_REQUEST, STREAMS)
        if not request:
            return
        try:
            started = server.start(json.loads(request)[0], streams, *json.loads(request)[1:])
        finally:
            for stream in streams:
                os.close(stream)
        while (status := started.poll()) is None:
            if select.select([program], [], [], 0.02)[0]:  # it says nothing more: it is gone
                started.send_signal(signal.SIGKILL)
                started.wait()
                return
        program.send(str(status).encode())


class WorkerProcess(ForkServerProcess):
    """A process with the environment of the one that started it, and not of the one that it is forked from."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._environment = dict(os.environ)

    def run(self) -> None:
        """Do what it was started for."""
        os.environ.clear()
        os.environ.update(self._environment)
        super().run()


class WorkerContext(ForkServerContext):
    """Forks processes from one that was started before, whoever asks."""

    Process = WorkerProcess


def fork_workers(modules: Sequence[str]) -> None:
    """Start the process that workers are forked from, which has no threads: no library is to begin any.

    Sources: ``multiprocessing`` of the Python manual, *Contexts and start methods*; what it imports beforehand is found
    by the path in its environment.
    """
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, [str(TESTS), *sys.path]))
    with patch.dict(os.environ, {**one, "PYTHONPATH": path}):
        forkserver.set_forkserver_preload([*modules])
        forkserver.ensure_running()


def take_workers() -> None:
    """In a child: whatever would be spawned is forked from the process that was started for that.

    The child has a tracker of shared resources of its own, as it would have by itself.
    """
    # The standard library has nothing public by which a process takes over the fork server of its parent.
    tracker: Any = resource_tracker._resource_tracker  # type: ignore[attr-defined] # noqa: SLF001
    tracker._fd = tracker._pid = None  # noqa: SLF001
    server: Any = forkserver._forkserver  # type: ignore[attr-defined] # noqa: SLF001
    server.ensure_running = resource_tracker.ensure_running
    context._concrete_contexts["spawn"] = WorkerContext()  # type: ignore[attr-defined] # noqa: SLF001


def tend(control: int, modules: Sequence[str]) -> None:
    """Fork a child for each request, and tell of its end; returns in the children, to go on as they will.

    Where nobody can ask any more, the children are killed.
    """
    sys.path.append(str(TESTS))
    for name in modules:
        importlib.import_module(name)
    sys.path.remove(str(TESTS))
    build_models()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever types it at the tests means their end, not this one's
    asked = socket.socket(fileno=control)
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready in select.select([asked, *running], [], [])[0]:
            if ready is not asked:
                pid, whom = running.pop(ready)
                _, status = os.waitpid(pid, 0)
                os.close(ready)
                with whom, contextlib.suppress(BrokenPipeError):  # nobody may wait for it any more
                    whom.send(str(os.waitstatus_to_exitcode(status)).encode())
                continue
            request, handed, _, _ = socket.recv_fds(asked, LONGEST_REQUEST, STREAMS + 1)
            if not request:  # the tests have ended, or were killed
                _end(running)
            pid = os.fork()
            whom = socket.socket(fileno=handed.pop())
            if pid == 0:
                for other in (asked, whom, *(each for _, each in running.values())):
                    other.close()
                for other in running:
                    os.close(other)
                _become(*json.loads(request), handed)
                return
            for each in handed:
                os.close(each)
            running[os.pidfd_open(pid)] = pid, whom
            asked.send(str(pid).encode())


def _end(running: Iterable[int]) -> NoReturn:
    """End a prefork server, and its children, which would run for ever; they are named by descriptors."""
    for child in running:
        signal.pidfd_send_signal(child, signal.SIGKILL)
    os._exit(0)


def _become(folder: str, environment: Mapping[str, str], arguments: Sequence[str], streams: Sequence[int]) -> None:
    """What a program is before its first line."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv = ["-c", *arguments]
