"""The three gains over B1 with their bounds, and what they come to together: SCH-003, SCH-004, SCH-005, SCH-011.

Pure functions of scores. Each bound holds at a level that the three figures share (Holm); each is looked at once.

- SCH-003 is the mean over sources of the gain in the mean training period, once for all jobs that train and once for
  those of at least eight devices; both have to hold. No source may gain less than ``LEAST_OF_SOURCE``.
- What is imputed of a policy's periods is to be at most ``MOST_IMPUTED`` of those under B1; where it is more in any
  source, SCH-003 is neither proven nor missed.
- SCH-004 compares utilisations at equal service (:mod:`.sch_equal_service`).
- SCH-005 is the mean over sources of the gain in what traffic costs for the work that is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, inf

from kuayu_conformance.checks.sch_cells import AGAINST, HOUR, SERVICE, Plan
from kuayu_conformance.checks.sch_equal_service import Sustained, sustained
from kuayu_conformance.checks.sch_scores import EVERYONE, LARGE_TRAINING, TRAINING, Of, Score, Window, Windows
from kuayu_conformance.run.verdicts import reaches
from kuayu_conformance.statistics import stepped_down
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_conformance.statistics.quotients import Average, Quotient, Stratum, averaged, quotient
from kuayu_schemas import registers

PERIOD, UTILISATION, MONEY = "SCH-003", "SCH-004", "SCH-005"
THREE = (PERIOD, UTILISATION, MONEY)

LEAST_MONEY = 0.01
"""Yuan for the work of a reference device in an hour: where B1's traffic costs less, nothing is said of its cost."""

LEAST_OF_SOURCE = 0.1
"""Gain in the training period that no source may fall short of, whatever their mean is."""

MOST_IMPUTED = 0.05
"""Part of B1's periods that may be imputed; beyond that a source tells nothing."""

LOWEST = -1.0
"""Gains and bounds below it are shown as this: twice as long, twice as dear."""

FEWEST = 5
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
class Held:
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
        held: By requirement.
        everyone: Gain in the training period of all jobs that train.
        large: Likewise of those of at least eight devices; None where there are none.
        short: Sources whose own gain in the training period is below the least.
        imputed: Largest part of B1's periods that is imputed under either policy, by source.
        sustained: Utilisation at equal service by policy.
        money_of_reference: What B1's traffic costs, yuan for the work of a reference device in an hour.
    """

    held: Mapping[str, Held]
    everyone: Gain
    large: Gain | None
    short: tuple[str, ...]
    imputed: Mapping[str, float]
    sustained: Mapping[str, Sustained]
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
        if min(gain.estimate for gain in _of_source(stratum)) < LEAST_OF_SOURCE
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
    held = {
        name: _held(name, gain, levels[name], max(LOWEST, gain.bound(levels[name]))) for name, gain in gains.items()
    }
    of_b1 = [window.scores[AGAINST].everyone for stratum in strata for window in stratum]
    done = sum(group.done for group in of_b1)
    money = sum(group.money for group in of_b1) / done * HOUR if done else 0.0
    return Kpis(held, everyone, large, short, imputed, at_equal_service, money)


def reference_windows(plan: Plan, windows: Windows) -> list[Sequence[Window]]:
    """Windows of the reference cell of each source."""
    return [windows[plan.reference(source)] for source in plan.sources]


def imputed_share(stratum: Sequence[Window], of: Sequence[Of] = (TRAINING, LARGE_TRAINING)) -> float:
    """Largest part of B1's periods that is imputed under the service or under B1."""
    shares = [0.0]
    for group in of:
        base = sum(group(window.scores[AGAINST]).period for window in stratum)
        for policy in (SERVICE, AGAINST):
            unseen = sum(group(window.scores[policy]).imputed for window in stratum)
            shares.append(unseen / base if base > 0.0 else 0.0)
    return max(shares)


def job_by_job(stratum: Sequence[Window], of: Of, policy: str = SERVICE, against: str = AGAINST) -> float | None:
    """One minus the geometric mean of the quotients of each job's two periods; None where there are no jobs."""
    jobs = sum(of(window.scores[against]).jobs for window in stratum)
    logs = [of(window.scores[policy]).logarithms - of(window.scores[against]).logarithms for window in stratum]
    return max(LOWEST, 1.0 - exp(fsum(logs) / jobs)) if jobs else None


def below_least(stratum: Sequence[Window], level: float) -> bool:
    """Whether the gain of a source is shown to be below the least that each has to reach."""
    if imputed_share(stratum) > MOST_IMPUTED:
        return False
    return any(gain.ceiling(level) < LEAST_OF_SOURCE for gain in _of_source(stratum) if gain.n >= FEWEST)


def claimed(its: Kpis) -> Held:
    """SCH-005 as far as it may be claimed: its bound counts as nought until the other two are proven.

    Cost alone is easily saved, by never moving anything; and where B1's traffic costs next to nothing a share of it
    means nothing.
    """
    held = its.held[MONEY]
    if its.held[PERIOD].proven and its.held[UTILISATION].proven and its.money_of_reference >= LEAST_MONEY:
        return held
    return _held(MONEY, held.gain, held.level, min(0.0, held.bound))


def period_gain(strata: Sequence[Sequence[Window]], of: Of, policy: str = SERVICE, against: str = AGAINST) -> Gain:
    """One minus the quotient of mean periods of some jobs, mean over strata; a window has the same jobs under both."""
    pairs = [_pair(stratum, policy, against, lambda s: of(s).period) for stratum in strata]
    return _less(averaged([quotient([pair]) for pair in pairs]))


def money_gain(strata: Sequence[Sequence[Window]], of: Of, policy: str = SERVICE, against: str = AGAINST) -> Gain:
    """One minus the quotient of what traffic costs for the work that is done, mean over strata."""
    rows = []
    for stratum in strata:
        money = _pair(stratum, policy, against, lambda s: of(s).money)
        done = _pair(stratum, against, policy, lambda s: of(s).done)
        rows.append(Stratum([*money.over, *done.over], [*money.under, *done.under]))
    return _less(averaged([quotient([row]) for row in rows]))


def utilisation_gain(found: Mapping[str, Sustained], policy: str = SERVICE, against: str = AGAINST) -> Gain:
    """The quotient of utilisations at equal service, minus one."""
    mine, other = found[policy], found[against]
    beside = mine.beside(other)
    base = other.floor
    estimate = mine.utilisation / base - 1.0 if base > 0.0 else LOWEST
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
    bound = (lambda _: LOWEST) if short or vague else gain.bound
    return Gain(gain.estimate, bound, (lambda _: inf) if vague else gain.ceiling, gain.n)


def _held(name: str, gain: Gain, level: float, bound: float) -> Held:
    ceiling = max(LOWEST, gain.ceiling(LEVEL))
    if gain.n < FEWEST and ceiling >= 0.0:
        ceiling = inf
    reached = _reaches(name, gain.estimate)
    return Held(gain, level, bound, ceiling, reached, _reaches(name, bound), not (reached or _reaches(name, ceiling)))


def _pair(windows: Sequence[Window], policy: str, against: str, figure: Figure) -> Stratum:
    over = [figure(window.scores[policy]) for window in windows]
    return Stratum([over], [[figure(window.scores[against]) for window in windows]])


def _less(its: Quotient | Average) -> Gain:
    def shown(value: float) -> float:
        return LOWEST if value == inf else max(LOWEST, 1.0 - value)

    return Gain(shown(its.estimate), lambda level: shown(its.upper(level)), lambda level: 1.0 - its.lower(level), its.n)


def _lesser(one: Gain, other: Gain | None) -> Gain:
    """Both have to hold, so the lesser counts, and the bounds need no correction (R. L. Berger, 1982)."""
    if other is None:
        return Gain(one.estimate, lambda _: LOWEST, one.ceiling, one.n)
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
    threshold = next(each.threshold for each in registers.requirements().requirements if each.id == requirement)
    assert threshold is not None, f"{requirement} has a figure but no threshold"
    return reaches(value, threshold)
