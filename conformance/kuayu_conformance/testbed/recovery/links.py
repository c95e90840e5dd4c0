"""What links between domains carry, minute by minute, and what is measured of it.

Levels are drawn log-uniformly from 8 to 25 Gbit/s, leased lines between data centres; what is carried stays within 30 %
of them, by a process that forgets within 20 s to 10 min, as in the windows of transfers. Both are assumptions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.elementary import exponential

Floats = NDArray[np.float64]

INTERVAL_S = 60
"""Seconds of an interval."""
PAST = 30
"""Intervals that were measured before the begin, and that are told at any time."""
NOISE = 0.05
"""Standard deviation of the logarithm of what is measured, over what was carried."""
LEVELS = (8e9, 25e9)
"""Bit/s."""
LATENCIES_S = (0.005, 0.04)
_MEGABIT = 1e6
_STEEPEST = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Ways between D domains.

    Attributes:
        latency_s: From domain to domain, (D, D).
        carried: Bit/s in each interval, ``PAST`` of them before the begin, (intervals, D, D).
        measured: What is told of them, whole megabits, likewise.
    """

    latency_s: Floats
    carried: Floats
    measured: Floats


def draw(seed: str, domains: int, seconds: float) -> Links:
    """Links for a window of so many seconds."""
    chance = stream(seed, "links")
    shape, rows = (domains, domains), PAST + int(np.ceil(seconds / INTERVAL_S)) + 1
    level = LEVELS[0] * exponential(chance.uniform(0.0, float(np.log(LEVELS[1] / LEVELS[0])), shape))
    latency = np.round(chance.uniform(*LATENCIES_S, shape), 6)
    carried = np.round(level * _varied(chance, rows, shape) / _MEGABIT) * _MEGABIT
    noise = normal(chance, carried.shape).astype(np.float64)
    measured = np.round(carried * exponential(NOISE * noise) / _MEGABIT) * _MEGABIT
    return Links(latency, carried, measured)


def _varied(chance: np.random.Generator, rows: int, shape: tuple[int, int]) -> Floats:
    """Shares spread evenly over 0.7 to 1.3, (rows, D, D)."""
    forgets = 20.0 * exponential(float(chance.uniform(0.0, float(np.log(30.0)))))
    decay = exponential(-min(INTERVAL_S / forgets, _STEEPEST))
    gauss = normal(chance, rows * shape[0] * shape[1]).astype(np.float64).reshape(rows, *shape)
    gauss[1:] *= np.sqrt(1.0 - decay**2)
    for row in range(1, rows):
        gauss[row] += decay * gauss[row - 1]
    return 0.7 + 0.6 * _below(gauss)


def _below(gauss: Floats) -> Floats:
    """Share of normal numbers below some, to 2e-4, alike on every processor.

    Source: S. R. Bowling et al., "A logistic approximation to the cumulative normal distribution", JIEM 2 (2009).
    """
    slope = np.clip(1.5976 * gauss + 0.07056 * gauss**3, -_STEEPEST, _STEEPEST)
    return 1.0 / (1.0 + exponential(-slope))
