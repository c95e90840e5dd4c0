"""What a policy reached in a scenario, and what became of each job."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kuayu_conformance.testbed.scheduling.values import JobKind

FLOOR = 600.0
"""Seconds that a job counts as taking at least when it is said how much it was slowed down."""


@dataclass(frozen=True, slots=True)
class JobScore:
    """What became of a job of the cohort.

    Attributes:
        kind: What it does.
        devices: Devices that were asked for.
        submitted: Seconds since the scenario began.
        period: Seconds from submission to end; with ``imputed`` if it is not finished.
        imputed: Seconds of it that nobody has seen: what is left takes so long at the pace that the policy gave it.
        finished: Whether it is.
        alone: Least seconds that it takes anywhere, alone and with its data at hand.
        work: What it truly takes, in device seconds of the reference device.
        done: What of that is done and not lost.
        money: For the bandwidth that it occupied, from submission on.
        larger: Whether it asks for more devices than any pool of its home has.
        spanning: Whether it ever held devices of several domains at once.
        lived_seconds: Seconds from its first step to its end, or that of the scenario.
        interrupted_seconds: Those of them in which it did not run: it was stopped or moved, or a node had failed.
    """

    kind: JobKind
    devices: int
    submitted: float
    period: float
    imputed: float
    finished: bool
    alone: float
    work: float
    done: float
    money: float
    larger: bool
    spanning: bool
    lived_seconds: float
    interrupted_seconds: float

    @property
    def slowdown(self) -> float:
        """Bounded slowdown: its period over what it takes alone, or over ten minutes if that is less; at least one.

        D. G. Feitelson, L. Rudolph, U. Schwiegelshohn, K. C. Sevcik, P. Wong, "Theory and practice in parallel job
        scheduling", JSSPP 1997.
        """
        return max(1.0, self.period / max(self.alone, FLOOR))


@dataclass(frozen=True, slots=True)
class Played:
    """What a policy reached in a scenario. What no attribute says otherwise of is about the time of the window.

    Attributes:
        policy: Its name.
        jobs: The cohort, in the order of submission.
        seconds: Length of the window.
        money: For bandwidth that was occupied, by all jobs.
        money_of_spanning: That part of it which jobs occupied that had held devices of several domains at once.
        price: For devices that were held, at the list price on demand.
        bits: Integral of the occupied bandwidth over all links.
        work: Work that was done and not lost, in device seconds of the reference device.
        work_of_spanning: That part of it which these jobs did.
        capacity: Work that a linear programme says the domains could have done, of jobs in the mix that was offered in
            the window.
        queued_before: Work waiting at the begin of the window, in days of that capacity.
        queued: The same at its end.
        migrations: How often a job was moved to other devices, or to more or fewer.
        forced_stops: How often a job was stopped, moves and failures of nodes aside.
        failures: How often a node failed under a job.
        job_hours: Hours that jobs held devices, summed up over jobs.
        decisions: Epochs at which the policy was asked, from the begin of the window to the end of the scenario.
        refusals: Its orders that could not be carried out, likewise.
        bad_answers: Its answers that were none, likewise.
    """

    policy: str
    jobs: tuple[JobScore, ...]
    seconds: float
    money: float
    money_of_spanning: float
    price: float
    bits: float
    work: float
    work_of_spanning: float
    capacity: float
    queued_before: float
    queued: float
    migrations: int
    forced_stops: int
    failures: int
    job_hours: float
    decisions: int
    refusals: int
    bad_answers: int

    @property
    def unfinished(self) -> int:
        """Jobs of the cohort whose period is imputed in part."""
        return sum(not job.finished for job in self.jobs)

    @property
    def utilisation(self) -> float:
        """Work over capacity."""
        return self.work / self.capacity

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON value; ``played_of`` reads it."""
        return asdict(self)


def played_of(value: Mapping[str, Any]) -> Played:
    """What ``as_json`` has written.

    Raises:
        KeyError: A member is missing.
        TypeError: There is one that is not known.
    """
    jobs = tuple(JobScore(**{**job, "kind": JobKind(job["kind"])}) for job in value["jobs"])
    return Played(**{**value, "jobs": jobs})
