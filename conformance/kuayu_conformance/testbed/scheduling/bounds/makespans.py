"""Lower bounds on the time at which the last job ends."""

from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.scheduling.bounds.capacity import capacity, cheapest_seconds
from kuayu_conformance.testbed.scheduling.bounds.efficiency import Needs
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats


@dataclass(frozen=True, slots=True)
class Makespan:
    """Seconds since the scenario began before which no policy has finished all jobs.

    Attributes:
        work: Work over capacity, from the submission on from which that is latest.
        path: The latest end of a job that has all devices to itself.
        pinned: The same as ``work`` for jobs that can run in some pools only, by their memory or their data, and these
            pools.
    """

    work: float
    path: float
    pinned: float

    @property
    def least(self) -> float:
        """The best of the three.

        R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17 (1969), has the first two
        for machines that are alike.
        """
        return max(self.work, self.path, self.pinned)


def makespan(jobs: Needs) -> Makespan:
    """Bounds for some jobs.

    Args:
        jobs: At least one, all of them able to run.

    Raises:
        ValueError: There are none, or one can run nowhere.
    """
    if not len(jobs.work) or not np.isfinite(jobs.shortest).all():
        raise ValueError("a makespan needs jobs, each of them able to run")
    usable = jobs.rates > 0.0
    pinned = float(jobs.submitted.max())
    for pools in np.unique(usable, axis=0):
        within = ~(usable & ~pools).any(axis=1)
        pinned = max(pinned, _latest(jobs.only(within)))
    return Makespan(_latest(jobs), float((jobs.submitted + jobs.shortest).max()), pinned)


def _latest(jobs: Needs) -> float:
    """From each submission on, what came then and later has to be done by all pools that any of them can use."""
    if not (jobs.work > 0.0).any():
        return float(jobs.submitted.max())
    values = capacity(jobs).values
    speed = float((values * jobs.places.devices).sum())
    order = np.argsort(jobs.submitted, kind="stable")
    seconds: Floats = cheapest_seconds(jobs, values)[order] / speed
    remaining = np.cumsum(seconds[::-1])[::-1]
    return float((jobs.submitted[order] + remaining).max())
