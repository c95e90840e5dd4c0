"""How far the ranks of a node are, as training jobs write it into a file: ``JOB RANK STEP``, a line for each step.

``JOB RANK STEP checkpoint`` says that a checkpoint of the job has been written whole that holds the work up to that
step; ``JOB RANK ended`` that a rank has ended as it should.
"""

from collections.abc import Callable, Iterable

from kuayu.engine.tailing import Source
from kuayu_schemas import schema
from kuayu_schemas.models import RankStep

MAX_RANKS = 1024
"""Ranks of which a beat can tell."""

ENDED, CHECKPOINT = "ended", "checkpoint"


class StepFile:
    """The last step of each rank that the lines of a file tell of.

    That a rank has ended is told until somebody has heard it.

    Args:
        source: Where the lines come from.
        complain: Is told of a line that is none of these, once for all of them.

    Attributes:
        checkpoints: Last step of which a checkpoint was written, by job.
    """

    def __init__(self, source: Source, complain: Callable[[str], None] = lambda _: None) -> None:
        self._source = source
        self._complain = complain
        self._complained = False
        self._steps: dict[tuple[str, int], RankStep] = {}
        self.checkpoints: dict[str, int] = {}

    def steps(self) -> list[RankStep]:
        """The last step of each rank; of those that were heard of last, where there are more than a beat can hold."""
        while lines := self._source.lines():
            for line in lines:
                self._read(line)
        return list(self._steps.values())

    def heard(self, steps: Iterable[RankStep]) -> None:
        """These have arrived: ranks that have ended need not be told any more."""
        for step in steps:
            if step.ended and self._steps.get((step.job, step.rank)) == step:
                del self._steps[step.job, step.rank]

    def _read(self, line: str) -> None:
        words = line.split()
        written = words[3:] == [CHECKPOINT]
        entry = _told(words[:3] if written else words)
        if entry is None or (written and entry[2] is None):
            if not self._complained:
                self._complained = True
                self._complain(line)
            return
        job, rank, step = entry
        if written and step is not None:
            self.checkpoints[job] = step
            return
        before = self._steps.pop((job, rank), None)
        last = 0 if before is None else before.step
        self._steps[job, rank] = RankStep(
            job=job, rank=rank, step=last if step is None else step, ended=True if step is None else None
        )
        if len(self._steps) > MAX_RANKS:
            del self._steps[next(iter(self._steps))]


def _told(words: list[str]) -> tuple[str, int, int | None] | None:
    """Job, rank and step of a line, the step None where the rank has ended; None where it is no such line."""
    match words:
        case [job, rank, step] if rank.isdecimal() and (step.isdecimal() or step == ENDED):
            entry = {"job": job, "rank": int(rank), "step": 0 if step == ENDED else int(step)}
            return None if schema.errors("RankStep", entry) else (job, int(rank), None if step == ENDED else int(step))
        case _:
            return None
