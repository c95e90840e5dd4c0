"""Series as reported, and what they have shown: gaps, outliers, clocks, and windows of many series.

1. *Gaps.* A missing value is null in JSON and not a number here. It is never taken for zero. What the forecaster
   needs at equal steps is filled in from the same time of the day before, shifted so that it meets the values at both
   ends of the gap, or, where that is not known, by a straight line; at the first end alone where no more than BRIEF
   readings have come since, as these may be an error. Filled values are looked at as history but never judged by.
   Values that are missing at the end are left away: the horizon lies so many steps farther.
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
   or 25 hours, or the week before by an hour less or more, as clocks change on Sundays, and the day before a Monday is
   like none. History before that instant is then moved to the new clock. Where a series has no regular day, nothing is
   seen and nothing is moved.
4. *Windows.* Series of one step are looked at together (``Past``): what can be seen in them at any of their instants.

Example: 5, null, 7 is looked at as 5, 6, 7, and forecasts are judged by 5 and 7 alone.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

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
    trimmed: Floats = values[int(np.argmax(~np.isnan(values))) :]
    return trimmed


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
    complete = values.copy()
    edges = np.flatnonzero(np.diff(missing.astype(int)))
    for before, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        # what has only just come back may be an error (`all_cleaned`), and nothing leads up to one
        settled = last + 1 < len(values) - BRIEF
        complete[before + 1 : last + 1] = _between(complete, before, last + 1, step, settled=settled)
    complete = np.clip(complete, known.min(), known.max())
    return np.where(missing, np.round(complete), complete) if (known % 1 == 0).all() else complete


BRIEF = 3
"""Most readings of an excursion."""

LASTING = 144
"""Readings for which a level such as never before is new."""

OLD_HABITS = 0.3
"""Chance that the series goes on as history has it, although its level is new."""

ENOUGH = 24
"""Readings without which nothing is such as never before."""

A_FEW = 3
"""Readings without which not even what is rather an error is told from what is new."""

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
class CleanSeries:
    """A series without what stands alone in it.

    Attributes:
        values: With the level around them in place of excursions, L.
        doubtful: Readings at its end that may be an error.
        chance: How likely that is, or, where there are none, that a new level goes on as history has it; zero where
            nothing is new.
    """

    values: Floats
    doubtful: int = 0
    chance: float = 0.0


def cleaned(values: Floats) -> CleanSeries:
    """Find what stands alone in readings at equal steps, L."""
    return all_cleaned(values[None])[0]


def all_cleaned(values: Floats) -> list[CleanSeries]:
    """Find what stands alone in each of several series.

    Args:
        values: Readings at equal steps, S × L.
    """
    length = values.shape[1]
    if length < ENOUGH:
        return [CleanSeries(row, *_early_error(row)) for row in values]
    heights, lengths = _excursions(values)
    few = max(FEW, length // SELDOM)
    usual = -np.partition(-heights, few, axis=1)[:, few] if length > few else np.zeros(len(values))
    cleaned = values.copy()
    returned = np.zeros(len(values), dtype=np.int64)
    for row in np.flatnonzero(heights.max(axis=1) > np.maximum(FAR * usual, 1e-9)).tolist():
        order = np.argsort(heights[row])[::-1][:few]
        alone = order[heights[row, order] > max(FAR * usual[row], 1e-9)].tolist()
        for place in alone:
            cleaned[row, place : place + lengths[row, place]] = values[row, place - 1]
        returned[row] = len(alone)
    lasting = _lasting(cleaned, usual)
    unusual = _unusual(cleaned, usual)
    return [
        CleanSeries(row, *_end(row, alone, often, lasting=new))
        if doubted
        else CleanSeries(row, 0, OLD_HABITS if new else 0.0)
        for row, alone, often, new, doubted in zip(
            cleaned, returned.tolist(), usual.tolist(), lasting.tolist(), unusual.tolist(), strict=True
        )
    ]


HOUR = 3600.0

DAYS = 4
"""Least days that must have been regular before a change is believed."""

DAYS_OF_WEEK = 7

DAYS_OFF = 2
"""Most days of a week that were not regular."""

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
    for lag in _lags(len(values), step):
        # what was clear an hour ago stays so while the next change is under way
        for upto in (len(values), len(values) - hour):
            gain, column, shift = max(_gains(values[:upto], day, lag, shift) for shift in (hour, -hour))
            if gain:
                return column, shift
    return 0, 0


def _lags(length: int, step: float) -> list[int]:
    """Steps back by which a change of the clock may show in a series of so many values; none where it cannot."""
    day, hour = round(DAY / step), round(HOUR / step)
    if hour < 1 or HOUR % step or DAY % step:
        return []
    return [lag for lag in (day, DAYS_OF_WEEK * day) if length >= lag + (DAYS + 1) * day + hour]


def changes(values: Floats, step: float) -> list[tuple[int, int]]:
    """The same for each of several series, S × L: most of them are ruled out together."""
    day, hour = round(DAY / step), round(HOUR / step)
    length = values.shape[1]
    may = np.zeros(len(values), dtype=bool)
    for lag, upto, shift in product(_lags(length, step), (length, length - hour), (hour, -hour)):
        (plain, _), gain, whole = _gain(values[:, :upto], day, lag, shift)
        best, usual = gain.max(axis=1), -np.median(whole, axis=1)
        first = gain.argmax(axis=1)
        sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(plain, axis=1)], axis=1)
        rows, ends = np.arange(len(values)), np.minimum(first + day, plain.shape[1])
        missed = sums[rows, ends] - sums[rows, first]
        # where several places are as good, only the whole test tells which is taken
        several = np.count_nonzero(gain >= (best * (1 - 1e-9))[:, None], axis=1) > 1
        may |= (usual > 0) & (best >= PART * usual) & (several | (lag > day) | (2 * best >= missed * (1 - 1e-6)))
    return [change(row, step) if yes else (0, 0) for row, yes in zip(values, may.tolist(), strict=True)]


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


NEARLY = 0.75
"""Part of the best gain that the first day shows after a change."""

WINDOW = 2000
"""Values over which it is measured how much a series moves."""

DAY, WEEK = 86_400.0, 604_800.0

HABIT, HABITUAL = 7, 3
"""Days over which it is looked at what is usual at a time of the day: at most, and at least."""

REACHES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Windows that are looked at, in horizons."""

FLOWS = (1.0, 4.0, 16.0)
"""Windows in which rises and falls are added up, in horizons."""

FEATURES = 2 * len(REACHES) + 2 * len(FLOWS) + 10

MIN_SIZE_SHARE = 1e-4
"""Least movement that is assumed, of the level of a series."""


@dataclass(frozen=True)
class Past:
    """Values of S series of the same length and step.

    Attributes:
        values: Without gaps and without what stands alone (`outliers`), S × L.
        step: Seconds from one value to the next.
        observed: Values as they were told, not a number where one was missing, S × L; the same where absent.
    """

    values: Floats
    step: float
    observed: Floats | None = None

    @property
    def real(self) -> Floats:
        """What came in truth, not a number where nobody knows, S × L."""
        return self.values if self.observed is None else self.observed

    @property
    def length(self) -> int:
        """Columns."""
        return int(self.values.shape[1])

    @cached_property
    def sums(self) -> Floats:
        """Sums of all values before a column, S × (L + 1)."""
        return _summed(self.values)

    @cached_property
    def _moves(self) -> Floats:
        return np.diff(self.values, axis=1, prepend=self.values[:, :1])

    @cached_property
    def rises(self) -> Floats:
        """Sums of all rises before a column, S × (L + 1)."""
        return _summed(np.maximum(self._moves, 0.0))

    @cached_property
    def falls(self) -> Floats:
        """Sums of all falls before a column, S × (L + 1)."""
        return _summed(np.maximum(-self._moves, 0.0))

    @cached_property
    def changed(self) -> Whole:
        """Column of the last change up to a column, zero where there was none, S × L."""
        columns = np.where(self._moves != 0, np.arange(self.length), 0)
        columns_changed: Whole = np.maximum.accumulate(columns, axis=1)
        return columns_changed

    def movement(self, ahead: int, origins: Whole) -> tuple[Floats, Floats]:
        """How much series moved over so many steps until origins: the mean without sign and the share of standstill.

        Args:
            ahead: Steps.
            origins: Columns, N.

        Returns:
            Both S × N; the movement is never zero.
        """
        moved = np.abs(self.values[:, ahead:] - self.values[:, :-ahead]) if ahead < self.length else self.values[:, :0]
        upto = np.maximum(origins - ahead + 1, 0)
        since = np.maximum(upto - WINDOW, 0)
        count = upto - since
        size, still = (
            _among_reaches(_summed(moved), since, upto),
            _among_reaches(_summed((moved == 0).astype(float)), since, upto),
        )
        level = self.mean(WINDOW, origins)
        few = self._brief(ahead, origins, level)
        share = count / (count + 8.0)
        size = share * size / np.maximum(count, 1) + (1 - share) * few
        return np.maximum(size, MIN_SIZE_SHARE * level + 1e-9), still / np.maximum(count, 1)

    def _brief(self, ahead: int, origins: Whole, level: Floats) -> Floats:
        """Movement where too little is known: that of single steps, as of a walk, and a share of the level."""
        upto = origins + 1
        since = np.minimum(np.maximum(upto - WINDOW, 1), upto)
        flow = _among_reaches(self.rises, since, upto) + _among_reaches(self.falls, since, upto)
        single = flow / np.maximum(upto - since, 1)
        walked: Floats = single * np.sqrt(ahead) + 0.01 * level
        return walked

    def mean(self, width: int, origins: Whole) -> Floats:
        """Mean of the last values, so many or as many as there are, S × N."""
        upto = origins + 1
        since = np.maximum(upto - width, 0)
        means: Floats = _among_reaches(self.sums, since, upto) / (upto - since)
        return means

    def around(self, columns: Whole, half: int) -> Floats:
        """Mean of the values around columns, S × N; what lies before the first value or after the last is left out."""
        low = np.clip(columns - half, 0, self.length - 1)
        high = np.clip(columns + half + 1, low + 1, self.length)
        means: Floats = (self.sums[:, high] - self.sums[:, low]) / (high - low)
        return means

    def season(self, ahead: int, origins: Whole, period: float) -> tuple[Floats, Floats]:
        """What a series did over as many steps one period ago, S × N, and one where that is known, else zero."""
        back = round(period / self.step)
        half = max(1, ahead // 2)
        then = origins - back
        if back <= ahead or then.max() < 0:
            return np.zeros((len(self.values), len(origins))), np.zeros((len(self.values), len(origins)))
        known = np.broadcast_to(then >= half, (len(self.values), len(then)))
        moved = self.around(then + ahead, half) - self.around(then, half)
        return np.where(known, moved, 0.0), known.astype(float)

    def seasonal(self, ahead: int, origins: Whole, period: float) -> tuple[Floats, Floats]:
        """What a series was at the same time one period ago, and that moved by as much as it has changed since, S × N.

        Where that is not known, both are the last value.
        """
        last = self.values[:, origins]
        back = round(period / self.step)
        width = max(1, ahead // 4)
        then = origins - back
        known = (then >= width) & (back > ahead)
        if not known.any():
            return last, last
        then = np.maximum(then, 0)
        was = self.around(np.minimum(then + ahead, self.length - 1), min(ahead // 8, max(back - ahead, 0)))
        since = self.mean(width, origins) - self.mean(width, then)
        return np.where(known, was, last), np.where(known, was + since, last)

    def usual(self, ahead: int, origins: Whole) -> tuple[Floats, Floats, Flags]:
        """What a series usually was at a time of the day, and its last level moved as it usually is then.

        Medians over the last days at the same time, HABIT at most and HABITUAL at least.

        Returns:
            Both S × N, and at which origins they are known, N; elsewhere they are the last value.
        """
        last = self.values[:, origins]
        back = np.round(np.arange(1, HABIT + 1) * DAY / self.step).astype(np.int64)
        then = origins - back[:, None]
        enough = (then >= 0).sum(axis=0)
        known = (enough >= HABITUAL) & (back[0] > ahead)
        if not known.any():
            return last, last, known
        later = np.where(then >= 0, self.values[:, np.maximum(then, 0) + ahead], np.nan)
        moved = later - self.values[:, np.maximum(then, 0)]
        was, moves = np.full_like(last, np.nan), np.zeros_like(last)
        was[:, known] = np.nanmedian(later[:, :, known], axis=1)
        moves[:, known] = np.nanmedian(moved[:, :, known], axis=1)
        return np.where(known, was, last), last + moves, known

    def features(self, ahead: int, origins: Whole) -> tuple[Floats, Floats]:
        """What can be seen at origins, for a horizon.

        Args:
            ahead: Steps from the origin.
            origins: Columns, N.

        Returns:
            S × N × FEATURES, and the movement that they are measured in, S × N.
        """
        scale, still = self.movement(ahead, origins)
        last = self.values[:, origins]
        seen: list[Floats] = []
        for reach in REACHES:
            width = max(1, round(reach * ahead))
            seen.append(self.values[:, np.maximum(origins - width, 0)] - last)
            seen.append(self.mean(width, origins) - last)
        for reach in FLOWS:
            since = np.maximum(origins + 1 - round(reach * ahead), 0)
            seen.append((self.rises[:, origins + 1] - self.rises[:, since]) / np.sqrt(reach))
            seen.append((self.falls[:, origins + 1] - self.falls[:, since]) / np.sqrt(reach))
        changed = self.changed[:, origins]
        seen.append(np.take_along_axis(self._moves, changed, axis=1))
        seen.append(last)
        day, knows_day = self.season(ahead, origins, DAY)
        week, knows_week = self.season(ahead, origins, WEEK)
        seen += [day, week]
        sized = np.stack(seen, axis=2) / scale[:, :, None]
        plain = np.stack(
            [
                knows_day,
                knows_week,
                still,
                np.log1p((origins - changed) / ahead),
                np.full_like(still, np.log(ahead)),
                np.full_like(still, np.log(ahead * self.step / 3600)),
            ],
            axis=2,
        )
        return np.concatenate([np.sign(sized) * np.log1p(np.abs(sized)), plain], axis=2), scale


def _between(values: Floats, before: int, after: int, step: float, *, settled: bool) -> Floats:
    """What stood between two places; all values before the first are there.

    Args:
        values: Not a number where one is missing, L.
        before: The first place.
        after: The second.
        step: Seconds from one value to the next.
        settled: Whether it led up to what stands at the second.
    """
    places = np.arange(before, after + 1)
    for period in (DAY, WEEK):
        back = round(period / step)
        if after - back < before and before - back >= 0 and not np.isnan(values[after - back]):
            then = values[places - back]
            ends = values[[before, after if settled else before]] - then[[0, -1 if settled else 0]]
            return (then + np.interp(places, [before, after], ends))[1:-1]
    return np.interp(places, [before, after], values[[before, after if settled else before]])[1:-1]


def _excursions(values: Floats) -> tuple[Floats, Whole]:
    """Height and length of the excursion that begins at each place, S × L; zero where none does."""
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
    flags = np.zeros(len(values), dtype=bool)
    for length in range(1, min(BRIEF, values.shape[1] - 2) + 1):
        inside, before = values[:, -length:], values[:, -length - 1]
        height = np.maximum(inside.min(axis=1) - before, before - inside.max(axis=1))
        flags |= height > np.maximum(max(FAR / length, 1.0) * usual, 1e-9)
    return flags


def _lasting(values: Floats, usual: Floats) -> Flags:
    """Whose level is such as never before, for a while already, S."""
    longest = min(LASTING, values.shape[1] // 4)
    lasting, before = slice(-longest, -BRIEF), slice(-longest - 1, -BRIEF - 1)
    backwards = values[:, : -longest - 1 : -1]
    least = np.minimum.accumulate(backwards, axis=1)[:, ::-1][:, lasting]
    most = np.maximum.accumulate(backwards, axis=1)[:, ::-1][:, lasting]
    above = least - np.maximum.accumulate(values, axis=1)[:, before]
    below = np.minimum.accumulate(values, axis=1)[:, before] - most
    flags: Flags = np.maximum(above, below).max(axis=1, initial=-np.inf) > np.maximum(usual, 1e-9)
    return flags


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
        error = _is_error(history, inside)
        returns = returned + (ERROR_RETURNS if error else RETURNS)
        return length, returns / (returns + STAYS) / 2 ** (length - 1)
    return 0, OLD_HABITS if lasting else 0.0


def _is_error(history: Floats, inside: Floats) -> bool:
    """Whether readings are rather an error: zeros where there never was one, or more than ever was, by far."""
    return bool(inside.max() == 0 < history.min() or inside.min() > ABSURD * history.max())


def _early_error(values: Floats) -> tuple[int, float]:
    """As `_end`, where too few readings are known for anything but an error to be doubted."""
    for length in range(1, min(BRIEF, len(values) - A_FEW + 1) + 1):
        history, inside = values[:-length], values[-length:]
        if history.min() > 0 and _is_error(history, inside):
            return length, ERROR_RETURNS / (ERROR_RETURNS + STAYS) / 2 ** (length - 1)
    return 0, 0.0


def _gain(values: Floats, day: int, lag: int, shift: int) -> tuple[tuple[Floats, Floats], Floats, Floats]:
    """What a day of each series missed by the old and the new clock, and by how much a change explains it better.

    Args:
        values: S × L.
        day: Steps of a day.
        lag: Steps back to what a value is held against: of a day or a week.
        shift: Steps by which the clock may have changed.

    Returns:
        Both that is missed, S × N; the gain over a day from each place, S × N, and where a whole day follows.
    """
    reach = lag + abs(shift)
    now = values[:, reach:]
    count = now.shape[1]
    plain = np.abs(now - values[:, reach - lag : values.shape[1] - lag])
    start = reach - lag + shift
    moved = np.abs(now - values[:, start : start + count])
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(plain - moved, axis=1)], axis=1)
    upto = np.minimum(np.arange(count) + day, count)
    gain = sums[:, upto] - sums[:, :-1]
    return (plain, moved), gain, gain[:, : count - day + 1]


def _gains(values: Floats, day: int, lag: int, shift: int) -> tuple[float, int, int]:
    """By how much a change explains the series better than none, at which column, and the shift."""
    reach = lag + abs(shift)
    (missing, moving), gains, wholes = _gain(values[None], day, lag, shift)
    plain, moved, gain, whole = missing[0], moving[0], gains[0], wholes[0]
    ends = np.minimum(np.arange(len(plain)) + day, len(plain))
    best, usual = float(gain.max()), -float(np.median(whole))
    if usual <= 0 or best < PART * usual:
        return NONE
    if lag > day:
        # a week is held against one of the old clock on each of its days, of which noise may favour a later one
        gain = gain[: int(np.argmax(gain >= NEARLY * best)) + day]
        best = float(gain.max())
    # between two changes of the series nobody can tell when the clock changed; the middle is taken
    ties = np.flatnonzero(gain >= best * (1 - 1e-9))
    run = ties[: int(np.argmax(np.append(np.diff(ties) > 1, True))) + 1]
    # day after day of a week tells the same; what came since the first that differs tells nothing of when it was
    run = run[: int(np.argmax(np.append(plain[run] != moved[run], True))) + 1]
    first = int(run[len(run) // 2])
    window = slice(first, int(ends[first]))
    missed, late = plain[window], plain[window][-max(1, abs(shift) // 2) :]
    # what has not come yet may not come at all, as at the end of a week: it is over only once both days agree again
    if moved[window].sum() > missed.sum() / 2 or late.mean() > np.median(missed) + missed.max() / 4:
        return NONE
    before = whole[first % day : first - day + 1 : day] if first >= day else whole[:0]
    regular = before[before <= -usual / 2]
    # on regular days, to move one only ever makes it worse; of a week, the ends of both its halves may differ
    weeks, over = divmod(len(before), DAYS_OF_WEEK)
    least = weeks * (DAYS_OF_WEEK - DAYS_OFF) + max(over - DAYS_OFF, 0)
    if len(regular) < max(DAYS, least) or regular.std() > usual / 3:
        return NONE
    return best, reach + first, shift


def _summed(values: Floats) -> Floats:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _among_reaches(sums: Floats, since: Whole, upto: Whole) -> Floats:
    """Sums of columns from and before, S × N."""
    between: Floats = sums[:, upto] - sums[:, since]
    return between
