"""Efficiency from measured runs: robust, shrunk to what is published, no more numbers than runs allow.

The most probable efficiency under its prior, given logarithmic errors. Runs of one source share its software, habits
and faults: n of them count as n ÷ (1 + (n − 1)·½). Errors beyond the tolerance count linearly, so that a row with
something unknown about it bends nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from kuayu.demand.efficiency import CEILING, NAMES, PRIOR, SPREADS, Efficiency
from kuayu.demand.strategy import Floats, Whole
from kuayu.demand.terms import Terms
from kuayu.demand.timing import times

TOLERANCE = 0.1
"""Error of a prediction, as a logarithm, from which errors count linearly; such is the aim."""

LIKENESS = 0.5
"""Correlation of errors within a source."""

_STEP = 1e-4
_LOWEST = np.log(1e-9)


@dataclass(frozen=True)
class Calibration:
    """An efficiency and what it rests on.

    Attributes:
        efficiency: The numbers.
        free: Names of those that runs had a say in; the others are the prior's.
        runs: Number of runs.
        effective: What they count for.
    """

    efficiency: Efficiency
    free: tuple[str, ...]
    runs: int
    effective: float


def calibrate(
    needed: Terms, measured: Floats, sources: Sequence[str], prior: Efficiency = PRIOR, spreads: Efficiency = SPREADS
) -> Calibration:
    """Efficiency from N runs.

    Args:
        needed: Terms of the runs.
        measured: Seconds of a step, N.
        sources: Where each run is from, N.
        prior: Medians of the prior.
        spreads: Standard deviations of its logarithms.

    Raises:
        ValueError: If columns differ in length, or a time is not positive.
    """
    if not len(measured) == len(sources) == len(needed.first):
        raise ValueError("terms, times and sources have a row for each run")
    if not len(measured):
        return Calibration(prior, (), 0, 0.0)
    if not np.all(np.asarray(measured) > 0):
        raise ValueError("the time of a step is positive")
    centre, spread = prior.logs(), np.array([getattr(spreads, name) for name in NAMES])
    weight = weights(sources)
    effective = float(weight.sum())

    def errors(logs: Floats) -> Floats:
        return np.asarray(np.log(times(needed, Efficiency.of_logs(logs)).step / measured))

    free = _telling(errors, centre, spread, weight, int(effective))

    def whole(moved: Floats) -> Floats:
        logs = centre.copy()
        logs[free] += moved * spread[free]
        scaled = errors(logs) / TOLERANCE
        robust = np.sign(scaled) * np.sqrt(2 * weight * (np.sqrt(1 + scaled**2) - 1))
        return np.concatenate([robust, moved])

    found = centre.copy()
    if len(free):
        upper = (CEILING.logs()[free] - centre[free]) / spread[free]
        answer = least_squares(whole, np.zeros(len(free)), bounds=(_LOWEST, upper), x_scale=1.0)
        found[free] += answer.x * spread[free]
    names = tuple(NAMES[place] for place in sorted(free))
    return Calibration(Efficiency.of_logs(found), names, len(measured), effective)


def weights(sources: Sequence[str]) -> Floats:
    """What each run counts for, N: those of one source together no more than a few."""
    _, inverse, counts = np.unique(np.asarray(sources), return_inverse=True, return_counts=True)
    return np.asarray(1 / (1 + LIKENESS * (counts[inverse] - 1)))


def _telling(errors: Callable[[Floats], Floats], centre: Floats, spread: Floats, weight: Floats, most: int) -> Whole:
    """Places of the numbers that runs tell most about, at most so many, none that they tell nothing about."""
    base = errors(centre)
    slopes = np.zeros(len(centre))
    for place in range(len(centre)):
        moved = centre.copy()
        moved[place] += _STEP
        slopes[place] = np.sqrt(np.sum(weight * ((errors(moved) - base) / _STEP) ** 2)) * spread[place] / TOLERANCE
    order = np.argsort(-slopes, kind="stable")
    return np.array([place for place in order[:most] if slopes[place] > _TELLING], dtype=np.int64)


_TELLING = 0.1
"""Standard deviations by which runs move a number's error at one of the number's own: less tells nothing."""
