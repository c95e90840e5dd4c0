"""What the structure of jobs says of series: how long their periods last, what they hold later, and who came of late.

1. Jobs and events count for the series that name what they name. A job holds the devices of a period with the chance
   that the period holds; jobs are independent of each other. Those that came within the last horizon and are still
   there are what the next horizon brings.
2. How long a period lasts is log-normal through the median and both ends of an ``Estimate``. Where the ends lie at
   unlike ratios from the median, each side has its own width (a split log-normal), so that all three values of the
   estimate hold. Its median stays the median.
3. Who reports a job measures what is over, so a period that has ended has a sure duration. Where a request shows that
   (a job has sure periods behind it and unsure ones before it), the first period that is not sure and over is the
   present one, and it is known to hold still.
4. Who waits goes on waiting. Waits have no scale of their own: without other evidence, who has waited for so long waits
   as long again in every second case (the posterior of an exponential law seen once, under a prior that knows no
   scale). Others of the domain that waited as long are further evidence: each that started since then is one more
   start, and the time that each waited beyond it one more exposure.
5. The course of a job is the chance that each of its periods holds at given instants. A job with one period left is
   followed exactly. Where there are several, or it waits for an unknown time, ends are sums of independent durations,
   of which CASES stratified cases are laid side by side, always the same ones (M. D. McKay et al., Technometrics 21(2),
   1979). That a job is still there is known of those that run, and each chance is taken on that condition.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from kuayu.forecast.requests import Flags, Floats, Whole, seconds
from kuayu.forecast.totals import Spread, total, totals

if TYPE_CHECKING:
    from kuayu_schemas import documents


QUANTITIES = {"demanded_devices", "held_devices", "waiting_devices"}
"""What jobs explain."""

TINY = 1e-6
"""Devices, squared, that nobody counts."""

ENOUGH = 10
"""Arrivals that tell how often somebody comes."""

LATELY = 86_400.0
"""Seconds before now in which arrivals are looked for, where there are few."""

TOGETHER = 0.3
"""Shape of the gamma distribution by which rates of arrival vary, where nothing is known of them: jobs come in groups.
The median over domains of ITP and Philly, first halves, is 0.29 (``python -m kuayu_training.forecast arrivals``)."""

MOST_SPANS = 1440
"""Spans of time, as long as a horizon, in which arrivals are counted apart."""

SETTLED = 0.002
"""Chance to leave of a job that is known to stay as well as not."""

NAMES = ("domain", "tenant", "job")

ADDS = {"campaign": 1.0, "deadline": 1.0, "holiday": -1.0, "maintenance": -1.0}
"""Whether devices of an event come to the demand or are taken from it."""

TOUCHED = {
    "demanded_devices": {"campaign", "deadline", "holiday"},
    "held_devices": {"campaign", "deadline", "holiday", "maintenance"},
}
"""Events that change a quantity. Devices that are taken out are not needed less, but cannot be held."""


@dataclass(frozen=True)
class Courses:
    """Periods of jobs, R in all, at T instants.

    Attributes:
        job: Number of each period's job, rising, R.
        devices: Devices that it needs, R.
        chance: Chance that it holds, R × T.
        now: The same at the present instant, R.
        begins: Seconds from now until each job's course begins, negative where it has, J.
    """

    job: Whole
    devices: Floats
    chance: Floats
    now: Floats
    begins: Floats


@dataclass(frozen=True)
class Crowd:
    """Jobs of a request, J.

    Attributes:
        courses: Their courses.
        submitted: Seconds from now, J.
        started: Seconds from now, J; infinite for those that wait.
    """

    courses: Courses
    submitted: Floats
    started: Floats

    @staticmethod
    def of(jobs: "Sequence[documents.ForeseenJob]", courses: Courses, now: float) -> "Crowd":
        """Jobs with their courses."""
        submitted = [seconds(job["submitted_at"]) - now for job in jobs]
        started = [seconds(job["started_at"]) - now if "started_at" in job else np.inf for job in jobs]
        return Crowd(courses, np.array(submitted, dtype=float), np.array(started, dtype=float))

    @property
    def queues(self) -> Flags:
        """Who waits now, J."""
        return np.isinf(self.started) & (self.submitted <= 0)

    @property
    def needs(self) -> Floats:
        """Devices in the first period, J."""
        first = np.searchsorted(self.courses.job, np.arange(len(self.submitted)))
        needed: Floats = self.courses.devices[first]
        return needed

    @cached_property
    def first(self) -> Whole:
        """First period of each job, J."""
        return np.searchsorted(self.courses.job, np.arange(len(self.submitted)))

    @cached_property
    def present(self) -> Floats:
        """Devices that jobs hold now on average, J."""
        devices: Floats = np.add.reduceat(self.courses.devices * self.courses.now, self.first)
        return devices

    @cached_property
    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Devices that jobs hold later, on average and squared, and the mean square of what they change by, J × T."""
        devices, chance = self.courses.devices[:, None], self.courses.chance
        mean, square = (np.add.reduceat(devices**power * chance, self.first) for power in (1, 2))
        now = self.present[:, None]
        return mean, square, square - 2 * now * mean + now**2

    def rows(self, chosen: Flags) -> Whole:
        """Periods of jobs."""
        return np.flatnonzero(chosen[self.courses.job])

    def spread(self, chosen: Flags) -> Spread:
        """What jobs hold together."""
        rows = self.rows(chosen)
        return total(self.courses.job[rows], self.courses.devices[rows], self.courses.chance[rows])


@dataclass(frozen=True)
class Foreseen:
    """What jobs say of one series.

    Attributes:
        spread: Distribution of what they make of the series, at T instants.
        low: Least that they have made of it since its last value.
        high: Most that they have.
        sizes: Devices of each of those that came of late and are still there, by age.
        arrivals: How many such come over each horizon, T.
        shape: Of the gamma distribution by which that varies, T; the less, the more come in groups.
        announced: Devices of those known to come within each horizon, T.
        sharpness: How much of what jobs will do is known, T: one where each surely leaves or stays, zero where any
            may leave at any time.
    """

    spread: Spread
    low: float
    high: float
    sizes: Floats
    arrivals: Floats
    shape: Floats
    announced: Floats
    sharpness: Floats


def nobody(horizons: int) -> Foreseen:
    """What is foreseen where there is no job at all."""
    none = np.zeros(horizons)
    return Foreseen(
        Spread(1.0, none, np.ones((horizons, 1))), 0.0, 0.0, np.zeros(0), none, none + TOGETHER, none, none + 1
    )


def foresee(
    quantities: Sequence[str], crowd: Crowd, jobs: Sequence[Whole], then: Sequence[float], after: Floats
) -> list[Foreseen]:
    """Follow the jobs of series.

    Args:
        quantities: What each counts, one of QUANTITIES.
        crowd: All jobs.
        jobs: Numbers of those that count for each.
        then: Seconds from now of its last value, not above zero.
        after: Seconds from now, T.
    """
    members_of = list(jobs)
    came = [np.minimum(crowd.submitted, crowd.started)] * len(members_of)
    spreads: dict[int, Spread] = {}
    waiting: dict[int, tuple[Floats, Floats]] = {}
    for number, quantity in enumerate(quantities):
        if quantity == "held_devices":
            members_of[number], came[number], spreads[number] = _devices_held(crowd, jobs[number])
        elif quantity == "waiting_devices":
            members_of[number], came[number], spreads[number], coming = _waiting(crowd, jobs[number], after)
            waiting[number] = coming, _sharpness(crowd, _all_of([jobs[number]], [crowd.submitted]))[0]
    members = _all_of(members_of, came)
    plain = [number for number in range(len(members_of)) if number not in spreads]
    spreads |= dict(zip(plain, _demanded(crowd, [members_of[number] for number in plain]), strict=True))
    present = crowd.present[members.job]
    ends = [members.summed(np.where(members.came <= np.array(then)[members.series], present, 0.0))]
    ends.append(members.summed(np.where(members.came <= 0, present, 0.0)))
    low, high = np.minimum(*ends), np.maximum(*ends)
    announced = members.summed(np.where(members.came[:, None] > 0, crowd.moments[0][members.job], 0.0))
    sizes, arrivals, shape = _arrivals(crowd, members, after)
    sharp = _sharpness(crowd, members)
    for number, (coming, known) in waiting.items():
        announced[number], sharp[number] = coming, known
    return [
        Foreseen(
            spreads[number],
            float(low[number]),
            float(high[number]),
            sizes[number],
            arrivals[number],
            shape[number],
            announced[number],
            sharp[number],
        )
        for number in range(len(members_of))
    ]


_NOBODY: Whole = np.zeros(0, dtype=np.int64)


def matched(series: "Sequence[documents.DemandSeries]", jobs: "Sequence[documents.ForeseenJob]") -> list[Whole]:
    """Numbers of the jobs of each series: all that agree with what it names."""
    tables: dict[tuple[str, ...], dict[tuple[str | None, ...], list[int]]] = {}
    numbers = []
    for entry in series:
        named = tuple(name for name in NAMES if name in entry)
        if named not in tables:
            table: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
            for number, job in enumerate(jobs):
                names = {"domain": job.get("domain"), "tenant": job.get("tenant"), "job": job["id"]}
                table[tuple(names[name] for name in named)].append(number)
            tables[named] = table
        of_it = {"domain": entry.get("domain"), "tenant": entry.get("tenant"), "job": entry.get("job")}
        numbers.append(np.array(tables[named].get(tuple(of_it[name] for name in named), []), dtype=np.int64))
    return numbers


def shifts(
    series: "documents.DemandSeries", events: "Sequence[documents.KnownEvent]", now: float, after: Floats
) -> Floats:
    """Devices that known events add to a series at instants after now, T; what holds now is in the series already."""
    moved = np.zeros(len(after))
    touched = TOUCHED.get(series["quantity"], set())
    for event in events:
        if event["kind"] not in touched or "devices" not in event or "job" in series:
            continue
        if any(name in event and event[name] != series.get(name) for name in ("domain", "tenant")):
            continue
        begin, end = seconds(event["begins_at"]) - now, seconds(event["ends_at"]) - now
        then = ((begin <= after) & (after < end)).astype(float)
        moved += ADDS[event["kind"]] * event["devices"] * (then - float(begin <= 0 < end))
    return moved


WIDEST = 5.0
"""Widest side in logarithms; an interval from zero would be wider than any."""

MIN_DISTANCE = 1e-4
"""A coverage closer to zero or one than this says nothing of a width."""


@dataclass(frozen=True)
class Spans:
    """Durations of N periods.

    Attributes:
        median: Seconds, N.
        below: Standard deviation of the logarithm below the median, N.
        above: The same above it, N.
    """

    median: Floats
    below: Floats
    above: Floats

    @staticmethod
    def of(estimates: "Sequence[documents.Estimate]") -> "Spans":
        """Durations that estimates tell of."""
        raw = [
            (estimate["expected"], estimate["low"], estimate["high"], estimate["coverage"]) for estimate in estimates
        ]
        median, low, high, coverage = np.array(raw, dtype=float).reshape(-1, 4).T
        ends = ndtri((1 + np.clip(coverage, MIN_DISTANCE, 1 - MIN_DISTANCE)) / 2)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            below, above = np.log(median / low) / ends, np.log(high / median) / ends
        sides = (np.clip(np.nan_to_num(side, nan=0.0, posinf=WIDEST), 0.0, WIDEST) for side in (below, above))
        return Spans(median, *sides)

    def within(self, seconds: Floats) -> Floats:
        """Chance that a period is over after so many seconds, N × T for seconds of N × T; zero before zero."""
        median, below, above = self.median[:, None], self.below[:, None], self.above[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far = np.log(np.maximum(seconds, 0.0) / median)
            scores = far / np.where(far < 0, below, above)
        over: Floats = ndtr(scores)
        # a duration that is sure, or none at all, ends at its instant
        sharp = np.isnan(scores)
        over = np.where(sharp, (seconds >= median).astype(float), over)
        return np.where(seconds < 0, 0.0, over)

    def at(self, scores: Floats) -> Floats:
        """Durations at standard normal scores, N × M for scores of N × M or M."""
        width = np.where(scores < 0, self.below[:, None], self.above[:, None])
        drawn: Floats = self.median[:, None] * np.exp(width * scores)
        return drawn


GIVEN_UP = 1e-3
"""Chance to last so long below which it is not believed that a period holds still: then nobody measures it."""


@dataclass(frozen=True)
class Standing:
    """Where J jobs stand.

    Attributes:
        begins: Seconds from now at which the first period that is not over begins, negative where it has.
        over: How many periods are over.
        holds: Whether the first period that is not over is known to hold now.
        waits: Who waits, or is to come where others wait.
        exposure: Seconds of waiting that have been seen, where a job waits.
        starts: Starts seen in them, where a job waits, one at least.
    """

    begins: Floats
    over: Whole
    holds: Flags
    waits: Flags
    exposure: Floats
    starts: Floats

    @staticmethod
    def plain(jobs: "Sequence[documents.ForeseenJob]", now: float) -> "Standing":
        """Jobs whose periods are laid from their start, or, while they wait, from their submission or now."""
        count = len(jobs)
        begins = np.array([_begin(job, now) for job in jobs], dtype=float)
        none = np.zeros(count, dtype=bool)
        return Standing(begins, np.zeros(count, dtype=np.int64), none, none, np.zeros(count), np.ones(count))

    @staticmethod
    def seen(jobs: "Sequence[documents.ForeseenJob]", now: float) -> "Standing":
        """Jobs as they stand by what the request tells of all of them."""
        plain = Standing.plain(jobs, now)
        begins, over, holds = plain.begins.copy(), plain.over.copy(), plain.holds.copy()
        measured = False
        for number, job in enumerate(jobs):
            if "started_at" not in job or begins[number] >= 0:
                continue
            done, lasted = _done(job, -begins[number])
            over[number] = done
            begins[number] += lasted
            measured |= bool(done) and not _sure(job["periods"][done]["duration"])
        if measured:
            holds = _holds_still(jobs, begins, over)
        waits, exposure, starts = _wait_evidence(jobs, now)
        return Standing(begins, over, holds, waits, exposure, starts)


def remaining(standing: Standing, jobs: Whole, levels: Floats) -> Floats:
    """Seconds that jobs still wait, at levels of their distributions: J × L for L or J × L levels; zero elsewhere."""
    exposure, starts = standing.exposure[jobs, None], standing.starts[jobs, None]
    with np.errstate(over="ignore"):
        still = exposure * np.expm1(-np.log1p(-levels) / starts)
    return np.where(standing.waits[jobs, None], still, 0.0)


def truncated(spans: Spans, run: Floats, levels: Floats) -> Floats:
    """Durations, at levels of their distributions, that are known to be longer than so many seconds, J × L."""
    left = 1 - spans.within(run[:, None])
    beyond = np.clip(left * (1 - levels), 1e-300, 1 - 1e-16)
    durations: Floats = np.maximum(spans.at(-ndtri(beyond)), run[:, None])
    return durations


CASES = 256

DOUBT = 1e-3
"""Chance that an estimate is wrong altogether. What has lasted so long then lasts as long again in every second case,
so that a job which outlives its estimate is not given up at once."""

SURE = 1e-12
"""The same for a waveform, which follows what is told."""

CASES_TOGETHER = 1_000_000
"""Most numbers in a table of cases."""


def courses(
    jobs: "Sequence[documents.ForeseenJob]",
    now: float,
    after: Floats,
    doubt: float = DOUBT,
    standing: Standing | None = None,
) -> Courses:
    """Follow jobs.

    Args:
        jobs: Which.
        now: Present instant, seconds since 1970.
        after: Seconds from now, T.
        doubt: Chance that an estimate is wrong altogether.
        standing: Where jobs stand; without it their periods are laid as they are told.
    """
    standing = Standing.plain(jobs, now) if standing is None else standing
    lengths = np.array([len(job["periods"]) for job in jobs], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(lengths)])[:-1] + standing.over
    spans = Spans.of([period["duration"] for job in jobs for period in job["periods"]])
    devices = np.array([period["devices"] for job in jobs for period in job["periods"]], dtype=float)
    chance = np.zeros((len(devices), len(after) + 1))
    instants = np.concatenate([[0.0], after])
    left = lengths - standing.over
    drawn = standing.waits | (left > 1)
    for length, by_cases in sorted(set(zip(left.tolist(), drawn.tolist(), strict=True))):
        alike = np.flatnonzero((left == length) & (drawn == by_cases))
        most = max(1, CASES_TOGETHER // (length * CASES if by_cases else len(instants)))
        for some in (alike[number : number + most] for number in range(0, len(alike), most)):
            rows = first[some][:, None] + np.arange(length)
            picked = Spans(spans.median[rows], spans.below[rows], spans.above[rows])
            run = instants - standing.begins[some][:, None]
            over = _ends(picked, run, standing, some) if by_cases else _only(picked, run)
            chance[rows] = _followed(picked, run, over, doubt)
    return Courses(np.repeat(np.arange(len(jobs)), lengths), devices, chance[:, 1:], chance[:, 0], standing.begins)


@dataclass(frozen=True)
class _Members:
    """Jobs of some series, side by side: N pairs, by series.

    Attributes:
        series: Number of the series, rising, N.
        job: Number of the job, N.
        came: Seconds from now from which it counts, N.
        count: How many series there are.
    """

    series: Whole
    job: Whole
    came: Floats
    count: int

    def summed(self, values: Floats) -> Floats:
        """Sums over the jobs of each series, for values of N or N × T."""
        if values.ndim == 1:
            sums: Floats = np.bincount(self.series, values, self.count).astype(np.float64)
            return sums
        return np.stack([np.bincount(self.series, column, self.count) for column in values.T], axis=1)


def _all_of(jobs: Sequence[Whole], came: Sequence[Floats]) -> _Members:
    series = np.repeat(np.arange(len(jobs)), [len(some) for some in jobs])
    since = [all_came[some] for some, all_came in zip(jobs, came, strict=False)]
    return _Members(series, np.concatenate([*jobs, _NOBODY]), np.concatenate([*since, np.zeros(0)]), len(jobs))


def _demanded(crowd: Crowd, jobs: Sequence[Whole]) -> list[Spread]:
    """What the jobs of each series hold together."""
    courses, lengths = crowd.courses, np.diff(np.append(crowd.first, len(crowd.courses.job)))
    number = np.concatenate([*jobs, _NOBODY])
    owner = np.repeat(np.arange(len(jobs)), [len(some) for some in jobs])
    count = lengths[number]
    rows = np.repeat(crowd.first[number] - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(count.sum())
    owners = np.repeat(owner, count)
    return totals(owners, courses.job[rows], courses.devices[rows], courses.chance[rows], len(jobs))


def _devices_held(crowd: Crowd, jobs: Whole) -> tuple[Whole, Floats, Spread]:
    """Who holds devices, since when, and what they will hold: whoever waits takes what the others give back."""
    chosen = np.isin(np.arange(len(crowd.submitted)), jobs)
    runs = chosen & ~crowd.queues
    waiting = float(crowd.needs[chosen & crowd.queues].sum())
    spread = crowd.spread(runs)
    points = spread.first[:, None] + spread.unit * np.arange(spread.mass.shape[1])
    present = float(crowd.present[runs].sum())
    taken = np.minimum(points + waiting, np.maximum(points, present)) if waiting else points
    came = np.where(np.isinf(crowd.started), crowd.submitted, crowd.started)
    return np.flatnonzero(runs), came, _laid(taken, spread)


def _waiting(crowd: Crowd, jobs: Whole, after: Floats) -> tuple[Whole, Floats, Spread, Floats]:
    """Who waits, since when, for how much they will, and what is announced, T."""
    chosen = np.isin(np.arange(len(crowd.submitted)), jobs)
    queue, runs = chosen & crowd.queues, chosen & ~crowd.queues
    coming = np.where((crowd.submitted > 0) & chosen, crowd.needs, 0.0)
    announced = np.array([coming[crowd.submitted <= one].sum() for one in after])
    running = crowd.spread(runs & (crowd.submitted <= 0))
    points = running.first[:, None] + running.unit * np.arange(running.mass.shape[1])
    waiting, present = float(crowd.needs[queue].sum()), float(crowd.present[runs].sum())
    left = np.maximum(waiting + announced[:, None] + points - present, 0.0)
    return np.flatnonzero(queue), crowd.submitted, _laid(left, running), announced


def _arrivals(crowd: Crowd, members: _Members, after: Floats) -> tuple[list[Floats], Floats, Floats]:
    """Devices of those that came of late and are still there, how many come over each horizon and the shape, S × T.

    Those that came within a horizon and are still there are what the next horizon brings. Where they are few, those of
    a longer time stand for them: of the latest ENOUGH, or of a day.
    """
    devices, ages = crowd.present[members.job], -members.came
    late = np.flatnonzero((devices > TINY) & (ages >= 0) & (ages < max(LATELY, float(after.max()))))
    late = late[np.lexsort((ages[late], members.series[late]))]
    series, ages, devices = members.series[late], ages[late], devices[late]
    count = np.bincount(series, minlength=members.count)
    begin = np.cumsum(count) - count
    within = np.stack([np.bincount(series[ages < one], minlength=members.count) for one in after.tolist()], axis=1)
    few = (count < ENOUGH)[:, None]
    # the one at which counting ends is not counted
    tenth = np.full(members.count, np.inf)
    tenth[~few[:, 0]] = ages[begin[~few[:, 0]] + ENOUGH - 1]
    over = np.maximum(after, np.where(few, LATELY, tenth[:, None]))
    usual = np.where(few, count[:, None], ENOUGH - 1.0)
    counted = np.where((within >= ENOUGH) | (over <= after), within, usual)
    numbers = np.maximum(ENOUGH, within.max(axis=1, initial=0))
    sizes = [
        devices[start : start + most]
        for start, most in zip(begin.tolist(), np.minimum(count, numbers).tolist(), strict=True)
    ]
    shapes = np.stack([_shapes(series, ages, count, begin, one) for one in after.tolist()], axis=1)
    return sizes, counted * after / over, shapes


def _shapes(series: Whole, ages: Floats, count: Whole, begin: Whole, horizon: float) -> Floats:
    """How evenly some came: the shape of the gamma distribution by which their rate varies from horizon to horizon, S.

    Its inverse is the mean of what each horizon back in time shows by moments, and TOGETHER counts as one of them.
    """
    shapes_of_gamma = np.full(len(count), TOGETHER)
    some = count > 0
    if not some.any():
        return shapes_of_gamma
    oldest = ages[(begin + count - 1)[some]]
    width = np.ones(len(count))
    width[some] = np.maximum(np.maximum(horizon, oldest / MOST_SPANS), TINY)
    place = (ages / width[series]).astype(np.int64)
    spans = np.ones(len(count))
    spans[some] = place[(begin + count - 1)[some]] + 1
    _, which, alike = np.unique(series * (2 * MOST_SPANS) + place, return_index=True, return_counts=True)
    squares = np.bincount(series[which], alike.astype(float) ** 2, len(count))
    mean = count / spans
    beyond = squares - mean * count - (spans - 1) * mean
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = 1 / np.maximum((1 / TOGETHER + beyond / mean**2) / spans, TINY)
    return np.where(some, shape, shapes_of_gamma)


def _sharpness(crowd: Crowd, members: _Members) -> Floats:
    """One less the variance of what jobs will hold over the mean square of what it differs by from now, S × T.

    What differs by no more than if each left with the chance SETTLED counts as known.
    """
    mean, square, change = crowd.moments
    present = crowd.present[members.job]
    changed = members.summed(np.maximum(change[members.job], 0.0))
    unsure = members.summed(np.maximum(square - mean**2, 0.0)[members.job])
    # where hardly anything may change, that is known
    changed = changed + SETTLED * members.summed(present**2)[:, None] + TINY
    sharpness: Floats = 1 - unsure / changed
    return np.clip(sharpness, 0.0, 1.0)


def _laid(values: Floats, spread: Spread) -> Spread:
    """The distribution whose points have been moved to other values, none below zero."""
    mass = np.zeros((len(values), int(np.ceil(values.max() / spread.unit)) + 1))
    for row, places, weight in zip(mass, values, spread.mass, strict=True):
        np.add.at(row, np.round(places / spread.unit).astype(np.int64), weight)
    return Spread(spread.unit, np.zeros(len(values)), mass)


def _begin(job: "documents.ForeseenJob", now: float) -> float:
    if "started_at" in job:
        return seconds(job["started_at"]) - now
    return max(seconds(job["submitted_at"]) - now, 0.0)


def _sure(duration: "documents.Estimate") -> bool:
    return bool(duration["low"] == duration["high"])


def _done(job: "documents.ForeseenJob", run: float) -> tuple[int, float]:
    """How many sure periods are over, but for the last one, and how long they took."""
    lasted, done = 0.0, 0
    for period in job["periods"][:-1]:
        ends = lasted + period["duration"]["expected"]
        if not _sure(period["duration"]) or ends > run:
            break
        lasted, done = ends, done + 1
    return done, lasted


def _holds_still(jobs: "Sequence[documents.ForeseenJob]", begins: Floats, over: Whole) -> Flags:
    """Whose present period is known to hold still."""
    spans = Spans.of([job["periods"][done]["duration"] for job, done in zip(jobs, over.tolist(), strict=True)])
    lasting = 1 - spans.within(-begins[:, None])[:, 0]
    flags: Flags = (begins < 0) & (lasting > GIVEN_UP)
    return flags


def _wait_evidence(jobs: "Sequence[documents.ForeseenJob]", now: float) -> tuple[Flags, Floats, Floats]:
    """Who waits, and how much waiting and how many starts have been seen in its domain."""
    waits, exposure, starts = np.zeros(len(jobs), dtype=bool), np.zeros(len(jobs)), np.ones(len(jobs))
    submitted = np.array([seconds(job["submitted_at"]) - now for job in jobs], dtype=float)
    started = np.array(["started_at" in job for job in jobs], dtype=bool)
    until = np.array([seconds(job["started_at"]) - now if "started_at" in job else 0.0 for job in jobs], dtype=float)
    lasted = until - submitted
    domains: dict[str | None, list[int]] = defaultdict(list)
    for number, job in enumerate(jobs):
        domains[job.get("domain")].append(number)
    for members in domains.values():
        own = np.array(members)
        queue = own[~started[own] & (submitted[own] <= 0)]
        if not len(queue):
            continue
        jobs_here = own[submitted[own] <= 0]
        ages = lasted[jobs_here]
        # who comes later waits as whoever came last
        for number in own[~started[own]].tolist():
            age = lasted[number] if submitted[number] <= 0 else lasted[queue].min()
            as_long = (ages >= age) & (jobs_here != number)
            waits[number] = True
            exposure[number] = age + (ages[as_long] - age).sum()
            starts[number] = 1 + np.count_nonzero(started[jobs_here[as_long]])
    return waits, exposure, starts


def _followed(spans: Spans, run: Floats, over: Floats, doubt: float) -> Floats:
    """Chances that periods hold, J × K × T, given those that they are over; jobs have run for J × T seconds."""
    present = (1 - doubt) * (1 - over)
    total = np.maximum(spans.median.sum(axis=1), 1.0)[:, None]
    present[:, -1] += doubt * total / (total + np.maximum(run, 0.0))
    chances = np.diff(present, axis=1, prepend=0.0)
    known = np.where(run[:, :1] > 0, present[:, -1, :1], 1.0)
    chances = np.where((run >= 0)[:, None], chances / known[:, None], 0.0)
    clipped: Floats = np.clip(chances, 0.0, 1.0)
    return clipped


def _only(spans: Spans, run: Floats) -> Floats:
    return Spans(spans.median[:, 0], spans.below[:, 0], spans.above[:, 0]).within(run)[:, None]


def _ends(spans: Spans, run: Floats, standing: Standing, numbers: Whole) -> Floats:
    """Chance that each period has ended, J × K × T, from cases."""
    jobs, length = spans.median.shape
    flat = Spans(spans.median.ravel(), spans.below.ravel(), spans.above.ravel())
    durations = flat.at(np.tile(_scores(length), (jobs, 1))).reshape(jobs, length, CASES)
    holds = standing.holds[numbers]
    if holds.any():
        first = Spans(spans.median[holds, 0], spans.below[holds, 0], spans.above[holds, 0])
        durations[holds, 0] = truncated(first, run[holds, 0], ndtr(_scores(1)[0]))
    durations[:, 0] += remaining(standing, numbers, ndtr(_scores(length + 1)[-1]))
    ends = np.cumsum(durations, axis=1)
    over = np.empty((jobs, length, run.shape[1]))
    for column, instant in enumerate(run.T):
        over[:, :, column] = np.count_nonzero(ends <= instant[:, None, None], axis=2)
    return over / CASES


@cache
def _scores(periods: int) -> Floats:
    """Normal scores of cases, periods × CASES; each period has every stratum once."""
    middles = ndtri((np.arange(CASES) + 0.5) / CASES)
    return np.stack([np.random.default_rng([1979, period]).permutation(middles) for period in range(periods)])
