"""What happens when: events in the order of time, and of their making where they coincide."""

import heapq
from collections.abc import Callable
from math import inf
from typing import Any

Handler = Callable[..., None]


class Clock:
    """Events that are to come.

    Attributes:
        now: Seconds since the scenario began.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Handler, tuple[Any, ...]]] = []
        self._made = 0

    @property
    def next(self) -> float:
        """When the next event is, or infinite."""
        return self._events[0][0] if self._events else inf

    def at(self, instant: float, handler: Handler, *arguments: Any) -> None:
        """At an instant, not before now, something is called; never if the instant is infinite."""
        if instant < inf:
            self._made += 1
            heapq.heappush(self._events, (max(instant, self.now), self._made, handler, arguments))

    def pass_to(self, instant: float) -> None:
        """Make it that instant, and let everything happen that is due by then."""
        self.now = instant
        while self._events and self._events[0][0] <= instant:
            _, _, handler, arguments = heapq.heappop(self._events)
            handler(*arguments)
