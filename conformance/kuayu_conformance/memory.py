"""What was computed once and follows from its key alone, remembered while the process lives.

A run observes every check twice, as it happens and from the transcript, and plays the same beside the service both
times. Only what does not depend on the service's answers is remembered, so that no check can pass by it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Memory(Generic[Value]):
    """Values by key, the last ones that were used; they are handed out as they are, so they must never change.

    Args:
        most: How many are kept at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value of a key; found now where it is not known, by two threads at a time if need be."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = compute()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value
