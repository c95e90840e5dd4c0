"""What history says: forecasts that compete on each series' own past, and how far they missed there.

The competitors are the last value, the fitted network, means of the last while, the same time of the day and of the
week before, and what is usual at that time of the day. Each counts the more, the less it missed on the series over the
last WINDOW values, again over past days and weeks at the same time, and again lately: a jump at eight every evening is
missed by the last value once a day only, but then always. Where little is known, all but the network and the last
value hardly count. Quantiles are those of what the mixture missed (split conformal prediction; A. N. Angelopoulos and
S. Bates, arXiv:2107.07511), those at the same time of the day counting more, drawn to those of the network where that
was seen seldom; they are at least as far apart as the competitors are.
"""

from collections.abc import Sequence

import numpy as np

from kuayu.forecast.network import LEVELS, MIDDLE, medians, quantiles
from kuayu.forecast.past import DAY, HABITUAL, WEEK, WINDOW, Past
from kuayu.forecast.values import Flags, Floats, Whole

ORIGINS = 96
"""Instants of the past at which every competitor is tried."""

PRIOR = np.log([1.0, 3.0, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05])
"""How much the competitors count before anything is seen: last value, network, short and long mean, the day and the
week before, as they were and moved to the present level, and likewise what is usual at that time of the day."""

WEEKLY = slice(6, 8)
"""Places of the week before."""

USUAL = slice(8, 10)
"""Places of what is usual; it does not compete where it is not known."""

SAME_TIME = 28
"""Most days at whose same time competitors are tried."""

DAYS_OF_WEEK = 7

LATE = 6
"""Last instants at which competitors are tried once more, so that one of which all is over does not go on."""

DAYS_TRUST = 10.0
"""Days at which what was missed at the same time of the day counts as much as what was missed at all times."""

SHARPNESS = 0.5
"""How much a relative loss, seen once independently, counts against a competitor."""

TRUST = 40.0
"""Independent cases at which what was missed counts as much as what the network says."""


def told(past: Past, ahead: int, *, fresh: bool = False) -> Floats:
    """Forecast values.

    Args:
        past: Series that were observed.
        ahead: Steps after the last value, one at least.
        fresh: The last value is taken for the begin of something new, of which history knows nothing.

    Returns:
        Quantiles at the network's levels, S × Q.
    """
    last = past.length - 1
    tried, days = origins(past, ahead), same_time(past, ahead)
    late = last - ahead - np.arange(LATE)[::-1] if len(days) else days
    all_origins = np.concatenate([tried, days, late, [last]])
    features, scale = past.features(ahead, all_origins)
    network = quantiles(features[:, -1]) * scale[:, -1:]
    rivals, known = _rivals(past, ahead, all_origins, medians(features) * scale)
    targets = all_origins[:-1] + ahead
    # what nobody foresees tells nothing of who foresees best
    losses = np.where(known[:-1], np.abs(rivals[:, :-1] - past.values[:, targets, None]), np.nan)
    losses[np.isnan(past.real[:, targets])] = np.nan
    cases = independent(past, ahead)
    at_all, at_same, lately = np.split(losses, [len(tried), len(tried) + len(days)], axis=1)
    weeks = at_same[:, len(days) % DAYS_OF_WEEK :: DAYS_OF_WEEK]
    competes = np.arange(known.shape[1]) == 0 if fresh else known[-1]
    weights = _weights(at_all, (at_same, weeks, lately), cases, competes)
    mixed = (rivals * weights[:, None]).sum(axis=2)
    judged = slice(len(tried) + len(days))
    missed = past.real[:, targets[judged]] - mixed[:, judged]
    seen = _quantiles(missed, len(days))
    fitted = network - network[:, MIDDLE : MIDDLE + 1]
    share = cases / (cases + TRUST)
    values = np.maximum(mixed[:, -1:] + share * seen + (1 - share) * fitted, 0.0)
    values = _apart(values, rivals[:, -1], weights)
    whole = (past.values[:, -WINDOW:] % 1 == 0).all(axis=1)
    values = np.where(whole[:, None], np.round(values), values)
    return np.maximum.accumulate(values, axis=1)


def same_time(past: Past, ahead: int) -> Whole:
    """Columns whole days before the last, at which it is known what is usual, rising; none where they are few."""
    day = DAY / past.step
    count = min(SAME_TIME, int((past.length - 1) / day) - HABITUAL)
    if count < HABITUAL or day <= ahead:
        return np.zeros(0, dtype=np.int64)
    return past.length - 1 - np.round(np.arange(count, 0, -1) * day).astype(np.int64)


def origins(past: Past, ahead: int) -> Whole:
    """Columns of the past from which the horizon was seen to its end, rising; none where there is none."""
    latest = past.length - 1 - ahead
    span = min(WINDOW, latest)
    if span < 1:
        return np.zeros(0, dtype=np.int64)
    stride = max(1, -(-span // ORIGINS))
    return np.arange(latest, latest - span, -stride)[::-1].copy()


def independent(past: Past, ahead: int) -> float:
    """How many times the horizon was seen without overlap."""
    span = max(past.length - 1 - ahead, 0)
    return min(float(len(origins(past, ahead))), span / ahead, WINDOW / ahead)


def _rivals(past: Past, ahead: int, origins: Whole, network: Floats) -> tuple[Floats, Flags]:
    """Forecasts of all competitors, S × N × E, and which of them know something, N × E."""
    last = past.values[:, origins]
    made = [last, last + network, past.mean(max(2, ahead), origins), past.mean(8 * max(2, ahead), origins)]
    for period in (DAY, WEEK):
        made += past.seasonal(ahead, origins, period)
    *usual, known = past.usual(ahead, origins)
    made += usual
    # what is usual is no reason for more than there ever was
    made[-1] = np.clip(made[-1], past.values.min(axis=1)[:, None], past.values.max(axis=1)[:, None])
    rivals: Floats = np.maximum(np.stack(made, axis=2), 0.0)
    knows = np.ones((len(origins), len(made)), dtype=bool)
    knows[:, USUAL] = known[:, None]
    if len(same_time(past, ahead)):
        knows[:, WEEKLY] = (origins >= round(WEEK / past.step))[:, None]
    return rivals, knows


def _apart(values: Floats, rivals: Floats, weights: Floats) -> Floats:
    """Quantiles that are at least as far apart as the competitors are, S × Q.

    Args:
        values: Quantiles, S × Q.
        rivals: What competitors say, S × E.
        weights: How much they count, S × E.
    """
    order = np.argsort(rivals, axis=1)
    said, sums = (
        np.take_along_axis(rivals, order, axis=1),
        np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1),
    )
    places = np.minimum((sums[:, :, None] < LEVELS - 1e-9).sum(axis=1), rivals.shape[1] - 1)
    pooled = np.take_along_axis(said, places, axis=1)
    below = np.arange(len(LEVELS)) < MIDDLE
    found: Floats = np.where(below, np.minimum(values, pooled), np.maximum(values, pooled))
    found[:, MIDDLE] = values[:, MIDDLE]
    return found


def _weights(losses: Floats, alike: Sequence[Floats], cases: float, competes: Flags) -> Floats:
    """How much each competitor counts, S × E.

    Args:
        losses: At all times, S × N × E; not a number where nothing is known.
        alike: At times that are like now, each S × D × E: the same time of past days, the same of past weeks, and
            lately.
        cases: How many of all times are independent.
        competes: Which competitors do, E.
    """
    mean = _mean(losses)
    least = mean[:, competes].min(axis=1, keepdims=True)
    excess = mean / np.maximum(least, 1e-9) - 1
    scores = PRIOR - SHARPNESS * cases * np.minimum(excess, 1e3)
    for some in alike:
        if not some.shape[1]:
            continue
        then = _mean(some)
        best = then[:, competes].min(axis=1, keepdims=True)
        # a few cases may be met by luck: never better than half of what is met at all times
        behind = (then - best) / np.maximum(np.maximum(best, least / 2), 1e-9)
        scores = scores - SHARPNESS * some.shape[1] * np.minimum(behind, 1e3)
    scores = np.where(competes, scores, -np.inf)
    weights: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _mean(losses: Floats) -> Floats:
    """Means of the losses that are known, S × E; nought where none is."""
    there = ~np.isnan(losses)
    found: Floats = np.where(there, losses, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return found


def _quantiles(missed: Floats, days: int) -> Floats:
    """Quantiles of each row at the levels of the network, S × Q.

    Args:
        missed: S × N, not a number where nothing is known; the last so many are those at the same time of past days.
        days: How many these are.
    """
    count = missed.shape[1] - days
    if not count:
        return np.zeros((len(missed), len(LEVELS)))
    part = days / (days + DAYS_TRUST)
    each = np.concatenate([np.full(count, (1 - part)), np.full(days, part * count / max(days, 1))])
    order = np.argsort(missed, axis=1)  # what is not a number comes last
    ordered = np.take_along_axis(missed, order, axis=1)
    weight = np.where(np.isnan(ordered), 0.0, each[order])
    sums = np.cumsum(weight, axis=1)
    place = sums - weight / 2 + 0.5
    found = np.zeros((len(missed), len(LEVELS)))
    for row, (values, places, there) in enumerate(zip(ordered, place, (weight > 0).sum(axis=1), strict=True)):
        if there:
            # the level p stands at p·(n + 1) of what counts n, as split conformal prediction wants it
            found[row] = np.interp(LEVELS * (sums[row, -1] + 1), places[:there], values[:there])
    return found
