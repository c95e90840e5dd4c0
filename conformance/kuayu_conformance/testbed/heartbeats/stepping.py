"""Steps of jobs whose ranks wait for each other: what hangs, what straggles, and short pauses for checkpoints."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.heartbeats.placing import Job
from kuayu_conformance.testbed.heartbeats.values import HANG, JOB_HUNG, RANK_STRAGGLING, SLOW, Incident, Scale

Instants = NDArray[np.float64]

HUNG_AFTER, LEAST_HUNG, REMEMBERED = 3.0, 30.0, 10_000
"""A job hangs that makes no step for so many times its longest of the last steps, s at least, and of how many."""

LATE_STEPS = 10
"""Steps in a row that a rank has done late when it straggles, and in time when it does no longer."""

_STEP = (0.4, 1.0)  # seconds of a step
_NOISE, _MOST_NOISE = 0.02, 3.0  # of a step, and standard deviations
_LATE, _LEAST_LATE = (0.5, 1.0), 0.6  # of a step, and s at least, by which a rank straggles
_EVERY, _PAUSE = (12, 25), (0.3, 1.0)  # steps between checkpoints, and seconds of one
_LASTS = (12.5, 17.0)  # seconds for which a fault lasts once it has begun
_REST = (40.0, 60.0)  # seconds between two faults of a job
_FORGOTTEN = 40.0  # seconds of standstill that tell a hang at most; a job that hung has to forget that first
_LAST_HANG, _LAST_SLOW = 35.0, 26.0  # seconds before the end of the world after which it is too late for one


@dataclass(slots=True)
class Course:
    """What a job does.

    Attributes:
        done: When each rank has done each step, shape (steps, ranks); infinite for never.
        first: Number of the first step.
        incidents: What happens to it; names of domains and nodes are filled in by others.
    """

    done: Instants
    first: int
    incidents: list[Incident] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Blocking:
    """A node of a job dies: when, and which of the ranks with it."""

    instant: float
    ranks: tuple[int, ...]


class Stepping:
    """Plays one job, step by step."""

    def __init__(self, scale: Scale, seed: str, job: Job, blocking: Blocking | None) -> None:
        self._scale, self._job, self._blocking = scale, job, blocking
        self._chance = Chance(seed, f"steps of {job.nodes}")
        most = int(scale.total / _STEP[0]) + 2
        noise = stream(seed, f"noise of {job.nodes}").standard_normal((most, len(job.nodes)))
        self._noise = np.clip(noise, -_MOST_NOISE, _MOST_NOISE) * _NOISE
        self._step = self._chance.between(*_STEP)
        self._rows: list[Instants] = []
        self._ends: list[float] = []
        self._incidents: list[Incident] = []
        self._pause_in = 3 + self._chance.below(8)
        self._due = scale.warm_up + self._chance.between(0.0, _REST[1]) if job.calm else np.inf

    def course(self) -> Course:
        """Play it to the end."""
        start = self._chance.between(0.5, 4.0)
        while start < self._scale.total:
            if start >= self._due:
                start = self._befall(start)
            else:
                done = self._usual(start)
                if self._blocks(done):
                    break
                start = self._ended(done)
        return Course(np.array(self._rows), self._chance.below(5000), self._incidents)

    def _usual(self, start: float) -> Instants:
        """When the ranks have done the step that begins at ``start``."""
        done: Instants = start + self._step * (1.0 + self._noise[len(self._rows)])
        return done

    def _ended(self, done: Instants) -> float:
        """The step ends; when the next one begins."""
        self._rows.append(done)
        self._ends.append(float(done.max()))
        self._pause_in -= 1
        if self._pause_in > 0:
            return self._ends[-1]
        self._pause_in = _EVERY[0] + self._chance.below(_EVERY[1] - _EVERY[0])
        return self._ends[-1] + self._chance.between(*_PAUSE)

    def _blocks(self, done: Instants) -> bool:
        """Whether the dead would have to do this step; the others do it still and wait for ever."""
        if self._blocking is None or done[list(self._blocking.ranks)].max() < self._blocking.instant:
            return False
        done[list(self._blocking.ranks)] = np.inf
        self._rows.append(done)
        return True

    def _befall(self, start: float) -> float:
        """Something happens to the job from a step on; when it goes on as usual."""
        left = self._scale.end - start
        standstill = max(LEAST_HUNG, HUNG_AFTER * self._longest())
        hangs = standstill <= _FORGOTTEN and self._chance.fraction() < 1 / 2
        if left < (_LAST_HANG if hangs else _LAST_SLOW):
            self._due = np.inf
            return start
        start = self._hang(start, standstill) if hangs else self._straggle(start)
        self._due = start + self._chance.between(*_REST)
        return start

    def _longest(self) -> float:
        """Seconds of the longest of the last steps."""
        ends = self._ends[-REMEMBERED - 1 :]
        return float(np.max(np.diff(ends))) if len(ends) > 1 else np.inf

    def _hang(self, start: float, standstill: float) -> float:
        """All wait: for one rank that never does its part of a step, or before the step begins."""
        done = self._usual(start)
        culprit = self._chance.below(len(done)) if self._chance.fraction() < 1 / 2 else None
        last = self._ends[-1] if culprit is None else float(np.delete(done, culprit).max())
        instant = last + standstill
        until = instant + self._chance.between(*_LASTS)
        if culprit is None:
            done = self._usual(until)
            until = float(done.min())
        else:
            done[culprit] = until
        self._incidents.append(Incident(JOB_HUNG, HANG, last, instant, until, job=self._job.name))
        return self._ended(done)

    def _straggle(self, start: float) -> float:
        """A rank does each step later than its peers, and all wait for it."""
        rank = self._chance.below(len(self._job.nodes))
        late = max(_LEAST_LATE, self._chance.between(*_LATE) * self._step)
        since = instant = np.inf
        lasts, steps = self._chance.between(*_LASTS), 0
        while start < instant + lasts:
            done = self._usual(start)
            done[rank] += late
            steps += 1
            since = min(since, float(done[rank]))
            instant = float(done[rank]) if steps == LATE_STEPS else instant
            start = self._ended(done)
        for _ in range(LATE_STEPS):
            done = self._usual(start)
            start = self._ended(done)
        until = float(done[rank])
        self._incidents.append(Incident(RANK_STRAGGLING, SLOW, since, instant, until, job=self._job.name, rank=rank))
        return start
