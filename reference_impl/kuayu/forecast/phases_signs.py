"""Signs of the phase that a training is in, from what was before: how its loss and its learning rate fell of late.

All are computed from means of the loss over windows that grow with the step, as the definition's are: thirds of a
factor of 1.25, back from the last step, three of them never fewer than ten points. A run of any length looks the same,
but where ten points are more than that factor.
"""

from itertools import pairwise

import numpy as np

from kuayu.forecast.phases_definition import POINTS, RATIO, SLOW, Floats, Places, reaches, told_so_far

WINDOWS = 24
"""How many, back from the last step: 1.25 to the power of 8, where there are points enough."""

LEAST = (4, 3, 3)
"""Points that a window holds at least, by turns."""

FLAT = 1e-6
"""A fall that nothing can be compared with."""

WIDTHS, BACKS = (1, 2, 3, 6, 9), (1, 2, 3, 6, 9)
FITS = ((1, 6), (1, 12), (2, 12), (2, 24))
"""Degrees of the polynomials, and windows that they are fitted to."""

OPEN = 4
"""Points of the course that the definition still leaves open, evenly spread, at which g as of now is a sign."""

NAMES = (
    *(f"slope_{width}" for width in WIDTHS),
    *(f"slope_3_back_{back}" for back in BACKS),
    *(f"{what}_{degree}_{windows}" for degree, windows in FITS for what in ("fit", "doubt")),
    "noise",
    "noise_of_g",
    "scatter",
    *("held", "held_to_now", "held_mean", "held_most", "held_scatter", "low_share"),
    *(f"open_{place}" for place in range(OPEN)),
    *("since_warm_up", "points_since", "points", "ahead"),
    *("rate", "rate_slope", "floor"),
)
"""Of the signs, in their order."""


def signs(steps: Floats, losses: Floats, rates: Floats, slopes: Floats, begin: int) -> Floats:
    """Signs at the last point; nan where too little was before.

    Args:
        steps: Rising, N.
        losses: Losses of training, N.
        rates: Learning rates, N.
        slopes: g, N, as of now.
        begin: Place at which warm-up ended.
    """
    # Units do not count, and nothing overflows.
    losses = losses / max(float(np.abs(losses).max()), 1e-300)
    edges = _edges(steps)
    sums, squares, passed = (np.concatenate([[0.0], np.cumsum(values)])[edges] for values in (losses, losses**2, steps))
    number = -np.diff(edges).astype(np.float64)
    ahead = max(np.log(RATIO), float(np.log1p(POINTS * (steps[-1] - steps[0]) / max(len(steps) - 1, 1) / steps[-1])))
    found = [_slope(edges, sums, passed, width, 0) for width in WIDTHS]
    found += [_slope(edges, sums, passed, 3, back) for back in BACKS]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = -np.diff(sums) / number
        spreads = np.maximum(-np.diff(squares) / number - means**2, 0.0)
        logs = np.where(means > 0, np.log(means), np.nan)
        back = np.log(-np.diff(passed) / number / steps[-1])
    for degree, windows in FITS:
        found += _fit(logs[:windows], back[:windows], number[:windows], degree, ahead / 2)
    near = int(number[:3].sum())
    spread = float(np.sqrt(np.nansum(spreads[:3] * number[:3]) / max(near, 1)))
    level = float(sums[0] - sums[3]) / max(near, 1)
    noise = spread / level / np.sqrt(near) if level > 0 else np.nan
    bends = np.diff(logs[:9], 2)
    bends = bends[np.isfinite(bends)]
    found += [noise, noise / ahead, float(bends.std()) if len(bends) > 1 else np.nan]
    found += _held(steps, slopes, begin)
    found += _open(steps, slopes, begin)
    found += [
        float(np.log(max(steps[-1], 1.0) / max(float(steps[begin]), 1.0))),
        float(np.log(len(steps) - begin)),
        float(np.log(len(steps))),
        ahead,
    ]
    found += _rates(steps, rates)
    found.append(_floor(logs, number))
    return np.array(found)


def _edges(steps: Floats) -> Places:
    """Places at which windows end, the latest first, WINDOWS + 1."""
    found = [len(steps)]
    for window in range(WINDOWS):
        last = found[-1]
        grown = int(np.searchsorted(steps, steps[last - 1] / RATIO ** (1 / 3), side="right")) if last else 0
        found.append(max(min(grown, last - LEAST[window % 3]), 0))
    return np.array(found)


def _slope(edges: Places, sums: Floats, passed: Floats, width: int, back: int) -> float:
    """As g is: between two neighbours of so many windows each, so many windows back."""
    ends = [min(back + part * width, WINDOWS) for part in range(3)]
    number, loss, step = (-np.diff(sums[ends]) for sums in (edges, sums, passed))
    if (number <= 0).any() or (loss <= 0).any() or (step <= 0).any():
        return np.nan
    (low, high), (late, early) = loss / number, step / number
    return float(np.log(high / low) / np.log(late / early))


def _fit(logs: Floats, back: Floats, number: Floats, degree: int, ahead: float) -> list[float]:
    """Fall of a polynomial at the middle of the window to come, and its standard error."""
    usable = np.isfinite(logs) & np.isfinite(back) & (number > 0)
    if usable.sum() < degree + 2:
        return [np.nan, np.nan]
    weights = np.sqrt(number[usable])
    table = back[usable, None] ** np.arange(degree + 1) * weights[:, None]
    inverse = np.linalg.pinv(table.T @ table)
    found = inverse @ table.T @ (logs[usable] * weights)
    left = logs[usable] * weights - table @ found
    variance = float(left @ left) / (usable.sum() - degree - 1)
    way = np.array([0.0, 1.0, 2 * ahead][: degree + 1])
    return [-float(way @ found), float(np.sqrt(max(variance * float(way @ inverse @ way), 0.0)))]


def _held(steps: Floats, slopes: Floats, begin: int) -> list[float]:
    """For what share of what is needed g has been low, as told and with what is open; how low, and how often."""
    known = told_so_far(steps)
    first = max(int(np.searchsorted(steps, steps[-1] / RATIO**4, side="right")), begin)
    if known <= first:
        return [0.0, (len(steps) - begin) / max(int(reaches(steps)[begin]) - begin, 1), np.nan, np.nan, np.nan, np.nan]
    high = np.flatnonzero(~(slopes[first:known] < SLOW))
    since = first + int(high[-1]) + 1 if len(high) else first
    needed = int(np.searchsorted(steps, steps[since] * RATIO, side="right"))
    if needed >= len(steps):  # by the spacing of late
        gap = max(float(steps[-1] - steps[max(len(steps) - POINTS, 0)]) / min(len(steps) - 1, POINTS - 1), 1e-9)
        needed = len(steps) + int((steps[since] * RATIO - steps[-1]) / gap)
    needed = max(needed - since, POINTS)
    held = slopes[since:known]
    if len(held) == 0:
        held = slopes[known - 1 : known]
    return [
        (known - since) / needed,
        (len(steps) - since) / needed,
        float(held.mean()),
        float(held.max()),
        float(held.std()),
        float((slopes[first:known] < SLOW).mean()),
    ]


def _open(steps: Floats, slopes: Floats, begin: int) -> list[float]:
    """The latest g that is told, and means of g as of now over the earlier parts of what is open."""
    known = told_so_far(steps)
    found = [float(slopes[known - 1]) if known > begin else np.nan]
    cuts = np.linspace(max(known, begin), len(steps) - 1, OPEN + 1).round().astype(int)
    for early, late in pairwise(cuts[:-1]):
        found.append(float(slopes[early:late].mean()) if late > early else np.nan)
    return found


def _rates(steps: Floats, rates: Floats) -> list[float]:
    """Learning rate over its highest, and by what power of the steps it falls of late."""
    highest = float(rates.max())
    early = int(np.searchsorted(steps, steps[-1] / RATIO, side="left"))
    if highest <= 0:
        return [1.0, 0.0]
    now, then = float(rates[-1]) / highest, float(rates[min(early, len(rates) - 1)]) / highest
    return [now, (then - now) / max(then, 1e-9)]


def _floor(logs: Floats, number: Floats) -> float:
    """Fall of late over the fall two powers of 1.25 before: how quickly the fall itself falls."""
    usable = np.isfinite(logs) & (number > 0)
    if not usable[:18].all():
        return np.nan
    late = np.average(logs[3:6], weights=number[3:6]) - np.average(logs[:3], weights=number[:3])
    early = np.average(logs[12:18], weights=number[12:18]) - np.average(logs[6:12], weights=number[6:12])
    return float(late / early * 2) if abs(early) > FLAT else np.nan
