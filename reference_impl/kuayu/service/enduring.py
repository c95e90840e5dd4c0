"""Threads that nothing may end: what goes wrong is logged, and they go on."""

import contextlib
import logging
import time
from collections.abc import Iterator

logger = logging.getLogger(__name__)

SAID_AGAIN = 60.0
"""Seconds after which the same failure is logged again."""


class Enduring:
    """Lets a thread not end by what goes wrong, and logs it, if not each time.

    Args:
        words: What could not be done.
    """

    def __init__(self, words: str) -> None:
        self._words = words
        self._said: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Whatever goes wrong within is logged, and is over."""
        try:
            yield
        except Exception as error:
            now = time.monotonic()
            if now >= self._said.get(repr(error), float("-inf")) + SAID_AGAIN:
                self._said = {what: at for what, at in self._said.items() if now < at + SAID_AGAIN} | {repr(error): now}
                logger.exception(self._words)
