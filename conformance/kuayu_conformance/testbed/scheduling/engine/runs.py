"""Jobs with their devices, and what became of all of them."""

from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.outcome import Period
from kuayu_conformance.testbed.scheduling.engine.places import Holding
from kuayu_conformance.testbed.scheduling.values import Placement


@dataclass(slots=True)
class Run:
    """A job with its devices.

    Attributes:
        placement: Where it runs.
        holding: The same by number.
        begin: When it was given the devices.
        devices: How many.
        running: When it took its first step on them, or infinite.
        stopped: When it took its last one, or infinite.
        flows: Numbers of its flows between domains.
        computing: Share of the time in which its devices compute.
        then: Where it goes after it has been saved, if it moves.
    """

    placement: Placement
    holding: Holding
    begin: float
    devices: int
    running: float = inf
    stopped: float = inf
    flows: tuple[int, ...] = ()
    computing: float = 0.0
    then: Placement | None = None

    def credit(self, computing: Floats, work: Floats, passed: float, done: float) -> None:
        """Add what was done in so many seconds to sums by pool, by each pool's share of the devices."""
        for pool, devices in self.holding:
            computing[pool] += devices * passed * self.computing
            work[pool] += done * devices / self.devices


class Tally:
    """Sums over jobs, and what belongs to each.

    Attributes:
        computing: Device seconds in which jobs computed, by pool.
        work: Work that was done and not lost, by pool.
        lost: Work that was lost, by job.
        finished: When, by job; infinite before.
        stops: How often a job was preempted or moved.
        moves: How often a job was moved.
        failures: How often a node failed under a job.
        periods: When a job held what.
    """

    def __init__(self, jobs: int, pools: int) -> None:
        self.computing, self.work = np.zeros(pools), np.zeros(pools)
        self.lost, self.finished = np.zeros(jobs), np.full(jobs, inf)
        self.stops, self.moves, self.failures = [0] * jobs, [0] * jobs, [0] * jobs
        self.periods: dict[int, list[Period]] = {}


def beyond(wanted: Holding, present: Holding) -> Holding:
    """What a holding has more than another."""
    has = dict(present)
    return tuple((pool, devices - has.get(pool, 0)) for pool, devices in wanted if devices > has.get(pool, 0))
