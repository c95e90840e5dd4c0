"""Bells: who waits for something to be asked of a domain is woken, whichever part of the service asks it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Bell:
    """Wakes those who wait for something to be asked of a domain. For the event loop alone."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._closed = False

    @contextmanager
    def heard(self, key: tuple[str, str]) -> Iterator[asyncio.Event]:
        """An event that is set when the bell rings for this tenant and domain, or for the last time."""
        event = asyncio.Event()
        if self._closed:
            event.set()
        self._waiting.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            left = self._waiting[key]
            left.discard(event)
            if not left:
                del self._waiting[key]

    @property
    def closed(self) -> bool:
        """Whether nobody may wait any longer."""
        return self._closed

    def ring(self, key: tuple[str, str]) -> None:
        """Wake those who wait for this tenant and domain."""
        for event in self._waiting.get(key, ()):
            event.set()

    def close(self) -> None:
        """Wake everyone, now and from now on."""
        self._closed = True
        for key in list(self._waiting):
            self.ring(key)

    def waiting_of(self, tenant: str) -> int:
        """How many of a tenant wait."""
        return sum(len(events) for (owner, _), events in self._waiting.items() if owner == tenant)

    def __len__(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))
