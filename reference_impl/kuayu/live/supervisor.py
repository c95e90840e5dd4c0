"""The processes of a run, and the faults that are injected into them.

1. Whoever leaves the supervisor leaves no process behind.
2. Workers are runs of an engine (:mod:`~kuayu.live.launcher`); control plane and gateways are processes of this one,
   which are told what to do by their standard input.
3. A control plane or a worker that has ended is started anew; gateways that have ended end the run.
4. Faults are injected from outside: workers have no part in it and no way to know.

==========  ========================================================================================================
kind        what happens
==========  ========================================================================================================
kill        SIGKILL: the process is gone, its connections end
hang        SIGSTOP: it answers nothing, its connections stay; continued later, when it has been replaced
slow        it is stopped for nine tenths of the time, in turns of 50 ms
cut         its link carries nothing, to the control plane or to peers; mended later
partial     its link carries nothing to peers, and its heartbeats still arrive (a partial partition; Alfatafta et al.,
            OSDI 2020); mended later
control     SIGKILL to the control plane, which is started anew
amid        SIGKILL to a worker, and up to half a second later to the control plane
==========  ========================================================================================================
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, Self

from kuayu.live.launcher import THREADS, Launcher
from kuayu.live.plan import Settings, follow

RESTART_SECONDS = 0.1
"""Seconds after which a control plane that has ended is started anew, as service managers do (RestartSec, systemd)."""


class ProcessLostError(Exception):
    """The control plane or the gateways did not start, or the gateways have ended."""


class RunWatcher(Protocol):
    """A service that watches a run.

    Attributes:
        control: Module of the control plane of such a run.
        worker: Module of its workers.
    """

    control: str
    worker: str

    def begin(self, launcher: Launcher, folder: Path, domains: Mapping[str, int]) -> None:
        """Have it started; ``domains`` are the ports that lead to it at the gateways."""

    def joins(self, node: str, domain: str) -> None:
        """A worker is about to be started in a domain."""

    def end(self) -> None:
        """The job is over, and all runs are about to end."""


class ProcessSupervisor:
    """Gateways, control plane and workers.

    Args:
        settings: Of the run.
        folder: Where workers write; must exist.
        until: Last step; 0 for endless.
        watcher: A service that watches; None where the run judges for itself.

    Attributes:
        launcher: Of the workers.
        domains: The domain of each worker that was started.
    """

    def __init__(self, settings: Settings, folder: Path, until: int = 0, watcher: RunWatcher | None = None) -> None:
        self.settings, self._folder, self._until = settings, folder, until
        self._watcher = watcher
        self._services: dict[str, int] = {}
        self.launcher = Launcher(folder)
        self.domains: dict[str, str] = {}
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._over = threading.Event()
        self._stack = contextlib.ExitStack()
        self._starter = ThreadPoolExecutor(1, "starter")
        self._started: list[subprocess.Popen[bytes]] = []
        self._ports: dict[str, int] = {}
        self._reader: threading.Thread | None = None
        self._links: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._listening = False
        self._ended: float | None = None
        self.control: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            (self._folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._stack.enter_context(self.launcher)
            self._stack.callback(self._kill_all)
            self._links = self._start("links", "kuayu.live.links", self.settings.to_json())
            listening = self._answer(self._links)
            self._ports, self._services = listening["ports"], listening["services"]
            if self._watcher is not None:
                self._watcher.begin(self.launcher, self._folder, self._services)
            self._record.touch()
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()
            self._start_control()
            while not self._listening:
                self._take(self._next(RESTART_SECONDS))
                self._look_after_control()
            for domain in self.settings.names:
                self.launch(domain)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._watcher is not None:
                self._watcher.end()
        finally:
            self._stack.close()

    def launch(self, domain: str) -> str:
        """Start a worker for a domain; its identifier."""
        number = 1 + sum(entry == domain for entry in self.domains.values())
        worker = f"{domain}-{number}"
        self.domains[worker] = domain
        if self._watcher is not None:
            self._watcher.joins(worker, domain)
        module = "kuayu.live.worker" if self._watcher is None else self._watcher.worker
        where = [str(self._ports[domain]), str(self._port), str(self._folder)]
        settings = [self.settings.to_json(), str(self._services.get(domain, 0))]
        self.launcher.start(worker, [sys.executable, "-m", module, worker, domain, *where, *settings])
        return worker

    def events(self, wait: float) -> Iterator[dict[str, Any]]:
        """What the control plane put on record, as it comes, for so many seconds; it is started anew where it ended.

        Raises:
            ProcessLostError: It ended before it could serve.
        """
        end = time.monotonic() + wait
        while (left := end - time.monotonic()) > 0:
            self._look_after_control()
            event = self._next(min(left, RESTART_SECONDS))
            if event is not None:
                self._take(event)
                yield event

    def kill_control(self) -> float:
        """Kill the control plane; when."""
        assert self.control is not None  # it was started
        instant = time.monotonic()
        self.control.kill()
        return instant

    def finish(self, ahead: int) -> None:
        """End the job so many steps after the furthest."""
        assert self.control is not None  # it was started
        with contextlib.suppress(ProcessLostError):  # it is being started anew, and the job ends with the command
            self._order(self.control, {"finish": ahead})

    def order_links(self, order: dict[str, Any]) -> float:
        """Have the gateways carry out an order; when they had."""
        assert self._links is not None  # it was started
        self._order(self._links, order)
        return float(self._answer(self._links)["at"])

    @property
    def _record(self) -> Path:
        return self._folder / "record"

    def _start_control(self) -> None:
        self._listening, self._ended = False, None
        where = [str(self._until), str(self._record), str(self._port)]
        module = "kuayu.live.control" if self._watcher is None else self._watcher.control
        self.control = self._start("control", module, *where, self.settings.to_json())

    def _look_after_control(self) -> None:
        assert self.control is not None  # it was started
        if self.control.poll() is None:
            return
        if not self._listening:
            lines = (self._folder / "control.errors").read_text("utf-8", "replace").strip().split("\n")
            raise ProcessLostError(f"the control plane ended before it could serve: {lines[-1]}")
        if self._ended is None:
            self._ended = time.monotonic()
        elif time.monotonic() >= self._ended + RESTART_SECONDS:
            self._start_control()

    def _take(self, event: dict[str, Any] | None) -> None:
        if event is not None and event["kind"] == "listening":
            self._listening, self._port = True, event["port"]

    def _next(self, wait: float) -> dict[str, Any] | None:
        try:
            return self._events.get(timeout=wait)
        except queue.Empty:
            return None

    def _start(self, name: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a process in a thread of its own: Ctrl-C in the middle of it would leave one that nobody knows of."""
        return self._starter.submit(self._open, name, [sys.executable, "-m", module, *arguments]).result()

    def _open(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.errors").open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603 - our own modules
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **THREADS},
                start_new_session=True,  # so that Ctrl-C reaches the command alone
            )
        self._started.append(process)
        return process

    @staticmethod
    def _order(process: subprocess.Popen[bytes], order: dict[str, Any]) -> None:
        assert process.stdin is not None  # it has pipes
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise ProcessLostError("the gateways or the control plane have ended") from error

    @staticmethod
    def _answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None  # it has pipes
        line = process.stdout.readline()
        if not line:
            raise ProcessLostError("the gateways or the control plane have ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read(self) -> None:
        for entry in follow(self._record, self._over):
            self._events.put(entry)

    def _kill_all(self) -> None:
        """End control plane and gateways; nothing that they hold is needed any more."""
        self._starter.shutdown()
        self._over.set()
        for entry in self._started:
            with contextlib.suppress(ProcessLookupError):
                entry.kill()
        if self._reader is not None:
            self._reader.join()
        for entry in self._started:
            entry.wait()
            for stream in (entry.stdin, entry.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


TURN_S, STOPPED = 0.05, 0.9
"""Seconds of a turn of a slow worker, and the share of it in which it is stopped."""
MAX_CONTROL_DELAY_SECONDS = 0.5
"""Seconds at most from a worker's end to the control plane's: detection, decision and the new plan fall within it."""
CONTROL = "control"
"""Name of the control plane, to whom something is done as well."""


class Kind(StrEnum):
    """Kinds of faults."""

    kill = "kill"
    hang = "hang"
    slow = "slow"
    cut = "cut"
    partial = "partial"
    control = "control"
    amid = "amid"


class Strike:
    """A fault that has been brought about.

    Attributes:
        injected_at: When, in seconds of the steady clock.

    Args:
        supervisor: Processes.
        kind: What happens.
        worker: To whom.
        after: Seconds to the second part of what happens.
    """

    def __init__(self, supervisor: ProcessSupervisor, kind: Kind, worker: str, after: float = 0.0) -> None:
        self._supervisor, self._kind, self._worker = supervisor, kind, worker
        self._over = threading.Event()
        self._turns: threading.Thread | None = None
        self.injected_at = time.monotonic()
        match kind:
            case Kind.kill:
                supervisor.launcher.signal(worker, signal.SIGKILL)
            case Kind.hang:
                supervisor.launcher.signal(worker, signal.SIGSTOP)
            case Kind.slow:
                self._turns = threading.Thread(target=self._take_turns, daemon=True)
                self._turns.start()
            case Kind.cut | Kind.partial:
                order = {"cut": supervisor.domains[worker], "peers_only": kind == Kind.partial}
                self.injected_at = supervisor.order_links(order)
            case Kind.control:
                self.injected_at = supervisor.kill_control()
            case Kind.amid:
                supervisor.launcher.signal(worker, signal.SIGKILL)
                time.sleep(after)
                supervisor.kill_control()

    def lift(self) -> float:
        """Undo it, as far as it can be undone; when."""
        self._over.set()
        if self._turns is not None:
            self._turns.join()
        if self._kind in {Kind.cut, Kind.partial}:
            return self._supervisor.order_links({"mend": self._supervisor.domains[self._worker]})
        instant = time.monotonic()
        if self._kind is not Kind.control:
            self._supervisor.launcher.signal(self._worker, signal.SIGCONT)
        return instant

    def _take_turns(self) -> None:
        while not self._over.is_set() and not self._supervisor.launcher.ended(self._worker):
            self._supervisor.launcher.signal(self._worker, signal.SIGSTOP)
            time.sleep(TURN_S * STOPPED)
            self._supervisor.launcher.signal(self._worker, signal.SIGCONT)
            time.sleep(TURN_S * (1 - STOPPED))
