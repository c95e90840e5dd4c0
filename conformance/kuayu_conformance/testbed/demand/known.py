"""What is known of a world at an instant: trainings that are there or announced, with their courses, and events.

A period that is over is told as long as it was; the one that runs is told longer by the restarts that were in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kuayu_conformance.testbed.demand.events import AHEAD, Event
from kuayu_conformance.testbed.demand.jobs import Large
from kuayu_conformance.testbed.demand.law import Period
from kuayu_conformance.testbed.demand.world import DAY, Domain

SOON = 300.0
"""Seconds after which those who are late say that they will come."""
REMEMBERED = 2 * DAY
"""Seconds for which an event is told after its end."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A training as it is told.

    Attributes:
        number: Its number among those of its domain.
        job: What it is; ``job.course`` is not to be told.
        submitted: When it was or is to be submitted.
        started: When it began, or None.
        periods: Its course from the begin, as far as it is known.
    """

    number: int
    job: Large
    submitted: float
    started: float | None
    periods: tuple[Period, ...]


def foreseen(domain: Domain, now: float) -> tuple[Foreseen, ...]:
    """Trainings of a domain that run, wait or are announced."""
    return tuple(_foreseen(domain, now))


def _foreseen(domain: Domain, now: float) -> Iterator[Foreseen]:
    for number, job in enumerate(domain.large):
        finished = job.finished
        if job.announced > now or (finished is not None and finished <= now):
            continue
        if job.submitted is None or job.submitted > now:
            if job.submitted is not None or job.stated > now:
                yield Foreseen(number, job, max(job.stated, now + SOON), None, job.training.periods)
        elif job.started is None or job.started > now:
            yield Foreseen(number, job, job.submitted, None, job.training.periods)
        else:
            yield Foreseen(number, job, job.submitted, job.started, _told(job, now - job.started))


def _told(job: Large, passed: float) -> tuple[Period, ...]:
    """Periods after so many seconds of running."""
    seen = [part for part in job.course.parts if part.begin <= passed]
    runs = seen[-1].period
    periods = []
    for number, period in enumerate(job.training.periods):
        parts = [part for part in seen if part.period == number]
        if number < runs:
            periods.append(replace(period, expected=parts[-1].end - parts[0].begin, spread=0.0))
        elif number == runs:
            waited = sum(min(part.end, passed) - part.begin for part in parts if not part.held)
            periods.append(replace(period, expected=period.expected + waited))
        else:
            periods.append(period)
    return tuple(periods)


def announced(domain: Domain, now: float) -> tuple[Event, ...]:
    """Events that are known by now, and not long over."""
    return tuple(event for event in domain.events if event.begin - AHEAD <= now < event.end + REMEMBERED)
