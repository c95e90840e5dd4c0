"""A world for forecasts: domains with what they demand each minute, and what of it is known when.

1. **Events.** Maintenance and campaigns of users are announced; some campaigns do not come. How often, how long and how
   much is assumed: a domain has one or the other about every day, so that a few days show some.
2. **Crowd.** Small jobs and services of a domain are arrays of submissions, seconds and devices; none of them waits.
   Small jobs are drawn from what was fitted to ITP's clusters, services from what was fitted to Alibaba's pods that
   serve (see :mod:`kuayu_conformance.testbed.scheduling.workload.traces`): their seconds and sizes, and the hours and
   days at which they are submitted, which are those of Philly.
3. **Demand.** A domain demands what its trainings, its events and its crowd hold or wait for; everything follows from
   the seed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.demand.trainings import KINDS, Kind, Large, gauss, large_jobs
from kuayu_conformance.testbed.elementary import growth, read_off
from kuayu_conformance.testbed.scheduling.workload.traces import LEVELS, draw_cluster, parameters

if TYPE_CHECKING:
    from kuayu_schemas import documents

EVERY = 2 * 86_400.0
"""Seconds from one maintenance of a domain to the next, on average; campaigns likewise."""
AHEAD = 86_400.0
"""Seconds before its beginning at which it is announced."""
COMES = 0.75
"""Share of campaigns that come."""
DEVICES = (0.05, 0.12)
"""Devices of an event over those of the domain's large trainings."""
LASTS = (7_200.0, 21_600.0)
"""Seconds that it is to last."""
Floats = NDArray[np.float64]
STEP = 60.0
"""Seconds from one value of a series to the next."""
DAY = 86_400.0
WARM = 4 * DAY
"""Seconds before the beginning in which jobs come already."""
TENANTS = 3
"""Tenants of a domain that train large models; the next has small jobs and campaigns, the last has services."""
CROWD, SERVING = TENANTS, TENANTS + 1
Series = dict[str, Floats]
"""Devices at each step by what they are: ``demanded``, ``held``, ``waiting``, ``submitted``."""
_LATE = 600.0
_HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Event:
    """What is announced, and what comes of it.

    Attributes:
        kind: As on the wire.
        begin: Seconds, as announced.
        end: Likewise.
        devices: Devices that it adds or takes out, as announced.
        actual: Seconds of its true begin and end, and devices; None where it does not come.
    """

    kind: "documents.EventKind"
    begin: float
    end: float
    devices: int
    actual: tuple[float, float, int] | None


def events(kind: Kind, span: tuple[float, float], chance: Chance) -> tuple[Event, ...]:
    """Events of a domain in a span of seconds, in the order of their begin."""
    made = [*_of("maintenance", kind, span, chance), *_of("campaign", kind, span, chance)]
    return tuple(sorted(made, key=lambda event: event.begin))


@dataclass(frozen=True, slots=True)
class Crowd:
    """Jobs in no order.

    Attributes:
        submitted: Seconds, whole.
        seconds: Of each, whole.
        devices: Of each.
    """

    submitted: Floats
    seconds: Floats
    devices: Floats


def small_jobs(kind: Kind, span: tuple[float, float], seed: str) -> Crowd:
    """Small jobs that are submitted in a span of seconds since midnight at the beginning of a week."""
    fit = parameters()[0]["itp"]
    cluster = next(candidate for candidate in fit.clusters if candidate.name == kind.cluster)
    drawn = draw_cluster(fit, cluster, span, stream(seed, "small jobs"), scale=kind.scale)
    selected = (drawn.threshold <= kind.scale) & (drawn.submitted < span[1])
    seconds = np.maximum(1.0, np.rint(drawn.duration[selected]))
    return Crowd(np.rint(drawn.submitted[selected]), seconds, drawn.devices[selected])


def services(kind: Kind, span: tuple[float, float], seed: str) -> Crowd:
    """Replicas of services that are started in a span, and how long they last."""
    fits, serving = parameters()
    rhythm = fits["philly"]
    sizes = np.array([size for size, _ in serving.sizes], dtype=np.float64)
    shares = np.cumsum(np.array([share for _, share in serving.sizes]))
    mean = sum(size * share for size, share in serving.sizes) / float(shares[-1])
    hours = np.floor(span[0] / _HOUR) + np.arange(int((span[1] - span[0]) / _HOUR) + 1)
    hour_numbers = hours.astype(np.intp)
    usual = np.array(rhythm.hours)[hour_numbers % 24] * np.array(rhythm.days)[(hour_numbers // 24) % 7]
    chance = stream(seed, "services")
    rate = kind.served / (mean * serving.duration) * _HOUR * usual
    counts = np.floor(rate + chance.random(len(rate))).astype(np.intp)
    hour = np.repeat(hours, counts)
    when, level, pick = chance.random((3, len(hour)))
    seconds = growth(read_off(level, LEVELS, serving.durations))
    devices = sizes[np.minimum(np.searchsorted(shares, pick * shares[-1], side="right"), len(sizes) - 1)]
    return Crowd(np.rint((hour + when) * _HOUR), np.maximum(1.0, np.rint(seconds)), devices)


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain in a world; see ``world``.

    Attributes:
        kind: What it has in common with such domains of other worlds.
        steps: Values of a series; the first is of zero.
        large: Large trainings, some of them over before zero.
        small: Small jobs.
        served: Services.
        events: What is announced.
    """

    kind: Kind
    steps: int
    large: tuple[Large, ...]
    small: Crowd
    served: Crowd
    events: tuple[Event, ...]

    @cached_property
    def tenants(self) -> tuple[Series, ...]:
        """Series of each tenant."""
        made = [self._of_large(number) for number in range(TENANTS)]
        return (*made, self._of_small(), self._of_services())

    @cached_property
    def whole(self) -> Series:
        """Series of all tenants together."""
        return {name: np.sum([series[name] for series in self.tenants], axis=0) for name in self.tenants[0]}

    def of_job(self, job: Large) -> Floats:
        """Devices that a training demands at each step."""
        return _level(self.steps, list(demanded(job)))

    def _of_large(self, tenant: int) -> Series:
        demand: list[tuple[float, float, float]] = []
        held: list[tuple[float, float, float]] = []
        submitted = np.zeros(self.steps)
        for job in self.large:
            if job.tenant != tenant or job.submitted is None or job.started is None:
                continue
            demand += demanded(job)
            start = job.started
            held += [(start + part.begin, start + part.end, part.devices) for part in job.course.parts if part.held]
            step = _step_of(job.submitted)
            if 0 <= step < self.steps:
                submitted[step] += job.training.devices
        return _named(_level(self.steps, demand), _level(self.steps, held), submitted)

    def _of_small(self) -> Series:
        coming = [event.actual for event in self.events if event.kind == "campaign" and event.actual]
        level = _crowd(self.steps, self.small) + _level(self.steps, coming)
        return _named(level, level, _submitted(self.steps, self.small))

    def _of_services(self) -> Series:
        """Maintenance moves services to other domains, as many devices as it takes out, for as long as it lasts."""
        level = _crowd(self.steps, self.served)
        away = [event.actual for event in self.events if event.kind == "maintenance" and event.actual]
        level = np.maximum(0.0, level - _level(self.steps, away))
        return _named(level, level, _submitted(self.steps, self.served))


@dataclass(frozen=True, eq=False)
class World:
    """Domains that have nothing to do with each other.

    Attributes:
        domains: One of each kind.
        steps: Values of a series.
    """

    domains: tuple[Domain, ...]
    steps: int


def world(seed: str, days: float, kinds: tuple[Kind, ...] = KINDS) -> World:
    """A world of so many days, the first of which is a Monday; everything follows from the seed."""
    steps, span = int(days * DAY / STEP) + 1, (-WARM, days * DAY)
    return World(tuple(_domain(kind, steps, span, f"{seed}/{kind.label}") for kind in kinds), steps)


def demanded(job: Large) -> Iterator[tuple[float, float, float]]:
    """Seconds of begin and end, and devices: those of its first period while it waits, then those of its parts."""
    if job.submitted is None or job.started is None:
        return
    first = job.training.periods[0].devices
    yield job.submitted, job.started, first
    for part in job.course.parts:
        yield job.started + part.begin, job.started + part.end, part.devices


def _of(what: "documents.EventKind", kind: Kind, span: tuple[float, float], chance: Chance) -> Iterator[Event]:
    count = int((span[1] - span[0]) / EVERY + chance.fraction())
    for _ in range(count):
        # people announce full quarters of an hour
        begin = 900.0 * round(chance.between(*span) / 900.0)
        end = begin + 900.0 * round(chance.between(*LASTS) / 900.0)
        devices = int(kind.room * chance.between(*DEVICES))
        late, later = (float(round(_LATE * abs(gauss(chance)))) for _ in range(2))
        comes, share = chance.fraction() < COMES, chance.between(0.7, 1.1)
        if what == "maintenance":
            yield Event(what, begin, end, devices, (begin, end + later, devices))
        else:
            actual = (begin + late, end + late, int(devices * share)) if comes else None
            yield Event(what, begin, end, devices, actual)


def _domain(kind: Kind, steps: int, span: tuple[float, float], seed: str) -> Domain:
    return Domain(
        kind,
        steps,
        large_jobs(kind, TENANTS, span, seed),
        small_jobs(kind, span, seed),
        services(kind, span, seed),
        events(kind, (0.0, span[1]), Chance(seed, "events")),
    )


def _named(demand: Floats, held: Floats, submitted: Floats) -> Series:
    return {"demanded": demand, "held": held, "waiting": demand - held, "submitted": submitted}


def _step_of(seconds: float) -> int:
    """First step that does not begin before an instant."""
    return int(np.ceil(seconds / STEP))


def _level(steps: int, stays: list[tuple[float, float, float]] | list[tuple[float, float, int]]) -> Floats:
    """Devices at the beginning of each step; a stay has its devices from its beginning until before its end."""
    if not stays:
        return np.zeros(steps)
    begins, ends, devices = np.array(stays, dtype=np.float64).T
    return _summed(steps, begins, ends, devices)


def _crowd(steps: int, crowd: Crowd) -> Floats:
    return _summed(steps, crowd.submitted, crowd.submitted + crowd.seconds, crowd.devices)


def _summed(steps: int, begins: Floats, ends: Floats, devices: Floats) -> Floats:
    first, beyond = (np.clip(np.ceil(instants / STEP), 0, steps).astype(np.intp) for instants in (begins, ends))
    change = np.zeros(steps + 1)
    np.add.at(change, first, devices)
    np.add.at(change, beyond, -devices)
    return np.cumsum(change[:-1])


def _submitted(steps: int, crowd: Crowd) -> Floats:
    step = np.ceil(crowd.submitted / STEP).astype(np.intp)
    within = (step >= 0) & (step < steps)
    return np.bincount(step[within], weights=crowd.devices[within], minlength=steps).astype(np.float64)
