"""Chance that needs no order: the fraction of a number of a purpose is the same whenever it is asked for.

Numbers are mixed as in SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014), in whole numbers modulo 2**64, so that every processor finds the same.
"""

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_WHOLE = np.uint64(11)
_FINE = 2.0**-53


class Lots:
    """Fractions of one purpose of a seed, for pairs of whole numbers."""

    def __init__(self, seed: str, purpose: str) -> None:
        digest = sha256(f"{seed}/{purpose}".encode()).digest()
        self._key = np.array([int.from_bytes(digest[:8], "big")], dtype=np.uint64)

    def of(self, who: Numbers, which: Numbers) -> Floats:
        """Numbers of [0, 1), one for each of some pairs, none of which may be negative; shape of ``who``."""
        once = _mixed(self._key + who.astype(np.uint64) * _STEP)
        return (_mixed(once + which.astype(np.uint64) * _STEP) >> _WHOLE).astype(np.float64) * _FINE


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    numbers = numbers + _STEP
    numbers = (numbers ^ (numbers >> _SHIFTS[0])) * _FIRST
    numbers = (numbers ^ (numbers >> _SHIFTS[1])) * _SECOND
    return numbers ^ (numbers >> _SHIFTS[2])
