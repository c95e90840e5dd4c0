"""Series as they are told: where values are missing, and what most likely stood there.

A missing value is null on the wire and not a number here. It is never taken for zero. What the forecaster needs at
equal steps is filled in from the same time of the day before, shifted so that it meets the values at both ends of the
gap, or, where that is not known, by a straight line. Filled values are looked at as history but never judged by.
Values that are missing at the end are left away: the horizon lies so many steps farther.
"""

import numpy as np

from kuayu.forecast.past import DAY, WEEK
from kuayu.forecast.values import Floats, Plain


def last_known(series: Plain) -> int:
    """Place of the last value that is known, in the list of the wire.

    Args:
        series: A ``DemandSeries`` with a value that is known.
    """
    values = series["values"]
    return next(place for place in range(len(values) - 1, -1, -1) if values[place] is not None)


def known(series: Plain, most: int) -> Floats:
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
    there = values[~missing]
    made = values.copy()
    edges = np.flatnonzero(np.diff(missing.astype(int)))
    for before, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        made[before + 1 : last + 1] = _between(made, before, last + 1, step)
    made = np.clip(made, there.min(), there.max())
    return np.where(missing, np.round(made), made) if (there % 1 == 0).all() else made


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
