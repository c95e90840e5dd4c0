"""Where a load is heading that is still rising or falling when it is first seen to have changed."""

from collections.abc import Sequence
from statistics import median

from kuayu.resilience.adjustment.levels import looked_at

FAR = 0.025
"""Share of a level that the last values have to lie off it, on one side, before they count for more than it."""

ONWARD = 0.5
"""Share of the last step that a load which moves steadily is taken to move on by."""

UNSETTLED = 0.06
"""Share of a load by which it differs from the interval before while it is still on its way."""

LATELY = 2
"""Times the patience within which a movement is fresh."""

_FEWEST = 3
"""Values that tell a movement from a spike."""


def ahead(values: Sequence[float], now: float, patience_s: float, interval_s: float) -> float:
    """What a load will be soon: the level now, or nearer to the last values where both lie off it on one side.

    The last value counts as far as the two before it bear it out, so that a spike of one interval does not count; and
    where all three lie on the way, the load is taken to go on a little.

    Args:
        values: The mean of each interval, oldest first.
        now: The level now.
        patience_s: Seconds that are looked at.
        interval_s: Seconds of an interval.
    """
    if looked_at(patience_s, interval_s, len(values)) < _FEWEST:
        return now
    before, last_but_one, last = values[-_FEWEST:]
    way = 1.0 if last > now else -1.0
    off = min(way * (last - now), way * (last_but_one - now))
    if off < FAR * now:
        return now
    step = way * (last_but_one - before)
    borne_out = min(way * last, way * last_but_one + max(0.0, step))
    onward = ONWARD * max(0.0, min(step, way * (last - last_but_one)))
    return min(1.0, max(0.0, way * (borne_out + onward)))


def is_moving(values: Sequence[float]) -> bool:
    """Whether a load is still on its way, by its last two intervals."""
    return len(values) > 1 and abs(values[-1] - values[-2]) > UNSETTLED * max(values[-2:])


def has_moved(values: Sequence[float], now: float, share: float, patience_s: float, interval_s: float) -> bool:
    """Whether a load or a latency was another one a short while ago, by more than a share of itself."""
    many = looked_at(patience_s, interval_s, len(values))
    before = values[-(LATELY + 1) * many : -LATELY * many]
    return bool(before) and abs(now - median(before)) > share * median(before)
