"""What a waveform adds up to: cases of whole courses, laid side by side.

A sum over instants goes in steps, and few jobs make no bell; so its interval is taken from stratified cases, always the
same ones (M. D. McKay et al., Technometrics 21(2), 1979). Each job has its own order of strata for each of its periods.

The waveform of demand over a coming period, and what it will cost.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from kuayu.forecast.requests import Floats, check_waveform, rounded, seconds
from kuayu.forecast.structure import SURE, Courses, Spans, Standing, courses, truncated
from kuayu.forecast.totals import near, total

if TYPE_CHECKING:
    from kuayu_schemas import documents

MAX_CASES, MIN_CASES = 16_384, 2048
"""Cases of few jobs, and of many."""

WORK = 4_000_000
"""Periods × cases; with more periods than leave MIN_CASES cases, there are no cases."""

SEED = 1979


def drawn(jobs: "Sequence[documents.ForeseenJob]", now: float, after: Floats, weights: Floats) -> Floats | None:
    """Weighted sums of what jobs hold at instants, in equally frequent cases, rising; nothing where jobs are too many.

    Args:
        jobs: Jobs of the class ``ForeseenJob``.
        now: Present instant, seconds since 1970.
        after: Instants, seconds from now, rising, T.
        weights: Weight of a device at each, T × W.

    Returns:
        W × C.
    """
    rows = sum(len(job["periods"]) for job in jobs)
    count = min(MAX_CASES, WORK // max(rows, 1))
    if count < MIN_CASES:
        return None
    begins = Standing.plain(jobs, now).begins
    upto = np.concatenate([np.zeros((1, weights.shape[1])), np.cumsum(weights, axis=0)])
    total = np.zeros((count, weights.shape[1]))
    for number, (job, begin) in enumerate(zip(jobs, begins.tolist(), strict=True)):
        ends = begin + _ends(job, -begin, count, number)
        devices = np.array([period["devices"] for period in job["periods"]], dtype=float)
        # at the instant at which a period ends, the next one holds
        places = np.searchsorted(after, np.concatenate([np.full((1, count), max(begin, 0.0)), ends]), side="left")
        total += np.einsum("k,kcw->cw", devices, np.diff(upto[places], axis=0))
    return np.sort(total.T, axis=1)


def interval(cases: Floats, coverage: float) -> tuple[float, float]:
    """The narrowest values at which neither end leaves out more than half of what is not covered.

    Args:
        cases: Equally frequent, rising.
        coverage: Share of cases between both ends.
    """
    outside = int(np.floor(len(cases) * (1 - coverage) / 2 + 1e-9))
    outside = min(outside, (len(cases) - 1) // 2)
    return float(cases[outside]), float(cases[len(cases) - 1 - outside])


def _ends(job: "documents.ForeseenJob", run: float, count: int, number: int) -> Floats:
    """Seconds from its beginning after which each period of a job ends, in cases in which it is there now, K × C."""
    spans = Spans.of([period["duration"] for period in job["periods"]])
    length = len(spans.median)
    middles = (np.arange(count) + 0.5) / count
    levels = np.stack([np.random.default_rng([SEED, number, period]).permutation(middles) for period in range(length)])
    if run > 0 and length == 1 and float(spans.within(np.array([[run]]))[0, 0]) < 1 - SURE:
        return truncated(spans, np.array([run]), levels)
    ends: Floats = np.cumsum(spans.at(ndtri(levels)), axis=0)
    if run <= 0:
        return ends
    places = np.flatnonzero(ends[-1] > run)
    if len(places):
        chosen: Floats = ends[:, places[np.arange(count) % len(places)]]
        return chosen
    # it has outlived its estimate: it lasts as long again in every second case
    ends = np.full((length, count), run)
    ends[-1] += (float(spans.median.sum()) + run) * levels[-1] / (1 - levels[-1])
    return ends


METHOD: "documents.ForecastMethod" = {"name": "kuayu-courses", "version": "1.0.0"}

USUAL = 0.9
"""Coverage where a request states none."""

DAY, HOUR = 86_400.0, 3600.0

TOGETHER = 4_000_000
"""Most chances that are kept at once."""

MANY, CROWD = 20_000, 64
"""Chances, and jobs, from which the interval is found from moments."""


def waveform(request: "documents.WaveformRequest") -> "documents.Waveform":
    """Lay the courses of jobs over each other.

    Raises:
        kuayu.refusals.RepeatedName: Jobs share a name.
        kuayu.refusals.Impossible: Prices do not begin at midnight or do not rise.
    """
    check_waveform(request)
    request = {**request, "jobs": [job for job in request["jobs"] if "ended_at" not in job]}
    now, step, period = seconds(request["now"]), float(request["step"]), float(request["period"])
    after = (step * np.arange(int(period / step + 1e-9) + 1)).astype(np.float64)
    coverage = request.get("coverage", USUAL)
    rows = sum(len(job["periods"]) for job in request["jobs"])
    width = max(1, TOGETHER // max(rows, 1))
    parts = [courses(request["jobs"], now, after[index : index + width], SURE) for index in range(0, len(after), width)]
    ends = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
    low, high = np.concatenate([_between(part, ends) for part in parts]).T
    expected = np.round(np.concatenate([part.devices @ part.chance for part in parts]), 6)
    points: list[documents.WaveformPoint] = [
        {
            "at": instant,
            "expected": rounded(middle),
            "low": rounded(min(least, middle)),
            "high": rounded(max(most, middle)),
        }
        for instant, middle, least, most in zip(
            after.tolist(), expected.tolist(), low.tolist(), high.tolist(), strict=True
        )
    ]
    weights = [np.full(len(after), step)]
    if request.get("prices"):
        weights.append(_prices(request["prices"], now + after) * step / HOUR)
    cases = drawn(request["jobs"], now, after, np.stack(weights, axis=1))
    sums = [
        _summed(parts, after, weight, coverage)
        if cases is None
        else _counted(expected, weight, cases[number], coverage)
        for number, weight in enumerate(weights)
    ]
    document: documents.Waveform = {
        "revision": request["revision"],
        "method": METHOD,
        "points": points,
        "device_seconds": sums[0],
    }
    if len(sums) > 1:
        document["budget"] = sums[1]
    return document


def _between(part: Courses, ends: Floats) -> Floats:
    """Both ends of the interval at each instant, T × 2."""
    sure = ((part.chance < SURE) | (part.chance > 1 - SURE)).all(axis=1)
    if np.count_nonzero(~sure) * part.chance.shape[1] > MANY and len(np.unique(part.job[~sure])) >= CROWD:
        return near(part.job, part.devices, part.chance, ends)
    return total(part.job, part.devices, part.chance).at(ends)


def _prices(prices: "Sequence[documents.DevicePrice]", instants: Floats) -> Floats:
    """Price of a device and an hour at instants, seconds since 1970."""
    begins = np.array([price["begin"] for price in prices], dtype=float)
    rates = np.array([price["price"] for price in prices], dtype=float)
    prices_at: Floats = rates[np.searchsorted(begins, instants % DAY, side="right") - 1]
    return prices_at


def _counted(expected: Floats, weights: Floats, cases: Floats, coverage: float) -> "documents.Estimate":
    """Estimate of the sum of all points, weighted, from cases of it."""
    mean = float(expected @ weights)
    low, high = interval(cases, coverage)
    ends = rounded(min(low, mean)), rounded(max(high, mean))
    return {"expected": rounded(mean), "low": ends[0], "high": ends[1], "coverage": coverage}


def _summed(parts: Sequence[Courses], after: Floats, weights: Floats, coverage: float) -> "documents.Estimate":
    """Estimate of the sum of all points, weighted.

    A job that has come adds the weights of all points until its period ends, so its part of the sum is known from the
    chances alone. The periods of a job are taken to be late together, jobs to be independent, and the sum of them to be
    normal.
    """
    first = parts[0]
    if not len(first.job):
        return {"expected": 0.0, "low": 0.0, "high": 0.0, "coverage": coverage}
    starts = np.flatnonzero(np.diff(first.job, prepend=-1))
    follows = np.append(first.devices[1:], 0.0)
    follows[np.append(starts[1:], len(first.job)) - 1] = 0.0
    once, twice = np.zeros(len(first.job)), np.zeros(len(first.job))
    upto = np.cumsum(weights)
    # points before a job comes are no part of it
    skipped = np.append(0.0, upto)[np.searchsorted(after, np.maximum(first.begins, 0.0))][first.job]
    mean, position = 0.0, 0
    for part in parts:
        some = slice(position, position + part.chance.shape[1])
        position = some.stop
        mean += float(part.devices @ part.chance @ weights[some])
        lasts = np.cumsum(part.chance, axis=0)
        lasts -= np.repeat(lasts[starts] - part.chance[starts], np.diff(np.append(starts, len(part.job))), axis=0)
        once += lasts @ weights[some]
        twice += lasts @ (weights[some] * (2 * upto[some] - weights[some])) - 2 * skipped * (lasts @ weights[some])
    spread = np.sqrt(np.maximum(twice - once**2, 0.0))
    half = float(np.sqrt(np.square(np.add.reduceat((first.devices - follows) * spread, starts)).sum()))
    half *= float(ndtri((1 + coverage) / 2))
    ends = rounded(max(mean - half, 0.0)), rounded(mean + half)
    return {"expected": rounded(mean), "low": ends[0], "high": ends[1], "coverage": coverage}
