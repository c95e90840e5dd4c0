"""Directories of runs: what an engine remembers of each, and who may change it.

1. Each run has a directory ``runs/NAME``: how it stands (``state.json``), its lines (``log.jsonl`` with an index), and
   ``work``, where its processes begin if the run names no other place.
2. Only who holds the lock of a run changes how it stands; any number of engines and threads may use one directory. The
   lock is the kernel's (flock(2)) and goes with the last process that has it open.
3. What is removed is first moved away, whole, so that nobody finds half of it.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from kuayu.engine.locking import lock, lock_of
from kuayu.engine.runs import supervisor
from kuayu.engine.runs.bundles import unpack
from kuayu.engine.runs.protocol import ENDED, IDENTIFIER, EngineError, LogLine, Run, RunState, RunStatus

INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "REQUESTS_CA_BUNDLE"),
)
"""Variables of the engine that processes get as well; those of the run prevail. What a service knows by its other
variables, such as passwords, is no job's business. It is no wall, for jobs run as the same user."""

INHERITED_PREFIXES = ("LC_", "OMP_", "MKL_", "NCCL_", "GLOO_", "HCCL_", "ASCEND_", "NVIDIA_")

LOCK_SECONDS = 60.0
"""How long another call about the same run is waited for."""

POLL_SECONDS = 0.02
_LOCK = "run"


class RunStore:
    """Directories of runs.

    Args:
        directory: The engine's own.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory).absolute()
        self._runs = self.directory / "runs"

    def of(self, name: str) -> Path:
        """The directory of a run, whether it is there or not.

        Raises:
            EngineError: It is no name of a run.
        """
        if not IDENTIFIER.fullmatch(name):
            raise EngineError(f"{name!r} is no name of a run", "letters, digits and ._- only, at most 128")
        return self._runs / name

    def names(self) -> list[str]:
        """Names of all runs that have a directory, in order."""
        return sorted(entry.name for entry in self._runs.iterdir()) if self._runs.is_dir() else []

    def state(self, name: str) -> dict[str, Any] | None:
        """What is written of a run; None where there is none, or its preparation was not finished."""
        return supervisor.read_state(self._runs / name) if IDENTIFIER.fullmatch(name) else None

    def write(self, name: str, state: Mapping[str, Any]) -> None:
        """Write how a run stands; only who has its lock does.

        Raises:
            EngineError: It cannot be written.
        """
        try:
            supervisor.write_state(self._runs / name, {"boot": supervisor.boot_id(), **state})
        except OSError as error:
            hint = "see to its disk"
            raise EngineError(f"cannot write in {self._runs / name}: {error}", hint, transient=True) from error

    def unknown(self, name: str) -> RunStatus:
        """How a run stands of which nothing is written."""
        if IDENTIFIER.fullmatch(name) and (self._runs / name).is_dir():
            return RunStatus(RunState.UNKNOWN, "its preparation was not finished; prepare it again")
        return RunStatus(RunState.UNKNOWN, f"there is no run {name} here")

    def prepare(self, run: Run, make: Callable[[Path], None]) -> None:
        """Make a run's directory once, with a state that says ``prepared``.

        Args:
            run: The run.
            make: What else has to be in the directory; called with it, under the run's lock.

        Raises:
            EngineError: It cannot be made, or another run has this name.
        """
        directory, own = self.of(run.name), digest(run)
        while (state := self.state(run.name)) is None:
            try:
                self.directory.mkdir(parents=True, exist_ok=True)
                self._runs.mkdir(mode=0o700, exist_ok=True)
                directory.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise EngineError(
                    f"cannot make {directory}: {error}", "name a directory that may be written"
                ) from error
            with closing(self.lock(run.name)):
                if self.state(run.name) is not None:
                    continue  # another call was first
                make(directory)
                content = {"digest": own, "grace": run.grace_seconds, "processes": []}
                self.write(run.name, {**content, "state": "prepared", "reason": "", "exit_code": None})
        if state["digest"] != own:
            raise another(run.name)

    def lock(self, name: str) -> IO[str]:
        """The lock of a run, open, once no other call has it.

        Raises:
            EngineError: Another call has had it for a minute.
        """
        end_at = time.monotonic() + LOCK_SECONDS
        while True:
            with self.try_lock(name, keep=True) as lock_file:
                if lock_file is not None:
                    return lock_file
            if time.monotonic() > end_at:
                raise busy(name)
            time.sleep(POLL_SECONDS)

    @contextmanager
    def try_lock(self, name: str, *, keep: bool = False) -> Iterator[IO[str] | None]:
        """The lock of a run, open; None where somebody has it or the run has just been forgotten.

        Args:
            name: Of the run.
            keep: Whether it stays open when it is left.
        """
        file = self._runs / name / _LOCK
        lock_file = None
        try:
            lock_file = lock(file)
            if not os.path.samestat(os.fstat(lock_file.fileno()), lock_of(file).stat()):
                lock_file.close()  # its directory was removed, and another has been made, between open and lock
                lock_file = None
        except (BlockingIOError, FileNotFoundError):
            lock_file = None
        except OSError as error:
            raise EngineError(f"{file} cannot be locked: {error}", "see to the engine's directory") from error
        try:
            yield lock_file
        finally:
            if lock_file is not None and not keep:
                lock_file.close()

    def logs(self, name: str, after: int, limit: int) -> list[LogLine]:
        """Lines of a run's log after a number, found by its index."""
        if not IDENTIFIER.fullmatch(name):
            return []
        directory, after = self._runs / name, max(0, after)
        try:
            index = (directory / supervisor.INDEX_FILE).read_bytes()
            entry = min(after // supervisor.LINES_PER_INDEX_ENTRY, len(index) // 8 - 1)
            if entry < 0:
                return []
            with (directory / supervisor.LOG_FILE).open("rb") as log:
                log.seek(int.from_bytes(index[entry * 8 : entry * 8 + 8], "little"))
                skipped = after - entry * supervisor.LINES_PER_INDEX_ENTRY
                encoded = [line for line in islice(log, skipped, skipped + max(0, limit)) if line.endswith(b"\n")]
        except FileNotFoundError:
            return []
        lines = []
        for number, line in enumerate(encoded, after + 1):
            rank, read_at, text = json.loads(line)
            lines.append(LogLine(number=number, rank=rank, text=text, read_at=read_at))
        return lines

    def forget(self, name: str, status: Callable[[str], RunStatus], release: Callable[[], None]) -> None:
        """Remove the directory of a run that has ended.

        Args:
            name: Of the run.
            status: How a run stands.
            release: Gives back what else it has; called under its lock.

        Raises:
            EngineError: It has not ended, or its directory cannot be removed.
        """
        if not IDENTIFIER.fullmatch(name) or not (self._runs / name).is_dir():
            return
        removed = self.directory / "removed"
        removed.mkdir(mode=0o700, exist_ok=True)
        doomed = removed / f"{name}.{os.urandom(4).hex()}"
        run_status = status(name)
        if self.state(name) is not None and run_status.state not in ENDED:
            raise EngineError(f"run {name} has not ended: it is {run_status.state.value}", "stop it first")
        with closing(self.lock(name)):
            if (state := self.state(name)) is not None and state["state"] not in supervisor.ENDED:
                raise EngineError(f"run {name} has not ended: it is {state['state']}", "stop it first")
            (self._runs / name).rename(doomed)
            release()
        try:
            for leftover in removed.iterdir():  # also what an earlier call could not finish
                _remove(leftover)
        except OSError as error:
            raise EngineError(f"{doomed} cannot be removed: {error}", "remove it as whoever owns it") from error


def another(name: str) -> EngineError:
    """What is said to a run whose name is another's."""
    return EngineError(f"{name} is the name of another run", "give each run a name of its own")


def busy(name: str) -> EngineError:
    """What is said where another call has a run's lock."""
    return EngineError(f"another call is at work on run {name}", "try again", transient=True)


def stored_status(state: Mapping[str, Any]) -> RunStatus:
    """How a run stands by what is written of it."""
    return RunStatus(RunState(state["state"]), state["reason"], state["exit_code"])


def work_directory(run: Run, directory: Path) -> Path:
    """Where processes begin; a relative path is one in the run's own directory."""
    return directory / "work" if run.working_directory is None else directory / run.working_directory


def make_work_directory(run: Run, directory: Path) -> None:
    """Make the directory where processes begin, where it is the run's own, and unpack the code into it.

    Raises:
        EngineError: The code cannot be had.
    """
    work = work_directory(run, directory)
    if run.working_directory is None:
        shutil.rmtree(work, ignore_errors=True)  # what an interrupted preparation has left
        work.mkdir()
    if run.code is not None:
        unpack(run.code, work)


def inherited() -> dict[str, str]:
    """Variables of the engine that processes get as well."""
    return {
        name: value for name, value in os.environ.items() if name in INHERITED or name.startswith(INHERITED_PREFIXES)
    }


def digest(run: Run) -> str:
    """What tells a run from another of the same name; what may be secret in its environment cannot be read off it."""
    meeting = run.rendezvous
    content = [
        *(run.name, run.job, run.attempt, list(run.command), run.image, sorted(run.environment.items())),
        *(run.working_directory, run.code, run.processes_per_node, run.checkpoint, run.step, run.sync_period),
        *([[placement.node, placement.devices] for placement in run.placements], run.grace_seconds),
        *(meeting.address, meeting.port, meeting.rank_offset, meeting.world_size),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _remove(directory: Path) -> None:
    """Remove a directory, also where a job has made parts of it unwritable."""
    for folder, _, _ in os.walk(directory):
        Path(folder).chmod(0o700)
    shutil.rmtree(directory)
