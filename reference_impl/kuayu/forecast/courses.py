"""How long periods last: log-normal through the median and both ends of an ``Estimate``.

Where the ends lie at unlike ratios from the median, each side has its own width (a split log-normal), so that all three
values of the estimate hold. Its median stays the median.

Where jobs stand at the present instant: which of their periods are over, and how long they will still wait.

Who reports a job measures what is over, so a period that has ended has a sure duration. Where a request shows that
(a job has sure periods behind it and unsure ones before it), the first period that is not sure and over is the present
one, and it is known to hold still.

Who waits goes on waiting. Waits have no scale of their own: without other evidence, who has waited for so long waits as
long again in every second case (the posterior of an exponential law seen once, under a prior that knows no scale).
Others of the domain that waited as long are further evidence: each that started since then is one more start, and the
time that each waited beyond it one more exposure.

Courses of jobs: the chance that each of their periods holds at given instants.

A job with one period left is followed exactly. Where there are several, or it waits for an unknown time, ends are sums
of independent durations, of which CASES stratified cases are laid side by side, always the same ones (M. D. McKay et
al., Technometrics 21(2), 1979). That a job is still there is known of those that run, and each chance is taken on that
condition.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from kuayu.forecast.requests import Flags, Floats, Whole, seconds

if TYPE_CHECKING:
    from kuayu_schemas import documents

WIDEST = 5.0
"""Widest side in logarithms; an interval from nought would be wider than any."""

MIN_DISTANCE = 1e-4
"""A coverage closer to nought or one than this says nothing of a width."""


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
        """Chance that a period is over after so many seconds, N × T for seconds of N × T; nought before nought."""
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
            holds = _held(jobs, begins, over)
        waits, exposure, starts = _waiting(jobs, now)
        return Standing(begins, over, holds, waits, exposure, starts)


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


def _held(jobs: "Sequence[documents.ForeseenJob]", begins: Floats, over: Whole) -> Flags:
    """Whose present period is known to hold still."""
    spans = Spans.of([job["periods"][done]["duration"] for job, done in zip(jobs, over.tolist(), strict=True)])
    lasting = 1 - spans.within(-begins[:, None])[:, 0]
    found: Flags = (begins < 0) & (lasting > GIVEN_UP)
    return found


def _waiting(jobs: "Sequence[documents.ForeseenJob]", now: float) -> tuple[Flags, Floats, Floats]:
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


def remaining(standing: Standing, jobs: Whole, levels: Floats) -> Floats:
    """Seconds that jobs still wait, at levels of their distributions: J × L for L or J × L levels; nought elsewhere."""
    exposure, starts = standing.exposure[jobs, None], standing.starts[jobs, None]
    with np.errstate(over="ignore"):
        still = exposure * np.expm1(-np.log1p(-levels) / starts)
    return np.where(standing.waits[jobs, None], still, 0.0)


def truncated(spans: Spans, run: Floats, levels: Floats) -> Floats:
    """Durations, at levels of their distributions, that are known to be longer than so many seconds, J × L."""
    left = 1 - spans.within(run[:, None])
    beyond = np.clip(left * (1 - levels), 1e-300, 1 - 1e-16)
    found: Floats = np.maximum(spans.at(-ndtri(beyond)), run[:, None])
    return found


CASES = 256

DOUBT = 1e-3
"""Chance that an estimate is wrong altogether. What has lasted so long then lasts as long again in every second case,
so that a job which outlives its estimate is not given up at once."""

SURE = 1e-12
"""The same for a waveform, which follows what is told."""

TOGETHER = 1_000_000
"""Most numbers in a table of cases."""


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
        most = max(1, TOGETHER // (length * CASES if by_cases else len(instants)))
        for some in (alike[number : number + most] for number in range(0, len(alike), most)):
            rows = first[some][:, None] + np.arange(length)
            picked = Spans(spans.median[rows], spans.below[rows], spans.above[rows])
            run = instants - standing.begins[some][:, None]
            over = _ends(picked, run, standing, some) if by_cases else _only(picked, run)
            chance[rows] = _followed(picked, run, over, doubt)
    return Courses(np.repeat(np.arange(len(jobs)), lengths), devices, chance[:, 1:], chance[:, 0], standing.begins)


def _followed(spans: Spans, run: Floats, over: Floats, doubt: float) -> Floats:
    """Chances that periods hold, J × K × T, given those that they are over; jobs have run for J × T seconds."""
    present = (1 - doubt) * (1 - over)
    total = np.maximum(spans.median.sum(axis=1), 1.0)[:, None]
    present[:, -1] += doubt * total / (total + np.maximum(run, 0.0))
    held = np.diff(present, axis=1, prepend=0.0)
    known = np.where(run[:, :1] > 0, present[:, -1, :1], 1.0)
    held = np.where((run >= 0)[:, None], held / known[:, None], 0.0)
    clipped: Floats = np.clip(held, 0.0, 1.0)
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
