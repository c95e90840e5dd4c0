"""Workers that were there before the control plane was started anew, and have to come back."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from kuayu.live.reports import PATIENCE_S

BACK_S = 2.5
"""Seconds in which they have to be back: more than leases last that were given before."""


class Awaited:
    """Who is not back yet. Where half of a job or more is not, it is rather the control plane that is cut off."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._since = 0.0

    def begin(self, workers: Iterable[str], now: float) -> None:
        """Wait for these from now on."""
        self._names, self._since = set(workers), now

    def drop(self, workers: Iterable[str]) -> bool:
        """They are back, or nobody waits for them any more; whether that leaves none of those who were waited for."""
        before = len(self._names)
        self._names.difference_update(workers)
        return before > 0 and not self._names

    def late(self, members: Sequence[str], now: float) -> AbstractSet[str]:
        """Who is given up now. Without a control plane workers end by themselves in the end."""
        waited = now - self._since
        most = 2 * len(self._names.intersection(members)) >= len(members)
        return frozenset(self._names) if waited > (PATIENCE_S + BACK_S if most else BACK_S) else frozenset()
