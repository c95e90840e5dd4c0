"""A queue before a cluster, event by event.

Source: Yang, Hong and Tang, algorithm 2: whenever something changed, the queue is gone through in order of the policy
and whatever fits is started, also past what does not fit. Nothing is pre-empted. Policies are those of experiment 3:

* FIFO by arrival;
* SRTF by the time that a task is believed to take;
* DRF by the dominant share of what its user holds (A. Ghodsi et al., "Dominant Resource Fairness", NSDI 2011), then by
  arrival. Which task is whose the source does not say; eight users are assumed.

Beside these stands FIFO in which nobody overtakes, so that whatever does not fit holds up all behind it: the words
"first in, first out" may be taken so, the algorithm may not.

A task whose memory runs out dies on its way, and is queued again at its old place with what was first asked for.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.tasks.drawing import USERS, Tasks
from kuayu_conformance.testbed.tasks.kinds import CAPACITY, CORES, WINDOW
from kuayu_conformance.testbed.tasks.law import Numbers

FIFO, SRTF, DRF = "FIFO", "SRTF", "DRF"
IN_ORDER = "FIFO, nobody overtakes"
POLICIES = (FIFO, SRTF, DRF, IN_ORDER)

_SLACK = 1e-9
"""Part of the capacity that sums of numbers may be wrong by."""

_NEARLY_NONE = 0.05
"""Part of the cores that is free where they are called full."""


@dataclass(frozen=True)
class Outcome:
    """What became of a window.

    Attributes:
        arrived: Tasks that came.
        deployed: Those that were started at all.
        finished: Those that ended well within the window.
        died: Runs that memory ended.
        lost: Seconds of them.
        used: Mean share of each resource that was put to use; runs that died do not count.
        held: Mean share of each resource that was given away.
        full: Seconds until cores were held to 95 % for the first time; infinite where they never were.
        started: ``(n,)`` when each was started for the first time; infinite where it was not.
    """

    arrived: int
    deployed: int
    finished: int
    died: int
    lost: float
    used: tuple[float, ...]
    held: tuple[float, ...]
    full: float
    started: Numbers

    @property
    def completion(self) -> float:
        """Finished ÷ all that came; nought where nothing did."""
        return self.finished / self.arrived if self.arrived else 0.0


def play(
    tasks: Tasks,
    given: Numbers,
    policy: str,
    capacity: tuple[float, ...] = CAPACITY,
    until: float = WINDOW,
) -> Outcome:
    """What becomes of tasks that are given ``(n, 3)`` each, up to a time.

    Raises:
        ValueError: There is no such policy, or what is given is not a row for each task.
    """
    if policy not in POLICIES or given.shape != tasks.requested.shape:
        raise ValueError(f"a policy of {POLICIES} and a row for each of {len(tasks)} tasks")
    return _Play(tasks, given, policy, np.array(capacity), until).played()


class _Play:
    """State of a simulation; all about runs is known beforehand, for first runs (0) and those that follow (1)."""

    def __init__(self, tasks: Tasks, given: Numbers, policy: str, capacity: Numbers, until: float) -> None:
        plans = (given, tasks.requested)
        self.tasks, self.capacity, self.until = tasks, capacity, until
        self.asks = np.stack(plans)
        self.uses = np.stack([tasks.used(plan) for plan in plans])
        self.fatal = np.stack([tasks.dies(given), np.zeros(len(tasks), bool)])
        whole = np.stack([tasks.duration * tasks.slowed(plan) for plan in plans])
        self.takes = np.where(self.fatal, whole * tasks.dying, whole)
        keys = (np.arange(len(tasks)), tasks.declared) if policy == SRTF else (np.arange(len(tasks)),)
        self.order = np.lexsort(keys)
        self.rank = np.argsort(self.order)
        self.again = np.zeros(len(tasks), int)
        self.waits = np.zeros(len(tasks), bool)
        """By place in the order."""
        self.shares = np.zeros((USERS, len(capacity))) if policy == DRF else None
        self.overtaking = policy != IN_ORDER
        self.free = capacity * (1.0 + _SLACK)
        self.ends: list[tuple[float, int]] = []
        self.began = np.zeros(len(tasks))
        self.started = np.full(len(tasks), np.inf)
        self.use, self.hold = np.zeros(len(capacity)), np.zeros(len(capacity))
        self.finished = self.died = 0
        self.lost, self.full = 0.0, float("inf")

    def played(self) -> Outcome:
        """Go through all arrivals and ends."""
        n = len(self.tasks)
        coming = 0
        while True:
            end = self.ends[0][0] if self.ends else np.inf
            arrival = self.tasks.arrival[coming] if coming < n else np.inf
            now = min(end, arrival)
            if now >= self.until:
                break
            if end <= arrival:
                self._ended(now)
                self._start(now)
            else:
                self._arrived(now, coming)
                coming += 1
        for began, row in ((self.began[row], row) for _, row in self.ends):
            self._count(row, self.until - began, lost=bool(self.fatal[self.again[row], row]))
        whole = self.capacity * self.until
        return Outcome(
            arrived=coming,
            deployed=int(np.isfinite(self.started).sum()),
            finished=self.finished,
            died=self.died,
            lost=self.lost,
            used=tuple(map(float, self.use / whole)),
            held=tuple(map(float, self.hold / whole)),
            full=self.full,
            started=self.started,
        )

    def _arrived(self, now: float, row: int) -> None:
        """Start the newcomer, or let it wait; whatever waited already did not fit before either."""
        first = self.overtaking or not self.waits.any()
        if first and bool((self.asks[0, row] <= self.free).all()):
            self._run(now, row)
        else:
            self.waits[self.rank[row]] = True

    def _ended(self, now: float) -> None:
        _, row = heappop(self.ends)
        plan = self.again[row]
        self.free += self.asks[plan, row]
        if self.shares is not None:
            self.shares[self.tasks.user[row]] -= self.asks[plan, row] / self.capacity
        died = bool(self.fatal[plan, row])
        self._count(row, now - self.began[row], lost=died)
        if died:
            self.died += 1
            self.again[row] = 1
            self.waits[self.rank[row]] = True
        else:
            self.finished += 1

    def _count(self, row: int, seconds: float, *, lost: bool) -> None:
        plan = self.again[row]
        self.hold += self.asks[plan, row] * seconds
        if lost:
            self.lost += seconds
        else:
            self.use += self.uses[plan, row] * seconds

    def _start(self, now: float) -> None:
        """Start whatever fits of those that wait."""
        rows = self._fitting(self.order[self.waits])
        while len(rows):
            chosen = 0
            if self.shares is not None:
                chosen = int(np.argmin(self.shares.max(axis=1)[self.tasks.user[rows]]))
            self._run(now, int(rows[chosen]))
            rows = self._fitting(np.delete(rows, chosen))

    def _fitting(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those for which there is room, up to the first for which there is none where nobody may overtake."""
        fits = (self.asks[self.again[rows], rows] <= self.free).all(axis=1)
        return rows[fits] if self.overtaking else rows[: int(np.argmin(fits)) if not fits.all() else len(rows)]

    def _run(self, now: float, row: int) -> None:
        plan = self.again[row]
        self.free -= self.asks[plan, row]
        if self.shares is not None:
            self.shares[self.tasks.user[row]] += self.asks[plan, row] / self.capacity
        self.waits[self.rank[row]] = False
        self.began[row] = now
        self.started[row] = min(self.started[row], now)
        if self.free[CORES] <= _NEARLY_NONE * self.capacity[CORES]:
            self.full = min(self.full, now)
        heappush(self.ends, (now + float(self.takes[plan, row]), row))
