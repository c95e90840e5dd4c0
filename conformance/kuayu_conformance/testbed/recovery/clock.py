"""What is to happen, in the order of time; at one instant, in the order in which it was put down."""

import heapq
from collections.abc import Callable
from math import inf


class Clock:
    """Instants with what happens then."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, instant: float, what: Callable[[], None]) -> None:
        """Put something down; nothing that is infinitely far away ever happens."""
        if instant < inf:
            self._count += 1
            heapq.heappush(self._due, (instant, self._count, what))

    @property
    def next(self) -> float:
        """When something happens next; infinite where nothing does."""
        return self._due[0][0] if self._due else inf

    def take(self) -> Callable[[], None]:
        """What happens next."""
        return heapq.heappop(self._due)[2]
