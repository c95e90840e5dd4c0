"""What is decided in an epoch: a scheduling attempt for each job, and the running jobs that make room for others."""

from dataclasses import dataclass, field

from kuayu.scheduling.availability import Plan
from kuayu.scheduling.candidates import Outlook, Ways
from kuayu.scheduling.scoring import (
    Judge,
)
from kuayu.scheduling.state import Flags, Floats, Numbers


@dataclass(slots=True)
class Turn:
    """A job at hand.

    Attributes:
        job: Its number.
        rows: Rows of its ways.
        features: Of these, (rows, features).
        now: Whether each could be taken now.
        scores: Of each.
        chosen: Place of what is chosen among the rows, or none.
        starts: Whether that is taken now.
        counts: Whether it was looked at to decide, and not merely to be explained.
    """

    job: int
    rows: Numbers
    features: Floats
    now: Flags
    scores: Floats
    chosen: int | None = None
    starts: bool = False
    counts: bool = True

    @property
    def row(self) -> int:
        """Row of what is chosen.

        Raises:
            ValueError: Nothing is.
        """
        if self.chosen is None:
            raise ValueError("nothing is chosen")
        return int(self.rows[self.chosen])


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


@dataclass(slots=True)
class Decided:
    """What was decided in an epoch.

    Attributes:
        ways: All that were looked at.
        outlook: What they lead to.
        plan: What is left.
        judge: Scored them.
        turns: Jobs in the order in which they were looked at.
        simpler: Whether the scorer failed and the rule answered in its place.
        yielding: Running jobs that make room for others.
    """

    ways: Ways
    outlook: Outlook
    plan: Plan
    judge: Judge
    turns: list[Turn] = field(default_factory=list)
    simpler: bool = False
    yielding: list[Moved] = field(default_factory=list)
