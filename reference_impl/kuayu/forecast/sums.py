"""What a waveform adds up to: cases of whole courses, laid side by side.

A sum over instants goes in steps, and few jobs make no bell; so its interval is taken from stratified cases, always the
same ones (M. D. McKay et al., Technometrics 21(2), 1979). Each job has its own order of strata for each of its periods.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from kuayu.forecast.courses import SURE
from kuayu.forecast.spans import Spans
from kuayu.forecast.standing import Standing, truncated
from kuayu.forecast.values import Floats, Plain

MOST, LEAST = 16_384, 2048
"""Cases of few jobs, and of many."""

WORK = 4_000_000
"""Periods × cases; with more periods than leave LEAST cases, there are no cases."""

SEED = 1979


def drawn(jobs: Sequence[Plain], now: float, after: Floats, weights: Floats) -> Floats | None:
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
    count = min(MOST, WORK // max(rows, 1))
    if count < LEAST:
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


def _ends(job: Plain, run: float, count: int, number: int) -> Floats:
    """Seconds from its begin after which each period of a job ends, in cases in which it is there now, K × C."""
    spans = Spans.of([period["duration"] for period in job["periods"]])
    length = len(spans.median)
    middles = (np.arange(count) + 0.5) / count
    levels = np.stack([np.random.default_rng([SEED, number, period]).permutation(middles) for period in range(length)])
    if run > 0 and length == 1 and float(spans.within(np.array([[run]]))[0, 0]) < 1 - SURE:
        return truncated(spans, np.array([run]), levels)
    ends: Floats = np.cumsum(spans.at(ndtri(levels)), axis=0)
    if run <= 0:
        return ends
    there = np.flatnonzero(ends[-1] > run)
    if len(there):
        chosen: Floats = ends[:, there[np.arange(count) % len(there)]]
        return chosen
    # it has outlived its estimate: it lasts as long again in every second case
    ends = np.full((length, count), run)
    ends[-1] += (float(spans.median.sum()) + run) * levels[-1] / (1 - levels[-1])
    return ends
