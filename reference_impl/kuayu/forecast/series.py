"""Series as they are reported: what is missing, what stands alone, and by which clock they run.

1. *Gaps.* A missing value is null on the wire and not a number here. It is never taken for zero. What the forecaster
   needs at equal steps is filled in from the same time of the day before, shifted so that it meets the values at both
   ends of the gap, or, where that is not known, by a straight line. Filled values are looked at as history but never
   judged by. Values that are missing at the end are left away: the horizon lies so many steps farther.
2. *Outliers*, readings such as never before: a failed scrape reported as zero, a counter that jumped, a spike that is
   gone at once. An excursion is a run of at most BRIEF readings on one side of both its neighbours. It stands alone
   where it is FAR times as high as all others but a few. Such excursions are no history: forecasts look at the level
   around them, and they count as what was missed. (The idea of J. W. Tukey's running medians of three to seven,
   Exploratory Data Analysis, 1977, with a threshold from the series itself.) At the end of a series nobody knows yet
   whether it comes back. A forecast then mixes both, by how often such readings came back before and by what they are,
   and each reading more that confirms it halves the doubt. For LASTING readings after that it mixes how they go on, as
   what history knows of the time of the day may be over.
3. *Summer time.* What is regular goes by the clock on the wall, and series go by UTC. After a change everything regular
   comes an hour earlier or later. It shows within a day: from some instant on, the series follows the day before by 23
   or 25 hours. History before that instant is then moved to the new clock. Where a series has no regular day, nothing
   is found and nothing is moved.

Example: 5, null, 7 is looked at as 5, 6, 7, and forecasts are judged by 5 and 7 alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kuayu.forecast.past import DAY, WEEK
from kuayu.forecast.requests import Flags, Floats, Whole

if TYPE_CHECKING:
    from kuayu_schemas import documents


def last_known(series: "documents.DemandSeries") -> int:
    """Place of the last value that is known, in the list of the wire.

    Args:
        series: It has a value that is known.
    """
    values = series["values"]
    return next(place for place in range(len(values) - 1, -1, -1) if values[place] is not None)


def known(series: "documents.DemandSeries", most: int) -> Floats:
    """Values from the first that is known to the last that is, at most the last so many, L.

    One that is missing is not a number.
    """
    values = np.array(series["values"][: last_known(series) + 1][-most:], dtype=float)
    found: Floats = values[int(np.argmax(~np.isnan(values))) :]
    return found


def filled(values: Floats, step: float) -> Floats:
    """The same with every gap filled, L.

    Args:
        values: Not a number where one is missing, but at both ends, L.
        step: Seconds from one value to the next.
    """
    missing = np.isnan(values)
    if not missing.any():
        return values
    known = values[~missing]
    made = values.copy()
    edges = np.flatnonzero(np.diff(missing.astype(int)))
    for before, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        made[before + 1 : last + 1] = _between(made, before, last + 1, step)
    made = np.clip(made, known.min(), known.max())
    return np.where(missing, np.round(made), made) if (known % 1 == 0).all() else made


def _between(values: Floats, before: int, after: int, step: float) -> Floats:
    """What stood between two places; all values before the first are there."""
    places = np.arange(before, after + 1)
    for period in (DAY, WEEK):
        back = round(period / step)
        if after - back < before and before - back >= 0 and not np.isnan(values[after - back]):
            then = values[places - back]
            ends = values[[before, after]] - then[[0, -1]]
            return (then + np.interp(places, [before, after], ends))[1:-1]
    return np.interp(places, [before, after], values[[before, after]])[1:-1]


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
    """Find what stands alone in readings at equal steps, L."""
    return all_cleaned(values[None])[0]


def all_cleaned(values: Floats) -> list[Cleaned]:
    """Find what stands alone in each of several series.

    Args:
        values: Readings at equal steps, S × L.
    """
    length = values.shape[1]
    if length < ENOUGH:
        return [Cleaned(row) for row in values]
    heights, lengths = _excursions(values)
    few = max(FEW, length // SELDOM)
    usual = -np.partition(-heights, few, axis=1)[:, few] if length > few else np.zeros(len(values))
    made = values.copy()
    returned = np.zeros(len(values), dtype=np.int64)
    for row in np.flatnonzero(heights.max(axis=1) > np.maximum(FAR * usual, 1e-9)).tolist():
        order = np.argsort(heights[row])[::-1][:few]
        alone = order[heights[row, order] > max(FAR * usual[row], 1e-9)].tolist()
        for place in alone:
            made[row, place : place + lengths[row, place]] = values[row, place - 1]
        returned[row] = len(alone)
    lasting = _lasting(made, usual)
    unusual = _unusual(made, usual)
    return [
        Cleaned(row, *_end(row, alone, often, lasting=new)) if doubted else Cleaned(row, 0, OLD_HABITS if new else 0.0)
        for row, alone, often, new, doubted in zip(
            made, returned.tolist(), usual.tolist(), lasting.tolist(), unusual.tolist(), strict=True
        )
    ]


def _excursions(values: Floats) -> tuple[Floats, Whole]:
    """Height and length of the excursion that begins at each place, S × L; nought where none does."""
    heights, lengths = np.zeros(values.shape), np.zeros(values.shape, dtype=np.int64)
    for length in range(BRIEF, 0, -1):
        if values.shape[1] < length + 2:
            continue
        before, after = values[:, : -length - 1], values[:, length + 1 :]
        count = before.shape[1]
        least = most = values[:, 1 : count + 1]
        for place in range(2, length + 1):
            inside = values[:, place : place + count]
            least, most = np.minimum(least, inside), np.maximum(most, inside)
        height = np.maximum(least - np.maximum(before, after), np.minimum(before, after) - most)
        height = np.maximum(height, 0.0)
        # it comes back to where it was: a step with a peak on it is none
        height = np.where(np.abs(after - before) <= height / FAR, height, 0.0)
        longer = (height > 0) & (height >= heights[:, 1 : count + 1])
        heights[:, 1 : count + 1] = np.where(longer, height, heights[:, 1 : count + 1])
        lengths[:, 1 : count + 1] = np.where(longer, length, lengths[:, 1 : count + 1])
    return heights, lengths


def _unusual(values: Floats, usual: Floats) -> Flags:
    """Whose last readings are higher or lower than the one before by more than is usual, S."""
    found = np.zeros(len(values), dtype=bool)
    for length in range(1, min(BRIEF, values.shape[1] - 2) + 1):
        inside, before = values[:, -length:], values[:, -length - 1]
        height = np.maximum(inside.min(axis=1) - before, before - inside.max(axis=1))
        found |= height > np.maximum(max(FAR / length, 1.0) * usual, 1e-9)
    return found


def _lasting(values: Floats, usual: Floats) -> Flags:
    """Whose level is such as never before, for a while already, S."""
    longest = min(LASTING, values.shape[1] // 4)
    lasting, before = slice(-longest, -BRIEF), slice(-longest - 1, -BRIEF - 1)
    backwards = values[:, : -longest - 1 : -1]
    least = np.minimum.accumulate(backwards, axis=1)[:, ::-1][:, lasting]
    most = np.maximum.accumulate(backwards, axis=1)[:, ::-1][:, lasting]
    above = least - np.maximum.accumulate(values, axis=1)[:, before]
    below = np.minimum.accumulate(values, axis=1)[:, before] - most
    found: Flags = np.maximum(above, below).max(axis=1, initial=-np.inf) > np.maximum(usual, 1e-9)
    return found


def _end(values: Floats, returned: int, usual: float, *, lasting: bool) -> tuple[int, float]:
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
    return 0, OLD_HABITS if lasting else 0.0


HOUR = 3600.0

DAYS = 4
"""Least days that must have been regular before a change is believed."""

IRREGULAR = 0.7
"""Least part of the days that was regular: five of seven."""

NONE = (0.0, 0, 0)

PART = 0.3
"""Part of what a moved day would miss that has to be seen; a change in the night shows by its morning end alone."""


def change(values: Floats, step: float) -> tuple[int, int]:
    """Find a change of the clock.

    Args:
        values: A series without gaps, L.
        step: Seconds from one value to the next.

    Returns:
        The column before which the clock was another, and by how many steps everything comes earlier since (negative:
        later); zeros where there is no change.
    """
    day, hour = round(DAY / step), round(HOUR / step)
    if hour < 1 or HOUR % step or DAY % step or len(values) < (DAYS + 2) * day + hour:
        return 0, 0
    # what was clear an hour ago stays so while the next change is under way
    for upto in (len(values), len(values) - hour):
        gain, column, shift = max(_gains(values[:upto], day, shift) for shift in (hour, -hour))
        if gain:
            return column, shift
    return 0, 0


def changes(values: Floats, step: float) -> list[tuple[int, int]]:
    """The same for each of several series, S × L: most of them are ruled out together."""
    day, hour = round(DAY / step), round(HOUR / step)
    length = values.shape[1]
    if hour < 1 or HOUR % step or DAY % step or length < (DAYS + 2) * day + hour:
        return [(0, 0)] * len(values)
    may = np.zeros(len(values), dtype=bool)
    for upto in (length, length - hour):
        for shift in (hour, -hour):
            (plain, _), gain, whole = _gain(values[:, :upto], day, shift)
            best, usual = gain.max(axis=1), -np.median(whole, axis=1)
            first = gain.argmax(axis=1)
            sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(plain, axis=1)], axis=1)
            rows, ends = np.arange(len(values)), np.minimum(first + day, plain.shape[1])
            missed = sums[rows, ends] - sums[rows, first]
            # where several places are as good, only the whole test tells which is taken
            several = np.count_nonzero(gain >= (best * (1 - 1e-9))[:, None], axis=1) > 1
            may |= (usual > 0) & (best >= PART * usual) & (several | (2 * best >= missed * (1 - 1e-6)))
    return [change(row, step) if yes else (0, 0) for row, yes in zip(values, may.tolist(), strict=True)]


def _gain(values: Floats, day: int, shift: int) -> tuple[tuple[Floats, Floats], Floats, Floats]:
    """What a day of each series missed by the old and the new clock, and by how much a change explains it better.

    Args:
        values: S × L.
        day: Steps of a day.
        shift: Steps by which the clock may have changed.

    Returns:
        Both that is missed, S × N; the gain over a day from each place, S × N, and where a whole day follows.
    """
    reach = day + abs(shift)
    now = values[:, reach:]
    count = now.shape[1]
    plain = np.abs(now - values[:, reach - day : values.shape[1] - day])
    start = reach - day + shift
    moved = np.abs(now - values[:, start : start + count])
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(plain - moved, axis=1)], axis=1)
    upto = np.minimum(np.arange(count) + day, count)
    gain = sums[:, upto] - sums[:, :-1]
    return (plain, moved), gain, gain[:, : count - day + 1]


def _gains(values: Floats, day: int, shift: int) -> tuple[float, int, int]:
    """By how much a change explains the series better than none, at which column, and the shift."""
    reach = day + abs(shift)
    (missing, moving), gains, wholes = _gain(values[None], day, shift)
    plain, moved, gain, whole = missing[0], moving[0], gains[0], wholes[0]
    ends = np.minimum(np.arange(len(plain)) + day, len(plain))
    best, usual = float(gain.max()), -float(np.median(whole))
    if usual <= 0 or best < PART * usual:
        return NONE
    # between two changes of the series nobody can tell when the clock changed; the middle is taken
    ties = np.flatnonzero(gain >= best * (1 - 1e-9))
    run = ties[: int(np.argmax(np.append(np.diff(ties) > 1, True))) + 1]
    first = int(run[len(run) // 2])
    window = slice(first, int(ends[first]))
    missed, late = plain[window], plain[window][-max(1, abs(shift) // 2) :]
    # what has not come yet may not come at all, as at the end of a week: it is over only once both days agree again
    if moved[window].sum() > missed.sum() / 2 or late.mean() > np.median(missed) + missed.max() / 4:
        return NONE
    before = whole[first % day : first - day + 1 : day] if first >= day else whole[:0]
    regular = before[before <= -usual / 2]
    # on regular days, to move one only ever makes it worse; of a week, the ends of both its halves may differ
    if len(regular) < max(DAYS, IRREGULAR * len(before)) or regular.std() > usual / 3:
        return NONE
    return best, reach + first, shift


def on_one_clock(values: Floats, column: int, shift: int) -> Floats:
    """A series whose history is told by the clock of its end.

    Args:
        values: L.
        column: Before which the clock was another.
        shift: By how many steps everything comes earlier since.

    Returns:
        L plus shift values; those of an hour that the clock left out are not a number.
    """
    if shift > 0:
        return np.concatenate([values[:column], np.full(shift, np.nan), values[column:]])
    return np.concatenate([values[: column + shift], values[column:]])
