"""Room that running jobs could make: the ways in which they could, and what becomes of those that do."""

from dataclasses import dataclass

from kuayu.scheduling.scene import Counts, Floats, Numbers


@dataclass(frozen=True, slots=True)
class Moved:
    """A running job that goes on elsewhere or on other devices.

    Attributes:
        job: Its number.
        pool: Number of the pool.
        devices: How many of it.
        stays: Whether it is the pool where it is.
        bought: Number of the way of buying them, or ``NOWHERE`` where the pool has no offers.
    """

    job: int
    pool: int
    devices: int
    stays: bool
    bought: int


@dataclass(frozen=True, slots=True)
class Options:
    """How running jobs could make room, by row.

    Attributes:
        row: Of the job among those that can be changed.
        was: Pool where it is.
        pool: Pool where it would go on.
        devices: On how many.
        freed: Devices that it gives up.
        left: Seconds that it has before it where it is.
        saves: Seconds until it gives them up.
        pause: Seconds for which it is interrupted, these included.
        slower: Share of its speed that it loses.
        cost: Seconds that the change counts, money included.
    """

    row: Numbers
    was: Numbers
    pool: Numbers
    devices: Counts
    freed: Counts
    left: Floats
    saves: Floats
    pause: Floats
    slower: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class Room:
    """Who has to make room, and what it costs.

    Attributes:
        options: Rows of the options.
        start: Seconds until the devices are free.
        lost: Seconds that those who make room lose.
    """

    options: list[int]
    start: float
    lost: float
