"""What tasks of a kind need, from what those needed that ran before.

Needs grow with what is asked for, or do not: need ≈ c · scale, where the scale is a power of the resource asked for, or
a product of powers of all three, since what is asked of one also tells how large a task is. The scale is the one that
leaves c the narrowest; the c of the records say how likely a task needs how much.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from kuayu.demand.sizing_records import RESOURCES, Records
from kuayu.demand.strategy import Floats

THIN = 20
"""Records that are too few to give a task less than it asks for."""

FITTED = 100
"""Records that powers of all three resources are fitted to, at least."""

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Powers of what is asked for: from a need that is the same for all to a share of it."""

FOLDS = 3
"""Parts of the records that are held back in turn where powers are fitted."""

GROUP = 150
"""Records that asked for about as much, at least, for a distribution of c of their own."""

POINTS = 50
"""Points that the distribution of c is told by, each as likely as any other; the last is the greatest."""

HEADROOM = (1.25, 1.25, 1.5)
"""Peak over mean where no record of the whole history tells a peak. An assumption, on the safe side."""

MIN_SHARE = 0.05
"""Nothing is cut to less than this share of what is asked for, be it ever so idle."""


@dataclass(frozen=True)
class Need:
    """Need of a resource as a function of what is asked for: c · scale.

    Attributes:
        powers: Of what is asked for of each resource; their product is the scale, 3.
        resource: Which, by its place.
        shares: c of all records that asked for the resource; none where they are too few.
        bounds: Amounts asked for that part groups of records, G − 1: who asks for little is likelier to ask for too
            little, so that c is not the same for all.
        groups: c of each group by POINTS points at most, G × points.
    """

    resource: int
    powers: Floats
    shares: Floats
    bounds: Floats
    groups: Floats

    def likely(self, requested: Floats) -> Floats:
        """Needs of those that ask for so much, each as likely as the others, N × 3 → N × points."""
        group = np.searchsorted(self.bounds, requested[:, self.resource])
        return scale(requested, self.powers)[:, None] * self.groups[group]

    def most(self, requested: Floats, level: float) -> Floats:
        """What those that ask for so much need at most, with this probability, N × 3 → N."""
        return scale(requested, self.powers) * (upper(self.shares, level) if len(self.shares) else np.inf)


def scale(amounts: Floats, powers: Floats) -> Floats:
    """Product of powers of what is asked for, N × 3 → N; nothing asked for counts as one."""
    return np.asarray(np.exp(np.log(np.where(amounts > 0, amounts, 1.0)) @ powers))


def headroom(every: Sequence[Records]) -> Floats:
    """Peak over mean use that 95 % of the records of a history keep below, 3."""
    factors = []
    for resource, assumed in enumerate(HEADROOM):
        ratios = np.concatenate([_ratios(records, resource) for records in every]) if every else np.empty(0)
        factors.append(upper(ratios, 0.95) if len(ratios) >= THIN else assumed)
    return np.array(factors)


def needs(given: Floats, needed: Floats) -> tuple[Need, ...]:
    """Need of each resource.

    Args:
        given: What records of a kind asked for, N × 3.
        needed: What they needed at their peak, N × 3.
    """
    return tuple(_need(given, needed[:, number], number) for number in range(len(RESOURCES)))


def upper(values: Floats, level: float) -> float:
    """What the next value exceeds in a share 1 − level of cases.

    An order statistic where there are enough values (conformal prediction); else the limit of a log-normal (Student's
    t), but no less than the largest.
    """
    count, largest = len(values), float(values.max())
    place = int(np.ceil((count + 1) * level - 1e-9))
    if place <= count:
        return float(np.partition(values, place - 1)[place - 1])
    logs = np.log(values[values > 0])
    if level >= 1 or len(logs) < 2:  # noqa: PLR2004 - a spread takes two
        return largest
    spread = logs.std(ddof=1) * np.sqrt(1 + 1 / len(logs))
    return max(largest, float(np.exp(logs.mean() + stdtrit(len(logs) - 1, level) * spread)))


def _need(given: Floats, needed: Floats, resource: int) -> Need:
    own = np.eye(len(RESOURCES))[resource]
    requested = given[:, resource] > 0
    if requested.sum() < THIN:
        return Need(resource, own, np.empty(0), np.empty(0), np.ones((1, 1)))
    given, needed = given[requested], needed[requested]
    # An idle resource is needed a little, for its logarithm's sake.
    needed = np.maximum(needed, MIN_SHARE * given[:, resource])
    candidates = [(power * own, needed / scale(given, power * own)) for power in POWERS]
    if len(needed) >= FITTED and (given > 0).all():
        candidates.append(_fitted(given, needed))
    powers, shares = min(candidates, key=lambda candidate: round(float(np.log(candidate[1]).std()), 9))
    asked_for = given[:, resource]
    bounds = np.unique(np.quantile(asked_for, np.arange(1, len(shares) // GROUP) / max(len(shares) // GROUP, 1)))
    group = np.searchsorted(bounds, asked_for)
    # Where many ask for the same, some groups may be empty.
    bounds = bounds[[bool((group == number).any() and (group > number).any()) for number in range(len(bounds))]]
    group = np.searchsorted(bounds, asked_for)
    groups = np.array([_points(shares[group == number], len(shares)) for number in range(len(bounds) + 1)])
    return Need(resource, powers, shares, bounds, groups)


def _points(shares: Floats, count: int) -> Floats:
    """Points as likely as each other; as many as there are records where these are few."""
    count = min(count, POINTS)
    points = np.quantile(shares, (np.arange(count) + 0.5) / count)
    points[-1] = shares.max()
    return np.asarray(points)


def _fitted(given: Floats, needed: Floats) -> tuple[Floats, Floats]:
    """Powers by least squares of logarithms, drawn a little towards zero, and c of records that were held back."""
    logs, target, fold = np.log(given), np.log(needed), np.arange(len(given)) % FOLDS
    missed = np.empty(len(given))
    for number in range(FOLDS):
        training_rows, out = fold != number, fold == number
        powers, level = _powers(logs[training_rows], target[training_rows])
        missed[out] = target[out] - level - logs[out] @ powers
    powers, level = _powers(logs, target)
    return powers, np.exp(missed + level)


def _powers(logs: Floats, target: Floats) -> tuple[Floats, float]:
    middle, level = logs.mean(axis=0), float(target.mean())
    logs = logs - middle
    powers = np.asarray(np.linalg.solve(logs.T @ logs + np.eye(logs.shape[1]), logs.T @ (target - level)), np.float64)
    return powers, level - float(middle @ powers)


def _ratios(records: Records, resource: int) -> Floats:
    used, peak = records.used[:, resource], records.peak[:, resource]
    usable = (used > 0) & (peak >= used)
    with np.errstate(over="ignore"):
        return np.asarray(peak[usable] / used[usable])
