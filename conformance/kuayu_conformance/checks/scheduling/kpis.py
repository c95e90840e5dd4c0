"""The three gains over B1 with their bounds, and what they come to together: SCH-003, SCH-004, SCH-005, SCH-011.

Pure functions of scores. Each bound holds at a level that the three figures share (Holm); each is looked at once.

- SCH-003 is the mean over sources of the gain in the mean training period, once for all jobs that train and once for
  those of at least eight devices; both have to hold. No source may gain less than ``MIN_SOURCE_GAIN``.
- What is imputed of a policy's periods is to be at most ``MOST_IMPUTED`` of those under B1; where it is more in any
  source, SCH-003 is neither proven nor missed.
- SCH-004 compares utilisations at equal service .
- SCH-005 is the mean over sources of the gain in what traffic costs for the work that is done.

1. Utilisation at equal service: at the highest load that a policy sustains (SCH-004).

   Below saturation demand sets the utilisation and not the scheduler. So each policy is taken at the highest load at
   which it still serves well: 95 of 100 jobs, and of those of at least eight devices too, have a bounded slowdown of
   ten at most (which is to say that its 95th percentile is no more), and the queue does not grow. Between two loads
   of the grid it is interpolated. Beyond the grid nothing is assumed.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.checks.scheduling.cells import AGAINST, HOUR, SERVICE, Plan
from kuayu_conformance.checks.scheduling.scores import (
    EVERYONE,
    LARGE_TRAINING,
    TRAINING,
    GroupOf,
    Score,
    Window,
    Windows,
)
from kuayu_conformance.findings import reaches
from kuayu_conformance.statistics import stepped_down
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_conformance.statistics.quotients import Average, Quotient, Stratum, averaged, quotient
from kuayu_schemas import registers

Floats = NDArray[np.float64]

SERVED = 0.95
"""Share of jobs that must not be slowed down by more."""

MOST_QUEUED = 0.5
"""Days of the domains' capacity by which waiting work may grow in a window, on average over windows."""

RESAMPLES = 2000
_MIN_UTILISATION = 1e-3
"""Utilisation that stands for none in a logarithm."""


@dataclass(frozen=True)
class SustainedLoad:
    """What a policy sustains.

    Attributes:
        load: Highest load, as a multiple of the reference load; zero where it is below the grid.
        utilisation: Work over capacity there; zero where it is below the grid.
        floor: The same, or utilisation at the lowest load where it is below the grid: what counts for whoever is
            compared with.
        beyond: Whether it sustains the highest load of the grid, and might more.
        served: Share of jobs that are served well, by load.
        served_large: Likewise of those of at least eight devices.
        used: Utilisation by load.
        queued: Days by which the queue grew, by load.
        drawn: ``utilisation`` and ``floor`` in bootstrap samples of windows, each the same sample for all policies.
    """

    load: float
    utilisation: float
    floor: float
    beyond: bool
    served: tuple[float, ...]
    served_large: tuple[float, ...]
    used: tuple[float, ...]
    queued: tuple[float, ...]
    drawn: tuple[Floats, Floats]
    windows: int

    def beside(self, other: "SustainedLoad") -> Quotient:
        """This over another: the standard error is that of bootstrap samples of windows (Efron, 1979)."""
        logs = np.log(np.maximum(self.drawn[0], _MIN_UTILISATION)) - np.log(
            np.maximum(other.drawn[1], _MIN_UTILISATION)
        )
        estimate = self.utilisation / other.floor if other.floor > 0.0 else 0.0
        error = float(logs.std(ddof=1)) if self.windows > 1 else float("inf")
        return Quotient(estimate, error, float(self.windows - 1), self.windows)


def sustained(grid: Mapping[float, Sequence[Window]], policy: str) -> SustainedLoad:
    """What a policy sustains, over all windows.

    Args:
        grid: Windows by load, loads in order; the same windows at each.
        policy: Which.
    """
    loads = np.array(list(grid))
    windows = len(next(iter(grid.values())))
    rows = {load: [window.scores[policy] for window in at_load] for load, at_load in grid.items()}

    def table(figure: Any) -> Floats:
        return np.array([[float(figure(score)) for score in row] for row in rows.values()])

    parts = (
        table(lambda s: s.everyone.within),
        table(lambda s: s.everyone.jobs),
        table(lambda s: s.large.within),
        table(lambda s: s.large.jobs),
        table(lambda s: s.work),
        table(lambda s: s.capacity),
        table(lambda s: s.queued),
    )
    whole = _of(loads, parts, np.ones((1, windows)))
    resampled = _of(loads, parts, _samples(windows))
    load, used, floor = (float(entry[0]) for entry in whole[:3])
    served, served_large, utilisation, queued = (tuple(item[0].tolist()) for item in whole[3:])
    return SustainedLoad(
        load,
        used,
        floor,
        bool(load == loads[-1]),
        served,
        served_large,
        utilisation,
        queued,
        (resampled[1], resampled[2]),
        windows,
    )


def _of(loads: Floats, parts: Sequence[Floats], times: Floats) -> tuple[Floats, ...]:
    """Load, utilisation and floor by sample; then what is by sample and load.

    Args:
        loads: Of the grid, two or more.
        parts: By load and window.
        times: How often a window is in a sample, by sample and window.
    """
    within, jobs, large_within, large, work, capacity, queued = (times @ part.T for part in parts)
    served, served_large = _share(within, jobs), _share(large_within, large)
    grown = queued / times.sum(axis=1, keepdims=True)
    slacks = (served - SERVED, served_large - SERVED, MOST_QUEUED - grown)
    reached = np.min([_crossing(slack) for slack in slacks], axis=0)
    used = np.divide(work, capacity, out=np.zeros_like(work), where=capacity > 0.0)
    remote = reached >= 0.0
    position = np.maximum(reached, 0.0)
    places = np.arange(len(loads), dtype=np.float64)
    load = np.where(remote, np.interp(position, places, loads), 0.0)
    floor = np.array([np.interp(place, places, row) for place, row in zip(position, used, strict=True)])
    return load, np.where(remote, floor, 0.0), floor, served, served_large, used, grown


def _crossing(slack: Floats) -> Floats:
    """Place in the grid, by sample, up to which a criterion holds, interpolated; -1 where it never does.

    The first load counts at which it does not hold, even if luck makes a higher one look better.

    Args:
        slack: By sample and load; below zero where the criterion does not hold.
    """
    fails = slack < 0.0
    first = np.where(fails.any(axis=1), fails.argmax(axis=1), slack.shape[1])
    row, below = np.arange(len(slack)), np.clip(first - 1, 0, slack.shape[1] - 2)
    before, after = slack[row, below], slack[row, below + 1]
    part = np.divide(before, before - after, out=np.zeros(len(row)), where=before > after)
    place: Floats = np.where(first == slack.shape[1], slack.shape[1] - 1.0, np.where(first == 0, -1.0, below + part))
    return place


def _share(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, out=np.ones_like(part), where=whole > 0.0)
    return shares


@cache
def _samples(windows: int) -> Floats:
    """How often each window is drawn; by Python's own fractions, a sequence that no version changes."""
    chance = random.Random("SCH-004")  # noqa: S311 - reproducible by design, not secret
    drawn = [[int(chance.random() * windows) for _ in range(windows)] for _ in range(RESAMPLES)]
    return np.array([np.bincount(row, minlength=windows) for row in drawn], dtype=np.float64)


PERIOD, UTILISATION, MONEY = "SCH-003", "SCH-004", "SCH-005"
THREE = (PERIOD, UTILISATION, MONEY)

MIN_COST_CNY = 0.01
"""Yuan for the work of a reference device in an hour: where B1's traffic costs less, nothing is said of its cost."""

MIN_SOURCE_GAIN = 0.1
"""Gain in the training period that no source may fall short of, whatever their mean is."""

MOST_IMPUTED = 0.05
"""Part of B1's periods that may be imputed; beyond that a source tells nothing."""

MIN_SHOWN_GAIN = -1.0
"""Gains and bounds below it are shown as this: twice as long, twice as dear."""

MIN_WINDOWS = 5
"""Windows below which only what is shown to be worse than B1 is out of reach. Whether B1 has a queue at all in a few of
them is luck, and where it has none there is nothing to be gained by anybody; all of them then agree on that."""

Figure = Callable[[Score], float]
Grid = Mapping[float, Sequence[Window]]
"""Windows by load, loads in order."""


@dataclass(frozen=True)
class Gain:
    """A gain over B1.

    Attributes:
        estimate: One minus a quotient, or a quotient minus one.
        bound: Its lower bound at a one-sided level.
        ceiling: Its upper bound likewise.
        n: Windows.
    """

    estimate: float
    bound: Callable[[float], float]
    ceiling: Callable[[float], float]
    n: int


@dataclass(frozen=True)
class GainVerdict:
    """A gain as it stands in the end.

    Attributes:
        gain: The gain.
        level: One-sided level of its bound, after Holm.
        bound: Its bound.
        ceiling: Its other bound, at the level of a single figure: nobody fails by luck. Infinite where windows are too
            few to tell.
        reached: Whether the estimate reaches the requirement's threshold.
        proven: Whether the bound does.
        missed: Whether neither the estimate nor the ceiling does.
    """

    gain: Gain
    level: float
    bound: float
    ceiling: float
    reached: bool
    proven: bool
    missed: bool


@dataclass(frozen=True)
class Kpis:
    """All of them.

    Attributes:
        verdicts: By requirement.
        everyone: Gain in the training period of all jobs that train.
        large: Likewise of those of at least eight devices; None where there are none.
        short: Sources whose own gain in the training period is below the least.
        imputed: Largest part of B1's periods that is imputed under either policy, by source.
        sustained: Utilisation at equal service by policy.
        money_of_reference: What B1's traffic costs, yuan for the work of a reference device in an hour.
    """

    verdicts: Mapping[str, GainVerdict]
    everyone: Gain
    large: Gain | None
    short: tuple[str, ...]
    imputed: Mapping[str, float]
    sustained: Mapping[str, SustainedLoad]
    money_of_reference: float


def kpis(plan: Plan, windows: Windows, grid: Grid) -> Kpis:
    """The three gains, each held against its threshold in the register at its share of the level.

    Args:
        plan: What was to be played.
        windows: Windows that were played to the end, by cell.
        grid: Windows by load.
    """
    strata = reference_windows(plan, windows)
    everyone = period_gain(strata, TRAINING)
    large = None
    if all(any(window.scores[AGAINST].large_training.jobs for window in stratum) for stratum in strata):
        large = period_gain(strata, LARGE_TRAINING)
    imputed = {source: imputed_share(stratum) for source, stratum in zip(plan.sources, strata, strict=True)}
    short = tuple(
        source
        for source, stratum in zip(plan.sources, strata, strict=True)
        if min(gain.estimate for gain in _of_source(stratum)) < MIN_SOURCE_GAIN
    )
    at_equal_service = {name: sustained(grid, name) for name in _common(grid)}
    gains = {
        PERIOD: _telling(_lesser(everyone, large), short=bool(short), imputed=max(imputed.values())),
        UTILISATION: utilisation_gain(at_equal_service),
        MONEY: money_gain(strata, EVERYONE),
    }

    def reaching(name: str) -> Callable[[float], bool]:
        return lambda share: _reaches(name, gains[name].bound(share))

    levels = stepped_down({name: reaching(name) for name in THREE})
    verdicts = {
        name: _verdict(name, gain, levels[name], max(MIN_SHOWN_GAIN, gain.bound(levels[name])))
        for name, gain in gains.items()
    }
    of_b1 = [window.scores[AGAINST].everyone for stratum in strata for window in stratum]
    done = sum(group.done for group in of_b1)
    money = sum(group.money for group in of_b1) / done * HOUR if done else 0.0
    return Kpis(verdicts, everyone, large, short, imputed, at_equal_service, money)


def reference_windows(plan: Plan, windows: Windows) -> list[Sequence[Window]]:
    """Windows of the reference cell of each source."""
    return [windows[plan.reference(source)] for source in plan.sources]


def imputed_share(stratum: Sequence[Window], of: Sequence[GroupOf] = (TRAINING, LARGE_TRAINING)) -> float:
    """Largest part of B1's periods that is imputed under the service or under B1."""
    shares = [0.0]
    for group in of:
        base = sum(group(window.scores[AGAINST]).period for window in stratum)
        for policy in (SERVICE, AGAINST):
            unseen = sum(group(window.scores[policy]).imputed for window in stratum)
            shares.append(unseen / base if base > 0.0 else 0.0)
    return max(shares)


def job_by_job(stratum: Sequence[Window], of: GroupOf, policy: str = SERVICE, against: str = AGAINST) -> float | None:
    """One minus the geometric mean of the quotients of each job's two periods; None where there are no jobs."""
    jobs = sum(of(window.scores[against]).jobs for window in stratum)
    logs = [of(window.scores[policy]).logarithms - of(window.scores[against]).logarithms for window in stratum]
    return max(MIN_SHOWN_GAIN, 1.0 - exp(fsum(logs) / jobs)) if jobs else None


def below_least(stratum: Sequence[Window], level: float) -> bool:
    """Whether the gain of a source is shown to be below the least that each has to reach."""
    if imputed_share(stratum) > MOST_IMPUTED:
        return False
    return any(gain.ceiling(level) < MIN_SOURCE_GAIN for gain in _of_source(stratum) if gain.n >= MIN_WINDOWS)


def claimed(kpis: Kpis) -> GainVerdict:
    """SCH-005 as far as it may be claimed: its bound counts as zero until the other two are proven.

    Cost alone is easily saved, by never moving anything; and where B1's traffic costs next to nothing a share of it
    means nothing.
    """
    verdict = kpis.verdicts[MONEY]
    if kpis.verdicts[PERIOD].proven and kpis.verdicts[UTILISATION].proven and kpis.money_of_reference >= MIN_COST_CNY:
        return verdict
    return _verdict(MONEY, verdict.gain, verdict.level, min(0.0, verdict.bound))


def period_gain(strata: Sequence[Sequence[Window]], of: GroupOf, policy: str = SERVICE, against: str = AGAINST) -> Gain:
    """One minus the quotient of mean periods of some jobs, mean over strata; a window has the same jobs under both."""
    pairs = [_pair(stratum, policy, against, lambda s: of(s).period) for stratum in strata]
    return _less(averaged([quotient([pair]) for pair in pairs]))


def money_gain(strata: Sequence[Sequence[Window]], of: GroupOf, policy: str = SERVICE, against: str = AGAINST) -> Gain:
    """One minus the quotient of what traffic costs for the work that is done, mean over strata."""
    rows = []
    for stratum in strata:
        money = _pair(stratum, policy, against, lambda s: of(s).money)
        done = _pair(stratum, against, policy, lambda s: of(s).done)
        rows.append(Stratum([*money.over, *done.over], [*money.under, *done.under]))
    return _less(averaged([quotient([row]) for row in rows]))


def utilisation_gain(
    sustained_loads: Mapping[str, SustainedLoad], policy: str = SERVICE, against: str = AGAINST
) -> Gain:
    """The quotient of utilisations at equal service, minus one."""
    mine, other = sustained_loads[policy], sustained_loads[against]
    beside = mine.beside(other)
    base = other.floor
    estimate = mine.utilisation / base - 1.0 if base > 0.0 else MIN_SHOWN_GAIN
    return Gain(
        estimate,
        lambda level: beside.lower(level) - 1.0,
        lambda level: beside.upper(level) - 1.0,
        beside.n,
    )


def _of_source(stratum: Sequence[Window]) -> list[Gain]:
    """Gains in the training period of one source: of all jobs, and of large ones where there are any."""
    large = any(window.scores[AGAINST].large_training.jobs for window in stratum)
    return [period_gain([stratum], of) for of in ((TRAINING, LARGE_TRAINING) if large else (TRAINING,))]


def _telling(gain: Gain, *, short: bool, imputed: float) -> Gain:
    """A gain of periods: not proven where a source falls short, and nothing at all where too much is imputed."""
    vague = imputed > MOST_IMPUTED
    bound = (lambda _: MIN_SHOWN_GAIN) if short or vague else gain.bound
    return Gain(gain.estimate, bound, (lambda _: inf) if vague else gain.ceiling, gain.n)


def _verdict(name: str, gain: Gain, level: float, bound: float) -> GainVerdict:
    ceiling = max(MIN_SHOWN_GAIN, gain.ceiling(LEVEL))
    if gain.n < MIN_WINDOWS and ceiling >= 0.0:
        ceiling = inf
    reached = _reaches(name, gain.estimate)
    return GainVerdict(
        gain, level, bound, ceiling, reached, _reaches(name, bound), not (reached or _reaches(name, ceiling))
    )


def _pair(windows: Sequence[Window], policy: str, against: str, figure: Figure) -> Stratum:
    over = [figure(window.scores[policy]) for window in windows]
    return Stratum([over], [[figure(window.scores[against]) for window in windows]])


def _less(items: Quotient | Average) -> Gain:
    def shown(value: float) -> float:
        return MIN_SHOWN_GAIN if value == inf else max(MIN_SHOWN_GAIN, 1.0 - value)

    return Gain(
        shown(items.estimate), lambda level: shown(items.upper(level)), lambda level: 1.0 - items.lower(level), items.n
    )


def _lesser(one: Gain, other: Gain | None) -> Gain:
    """Both have to hold, so the lesser counts, and the bounds need no correction (R. L. Berger, 1982)."""
    if other is None:
        return Gain(one.estimate, lambda _: MIN_SHOWN_GAIN, one.ceiling, one.n)
    return Gain(
        min(one.estimate, other.estimate),
        lambda level: min(one.bound(level), other.bound(level)),
        lambda level: min(one.ceiling(level), other.ceiling(level)),
        one.n,
    )


def _common(grid: Grid) -> tuple[str, ...]:
    """Policies that were played at every load."""
    rows = [set(window.scores) for windows in grid.values() for window in windows]
    first = next(iter(grid.values()))[0].scores
    return tuple(name for name in first if all(name in row for row in rows))


def _reaches(requirement: str, value: float) -> bool:
    threshold = next(entry.threshold for entry in registers.requirements().requirements if entry.id == requirement)
    assert threshold is not None, f"{requirement} has a figure but no threshold"
    return reaches(value, threshold)
