"""Elementary functions of sums, products and quotients alone: the same numbers on every processor.

NumPy's own follow what the processor can do at once, and the C library's its version; the last digits differ, and with
them bytes that are to be sent again elsewhere. Sums, products and quotients are exact to the last digit (IEEE 754).

1. **Exponentials and waves.** :func:`exponential` of powers between -8 and 8, to 1e-12; :func:`growth` of powers
   between -16 and 16; :func:`wave`, a sine to 0.0017.
2. **Logarithms and powers.** :func:`logarithm` to 1e-15, :func:`power` to 1e-11.
3. **Curves.** NumPy's interpolation, and the order in which it sums, follow the processor as well; :func:`read_off` and
   :func:`exact_sum` do not.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_Real = TypeVar("_Real", float, NDArray[np.float64])
_TERMS = 12
_HALVINGS = 4
_LN2 = 0.6931471805599453
_LOGARITHM_TERMS = 25


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


def wave(cycles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sine of so many turns, to 0.0017, by the formula of Bhaskara I (Mahabhaskariya, 7th century).

    It is 16 t (1 - t) / (5 - 4 t (1 - t)), where t is a share of half a turn.
    """
    halves = 2.0 * (cycles - np.floor(cycles))
    share = halves - np.floor(halves)
    bow = share * (1.0 - share)
    return np.where(halves < 1.0, 1.0, -1.0) * (16.0 * bow / (5.0 - 4.0 * bow))


def logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithm of positive numbers, to 1e-15: the series of the inverse hyperbolic tangent of the mantissa."""
    mantissa, exponent = np.frexp(values)
    part = (mantissa - 1.0) / (mantissa + 1.0)
    square = part * part
    series = np.zeros_like(part)
    for term in range(_LOGARITHM_TERMS, -1, -1):
        series = series * square + 1.0 / (2 * term + 1)
    return 2.0 * part * series + exponent * _LN2


def power(base: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Positive numbers to some power, to 1e-11; the logarithm of the outcome lies between -32 and 32."""
    quarter = exponential(exponent / 4.0 * logarithm(base))
    return quarter * quarter * quarter * quarter


def growth(powers: Floats) -> Floats:
    """``e`` to powers between -16 and 16."""
    half = exponential(np.minimum(np.maximum(0.5 * powers, -8.0), 8.0))
    return half * half


def read_off(positions: Floats, places: Sequence[float], heights: Sequence[float]) -> Floats:
    """Heights of a curve of straight pieces, level beyond its ends. Places ascend, and there are two or more."""
    knots, levels = np.array(places), np.array(heights)
    # not np.clip, which takes several times as long on as few numbers as these are
    piece = np.minimum(np.maximum(knots.searchsorted(positions, side="right") - 1, 0), len(knots) - 2)
    begin, low = knots[piece], levels[piece]
    share = np.minimum(np.maximum((positions - begin) / (knots[piece + 1] - begin), 0.0), 1.0)
    heights_there: Floats = low * (1.0 - share) + levels[piece + 1] * share
    return heights_there


def exact_sum(values: Floats) -> float:
    """Sum, rounded once."""
    return math.fsum(values.tolist())
