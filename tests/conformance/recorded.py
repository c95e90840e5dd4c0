"""Exchanges that are kept, and given once more to whoever asks the same: judging has to follow from answers alone."""

from collections.abc import Sequence
from typing import Any, Protocol

from kuayu_conformance.answers import Answer


class Source(Protocol):
    """Who answers."""

    def exchange(self, request: Any) -> Answer:
        """An answer."""


class Recording:
    """Keeps what another source was asked, and what it answered.

    Attributes:
        kept: Bodies and answers, in order.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.kept: list[tuple[bytes, Answer]] = []

    def exchange(self, request: Any) -> Answer:
        """As the other source answers, kept."""
        answer = self._source.exchange(request)
        self.kept.append((request.body, answer))
        return answer


class Recorded:
    """Answers as they were recorded, to the same requests."""

    def __init__(self, exchanges: Sequence[tuple[bytes, Answer]]) -> None:
        self._left = list(exchanges)

    def exchange(self, request: Any) -> Answer:
        """The next answer."""
        body, answer = self._left.pop(0)
        assert request.body == body
        return answer
