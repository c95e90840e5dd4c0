"""Who is slow: each worker's time for one part of a batch beside that of its peers.

In synchronous training all steps are as slow as the slowest worker, so steps do not tell; the time that a worker needs
for its own parts does. How much is too much is learnt from how far the others differ among themselves of late: on a
quiet host workers are alike and twice the time is plain, on a crowded one it happens to everybody.
"""

import statistics
from collections import deque
from collections.abc import Sequence

import numpy as np

WINDOW, IN_ROW = 5, 5
"""Steps of which a worker's median is taken; steps in a row in which it has to be too much."""
LEAST, OVER_USUAL, UNTAUGHT = 2.0, 1.5, 4.0
"""Least ratio to the peers' median that is slow; ratio to what is usual among them; the limit before that is known."""
KEPT, ENOUGH = 150, 40
"""Ratios of a worker that are remembered, and of all its peers that are enough to learn from."""


class Stragglers:
    """Times of the members of a job."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        self._ratios: dict[str, deque[float]] = {}
        self._row: dict[str, int] = {}

    def clear(self, members: Sequence[str]) -> None:
        """Begin anew with these members; what is usual among those that stay is not forgotten."""
        self._times.clear()
        self._row.clear()
        self._ratios = {worker: ratios for worker, ratios in self._ratios.items() if worker in members}

    def step(self, worker: str, seconds: float) -> None:
        """A worker needed so many seconds for a part, in its latest step."""
        own = self._times.setdefault(worker, deque(maxlen=WINDOW))
        own.append(seconds)
        others = [statistics.median(times) for other, times in self._times.items() if other != worker]
        if len(own) < WINDOW or not others:
            return
        ratio = statistics.median(own) / statistics.median(others)
        self._row[worker] = self._row.get(worker, 0) + 1 if ratio > self.limit(worker) else 0
        self._ratios.setdefault(worker, deque(maxlen=KEPT)).append(ratio)

    def limit(self, worker: str) -> float:
        """The ratio beyond which a worker is slow, from those of its peers."""
        usual = [ratio for other, ratios in self._ratios.items() if other != worker for ratio in ratios]
        if len(usual) < ENOUGH:
            return UNTAUGHT
        return max(LEAST, OVER_USUAL * float(np.quantile(usual, 0.99)))

    def found(self, members: Sequence[str]) -> tuple[str, ...]:
        """Members that have been slow for long enough."""
        return tuple(each for each in members if self._row.get(each, 0) >= IN_ROW)
