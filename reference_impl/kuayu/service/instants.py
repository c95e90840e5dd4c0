"""Instants: RFC 3339 text on the wire, whole milliseconds since 1970 everywhere else."""

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def now() -> int:
    """The clock on the wall."""
    return time.time_ns() // 1_000_000


def to_milliseconds(text: str) -> int:
    """Read an instant that has the form of the schema.

    Raises:
        ValueError: There is no such day, or no such year.
    """
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


def to_text(milliseconds: int) -> str:
    """Write an instant with three fractional digits."""
    return (_EPOCH + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds")[:-6] + "Z"
