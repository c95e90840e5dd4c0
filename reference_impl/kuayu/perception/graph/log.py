"""The last changes, for readers who come back."""

from collections import deque
from itertools import islice

from kuayu.perception.graph.changes import Change


class ChangeLog:
    """Changes in order, the numbers of which follow on each other; the oldest go first.

    Args:
        max_changes: How many are held at most.
        max_bytes: How many bytes they may take together, about. The newest is held in any case.
    """

    def __init__(self, max_changes: int, max_bytes: int) -> None:
        self._max_changes = max_changes
        self._max_bytes = max_bytes
        self._changes: deque[tuple[Change, int]] = deque()
        self._bytes = 0
        self.number = 0
        """Number of the newest change; nought before the first."""

    def append(self, change: Change) -> None:
        """Add the next change."""
        assert change.number == self.number + 1
        size = change.size
        self._changes.append((change, size))
        self._bytes += size
        self.number = change.number
        while len(self._changes) > self._max_changes or (self._bytes > self._max_bytes and len(self._changes) > 1):
            self._bytes -= self._changes.popleft()[1]

    def since(self, number: int) -> list[Change] | None:
        """Changes after a revision; None where it lies in the future or further back than is held."""
        first = self.number - len(self._changes)
        if not first <= number <= self.number:
            return None
        return [change for change, _ in islice(self._changes, number - first, None)]
