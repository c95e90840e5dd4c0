"""Courses of jobs: the chance that each of their periods holds at given instants.

A job with one period left is followed exactly. Where there are several, or it waits for an unknown time, ends are sums
of independent durations, of which CASES stratified cases are laid side by side, always the same ones (M. D. McKay et
al., Technometrics 21(2), 1979). That a job is still there is known of those that run, and each chance is taken on that
condition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

from kuayu.forecast.spans import Spans
from kuayu.forecast.standing import Standing, remaining, truncated
from kuayu.forecast.values import Floats, Plain, Whole

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
    jobs: Sequence[Plain], now: float, after: Floats, doubt: float = DOUBT, standing: Standing | None = None
) -> Courses:
    """Follow jobs.

    Args:
        jobs: Jobs of the class ``ForeseenJob``.
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
        for some in (alike[at : at + most] for at in range(0, len(alike), most)):
            rows = first[some][:, None] + np.arange(length)
            picked = Spans(spans.median[rows], spans.below[rows], spans.above[rows])
            run = instants - standing.begins[some][:, None]
            over = _ends(picked, run, standing, some) if by_cases else _only(picked, run)
            chance[rows] = _followed(picked, run, over, doubt)
    return Courses(np.repeat(np.arange(len(jobs)), lengths), devices, chance[:, 1:], chance[:, 0], standing.begins)


def _followed(spans: Spans, run: Floats, over: Floats, doubt: float) -> Floats:
    """Chances that periods hold, J × K × T, given those that they are over; jobs have run for J × T seconds."""
    there = (1 - doubt) * (1 - over)
    total = np.maximum(spans.median.sum(axis=1), 1.0)[:, None]
    there[:, -1] += doubt * total / (total + np.maximum(run, 0.0))
    held = np.diff(there, axis=1, prepend=0.0)
    known = np.where(run[:, :1] > 0, there[:, -1, :1], 1.0)
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
    ends = np.sort(np.cumsum(durations, axis=1), axis=2)
    over = np.empty((jobs, length, run.shape[1]))
    for job in range(jobs):
        for period in range(length):
            over[job, period] = np.searchsorted(ends[job, period], run[job], side="right")
    return over / CASES


@cache
def _scores(periods: int) -> Floats:
    """Normal scores of cases, periods × CASES; each period has every stratum once."""
    middles = ndtri((np.arange(CASES) + 0.5) / CASES)
    return np.stack([np.random.default_rng([1979, period]).permutation(middles) for period in range(periods)])
