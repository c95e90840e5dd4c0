"""The ground that a run stands on: its processes. Whoever leaves it leaves none behind."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, Self

from kuayu.live.record import follow
from kuayu.live.settings import Settings

AGAIN_S = 0.1
"""Seconds after which a control plane that has ended is started anew, as service managers do (RestartSec, systemd)."""


class Lost(Exception):
    """The control plane or the gateways did not start, or the gateways have ended."""


Start = Callable[[str, list[str]], subprocess.Popen[bytes]]
"""Starts a process by a name and its command line; it ends with the ground."""


class Attendance(Protocol):
    """A service that watches a run.

    Attributes:
        control: Module of the control plane of such a run.
        worker: Module of its workers.
    """

    control: str
    worker: str

    def begin(self, start: Start, folder: Path, domains: Mapping[str, int]) -> None:
        """Have it started; ``domains`` are the ports that lead to it at the gateways."""

    def joins(self, node: str, domain: str) -> None:
        """A worker is about to be started in a domain."""

    def end(self) -> None:
        """The run is over, and its processes are about to end."""


class Ground:
    """Gateways, control plane and workers.

    Args:
        settings: Of the run.
        folder: Where workers write; must exist.
        until: Last step; 0 for endless.
        attendance: A service that watches; None where the run judges for itself.
    """

    def __init__(self, settings: Settings, folder: Path, until: int = 0, attendance: Attendance | None = None) -> None:
        self.settings, self._folder, self._until = settings, folder, until
        self._attendance = attendance
        self._services: dict[str, int] = {}
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
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
        self._stack.callback(self._kill_all)
        try:
            (self._folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._links = self._start("links", "kuayu.live.links", str(os.getpid()), self.settings.to_json())
            listening = self._answer(self._links)
            self._ports, self._services = listening["ports"], listening["services"]
            if self._attendance is not None:
                self._attendance.begin(self._start_beside, self._folder, self._services)
            self._record.touch()
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()
            self._start_control()
            while not self._listening:
                self._take(self._next(AGAIN_S))
                self._look_after_control()
            for domain in self.settings.names:
                self.launch(domain)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._attendance is not None:
                self._attendance.end()
        finally:
            self._stack.close()

    def launch(self, domain: str) -> str:
        """Start a worker for a domain; its identifier."""
        number = 1 + sum(each == domain for each in self.domains.values())
        worker = f"{domain}-{number}"
        self.domains[worker] = domain
        if self._attendance is not None:
            self._attendance.joins(worker, domain)
        module = "kuayu.live.worker" if self._attendance is None else self._attendance.worker
        where = [str(self._ports[domain]), str(self._port), str(os.getpid()), str(self._folder)]
        settings = [self.settings.to_json(), str(self._services.get(domain, 0))]
        self.workers[worker] = self._start(worker, module, worker, domain, *where, *settings)
        return worker

    def events(self, wait: float) -> Iterator[dict[str, Any]]:
        """What the control plane put on record, as it comes, for so many seconds; it is started anew where it ended.

        Raises:
            Lost: It ended before it could serve.
        """
        end = time.monotonic() + wait
        while (left := end - time.monotonic()) > 0:
            self._look_after_control()
            event = self._next(min(left, AGAIN_S))
            if event is not None:
                self._take(event)
                yield event

    def kill_control(self) -> float:
        """Kill the control plane; when."""
        assert self.control is not None  # it was started
        at = time.monotonic()
        self.control.kill()
        return at

    def finish(self, ahead: int) -> None:
        """End the job so many steps after the furthest."""
        assert self.control is not None  # it was started
        with contextlib.suppress(Lost):  # it is being started anew, and the job ends with the command
            self._order(self.control, {"finish": ahead})

    def order_links(self, order: dict[str, Any]) -> float:
        """Have the gateways carry out an order; when they had."""
        assert self._links is not None  # it was started
        self._order(self._links, order)
        return float(self._answer(self._links)["at"])

    def signal(self, worker: str, number: signal.Signals) -> None:
        """Send a signal to a worker that has not been waited for."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.workers[worker].pid, number)

    def ended(self, worker: str) -> bool:
        """Whether a worker's process has ended."""
        return self.workers[worker].poll() is not None

    def last_words(self, worker: str) -> str:
        """The last line that a worker's process wrote to its standard error."""
        lines = (self._folder / f"{worker}.errors").read_text("utf-8", "replace").split("\n")
        return next((each for each in reversed(lines) if each.strip()), "it left no word")

    @property
    def _record(self) -> Path:
        return self._folder / "record"

    def _start_control(self) -> None:
        self._listening, self._ended = False, None
        where = [str(os.getpid()), str(self._until), str(self._record), str(self._port)]
        module = "kuayu.live.control" if self._attendance is None else self._attendance.control
        self.control = self._start("control", module, *where, self.settings.to_json())

    def _look_after_control(self) -> None:
        assert self.control is not None  # it was started
        if self.control.poll() is None:
            return
        if not self._listening:
            raise Lost(f"the control plane ended before it could serve: {self.last_words('control')}")
        if self._ended is None:
            self._ended = time.monotonic()
        elif time.monotonic() >= self._ended + AGAIN_S:
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
        piped = name in {"links", "control"}
        return self._starter.submit(self._open, name, [sys.executable, "-m", module, *arguments], piped=piped).result()

    def _start_beside(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        return self._starter.submit(self._open, name, command, piped=False).result()

    def _open(self, name: str, command: list[str], *, piped: bool) -> subprocess.Popen[bytes]:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        ends = subprocess.PIPE if piped else subprocess.DEVNULL
        with (self._folder / f"{name}.errors").open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603 - our own modules
                command,
                stdin=ends,
                stdout=ends,
                stderr=errors,
                env={**os.environ, **threads},
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
            raise Lost("the gateways or the control plane have ended") from error

    @staticmethod
    def _answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None  # it has pipes
        line = process.stdout.readline()
        if not line:
            raise Lost("the gateways or the control plane have ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read(self) -> None:
        for entry in follow(self._record, self._over):
            self._events.put(entry)

    def _kill_all(self) -> None:
        """End all processes; SIGKILL ends stopped ones too, and nothing that they hold is needed any more."""
        self._starter.shutdown()
        self._over.set()
        for each in self._started:
            with contextlib.suppress(ProcessLookupError):
                each.kill()
        if self._reader is not None:
            self._reader.join()
        for each in self._started:
            each.wait()
            for stream in (each.stdin, each.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
