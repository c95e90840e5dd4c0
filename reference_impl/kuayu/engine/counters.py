"""Growth of counters between readings.

The same law as the transforms ``rate`` and ``increase`` of the indicator register: series by series, then summed; a
counter that fell below three quarters was reset, so that its increase is its value, and one that fell by less slipped
back and gives nothing. Counters that are known to wrap at a given value are unwound there instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kuayu.perception.counters import slipped


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added to a set of counters.

    Attributes:
        amount: Sum of the increases, in the counters' unit; never negative.
        seconds: Time between the two readings; greater than nought.
    """

    amount: float
    seconds: float

    @property
    def rate(self) -> float:
        """Increase in a second."""
        return self.amount / self.seconds


def increase(before: float, after: float, span: float | None = None) -> float:
    """Growth of one counter from one reading to the next; never negative.

    Args:
        before: Earlier reading.
        after: Later reading.
        span: Value at which the counter wraps; None where a fall can only be a reset.
    """
    if after >= before:
        return after - before
    if span is None and slipped(before, after):
        return 0.0
    return after if span is None else max(0.0, span - before) + after


class Counters:
    """A set of named counters that is read now and then.

    A series that was absent from the reading before contributes nothing yet, so that a device that was plugged in with
    its counter far advanced makes no spike.
    """

    def __init__(self, spans: Mapping[str, float] | None = None) -> None:
        """Begin without a reading; ``spans`` names the counters that wrap, and at what value."""
        self._spans = dict(spans or {})
        self._at = 0.0
        self._values: Mapping[str, float] = {}

    def step(self, now: float, values: Mapping[str, float]) -> Growth | None:
        """Take a reading made at ``at`` seconds of a monotonic clock; return the growth since the one before.

        Returns:
            None where no series was in the reading before, or no time has passed.
        """
        before, since, known = self._values, now - self._at, self._values.keys() & values.keys()
        self._at, self._values = now, dict(values)
        if not known or since <= 0:
            return None
        return Growth(sum(increase(before[name], values[name], self._spans.get(name)) for name in known), since)
