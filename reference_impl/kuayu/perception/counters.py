"""What a counter gained since it was last seen.

Rules (clause on expositions):

* A start time that is later than the known one, or than when a counter without one was last seen, says that it began
  anew: its increase is its value. Where the start time is unchanged, the counter was not reset, so that a fall tells
  nothing.
* A start time moves also where a counter goes on: agents state when they themselves started, or the instant of the
  point before, or compute it from a clock that is put right. Whoever would have begun since it was last seen goes on
  where it has gained little beside a value that is no small count; whoever would have begun before that, where it
  stated about the same time then.
* Without start times, a counter that fell below three quarters was reset, and its increase is its value. One that fell
  by less slipped back, as counters of the kernel do (prometheus/node_exporter#1686, #2568): this page gives nothing,
  and the next one is compared with it. A count below 100 does not slip.
* A value that goes on where the series had been before it fell, slipped back or leapt is compared with that earlier
  value: what stood between was wrong (prometheus/node_exporter#2155), or is of another source. Small counts, such as
  those of faults, may go on after a leap that no such counter makes. An earlier value that the counter has counted past
  since is none to go back to: what comes near it after a fall was reset.
* A series that within ten minutes went back to where it had been, both up and down, comes from two sources under one
  identity (cloned machines: coroot/coroot#145, netdata/netdata#21527). Until that ends it gives nothing.

Sources of start times: opentelemetry-proto metrics.proto, ``start_time_unix_nano``; OpenTelemetry metrics data model,
"Resets and Gaps" (a start equal to the instant begins a stream whose zero is not known).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

RESET_SHARE = 0.75
"""Share of its value below which a counter that fell was reset."""

SMALL_COUNT = 100
"""Counts below this do not slip back: kernel counters that do count bytes or nanoseconds."""

NEAR_ABOVE, NEAR_BELOW = 0.03, 0.01
"""How far past an earlier value, as a share of the leap, a counter goes on from there: after a rise, after a fall. What
a reset leaves may by chance lie near where the counter once was, and is no return."""

NEAR_UNSURE = 0.001
"""The same after a rise that may well be what a counter gained since it was reset: its pace is not known."""

SURE_LEAP = 1000
"""Counts that such a rise has at least: of less, one count is more than that share."""

FAR_COUNT = 1e6
"""Counts of a fall after which a small count may go on from where it had been: what it fell from was not its own."""

LEAP = 20.0
"""Times its usual pace by which a rise may be a return."""

FAR_LEAP = 100.0
"""Times its usual pace, or its value, by which a rise is kept in mind as one that may be undone."""

FIRST_LEAP = 10.0
"""Times its value by which it is where no pace is known yet."""

MEMORY = 600_000
"""Milliseconds for which earlier values are kept, and after which sources that alternated no longer count as two."""

MAX_EARLIER = 3
"""Earlier values that are kept."""

SAME_START = 1000
"""Milliseconds by which start times of one run may differ: agents compute them anew from uptimes in whole seconds."""

DRIFT = 60_000
"""The same of one that was seen to run after both of them: uptimes in whole minutes, clocks that are put right."""

Point = tuple[int, float]
"""Instant in milliseconds and value."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a counter.

    Attributes:
        instant: When it was last seen, in milliseconds.
        value: What it showed then.
        began: Its start time in milliseconds, where the sender states one.
        pace: What it usually gains in a second; None while that is not known.
        earlier: Values that it had before it fell or leapt, the newest first.
        rises: How often it rose back to one of those.
        falls: How often it fell back to one of those.
        returned: When it last did either.
    """

    instant: int
    value: float
    began: int | None = None
    pace: float | None = None
    earlier: tuple[Point, ...] = ()
    rises: int = 0
    falls: int = 0
    returned: int = 0

    @property
    def alternates(self) -> bool:
        """Whether two sources report it under one identity: it went back both ways, where a wrong value does once."""
        return self.rises > 0 and self.falls > 0

    def to_wire(self) -> list[Any]:
        """As JSON; a counter of which no more is known is its instant and value."""
        plain = [self.instant, self.value]
        if self == Known(self.instant, self.value):
            return plain
        return [*plain, self.began, self.pace, self.earlier, self.rises, self.falls, self.returned]

    @classmethod
    def from_wire(cls, document: Sequence[Any]) -> "Known":
        """From JSON, that of earlier versions included."""
        instant, value, *rest = document
        if not rest:
            return cls(instant, value)
        began, pace, earlier, rises, falls, returned = rest
        return cls(
            instant,
            value,
            began,
            pace,
            tuple((when, value_then) for when, value_then in earlier),
            rises,
            falls,
            returned,
        )


Counters = Mapping[str, Known]
"""What is remembered of each counter, by the series that it stands in."""


@dataclass(frozen=True, slots=True)
class Step:
    """A counter from one page to the next.

    Attributes:
        known: What to remember from now on.
        amount: What it gained; None where that cannot be told.
        seconds: Time over which it gained that.
        returned: Whether it went back to where it had been before it fell or leapt.
    """

    known: Known
    amount: float | None = None
    seconds: float = 0.0
    returned: bool = False


def step(known: Known | None, instant: int, value: float, began: int | None = None, shortest: float = 0.0) -> Step:
    """Compare a counter with what is known of it.

    Args:
        known: None for a counter that was not seen before.
        instant: When it was seen, in milliseconds.
        value: What it showed; finite.
        began: Its start time in milliseconds, where the sender states one.
        shortest: Seconds below which nothing is told yet, and the earlier value stays the one to compare with.
    """
    if known is None:
        return Step(Known(instant, value, began))
    seconds = (instant - known.instant) / 1000
    if seconds <= 0 or seconds < shortest:
        return Step(known)
    known = _recent(known, instant)
    if began is not None and _is_new_start(known, instant, value, began):
        before = known.instant if known.began is None else known.began
        return _begun_anew(replace(known, began=before), instant, value, began, seconds)
    earlier = _earlier(known, value, seconds)
    if earlier is not None:
        return _returned(known, instant, value, began, earlier)
    now = replace(known, instant=instant, value=value, began=known.began if began is None else began)
    gain = value - known.value
    if gain >= 0:
        pace = gain / seconds
        times = FAR_LEAP if known.pace else FIRST_LEAP
        leapt = value > times * known.value or (bool(known.pace) and pace > times * (known.pace or 0.0))
        ahead = tuple(point for point in known.earlier if not known.value <= point[1] <= value)
        now = replace(now, pace=pace, earlier=_noted(known) if leapt else ahead)
        return _step_after(now, gain, seconds)
    if began is not None and known.began is not None:
        return Step(now)
    if slipped(known.value, value):
        return Step(replace(now, pace=None, earlier=_noted(known)))  # what rose before may have been no pace
    return _step_after(replace(now, earlier=_noted(known)), value, seconds)


def slipped(before: float, after: float) -> bool:
    """Whether a counter that fell slipped back, and was not reset."""
    return RESET_SHARE * before <= after < before and before >= SMALL_COUNT


def sighting(known: Known | None, instant: int, identity: float) -> Known:
    """Remember which piece of hardware stands behind a device; one that comes back after another one alternates.

    Args:
        known: None for a device that was not seen before.
        instant: When it was seen, in milliseconds.
        identity: Number that stands for the piece.
    """
    if known is None:
        return Known(instant, identity)
    if instant <= known.instant:
        return known
    known = _recent(known, instant)
    if identity == known.value:
        return replace(known, instant=instant)
    again = any(value_then == identity for _, value_then in known.earlier)
    earlier = tuple(point for point in _noted(known) if point[1] != identity)
    now = replace(known, instant=instant, value=identity, earlier=earlier)
    return _back(now, known, instant, rose=identity > known.value) if again else now


def _step_after(now: Known, amount: float, seconds: float) -> Step:
    return Step(now) if now.alternates else Step(now, amount, seconds)


def _is_new_start(known: Known, instant: int, value: float, began: int) -> bool:
    """Whether a start time says that a counter began anew, or that it is another source's."""
    if known.began is None:
        moved, ran = known.instant < began < instant, False
    else:
        moved, ran = abs(began - known.began) > SAME_START, began < known.instant - SAME_START
    gain = value - known.value
    if ran and known.began is not None:  # it ran by then, or another source did
        goes_on = gain >= 0 and abs(began - known.began) <= DRIFT
    else:
        goes_on = gain >= 0 and known.value >= SMALL_COUNT and FIRST_LEAP * gain <= value
    return moved and not goes_on


def _begun_anew(known: Known, instant: int, value: float, began: int, seconds: float) -> Step:
    """By the start time.

    A counter begins anew after it was last seen; a start before that is of another source, which ran at the same time.
    """
    assert known.began is not None
    now = replace(known, instant=instant, value=value, began=began, pace=None, earlier=())
    overlaps = began < known.instant - SAME_START
    if overlaps:
        now = _back(now, known, instant, rose=began > known.began)
    if began < known.began or began >= instant:
        return Step(now, returned=overlaps)
    return replace(_step_after(now, value, seconds), returned=overlaps)


def _returned(known: Known, instant: int, value: float, began: int | None, earlier: Point) -> Step:
    when, value_then = earlier
    seconds = (instant - when) / 1000
    others = tuple(point for point in _noted(known) if point != earlier)
    now = Known(instant, value, began, (value - value_then) / seconds, others, known.rises, known.falls)
    now = _back(now, known, instant, rose=value > known.value)
    return Step(now, returned=True) if now.alternates else Step(now, value - value_then, seconds, returned=True)


def _earlier(known: Known, value: float, seconds: float) -> Point | None:
    """The earlier value from which a counter goes on, if it does."""
    if value == known.value:
        return None
    rose, leap = value > known.value, abs(value - known.value)
    share = NEAR_ABOVE if rose else NEAR_BELOW
    if rose and known.pace and leap / seconds < LEAP * known.pace:
        return None
    fell_least = bool(known.earlier) and slipped(known.earlier[0][1], known.value)
    if rose and not known.pace and value <= FIRST_LEAP * known.value and not fell_least:
        if leap < SURE_LEAP:
            return None
        share = NEAR_UNSURE
    smallest = 0 if not rose and leap >= FAR_COUNT else SMALL_COUNT
    near = (
        (when, value_then)
        for when, value_then in known.earlier
        if value_then >= smallest and (value_then > known.value) == rose and 0 <= value - value_then <= share * leap
    )
    return min(near, key=lambda point: value - point[1], default=None)


def _back(now: Known, known: Known, instant: int, *, rose: bool) -> Known:
    """Note a return upwards or downwards."""
    return replace(now, rises=known.rises + rose, falls=known.falls + (not rose), returned=instant)


def _noted(known: Known) -> tuple[Point, ...]:
    return ((known.instant, known.value), *known.earlier)[:MAX_EARLIER]


def _recent(known: Known, instant: int) -> Known:
    earlier = tuple(point for point in known.earlier if instant - point[0] <= MEMORY)
    if known.rises + known.falls > 0 and instant - known.returned > MEMORY:
        return replace(known, earlier=earlier, rises=0, falls=0)
    return known if len(earlier) == len(known.earlier) else replace(known, earlier=earlier)
