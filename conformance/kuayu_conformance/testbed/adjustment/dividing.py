"""The division of a step's parts among domains whose slowest domain takes least."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def divided(per_part: Floats, total: int) -> tuple[Whole, Floats]:
    """The division whose slowest domain takes least, and what that takes; ``(T, D)`` and ``(T,)``.

    One part more goes where it ends soonest, again and again; what fits into the time of an undivided optimum is there
    before the rest, so that no more than a part for each domain is left to be given one by one.

    Args:
        per_part: Seconds of a part in each domain, more than nought, ``(T, D)``; infinite where others take all.
        total: Parts, no fewer than domains; each domain gets one at least.
    """
    fastest = np.where(np.isfinite(per_part), 1.0 / per_part, 0.0)
    parts = np.ones(per_part.shape, dtype=np.int64)
    free = np.ones(per_part.shape, dtype=bool)  # domains that get more than the one part that each has to have
    for _ in range(per_part.shape[1]):
        left = total - (~free).sum(axis=1)
        speed = np.where(free, fastest, 0.0).sum(axis=1)
        share = np.divide(left, speed, out=np.zeros(len(left)), where=speed > 0.0)[:, None] * fastest
        free &= share > 1.0
        parts = np.where(free, np.floor(share).astype(np.int64), 1)
    rows = np.arange(len(parts))
    for _ in range(per_part.shape[1]):
        short = parts.sum(axis=1) < total
        soonest = ((parts + 1) * per_part).argmin(axis=1)
        parts[rows, soonest] += short
    parts[:, 0] += total - parts.sum(axis=1)  # where others take all of every domain, and no division is better
    return parts, (parts * per_part).max(axis=1)
