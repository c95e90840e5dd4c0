"""Utilisation at equal service: at the highest load that a policy sustains (SCH-004).

Below saturation demand sets the utilisation and not the scheduler. So each policy is taken at the highest load at which
it still serves well: 95 of 100 jobs, and of those of at least eight devices too, have a bounded slowdown of ten at most
(which is to say that its 95th percentile is no more), and the queue does not grow. Between two loads of the grid it is
interpolated. Beyond the grid nothing is assumed.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.checks.sch_scores import Window
from kuayu_conformance.statistics.quotients import Quotient

Floats = NDArray[np.float64]

SERVED = 0.95
"""Share of jobs that must not be slowed down by more."""

MOST_QUEUED = 0.5
"""Days of the domains' capacity by which waiting work may grow in a window, on average over windows."""

RESAMPLES = 2000
_LEAST = 1e-3
"""Utilisation that stands for none in a logarithm."""


@dataclass(frozen=True)
class Sustained:
    """What a policy sustains.

    Attributes:
        load: Highest load, as a multiple of the reference load; nought where it is below the grid.
        utilisation: Work over capacity there; nought where it is below the grid.
        floor: The same, or utilisation at the lowest load where it is below the grid: what counts for whoever is
            compared with.
        beyond: Whether it sustains the highest load of the grid, and might more.
        served: Share of jobs that are served well, by load.
        served_large: Likewise of those of at least eight devices.
        used: Utilisation by load.
        queued: Days by which the queue grew, by load.
        drawn: ``utilisation`` and ``floor`` in bootstrap samples of windows, each the same sample for all policies.
    """

    load: float
    utilisation: float
    floor: float
    beyond: bool
    served: tuple[float, ...]
    served_large: tuple[float, ...]
    used: tuple[float, ...]
    queued: tuple[float, ...]
    drawn: tuple[Floats, Floats]
    windows: int

    def beside(self, other: "Sustained") -> Quotient:
        """This over another: the standard error is that of bootstrap samples of windows (Efron, 1979)."""
        logs = np.log(np.maximum(self.drawn[0], _LEAST)) - np.log(np.maximum(other.drawn[1], _LEAST))
        estimate = self.utilisation / other.floor if other.floor > 0.0 else 0.0
        error = float(logs.std(ddof=1)) if self.windows > 1 else float("inf")
        return Quotient(estimate, error, float(self.windows - 1), self.windows)


def sustained(grid: Mapping[float, Sequence[Window]], policy: str) -> Sustained:
    """What a policy sustains, over all windows.

    Args:
        grid: Windows by load, loads in order; the same windows at each.
        policy: Which.
    """
    loads = np.array(list(grid))
    windows = len(next(iter(grid.values())))
    rows = {load: [window.scores[policy] for window in its] for load, its in grid.items()}

    def table(figure: Any) -> Floats:
        return np.array([[float(figure(score)) for score in its] for its in rows.values()])

    parts = (
        table(lambda s: s.everyone.within),
        table(lambda s: s.everyone.jobs),
        table(lambda s: s.large.within),
        table(lambda s: s.large.jobs),
        table(lambda s: s.work),
        table(lambda s: s.capacity),
        table(lambda s: s.queued),
    )
    whole = _of(loads, parts, np.ones((1, windows)))
    resampled = _of(loads, parts, _samples(windows))
    load, used, floor = (float(each[0]) for each in whole[:3])
    served, served_large, utilisation, queued = (tuple(each[0].tolist()) for each in whole[3:])
    return Sustained(
        load,
        used,
        floor,
        bool(load == loads[-1]),
        served,
        served_large,
        utilisation,
        queued,
        (resampled[1], resampled[2]),
        windows,
    )


def _of(loads: Floats, parts: Sequence[Floats], times: Floats) -> tuple[Floats, ...]:
    """Load, utilisation and floor by sample; then what is by sample and load.

    Args:
        loads: Of the grid, two or more.
        parts: By load and window.
        times: How often a window is in a sample, by sample and window.
    """
    within, jobs, large_within, large, work, capacity, queued = (times @ part.T for part in parts)
    served, served_large = _share(within, jobs), _share(large_within, large)
    grown = queued / times.sum(axis=1, keepdims=True)
    slacks = (served - SERVED, served_large - SERVED, MOST_QUEUED - grown)
    reached = np.min([_crossing(slack) for slack in slacks], axis=0)
    used = np.divide(work, capacity, out=np.zeros_like(work), where=capacity > 0.0)
    there = reached >= 0.0
    at = np.maximum(reached, 0.0)
    places = np.arange(len(loads), dtype=np.float64)
    load = np.where(there, np.interp(at, places, loads), 0.0)
    floor = np.array([np.interp(place, places, row) for place, row in zip(at, used, strict=True)])
    return load, np.where(there, floor, 0.0), floor, served, served_large, used, grown


def _crossing(slack: Floats) -> Floats:
    """Place in the grid, by sample, up to which a criterion holds, interpolated; -1 where it never does.

    The first load counts at which it does not hold, even if luck makes a higher one look better.

    Args:
        slack: By sample and load; below nought where the criterion does not hold.
    """
    fails = slack < 0.0
    first = np.where(fails.any(axis=1), fails.argmax(axis=1), slack.shape[1])
    row, below = np.arange(len(slack)), np.clip(first - 1, 0, slack.shape[1] - 2)
    before, after = slack[row, below], slack[row, below + 1]
    part = np.divide(before, before - after, out=np.zeros(len(row)), where=before > after)
    place: Floats = np.where(first == slack.shape[1], slack.shape[1] - 1.0, np.where(first == 0, -1.0, below + part))
    return place


def _share(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, out=np.ones_like(part), where=whole > 0.0)
    return shares


@cache
def _samples(windows: int) -> Floats:
    """How often each window is drawn; by Python's own fractions, a sequence that no version changes."""
    chance = random.Random("SCH-004")  # noqa: S311 - reproducible by design, not secret
    drawn = [[int(chance.random() * windows) for _ in range(windows)] for _ in range(RESAMPLES)]
    return np.array([np.bincount(row, minlength=windows) for row in drawn], dtype=np.float64)
