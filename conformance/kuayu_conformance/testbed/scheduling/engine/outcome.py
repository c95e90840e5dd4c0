"""What became of a scenario."""

from dataclasses import dataclass

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.progress import Phase
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
