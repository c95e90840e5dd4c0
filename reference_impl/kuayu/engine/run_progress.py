"""How far runs of a domain are: for the heartbeats of its nodes, and for reports of its runs.

A process tells its steps in one of two ways, whichever suits it:

- by lines ``JOB RANK STEP`` in the file that KUAYU_STEP_FILE names (:mod:`kuayu.engine.step_file`), where the domain
  gives it one;
- by printing a line ``kuayu step N`` or ``kuayu checkpoint N``, which reaches the domain from any node.

That a checkpoint is written is said once the whole of it is there: whoever says so speaks for all ranks.
"""

import re
import threading
from collections.abc import Callable, Iterable
from typing import Final

from kuayu.engine.step_file import StepFile
from kuayu.engine.tailing import Tail
from kuayu_schemas.models import RankStep

MAX_BEAT_RANKS: Final = 1024
"""Ranks of which a beat can tell."""

_PRINTED = re.compile(r"kuayu (step|checkpoint) ([0-9]{1,15})\s*")


class RunProgress:
    """How far one run is; safe to share between threads.

    Args:
        job: Its job.
        ranks: The node of each rank.
        tail: Its step file; None where it has none.
    """

    def __init__(self, job: str, ranks: dict[int, str], tail: Tail | None) -> None:
        self._job = job
        self._ranks = ranks
        self._tail = tail
        self._file = None if tail is None else StepFile(tail)
        self._lock = threading.Lock()
        self._steps: dict[int, int] = {}
        self._ended: set[int] = set()
        self._heard: set[int] = set()
        self._checkpoint: int | None = None

    @property
    def step(self) -> int | None:
        """Last step that all ranks have done that tell of steps; where none does, that of the last checkpoint."""
        with self._lock:
            self._read()
            return min(self._steps.values(), default=self._checkpoint)

    @property
    def checkpoint_step(self) -> int | None:
        """Last step of which a checkpoint was written; None where none was."""
        with self._lock:
            self._read()
            return self._checkpoint

    def read_line(self, rank: int, text: str) -> None:
        """Take note of a line that a rank has printed."""
        if (found := _PRINTED.fullmatch(text)) is None:
            return
        with self._lock:
            if found[1] == "step":
                self._steps[rank] = int(found[2])
            else:
                self._checkpoint = int(found[2])

    def end(self) -> None:
        """No rank will do another step."""
        with self._lock:
            self._read()
            self._ended |= self._steps.keys()
            if self._tail is not None:
                self._tail.close()
                self._tail = self._file = None

    def steps_on(self, node: str) -> list[RankStep]:
        """The last step of each rank on a node; of one that has ended until that was heard."""
        with self._lock:
            self._read()
            return [
                RankStep(job=self._job, rank=rank, step=step, ended=True if rank in self._ended else None)
                for rank, step in self._steps.items()
                if self._ranks.get(rank) == node and rank not in self._heard
            ]

    def hear(self, step: RankStep) -> None:
        """A beat has arrived that tells of a rank."""
        with self._lock:
            if step.job == self._job and step.ended and step.rank in self._ended:
                self._heard.add(step.rank)

    @property
    def is_heard(self) -> bool:
        """Whether it has arrived of all ranks that they have ended."""
        with self._lock:
            return self._ended <= self._heard

    def _read(self) -> None:
        if self._file is None:
            return
        for step in self._file.steps():
            if step.job == self._job:
                self._steps[step.rank] = step.step
                if step.ended:
                    self._ended.add(step.rank)
        self._checkpoint = self._file.checkpoints.get(self._job, self._checkpoint)


class NodeProgress:
    """How far the ranks on one node are, of all runs; what a heartbeat tells.

    Args:
        node: The node.
        runs: Gives the runs of the domain.
    """

    def __init__(self, node: str, runs: Callable[[], Iterable[RunProgress]]) -> None:
        self._node = node
        self._runs = runs

    def steps(self) -> list[RankStep]:
        """The last step of each."""
        return [step for run in self._runs() for step in run.steps_on(self._node)][:MAX_BEAT_RANKS]

    def heard(self, steps: Iterable[RankStep]) -> None:
        """These have arrived."""
        for run in self._runs():
            for step in steps:
                run.hear(step)
