"""Readings such as never before: a failed scrape told as zero, a counter that jumped, a spike that is gone at once.

An excursion is a run of at most BRIEF readings on one side of both its neighbours. It stands alone where it is FAR
times as high as all others but a few. Such excursions are no history: forecasts look at the level around them, and they
count as what was missed. (The idea of J. W. Tukey's running medians of three to seven, Exploratory Data Analysis, 1977,
with a threshold from the series itself.)

At the end of a series nobody knows yet whether it comes back. Both can be: the reading is an error, or all is new. A
forecast then mixes both, by how often such readings came back before and by what they are, and each reading more that
confirms it halves the doubt. After that nobody doubts the readings, but for LASTING readings still how they go on: what
history knows of the time of the day may be over, and the forecast mixes that too.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.forecast.values import Floats, Whole

BRIEF = 3
"""Most readings of an excursion."""

LASTING = 144
"""Readings for which a level such as never before is new."""

OLD_HABITS = 0.3
"""Chance that the series goes on as history has it, although its level is new."""

ENOUGH = 24
"""Readings without which nothing is such as never before."""

FAR = 3.0
"""By so much is it higher than all other excursions."""

FEW, SELDOM = 2, 500
"""How many may stand alone: so many, or one of so many readings."""

RETURNS, STAYS = 0.8, 1.2
"""Cases of returning and of staying that are assumed before any is seen: most new levels stay, since jobs last longer
than readings are apart."""

ERROR_RETURNS = 1.8
"""The same of returning for what is rather an error: a zero where there never was one, which many a tool tells for a
missing value (llm-d-autoscaling#360, paasta#3034), and more than ABSURD times all that ever was."""

ABSURD = 4.0


@dataclass(frozen=True)
class Cleaned:
    """A series without what stands alone in it.

    Attributes:
        values: With the level around them in place of excursions, L.
        doubtful: Readings at its end that may be an error.
        chance: How likely that is, or, where there are none, that a new level goes on as history has it; nought where
            nothing is new.
    """

    values: Floats
    doubtful: int = 0
    chance: float = 0.0


def cleaned(values: Floats) -> Cleaned:
    """Find what stands alone.

    Args:
        values: Readings at equal steps, L.
    """
    if len(values) < ENOUGH:
        return Cleaned(values)
    heights, lengths = _excursions(values)
    few = max(FEW, len(values) // SELDOM)
    order = np.argsort(heights)[::-1]
    usual = float(heights[order[few]]) if len(order) > few else 0.0
    alone = [place for place in order[:few].tolist() if heights[place] > max(FAR * usual, 1e-9)]
    made = values.copy()
    for place in alone:
        made[place : place + lengths[place]] = values[place - 1]
    doubtful, chance = _end(made, len(alone), usual)
    return Cleaned(made, doubtful, chance)


def _excursions(values: Floats) -> tuple[Floats, Whole]:
    """Height and length of the excursion that begins at each place; nought where none does."""
    heights, lengths = np.zeros(len(values)), np.zeros(len(values), dtype=np.int64)
    for length in range(BRIEF, 0, -1):
        if len(values) < length + 2:
            continue
        before, after = values[: -length - 1], values[length + 1 :]
        inside = np.lib.stride_tricks.sliding_window_view(values, length)[1 : len(before) + 1]
        up = inside.min(axis=1) - np.maximum(before, after)
        down = np.minimum(before, after) - inside.max(axis=1)
        height = np.maximum(np.maximum(up, down), 0.0)
        # it comes back to where it was: a step with a peak on it is none
        height = np.where(np.abs(after - before) <= height / FAR, height, 0.0)
        longer = height >= heights[1 : len(before) + 1]
        here = np.flatnonzero(longer & (height > 0)) + 1
        heights[here], lengths[here] = height[here - 1], length
    return heights, lengths


def _end(values: Floats, returned: int, usual: float) -> tuple[int, float]:
    """Readings at the end that are such as never before, and the chance that they are an error."""
    for length in range(1, min(BRIEF, len(values) - 2) + 1):
        history, inside = values[:-length], values[-length:]
        up, down = float(inside.min() - history[-1]), float(history[-1] - inside.max())
        height = max(up, down)
        # noise does not go the same way several times in a row
        if height <= max(max(FAR / length, 1.0) * usual, 1e-9):
            continue
        moves = np.diff(history) * (1 if up > 0 else -1)
        low, high = float(history.min()), float(history.max())
        new = inside.min() > high if up > 0 else inside.max() < low
        if not new and height <= 2 * max(float(moves.max(initial=0.0)), 0.0):
            continue
        error = inside.max() == 0 < low or inside.min() > ABSURD * high
        returns = returned + (ERROR_RETURNS if error else RETURNS)
        return length, returns / (returns + STAYS) / 2 ** (length - 1)
    longest = min(LASTING, len(values) // 4)
    lasting, before = slice(-longest, -BRIEF), slice(-longest - 1, -BRIEF - 1)
    above = np.minimum.accumulate(values[::-1])[::-1][lasting] - np.maximum.accumulate(values)[before]
    below = np.minimum.accumulate(values)[before] - np.maximum.accumulate(values[::-1])[::-1][lasting]
    new = bool(np.maximum(above, below).max() > max(usual, 1e-9))
    return 0, OLD_HABITS if new else 0.0
