"""In which phase trainings are, from what was before: the learning rate, and a loss that falls fast or slowly.

1. The definition looks both ways. Steps s are counted from 1. Warm-up lasts until the learning rate stops rising for
   the first time: no higher value follows within the next tenth of the steps so far, and ten points at least. After it,
   with L₋ the mean loss and S₋ the mean step of the points in (s/1.25, s], L₊ and S₊ those of the points in (s,
   1.25·s],

       g(s) = ln(L₋/L₊) / ln(S₊/S₋)

   and convergence is fast until the first step from which g < 0.1 for all steps of [s, 1.25·s], and for ten points at
   least; from then on it is stable. A side of fewer than ten points is widened to the ten nearest, or as many as there
   are; where a run ends before, what is there is taken. The last point has nothing after it: its g is not below 0.1.
2. What the definition already settles is settled: a loss that has fallen slowly for long enough does so for ever. Until
   then, whether the definition will call the last step stable is for trees to say that were fitted to drawn curves
   (`python -m kuayu_training.forecast.phases --fit`); their share is the confidence.
3. Trees look at signs: how the loss and the learning rate fell of late. All are computed from means of the loss over
   windows that grow with the step, as the definition's are: thirds of a factor of 1.25, back from the last step, three
   of them never fewer than ten points. A run of any length looks the same, but where ten points are more than that
   factor.

Source: clause "Phases of training" of the profile FCT.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xgboost

from kuayu.refusals import Impossible, RepeatedName, refuse, repeated

if TYPE_CHECKING:
    from kuayu_schemas import documents


METHOD: "documents.ForecastMethod" = {"name": "definition, and boosted trees for what it leaves open", "version": "2"}

TREES = "phases.ubj"
"""File of the trees, beside this one."""

SURE = 0.99
"""Confidence in what the definition settles but for what is not stated, such as rounding of rates."""

TOPS = 3.0
"""Of runs whose rate rises at point n, one in TOPS·(n + 1) has its highest rate there, by the drawn curves."""


def recognise(request: "documents.PhaseRequest") -> "documents.PhaseReport":
    """Say in which phase of its training each curve is.

    Raises:
        RepeatedName: Curves share a name.
        Impossible: The steps of a curve do not rise.
    """
    curves = request["curves"]
    refuse(RepeatedName, repeated("/curves", [curve["id"] for curve in curves]))
    columns = [_columns(curve["points"]) for curve in curves]
    refuse(
        Impossible,
        [
            (f"/curves/{place}/points/{int(np.argmax(np.diff(column[0]) <= 0)) + 1}/step", "steps do not rise")
            for place, column in enumerate(columns)
            if (np.diff(column[0]) <= 0).any()
        ],
    )
    answers: dict[int, documents.RecognisedPhase] = {}
    wanted, rows = [], []
    for place, (curve, (steps, losses, rates)) in enumerate(zip(curves, columns, strict=True)):
        begin, sure = risen(steps, rates)
        if begin is None:
            answers[place] = _answer(curve, "warm_up", steps[0], sure)
            continue
        slopes = falls(steps, losses)
        slow, final = slow_so_far(steps, slopes, begin)
        if final and slow is not None:
            answers[place] = _answer(curve, "stable_convergence", steps[slow], sure)
            continue
        wanted.append((place, float(steps[begin]), float(steps[-1 if slow is None else slow]), sure))
        rows.append(signs(steps, losses, rates, slopes, begin))
    if rows:
        for (place, begun, slowed, sure), share in zip(wanted, chances(np.array(rows)).tolist(), strict=True):
            if share > 0.5:  # noqa: PLR2004 - what is likelier
                answers[place] = _answer(curves[place], "stable_convergence", slowed, sure * share)
            else:
                answers[place] = _answer(curves[place], "fast_convergence", begun, sure * (1 - share))
    phases = [answers[place] for place in range(len(curves))]
    return {"revision": request["revision"], "method": METHOD, "phases": phases}


Floats = npt.NDArray[np.float64]


def risen(steps: Floats, rates: Floats) -> tuple[int | None, float]:
    """Place at which warm-up ended, None where it lasts; and with what confidence.

    Before the definition settles it, warm-up counts as over when the rate has stood longer than ever while it rose.
    """
    place = warm_up_end(steps, rates)
    since = len(steps) - 1 - place
    rising = min(1 - 1 / (TOPS * (len(steps) + 1)), SURE)
    if since == 0:
        return None, rising
    if since >= POINTS and float(steps[-1]) >= AHEAD * float(steps[place]):
        return place, SURE
    heights = np.maximum.accumulate(rates[: place + 1])
    rises = np.flatnonzero(np.diff(heights, prepend=-np.inf) > 0)
    longest = int(np.diff(rises).max()) if len(rises) > 1 else 0
    return (place, SURE) if since >= max(longest, 1) else (None, rising)


def chances(table: Floats) -> Floats:
    """Probability that the definition will call the last steps stable, by their signs, N × signs → N."""
    with xgboost.config_context(verbosity=0, nthread=1):
        return np.asarray(_trees().inplace_predict(table), dtype=np.float64)


WINDOWS = 24
"""How many, back from the last step: 1.25 to the power of 8, where there are points enough."""

MIN_WINDOW_POINTS = (4, 3, 3)
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
    features = [_slope(edges, sums, passed, width, 0) for width in WIDTHS]
    features += [_slope(edges, sums, passed, 3, back) for back in BACKS]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = -np.diff(sums) / number
        spreads = np.maximum(-np.diff(squares) / number - means**2, 0.0)
        logs = np.where(means > 0, np.log(means), np.nan)
        back = np.log(-np.diff(passed) / number / steps[-1])
    for degree, windows in FITS:
        features += _fit(logs[:windows], back[:windows], number[:windows], degree, ahead / 2)
    near = int(number[:3].sum())
    spread = float(np.sqrt(np.nansum(spreads[:3] * number[:3]) / max(near, 1)))
    level = float(sums[0] - sums[3]) / max(near, 1)
    noise = spread / level / np.sqrt(near) if level > 0 else np.nan
    bends = np.diff(logs[:9], 2)
    bends = bends[np.isfinite(bends)]
    features += [noise, noise / ahead, float(bends.std()) if len(bends) > 1 else np.nan]
    features += _slow_share(steps, slopes, begin)
    features += _open(steps, slopes, begin)
    features += [
        float(np.log(max(steps[-1], 1.0) / max(float(steps[begin]), 1.0))),
        float(np.log(len(steps) - begin)),
        float(np.log(len(steps))),
        ahead,
    ]
    features += _rates(steps, rates)
    features.append(_floor(logs, number))
    return np.array(features)


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


@lru_cache(maxsize=1)
def _trees() -> xgboost.Booster:
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray((files("kuayu.forecast") / TREES).read_bytes()))
    return booster


def _columns(points: "Sequence[documents.CurvePoint]") -> tuple[Floats, Floats, Floats]:
    table = np.array([(point["step"], point["loss"], point["learning_rate"]) for point in points], dtype=np.float64)
    return table[:, 0], table[:, 1], table[:, 2]


def _answer(
    curve: "documents.TrainingCurve", phase: "documents.TrainingPhase", since: float, confidence: float
) -> "documents.RecognisedPhase":
    return {"curve": curve["id"], "phase": phase, "since": int(since), "confidence": confidence}


def _edges(steps: Floats) -> Places:
    """Places at which windows end, the latest first, WINDOWS + 1."""
    places = [len(steps)]
    for window in range(WINDOWS):
        last = places[-1]
        grown = int(np.searchsorted(steps, steps[last - 1] / RATIO ** (1 / 3), side="right")) if last else 0
        places.append(max(min(grown, last - MIN_WINDOW_POINTS[window % 3]), 0))
    return np.array(places)


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
    coefficients = inverse @ table.T @ (logs[usable] * weights)
    left = logs[usable] * weights - table @ coefficients
    variance = float(left @ left) / (usable.sum() - degree - 1)
    direction = np.array([0.0, 1.0, 2 * ahead][: degree + 1])
    return [
        -float(direction @ coefficients),
        float(np.sqrt(max(variance * float(direction @ inverse @ direction), 0.0))),
    ]


def _slow_share(steps: Floats, slopes: Floats, begin: int) -> list[float]:
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
    window = slopes[since:known]
    if len(window) == 0:
        window = slopes[known - 1 : known]
    return [
        (known - since) / needed,
        (len(steps) - since) / needed,
        float(window.mean()),
        float(window.max()),
        float(window.std()),
        float((slopes[first:known] < SLOW).mean()),
    ]


def _open(steps: Floats, slopes: Floats, begin: int) -> list[float]:
    """The latest g that is told, and means of g as of now over the earlier parts of what is open."""
    known = told_so_far(steps)
    slopes_open = [float(slopes[known - 1]) if known > begin else np.nan]
    cuts = np.linspace(max(known, begin), len(steps) - 1, OPEN + 1).round().astype(int)
    for early, late in pairwise(cuts[:-1]):
        slopes_open.append(float(slopes[early:late].mean()) if late > early else np.nan)
    return slopes_open


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
