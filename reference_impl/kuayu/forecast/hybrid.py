"""Structure and history together.

1. A series later = what its foreseen jobs will hold + what they do not explain now, moving as history has it + who
   comes unforeseen. As many come as came of late among its jobs and are still there, less the share that is announced,
   which is measured over all series of the request. What a series has risen by is no measure of it: jobs that are
   there take more devices from one period to the next, and that is foreseen.
2. Structure counts beside history by how well both did of late, for each series and horizon. Jobs that have ended say
   what structure would have said then (`Replay`); the weight and the width of the interval are those with which the
   mixture would have lost least by the pinball loss, all series of the request being evidence for each. (Exponentially
   weighted experts: N. Cesa-Bianchi and G. Lugosi, Prediction, Learning, and Games, 2006, chapter 2. Quantiles are
   averaged: K. C. Lichtendahl et al., Management Science 59(7), 2013.)
3. Without jobs that have ended, structure counts by how sharply it says what jobs will do.
4. What jobs do not explain moves as much as it did of late, where that is known, else by a power of its share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from kuayu.forecast.history import LEVELS
from kuayu.forecast.requests import Floats
from kuayu.forecast.structure import Foreseen
from kuayu.forecast.totals import Additions, convolved

CASES = 64
"""Equally frequent cases that stand for what history says."""

MAX_DOUBT = 1e-9
"""Mass that sums may be off."""

MIDDLES = (np.arange(CASES) + 0.5) / CASES

REPLAYED_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
"""Levels by whose loss weights are found; the median stands in the middle."""

WEIGHTS = np.linspace(0.0, 1.0, 5)
"""Weights of structure that compete."""

WIDTHS = np.array([0.6, 0.8, 1.0, 1.25, 1.6, 2.2, 3.0])
"""Factors on the width of intervals that compete."""

STEEPNESS = 0.5
"""How much a relative loss, seen once independently, counts against a competitor (as in ``history``)."""

MOST_REST = 2.0
"""What jobs do not explain moves at most by so many times what the series does."""


@dataclass(frozen=True)
class Choice:
    """Constants and forms, chosen by nested validation (``python -m kuayu_training.forecast.validation``).

    Attributes:
        sharp: Sharpness from which jobs are believed altogether, where nothing else is known of their worth. What jobs
            do that may leave at any time hangs together: they come and leave in groups, and one replaces another.
            Independent chances miss that, and history has it.
        rest: Power of the unexplained share by which what jobs do not explain moves, where that is not known.
        prior: Independent cases of its own at which a series counts as much as all others together.
        replay: Whether jobs that have ended are evidence.
    """

    sharp: float = 0.5
    rest: float = 1.0
    prior: float = 12.0
    replay: bool = True


SHIPPED = Choice()


@dataclass(frozen=True)
class HistoryForecast:
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
    before: "HistoryForecast | None" = None


@dataclass(frozen=True)
class Replay:
    """What both parts would have said of S series at K instants of the past, for one horizon.

    Attributes:
        structure: Quantiles at REPLAYED_LEVELS by structure, S × K × 5.
        history: The same by history.
        real: What came, not a number where nobody knows, S × K.
        last: What was there then, S × K.
        independent: Share of the instants that count as independent, as horizons overlap.
    """

    structure: Floats
    history: Floats
    real: Floats
    last: Floats
    independent: float


class Weighing(NamedTuple):
    """How structure and history are put together, S × T each.

    Attributes:
        structure: Weight of structure.
        width: Factor on the width of intervals.
        rest: Movement of what jobs do not explain, of that of the series.
    """

    structure: Floats
    width: Floats
    rest: Floats


def mixture(taken: Floats, before: Floats, doubt: float) -> Floats:
    """Quantiles of what is one or the other, at the levels of the network, Q.

    Args:
        taken: Quantiles of the one, Q.
        before: Quantiles of the other, Q.
        doubt: Chance of the other.
    """
    both = np.concatenate([at_levels(values[None], MIDDLES)[0] for values in (taken, before)])
    order = np.argsort(both, kind="stable")
    mass = np.repeat([1 - doubt, doubt], CASES)[order] / CASES
    mixed: Floats = both[order][np.minimum(np.searchsorted(np.cumsum(mass), LEVELS - MAX_DOUBT), len(both) - 1)]
    return mixed


def believed(foreseen: Foreseen, history: HistoryForecast) -> HistoryForecast:
    """What history says, without readings that may be an error where jobs say that they are one."""
    if history.before is None:
        return history
    apart, before = (
        abs(past.last - min(max(past.last, foreseen.low), foreseen.high)) for past in (history, history.before)
    )
    return history.before if before < apart else history


def at_levels(values: Floats, levels: Floats) -> Floats:
    """Quantiles at other levels, … × P for quantiles of … × Q, straight in normal scores, and on beyond the ends."""
    quantiles: Floats = np.maximum(values @ _between(levels), 0.0)
    return quantiles


def _between(levels: Floats) -> Floats:
    """What each known quantile counts for each wanted one, Q × P."""
    wanted, known = ndtri(levels), ndtri(LEVELS)
    upper = np.clip(np.searchsorted(known, wanted), 1, len(known) - 1)
    part = (wanted - known[upper - 1]) / (known[upper] - known[upper - 1])
    counted = np.zeros((len(known), len(wanted)))
    places = np.arange(len(wanted))
    counted[upper - 1, places], counted[upper, places] = 1 - part, part
    return counted


def unannounced(seen: Sequence[Foreseen], horizons: int) -> Floats:
    """Share of arrivals that are not announced, T.

    Args:
        seen: What jobs say of the series that they explain.
        horizons: How many, T.
    """
    usual = sum((one.arrivals * (one.sizes.mean() if len(one.sizes) else 0.0) for one in seen), np.zeros(horizons))
    announced = sum((one.announced for one in seen), np.zeros(horizons))
    share: Floats = 1 - np.clip(announced / np.maximum(usual, 1e-9), 0.0, 1.0)
    return share


def explained(foreseen: Sequence[Foreseen], last: Floats) -> tuple[Floats, Floats]:
    """What jobs leave of last values, and the share of them that they explain, S each.

    Jobs came since a last value was taken, so it may lie anywhere between what they made of it then and now.
    """
    low, high = np.array([(one.low, one.high) for one in foreseen]).reshape(-1, 2).T
    left = last - np.clip(last, low, high)
    largest = np.maximum(last, low)
    return left, np.where(largest > 0, 1.0 - np.abs(left) / np.maximum(largest, 1e-9), 1.0)


def usual_weighing(foreseen: Sequence[Foreseen], last: Floats, choice: Choice) -> Weighing:
    """How both are put together where nothing is known of how well they did."""
    _, share = explained(foreseen, last)
    sharpness = np.stack([one.sharpness for one in foreseen])
    weight = np.minimum(sharpness / choice.sharp, 1.0)
    rest = np.repeat((1 - share)[:, None] ** choice.rest, weight.shape[1], axis=1)
    return Weighing(weight, np.ones_like(weight), rest)


def weighed(replay: Replay, usual: Floats, choice: Choice) -> tuple[Floats, Floats]:
    """Weight of structure, and factor on the width of intervals, of each series, S, by how both did.

    Args:
        replay: What both would have said.
        usual: Weights where nothing is known, S.
        choice: Constants.
    """
    scale = np.nanmean(np.abs(replay.real - replay.last), axis=1, keepdims=True)
    known = ~np.isnan(replay.real) & (scale > 0)
    losses = np.zeros((len(usual), len(WEIGHTS), len(WIDTHS)))
    for row, weight in enumerate(WEIGHTS.tolist()):
        mixed = replay.history + weight * (replay.structure - replay.history)
        middle = mixed[:, :, 2:3]
        for column, width in enumerate(WIDTHS.tolist()):
            missed = replay.real[:, :, None] - np.maximum(middle + width * (mixed - middle), 0.0)
            lost = np.maximum(REPLAYED_LEVELS * missed, (REPLAYED_LEVELS - 1) * missed).sum(axis=2)
            losses[:, row, column] = np.where(known, lost / np.maximum(scale, 1e-9), 0.0).sum(axis=1)
    cases = replay.independent * known.sum(axis=1)
    everything = cases.sum()
    if not everything:
        return usual, np.ones(len(usual))
    losses *= replay.independent
    mean = (losses + choice.prior * losses.sum(axis=0) / everything) / (cases + choice.prior)[:, None, None]
    excess = mean / mean.min(axis=(1, 2), keepdims=True) - 1
    # a series has others' evidence too, but not more than the prior says
    share = np.exp(-STEEPNESS * (cases + choice.prior)[:, None, None] * excess)
    share /= share.sum(axis=(1, 2), keepdims=True)
    trust = everything / (everything + choice.prior)
    weight = trust * (share.sum(axis=2) @ WEIGHTS) + (1 - trust) * usual
    return weight, np.exp(trust * (share.sum(axis=1) @ np.log(WIDTHS)))


def rest_moves(left: Floats, later: Floats, last: Floats, real: Floats, usual: Floats, prior: float) -> Floats:
    """Movement of what jobs do not explain, of that of the series, S.

    Args:
        left: What they did not explain at instants of the past, S × K.
        later: The same a horizon later, S × K.
        last: What was there, S × K.
        real: What was there a horizon later, not a number where nobody knows, S × K.
        usual: What is taken where nothing is known, S.
        prior: Instants as which that counts.
    """
    known = ~np.isnan(real)
    moved = np.where(known, np.abs(real - last), 0.0).sum(axis=1)
    rest = np.where(known, np.abs(later - left), 0.0).sum(axis=1)
    mean = moved / np.maximum(known.sum(axis=1), 1)
    moves = (rest + prior * mean * usual) / np.maximum(moved + prior * mean, 1e-9)
    return np.where(moved > 0, np.clip(moves, 0.0, MOST_REST), usual)


def structured(
    foreseen: Sequence[Foreseen],
    histories: Sequence[HistoryForecast],
    unforeseen: Floats,
    rest: Floats,
    levels: Floats,
) -> Floats:
    """Quantiles by structure, S × T × P, of rest and unforeseen arrivals of S × T (`join`)."""
    last = np.array([past.last for past in histories])
    left, _ = explained(foreseen, last)
    values = np.stack([past.values for past in histories])
    cases = left[:, None, None] + rest[:, :, None] * (at_levels(values, MIDDLES) - last[:, None, None])
    coming = unforeseen * np.stack([one.arrivals for one in foreseen])
    additions = [
        Additions(case, count, one.sizes, one.shape) for case, count, one in zip(cases, coming, foreseen, strict=True)
    ]
    return np.stack([one.at(levels) for one in convolved([one.spread for one in foreseen], additions)])


def join(
    foreseen: Sequence[Foreseen],
    histories: Sequence[HistoryForecast],
    unforeseen: Floats,
    weighing: Weighing,
    levels: Floats,
) -> tuple[Floats, Floats]:
    """Put structure and history together.

    Args:
        foreseen: What jobs say of each series.
        histories: What history says.
        unforeseen: Share of arrivals that are not announced, S × T.
        weighing: How both are put together.
        levels: Levels of quantiles, rising, the median among them, P.

    Returns:
        Quantiles, S × T × P, and the share that comes from structure, S × T.
    """
    last = np.array([past.last for past in histories])
    left, share = explained(foreseen, last)
    before = at_levels(np.stack([past.values for past in histories]), levels)
    by_jobs = structured(foreseen, histories, unforeseen, weighing.rest, levels)
    joined = before + weighing.structure[:, :, None] * (by_jobs - before)
    middle = joined[:, :, [int(np.searchsorted(levels, 0.5))]]
    joined = np.maximum(middle + weighing.width[:, :, None] * (joined - middle), 0.0)
    structure = np.stack([one.spread.mean for one in foreseen])
    size = np.array([one.sizes.mean() if len(one.sizes) else 0.0 for one in foreseen])
    other = np.abs(left)[:, None] + unforeseen * np.stack([one.arrivals for one in foreseen]) * size[:, None]
    part = np.where(structure + other > 0, structure / np.maximum(structure + other, 1e-9), share[:, None])
    whole = np.array([past.whole for past in histories])[:, None, None]
    values = np.where(whole, np.round(joined), np.round(joined, 9))
    return values, np.clip(part, 0.0, 1.0) * weighing.structure
