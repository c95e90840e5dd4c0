"""Lower bounds on the mean time from submission to end."""

import heapq
from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.scheduling.bounds.capacity import capacity, cheapest_seconds
from kuayu_conformance.testbed.scheduling.bounds.efficiency import Needs
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats


@dataclass(frozen=True, slots=True)
class Periods:
    """Seconds below which no policy brings the mean period of some jobs.

    Attributes:
        alone: Mean of what each job takes alone in the ideal pool.
        ideal: Mean in the ideal pool if it could be cut at will, and did the shortest first.
    """

    alone: float
    ideal: float

    @property
    def least(self) -> float:
        """The better of both."""
        return max(self.alone, self.ideal)


def periods(jobs: Needs) -> Periods:
    """Bounds for some jobs; those that are not among them are taken not to be there.

    - Alone: a job ends no sooner than if it had all to itself.
    - Ideal: all devices as one machine, of the speed that they are worth together (``capacity``), which may be taken
      from a job at any time and given to another for nothing. On one machine the rule of the shortest remaining time
      first has the least sum of periods: L. Schrage, "A proof of the optimality of the shortest remaining processing
      time discipline", Operations Research 16 (1968). A job in a real schedule holds at least as much as it needs
      there.

    Args:
        jobs: At least one, all of them able to run.

    Raises:
        ValueError: There are none, or one can run nowhere.
    """
    if not len(jobs.work) or not np.isfinite(jobs.shortest).all():
        raise ValueError("a mean needs jobs, each of them able to run")
    limit = capacity(jobs)
    speed = float((limit.values * jobs.places.devices).sum())
    ends = shortest_first(jobs.submitted, cheapest_seconds(jobs, limit.values) / speed)
    return Periods(float(jobs.shortest.mean()), float((ends - jobs.submitted).mean()))


def shortest_first(submitted: Floats, seconds: Floats) -> Floats:
    """When each job ends on one machine that always does the one with the least left; seconds, by job.

    Args:
        submitted: When each is there.
        seconds: What each takes.
    """
    ends = np.zeros(len(submitted))
    waiting: list[tuple[float, int]] = []
    now = 0.0
    order = np.argsort(submitted, kind="stable").tolist()
    for place, job in enumerate(order):
        now = max(now, float(submitted[job]))
        heapq.heappush(waiting, (float(seconds[job]), job))
        following = float(submitted[order[place + 1]]) if place + 1 < len(order) else np.inf
        while waiting and now < following:
            left, first = heapq.heappop(waiting)
            if now + left > following:
                heapq.heappush(waiting, (left - (following - now), first))
                break
            now += left
            ends[first] = now
    return ends
