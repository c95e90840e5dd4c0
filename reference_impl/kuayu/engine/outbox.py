"""Samples that wait for the service, never more than a given number of them.

A batch keeps its key and its content until its fate is known, so that sending it again is harmless. When the outbox is
full the oldest samples that are not in a batch are dropped, and counted: what is newest matters most to a scheduler.
"""

import threading
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from kuayu_schemas.models import Sample


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples that travel together, under the idempotency key that they keep."""

    key: str
    samples: tuple[Sample, ...]


class Outbox:
    """Bounded queue between one thread that observes and one that sends.

    Args:
        capacity: Most samples that wait, those of the batch under way included; at least one.
    """

    def __init__(self, capacity: int) -> None:
        """Begin empty."""
        self._capacity = max(1, capacity)
        self._largest = max(1, capacity // 2)  # the other half stays free for what comes meanwhile
        self._queue: deque[Sample] = deque()
        self._batch: Batch | None = None
        self._dropped = 0
        self._changed = threading.Condition()

    @property
    def dropped(self) -> int:
        """Samples that were dropped for want of room."""
        return self._dropped

    def __len__(self) -> int:
        """Samples that wait, those of the batch under way included."""
        with self._changed:
            return self._waiting()

    def put(self, samples: Iterable[Sample]) -> None:
        """Add samples, dropping the oldest where there is no room."""
        with self._changed:
            self._queue.extend(samples)
            while self._queue and self._waiting() > self._capacity:
                self._queue.popleft()
                self._dropped += 1
            self._changed.notify_all()

    def batch(self, most: int, timeout_s: float) -> Batch | None:
        """The batch under way, or else the oldest samples as a new one; waits for samples.

        Returns:
            None where none came in time.
        """
        with self._changed:
            if self._batch is None and self._changed.wait_for(lambda: bool(self._queue), timeout_s):
                taken = [self._queue.popleft() for _ in range(min(most, self._largest, len(self._queue)))]
                self._batch = Batch(str(uuid.uuid4()), tuple(taken))
            return self._batch

    def settle(self, again: Iterable[Sample] = ()) -> None:
        """The batch under way has met its fate; ``again`` are those of its samples that have to travel once more."""
        with self._changed:
            self._batch = None
            self._queue.extendleft(reversed(list(again)))

    def _waiting(self) -> int:
        return len(self._queue) + (len(self._batch.samples) if self._batch else 0)
