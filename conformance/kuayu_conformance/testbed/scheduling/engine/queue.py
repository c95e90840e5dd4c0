"""Jobs that are pending."""

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Numbers
from kuayu_conformance.testbed.scheduling.values import Job


class Queue:
    """Numbers of the jobs that are pending, by priority and then by time of submission.

    Attributes:
        changes: Counts arrivals and departures.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._entries: list[tuple[int, int]] = []
        self._listed: tuple[int, Numbers] = (-1, np.zeros(0, dtype=np.intp))
        self.changes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, job: int) -> None:
        """A job is pending; one that was before takes its old place."""
        insort(self._entries, (-self._jobs[job].priority, job))
        self.changes += 1

    def remove(self, job: int) -> None:
        """A job is pending no longer."""
        del self._entries[bisect_left(self._entries, (-self._jobs[job].priority, job))]
        self.changes += 1

    @property
    def numbers(self) -> Numbers:
        """All of them in order."""
        if self._listed[0] != self.changes:
            self._listed = self.changes, np.array([job for _, job in self._entries], dtype=np.intp)
        return self._listed[1]
