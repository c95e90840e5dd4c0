"""Lines that are added to logs, and how far runs are by what they print.

1. Lines are read from files, however they are rotated or cut, and from pipes; nothing here ever waits.
2. A process tells its steps in one of two ways, whichever suits it:

   - by lines in the file that KUAYU_STEP_FILE names, where the domain gives it one: ``JOB RANK STEP`` for each step,
     ``JOB RANK STEP checkpoint`` when a checkpoint of the job has been written whole that holds the work up to that
     step, ``JOB RANK ended`` when a rank has ended as it should;
   - by printing a line ``kuayu step N`` or ``kuayu checkpoint N``, which reaches the domain from any node.
3. That a checkpoint is written is said once the whole of it is there: whoever says so speaks for all ranks.
4. Progress goes into heartbeats of nodes, and into reports of runs.
"""

import os
import re
import select
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

from kuayu_schemas import schema
from kuayu_schemas.models import RankStep

READ_BYTES: Final = 1 << 16
"""Bytes read at once."""

MAX_LINE_BYTES: Final = 1 << 16
"""Bytes of a line after which it is told as it is; the rest of it is passed over."""


class Source(Protocol):
    """Something that lines are added to."""

    def lines(self) -> list[str]:
        """Lines that were finished since the last call; not all of them where there are many."""

    def close(self) -> None:
        """Let go of it."""


class Tail:
    """A file, from where it ends now; from its beginning where it comes only later.

    A file that takes its place is read from the beginning, once the old one is read to its end.

    Args:
        path: The file.
        whole: Whether lines count that are there already.
    """

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        """Go to its end, or stay at its beginning.

        Raises:
            OSError: It is there and cannot be read.
        """
        self._path = path
        self._cutter = _Cutter()
        self._descriptor: int | None = None
        if self._open() and not whole:
            os.lseek(self._fd(), 0, os.SEEK_END)

    def lines(self) -> list[str]:
        """Lines that were finished since the last call; not all of them where there are many."""
        try:
            if self._descriptor is None and not self._open():
                return []
            piece = os.read(self._fd(), READ_BYTES)
            return self._cutter.cut(piece) if piece else self._turned()
        except OSError:  # as while its folder is away
            return []

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _turned(self) -> list[str]:
        """What is at the end of a file, where another has taken its place or it was cut."""
        now, opened = self._path.stat(), os.fstat(self._fd())
        if (now.st_ino, now.st_dev) != (opened.st_ino, opened.st_dev):
            if last := os.read(self._fd(), READ_BYTES):  # written after we looked, and before it was replaced
                return self._cutter.cut(last)
            self.close()
        elif now.st_size < os.lseek(self._fd(), 0, os.SEEK_CUR):
            os.lseek(self._fd(), 0, os.SEEK_SET)
        else:
            return []
        return self._cutter.end()

    def _open(self) -> bool:
        """Open the file; False where there is none."""
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        if self._path.is_dir():
            self.close()
            raise IsADirectoryError(21, "it is a folder")
        return True

    def _fd(self) -> int:
        assert self._descriptor is not None
        return self._descriptor


class Pipe:
    """A descriptor that is open for reading, such as the standard input; it is left open.

    Args:
        descriptor: Of whatever can be waited for.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._cutter = _Cutter()
        self._ended = False

    def lines(self) -> list[str]:
        """Lines that were finished since the last call; not all of them where there are many."""
        if self._ended or not select.select([self._descriptor], [], [], 0)[0]:
            return []
        piece = os.read(self._descriptor, READ_BYTES)
        self._ended = not piece
        return self._cutter.cut(piece) if piece else self._cutter.end()

    def close(self) -> None:
        """Do nothing: it belongs to somebody else."""


MAX_RANKS: Final = 1024
"""Ranks of which a heartbeat can tell."""

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

    def acknowledge(self, steps: Iterable[RankStep]) -> None:
        """These have arrived: ranks that have ended need not be told any more."""
        for step in steps:
            if step.ended and self._steps.get((step.job, step.rank)) == step:
                del self._steps[step.job, step.rank]

    def _read(self, line: str) -> None:
        words = line.split()
        written = words[3:] == [CHECKPOINT]
        entry = _parse_line(words[:3] if written else words)
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
        if (match := _PRINTED.fullmatch(text)) is None:
            return
        with self._lock:
            if match[1] == "step":
                self._steps[rank] = int(match[2])
            else:
                self._checkpoint = int(match[2])

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
        return [step for run in self._runs() for step in run.steps_on(self._node)][:MAX_RANKS]

    def acknowledge(self, steps: Iterable[RankStep]) -> None:
        """These have arrived."""
        for run in self._runs():
            for step in steps:
                run.hear(step)


class _Cutter:
    """Cuts bytes into lines, without their ends; blank ones are left out."""

    def __init__(self) -> None:
        self._rest = b""
        self._passing = False

    def cut(self, piece: bytes) -> list[str]:
        """Lines that end in this piece."""
        *whole, rest = (self._rest + piece).split(b"\n")
        if self._passing and whole:
            del whole[0]
            self._passing = False
        if self._passing:
            rest = b""
        elif len(rest) > MAX_LINE_BYTES:
            whole.append(rest)
            rest, self._passing = b"", True
        self._rest = rest
        return _texts(whole)

    def end(self) -> list[str]:
        """The last line, where it had no end; what comes then begins anew."""
        rest, self._rest, self._passing = self._rest, b"", False
        return _texts([rest])


def _texts(lines: list[bytes]) -> list[str]:
    return [text for line in lines if (text := line.decode("utf-8", "replace").rstrip("\r")).strip()]


def _parse_line(words: list[str]) -> tuple[str, int, int | None] | None:
    """Job, rank and step of a line, the step None where the rank has ended; None where it is no such line."""
    match words:
        case [job, rank, step] if rank.isdecimal() and (step.isdecimal() or step == ENDED):
            entry = {"job": job, "rank": int(rank), "step": 0 if step == ENDED else int(step)}
            return None if schema.errors("RankStep", entry) else (job, int(rank), None if step == ENDED else int(step))
        case _:
            return None
