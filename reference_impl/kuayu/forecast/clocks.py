"""Changes to and from summer time: what is regular goes by the clock on the wall, and series go by UTC.

After such a change everything regular comes an hour earlier or later. It shows within a day: from some instant on, the
series follows the day before by 23 or 25 hours. History before that instant is then moved to the new clock, so that
the same time of the day is the same again. Where a series has no regular day, nothing is found and nothing is moved.
"""

import numpy as np

from kuayu.forecast.past import DAY
from kuayu.forecast.values import Floats

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


def _gains(values: Floats, day: int, shift: int) -> tuple[float, int, int]:
    """By how much a change explains the series better than none, at which column, and the shift."""
    reach = day + abs(shift)
    now = values[reach:]
    plain = np.abs(now - values[reach - day : len(values) - day])
    start = reach - day + shift
    moved = np.abs(now - values[start : start + len(now)])
    sums = np.concatenate([[0.0], np.cumsum(plain - moved)])
    upto = np.minimum(np.arange(len(now)) + day, len(now))
    gain = sums[upto] - sums[:-1]
    whole = gain[: len(now) - day + 1]
    best, usual = float(gain.max()), -float(np.median(whole))
    if usual <= 0 or best < PART * usual:
        return NONE
    # between two changes of the series nobody can tell when the clock changed; the middle is taken
    ties = np.flatnonzero(gain >= best * (1 - 1e-9))
    run = ties[: int(np.argmax(np.append(np.diff(ties) > 1, True))) + 1]
    first = int(run[len(run) // 2])
    window = slice(first, int(upto[first]))
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
