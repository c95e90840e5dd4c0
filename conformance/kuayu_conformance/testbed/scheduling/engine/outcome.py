"""Jobs with their devices, and what became of all of them: records of jobs, sums, and how it stands at an instant.

1. **Outcome.** Sums begin with the scenario, so that a window is a difference of two outcomes.
2. **Runs.** A run is a job with its devices; a tally holds sums over jobs, and what belongs to each.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.state import Holding, Phase
from kuayu_conformance.testbed.scheduling.values import Placement


@dataclass(frozen=True, slots=True)
class Period:
    """A job held devices without a break.

    Attributes:
        placement: Where.
        begin: When it was given them.
        running: When it took its first step on them, or infinite.
        stopped: When it took its last one, or infinite if it goes on or has taken none.
        end: When it gave them back, or infinite if it has not.
    """

    placement: Placement
    begin: float
    running: float
    stopped: float
    end: float


@dataclass(frozen=True, slots=True)
class Record:
    """What became of a job.

    Attributes:
        name: Its name.
        submitted: Seconds since the scenario began.
        finished: Likewise, or infinite.
        phase: What it does at the end.
        done: Work that is done.
        lost: Work that was done and lost with a node.
        stops: How often it was preempted or moved.
        moves: How often it was moved, to other devices or to more or fewer.
        failures: How often a node failed under it.
        money: For the bandwidth that it occupied.
        periods: When it held what.
    """

    name: str
    submitted: float
    finished: float
    phase: Phase
    done: float
    lost: float
    stops: int
    moves: int
    failures: int
    money: float
    periods: tuple[Period, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of a scenario by an instant. All sums begin with the scenario: a window is a difference of two.

    Attributes:
        instant: The instant, seconds since the scenario began.
        jobs: All that were submitted by then, in order.
        bits: Integral of the occupied bandwidth, by wire.
        money: That by tariff and time of day, by wire.
        available: Device seconds that were not broken, by pool.
        held: Device seconds that jobs held, by pool.
        computing: Device seconds in which jobs computed rather than waited for network or data, by pool.
        work: Work that was done and not lost, by pool, in device seconds of the reference device.
        decisions: Epochs at which the policy was asked.
        refusals: Orders that were not carried out.
    """

    instant: float
    jobs: tuple[Record, ...]
    bits: Floats
    money: Floats
    available: Floats
    held: Floats
    computing: Floats
    work: Floats
    decisions: int
    refusals: int


@dataclass(frozen=True, slots=True)
class Gauges:
    """How it stands at an instant; sums begin with the scenario, as those of an outcome.

    Attributes:
        instant: The instant, seconds since the scenario began.
        bits: Integral of the occupied bandwidth, by wire.
        available: Device seconds that were not broken, by pool.
        held: Device seconds that jobs held, by pool.
        work: Work that was done and not lost, by pool.
        waiting: Jobs that are pending.
        devices: Devices that they ask for, all told.
    """

    instant: float
    bits: Floats
    available: Floats
    held: Floats
    work: Floats
    waiting: int
    devices: int


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
