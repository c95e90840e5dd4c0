"""What links will carry: a level, quantiles around it that past errors give, and how likely they go out.

The level is an exponentially weighted mean of logarithms; of several half-lives that one is taken which erred least so
far. Quantiles are those of the errors that it made in the past at the same horizon, raised by the share that a finite
sample asks for (V. Vovk, A. Gammerman, G. Shafer, "Algorithmic learning in a random world", 2005: split conformal
prediction; errors that overlap in time are not exchangeable, so coverage is approximate). Time in which a link was out
counts in none of them. Outages come by a rate for each link, drawn towards that of all links as one outage would.
"""

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from kuayu.resilience.transfers.scene import Flags, Floats, Link, Whole

HALF_LIVES = (0.5, 2.0, 8.0, 32.0)
"""Intervals after which a measurement counts half; the first is all but the last value."""
HORIZONS = (2, 8, 32)
"""Intervals over which a mean is forecast."""
QUANTILES = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
CAUTIOUS, MEDIAN = 1, 3
"""Places of two of them."""
ENOUGH = 24
"""Errors of a link's own without which those of all links are used."""
BETWEEN_S = 6 * 3600.0
OUTAGE_S = 60.0
"""Seconds between outages and of an outage, as if half an outage and a whole one had been seen: a guess that gives way
to what is measured."""
FALL = np.log(0.5)
"""What counts as a change of the link rather than as noise: half of what was expected, or less."""
_FADED = 1e-9
"""Weight of what was measured long ago, below which it is forgotten."""
UNKNOWN = 1.0
"""Bytes a second of a link of which nothing was measured, so that all others are preferred."""


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What links will carry, in the order in which they were given.

    Attributes:
        rates: Quantiles of the mean over a horizon, bytes a second, (L, horizons, quantiles); given that it is up.
        hazards: Outages a second, (L,).
        changes: Outages and falls by half, a second, (L,).
        outage_s: Mean seconds of an outage.
        up: Whether a link carries now, (L,).
        half_lives: Which half-life was taken for each horizon, in intervals.
    """

    rates: Floats
    hazards: Floats
    changes: Floats
    outage_s: float
    up: Flags
    half_lives: tuple[float, ...]


def forecast(links: tuple[Link, ...], interval_s: float) -> Forecast:
    """Forecast all links at once; histories of unlike length end at the same instant."""
    table = _table(links)
    out = table == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(table > 0.0, np.log(table), np.nan)
    levels = _levels(logs)
    rates = np.empty((len(links), len(HORIZONS), len(QUANTILES)))
    taken = []
    falls = np.zeros(len(links))
    for place, horizon in enumerate(HORIZONS):
        means = _means_after(table, horizon)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.log(means)[None] - levels[:, :, :-1]
        best = _best(errors)
        taken.append(HALF_LIVES[best])
        if place == 0:
            falls = (errors[best] < FALL).sum(axis=1) / horizon
        now = levels[best, :, -1]
        rates[:, place] = np.exp(now[:, None] + _quantiles(errors[best]))
    rates = np.maximum.accumulate(np.nan_to_num(rates, nan=UNKNOWN), axis=2)
    hazards, mean_s = _outages(out, np.isfinite(table), interval_s)
    seen = np.maximum(np.isfinite(table).sum(axis=1), 1) * interval_s
    up = np.array([link.up for link in links], dtype=bool)
    return Forecast(rates, hazards, hazards + falls / seen, mean_s, up, tuple(taken))


def _table(links: tuple[Link, ...]) -> Floats:
    """Histories side by side, (L, T), at least one column; NaN before the first measurement."""
    longest = max((len(link.measured) for link in links), default=0)
    table = np.full((len(links), max(longest, 1)), np.nan)
    for row, link in enumerate(links):
        if len(link.measured):
            table[row, -len(link.measured) :] = link.measured
    return table


def _levels(logs: Floats) -> Floats:
    """What each half-life expects after each measurement, (half-lives, L, T); NaN before the first."""
    known = np.isfinite(logs)
    values = np.nan_to_num(logs)
    levels = np.empty((len(HALF_LIVES), *logs.shape))
    for place, half_life in enumerate(HALF_LIVES):
        filtered = ([1.0], [1.0, -(0.5 ** (1.0 / half_life))])
        weights = lfilter(*filtered, known.astype(np.float64), axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            levels[place] = lfilter(*filtered, values, axis=1) / np.where(weights > _FADED, weights, np.nan)
    return levels


def _means_after(table: Floats, horizon: int) -> Floats:
    """Mean of what was carried in the ``horizon`` intervals after each one but the last, (L, T - 1)."""
    carrying = table > 0.0
    sums = np.cumsum(np.where(carrying, table, 0.0), axis=1)
    counts = np.cumsum(carrying, axis=1)
    last = table.shape[1] - 1
    ends = np.minimum(np.arange(last) + horizon, last)
    many: Whole = counts[:, ends] - counts[:, :-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(many > 0, (sums[:, ends] - sums[:, :-1]) / many, np.nan)
    means[:, max(0, last - horizon + 1) :] = np.nan  # what lies behind is not yet all seen
    return means


def _best(errors: Floats) -> int:
    """The half-life whose absolute errors are least over all links."""
    sizes = np.abs(errors)
    counts = np.isfinite(sizes).sum(axis=(1, 2))
    if not counts.all():
        return 1
    return int(np.argmin(np.nansum(sizes, axis=(1, 2)) / counts))


def _quantiles(errors: Floats) -> Floats:
    """Quantiles of errors, link by link, (L, quantiles); those of all links where a link has few of its own."""
    ordered = np.sort(errors, axis=1)  # NaN last
    counts: Whole = np.isfinite(errors).sum(axis=1)
    found = _at(ordered, counts)
    together = np.sort(errors[np.isfinite(errors)])
    if len(together):
        pooled = _at(together[None], np.array([len(together)]))
    else:
        pooled = np.where(QUANTILES < 0.5, FALL, 0.0)[None]  # noqa: PLR2004 - nothing is known: half as much
    return np.where((counts >= ENOUGH)[:, None], found, pooled)


def _at(ordered: Floats, counts: Whole) -> Floats:
    """Values of rising rows at quantiles, each moved outwards as a sample of that many asks for."""
    away = np.where(
        QUANTILES > 0.5,  # noqa: PLR2004 - above or below the median
        np.ceil((counts[:, None] + 1) * QUANTILES) - 1,
        np.floor((counts[:, None] + 1) * QUANTILES) - 1,
    )
    places = np.clip(away, 0, np.maximum(counts[:, None] - 1, 0)).astype(np.int64)
    if not ordered.shape[1]:
        return np.zeros((len(counts), len(QUANTILES)))
    return np.take_along_axis(ordered, places, axis=1)


def _outages(out: Flags, known: Flags, interval_s: float) -> tuple[Floats, float]:
    """Outages a second of each link, and mean seconds of one."""
    began = out[:, 1:] & ~out[:, :-1] & known[:, :-1]
    counts = began.sum(axis=1).astype(np.float64)
    up_s = (known & ~out).sum(axis=1) * interval_s
    pooled = (counts.sum() + 0.5) / (up_s.sum() + 0.5 * BETWEEN_S)
    hazards = (counts + 1.0) / (up_s + 1.0 / pooled)
    mean_s = (out.sum() * interval_s + OUTAGE_S) / (counts.sum() + 1.0)
    return hazards, float(mean_s)
