"""What the structure of jobs says of series: what they hold later, what they hold now, and who came of late.

1. Jobs and events count for the series that name what they name.
2. A job holds the devices of a period with the chance that the period holds; jobs are independent of each other.
3. Those that came within the last horizon and are still there are what the next horizon brings.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kuayu.forecast.courses import Courses
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
    def of(jobs: "Sequence[documents.ForeseenJob]", made: Courses, now: float) -> "Crowd":
        """Jobs with their courses."""
        submitted = [seconds(job["submitted_at"]) - now for job in jobs]
        started = [seconds(job["started_at"]) - now if "started_at" in job else np.inf for job in jobs]
        return Crowd(made, np.array(submitted, dtype=float), np.array(started, dtype=float))

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
        found: Floats = np.add.reduceat(self.courses.devices * self.courses.now, self.first)
        return found

    @cached_property
    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Devices that jobs hold later, on average and squared, and the mean square of what they change by, J × T."""
        devices, chance = self.courses.devices[:, None], self.courses.chance
        mean, square = (np.add.reduceat(devices**power * chance, self.first) for power in (1, 2))
        now = self.present[:, None]
        return mean, square, square - 2 * now * mean + now**2

    def rows(self, kept: Flags) -> Whole:
        """Periods of jobs."""
        return np.flatnonzero(kept[self.courses.job])

    def spread(self, kept: Flags) -> Spread:
        """What jobs hold together."""
        rows = self.rows(kept)
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
        sharpness: How much of what jobs will do is known, T: one where each surely leaves or stays, nought where any
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
            found: Floats = np.bincount(self.series, values, self.count).astype(np.float64)
            return found
        return np.stack([np.bincount(self.series, column, self.count) for column in values.T], axis=1)


def foresee(
    quantities: Sequence[str], crowd: Crowd, jobs: Sequence[Whole], then: Sequence[float], after: Floats
) -> list[Foreseen]:
    """Follow the jobs of series.

    Args:
        quantities: What each counts, one of QUANTITIES.
        crowd: All jobs.
        jobs: Numbers of those that count for each.
        then: Seconds from now of its last value, not above nought.
        after: Seconds from now, T.
    """
    kept = list(jobs)
    came = [np.minimum(crowd.submitted, crowd.started)] * len(kept)
    spreads: dict[int, Spread] = {}
    waiting: dict[int, tuple[Floats, Floats]] = {}
    for number, quantity in enumerate(quantities):
        if quantity == "held_devices":
            kept[number], came[number], spreads[number] = _held(crowd, jobs[number])
        elif quantity == "waiting_devices":
            kept[number], came[number], spreads[number], coming = _waiting(crowd, jobs[number], after)
            waiting[number] = coming, _sharpness(crowd, _all_of([jobs[number]], [crowd.submitted]))[0]
    members = _all_of(kept, came)
    plain = [number for number in range(len(kept)) if number not in spreads]
    spreads |= dict(zip(plain, _demanded(crowd, [kept[number] for number in plain]), strict=True))
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
        for number in range(len(kept))
    ]


def _all_of(jobs: Sequence[Whole], came: Sequence[Floats]) -> _Members:
    series = np.repeat(np.arange(len(jobs)), [len(some) for some in jobs])
    since = [all_came[some] for some, all_came in zip(jobs, came, strict=False)]
    return _Members(series, np.concatenate([*jobs, _NOBODY]), np.concatenate([*since, np.zeros(0)]), len(jobs))


_NOBODY: Whole = np.zeros(0, dtype=np.int64)


def _demanded(crowd: Crowd, jobs: Sequence[Whole]) -> list[Spread]:
    """What the jobs of each series hold together."""
    courses, lengths = crowd.courses, np.diff(np.append(crowd.first, len(crowd.courses.job)))
    number = np.concatenate([*jobs, _NOBODY])
    owner = np.repeat(np.arange(len(jobs)), [len(some) for some in jobs])
    count = lengths[number]
    rows = np.repeat(crowd.first[number] - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(count.sum())
    owners = np.repeat(owner, count)
    return totals(owners, courses.job[rows], courses.devices[rows], courses.chance[rows], len(jobs))


def _held(crowd: Crowd, jobs: Whole) -> tuple[Whole, Floats, Spread]:
    """Who holds devices, since when, and what they will hold: whoever waits takes what the others give back."""
    kept = np.isin(np.arange(len(crowd.submitted)), jobs)
    runs = kept & ~crowd.queues
    waiting = float(crowd.needs[kept & crowd.queues].sum())
    held = crowd.spread(runs)
    points = held.first[:, None] + held.unit * np.arange(held.mass.shape[1])
    present = float(crowd.present[runs].sum())
    taken = np.minimum(points + waiting, np.maximum(points, present)) if waiting else points
    came = np.where(np.isinf(crowd.started), crowd.submitted, crowd.started)
    return np.flatnonzero(runs), came, _laid(taken, held)


def _waiting(crowd: Crowd, jobs: Whole, after: Floats) -> tuple[Whole, Floats, Spread, Floats]:
    """Who waits, since when, for how much they will, and what is announced, T."""
    kept = np.isin(np.arange(len(crowd.submitted)), jobs)
    queue, runs = kept & crowd.queues, kept & ~crowd.queues
    coming = np.where((crowd.submitted > 0) & kept, crowd.needs, 0.0)
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
    held, ages = crowd.present[members.job], -members.came
    late = np.flatnonzero((held > TINY) & (ages >= 0) & (ages < max(LATELY, float(after.max()))))
    late = late[np.lexsort((ages[late], members.series[late]))]
    series, ages, held = members.series[late], ages[late], held[late]
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
    kept = np.maximum(ENOUGH, within.max(axis=1, initial=0))
    sizes = [
        held[start : start + most] for start, most in zip(begin.tolist(), np.minimum(count, kept).tolist(), strict=True)
    ]
    shapes = np.stack([_shapes(series, ages, count, begin, one) for one in after.tolist()], axis=1)
    return sizes, counted * after / over, shapes


def _shapes(series: Whole, ages: Floats, count: Whole, begin: Whole, horizon: float) -> Floats:
    """How evenly some came: the shape of the gamma distribution by which their rate varies from horizon to horizon, S.

    Its inverse is the mean of what each horizon back in time shows by moments, and TOGETHER counts as one of them.
    """
    found = np.full(len(count), TOGETHER)
    some = count > 0
    if not some.any():
        return found
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
    return np.where(some, shape, found)


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
    found: Floats = 1 - unsure / changed
    return np.clip(found, 0.0, 1.0)


def _laid(values: Floats, held: Spread) -> Spread:
    """The distribution whose points have been moved to other values, none below nought."""
    mass = np.zeros((len(values), int(np.ceil(values.max() / held.unit)) + 1))
    for row, places, weight in zip(mass, values, held.mass, strict=True):
        np.add.at(row, np.round(places / held.unit).astype(np.int64), weight)
    return Spread(held.unit, np.zeros(len(values)), mass)


def matched(series: "Sequence[documents.DemandSeries]", jobs: "Sequence[documents.ForeseenJob]") -> list[Whole]:
    """Numbers of the jobs of each series: all that agree with what it names."""
    tables: dict[tuple[str, ...], dict[tuple[str | None, ...], list[int]]] = {}
    found = []
    for entry in series:
        named = tuple(name for name in NAMES if name in entry)
        if named not in tables:
            table: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
            for number, job in enumerate(jobs):
                names = {"domain": job.get("domain"), "tenant": job.get("tenant"), "job": job["id"]}
                table[tuple(names[name] for name in named)].append(number)
            tables[named] = table
        of_it = {"domain": entry.get("domain"), "tenant": entry.get("tenant"), "job": entry.get("job")}
        found.append(np.array(tables[named].get(tuple(of_it[name] for name in named), []), dtype=np.int64))
    return found


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
