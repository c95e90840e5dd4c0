"""Curves of sums, products and quotients alone, so that a scenario has the same bytes on every processor.

NumPy's logarithm and interpolation, and the order in which it sums, follow the processor; these do not.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.elementary import exponential

Floats = NDArray[np.float64]


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
