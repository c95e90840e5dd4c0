"""Exponentials and waves of sums, products and quotients alone: the same numbers on every processor.

NumPy's own follow what the processor can do at once, and the C library's its version; the last digits differ, and with
them bytes that are to be sent again elsewhere. Sums, products and quotients are exact to the last digit (IEEE 754).
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Real = TypeVar("_Real", float, NDArray[np.float64])

_TERMS = 12
_HALVINGS = 4


def exponential(power: _Real) -> _Real:
    """``e`` to some power between -8 and 8, to 1e-12: a Taylor series of its sixteenth part, squared four times."""
    part: _Real = power / 2**_HALVINGS
    series: _Real = part / _TERMS + 1.0
    for term in range(_TERMS - 1, 0, -1):
        series *= part
        series /= term
        series += 1.0
    for _ in range(_HALVINGS):
        series *= series
    return series


def wave(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sine of so many turns, to 0.0017, by the formula of Bhaskara I (Mahabhaskariya, 7th century).

    It is 16 t (1 - t) / (5 - 4 t (1 - t)), where t is a share of half a turn.
    """
    halves = 2.0 * (turns - np.floor(turns))
    share = halves - np.floor(halves)
    bow = share * (1.0 - share)
    return np.where(halves < 1.0, 1.0, -1.0) * (16.0 * bow / (5.0 - 4.0 * bow))
