"""What the level of a load or a latency is now, and whether that is a change."""

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from math import ceil
from statistics import median

LOAD_CHANGED, LOAD_CALM = 0.2, 0.1
LATENCY_CHANGED, LATENCY_CALM = 0.5, 0.25
"""Of the stated level: from where it counts as a change, and below which it is calm."""
HAIR = 1e-9
"""Of a level: at the very edge, either is right."""


class Motion(Enum):
    """How the level now stands to the one that the policy was chosen for."""

    CALM = "calm"
    BETWEEN = "between"
    CHANGED = "changed"


@lru_cache(64)
def looked_at(interval: float, patience: float) -> int:
    """How many of the last intervals make a level."""
    return max(1, ceil(patience / interval - HAIR))


def level(values: Sequence[float], interval: float, patience: float) -> float:
    """The level now: the median of the last values, oldest first, or of all where there are fewer."""
    return float(median(values[-looked_at(interval, patience) :]))


def load_motion(before: float, now: float) -> Motion:
    """Of a load, which counts in both directions."""
    return _motion(abs(now - before), abs(now - before), before, now, LOAD_CHANGED, LOAD_CALM)


def latency_motion(before: float, now: float) -> Motion:
    """Of a latency, whose rise alone counts; a fall is calm where it is small, and else between."""
    return _motion(now - before, abs(now - before), before, now, LATENCY_CHANGED, LATENCY_CALM)


def _motion(counted: float, apart: float, before: float, now: float, changed: float, calm: float) -> Motion:
    hair = HAIR * max(before, now)
    if apart == 0.0 or apart < calm * before - hair:
        return Motion.CALM
    return Motion.CHANGED if counted >= changed * before + hair else Motion.BETWEEN
