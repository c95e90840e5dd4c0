"""What the structure of jobs says of a series: what they hold later, what they hold now, and who came of late."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kuayu.forecast.courses import Courses
from kuayu.forecast.totals import Spread, total
from kuayu.forecast.values import Flags, Floats, Plain, Whole, seconds

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
    def of(jobs: Sequence[Plain], made: Courses, now: float) -> "Crowd":
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


def foresee(quantity: str, crowd: Crowd, jobs: Whole, then: float, after: Floats) -> Foreseen:
    """Follow the jobs of a series.

    Args:
        quantity: What it counts, one of QUANTITIES.
        crowd: All jobs.
        jobs: Numbers of those that count for it.
        then: Seconds from now of its last value, not above nought.
        after: Seconds from now, T.
    """
    kept = np.zeros(len(crowd.submitted), dtype=bool)
    kept[jobs] = True
    if quantity == "demanded_devices":
        came = np.minimum(crowd.submitted, crowd.started)
        return _foreseen(crowd, kept, came, crowd.spread(kept), then, after)
    runs = kept & ~crowd.queues
    rows = crowd.rows(runs)
    present = float((crowd.courses.devices * crowd.courses.now)[rows].sum())
    queue = kept & crowd.queues
    waiting = float(crowd.needs[queue].sum())
    held = crowd.spread(runs)
    points = held.first[:, None] + held.unit * np.arange(held.mass.shape[1])
    if quantity == "held_devices":
        # whoever waits takes what the others give back
        came = np.where(np.isinf(crowd.started), crowd.submitted, crowd.started)
        taken = np.minimum(points + waiting, np.maximum(points, present)) if waiting else points
        return _foreseen(crowd, runs, came, _laid(taken, held), then, after)
    coming = np.where((crowd.submitted > 0) & kept, crowd.needs, 0.0)
    announced = np.array([coming[crowd.submitted <= one].sum() for one in after])
    running = crowd.spread(runs & (crowd.submitted <= 0))
    points = running.first[:, None] + running.unit * np.arange(running.mass.shape[1])
    left = np.maximum(waiting + announced[:, None] + points - present, 0.0)
    made = _foreseen(crowd, queue, crowd.submitted, _laid(left, running), then, after)
    return replace(made, announced=announced, sharpness=_sharpness(crowd, kept))


def _foreseen(crowd: Crowd, kept: Flags, came: Floats, spread: Spread, then: float, after: Floats) -> Foreseen:
    """What jobs say, where they count from the instants at which they came, J."""
    courses, rows = crowd.courses, crowd.rows(kept)
    present = courses.devices[rows] * courses.now[rows]
    since = came[courses.job[rows]]
    later = courses.devices[rows, None] * courses.chance[rows]
    ends = float(present[since <= then].sum()), float(present[since <= 0].sum())
    sizes, arrivals, shape = _arrivals(courses, rows, came, after)
    return Foreseen(
        spread,
        min(ends),
        max(ends),
        sizes,
        arrivals,
        shape,
        later[since > 0].sum(axis=0),
        _sharpness(crowd, kept),
    )


def _arrivals(courses: Courses, rows: Whole, came: Floats, after: Floats) -> tuple[Floats, Floats, Floats]:
    """Devices of those that came of late and are still there, how many come over each horizon, T, and the shape, T.

    Those that came within a horizon and are still there are what the next horizon brings. Where they are few, those of
    a longer time stand for them: of the latest ENOUGH, or of a day.
    """
    present = (courses.devices * courses.now)[rows]
    held = np.bincount(courses.job[rows], present, minlength=len(came)).astype(np.float64)
    late = np.flatnonzero((held > TINY) & (came <= 0) & (came > -max(LATELY, float(after.max()))))
    late = late[np.argsort(-came[late], kind="stable")]
    ages = -came[late]
    within = np.searchsorted(ages, after, side="left").astype(float)
    if len(late) < ENOUGH:
        over, usual = np.maximum(after, LATELY), float(len(late))
    else:
        # the one at which counting ends is not counted
        over, usual = np.maximum(after, ages[ENOUGH - 1]), ENOUGH - 1.0
    counted = np.where((within >= ENOUGH) | (over <= after), within, usual)
    sizes: Floats = held[late[: int(max(ENOUGH, within.max(initial=0)))]]
    return sizes, counted * after / over, np.array([_shape(ages, one) for one in after.tolist()])


def _shape(ages: Floats, horizon: float) -> float:
    """How evenly some came: the shape of the gamma distribution by which their rate varies from horizon to horizon.

    Its inverse is the mean of what each horizon back in time shows by moments, and TOGETHER counts as one of them.
    """
    if not len(ages):
        return TOGETHER
    came = np.bincount((ages / max(horizon, ages[-1] / MOST_SPANS, TINY)).astype(np.int64))
    mean = float(came.mean())
    beyond = float(np.square(came - mean).sum()) - (len(came) - 1) * mean
    return 1 / max((1 / TOGETHER + beyond / mean**2) / len(came), TINY)


def _sharpness(crowd: Crowd, kept: Flags) -> Floats:
    """One less the variance of what jobs will hold over the mean square of what it differs by from now, T.

    What differs by no more than if each left with the chance SETTLED counts as known.
    """
    courses, rows = crowd.courses, crowd.rows(kept)
    if not len(rows):
        return np.ones(courses.chance.shape[1])
    starts = np.flatnonzero(np.diff(courses.job[rows], prepend=-1))
    devices, chance = courses.devices[rows, None], courses.chance[rows]
    mean, square = np.add.reduceat(devices * chance, starts), np.add.reduceat(devices**2 * chance, starts)
    now = np.add.reduceat(devices * courses.now[rows, None], starts)
    change = (square - 2 * now * mean + now**2).sum(axis=0)
    unsure = np.maximum(square - mean**2, 0.0).sum(axis=0)
    # where hardly anything may change, that is known
    change = change + SETTLED * float((now**2).sum()) + TINY
    found: Floats = 1 - unsure / change
    return np.clip(found, 0.0, 1.0)


def _laid(values: Floats, held: Spread) -> Spread:
    """The distribution whose points have been moved to other values, none below nought."""
    mass = np.zeros((len(values), int(np.ceil(values.max() / held.unit)) + 1))
    for row, places, weight in zip(mass, values, held.mass, strict=True):
        np.add.at(row, np.round(places / held.unit).astype(np.int64), weight)
    return Spread(held.unit, np.zeros(len(values)), mass)
