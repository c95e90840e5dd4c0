"""When the leases of a domain are over, by its own count (clause Allocations, where a job may run).

A lease counts from when the last request for open actions was sent that was answered. The count goes on over restarts
of the controller, for as long as the machine is up; after that nothing is known, and all leases are over.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kuayu.engine.holdings import Holding

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Tells one start of a machine from another, under Linux."""


def since_boot() -> float:
    """Seconds since the machine was started, also while it slept where that can be told."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def this_boot() -> str | None:
    """Which start of the machine this is; None where nothing tells."""
    return BOOT.read_text(encoding="ascii").strip() if BOOT.is_file() else None


class LeaseClock:
    """The count of one domain.

    Args:
        steady: Seconds of a clock that goes on over restarts of the process.
        boot: Which start of the machine this is; None where nothing tells.
    """

    def __init__(self, steady: Callable[[], float] = since_boot, boot: str | None = None) -> None:
        self._steady = steady
        self._boot = boot
        self._answered: float | None = None

    def now(self) -> float:
        """What the count is at."""
        return self._steady()

    def answered(self, sent: float) -> None:
        """A request that was sent at this count has been answered."""
        self._answered = sent

    def ends(self, holding: Holding) -> float | None:
        """The count at which a domain has to let go of something unless it is answered; None where it has not to."""
        if holding.lease is None or holding.until is not None:
            return None
        return float("-inf") if self._answered is None else self._answered + holding.lease

    def first_end(self, held: Iterable[Holding]) -> float | None:
        """The count at which it has to let go of something first; None where there are no leases."""
        return min((end for holding in held if (end := self.ends(holding)) is not None), default=None)

    def over(self, held: Iterable[Holding]) -> list[Holding]:
        """What it has to let go of now."""
        now = self.now()
        return [holding for holding in held if holding.over or ((end := self.ends(holding)) is not None and end <= now)]

    def to_json(self) -> dict[str, Any]:
        """The count as JSON values."""
        return {"boot": self._boot, "answered": self._answered}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Go on with the count that :meth:`to_json` gave, where the machine was not started anew since."""
        if self._boot is not None and kept.get("boot") == self._boot and kept["answered"] is not None:
            self._answered = min(float(kept["answered"]), self.now())


def shortest(held: Iterable[Holding]) -> float | None:
    """Seconds of the shortest lease that something is held under; None where there is none."""
    return min((holding.lease for holding in held if holding.lease is not None), default=None)
