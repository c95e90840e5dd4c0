"""Whether the service itself kept up: silence that it slept through tells nothing about nodes.

The event loop gives a sign of life every so often, by itself. That the watcher is late, with log lines to read, is no
stall: beats are taken in meanwhile. Where the loop is late, beats wait in its sockets.
"""

import time
from collections.abc import Callable

STALLED = 0.5
"""Seconds that the event loop may be behind; beats that arrive meanwhile wait in its sockets."""

RECOVERY = 0.5
"""Seconds after a stall in which what has waited is taken in, before silence tells anything again."""

TICK = STALLED / 5
"""Seconds between two signs of life."""


class Attention:
    """Has the event loop give signs of life.

    Args:
        later: Has a function called in the event loop so many seconds from now.
        clock: Seconds that never go back.
    """

    def __init__(
        self, later: Callable[[float, Callable[[], None]], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._later = later
        self._clock = clock
        self._seen = clock()
        self._ready_at = self._seen
        later(TICK, self._see)

    def given(self) -> bool:
        """Whether the event loop has kept up, so that silence tells something."""
        now = self._clock()
        return now - self._seen <= STALLED and now >= self._ready_at

    def _see(self) -> None:
        now = self._clock()
        if now - self._seen > STALLED:
            self._ready_at = now + RECOVERY
        self._seen = now
        self._later(TICK, self._see)
