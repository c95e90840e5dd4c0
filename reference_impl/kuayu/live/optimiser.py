"""Adam (Kingma and Ba, ICLR 2015) on a stretch of the parameters, with its state.

Each worker keeps the state of its own stretch alone, as ZeRO does in its first stage (Rajbhandari et al., SC 2020): a
worker that is lost takes state with it that nobody else holds, so that replicas are needed in earnest.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATE, WARM_STEPS, FIRST, SECOND, LEAST = 3e-3, 20, 0.9, 0.99, 1e-8

Vector = NDArray[np.float32]


def stretch(rank: int, world: int, size: int) -> slice:
    """The stretch of a vector that a rank owns; stretches differ by one at most."""
    return slice(rank * size // world, (rank + 1) * size // world)


@dataclass(slots=True)
class Moments:
    """Running moments of the gradient, each of shape (stretch,)."""

    first: Vector
    second: Vector

    @classmethod
    def none(cls, size: int) -> "Moments":
        """Those before the first step."""
        return cls(np.zeros(size, np.float32), np.zeros(size, np.float32))


def advance(values: Vector, moments: Moments, gradient: Vector, step: int) -> Vector:
    """Parameters after a step; the moments move on in place.

    Args:
        values: Parameters of the stretch.
        moments: Their moments.
        gradient: Gradient of the mean loss, of the same shape.
        step: Number of the step, from 1.
    """
    one = np.float32(1)
    first, second = np.float32(FIRST), np.float32(SECOND)
    moments.first = moments.first * first + gradient * (one - first)
    moments.second = moments.second * second + gradient * gradient * (one - second)
    rate = np.float32(RATE * min(1.0, step / WARM_STEPS) / (1 - FIRST**step))
    spread = np.sqrt(moments.second / np.float32(1 - SECOND**step)) + np.float32(LEAST)
    after: Vector = values - rate * moments.first / spread
    return after
