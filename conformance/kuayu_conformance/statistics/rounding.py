"""Rounding by rule, so that reports are the same bytes on every machine."""

import math


def rounded(value: float, digits: int = 9) -> float:
    """``value`` to so many significant digits; numeric libraries of different builds agree on that many."""
    if value == 0 or not math.isfinite(value):
        return float(value)
    return round(float(value), digits - 1 - math.floor(math.log10(abs(value))))
