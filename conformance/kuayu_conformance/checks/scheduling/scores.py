"""What is kept of a policy in a window: sums over its cohort, small enough to be kept for thousands of windows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import fsum, log
from operator import attrgetter
from typing import Any, Self

from kuayu_conformance.statistics import quantile
from kuayu_conformance.testbed.scheduling.scenarios import Cell
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_conformance.testbed.scheduling.windows import JobScore, WindowResult

LARGE = 8
"""Devices from which on a job is looked at apart."""

MOST_SLOWED = 10.0
"""Bounded slowdown that the 95th percentile of jobs may reach at equal service."""


@dataclass(frozen=True, slots=True)
class Group:
    """Some jobs of a cohort.

    Attributes:
        jobs: How many.
        period: Sum of their periods, seconds.
        imputed: Seconds of it that nobody has seen, since jobs had not ended.
        logarithms: Sum of the natural logarithms of their periods.
        weighted: Sum of their periods times their work.
        work: Sum of their work, device seconds of the reference device.
        longest: 95th percentile of their periods, seconds.
        within: How many have a bounded slowdown of ``MOST_SLOWED`` at most.
        slowed: 95th percentile of their bounded slowdown.
        done: Sum of the work that is done.
        money: For the bandwidth that they occupied.
    """

    jobs: int
    period: float
    imputed: float
    logarithms: float
    weighted: float
    work: float
    longest: float
    within: int
    slowed: float
    done: float
    money: float

    @classmethod
    def of(cls, jobs: Iterable[JobScore]) -> Self:
        """Sums over some jobs; figures of none are zero."""
        selected = list(jobs)
        return cls(
            len(selected),
            fsum(job.period for job in selected),
            fsum(job.imputed for job in selected),
            fsum(log(job.period) for job in selected if job.period > 0.0),
            fsum(job.period * job.work for job in selected),
            fsum(job.work for job in selected),
            quantile([job.period for job in selected], 0.95) if selected else 0.0,
            sum(job.slowdown <= MOST_SLOWED for job in selected),
            quantile([job.slowdown for job in selected], 0.95) if selected else 0.0,
            fsum(job.done for job in selected),
            fsum(job.money for job in selected),
        )


@dataclass(frozen=True, slots=True)
class Score:
    """What a policy reached in a window.

    Attributes:
        everyone: The cohort.
        large: Jobs of it of at least ``LARGE`` devices.
        training: Jobs of it that train.
        large_training: Those of them of at least ``LARGE`` devices.
        larger: Jobs of it that ask for more than any pool of their home has.
        unfinished: Jobs whose period is imputed in part.
        work: Work that was done in the time of the window.
        capacity: Work that could have been done in it.
        queued: Work waiting at its end over that at its beginning, in days of the capacity.
        price: For devices that were held.
        migrations: Moves and resizes.
        forced_stops: Stops that the policy ordered.
        job_hours: Hours that jobs held devices.
        held: Seconds from first step to end, over the cohort.
        interrupted: Those of them in which the job did not run.
        decisions: Times that the policy was asked.
        refusals: Orders that could not be carried out.
        bad_answers: Answers that were none.
    """

    everyone: Group
    large: Group
    training: Group
    large_training: Group
    larger: Group
    unfinished: int
    work: float
    capacity: float
    queued: float
    price: float
    migrations: int
    forced_stops: int
    job_hours: float
    held: float
    interrupted: float
    decisions: int
    refusals: int
    bad_answers: int

    @classmethod
    def of(cls, played: WindowResult) -> Self:
        """Sums of what was played."""
        jobs = played.jobs
        training = [job for job in jobs if job.kind is not JobKind.SERVING]
        return cls(
            Group.of(jobs),
            Group.of(job for job in jobs if job.devices >= LARGE),
            Group.of(training),
            Group.of(job for job in training if job.devices >= LARGE),
            Group.of(job for job in jobs if job.larger),
            played.unfinished,
            played.work,
            played.capacity,
            played.queued - played.queued_before,
            played.price,
            played.migrations,
            played.forced_stops,
            played.job_hours,
            fsum(job.lived_seconds for job in jobs),
            fsum(job.interrupted_seconds for job in jobs),
            played.decisions,
            played.refusals,
            played.bad_answers,
        )

    def json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """From JSON.

        Raises:
            KeyError: A member is missing.
            TypeError: It is no such thing.
        """
        named = {field.name: body[field.name] for field in fields(cls)}
        groups = {name: Group(**value) for name, value in named.items() if isinstance(value, Mapping)}
        return cls(**{**named, **groups})


GroupOf = Callable[[Score], Group]
"""Which jobs of a cohort are looked at."""

EVERYONE: GroupOf = attrgetter("everyone")
TRAINING: GroupOf = attrgetter("training")
LARGE_TRAINING: GroupOf = attrgetter("large_training")
LARGER: GroupOf = attrgetter("larger")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no policy can beat in a window.

    Attributes:
        training: Least mean period of the jobs that train, seconds.
        large_training: Likewise of those of at least ``LARGE`` devices; zero where there are none.
    """

    training: float
    large_training: float


@dataclass(frozen=True)
class Window:
    """A scenario, played by several policies.

    Attributes:
        number: Which of its cell.
        bounds: Of the scenario.
        scores: By policy.
    """

    number: int
    bounds: Bounds
    scores: Mapping[str, Score]


Windows = Mapping[Cell, Sequence[Window]]
"""Windows of cells, in order."""
