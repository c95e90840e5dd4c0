"""The three gains over B1 with their bounds, and what they come to together: SCH-003, SCH-004, SCH-005, SCH-011.

Pure functions of scores. Each bound holds at a level that three figures share (Holm) and several looks (α-spending).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from kuayu_conformance.checks.sch_cells import AGAINST, HOUR, SERVICE, Plan
from kuayu_conformance.checks.sch_equal_service import Sustained, sustained
from kuayu_conformance.checks.sch_scores import EVERYONE, LARGE_TRAINING, TRAINING, Of, Score, Window, Windows
from kuayu_conformance.run.verdicts import reaches
from kuayu_conformance.statistics import Quotient, Stratum, nominal_levels, quotient, stepped_down
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_schemas import registers

PERIOD, UTILISATION, MONEY = "SCH-003", "SCH-004", "SCH-005"
THREE = (PERIOD, UTILISATION, MONEY)

LEAST_MONEY = 0.01
"""Yuan for the work of a reference device in an hour: where B1's traffic costs less, nothing is said of its cost."""

LOWEST = -1.0
"""Gains and bounds below it are shown as this: twice as long, twice as dear."""

FEWEST = 5
"""Windows below which only what is shown to be worse than B1 is out of reach. Whether B1 has a queue at all in a few of
them is luck, and where it has none there is nothing to be gained by anybody; all of them then agree on that."""

Figure = Callable[[Score], float]


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
        level: One-sided level of its bound, after Holm and for the last look.
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
        sustained: Utilisation at equal service by policy.
        money_of_reference: What B1's traffic costs, yuan for the work of a reference device in an hour.
    """

    held: Mapping[str, Held]
    everyone: Gain
    large: Gain | None
    sustained: Mapping[str, Sustained]
    money_of_reference: float


def kpis(plan: Plan, windows: Windows) -> Kpis:
    """The three gains, each held against its threshold in the register at its share of the level."""
    strata, looked = reference_windows(plan, windows)
    everyone = period_gain(strata, TRAINING)
    large = None
    if all(any(window.scores[AGAINST].large_training.jobs for window in stratum) for stratum in strata):
        large = period_gain(strata, LARGE_TRAINING)
    grid = {load: windows[plan.at_load(load)][: plan.load_windows] for load in plan.loads}
    at_equal_service = {name: sustained(grid, name) for name in _common(grid)}
    gains = {
        PERIOD: _lesser(everyone, large),
        UTILISATION: utilisation_gain(at_equal_service),
        MONEY: money_gain(strata, EVERYONE),
    }
    place = sum(look <= looked for look in plan.looks) - 1

    def nominal(name: str, share: float) -> float:
        """Level of the last look; utilisation is looked at once, when its grid is through."""
        return share if name == UTILISATION else nominal_levels(share, plan.looks)[max(0, place)]

    def reaching(name: str) -> Callable[[float], bool]:
        return lambda share: _reaches(name, gains[name].bound(nominal(name, share)))

    shares = stepped_down({name: reaching(name) for name in THREE})
    held = {}
    for name, gain in gains.items():
        level = nominal(name, shares[name])
        held[name] = _held(name, gain, level, max(LOWEST, gain.bound(level)))
    of_b1 = [window.scores[AGAINST].everyone for stratum in strata for window in stratum]
    done = sum(group.done for group in of_b1)
    money = sum(group.money for group in of_b1) / done * HOUR if done else 0.0
    return Kpis(held, everyone, large, at_equal_service, money)


def reference_windows(plan: Plan, windows: Windows) -> tuple[list[Sequence[Window]], int]:
    """Windows of the reference cell of each source up to the last look, and how many they are of each.

    More may have been played at the reference load for the grid; what was not due at the look does not count.
    """
    strata = [windows[plan.reference(source)] for source in plan.sources]
    fewest = min(map(len, strata))
    looked = max((look for look in plan.looks if look <= fewest), default=fewest)
    return [stratum[:looked] for stratum in strata], looked


def settled(plan: Plan, windows: Windows) -> bool:
    """Whether nothing is left to find out: all three are proven, or one of them is out of reach.

    The latter spends nothing of the level: whoever stops because a threshold is out of reach rejects nothing.
    """
    held = kpis(plan, windows).held
    if all(each.proven for each in held.values()):
        return True
    return any(each.missed for each in held.values())


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
    """One minus the quotient of mean periods of some jobs; both policies have the same jobs in a window."""
    return _less(quotient([_pair(stratum, policy, against, lambda s: of(s).period) for stratum in strata]))


def money_gain(strata: Sequence[Sequence[Window]], of: Of, policy: str = SERVICE, against: str = AGAINST) -> Gain:
    """One minus the quotient of what traffic costs for the work that is done."""
    rows = []
    for stratum in strata:
        money = _pair(stratum, policy, against, lambda s: of(s).money)
        done = _pair(stratum, against, policy, lambda s: of(s).done)
        rows.append(Stratum([*money.over, *done.over], [*money.under, *done.under]))
    return _less(quotient(rows))


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


def _held(name: str, gain: Gain, level: float, bound: float) -> Held:
    ceiling = max(LOWEST, gain.ceiling(LEVEL))
    if gain.n < FEWEST and ceiling >= 0.0:
        ceiling = inf
    reached = _reaches(name, gain.estimate)
    return Held(gain, level, bound, ceiling, reached, _reaches(name, bound), not (reached or _reaches(name, ceiling)))


def _pair(windows: Sequence[Window], policy: str, against: str, figure: Figure) -> Stratum:
    over = [figure(window.scores[policy]) for window in windows]
    return Stratum([over], [[figure(window.scores[against]) for window in windows]])


def _less(its: Quotient) -> Gain:
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


def _common(grid: Mapping[float, Sequence[Window]]) -> tuple[str, ...]:
    """Policies that were played at every load."""
    rows = [set(window.scores) for windows in grid.values() for window in windows]
    first = next(iter(grid.values()))[0].scores
    return tuple(name for name in first if all(name in row for row in rows))


def _reaches(requirement: str, value: float) -> bool:
    threshold = next(each.threshold for each in registers.requirements().requirements if each.id == requirement)
    assert threshold is not None, f"{requirement} has a figure but no threshold"
    return reaches(value, threshold)
