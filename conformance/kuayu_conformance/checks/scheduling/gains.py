"""Training period, utilisation and cost of communication against single-domain scheduling: SCH-003, 004, 005 and 011.

The service schedules simulated windows (:mod:`kuayu_conformance.testbed.scheduling`), one question for each epoch in
which something waits, with its own policy and weights throughout. Baselines play the same windows with the same
information. Which windows there are was fixed beforehand (:mod:`.cells`); all are played, whatever they say. Figures
are pure functions of scores. Each bound holds at a level that the three figures share (Holm); each is looked at once.

1. SCH-003 is the mean over sources of the gain in the mean training period, once for all jobs that train and once for
   those of at least eight devices; both have to hold. No source may gain less than ``MIN_SOURCE_GAIN``.
2. What is imputed of a policy's periods is to be at most ``MOST_IMPUTED`` of those under B1; where it is more in any
   source, SCH-003 is neither proven nor missed.
3. SCH-004 compares utilisations at equal service: at the highest load that a policy sustains. Below saturation demand
   sets the utilisation and not the scheduler. So each policy is taken at the highest load at which it still serves
   well: 95 of 100 jobs, and of those of at least eight devices too, have a bounded slowdown of ten at most (which is to
   say that its 95th percentile is no more), and the queue does not grow. Between two loads of the grid it is
   interpolated. Beyond the grid nothing is assumed.
4. SCH-005 is the mean over sources of the gain in what traffic costs for the work that is done.
5. Tables and plots stand beside the gains: all baselines, families, curves, what is left up to the bound.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import NONE, lines, percent, table
from kuayu_conformance.checks.scheduling.cells import (
    AGAINST,
    ALL,
    HOUR,
    LINEAR,
    POOL,
    SERVICE,
    TRACE,
    Curve,
    Plan,
    plan,
)
from kuayu_conformance.checks.scheduling.scores import (
    EVERYONE,
    LARGE_TRAINING,
    LARGER,
    TRAINING,
    GroupOf,
    Place,
    Player,
    Score,
    Window,
    Windows,
)
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds, reaches
from kuayu_conformance.statistics import LEVEL, stepped_down
from kuayu_conformance.statistics.quotients import Average, Quotient, Stratum, averaged, quotient
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Timing
from kuayu_schemas import registers
from kuayu_schemas.models import ReportPlot, ReportTable

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

ScoreFigure = Callable[[Score], float]
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


def _pair(windows: Sequence[Window], policy: str, against: str, figure: ScoreFigure) -> Stratum:
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


def mean_period(windows: Sequence[Window], policy: str, of: GroupOf) -> float | None:
    """Seconds, over the jobs of all windows; None where there are none."""
    groups = [of(window.scores[policy]) for window in windows]
    jobs = sum(group.jobs for group in groups)
    return fsum(group.period for group in groups) / jobs if jobs else None


def least_period(windows: Sequence[Window], of: GroupOf) -> float | None:
    """Seconds below which no policy brings the mean period of the jobs that train, or of the large ones of them."""
    jobs = [of(window.scores[AGAINST]).jobs for window in windows]
    least = [window.bounds.large_training if of is LARGE_TRAINING else window.bounds.training for window in windows]
    return fsum(mean * n for mean, n in zip(least, jobs, strict=True)) / sum(jobs) if any(jobs) else None


def money(windows: Sequence[Window], policy: str, of: GroupOf) -> str:
    """Yuan for the work of a reference device in an hour."""
    groups = [of(window.scores[policy]) for window in windows if policy in window.scores]
    done = fsum(group.done for group in groups)
    return f"{fsum(group.money for group in groups) / done * HOUR:.3g}" if done else NONE


def money_less(windows: Sequence[Window], of: GroupOf, policy: str, against: str = AGAINST) -> float | None:
    """Part by which that is less than under another policy; None where it is zero there."""
    if not sum(of(window.scores[against]).money for window in windows):
        return None
    return money_gain([windows], of, policy, against).estimate


def less(value: float | None, base: float | None) -> float | None:
    """Part by which a value is less than another."""
    return 1.0 - value / base if value is not None and base else None


def hours(seconds: float | None) -> str:
    """Seconds as hours."""
    return NONE if seconds is None else f"{seconds / HOUR:.2f}"


Exhibits = tuple[list[ReportTable], list[ReportPlot]]

MARGIN = 0.05
"""Part by which the training period may be longer than under B1 in any family."""

GREEDY, COST_AWARE = "B3", "B3c"


def parts_of_period(plan: Plan, windows: Windows, level: float) -> list[PartFigure]:
    """Gain in the training period by workload, of all and of large jobs, then by family."""
    strata = reference_windows(plan, windows)
    parts = []
    for source, stratum in zip(plan.sources, strata, strict=True):
        for label, of in (("all", TRAINING), ("of eight devices or more", LARGE_TRAINING)):
            if any(of(window.scores[AGAINST]).jobs for window in stratum):
                parts.append(_part(f"{source}, {label}", period_gain([stratum], of), level))
    rows = ((family, windows[plan.of_family(family)]) for family in plan.families)
    return parts + [_part(f"family {family}", period_gain([entry], TRAINING), LEVEL) for family, entry in rows]


def _part(label: str, gain: Gain, level: float) -> PartFigure:
    return PartFigure(label, gain.estimate, max(MIN_SHOWN_GAIN, gain.bound(level)), gain.n)


def worse(plan: Plan, windows: Windows) -> Iterator[tuple[str, Gain]]:
    """Families in which the training period is shown to be longer than under B1, by more than the margin.

    The level is shared by all families.
    """
    for family in plan.families:
        gain = period_gain([windows[plan.of_family(family)]], TRAINING)
        if gain.ceiling(LEVEL / len(plan.families)) < -MARGIN:
            yield family, gain


def period_exhibits(plan: Plan, windows: Windows) -> Exhibits:
    """All policies at the reference load, by workload; families; curves."""
    strata = reference_windows(plan, windows)
    tables = [one for source, entry in zip(plan.sources, strata, strict=True) for one in _at_reference(source, entry)]
    if plan.families:
        tables.append(_families(plan, windows))
    tables += [_along(plan, curve, windows) for curve in plan.curves]
    return tables, [_drawn(plan, curve, windows) for curve in plan.curves]


def _at_reference(source: str, items: Sequence[Window]) -> list[ReportTable]:
    """How long jobs take under each policy, all and large ones, and how they are served."""
    names = sorted(items[0].scores, key=lambda name: (name == SERVICE, name))
    where = f"jobs from {source}, {len(items)} windows"
    served = []
    for name in names:
        scores = [window.scores[name] for window in items]
        jobs = sum(s.everyone.jobs for s in scores)
        served.append(
            [
                name,
                percent(sum(s.everyone.within for s in scores) / jobs),
                percent(sum(s.unfinished for s in scores) / jobs),
                percent(fsum(s.work for s in scores) / fsum(s.capacity for s in scores)),
                money(items, name, EVERYONE),
                f"{fsum(s.price for s in scores) / (fsum(s.work for s in scores) or 1.0) * HOUR:.3g}",
                str(sum(s.decisions for s in scores)),
                str(sum(s.refusals for s in scores)),
                str(sum(s.bad_answers for s in scores)),
            ]
        )
    jobs = sum(window.scores[AGAINST].everyone.jobs for window in items)
    groups = (("", TRAINING), (" of eight devices or more", LARGE_TRAINING))
    return [
        *(_periods(f"{where} with {{}} jobs that train{which}", items, names, of) for which, of in groups),
        table(
            f"Service at the reference load: {where} with {jobs} jobs; money for traffic and for devices, yuan for the "
            "work of a reference device in an hour",
            "policy|slowdown ≤ 10|not finished|utilisation|traffic|devices|asked|orders refused|bad answers",
            served,
        ),
    ]


def _periods(where: str, items: Sequence[Window], names: Sequence[str], of: GroupOf) -> ReportTable:
    """Periods of some jobs under each policy, and the bound that no policy can beat."""
    base, bound, pool = mean_period(items, AGAINST, of), least_period(items, of), mean_period(items, POOL, of)
    weighed = {name: _weighed(items, name, of) for name in names}
    longest = {name: fsum(of(window.scores[name]).longest for window in items) / len(items) for name in names}
    rows = []
    for name in names:
        mean = mean_period(items, name, of)
        unseen = fsum(of(window.scores[name]).imputed for window in items)
        seen = fsum(of(window.scores[name]).period for window in items)
        rows.append(
            [
                name,
                hours(mean),
                percent(less(mean, base)),
                percent(job_by_job(items, of, name)),
                percent(_reached(mean, base, pool)),
                percent(mean / bound - 1.0 if mean and bound else None),
                hours(weighed[name]),
                percent(less(weighed[name], weighed[AGAINST])),
                hours(longest[name]),
                percent(less(longest[name], longest[AGAINST])),
                percent(unseen / seen if seen else None),
            ]
        )
    rows.append(["B5 bound", hours(bound), percent(less(bound, base)), NONE, NONE, percent(0.0), *[NONE] * 5])
    jobs = sum(of(window.scores[AGAINST]).jobs for window in items)
    title = f"Training periods at the reference load: {where.format(jobs)}"
    return table(
        f"{title}; p95 is a mean over windows, B5 pool is B3 with all devices in one place, B5 bound is what no policy "
        "can beat with these devices",
        "policy|mean, h|less than B1|job by job|of the pool's gain|above the bound|weighted by work, h|"
        "weighted, less than B1|p95, h|p95, less than B1|imputed",
        rows,
    )


def _weighed(windows: Sequence[Window], name: str, of: GroupOf) -> float | None:
    """Mean period, each job counting with its work; None where there is none."""
    work = fsum(of(window.scores[name]).work for window in windows)
    return fsum(of(window.scores[name]).weighted for window in windows) / work if work else None


def _reached(mean: float | None, base: float | None, pool: float | None) -> float | None:
    """Part of what an ideal pool gains; None where it gains nothing."""
    if mean is None or base is None or pool is None or pool >= base:
        return None
    return (base - mean) / (base - pool)


def _families(plan: Plan, windows: Windows) -> ReportTable:
    others = [*(name for name in plan.beside if name != AGAINST), LINEAR]
    columns = "family|windows|under B1, h|service less by|at least|" + "|".join(f"{name} less by" for name in others)
    rows = []
    for family in plan.families:
        subject = windows[plan.of_family(family)]
        base, mine = mean_period(subject, AGAINST, TRAINING), period_gain([subject], TRAINING)
        gains = {name: period_gain([subject], TRAINING, name).estimate for name in others}
        shortest = max([(mine.estimate, SERVICE), *((gain, name) for name, gain in gains.items())])[1]
        rows.append(
            [
                family,
                str(len(subject)),
                hours(base),
                percent(mine.estimate),
                percent(max(MIN_SHOWN_GAIN, mine.bound(LEVEL))),
                *(percent(gains[name]) for name in others),
                percent(less(least_period(subject, TRAINING), base)),
                shortest,
            ]
        )
    title = "Training period by family at the reference load, less than under B1"
    return table(title, f"{columns}|bound less by|shortest", rows)


def _along(plan: Plan, curve: Curve, windows: Windows) -> ReportTable:
    names = [*(name for name in plan.beside if name != AGAINST), SERVICE]
    columns = [curve.label, "windows", *(f"{name}: period less by" for name in names)]
    columns += [f"{name}: money less by" for name in names]
    rows = []
    for value, cell in curve.points:
        subject = windows[cell][: plan.curve_windows]
        periods = [percent(period_gain([subject], TRAINING, name).estimate) for name in names]
        rows.append(
            [
                f"{value:g}",
                str(len(subject)),
                *periods,
                *(percent(money_less(subject, EVERYONE, name)) for name in names),
            ]
        )
    vanishing = f"; {curve.vanishing}" if curve.vanishing else ""
    return table(f"Over the {curve.label}, against B1{vanishing}", "|".join(columns), rows)


def _drawn(plan: Plan, curve: Curve, windows: Windows) -> ReportPlot:
    rows = [(place, windows[cell][: plan.curve_windows]) for place, cell in curve.points]
    points = {
        name: [(item, 100.0 * period_gain([entry], TRAINING, name).estimate) for item, entry in rows]
        for name in (*(name for name in plan.beside if name != AGAINST), SERVICE)
    }
    return lines(f"Training period over the {curve.label}", curve.label, "less than under B1, %", points)


def grid_exhibits(plan: Plan, sustained_loads: Mapping[str, SustainedLoad]) -> Exhibits:
    """Utilisation and service over the load, and what each policy sustains."""
    base = sustained_loads[AGAINST].floor
    rows = []
    for name, sustained in sustained_loads.items():
        used = sustained.floor if name == AGAINST else sustained.utilisation
        load = (
            f"below {plan.loads[0]:g}"
            if not sustained.load
            else f"{sustained.load:.2f}" + (" and more" if sustained.beyond else "")
        )
        rows.append([name, load, percent(used), percent(used / base - 1.0 if base else None)])
    title = f"Highest load at which jobs are served well, over the reference load; {plan.loads[-1]:g} is the most tried"
    if not sustained_loads[AGAINST].load:
        title += f". B1 sustains none of them; it counts with what it uses at {plan.loads[0]:g}"
    highest = table(title, "policy|load|utilisation|more than B1", rows)
    columns = ["policy", *(f"{what} at {load:g}" for load in plan.loads for what in ("served", "large", "used"))]
    grid = table(
        "Jobs served well, large ones likewise, and utilisation, by load over the reference load",
        "|".join(columns),
        [
            [
                name,
                *(
                    percent(part)
                    for place in zip(
                        sustained_load.served, sustained_load.served_large, sustained_load.used, strict=True
                    )
                    for part in place
                ),
            ]
            for name, sustained_load in sustained_loads.items()
        ],
    )

    def plot(title: str, label: str, figures: Callable[[SustainedLoad], Sequence[float]]) -> ReportPlot:
        points = {
            name: [(load, 100.0 * part) for load, part in zip(plan.loads, figures(row), strict=True)]
            for name, row in sustained_loads.items()
        }
        return lines(title, "load over the reference load", label, points)

    plots = [
        plot("Utilisation over the load", "useful work over capacity, %", lambda entry: entry.used),
        plot("Service over the load", "jobs with a bounded slowdown of 10 at most, %", lambda item: item.served),
    ]
    return [highest, grid], plots


def cost_exhibits(plan: Plan, windows: Windows) -> Exhibits:
    """Cost against B1, and against B3 at no longer period; jobs larger than their home apart."""
    strata = reference_windows(plan, windows)
    places = [(source, entry) for source, entry in zip(plan.sources, strata, strict=True)]
    places += [(family, windows[plan.of_family(family)]) for family in plan.families]
    columns = (
        "where|windows|B1|B3|B3c|service|service less than B1|less than B3|period longer than B3's|"
        "larger than home: B1's static pair|service|their period less than B1's"
    )
    rows = [
        [
            label,
            str(len(item)),
            *(money(item, name, EVERYONE) for name in (AGAINST, GREEDY, COST_AWARE, SERVICE)),
            percent(money_less(item, EVERYONE, SERVICE)),
            percent(money_less(item, EVERYONE, SERVICE, GREEDY)),
            percent(-period_gain([item], TRAINING, SERVICE, GREEDY).estimate),
            *(money(item, name, LARGER) for name in (AGAINST, SERVICE)),
            percent(less(mean_period(item, SERVICE, LARGER), mean_period(item, AGAINST, LARGER))),
        ]
        for label, item in places
    ]
    return [table("Money for traffic, yuan for the work of a reference device in an hour", columns, rows)], []


TOGETHER = "SCH-011"

MOST_BAD = 0.001
"""Share of questions that may go without an answer; each of them already counts as if nothing were to be done."""


@dataclass(frozen=True)
class GainWindows:
    """What was played.

    Attributes:
        plan: What was to be played.
        windows: Windows that were played to the end, by cell; none where the service gave no answers.
        grid: Windows by load; none likewise.
        requests: How often the service was asked.
        bad_answers: How often it gave no answer.
        bad: One of these, if it is known.
        pictures: A window of the reference cell, drawn; none in a quick run.
    """

    plan: Plan
    windows: dict[Cell, tuple[Window, ...]]
    grid: dict[float, tuple[Window, ...]]
    requests: int
    bad_answers: int
    bad: Answer | None
    pictures: tuple[ReportPlot, ...] = ()


def observe(episode: Episode) -> GainWindows:
    """Play the reference cell of each source, what stands beside, then the grid of loads."""
    subject = plan(full=episode.settings.full, traces=episode.settings.traces)
    with Player(episode) as player:
        reference = [subject.reference(source) for source in subject.sources]
        picked = {
            cell: player.chosen(cell, subject.drained(cell), subject.windows, subject.candidates) for cell in reference
        }
        usual = next(iter(picked.values()))
        families = [subject.of_family(family) for family in subject.families]
        due: list[tuple[Place, tuple[str, ...]]] = []
        for cell, count in subject.due().items():
            beside = ALL if cell in reference else (*subject.beside, LINEAR) if cell in families else subject.beside
            due += [(Place(cell, subject.drained(cell), n), beside) for n in picked.get(cell, usual)[:count]]
        for load in subject.loads:
            due += [
                (Place(subject.at_load(load), subject.timing, n), subject.beside) for n in range(subject.load_windows)
            ]
        played = player.windows(due)
        asking = player.asking
        if asking.hopeless:
            return GainWindows(subject, {}, {}, asking.requests, asking.bad_answers, asking.bad)
        rows: dict[tuple[Cell, Timing], list[Window]] = {}
        for (place, _), window in zip(due, played, strict=True):
            rows.setdefault((place.cell, place.timing), []).append(window)
        windows = {cell: tuple(rows[cell, subject.drained(cell)]) for cell in subject.due()}
        grid = {load: tuple(rows[subject.at_load(load), subject.timing]) for load in subject.loads}
        shown = player.pictures(subject.at_load(1.0), subject.timing, 0, AGAINST) if episode.settings.full else ()
        return GainWindows(subject, windows, grid, asking.requests, asking.bad_answers, asking.bad, shown)


def judge(o: GainWindows) -> Iterator[Finding]:
    """The three gains, and how many of them hold together."""
    observed = f"{o.bad_answers} of {o.requests} were not"
    answered = o.bad_answers <= MOST_BAD * o.requests
    for requirement in (*THREE, TOGETHER):
        expected = f"all but {MOST_BAD:.1%} of the questions where jobs are to run are answered by a placement report"
        yield holds(requirement, answered, expected, observed, None if answered else o.bad)
    if not o.windows:
        return
    subject = kpis(o.plan, o.windows, o.grid)
    yield from _period(o, subject)
    yield _utilisation(o, subject)
    yield from _cost(o, subject)
    yield _together(subject)


def _period(o: GainWindows, kpis: Kpis) -> Iterator[Finding]:
    for family, gain in worse(o.plan, o.windows):
        observed = f"{-gain.estimate:.1%} longer over {gain.n} windows, at least {-gain.ceiling(0.05):.1%}"
        yield holds(PERIOD, False, f"in the family {family} no training period is longer than under B1", observed)
    for source, stratum in zip(o.plan.sources, reference_windows(o.plan, o.windows), strict=True):
        if below_least(stratum, LEVEL / len(o.plan.sources)):
            expected = f"with jobs from {source} training periods are at least {MIN_SOURCE_GAIN:.0%} shorter"
            yield holds(PERIOD, False, expected, "they are shown not to be, of all jobs or of large ones")
    verdict = kpis.verdicts[PERIOD]
    tables, plots = period_exhibits(o.plan, o.windows)
    yield Figure(
        PERIOD,
        verdict.gain.estimate,
        verdict.bound,
        verdict.gain.n,
        "1 − mean training period under the service ÷ that under B1, of the jobs of the cohort that train and of those "
        "of them of at least eight devices, each the mean over workloads, the lesser. "
        f"{_bound(verdict.level)}{_why_not(kpis)}. Parts: by workload, then by family with a bound of their own",
        parts=parts_of_period(o.plan, o.windows, verdict.level),
        tables=tables,
        plots=plots,
        ceiling=verdict.ceiling,
    )


def _utilisation(o: GainWindows, kpis: Kpis) -> Figure:
    verdict, sustained = kpis.verdicts[UTILISATION], kpis.sustained
    tables, plots = grid_exhibits(o.plan, sustained)
    return Figure(
        UTILISATION,
        verdict.gain.estimate,
        verdict.bound,
        verdict.gain.n,
        "useful work ÷ capacity by linear programme, at the highest load at which 95 % of the jobs, and of those of at "
        "least eight devices, have a bounded slowdown of 10 at most and the queue is bounded, ÷ the same of B1 − 1; "
        "interpolated between the loads of the grid, nothing is assumed beyond it. Bound: Student's, with the standard "
        f"error of the logarithm by bootstrap over {verdict.gain.n} windows, at {verdict.level:.3g} after Holm",
        parts=[
            PartFigure(name, entry.utilisation / sustained["B1"].floor - 1.0, None, entry.windows)
            for name, entry in sustained.items()
            if name not in {"B1", "service"} and sustained["B1"].floor > 0.0
        ],
        tables=tables,
        plots=[*plots, *o.pictures],
        ceiling=verdict.ceiling,
    )


def _cost(o: GainWindows, kpis: Kpis) -> Iterator[Finding]:
    verdict = claimed(kpis)
    others = [kpis.verdicts[name] for name in (PERIOD, UTILISATION)]
    yield holds(
        MONEY,
        not any(other.missed for other in others),
        "the cost is claimed only where neither SCH-003 nor SCH-004 fails in the same run",
        " and ".join(f"{entry.gain.estimate:.1%}" for entry in others),
    )
    tables, plots = cost_exhibits(o.plan, o.windows)
    yield Figure(
        MONEY,
        verdict.gain.estimate,
        verdict.bound,
        verdict.gain.n,
        "1 − money for occupied bandwidth ÷ work done, both of the cohort, ÷ the same under B1; the bound counts as "
        f"nought unless SCH-003 and SCH-004 are proven and B1's traffic costs {MIN_COST_CNY} yuan or more for the work "
        f"of a reference device in an hour (here {kpis.money_of_reference:.3g}). {_bound(verdict.level)}",
        tables=tables,
        plots=plots,
        ceiling=verdict.ceiling,
    )


def _together(kpis: Kpis) -> Figure:
    money = claimed(kpis)
    verdicts = [kpis.verdicts[PERIOD], kpis.verdicts[UTILISATION], money]
    return Figure(
        TOGETHER,
        sum(item.reached for item in verdicts),
        sum(entry.proven for entry in verdicts),
        verdicts[0].gain.n,
        "how many of the three reach their thresholds, on the same windows, with one policy and its own weights; as "
        "bound: how many do so with their bounds, after Holm",
        parts=[
            PartFigure(name, float(verdict.reached), float(verdict.proven), verdict.gain.n)
            for name, verdict in zip(THREE, verdicts, strict=True)
        ],
        ceiling=sum(not row.missed for row in verdicts),
    )


def _bound(level: float) -> str:
    return f"Bound: Student's, over windows, at {level:.3g} after Holm"


def _why_not(kpis: Kpis) -> str:
    """Why the gain in the period cannot be proven, whatever its bound says; empty where it can."""
    if not kpis.large:
        return "; there was no job of eight devices, so that nothing can be proven"
    vague = [source for source, share in kpis.imputed.items() if share > MOST_IMPUTED]
    if vague:
        return (
            f"; more than {MOST_IMPUTED:.0%} of B1's periods is imputed of jobs from {', '.join(vague)}: inconclusive"
        )
    if kpis.short:
        return f"; with jobs from {', '.join(kpis.short)} it falls short of {MIN_SOURCE_GAIN:.0%}: not proven"
    return ""


CHECK = Check("sch_gains", (*THREE, TOGETHER), observe, judge, traces=(TRACE,), heavy=True)
