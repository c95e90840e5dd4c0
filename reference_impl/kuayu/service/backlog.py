"""Pages that were fetched while they could not be written: kept for a while, the oldest given up first."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kuayu.service.problems import ProblemException

PAGES = 120
"""Pages of a target that are kept at most; at a period of a second these are two minutes."""

CHARACTERS = 64 * 1024 * 1024
"""Characters of all pages that are kept at most."""

Key = tuple[str, str]
Write = Callable[[str, int], Awaitable[Sequence[Mapping[str, Any]]]]
"""Writes a page that was received at an instant in milliseconds; gives what is to be known of it."""


class Backlog:
    """Pages by target, in order. For the event loop alone."""

    def __init__(self) -> None:
        self._pages: dict[Key, deque[tuple[str, int]]] = {}
        self._characters = 0

    async def hand_over(self, key: Key, page: str, received: int, write: Write) -> Sequence[Mapping[str, Any]]:
        """Write what was kept of a target, and then a page.

        Raises:
            ProblemException: overloaded, where it was kept; anything else where it is wrong.
        """
        pages = self._pages.setdefault(key, deque())
        pages.append((page, received))
        self._characters += len(page)
        while len(pages) > PAGES or (self._characters > CHARACTERS and len(pages) > 1):
            self._drop(pages)
        warnings: Sequence[Mapping[str, Any]] = ()
        while pages:
            try:
                warnings = await write(*pages[0])
            except ProblemException as problem:
                if problem.name == "overloaded" and self._pages.get(key) is pages:
                    raise
                self._drop(pages)
                if not pages:
                    raise
            except BaseException:
                self._drop(pages)
                raise
            else:
                self._drop(pages)
        if self._pages.get(key) is pages:
            del self._pages[key]
        return warnings

    def forget(self, key: Key) -> None:
        """Give up what is kept of a target."""
        pages = self._pages.pop(key, deque())
        while pages:
            self._drop(pages)

    def _drop(self, pages: "deque[tuple[str, int]]") -> None:
        if pages:
            self._characters -= len(pages.popleft()[0])
