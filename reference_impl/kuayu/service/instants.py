"""Instants: RFC 3339 text on the wire, whole milliseconds since 1970 everywhere else."""

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def now() -> int:
    """The clock on the wall."""
    return time.time_ns() // 1_000_000


class Clock:
    """Seconds since 1970 that never go back nor leap: the clock on the wall when it begins, and steady from then on.

    What is waited for is timed by it, so that a clock that is set neither ends waiting nor draws it out.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        """The instant."""
        return time.monotonic() + self._ahead

    def milliseconds(self) -> int:
        """The instant, in whole milliseconds."""
        return round(self.now() * 1000)

    def offset(self) -> int:
        """Milliseconds by which the clock on the wall is ahead of this one by now."""
        return now() - self.milliseconds()


def to_milliseconds(text: str) -> int:
    """Read an instant that has the form of the schema.

    Raises:
        ValueError: There is no such day, or no such year.
    """
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


def to_text(milliseconds: int) -> str:
    """Write an instant with three fractional digits."""
    return (_EPOCH + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds")[:-6] + "Z"
