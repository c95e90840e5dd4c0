"""A world: domains with what they demand each minute, and what of it is known when."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.demand.crowd import Crowd, services, small_jobs
from kuayu_conformance.testbed.demand.events import Event, events
from kuayu_conformance.testbed.demand.jobs import Large, large_jobs
from kuayu_conformance.testbed.demand.kinds import KINDS, Kind

STEP = 60.0
"""Seconds from one value of a series to the next."""
DAY = 86_400.0
WARM = 4 * DAY
"""Seconds before the begin in which jobs come already."""
TENANTS = 3
"""Tenants of a domain that train large models; the next has small jobs and campaigns, the last has services."""
CROWD, SERVING = TENANTS, TENANTS + 1

Floats = NDArray[np.float64]
Series = dict[str, Floats]
"""Devices at each step by what they are: ``demanded``, ``held``, ``waiting``, ``submitted``."""


@dataclass(frozen=True, eq=False)
class Domain:
    """A domain in a world; see ``world``.

    Attributes:
        kind: What it has in common with such domains of other worlds.
        steps: Values of a series; the first is of nought.
        large: Large trainings, some of them over before nought.
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


def _domain(kind: Kind, steps: int, span: tuple[float, float], seed: str) -> Domain:
    return Domain(
        kind,
        steps,
        large_jobs(kind, TENANTS, span, seed),
        small_jobs(kind, span, seed),
        services(kind, span, seed),
        events(kind, (0.0, span[1]), Chance(seed, "events")),
    )


def demanded(job: Large) -> Iterator[tuple[float, float, float]]:
    """Seconds of begin and end, and devices: those of its first period while it waits, then those of its parts."""
    if job.submitted is None or job.started is None:
        return
    first = job.training.periods[0].devices
    yield job.submitted, job.started, first
    for part in job.course.parts:
        yield job.started + part.begin, job.started + part.end, part.devices


def _named(demand: Floats, held: Floats, submitted: Floats) -> Series:
    return {"demanded": demand, "held": held, "waiting": demand - held, "submitted": submitted}


def _step_of(seconds: float) -> int:
    """First step that does not begin before an instant."""
    return int(np.ceil(seconds / STEP))


def _level(steps: int, stays: list[tuple[float, float, float]] | list[tuple[float, float, int]]) -> Floats:
    """Devices at the begin of each step; a stay has its devices from its begin until before its end."""
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
