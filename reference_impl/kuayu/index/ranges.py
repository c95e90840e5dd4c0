"""Ends of what the model can hold. A value beyond is given as the end."""

import numpy as np
import numpy.typing as npt

MIN_AMOUNT, MAX_AMOUNT = 1e-30, 1e30
"""Ends of a positive amount."""

MAX_LOG = 69.0
"""About the logarithm of the largest positive amount; where logarithms are cut before they are raised to e."""


def positive(value: float) -> float:
    """A value as a positive amount."""
    return min(max(value, MIN_AMOUNT), MAX_AMOUNT)


def raised(logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Positive amounts of these logarithms."""
    return np.asarray(np.clip(np.exp(np.clip(logs, -MAX_LOG - 1, MAX_LOG + 1)), MIN_AMOUNT, MAX_AMOUNT))
