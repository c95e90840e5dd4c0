"""Cases of a waveform: the periods of each training laid one after the other, many times over.

A training that runs is laid from its start, one that waits from its submission or from now, whichever is later; seconds
of a period are log-normal, with the median and the ends of the interval that its estimate states.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.demand.law import Period

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
            # a period has its devices from its begin on, and no longer at its end; each row is there once
            change[rows, np.searchsorted(ats, before)] += period.devices
            change[rows, np.searchsorted(ats, after)] -= period.devices
            before = after
    return np.cumsum(change[:, :-1], axis=1)


def prices_at(begins: Sequence[float], prices: Sequence[float], seconds: Floats) -> Floats:
    """Price of an hour at seconds since a midnight, each price holding until the next begins."""
    place = np.searchsorted(np.array(begins), seconds % 86_400.0, side="right") - 1
    found: Floats = np.array(prices)[place]
    return found
