"""Logarithms and powers of sums, products and quotients alone: the same numbers on every processor."""

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.elementary import exponential

_LN2 = 0.6931471805599453
_TERMS = 25


def logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithm of positive numbers, to 1e-15: the series of the inverse hyperbolic tangent of the mantissa."""
    mantissa, exponent = np.frexp(values)
    part = (mantissa - 1.0) / (mantissa + 1.0)
    square = part * part
    series = np.zeros_like(part)
    for term in range(_TERMS, -1, -1):
        series = series * square + 1.0 / (2 * term + 1)
    return 2.0 * part * series + exponent * _LN2


def power(base: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Positive numbers to some power, to 1e-11; the logarithm of the outcome lies between -32 and 32."""
    quarter = exponential(exponent / 4.0 * logarithm(base))
    return quarter * quarter * quarter * quarter
