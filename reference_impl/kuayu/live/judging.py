"""Who is silent: an adaptive judge of heartbeats, behind a small interface so that another can take its place.

A fixed limit is either slow or hasty. Like accrual detectors (Hayashibara et al., The φ accrual failure detector, SRDS
2004) this one learns how regular a worker's beats are; unlike them it also remembers the longest gap of late, since
on a shared host gaps have a heavier tail than a normal law.
"""

from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import numpy as np


class Stage(StrEnum):
    """How far a suspicion has come."""

    suspected = "suspected"
    silent = "silent"


class Judge(Protocol):
    """Judges workers by their heartbeats."""

    def beat(self, worker: str, at: float) -> None:
        """A beat of a worker came at an instant, in seconds of any steady clock."""

    def forget(self, worker: str) -> None:
        """The worker is gone."""

    def verdicts(self, now: float) -> Mapping[str, Stage]:
        """Workers that are not heard as they should be."""


class Adaptive:
    """A limit for each worker, from its own gaps.

    Args:
        period: Seconds between beats as agreed.
    """

    LEAST_PERIODS, SPREADS, OVER_LONGEST, MOST, KEPT = 5.0, 8.0, 1.5, 4.0, 240
    """Least limit in periods; standard deviations over the mean; share of the longest gap; longest limit in seconds."""
    SUSPECTED = 0.6
    """Share of the limit from which there is suspicion."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._last: dict[str, float] = {}
        self._gaps: dict[str, deque[float]] = {}

    def beat(self, worker: str, at: float) -> None:
        """Take a beat into account."""
        if worker in self._last:
            self._gaps[worker].append(at - self._last[worker])
        else:
            self._gaps[worker] = deque(maxlen=self.KEPT)
        self._last[worker] = at

    def forget(self, worker: str) -> None:
        """Drop what is known of a worker."""
        self._last.pop(worker, None)
        self._gaps.pop(worker, None)

    def verdicts(self, now: float) -> Mapping[str, Stage]:
        """Suspected and silent workers."""
        found = {}
        for worker, last in self._last.items():
            limit = self.limit(worker)
            if now - last > limit:
                found[worker] = Stage.silent
            elif now - last > self.SUSPECTED * limit:
                found[worker] = Stage.suspected
        return found

    def limit(self, worker: str) -> float:
        """Seconds of silence that are one too many."""
        least = self.LEAST_PERIODS * self._period
        gaps = np.array(self._gaps[worker])
        if not gaps.size:
            return min(2 * least, self.MOST)  # nothing is known of it yet
        learnt = max(float(gaps.mean() + self.SPREADS * gaps.std()), self.OVER_LONGEST * float(gaps.max()))
        return min(max(least, learnt), self.MOST)
