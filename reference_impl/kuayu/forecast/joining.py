"""Structure and history together.

A series later = what its foreseen jobs will hold + what they do not explain now, moving as history has it + who comes
unforeseen. As many come as came of late among its jobs and are still there, less the share that is announced, which is
measured over all series of the request. What a series has risen by is no measure of it: jobs that are there take more
devices from one period to the next, and that is foreseen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from kuayu.forecast.network import LEVELS
from kuayu.forecast.structure import Foreseen
from kuayu.forecast.totals import added, visited
from kuayu.forecast.values import Floats

CASES = 64
"""Equally frequent cases that stand for what history says."""

SHARP = 0.5
"""Sharpness from which jobs are believed altogether. What jobs do that may leave at any time hangs together: they come
and leave in groups, and one replaces another. Independent chances miss that, and history has it."""

SURE = 1e-9
"""Mass that sums may be off."""

MIDDLES = (np.arange(CASES) + 0.5) / CASES


@dataclass(frozen=True)
class Remembered:
    """What history says of one series, at T horizons.

    Attributes:
        last: Its last value.
        values: Quantiles at the levels of the network, T × Q.
        whole: Whether all its values are whole.
        before: The same without readings at its end that may be an error; nothing where there are none.
    """

    last: float
    values: Floats
    whole: bool
    before: "Remembered | None" = None


def mixture(taken: Floats, before: Floats, doubt: float) -> Floats:
    """Quantiles of what is one or the other, at the levels of the network, Q.

    Args:
        taken: Quantiles of the one, Q.
        before: Quantiles of the other, Q.
        doubt: Chance of the other.
    """
    both = np.concatenate([at_levels(each[None], MIDDLES)[0] for each in (taken, before)])
    order = np.argsort(both, kind="stable")
    mass = np.repeat([1 - doubt, doubt], CASES)[order] / CASES
    found: Floats = both[order][np.minimum(np.searchsorted(np.cumsum(mass), LEVELS - SURE), len(both) - 1)]
    return found


def believed(foreseen: Foreseen, remembered: Remembered) -> Remembered:
    """What history says, without readings that may be an error where jobs say that they are one."""
    if remembered.before is None:
        return remembered
    apart, before = (
        abs(each.last - min(max(each.last, foreseen.low), foreseen.high)) for each in (remembered, remembered.before)
    )
    return remembered.before if before < apart else remembered


def at_levels(values: Floats, levels: Floats) -> Floats:
    """Quantiles at other levels, T × P for quantiles of T × Q, straight in normal scores, and on beyond the ends."""
    wanted, known = ndtri(levels), ndtri(LEVELS)
    found = np.stack([np.interp(wanted, known, row) for row in values])
    for end, inner, beyond in ((0, 1, wanted < known[0]), (-1, -2, wanted > known[-1])):
        slope = (values[:, end] - values[:, inner]) / (known[end] - known[inner])
        outside = values[:, end, None] + slope[:, None] * (wanted - known[end])
        found = np.where(beyond, outside, found)
    quantiles: Floats = np.maximum(found, 0.0)
    return quantiles


def unannounced(seen: Sequence[Foreseen], horizons: int) -> Floats:
    """Share of arrivals that are not announced, T.

    Args:
        seen: What jobs say of the series that they explain.
        horizons: How many, T.
    """
    usual = sum((each.arrivals * (each.sizes.mean() if len(each.sizes) else 0.0) for each in seen), np.zeros(horizons))
    announced = sum((each.announced for each in seen), np.zeros(horizons))
    share: Floats = 1 - np.clip(announced / np.maximum(usual, 1e-9), 0.0, 1.0)
    return share


def explained(foreseen: Foreseen, last: float) -> tuple[float, float]:
    """What jobs leave of the last value, and the share of it that they explain.

    Jobs came since the last value was taken, so it may lie anywhere between what they made of it then and now.
    """
    left = last - min(max(last, foreseen.low), foreseen.high)
    largest = max(last, foreseen.low)
    return left, 1.0 - abs(left) / largest if largest > 0 else 1.0


def join(foreseen: Foreseen, remembered: Remembered, unforeseen: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """Put structure and history together.

    Args:
        foreseen: What jobs say.
        remembered: What history says.
        unforeseen: Share of arrivals that are not announced, T.
        levels: Levels of quantiles, P.

    Returns:
        Quantiles, T × P, and the share that comes from structure, T.
    """
    left, share = explained(foreseen, remembered.last)
    drift = (1 - share) * (at_levels(remembered.values, MIDDLES) - remembered.last)
    spread = added(foreseen.spread, left + drift)
    coming = unforeseen * foreseen.arrivals
    spread = visited(spread, coming, foreseen.sizes, foreseen.shape)
    belief = np.minimum(foreseen.sharpness / SHARP, 1.0)[:, None]
    before = at_levels(remembered.values, levels)
    found = np.maximum(before + belief * (spread.at(levels) - before), 0.0)
    structure = foreseen.spread.mean
    other = abs(left) + coming * (foreseen.sizes.mean() if len(foreseen.sizes) else 0.0)
    with np.errstate(invalid="ignore"):
        part = np.where(structure + other > 0, structure / np.maximum(structure + other, 1e-9), share)
    values = np.round(found, 0 if remembered.whole else 9).astype(np.float64)
    return values, np.clip(part, 0.0, 1.0) * belief[:, 0]
