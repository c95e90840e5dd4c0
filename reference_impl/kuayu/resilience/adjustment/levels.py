"""Levels of load and latency now, which of them have changed, and which are calm."""

from collections.abc import Sequence
from math import ceil
from statistics import median

LOAD, LATENCY = "load", "latency"
CHANGED, BETWEEN, CALM = "changed", "between", "calm"

LOAD_CHANGED, LOAD_CALM = 0.2, 0.1
"""Share of the stated level by which a load has changed, and below which it is calm."""

LATENCY_CHANGED, LATENCY_CALM = 0.5, 0.25
"""The same of a latency; only a rise is a change."""

_SAME = 1e-9
"""Share of an interval by which a quotient of doubles may be off."""


def looked_at(patience_s: float, interval_s: float, measured: int) -> int:
    """How many of the last intervals the level now is the median of, one at least."""
    return max(1, ceil(min(patience_s / interval_s - _SAME, float(measured))))


def level(values: Sequence[float], patience_s: float, interval_s: float) -> float:
    """The level now.

    Args:
        values: The mean of each interval, oldest first, one at least.
        patience_s: Seconds that are looked at.
        interval_s: Seconds of an interval.
    """
    return float(median(values[-looked_at(patience_s, interval_s, len(values)) :]))


def of_load(before: float, now: float) -> str:
    """Whether a load has changed, is calm, or neither."""
    off = abs(now - before)
    if now == before or off < LOAD_CALM * before:
        return CALM
    return CHANGED if off >= LOAD_CHANGED * before else BETWEEN


def of_latency(before: float, now: float) -> str:
    """Whether a latency has changed, is calm, or neither."""
    if now == before or abs(now - before) < LATENCY_CALM * before:
        return CALM
    return CHANGED if now >= (1 + LATENCY_CHANGED) * before else BETWEEN
