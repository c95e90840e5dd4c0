"""What is known of a world at an instant, as requests for forecasts and reservations hold it.

1. **Known.** Trainings that are there or announced, with their courses, and events. A period that is over is told as
   long as it was; the one that runs is told longer by the restarts that were in it.
2. **Names.** They are drawn: nothing in them tells of which kind a domain is, or what a tenant does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from kuayu_conformance.episode import instant
from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.demand.world import (
    AHEAD,
    COVERAGE,
    CROWD,
    DAY,
    SERVING,
    STEP,
    Domain,
    Event,
    Floats,
    Large,
    Period,
    World,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

SOON = 300.0
"""Seconds after which those who are late say that they will come."""
REMEMBERED = 2 * DAY
"""Seconds for which an event is told after its end."""
MONDAY, WEEK = 1_799_020_800, 604_800
"""2027-01-04, a Monday, and a week: worlds begin some weeks later."""
PAST, PAST_OF_TENANTS = 2 * DAY, DAY
"""Seconds of series that a request holds of domains and of their tenants."""
PAST_OF_PARTS = 6 * 3_600.0
"""The same of what is held, waits and is submitted, and of single trainings."""
QUANTITIES: "Mapping[str, documents.DemandQuantity]" = {
    "held": "held_devices",
    "waiting": "waiting_devices",
    "submitted": "submitted_devices",
}


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A training as it is told.

    Attributes:
        number: Its number among those of its domain.
        job: What it is; ``job.course`` is not to be told.
        submitted: When it was or is to be submitted.
        started: When it began, or None.
        periods: Its course from the beginning, as far as it is known.
    """

    number: int
    job: Large
    submitted: float
    started: float | None
    periods: tuple[Period, ...]


def foreseen(domain: Domain, now: float) -> tuple[Foreseen, ...]:
    """Trainings of a domain that run, wait or are announced."""
    return tuple(_foreseen(domain, now))


def announced(domain: Domain, now: float) -> tuple[Event, ...]:
    """Events that are known by now, and not long over."""
    return tuple(event for event in domain.events if event.begin - AHEAD <= now < event.end + REMEMBERED)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a series is of.

    Attributes:
        domain: Number of the domain in its world.
        tenant: Number of the tenant in it; None where it is of all.
        job: Number of the training among those of the domain; None where it is of all.
        quantity: ``demanded``, or a key of ``QUANTITIES``.
    """

    domain: int
    tenant: int | None = None
    job: int | None = None
    quantity: str = "demanded"


class Names:
    """Names of all that is in a world, and where it lies in time."""

    def __init__(self, seed: str) -> None:
        chance = Chance(seed, "names")
        self._salt = f"{seed}/{chance.below(2**31)}"
        self.begin = float(MONDAY + WEEK * chance.below(150))

    def of(self, *what: object) -> str:
        """The same name for the same thing, and no two things of one."""
        chance = Chance(self._salt, "/".join(map(str, what)))
        return "".join(f"{chance.below(2**16):04x}" for _ in range(3))

    def at(self, seconds: float) -> str:
        """An instant of the world."""
        return instant(self.begin + seconds)


def subjects(world: World, step: int) -> list[Subject]:
    """What there are series of at a step: domains and their parts, tenants, trainings that are there."""
    listed = []
    for number, domain in enumerate(world.domains):
        listed.append(Subject(number))
        listed += [Subject(number, quantity=quantity) for quantity in QUANTITIES]
        listed += [Subject(number, tenant) for tenant in range(len(domain.tenants))]
        for training in foreseen(domain, step * STEP):
            if training.job.submitted is not None and training.submitted <= (step - 1) * STEP:
                listed.append(Subject(number, training.job.tenant, training.number))
    return listed


def values(world: World, subject: Subject) -> Floats:
    """Devices of a subject at every step."""
    domain = world.domains[subject.domain]
    if subject.job is not None:
        return domain.of_job(domain.large[subject.job])
    if subject.tenant is not None:
        return domain.tenants[subject.tenant][subject.quantity]
    return domain.whole[subject.quantity]


def past(subject: Subject) -> int:
    """Steps of a subject's series that a request holds at most."""
    if subject.job is not None or subject.quantity != "demanded":
        return int(PAST_OF_PARTS / STEP)
    return int((PAST if subject.tenant is None else PAST_OF_TENANTS) / STEP)


def forecast_request(
    world: World, names: Names, step: int, about: Sequence[Subject], horizons: Sequence[float], levels: Sequence[float]
) -> "documents.ForecastRequest":
    """A request for forecasts, made at a step of a world; its values are known."""
    return {
        **_known(world, names, step, about),
        "horizons": list(horizons),
        "levels": list(levels),
    }


def reservation_request(
    world: World, names: Names, step: int, about: Sequence[Subject], horizon: float, violations: Sequence[float]
) -> "documents.ReservationRequest":
    """A request for reservations for the tenants of some series, each with the violations that it was promised."""
    promised: list[documents.TenantQuality] = [
        {"tenant": names.of("tenant", subject.domain, subject.tenant), "violations": share}
        for subject, share in zip(about, violations, strict=True)
    ]
    return {**_known(world, names, step, about), "horizon": horizon, "qualities": promised}


def period_of(period: Period) -> "documents.DemandPeriod":
    """A period as it is told, in milliseconds."""
    low, high = period.interval
    duration: documents.Estimate = {
        "expected": round(period.expected, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "coverage": COVERAGE,
    }
    return {"phase": period.phase, "devices": period.devices, "duration": duration}


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
            yield Foreseen(number, job, job.submitted, job.started, _known_periods(job, now - job.started))


def _known_periods(job: Large, passed: float) -> tuple[Period, ...]:
    """Periods after so many seconds of running."""
    seen = [part for part in job.course.parts if part.begin <= passed]
    runs = seen[-1].period
    periods = []
    for number, period in enumerate(job.training.periods):
        parts = [part for part in seen if part.period == number]
        if number < runs:
            periods.append(replace(period, expected=parts[-1].end - parts[0].begin, spread=0.0))
        elif number == runs:
            waited = sum(min(part.end, passed) - part.begin for part in parts if not part.has_devices)
            periods.append(replace(period, expected=period.expected + waited))
        else:
            periods.append(period)
    return tuple(periods)


class _Known(TypedDict):
    """What requests for forecasts and for reservations have in common."""

    revision: "documents.Revision"
    now: str
    series: "list[documents.DemandSeries]"
    jobs: "list[documents.ForeseenJob]"
    events: "list[documents.KnownEvent]"


def _known(world: World, names: Names, step: int, about: Sequence[Subject]) -> "_Known":
    now = step * STEP
    return {
        "revision": {"epoch": names.of("epoch"), "number": step},
        "now": names.at(now),
        "series": [_series(world, names, step, subject) for subject in about],
        "jobs": [
            _job(names, number, training)
            for number, domain in enumerate(world.domains)
            for training in foreseen(domain, now)
        ],
        "events": list(_events(world, names, now)),
    }


def _series(world: World, names: Names, step: int, subject: Subject) -> "documents.DemandSeries":
    first = max(0, step - past(subject))
    if subject.job is not None:
        submitted = world.domains[subject.domain].large[subject.job].submitted or 0.0
        first = max(first, min(step - 1, int(-(-submitted // STEP))))
    known = values(world, subject)[first : step + 1]
    entry: documents.DemandSeries = {
        "id": names.of("series", subject),
        "quantity": QUANTITIES.get(subject.quantity, "demanded_devices"),
        "domain": names.of("domain", subject.domain),
        "begin": names.at(first * STEP),
        "step": STEP,
        "values": [int(value) for value in known.tolist()],
    }
    if subject.tenant is not None:
        entry["tenant"] = names.of("tenant", subject.domain, subject.tenant)
    if subject.job is not None:
        entry["job"] = names.of("job", subject.domain, subject.job)
    return entry


def _job(names: Names, domain: int, training: Foreseen) -> "documents.ForeseenJob":
    entry: documents.ForeseenJob = {
        "id": names.of("job", domain, training.number),
        "domain": names.of("domain", domain),
        "tenant": names.of("tenant", domain, training.job.tenant),
        "submitted_at": names.at(training.submitted),
        "checkpoint_interval": training.job.training.checkpoints,
        "periods": [period_of(period) for period in training.periods],
    }
    if training.started is not None:
        entry["started_at"] = names.at(training.started)
    return entry


def _events(world: World, names: Names, now: float) -> "Iterator[documents.KnownEvent]":
    for number, domain in enumerate(world.domains):
        for event in announced(domain, now):
            tenant = SERVING if event.kind == "maintenance" else CROWD
            yield {
                "kind": event.kind,
                "domain": names.of("domain", number),
                "tenant": names.of("tenant", number, tenant),
                "begins_at": names.at(event.begin),
                "ends_at": names.at(event.end),
                "devices": event.devices,
            }
