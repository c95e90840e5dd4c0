"""What is decided in an epoch: a scheduling attempt for each job, and the running jobs that are preempted."""

from dataclasses import dataclass, field

from kuayu.scheduling.availability import Availability
from kuayu.scheduling.candidates import Candidates, Prediction
from kuayu.scheduling.node_allocator import NodeReservation
from kuayu.scheduling.scoring import BEGINS, RUNS, Scoring
from kuayu.scheduling.state import Flags, Floats, Numbers


@dataclass(slots=True)
class Attempt:
    """A job at hand.

    Attributes:
        job: Its number.
        rows: Rows of its candidates.
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

    @property
    def seconds(self) -> float:
        """Seconds for which it would hold the devices of what is chosen.

        Raises:
            ValueError: Nothing is.
        """
        if self.chosen is None:
            raise ValueError("nothing is chosen")
        return float(self.features[self.chosen, BEGINS] + self.features[self.chosen, RUNS])


@dataclass(frozen=True, slots=True)
class Migration:
    """A running job that goes on elsewhere or on other devices, or is stopped.

    Attributes:
        job: Its number.
        pool: Number of the pool.
        devices: How many of it; none where it is stopped.
        stays: Whether it is the pool where it is.
        bought: Number of the way of buying them, or ``NOWHERE`` where the pool has no offers.
        beneficiary: Number of the job that waits for what it gives up; None where it goes for its own sake.
    """

    job: int
    pool: int
    devices: int
    stays: bool
    bought: int
    beneficiary: int | None = None


@dataclass(slots=True)
class EpochResult:
    """What was decided in an epoch.

    Attributes:
        candidates: All that were looked at.
        prediction: What they lead to.
        availability: What is left.
        scoring: Scored them.
        attempts: Jobs in the order in which they were looked at.
        fallback: Whether the scorer failed and the rule answered in its place.
        preemption: Running jobs that are preempted.
        node_reservations: Nodes that are kept for jobs that wait.
    """

    candidates: Candidates
    prediction: Prediction
    availability: Availability
    scoring: Scoring
    attempts: list[Attempt] = field(default_factory=list)
    fallback: bool = False
    preemption: list[Migration] = field(default_factory=list)
    node_reservations: list[NodeReservation] = field(default_factory=list)
