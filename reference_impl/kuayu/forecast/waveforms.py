"""The waveform of demand over a coming period, and what it will cost."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from kuayu.forecast.checking import check_waveform
from kuayu.forecast.courses import SURE, Courses, courses
from kuayu.forecast.sums import drawn, interval
from kuayu.forecast.totals import near, total
from kuayu.forecast.values import Floats, Plain, rounded, seconds

METHOD = {"name": "kuayu-courses", "version": "1.0.0"}

USUAL = 0.9
"""Coverage where a request states none."""

DAY, HOUR = 86_400.0, 3600.0

TOGETHER = 4_000_000
"""Most chances that are kept at once."""

MANY, CROWD = 20_000, 64
"""Chances, and jobs, from which the interval is found from moments."""


def waveform(request: dict[str, Any]) -> dict[str, Any]:
    """Lay the courses of jobs over each other.

    Args:
        request: A ``WaveformRequest``.

    Returns:
        A ``Waveform``.

    Raises:
        kuayu.refusals.RepeatedName: Jobs share a name.
        kuayu.refusals.Impossible: Prices do not begin at midnight or do not rise.
    """
    check_waveform(request)
    now, step, period = seconds(request["now"]), float(request["step"]), float(request["period"])
    after = (step * np.arange(int(period / step + 1e-9) + 1)).astype(np.float64)
    coverage = request.get("coverage", USUAL)
    rows = sum(len(job["periods"]) for job in request["jobs"])
    width = max(1, TOGETHER // max(rows, 1))
    parts = [courses(request["jobs"], now, after[at : at + width], SURE) for at in range(0, len(after), width)]
    ends = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
    low, high = np.concatenate([_between(part, ends) for part in parts]).T
    expected = np.round(np.concatenate([part.devices @ part.chance for part in parts]), 6)
    made = {
        "revision": request["revision"],
        "method": METHOD,
        "points": [
            {
                "at": at,
                "expected": rounded(middle),
                "low": rounded(min(least, middle)),
                "high": rounded(max(most, middle)),
            }
            for at, middle, least, most in zip(
                after.tolist(), expected.tolist(), low.tolist(), high.tolist(), strict=True
            )
        ],
    }
    weights = [np.full(len(after), step)]
    if request.get("prices"):
        weights.append(_prices(request["prices"], now + after) * step / HOUR)
    cases = drawn(request["jobs"], now, after, np.stack(weights, axis=1))
    for number, (name, weight) in enumerate(zip(("device_seconds", "budget"), weights, strict=False)):
        made[name] = (
            _summed(parts, after, weight, coverage)
            if cases is None
            else _counted(expected, weight, cases[number], coverage)
        )
    return made


def _between(part: Courses, ends: Floats) -> Floats:
    """Both ends of the interval at each instant, T × 2."""
    sure = ((part.chance < SURE) | (part.chance > 1 - SURE)).all(axis=1)
    if np.count_nonzero(~sure) * part.chance.shape[1] > MANY and len(np.unique(part.job[~sure])) >= CROWD:
        return near(part.job, part.devices, part.chance, ends)
    return total(part.job, part.devices, part.chance).at(ends)


def _prices(prices: Sequence[Plain], instants: Floats) -> Floats:
    """Price of a device and an hour at instants, seconds since 1970."""
    begins = np.array([each["begin"] for each in prices], dtype=float)
    rates = np.array([each["price"] for each in prices], dtype=float)
    found: Floats = rates[np.searchsorted(begins, instants % DAY, side="right") - 1]
    return found


def _counted(expected: Floats, weights: Floats, cases: Floats, coverage: float) -> dict[str, float]:
    """Estimate of the sum of all points, weighted, from cases of it."""
    mean = float(expected @ weights)
    low, high = interval(cases, coverage)
    ends = rounded(min(low, mean)), rounded(max(high, mean))
    return {"expected": rounded(mean), "low": ends[0], "high": ends[1], "coverage": coverage}


def _summed(parts: Sequence[Courses], after: Floats, weights: Floats, coverage: float) -> dict[str, float]:
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
    mean, at = 0.0, 0
    for part in parts:
        some = slice(at, at + part.chance.shape[1])
        at = some.stop
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
