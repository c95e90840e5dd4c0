"""Phases of a training by their definition, looking both ways; what may be known while it runs is in `phases`.

Steps s are counted from 1. Warm-up lasts until the learning rate stops rising for the first time: no higher value
follows within the next tenth of the steps so far, and ten points at least. After it, with L₋ the mean loss and S₋ the
mean step of the points in (s/1.25, s], L₊ and S₊ those of the points in (s, 1.25·s],

    g(s) = ln(L₋/L₊) / ln(S₊/S₋)

and convergence is fast until the first step from which g < 0.1 for all steps of [s, 1.25·s], and for ten points at
least; from then on it is stable. A side of fewer than ten points is widened to the ten nearest, or as many as there
are; where a run ends before, what is there is taken. The last point has nothing after it: its g is not below 0.1.

Source: clause "Phases of training" of the profile FCT.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

RATIO = 1.25
"""Over which the loss is averaged, and for which it must fall slowly."""

SLOW = 0.1
"""g below which convergence is slow: ten per cent more steps lower the loss by less than about one per cent."""

AHEAD = 1.1
"""How far the learning rate must not rise any more: to so many times the steps."""

POINTS = 10
"""At least, of whatever is looked at: of the rate ahead, of either side of g, and of those that must be slow."""


def warm_up_end(steps: Floats, rates: Floats) -> int:
    """Place of the first point at which the learning rate stops rising; the last one where it rises to the end.

    Args:
        steps: Rising, N.
        rates: Learning rates, N.
    """
    reach = np.maximum(np.searchsorted(steps, AHEAD * steps, side="right"), np.arange(len(steps)) + 1 + POINTS)
    ends, values = np.minimum(reach, len(steps)).tolist(), rates.tolist()
    place = ahead = 0
    # What lies between a point and the next higher one sees that one too, since reaches rise: it may be skipped.
    while (ahead := ahead + 1) < ends[place]:
        if values[ahead] > values[place]:
            place = ahead
    return place


def falls(steps: Floats, losses: Floats) -> Floats:
    """Falls g at every point, N; nan where nothing follows, or a mean has no logarithm.

    Args:
        steps: Rising, N.
        losses: Losses of training, N.
    """
    middle = np.arange(1, len(steps) + 1)
    before = np.maximum(np.minimum(np.searchsorted(steps, steps / RATIO, side="right"), middle - POINTS), 0)
    after = np.minimum(np.maximum(np.searchsorted(steps, steps * RATIO, side="right"), middle + POINTS), len(steps))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        losses_to, steps_to = (np.concatenate([[0.0], np.cumsum(sums)]) for sums in (losses, steps))
        high, early = ((sums[middle] - sums[before]) / (middle - before) for sums in (losses_to, steps_to))
        low, late = ((sums[after] - sums[middle]) / (after - middle) for sums in (losses_to, steps_to))
        defined = (high > 0) & (low > 0) & (early > 0)
        return np.where(defined, np.log(high / low) / np.log(late / early), np.nan)


def reaches(steps: Floats) -> Places:
    """For every point, the place after the last one at which g counts for it, N; beyond N where the run is shorter.

    Args:
        steps: Rising, N.
    """
    return np.maximum(np.searchsorted(steps, steps * RATIO, side="right"), np.arange(len(steps)) + POINTS)


def slow_from(steps: Floats, slopes: Floats, first: int) -> int | None:
    """Place of the first point from which the loss falls slowly, as far as g is given; None where there is none.

    Args:
        steps: Rising, N.
        slopes: g of the first M points; nan is not slow.
        first: Where to begin.
    """
    number = len(slopes)
    # The next quick place at or after each place.
    places = np.where(slopes < SLOW, number, np.arange(number))
    following = np.minimum.accumulate(places[::-1])[::-1]
    slow = following >= np.minimum(reaches(steps)[:number], number)
    slow[:first] = False
    return int(np.argmax(slow)) if slow.any() else None


def told_so_far(steps: Floats) -> int:
    """Number of the first points whose g no later point can change any more.

    Args:
        steps: Rising, N.
    """
    return max(min(int(np.searchsorted(steps, steps[-1] / RATIO, side="right")), len(steps) - POINTS), 0)


def slow_so_far(steps: Floats, slopes: Floats, first: int) -> tuple[int | None, bool]:
    """Place of the first point from which the loss falls slowly as far as is known by now, and whether that is final.

    Args:
        steps: Rising, N.
        slopes: g, N.
        first: Where to begin.
    """
    known = told_so_far(steps)
    place = slow_from(steps, slopes[:known], first)
    return place, place is not None and int(reaches(steps)[place]) <= known


def boundaries(steps: Floats, losses: Floats, rates: Floats) -> tuple[int, int]:
    """Places at which fast and stable convergence begin; N where they do not.

    Args:
        steps: Rising, N.
        losses: Losses of training, N.
        rates: Learning rates, N.
    """
    begin = warm_up_end(steps, rates)
    if begin == len(steps) - 1 and len(steps) > 1:
        return len(steps), len(steps)
    stable = slow_from(steps, falls(steps, losses), begin)
    return begin, len(steps) if stable is None else stable
