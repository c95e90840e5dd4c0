"""Whether the service itself kept up: silence that it slept through tells nothing about nodes."""

import time
from collections.abc import Callable

STALLED = 0.5
"""Seconds that the event loop may be behind; beats that arrive meanwhile wait in its sockets."""

RECOVERY = 0.5
"""Seconds after a stall in which what has waited is taken in, before silence tells anything again."""


class Attention:
    """Asks the event loop for a sign of life again and again.

    Args:
        ask: Has a function called in the event loop.
        clock: Seconds that never go back.
    """

    def __init__(self, ask: Callable[[Callable[[], None]], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._seen = clock()
        self._ready_at = self._seen

    def given(self) -> bool:
        """Whether the service has kept up, so that it may judge; call it every period of looking."""
        now = self._clock()
        if now - self._seen > STALLED:
            self._ready_at = now + RECOVERY
        self._ask(self._see)
        return now >= self._ready_at

    def _see(self) -> None:
        self._seen = self._clock()
