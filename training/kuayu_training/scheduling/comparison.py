"""Policies beside each other in whole windows: mean periods and money over the rule's, with bounds.

Ratios are of sums over windows, as SCH-003's are, and bounds those of the jackknife that leaves one window out at a
time (B. Efron, C. Stein, "The jackknife estimate of variance", Annals of Statistics 9 (3), 1981) on logarithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_training.scheduling.windows import Figures

RULE = "rule"
SURE = 0.95
NOTHING = 1e-6
"""Ratios count as at least that much: who spends nothing in a few windows has no logarithm."""
HOUR, MILLION = 3_600.0, 1e6


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """How policies did in windows of a kind.

    Attributes:
        kind: Its name.
        windows: How many.
        jobs: Jobs that train, and the large ones of them.
        imputed: Greatest share of a policy's sum of periods that nobody has seen.
        hours: By policy: mean period of both, hours.
        money: By policy: for a million device seconds of the reference device.
        over: By policy: mean period of both, and money for work, over the rule's.
        most: One-sided 95 % upper bounds of these.
    """

    kind: str
    windows: int
    jobs: list[int]
    imputed: float
    hours: Mapping[str, list[float]]
    money: Mapping[str, float]
    over: Mapping[str, list[float]]
    most: Mapping[str, list[float]]


def compared(kind: str, windows: Sequence[Mapping[str, Figures]]) -> PolicyComparison:
    """Sums, ratios and bounds of windows that each policy played; one policy is the ``rule``.

    Raises:
        ValueError: There are fewer than two windows.
    """
    if len(windows) < 2:
        raise ValueError("two windows at least can be compared, since a bound is wanted")
    names = list(windows[0])
    total = {name: Figures.total([window[name] for window in windows]) for name in names}
    jobs = total[RULE].jobs
    ratios = {name: _ratios(windows, name) for name in names if name != RULE}
    return PolicyComparison(
        kind,
        len(windows),
        [int(count) for count in jobs],
        round(max(float((figures.imputed / np.maximum(figures.seconds, 1.0)).max()) for figures in total.values()), 4),
        {name: np.round(figures.seconds / np.maximum(jobs, 1.0) / HOUR, 3).tolist() for name, figures in total.items()},
        {name: round(MILLION * figures.money / max(figures.work, 1.0), 2) for name, figures in total.items()},
        {name: np.round(over, 4).tolist() for name, (over, _) in ratios.items()},
        {name: np.round(most, 4).tolist() for name, (_, most) in ratios.items()},
    )


def _ratios(windows: Sequence[Mapping[str, Figures]], name: str) -> tuple[Floats, Floats]:
    """Ratios of a policy over the rule, and their upper bounds, (3,) each."""
    count = len(windows)
    whole = _over(windows, name)
    rest = [_over([*windows[:place], *windows[place + 1 :]], name) for place in range(count)]
    without = np.log(np.maximum(rest, NOTHING))
    error = np.sqrt((count - 1) / count * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return whole, whole * np.exp(float(student.ppf(SURE, count - 1)) * error)


def _over(windows: Sequence[Mapping[str, Figures]], name: str) -> Floats:
    mine, theirs = (Figures.total([window[which] for window in windows]) for which in (name, RULE))
    return mine.over(theirs)
