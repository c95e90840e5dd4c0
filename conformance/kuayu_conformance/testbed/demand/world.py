"""A world for forecasts: large trainings, small jobs and services of domains, and what they demand each minute.

1. **Kinds of domains.** Each world has one domain of each, so that a domain's figures are gathered over worlds. How
   many devices large trainings may hold and how many small jobs there are is assumed; the habits of small jobs are
   those of clusters that were measured (see :mod:`kuayu_conformance.testbed.scheduling.workload.traces`).
2. **Expectation.** A training has periods, with the devices and the seconds of each.

   Time is work over speed: 6 operations for a parameter and a token (J. Kaplan et al., arXiv:2001.08361), at 989
   TFLOP/s of a device (NVIDIA H100 data sheet, dense bf16) and about 40 % of these (Llama 3 reached 38-43 %;
   Grattafiori et al., arXiv:2407.21783, table 4). Jobs are stages of adaptation with some billions of tokens, as they
   come to a shared platform; pre-training from zero would not change within days.

   Batches are ramped up: BLOOM began with 9 % of its batch and came to all of it within 4 % of its samples (BigScience,
   tr11-176B), DeepSeek-V3 with 20 % and within 3 % of its tokens (arXiv:2412.19437). Where the batch is smaller, fewer
   replicas have anything to do. Every few hours training pauses until its checkpoint is evaluated on a part of the
   devices; intervals and lengths of these pauses are assumptions.
3. **Course.** How long periods truly take, failures, and that a training may be given up. Failures come at Llama 3's
   rate: 419 in 54 days on 16 384 accelerators (Grattafiori et al., arXiv:2407.21783, 3.3.4). The work since the last
   checkpoint is done again, after a restart in which the job waits for its devices.
4. **Submission.** They come by the hours and days at which Philly's jobs were submitted (see
   :mod:`kuayu_conformance.testbed.scheduling.workload.traces`). That most are announced some hours ahead, and how
   punctual they are, is assumed: who needs hundreds of devices asks before. Each starts, in the order of submission, as
   soon as all that it needs is free.
5. **Events.** Maintenance and campaigns of users are announced; some campaigns do not come. How often, how long and how
   much is assumed: a domain has one or the other about every day, so that a few days show some.
6. **Crowd.** Small jobs and services of a domain are arrays of submissions, seconds and devices; none of them waits.
   Small jobs are drawn from what was fitted to ITP's clusters, services from what was fitted to Alibaba's pods that
   serve (see :mod:`kuayu_conformance.testbed.scheduling.workload.traces`): their seconds and sizes, and the hours and
   days at which they are submitted, which are those of Philly.
7. **Demand.** A domain demands what its trainings, its events and its crowd hold or wait for; everything follows from
   the seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import inf, log
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.elementary import exponential, growth, read_off
from kuayu_conformance.testbed.scheduling.workload.traces import LEVELS, draw_cluster, parameters

if TYPE_CHECKING:
    from kuayu_schemas import documents

COVERAGE = 0.9
"""Share of cases that estimates say of themselves to hold."""
SPREAD, SPREAD_OF_PAUSE = 0.05, 0.2
"""Standard deviation of the logarithm of a period's seconds, as stated; an assumption. With ``courses.MISJUDGED`` it is
7 % for what trains, which is within the 10 % that laws of demand aim at (DEM-001)."""
MISJUDGED = 0.05
"""Standard deviation of the logarithm of the factor by which all periods of a job are longer than expected. No estimate
tells of it; periods that are over do."""
FAILURES = 419 / (54 * 86_400.0 * 16_384)
"""Failures for a device and a second."""
RESTART = (600.0, 1_200.0)
"""Seconds of a restart; an assumption."""
GIVEN_UP = 0.1
"""Share of trainings that are given up somewhere; an assumption. In Acme's two clusters it is more, by number of jobs
(Q. Hu et al., "Characterization of large language model development in the datacenter", NSDI 2024)."""
HOUR = 3_600.0
ANNOUNCED, ANNOUNCED_AHEAD = 0.7, (3_600.0, 43_200.0)
"""Share of trainings that are announced, and seconds before."""
WITHDRAWN = 0.08
"""Share of these that never come."""
PUNCTUAL = 300.0
"""Standard deviation of the seconds by which they come early or late."""
MEAN_DEVICE_SECONDS = 24e6
"""Mean of devices times seconds over trainings as the law draws them, with which a load becomes a rate; a test holds it
against the law."""
_REACH = 1.6448536269514722
"""Standard deviations within which a normal number lies in that share of cases; written out, as libraries differ."""
_PEAK, _EFFICIENCY = 989e12, 0.4
_MIN_PARAMETERS, _MAX_PARAMETERS = 50e9, 500e9
_TOKENS, _TOKENS_SPREAD = 6e9, 0.5
_RAMP = ((0.25, 0.01, 0.03), (0.5, 0.02, 0.05))
"""Share of the batch, and the least and the most of the tokens that it is used for."""
_FAST = 0.3
"""Share of the tokens after which the loss falls slowly; an assumption, it does not change the devices."""
_PAUSE_EVERY, _PAUSE_LASTS, _PAUSE_SHARE = (5_400.0, 14_400.0), (600.0, 1_500.0), 8
_GRAIN = 64
_MIN_DEVICES, _MAX_DEVICES = 128, 768

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
class Kind:
    """What domains of a kind have in common.

    Attributes:
        label: For people.
        capacity: Devices that large trainings may hold at once.
        load: Devices that they would hold on average if none waited, over these.
        cluster: Cluster of ITP whose habits small jobs have.
        scale: Their number over that of the cluster.
        served: Devices that services hold on average.
    """

    label: str
    capacity: int
    load: float
    cluster: str
    scale: float
    served: float


KINDS = (
    Kind("large trainings", 3_072, 0.8, "cluster07", 0.5, 60.0),
    Kind("large trainings, small jobs", 2_560, 0.8, "cluster04", 0.5, 60.0),
    Kind("large trainings, services", 2_560, 0.75, "cluster08", 1.0, 300.0),
    Kind("fewer trainings", 1_792, 0.8, "cluster07", 0.5, 100.0),
    Kind("trainings and all else", 2_048, 0.75, "cluster04", 0.5, 200.0),
)
"""Domains of a world."""


@dataclass(frozen=True, slots=True)
class Period:
    """Part of a course in which the demand is the same.

    Attributes:
        phase: Phase of the training, as on the wire.
        devices: Devices that it needs.
        expected: Median of its seconds.
        spread: Standard deviation of their logarithm; zero where they are known.
        pause: Whether the training waits in it for an evaluation.
    """

    phase: "documents.TrainingPhase"
    devices: int
    expected: float
    spread: float
    pause: bool = False

    @property
    def interval(self) -> tuple[float, float]:
        """Seconds between which it lies with probability ``COVERAGE``."""
        away = exponential(_REACH * self.spread)
        return self.expected / away, self.expected * away


@dataclass(frozen=True, slots=True)
class Training:
    """What is expected of a large training.

    Attributes:
        parameters: Of its model.
        tokens: Of its data.
        devices: Most that it needs at once.
        checkpoints: Seconds between its checkpoints.
        periods: Its course.
    """

    parameters: float
    tokens: float
    devices: int
    checkpoints: float
    periods: tuple[Period, ...]

    @property
    def seconds(self) -> float:
        """Of all periods, as expected."""
        return sum(period.expected for period in self.periods)


def training(chance: Chance) -> Training:
    """A training drawn: its model and tokens, then by the law all else."""
    parameters = _MIN_PARAMETERS * (_MAX_PARAMETERS / _MIN_PARAMETERS) ** chance.fraction()
    wanted = parameters / 1e9 * chance.between(1.0, 2.5)
    devices = int(min(_MAX_DEVICES, max(_MIN_DEVICES, _GRAIN * round(wanted / _GRAIN))))
    tokens = _TOKENS * exponential(_TOKENS_SPREAD * gauss(chance))
    every = chance.between(*_PAUSE_EVERY)
    lasts = chance.between(*_PAUSE_LASTS)
    shares = [(part, chance.between(low, high)) for part, low, high in _RAMP]
    checkpoints = float(round(chance.between(1_200.0, 3_600.0)))
    periods = tuple(_periods(work_seconds(parameters, tokens, devices), devices, shares, every, lasts))
    return Training(parameters, tokens, devices, checkpoints, periods)


def work_seconds(parameters: float, tokens: float, devices: int) -> float:
    """Seconds of training on so many devices."""
    return 6.0 * parameters * tokens / (devices * _PEAK * _EFFICIENCY)


def gauss(chance: Chance) -> float:
    """A normal number. What C libraries disagree about is lost when seconds are rounded."""
    return NormalDist().inv_cdf(0.5 / 2**32 + chance.fraction() * (1.0 - 1.0 / 2**32))


@dataclass(frozen=True, slots=True)
class Part:
    """Seconds of a course in which nothing changes.

    Attributes:
        period: Number of the period that it belongs to.
        begin: Seconds since the job began to run.
        end: Likewise.
        devices: Devices that it needs.
        has_devices: Whether it has them; it waits for them in a restart.
    """

    period: int
    begin: float
    end: float
    devices: int
    has_devices: bool


@dataclass(frozen=True, slots=True)
class Course:
    """What becomes of a training.

    Attributes:
        parts: In order, without gaps.
    """

    parts: tuple[Part, ...]

    @property
    def seconds(self) -> float:
        """Until it is over."""
        return self.parts[-1].end


def course(training: Training, chance: Chance) -> Course:
    """The true course of a training."""
    factor = exponential(MISJUDGED * gauss(chance))
    parts: list[Part] = []
    now = 0.0
    for number, period in enumerate(training.periods):
        lasts = max(1.0, float(round(period.expected * factor * exponential(period.spread * gauss(chance)))))
        parts += _carried_out(number, period, now, lasts, training.checkpoints, chance)
        now = parts[-1].end
    if chance.fraction() < GIVEN_UP:
        return Course(cut(parts, float(round(now * chance.between(0.05, 1.0)))))
    return Course(tuple(parts))


def cut(parts: list[Part], until: float) -> tuple[Part, ...]:
    """Parts up to an instant, the last of them shorter; at least a second of the first."""
    until = max(1.0, until)
    carried = [part for part in parts if part.begin < until]
    last = carried.pop()
    return (*carried, Part(last.period, last.begin, min(last.end, until), last.devices, last.has_devices))


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
    """Trainings that are to be submitted in a span of seconds since midnight at the beginning of a week."""
    rhythm = parameters()[0]["philly"]
    chance = Chance(seed, "submissions")
    jobs: list[Large] = []
    usual = kind.load * kind.capacity / MEAN_DEVICE_SECONDS * HOUR
    for hour in range(int(span[0] // HOUR), int(span[1] // HOUR)):
        rate = usual * rhythm.hours[hour % 24] * rhythm.days[hour // 24 % 7]
        for _ in range(int(rate + chance.fraction())):
            when = (hour + chance.fraction()) * HOUR
            jobs.append(_large_job(len(jobs), when, tenants, seed))
    return started(jobs, kind.capacity)


def started(jobs: Sequence[Large], capacity: int) -> tuple[Large, ...]:
    """Jobs with their starts: in the order of submission, each as soon as there is room for all that it needs."""
    done: list[Large] = [job for job in jobs if job.submitted is None]
    ends: list[tuple[float, int]] = []
    free, now = capacity, 0.0
    waiting = sorted(((job.submitted, number) for number, job in enumerate(jobs) if job.submitted is not None))
    now = waiting[0][0] if waiting else 0.0
    for submitted, number in waiting:
        job = jobs[number]
        now = max(now, submitted)
        while ends and (ends[0][0] <= now or free < job.training.devices):
            end, devices = heappop(ends)
            free += devices
            now = max(now, end)
        begun = Large(job.tenant, job.training, job.course, job.announced, job.stated, submitted, now)
        free -= job.training.devices
        heappush(ends, (now + job.course.seconds, job.training.devices))
        done.append(begun)
    return tuple(sorted(done, key=lambda job: (job.announced, job.stated)))


def _periods(
    seconds: float, devices: int, ramp: list[tuple[float, float]], every: float, lasts: float
) -> Iterator[Period]:
    """Ramp, then stretches of training with pauses between them; ``seconds`` are those of all tokens on all devices."""
    for part, tokens in ramp:
        yield Period("warm_up", max(1, int(devices * part)), float(round(seconds * tokens / part)), SPREAD)
    done = sum(tokens for _, tokens in ramp) * seconds
    stretches = max(1, round((seconds - done) / every))
    length = (seconds - done) / stretches
    for number in range(stretches):
        phase: documents.TrainingPhase = (
            "fast_convergence" if done + length * number < _FAST * seconds else "stable_convergence"
        )
        yield Period(phase, devices, float(round(length)), SPREAD)
        if number < stretches - 1:
            yield Period(phase, devices // _PAUSE_SHARE, float(round(lasts)), SPREAD_OF_PAUSE, pause=True)


def _carried_out(
    number: int, period: Period, begin: float, lasts: float, checkpoints: float, chance: Chance
) -> list[Part]:
    """A period with its failures, each of which costs a restart and the work since the last checkpoint."""
    parts: list[Part] = []
    left, now = lasts, begin
    while True:
        runs = _until_failure(period.devices, chance)
        if runs >= left:
            return [*parts, Part(number, now, now + left, period.devices, has_devices=True)]
        lost = min(runs, float(round(chance.between(0.0, checkpoints))))
        waits = float(round(chance.between(*RESTART)))
        parts.append(Part(number, now, now + runs, period.devices, has_devices=True))
        parts.append(Part(number, now + runs, now + runs + waits, period.devices, has_devices=False))
        now += runs + waits
        left += lost - runs


def _until_failure(devices: int, chance: Chance) -> float:
    """Seconds until one of the devices fails, at least one."""
    fraction = chance.fraction()
    return max(1.0, float(round(-log(1.0 - fraction) / (FAILURES * devices)))) if devices else inf


def _large_job(number: int, when: float, tenants: int, seed: str) -> Large:
    chance = Chance(seed, f"training {number}")
    tenant = chance.below(tenants)
    drawn = training(chance)
    true = course(drawn, chance)
    if chance.fraction() >= ANNOUNCED:
        instant = float(round(when))
        return Large(tenant, drawn, true, instant, instant, instant)
    stated = 900.0 * round(when / 900.0)
    announced = stated - float(round(chance.between(*ANNOUNCED_AHEAD)))
    late = float(round(PUNCTUAL * gauss(chance)))
    comes = chance.fraction() >= WITHDRAWN
    return Large(tenant, drawn, true, announced, stated, max(announced, stated + late) if comes else None)


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
    drawn = [*_of("maintenance", kind, span, chance), *_of("campaign", kind, span, chance)]
    return tuple(sorted(drawn, key=lambda event: event.begin))


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
        large = [self._of_large(number) for number in range(TENANTS)]
        return (*large, self._of_small(), self._of_services())

    @cached_property
    def whole(self) -> Series:
        """Series of all tenants together."""
        return {name: np.sum([series[name] for series in self.tenants], axis=0) for name in self.tenants[0]}

    def of_job(self, job: Large) -> Floats:
        """Devices that a training demands at each step."""
        return _level(self.steps, list(demanded(job)))

    def _of_large(self, tenant: int) -> Series:
        demand: list[tuple[float, float, float]] = []
        holding: list[tuple[float, float, float]] = []
        submitted = np.zeros(self.steps)
        for job in self.large:
            if job.tenant != tenant or job.submitted is None or job.started is None:
                continue
            demand += demanded(job)
            start = job.started
            holding += [
                (start + part.begin, start + part.end, part.devices) for part in job.course.parts if part.has_devices
            ]
            step = _step_of(job.submitted)
            if 0 <= step < self.steps:
                submitted[step] += job.training.devices
        return _named(_level(self.steps, demand), _level(self.steps, holding), submitted)

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
        devices = int(kind.capacity * chance.between(*DEVICES))
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


def _named(demand: Floats, holding: Floats, submitted: Floats) -> Series:
    return {"demanded": demand, "held": holding, "waiting": demand - holding, "submitted": submitted}


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
