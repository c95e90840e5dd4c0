"""Runs as processes on this host: the engine that is there without anything to install.

1. A run is started by handing its order and its open lock to a supervisor of its own
   (:mod:`~kuayu.engine.runs.supervisor`), which leads a session and needs nobody. The engine may be killed at any
   moment: before the order is whole nothing is started, and from then on the lock tells every engine of this directory
   (:mod:`~kuayu.engine.runs.store`) that the run is under way.
2. A state that is not final, with a lock that nobody holds, is that of a run whose supervisor is gone. Whoever looks
   kills what it may have left (found by its environment) and writes FAILED with the reason: the host was restarted, or
   the supervisor was killed.
3. Processes get the variables of :func:`~kuayu.engine.runs.protocol.environment`, those by which they see their devices
   alone (:mod:`~kuayu.engine.runs.devices`), and of the engine's own environment only what programs need to find their
   tools (:data:`~kuayu.engine.runs.store.INHERITED`).
4. Who wants runs that do not outlive it says so (:meth:`LocalEngine.tied`). Their supervisors then have one end of a
   pipe, of which the other is closed when its process has ended, however it has.

Where the engine runs under systemd, its unit needs ``KillMode=process``; with the default, restarting the service kills
the runs (systemd.kill(5)). There are no containers here; a run with an image is refused.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL, SIGTERM, pidfd_send_signal
from typing import IO, Any

from kuayu.engine.locking import lock
from kuayu.engine.runs import supervisor
from kuayu.engine.runs.devices import Allocation, HostLedger, accelerators, visibility
from kuayu.engine.runs.protocol import (
    ENDED,
    MAX_LINE_CHARACTERS,
    EngineError,
    Finding,
    LogLine,
    Run,
    RunState,
    RunStatus,
    environment,
    validate,
)
from kuayu.engine.runs.store import (
    LOCK_SECONDS,
    POLL_SECONDS,
    RunStore,
    another,
    busy,
    digest,
    inherited,
    make_work_directory,
    stored_status,
    work_directory,
)

MAX_LOG_BYTES = 64 << 20
"""Bytes of a run's log; what a job prints beyond them is left out, but for its last lines."""

LAUNCH_SECONDS = 60.0
"""How long a supervisor may take until all ranks are started."""

SUPERVISOR_SECONDS = 20.0
"""How long beyond the grace period a supervisor may take to end its run, before that is done without it."""

KILL_SECONDS = 10.0
"""How long killed processes may take to be gone; those that wait for a broken device or store take longer."""

_PR_GET_CHILD_SUBREAPER = 37  # linux/prctl.h
_SUPERVISOR = Path(supervisor.__file__)


class LocalEngine:
    """Runs as processes on this host.

    Args:
        directory: Where runs are kept; one for each host, and for as long as runs are to be found again.
        nodes: Devices of each node that this host stands for; None for this host, whatever placements call it, with the
            accelerators that it has.
    """

    def __init__(self, directory: Path, nodes: Mapping[str, int] | None = None) -> None:
        self.name = "local"
        self._store = RunStore(directory)
        self._nodes = nodes
        self._ledger = HostLedger(self._store.directory / "held", nodes)
        self._ties: list[int] = []

    @contextmanager
    def tied(self) -> Iterator[None]:
        """Have runs that are started within be stopped, without grace, when it is left or this process has ended."""
        read, write = os.pipe()
        self._ties = [read]
        try:
            yield
        finally:
            self._ties = []
            os.close(read)
            os.close(write)

    def check(self) -> list[Finding]:
        """What the engine needs and whether it is there, without starting anything."""
        return [_check_host(), _check_directory(self._store.directory), _check_devices(self._nodes), _check_git()]

    def unavailable_nodes(self, _nodes: Sequence[str], /) -> dict[str, str]:
        """None: where this process runs, runs can be given to its host."""
        return {}

    def prepare(self, run: Run) -> None:
        """Make the run's directory, fetch its code, and see whether its program is there.

        Raises:
            EngineError: It can not be run here, and why; or another run has this name.
        """
        validate(run)
        if run.image is not None:
            raise EngineError("the engine local has no containers", "leave the image out, or use another engine")
        self._ledger.validate(run)
        self._store.prepare(run, lambda directory: _prepare_work(run, directory))

    def start(self, run: Run) -> None:
        """Start a run that was prepared; all its ranks have been started when this returns.

        Raises:
            EngineError: It was not started; nothing of it is running. Where devices are not free, that is transient.
        """
        end_at = time.monotonic() + LOCK_SECONDS
        while (state := self._store.state(run.name)) is not None:
            if state["digest"] != digest(run):
                raise another(run.name)
            if state["state"] != "prepared":
                return
            with self._store.try_lock(run.name) as run_lock:
                if run_lock is not None and self._is_prepared(run.name):
                    self._launch(run, run_lock)
                    return
            if time.monotonic() > end_at:
                raise busy(run.name)
            time.sleep(POLL_SECONDS)
        raise EngineError(f"run {run.name} was not prepared", "prepare it first")

    def stop(self, name: str, grace_seconds: float | None = None) -> None:
        """End a run; when this returns nothing of it is alive. One that is unknown or has ended stays as it is.

        Args:
            name: Of the run.
            grace_seconds: Between SIGTERM and SIGKILL; the run's own where None. A later call can shorten it.

        Raises:
            EngineError: Processes do not die, or another call has had the run locked for a minute.
        """
        end_at = time.monotonic() + LOCK_SECONDS
        while (state := self._store.state(name)) is not None and state["state"] == "prepared":
            with self._store.try_lock(name) as run_lock:
                if run_lock is not None and self._is_prepared(name):
                    self._store.write(name, {**state, "state": "stopped", "reason": "stopped before it was started"})
            if time.monotonic() > end_at:
                raise busy(name)
            time.sleep(POLL_SECONDS)
        if state is None or self._ended(name):
            return
        grace = float(state["grace"]) if grace_seconds is None else grace_seconds
        try:
            supervisor.write_state(self._store.of(name), {"grace": grace, "at": time.time()}, supervisor.STOP_FILE)
        except OSError as error:
            hint = "see to its disk"
            raise EngineError(f"cannot write in {self._store.of(name)}: {error}", hint, transient=True) from error
        _signal(state["processes"][-1:], SIGTERM)
        if not self._await_end(name, grace + SUPERVISOR_SECONDS):
            self._kill(name)

    def status(self, name: str) -> RunStatus:
        """How a run stands; unknown, with a reason, where there is none of that name."""
        state = self._store.state(name)
        if state is None:
            return self._store.unknown(name)
        if state["state"] == "prepared" or state["state"] in supervisor.ENDED:
            return stored_status(state)
        with self._store.try_lock(name) as run_lock:
            return stored_status(state) if run_lock is None else self._settle(name)

    def logs(self, name: str, after: int = 0, limit: int = 1000) -> list[LogLine]:
        """Lines of a run in order, those after a number; empty where there are none yet.

        Where a log has reached ``MAX_LOG_BYTES``, its last lines come when the run has ended, after one that says how
        many were left out.
        """
        return self._store.logs(name, after, limit)

    def runs(self) -> list[str]:
        """Names of all runs whose directory is here, in order."""
        return self._store.names()

    def forget(self, name: str) -> None:
        """Remove the directory of a run that has ended, logs included; a working directory elsewhere stays.

        Raises:
            EngineError: It has not ended, or its directory cannot be removed.
        """
        self._store.forget(name, self.status, lambda: self._ledger.release(name))

    def _is_prepared(self, name: str) -> bool:
        state = self._store.state(name)
        return state is not None and state["state"] == "prepared"

    def _ended(self, name: str) -> bool:
        return self.status(name).state in ENDED

    def _launch(self, run: Run, run_lock: IO[str]) -> None:
        """Hand a run over to a supervisor, lock and all, and wait until its ranks are started."""
        directory = self._store.of(run.name)
        allocation = self._ledger.take(run, self._lives)
        order = {
            "directory": str(directory),
            "held": str(self._ledger.file(run.name)),
            "lock": run_lock.fileno(),
            "ties": self._ties,
            "state": {"digest": digest(run), "grace": run.grace_seconds},
            "grace": run.grace_seconds,
            "characters": MAX_LINE_CHARACTERS,
            "log_bytes": MAX_LOG_BYTES,
            "ranks": _ranks(run, directory, allocation),
        }
        try:
            launcher = subprocess.run(  # noqa: S603 - the supervisor that comes with this module
                [sys.executable, "-I", "-S", str(_SUPERVISOR)],
                input=json.dumps(order),
                capture_output=True,
                text=True,
                cwd="/",
                env=inherited(),
                pass_fds=[run_lock.fileno(), *self._ties],
                start_new_session=True,
                timeout=LAUNCH_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            cause = f"run {run.name} was not started within {LAUNCH_SECONDS:.0f} s and may still be"
            raise EngineError(cause, "start it again, or stop it", transient=True) from error
        except OSError as error:
            self._ledger.release(run.name)
            raise EngineError(f"no process can be started: {error}", "see to the host", transient=True) from error
        run_lock.close()  # from here on the supervisor's alone
        if launcher.stdout == supervisor.STARTED:
            return
        if launcher.stdout != supervisor.NOT_STARTED and self._goes_on(run.name):
            return  # the launcher was killed, and what it had launched was not
        if not self._is_prepared(run.name):
            self._await_end(run.name, run.grace_seconds + SUPERVISOR_SECONDS)
            raise EngineError(self.status(run.name).reason, "see to command and directory; the run stays failed")
        complaint = launcher.stderr or _text(directory / supervisor.ERRORS_FILE)
        last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
        raise EngineError(
            f"the supervisor of run {run.name} broke: {last[0]}", "see to disk space and limits of processes"
        )

    def _lives(self, name: str) -> bool:
        """Whether a run may be using devices: it is under way, or just being started."""
        state = self._store.state(name)
        if state is None:
            return False
        if state["state"] == "prepared":
            with self._store.try_lock(name) as run_lock:
                return run_lock is None
        return self.status(name).state not in ENDED

    def _goes_on(self, name: str) -> bool:
        """Whether a run is under way, once that can be told."""
        end_at = time.monotonic() + LAUNCH_SECONDS
        while self._lives(name) and time.monotonic() < end_at:
            if self.status(name).state is RunState.RUNNING:
                return True
            time.sleep(POLL_SECONDS)
        return self.status(name).state in {RunState.SUCCEEDED, RunState.STOPPED}

    def _settle(self, name: str) -> RunStatus:
        """Write the end of a run that nobody supervises any more; its lock is ours."""
        directory, state = self._store.of(name), self._store.state(name)
        assert state is not None
        if state["state"] in supervisor.ENDED:
            return stored_status(state)
        alive = _kill_all(directory, [])
        if alive:
            return RunStatus(RunState.UNKNOWN, f"its supervisor is gone, and processes {_listed(alive)} do not die")
        stopping = supervisor.read_state(directory, supervisor.STOP_FILE) is not None
        if state["boot"] != supervisor.boot_id():
            reason = "the host was restarted"
        else:
            reason = "its supervisor was killed; all its processes have been ended"
        state |= {"state": "stopped" if stopping else "failed", "reason": reason, "exit_code": None}
        self._store.write(name, state)
        self._ledger.release(name)
        return stored_status(state)

    def _await_end(self, name: str, seconds: float) -> bool:
        end_at = time.monotonic() + seconds
        while not (ended := self._ended(name)) and time.monotonic() < end_at:
            time.sleep(POLL_SECONDS)
        return ended

    def _kill(self, name: str) -> None:
        """End a run without its supervisor, which does not answer."""
        state = self._store.state(name)
        assert state is not None
        guards = [pid for pid, since in state["processes"] if supervisor.started(pid) == since]
        offspring = [pid for guard in guards for pid in supervisor.descendants(guard)]
        alive = _kill_all(self._store.of(name), [*guards, *offspring])
        if alive or not self._await_end(name, KILL_SECONDS):
            cause = f"processes {_listed(alive)} of run {name} do not die" if alive else f"run {name} does not end"
            raise EngineError(cause, "they may wait for a broken device or store; see to the host", transient=True)


def _prepare_work(run: Run, directory: Path) -> None:
    """Make the directory where processes begin, with the code in it, and see whether the program is there."""
    make_work_directory(run, directory)
    work = work_directory(run, directory)
    if not work.is_dir():
        raise EngineError(f"there is no directory {work} on this host", "make it, or leave it out for one of its own")
    program = run.command[0]
    path = run.environment.get("PATH", os.environ.get("PATH", os.defpath))
    if not shutil.which(work / program if "/" in program else program, path=path):
        where = str(work / program) if "/" in program else f"on the path {path}"
        raise EngineError(
            f"there is no program {program} ({where})", "name one that this host has, and may be executed"
        )


def _ranks(run: Run, directory: Path, allocation: Allocation) -> list[dict[str, Any]]:
    """What the supervisor starts, in rank order."""
    placed = replace(run, rendezvous=replace(run.rendezvous, port=allocation.port))
    base = {"PYTHONUNBUFFERED": "1"} | inherited()  # so that lines come when they are printed
    ranks = []
    for rank, (placement, number) in enumerate(run.processes):
        variables = base | environment(placed, rank, number, run.processes_per_node or placement.devices)
        if placement.node in allocation.devices:
            variables |= visibility(allocation.devices[placement.node])
        ranks.append(
            {
                "rank": run.rendezvous.rank_offset + rank,
                "command": list(run.command),
                "directory": str(work_directory(run, directory)),
                "environment": variables | {supervisor.RUN_DIRECTORY: str(directory)},
            }
        )
    return ranks


def _signal(processes: list[list[int]], number: int) -> None:
    """Send a signal to processes that are those meant, by their number and start."""
    for pid, since in processes:
        with suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:
                if supervisor.started(pid) == since:
                    pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def _kill_all(directory: Path, pids: list[int]) -> list[int]:
    """Kill processes and all others of a run; those that are still alive when they should be gone."""
    since = {pid: supervisor.started(pid) for pid in pids}
    end_at = time.monotonic() + KILL_SECONDS
    while True:
        alive = {pid for pid in since if since[pid] is not None and supervisor.started(pid) == since[pid]}
        alive |= set(supervisor.processes_of(str(directory)))
        if not alive or time.monotonic() > end_at:
            return sorted(alive)
        supervisor.send(alive, SIGKILL)
        time.sleep(POLL_SECONDS)


def _listed(pids: list[int]) -> str:
    return ", ".join(map(str, pids))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _check_host() -> Finding:
    """Whether processes can be found and ended as a whole here."""
    hint = "run the engine on Linux with /proc mounted"
    try:
        traceable = supervisor.started(os.getpid()) is not None and bool(supervisor.boot_id())
        reaps = ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(ctypes.c_int()), 0, 0, 0) == 0
    except (OSError, AttributeError, ValueError) as error:
        return Finding("host", present=False, detail=str(error), hint=hint)
    if not (traceable and reaps):
        return Finding("host", present=False, detail="processes cannot be found or adopted", hint=hint)
    return Finding("host", present=True, detail="processes can be found, and ended as a whole")


def _check_directory(directory: Path) -> Finding:
    """Whether files can be written and locked where runs will be."""
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(dir=existing) as name, closing(lock(Path(name) / "check")):
            free = shutil.disk_usage(name).free
    except OSError as error:
        hint = "name a directory on a local disk that this user may write"
        return Finding("directory", present=False, detail=f"{existing}: {error}", hint=hint)
    return Finding("directory", present=True, detail=f"{directory}, {free / 1e9:.0f} GB free")


def _check_devices(nodes: Mapping[str, int] | None) -> Finding:
    """Whether the host has the devices that its nodes are said to have."""
    available = accelerators()
    if nodes is None:
        detail = f"{available} accelerators of this host" if available else "no accelerator; devices are not counted"
        return Finding("devices", present=True, detail=detail)
    counted = ", ".join(f"{count} of {node}" for node, count in nodes.items())
    if available and sum(nodes.values()) > available:
        hint = "name as many devices as there are"
        return Finding("devices", present=False, detail=f"{counted}; this host has {available} accelerators", hint=hint)
    detail = counted if available else f"{counted}; no accelerator was found, so they are counted and nothing more"
    return Finding("devices", present=True, detail=detail)


def _check_git() -> Finding:
    """What code can be fetched; without git, archives can."""
    git = shutil.which("git")
    return Finding("code", present=True, detail="archives and git" if git else "archives; code from git needs git")
