"""Large trainings of a domain: when they are announced and submitted, and when they get their devices.

They come by the hours and days at which Philly's jobs were submitted (see ``testbed.scheduling.workload.fitted``). That
most are announced some hours ahead, and how punctual they are, is assumed: who needs hundreds of devices asks before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.demand.courses import Course, course
from kuayu_conformance.testbed.demand.kinds import Kind
from kuayu_conformance.testbed.demand.law import Training, gauss, training
from kuayu_conformance.testbed.scheduling.workload.fitted import parameters

HOUR = 3_600.0
ANNOUNCED, AHEAD = 0.7, (3_600.0, 43_200.0)
"""Share of trainings that are announced, and seconds before."""
WITHDRAWN = 0.08
"""Share of these that never come."""
PUNCTUAL = 300.0
"""Standard deviation of the seconds by which they come early or late."""
MEAN_ROOM = 24e6
"""Mean of devices times seconds over trainings as the law draws them, with which a load becomes a rate; a test holds it
against the law."""


@dataclass(frozen=True, slots=True)
class Large:
    """A large training.

    Attributes:
        tenant: Number of its tenant in its domain.
        training: What is expected of it.
        course: What becomes of it, from its start.
        announced: When it became known; when it was submitted, where nobody announced it.
        stated: When it was to be submitted, as announced.
        submitted: When it was, or None where it never was.
        started: When it got its devices, or None.
    """

    tenant: int
    training: Training
    course: Course
    announced: float
    stated: float
    submitted: float | None
    started: float | None = None

    @property
    def finished(self) -> float | None:
        """When it was over, or None where it never began."""
        return None if self.started is None else self.started + self.course.seconds


def large_jobs(kind: Kind, tenants: int, span: tuple[float, float], seed: str) -> tuple[Large, ...]:
    """Trainings that are to be submitted in a span of seconds since midnight at the begin of a week."""
    rhythm = parameters()[0]["philly"]
    chance = Chance(seed, "submissions")
    made: list[Large] = []
    usual = kind.load * kind.room / MEAN_ROOM * HOUR
    for hour in range(int(span[0] // HOUR), int(span[1] // HOUR)):
        rate = usual * rhythm.hours[hour % 24] * rhythm.days[hour // 24 % 7]
        for _ in range(int(rate + chance.fraction())):
            when = (hour + chance.fraction()) * HOUR
            made.append(_job(len(made), when, tenants, seed))
    return started(made, kind.room)


def _job(number: int, when: float, tenants: int, seed: str) -> Large:
    chance = Chance(seed, f"training {number}")
    tenant = chance.below(tenants)
    drawn = training(chance)
    true = course(drawn, chance)
    if chance.fraction() >= ANNOUNCED:
        instant = float(round(when))
        return Large(tenant, drawn, true, instant, instant, instant)
    stated = 900.0 * round(when / 900.0)
    announced = stated - float(round(chance.between(*AHEAD)))
    late = float(round(PUNCTUAL * gauss(chance)))
    comes = chance.fraction() >= WITHDRAWN
    return Large(tenant, drawn, true, announced, stated, max(announced, stated + late) if comes else None)


def started(jobs: Sequence[Large], room: int) -> tuple[Large, ...]:
    """Jobs with their starts: in the order of submission, each as soon as there is room for all that it needs."""
    done: list[Large] = [job for job in jobs if job.submitted is None]
    ends: list[tuple[float, int]] = []
    free, now = room, 0.0
    waiting = sorted(((job.submitted, number) for number, job in enumerate(jobs) if job.submitted is not None))
    now = waiting[0][0] if waiting else 0.0
    for submitted, number in waiting:
        job = jobs[number]
        now = max(now, submitted)
        while ends and (ends[0][0] <= now or free < job.training.devices):
            end, devices = heappop(ends)
            free += devices
            now = max(now, end)
        made = Large(job.tenant, job.training, job.course, job.announced, job.stated, submitted, now)
        free -= job.training.devices
        heappush(ends, (now + job.course.seconds, job.training.devices))
        done.append(made)
    return tuple(sorted(done, key=lambda job: (job.announced, job.stated)))
