"""What history says: forecasts that compete on each series' own past, and how far they missed there.

The competitors are the last value, the fitted network, means of the last while, and the same time of the day and of
the week before. Each counts the more, the less it missed on the series over the last WINDOW values; where little is
known, all but the network and the last value hardly count. Quantiles are those of what the mixture missed (split
conformal prediction; A. N. Angelopoulos and S. Bates, arXiv:2107.07511), drawn to those of the network where that was
seen seldom.
"""

import numpy as np

from kuayu.forecast.network import LEVELS, MIDDLE, medians, quantiles
from kuayu.forecast.past import DAY, WEEK, WINDOW, Past
from kuayu.forecast.values import Floats, Whole

ORIGINS = 96
"""Instants of the past at which every competitor is tried."""

PRIOR = np.log([1.0, 3.0, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05])
"""How much the competitors count before anything is seen: last value, network, short and long mean, and the day and
the week before, as they were and moved to the present level."""

SHARPNESS = 0.5
"""How much a relative loss, seen once independently, counts against a competitor."""

TRUST = 40.0
"""Independent cases at which what was missed counts as much as what the network says."""


def told(past: Past, ahead: int) -> Floats:
    """Forecast the values so many steps, one at least, after the last: quantiles at the network's levels, S × Q."""
    last = past.length - 1
    tried = origins(past, ahead)
    all_origins = np.append(tried, last)
    features, scale = past.features(ahead, all_origins)
    network = quantiles(features[:, -1]) * scale[:, -1:]
    rivals = _rivals(past, ahead, all_origins, medians(features) * scale)
    real = past.values[:, tried + ahead]
    cases = independent(past, ahead)
    weights = _weights(np.abs(rivals[:, :-1] - real[:, :, None]), cases)
    mixed = (rivals * weights[:, None]).sum(axis=2)
    seen = _quantiles(real - mixed[:, :-1])
    fitted = network - network[:, MIDDLE : MIDDLE + 1]
    share = cases / (cases + TRUST)
    values = np.maximum(mixed[:, -1:] + share * seen + (1 - share) * fitted, 0.0)
    whole = (past.values[:, -WINDOW:] % 1 == 0).all(axis=1)
    values = np.where(whole[:, None], np.round(values), values)
    return np.maximum.accumulate(values, axis=1)


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


def _rivals(past: Past, ahead: int, origins: Whole, network: Floats) -> Floats:
    """Forecasts of all competitors, S × N × E."""
    last = past.values[:, origins]
    made = [last, last + network, past.mean(max(2, ahead), origins), past.mean(8 * max(2, ahead), origins)]
    for period in (DAY, WEEK):
        made += past.seasonal(ahead, origins, period)
    rivals: Floats = np.maximum(np.stack(made, axis=2), 0.0)
    return rivals


def _weights(losses: Floats, cases: float) -> Floats:
    """How much each competitor counts, S × E, given losses of S × N × E."""
    if not losses.shape[1]:
        losses = np.zeros((len(losses), 1, losses.shape[2]))
    mean = losses.mean(axis=1)
    excess = mean / np.maximum(mean.min(axis=1, keepdims=True), 1e-9) - 1
    scores = PRIOR - SHARPNESS * cases * np.minimum(excess, 1e3)
    weights: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _quantiles(missed: Floats) -> Floats:
    """Quantiles of each row at the levels of the network, S × Q."""
    count = missed.shape[1]
    if not count:
        return np.zeros((len(missed), len(LEVELS)))
    ordered = np.sort(missed, axis=1)
    # the level p stands between the order statistics around p·(n + 1), as split conformal prediction wants it
    place = np.clip(LEVELS * (count + 1) - 1, 0, count - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, count - 1)
    found: Floats = ordered[:, low] + (place - low) * (ordered[:, high] - ordered[:, low])
    return found
