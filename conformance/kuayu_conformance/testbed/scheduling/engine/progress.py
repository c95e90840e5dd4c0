"""How far jobs are, by job: arrays, so that policies see thousands of them at once."""

from enum import IntEnum

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers

SEVERAL = -1
"""Instead of the number of a pool: a job holds devices of more than one."""


class Phase(IntEnum):
    """What a job does at present."""

    ABSENT = 0
    PENDING = 1
    STAGING = 2
    RESTARTING = 3
    RUNNING = 4
    SAVING = 5
    FINISHED = 6


class Progress:
    """Work that is done, and how it goes on.

    Attributes:
        phase: See :class:`Phase`.
        done: Work that was done until ``since``.
        rate: Work a second since then; zero unless it runs.
        since: Instant of ``done``.
        saved: Work that a checkpoint holds.
        expected: Work a second that it does, or is expected to do once it runs.
        pool: Number of the pool whose devices a job holds, or ``SEVERAL``.
        devices: How many it holds.
        ready: When it is expected to run, for one that holds devices and does not run yet.
        interrupted: When an order interrupted it last; infinitely long ago where none did.
    """

    def __init__(self, jobs: int) -> None:
        self.phase = np.zeros(jobs, dtype=np.int8)
        self.done, self.rate, self.since = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
        self.saved, self.expected, self.ready = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
        self.pool, self.devices = np.full(jobs, SEVERAL, dtype=np.intp), np.zeros(jobs, dtype=np.int64)
        self.interrupted = np.full(jobs, -np.inf)
        self._resumed, self._interval = np.zeros(jobs), np.full(jobs, np.inf)

    def run(self, job: int, interval: float, now: float) -> None:
        """A job takes its first step since it was placed; it writes a checkpoint at every interval."""
        self.phase[job] = Phase.RUNNING
        self.since[job] = self._resumed[job] = now
        self._interval[job] = interval

    def settle(self, job: int, now: float) -> float:
        """Account for what was done until now; how much it was."""
        since, rate = float(self.since[job]), float(self.rate[job])
        done = rate * (now - since)
        resumed, interval = float(self._resumed[job]), float(self._interval[job])
        if rate > 0.0 and interval < np.inf:
            last = resumed + (now - resumed) // interval * interval
            if last >= since and last > resumed:
                self.saved[job] = self.done[job] + rate * (last - since)
        self.done[job] += done
        self.since[job] = now
        return done

    def save(self, job: int) -> None:
        """What is done is safe."""
        self.saved[job] = self.done[job]

    def lose(self, job: int) -> float:
        """What no checkpoint holds is lost; how much it was."""
        lost = float(self.done[job] - self.saved[job])
        self.done[job] = self.saved[job]
        return lost

    def at(self, jobs: Numbers, now: float) -> Floats:
        """Work that some jobs have done by now."""
        done: Floats = self.done[jobs] + self.rate[jobs] * (now - self.since[jobs])
        return done
