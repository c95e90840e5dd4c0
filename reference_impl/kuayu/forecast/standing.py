"""Where jobs stand at the present instant: which of their periods are over, and how long they will still wait.

Who reports a job measures what is over, so a period that has ended has a sure duration. Where a request shows that
(a job has sure periods behind it and unsure ones before it), the first period that is not sure and over is the present
one, and it is known to hold still.

Who waits goes on waiting. Waits have no scale of their own: without other evidence, who has waited for so long waits as
long again in every second case (the posterior of an exponential law seen once, under a prior that knows no scale).
Others of the domain that waited as long are further evidence: each that started since then is one more start, and the
time that each waited beyond it one more exposure.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from kuayu.forecast.spans import Spans
from kuayu.forecast.values import Flags, Floats, Plain, Whole, seconds

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
    def plain(jobs: Sequence[Plain], now: float) -> "Standing":
        """Jobs whose periods are laid from their start, or, while they wait, from their submission or now."""
        count = len(jobs)
        begins = np.array([_begin(job, now) for job in jobs], dtype=float)
        none = np.zeros(count, dtype=bool)
        return Standing(begins, np.zeros(count, dtype=np.int64), none, none, np.zeros(count), np.ones(count))

    @staticmethod
    def seen(jobs: Sequence[Plain], now: float) -> "Standing":
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


def _begin(job: Plain, now: float) -> float:
    if "started_at" in job:
        return seconds(job["started_at"]) - now
    return max(seconds(job["submitted_at"]) - now, 0.0)


def _sure(duration: Plain) -> bool:
    return bool(duration["low"] == duration["high"])


def _done(job: Plain, run: float) -> tuple[int, float]:
    """How many sure periods are over, but for the last one, and how long they took."""
    lasted, done = 0.0, 0
    for period in job["periods"][:-1]:
        ends = lasted + period["duration"]["expected"]
        if not _sure(period["duration"]) or ends > run:
            break
        lasted, done = ends, done + 1
    return done, lasted


def _held(jobs: Sequence[Plain], begins: Floats, over: Whole) -> Flags:
    """Whose present period is known to hold still."""
    spans = Spans.of([job["periods"][done]["duration"] for job, done in zip(jobs, over.tolist(), strict=True)])
    lasting = 1 - spans.within(-begins[:, None])[:, 0]
    found: Flags = (begins < 0) & (lasting > GIVEN_UP)
    return found


def _waiting(jobs: Sequence[Plain], now: float) -> tuple[Flags, Floats, Floats]:
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
        here = own[submitted[own] <= 0]
        ages = lasted[here]
        # who comes later waits as whoever came last
        for number in own[~started[own]].tolist():
            age = lasted[number] if submitted[number] <= 0 else lasted[queue].min()
            as_long = (ages >= age) & (here != number)
            waits[number] = True
            exposure[number] = age + (ages[as_long] - age).sum()
            starts[number] = 1 + np.count_nonzero(started[here[as_long]])
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
