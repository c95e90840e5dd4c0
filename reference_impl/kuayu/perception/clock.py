"""Clocks that are off: how far, and which instants cannot be taken.

Source: the standard's rule on time (observed and received instants are both kept).
"""

from enum import StrEnum

TOLERATED_OFFSET = 2_000
"""Milliseconds by which a sender's clock may be off before its instants are corrected."""

TOLERATED_FUTURE = 60_000
"""Milliseconds by which an instant may lie ahead of its receipt."""


class TimeFault(StrEnum):
    """Why an instant cannot be taken; the values are names of problem types."""

    clock_skew = "clock-skew"
    too_old = "too-old"


def offset(sent: int | None, received: int) -> int:
    """Milliseconds to add to every instant of a sender whose clock showed ``sent`` when it was ``received`` here."""
    if sent is None or abs(received - sent) <= TOLERATED_OFFSET:
        return 0
    return received - sent


def fault(observed: int, received: int, retention: int) -> TimeFault | None:
    """Tell why an instant cannot be taken, or None where it can.

    Args:
        observed: The instant after correction, in milliseconds.
        received: When it was received, in milliseconds.
        retention: How long samples are kept, in milliseconds.
    """
    if observed > received + TOLERATED_FUTURE:
        return TimeFault.clock_skew
    if observed < received - retention:
        return TimeFault.too_old
    return None
