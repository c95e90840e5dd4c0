"""Arrays, instants and plain JSON, as this package uses them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Plain = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(instant: str) -> float:
    """Seconds since 1970 of an instant of the wire."""
    return (datetime.fromisoformat(instant) - _EPOCH).total_seconds()


def rounded(value: float) -> float:
    """A figure to nine digits, so that the order of sums does not show."""
    return float(f"{value:.9g}")
