"""Waveforms and their peaks worked out anew: cases of a domain's demand, and how low its peaks can be brought.

1. **Cases.** The periods of each training are laid one after the other, many times over. A training that runs is laid
   from its start, one that waits from its submission or from now, whichever is later; seconds of a period are
   log-normal, with the median and the ends of the interval that its estimate states.
2. **Peaks.** A bound below which no plan comes (:func:`least_peak`), and a plan that a simple rule makes
   (:func:`greedy`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.demand.trainings import Period

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Laid:
    """A training whose periods are laid.

    Attributes:
        begin: Seconds from now at which the first of them begins.
        periods: In order.
    """

    begin: float
    periods: tuple[Period, ...]


def cases(jobs: Sequence[Laid], ats: Floats, count: int, seed: str) -> Floats:
    """Devices by case and instant, shape (count, instants).

    Args:
        jobs: Trainings.
        ats: Seconds from now, rising.
        count: Cases.
        seed: What is drawn follows from it.
    """
    chance = stream(seed, "cases of a waveform")
    change = np.zeros((count, len(ats) + 1))
    rows = np.arange(count)
    for job in jobs:
        before = np.full(count, job.begin)
        for period in job.periods:
            lasts = period.expected * np.exp(period.spread * chance.standard_normal(count))
            after = before + lasts
            # a period has its devices from its beginning on, and no longer at its end; each row is there once
            change[rows, np.searchsorted(ats, before)] += period.devices
            change[rows, np.searchsorted(ats, after)] -= period.devices
            before = after
    return np.cumsum(change[:, :-1], axis=1)


def prices_at(begins: Sequence[float], prices: Sequence[float], seconds: Floats) -> Floats:
    """Price of an hour at seconds since a midnight, each price holding until the next begins."""
    place = np.searchsorted(np.array(begins), seconds % 86_400.0, side="right") - 1
    found: Floats = np.array(prices)[place]
    return found


@dataclass(frozen=True, slots=True)
class Load:
    """Work that may be moved; see ``MovableLoad`` of the model."""

    devices: int
    slots: int
    earliest: int
    latest: int
    planned: int
    interruptible: bool

    @property
    def as_planned(self) -> range:
        """Steps in which it runs if nobody moves it."""
        return range(self.planned, self.planned + self.slots)


def level(base: Sequence[float], loads: Sequence[Load], where: Sequence[Sequence[int]]) -> Floats:
    """Devices in each step, with each load in its steps."""
    total = np.array(base, dtype=np.float64)
    for load, steps in zip(loads, where, strict=True):
        total[list(steps)] += load.devices
    return total


def greedy(base: Sequence[float], loads: Sequence[Load]) -> list[list[int]]:
    """Steps of each load: the largest first, each where it makes the least peak, the earliest of these.

    List scheduling, as in R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied
    Mathematics 17 (1969) 416-429, with loads by falling work.
    """
    total = np.array(base, dtype=np.float64)
    where: list[list[int]] = [[] for _ in loads]
    for place in sorted(range(len(loads)), key=lambda index: -loads[index].devices * loads[index].slots):
        load = loads[place]
        steps = _lowest(total, load) if load.interruptible else _best_run(total, load)
        total[steps] += load.devices
        where[place] = steps
    return where


def least_peak(base: Sequence[float], loads: Sequence[Load]) -> float:
    """A peak that no plan is below: that of the linear programme in which any part of a load may run in any step.

    Raises:
        ArithmeticError: The programme cannot be solved, which a load in its window rules out.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    columns = [(place, step) for place, load in enumerate(loads) for step in range(load.earliest, load.latest + 1)]
    steps, count = len(base), len(columns)
    numbers = np.arange(count)
    rows = np.concatenate((np.array([step for _, step in columns]), np.arange(steps)))
    held = np.array([float(loads[place].devices) for place, _ in columns])
    upper = coo_array(
        (np.concatenate((held, -np.ones(steps))), (rows, np.concatenate((numbers, np.full(steps, count))))),
        shape=(steps, count + 1),
    )
    whole = coo_array(
        (np.ones(count), (np.array([place for place, _ in columns]), numbers)), shape=(len(loads), count + 1)
    )
    found = linprog(
        np.concatenate((np.zeros(count), [1.0])),
        A_ub=upper,
        b_ub=-np.array(base, dtype=np.float64),
        A_eq=whole,
        b_eq=np.array([float(load.slots) for load in loads]),
        bounds=[(0.0, 1.0)] * count + [(0.0, None)],
        method="highs",
    )
    if not found.success:
        raise ArithmeticError(f"no least peak was found: {found.message}")
    return float(found.fun)


def _lowest(total: Floats, load: Load) -> list[int]:
    window = range(load.earliest, load.latest + 1)
    return sorted(sorted(window, key=lambda step: (total[step], step))[: load.slots])


def _best_run(total: Floats, load: Load) -> list[int]:
    begins = range(load.earliest, load.latest - load.slots + 2)
    best = min(begins, key=lambda begin: (total[begin : begin + load.slots].max(), begin))
    return list(range(best, best + load.slots))
