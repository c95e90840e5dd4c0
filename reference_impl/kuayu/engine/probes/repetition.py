"""How often the work of a probe is repeated."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

ENOUGH_SECONDS = 1.0
"""Repetitions go on for at least this long, where the budget allows."""
SMALL_SPREAD = 0.05
"""They go on until the interquartile range is at most this share of the median, where the budget allows."""
MIN_REPETITIONS = 3
"""Repetitions that are made whatever the budget: fewer have no quartiles."""

Step = Callable[[float], None]
"""Told the share of the budget that has been used."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Seconds that each repetition took, and that all of them took with what lay between."""

    durations: tuple[float, ...]
    total: float

    @property
    def n(self) -> int:
        """How many there were."""
        return len(self.durations)

    def rate(self, amount: float) -> tuple[float, float]:
        """Median and interquartile range of ``amount`` over the durations."""
        return median_and_spread([amount / duration for duration in self.durations])


def median_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Median and interquartile range, quartiles interpolated linearly."""
    low, middle, high = np.quantile(np.asarray(values, dtype=np.float64), [0.25, 0.5, 0.75])
    return float(middle), float(high - low)


def repeat(work: Callable[[], float], budget_s: float, step: Step) -> Repetitions:
    """Carry out ``work``, which returns its own duration in seconds, again and again.

    Ends when :data:`ENOUGH_SECONDS` have passed and the spread is small, or when the next repetition would most likely
    overrun the budget, but never before :data:`MIN_REPETITIONS` repetitions.
    """
    began, durations = time.perf_counter(), list[float]()
    while True:
        durations.append(max(work(), math.ulp(1.0)))
        used = time.perf_counter() - began
        step(min(1.0, used / budget_s) if budget_s > 0 else 1.0)
        if len(durations) < MIN_REPETITIONS:
            continue
        middle, spread = median_and_spread(durations)
        settled = used >= ENOUGH_SECONDS and spread <= SMALL_SPREAD * middle
        if settled or used + used / len(durations) > budget_s:
            step(1.0)
            return Repetitions(tuple(durations), used)


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """``work`` as something that returns how long it took, in seconds."""

    def run() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return run
