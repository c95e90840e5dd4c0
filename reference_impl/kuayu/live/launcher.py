"""Workers of a live run, and what stands beside them, as runs of the engine *local* (:mod:`kuayu.engine.runs`).

1. The engine starts and watches them, keeps what they print, and ends them with all that they have started.
2. They are tied to the process of the command, so that none outlives it, however it ends.
3. Faults are signals to the processes themselves, of which the engine is not told.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from signal import Signals, pidfd_send_signal
from typing import Self

from kuayu.engine.runs.local import LocalEngine
from kuayu.engine.runs.protocol import ENDED, Placement, Run
from kuayu.engine.runs.store import RunStore
from kuayu.engine.runs.supervisor import processes_of

JOB = "live"
"""Name of the job, whose workers the runs are."""
ENGINE = "engine"
"""Directory of the engine in the folder of a live run."""
HOST, DEVICES = "host", 1000
"""The one node of the engine, and its devices: one for each run that is alive, counted and nothing more."""
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Variables by which numeric libraries keep to one thread, so that workers share a host."""


def engine_of(folder: Path) -> LocalEngine:
    """The engine of a live run, by its folder."""
    return LocalEngine(folder / ENGINE, {HOST: DEVICES})


class Launcher:
    """Starts runs, and ends them when it is left.

    Args:
        folder: Of the live run.
    """

    def __init__(self, folder: Path) -> None:
        self._store, self._engine = RunStore(folder / ENGINE), engine_of(folder)
        self._processes: dict[str, list[int]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._engine.tied())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for name in self._engine.runs():
            self.end(name)
            self._engine.forget(name)  # nobody writes there any more then

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program as a run, in the directory of this process.

        Args:
            name: Of the run, which none had before.
            command: Program and arguments.

        Raises:
            EngineError: It cannot be started.
        """
        placement, directory = Placement(HOST, 1), str(Path.cwd())
        run = Run(name, JOB, 1, command, [placement], environment=THREADS, working_directory=directory)
        self._engine.prepare(run)
        self._engine.start(run)
        self._processes[name] = []
        for pid in processes_of(str(self._store.of(name))):
            with contextlib.suppress(ProcessLookupError):
                self._processes[name].append(os.pidfd_open(pid))
                self._stack.callback(os.close, self._processes[name][-1])

    def signal(self, name: str, number: Signals) -> None:
        """Send a signal to the processes that a run began with, as far as they are there."""
        for descriptor in self._processes[name]:
            with contextlib.suppress(ProcessLookupError):
                pidfd_send_signal(descriptor, number)

    def end(self, name: str) -> None:
        """End a run at once; nothing of it is alive then.

        Raises:
            EngineError: It does not die.
        """
        self._engine.stop(name, 0.0)

    def ended(self, name: str) -> bool:
        """Whether nothing of a run is alive any more."""
        return self._engine.status(name).state in ENDED

    def last_words(self, name: str) -> str:
        """The last line that a run has printed, or else how it has ended."""
        lines = [line.text for line in self._engine.logs(name) if line.text.strip()]
        return lines[-1] if lines else self._engine.status(name).reason
