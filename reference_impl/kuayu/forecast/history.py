"""What history says: forecasts that compete on each series' own past, and how far they missed there.

1. The competitors are the last value, the fitted network, means of the last while, the same time of the day and of the
   week before, what is usual at that time of the day, and a regression on all of these. Each counts the more, the less
   it missed on the series over the last WINDOW values, again over past days and weeks at the same time, and again
   lately: a jump at eight every evening is missed by the last value once a day only, but then always. Where little is
   known, all but the network and the last value hardly count.
2. Quantiles are those of what the mixture missed (split conformal prediction; A. N. Angelopoulos and S. Bates,
   arXiv:2107.07511), those at the same time of the day counting more, drawn to those of the network where that was
   seen seldom; they are at least as far apart as the competitors are.
3. The network is small, was fitted once to series of public traces, and is evaluated in NumPy. It sees features of any
   series at any horizon, in units of that series' own movement, and gives quantiles of what the series will move until
   then. ``python -m kuayu_training.forecast fit`` makes its weights.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from kuayu.forecast.requests import Flags, Floats, Whole
from kuayu.forecast.series import DAY, DAYS_OF_WEEK, HABITUAL, WEEK, WINDOW, Past

ORIGINS = 96
"""Instants of the past at which every competitor is tried."""

PRIOR = np.log([1.0, 3.0, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05])
"""How much the competitors count before anything is seen: last value, network, short and long mean, the day and the
week before, as they were and moved to the present level, likewise what is usual at that time of the day, and a
regression on all of them."""

WEEKLY = slice(6, 8)
"""Places of the week before."""

USUAL = slice(8, 10)
"""Places of what is usual; it does not compete where it is not known."""

SAME_TIME = 28
"""Most days at whose same time competitors are tried."""

_NONE: Whole = np.zeros(0, dtype=np.int64)

RIDGE = 3.0
"""Independent cases that say that the last value stays, against which the regression is drawn."""

FITS = 4
"""Times that the regression is fitted anew, with less weight for what missed by far, so that it meets the median."""

MIN_REGRESSION_CASES = 24.0
"""Independent cases without which nothing is fitted."""

WIDTHS = (0.5, 4.0, 32.0)
"""Windows whose means the regression sees beside the competitors', in horizons."""

LATE = 6
"""Last instants at which competitors are tried once more, so that one of which all is over does not go on."""

DAYS_TRUST = 10.0
"""Days at which what was missed at the same time of the day counts as much as what was missed at all times."""

SHARPNESS = 0.5
"""How much a relative loss, seen once independently, counts against a competitor."""

TRUST = 40.0
"""Independent cases at which what was missed counts as much as what the network says."""


def predict(past: Past, ahead: int, *, fresh: bool = False) -> Floats:
    """Forecast values: quantiles at the network's levels, S × Q (`replayed`)."""
    return replayed(past, ahead, _NONE, fresh=fresh)[0]


def replayed(past: Past, ahead: int, columns: Whole, *, fresh: bool = False) -> tuple[Floats, Floats]:
    """Forecast values, and say what would have been forecast at instants of the past by the weights of now.

    Args:
        past: Series that were observed.
        ahead: Steps after the last value, one at least.
        columns: Instants of the past, K.
        fresh: The last value is taken for the beginning of something new, of which history knows nothing.

    Returns:
        Quantiles at the network's levels, S × Q, and medians at the columns, S × K.
    """
    last = past.length - 1
    tried, days = origins(past, ahead), same_time(past, ahead)
    late = last - ahead - np.arange(LATE)[::-1] if len(days) else days
    all_origins = np.concatenate([tried, days, late, columns, [last]])
    features, scale = past.features(ahead, all_origins)
    network = network_quantiles(features[:, -1]) * scale[:, -1:]
    competitors, known = _competitors(past, ahead, all_origins, medians(features) * scale)
    competitors, known = _with_regression(past, ahead, all_origins, len(tried), (competitors, known))
    seen = slice(len(tried) + len(days) + len(late))
    targets = all_origins[seen] + ahead
    # what nobody foresees tells nothing of who foresees best
    losses = np.where(known[seen], np.abs(competitors[:, seen] - past.values[:, targets, None]), np.nan)
    losses[np.isnan(past.real[:, targets])] = np.nan
    cases = independent(past, ahead)
    at_all, at_same, lately = np.split(losses, [len(tried), len(tried) + len(days)], axis=1)
    weeks = at_same[:, len(days) % DAYS_OF_WEEK :: DAYS_OF_WEEK]
    competes = np.arange(known.shape[1]) == 0 if fresh else known[-1]
    weights = _weights(at_all, (at_same, weeks, lately), cases, competes)
    mixed = (competitors * weights[:, None]).sum(axis=2)
    judged = slice(len(tried) + len(days))
    missed = past.real[:, targets[judged]] - mixed[:, judged]
    usual = _quantiles(missed, len(days))
    fitted = network - network[:, MIDDLE : MIDDLE + 1]
    share = cases / (cases + TRUST)
    values = np.maximum(mixed[:, -1:] + share * usual + (1 - share) * fitted, 0.0)
    values = _apart(values, competitors[:, -1], weights)
    whole = (past.values[:, -WINDOW:] % 1 == 0).all(axis=1)
    values = np.where(whole[:, None], np.round(values), values)
    then: Floats = mixed[:, seen.stop : -1]
    return np.maximum.accumulate(values, axis=1), then


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


NETWORK_WEIGHTS = "history.npz"

_BELOW = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]

LEVELS = np.array([*_BELOW, 0.5, *(round(1 - level, 3) for level in reversed(_BELOW))])
"""Levels whose quantiles are told, Q."""

MIDDLE = 12
"""Place of the median among them."""

Weights = Mapping[str, Floats]


@cache
def network_weights() -> Weights:
    """What was fitted. In double precision, so that what stands beside a series does not show in its last digits."""
    with (files("kuayu.forecast") / NETWORK_WEIGHTS).open("rb") as file, np.load(file) as stored:
        return {name: stored[name].astype(float) for name in stored.files if stored[name].dtype == np.float32}


def network_quantiles(features: Floats) -> Floats:
    """Quantiles of the movement, in units of the usual movement.

    Args:
        features: … × FEATURES.

    Returns:
        … × Q, rising.
    """
    predicted: Floats = _network_rising(_evaluated(features, slice(None))).reshape(*features.shape[:-1], len(LEVELS))
    return predicted


def medians(features: Floats) -> Floats:
    """Medians of the movement alone, which take less time: … for features of … × FEATURES."""
    predicted: Floats = _evaluated(features, slice(MIDDLE, MIDDLE + 1)).reshape(features.shape[:-1])
    return predicted


def _competitors(past: Past, ahead: int, origins: Whole, network: Floats) -> tuple[Floats, Flags]:
    """Forecasts of all competitors, S × N × E, and which of them know something, N × E."""
    last = past.values[:, origins]
    forecasts = [last, last + network, past.mean(max(2, ahead), origins), past.mean(8 * max(2, ahead), origins)]
    for period in (DAY, WEEK):
        forecasts += past.seasonal(ahead, origins, period)
    *usual, known = past.usual(ahead, origins)
    forecasts += usual
    # what is usual is no reason for more than there ever was
    forecasts[-1] = np.clip(forecasts[-1], past.values.min(axis=1)[:, None], past.values.max(axis=1)[:, None])
    competitors: Floats = np.maximum(np.stack(forecasts, axis=2), 0.0)
    knows = np.ones((len(origins), len(forecasts)), dtype=bool)
    knows[:, USUAL] = known[:, None]
    if len(same_time(past, ahead)):
        knows[:, WEEKLY] = (origins >= round(WEEK / past.step))[:, None]
    return competitors, knows


def _with_regression(
    past: Past, ahead: int, origins: Whole, count: int, competitors: tuple[Floats, Flags]
) -> tuple[Floats, Flags]:
    """The competitors with one more: a regression on them, fitted to the series itself.

    It says by how much the series leaves its last value, by least absolute errors (iteratively reweighted least squares
    with a ridge; E. J. Schlossmacher, Journal of the American Statistical Association 68, 1973). What it says of the
    older half of the past was fitted to the later one and the reverse, so that it is judged by what it did not see.

    Args:
        past: Series.
        ahead: Steps from an origin.
        origins: Columns, N; the first so many are those that it is fitted to.
        count: How many.
        competitors: Competitors, S × N × E, and which of them know something, N × E.
    """
    others, known = competitors
    last = others[:, :, :1]
    cases = independent(past, ahead)
    if cases < MIN_REGRESSION_CASES:
        missing = np.zeros((len(origins), 1), dtype=bool)
        return np.concatenate([others, last], axis=2), np.concatenate([known, missing], axis=1)
    means = [past.mean(max(2, round(width * ahead)), origins) for width in WIDTHS]
    seen = np.concatenate([others[:, :, 1:], np.stack(means, axis=2)], axis=2) - last
    scale = np.sqrt(np.square(seen[:, :count]).mean(axis=1, keepdims=True)) + 1e-9
    seen = np.concatenate([seen / scale, np.ones((*seen.shape[:2], 1))], axis=2)
    moved = past.real[:, origins[:count] + ahead] - others[:, :count, 0]
    half = count // 2
    fits = [_fitted(seen[:, some], moved[:, some], cases * part) for some, part in _halves(count)]
    older, later, whole = (np.einsum("snf,sf->sn", seen, fit) for fit in fits)
    said = np.where(np.arange(len(origins)) < half, later, whole)
    said[:, half:count] = older[:, half:count]
    # days of the past that were not fitted to lie mostly before: what was fitted to the later half judges them
    said[:, count:-1] = np.where(origins[count:-1] < origins[half], later[:, count:-1], older[:, count:-1])
    values = np.maximum(last + said[:, :, None], 0.0)
    usable = np.ones((len(origins), 1), dtype=bool)
    return np.concatenate([others, values], axis=2), np.concatenate([known, usable], axis=1)


def _halves(count: int) -> list[tuple[slice, float]]:
    """Older half, later half, and all of so many places, each with its share."""
    half = count // 2
    return [(slice(0, half), 0.5), (slice(half, count), 0.5), (slice(0, count), 1.0)]


def _fitted(seen: Floats, moved: Floats, cases: float) -> Floats:
    """Coefficients of least absolute errors, S × F, for S × N × F and S × N."""
    usable = ~np.isnan(moved)
    target = np.where(usable, moved, 0.0)
    size = np.abs(target).sum(axis=1, keepdims=True) / np.maximum(usable.sum(axis=1, keepdims=True), 1) + 1e-9
    weight = usable.astype(float)
    ridge = RIDGE / cases * seen.shape[1] * np.eye(seen.shape[2])
    coefficients = np.zeros((len(seen), seen.shape[2]))
    for _ in range(FITS):
        weighted = seen * weight[:, :, None]
        normal = np.einsum("snf,sng->sfg", weighted, seen, optimize=True) + ridge
        coefficients = np.linalg.solve(normal, np.einsum("snf,sn->sf", weighted, target)[:, :, None])[:, :, 0]
        missed = np.abs(target - np.einsum("snf,sf->sn", seen, coefficients))
        weight = usable * size / np.maximum(missed, 0.1 * size)
    return coefficients


def _apart(values: Floats, competitors: Floats, weights: Floats) -> Floats:
    """Quantiles that are at least as far apart as the competitors are, S × Q.

    Args:
        values: Quantiles, S × Q.
        competitors: What competitors say, S × E.
        weights: How much they count, S × E.
    """
    order = np.argsort(competitors, axis=1)
    said, sums = (
        np.take_along_axis(competitors, order, axis=1),
        np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1),
    )
    places = np.minimum((sums[:, :, None] < LEVELS - 1e-9).sum(axis=1), competitors.shape[1] - 1)
    pooled = np.take_along_axis(said, places, axis=1)
    below = np.arange(len(LEVELS)) < MIDDLE
    spread: Floats = np.where(below, np.minimum(values, pooled), np.maximum(values, pooled))
    spread[:, MIDDLE] = values[:, MIDDLE]
    return spread


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
    """Means of the losses that are known, S × E; zero where none is."""
    known = ~np.isnan(losses)
    means: Floats = np.where(known, losses, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return means


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
    mixed = np.concatenate([np.full(count, (1 - part)), np.full(days, part * count / max(days, 1))])
    order = np.argsort(missed, axis=1)  # what is not a number comes last
    ordered = np.take_along_axis(missed, order, axis=1)
    weight = np.where(np.isnan(ordered), 0.0, mixed[order])
    sums = np.cumsum(weight, axis=1)
    place = sums - weight / 2 + 0.5
    table = np.zeros((len(missed), len(LEVELS)))
    for row, (values, places, present) in enumerate(zip(ordered, place, (weight > 0).sum(axis=1), strict=True)):
        if present:
            # the level p stands at p·(n + 1) of what counts n, as split conformal prediction wants it
            table[row] = np.interp(LEVELS * (sums[row, -1] + 1), places[:present], values[:present])
    return table


def _evaluated(features: Floats, places: slice) -> Floats:
    """What the network puts out at some places, N × places."""
    fitted = network_weights()
    flat = features.reshape(-1, features.shape[-1])
    hidden: Floats = (flat - fitted["mean"]) * fitted["scale"]
    for layer in ("first", "second"):
        hidden = np.maximum(hidden @ fitted[f"{layer}.weight"] + fitted[f"{layer}.bias"], 0.0)
    out: Floats = hidden @ fitted["last.weight"][:, places] + fitted["last.bias"][places]
    return out


def _network_rising(out: Floats) -> Floats:
    """The median, and steps from it to both sides that are never negative."""
    steps = np.logaddexp(out, 0.0)
    middle = out[:, MIDDLE : MIDDLE + 1]
    below = middle - np.cumsum(steps[:, MIDDLE - 1 :: -1], axis=1)[:, ::-1]
    above = middle + np.cumsum(steps[:, MIDDLE + 1 :], axis=1)
    return np.concatenate([below, middle, above], axis=1)
