"""EASY backfill over pools: who waits first has a reservation, and nobody who comes before it delays it.

Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Mu'alem and Feitelson, "Utilization, predictability, workloads,
and user runtime estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.state import Counts, Holding
from kuayu_conformance.testbed.scheduling.engine.view import View


@dataclass(slots=True)
class Reservation:
    """Devices of a pool for a job that waits.

    Attributes:
        start: When it is expected to start.
        extra: Devices that are free at that time beside those that it needs.
    """

    start: float
    extra: int


class Schedule:
    """What is free now and when more will be, while an epoch is being decided.

    Args:
        view: The epoch.
        free: Free devices that may be counted upon, by pool; changed in place.
    """

    def __init__(self, view: View, free: Counts) -> None:
        self._view = view
        self.free = free
        self._taken: dict[int, list[tuple[float, int]]] = {}
        self._reserved: dict[int, list[Reservation]] = {}
        self._known: dict[int, tuple[Floats, Counts]] = {}

    def fits(self, holding: Holding) -> bool:
        """Whether devices are free now, whoever waits for them."""
        return all(devices <= self.free[pool] for pool, devices in holding)

    def admits(self, holding: Holding, ends: float) -> bool:
        """Whether a job that holds these devices from now until ``ends`` delays no reservation."""
        return self.fits(holding) and all(
            ends <= reserved.start or devices <= reserved.extra
            for pool, devices in holding
            for reserved in self._reserved.get(pool, ())
        )

    def may_admit(self, pool: int, devices: Counts, ends: Floats) -> NDArray[np.bool_]:
        """The same for many jobs, each in one pool."""
        fits: NDArray[np.bool_] = devices <= self.free[pool]
        for reserved in self._reserved.get(pool, ()):
            fits &= (ends <= reserved.start) | (devices <= reserved.extra)
        return fits

    def take(self, holding: Holding, ends: float) -> None:
        """A job starts now."""
        for pool, devices in holding:
            self.free[pool] -= devices
            self._taken.setdefault(pool, []).append((ends, devices))
            self._known.pop(pool, None)
            for reserved in self._reserved.get(pool, ()):
                if ends > reserved.start:
                    reserved.extra -= devices

    def earliest(self, holding: Holding) -> float:
        """When devices will be free, now or later; infinite if nothing says so."""
        return max(self._when(pool, devices) for pool, devices in holding)

    def reserve(self, holding: Holding) -> None:
        """A job waits for these devices; if they will never be free, for nothing."""
        start = self.earliest(holding)
        if start == inf:
            return
        for pool, devices in holding:
            extra = self._free_at(pool, start) - devices
            self._reserved.setdefault(pool, []).append(Reservation(start, extra))

    def _when(self, pool: int, devices: int) -> float:
        if devices <= self.free[pool]:
            return self._view.now
        ends, freed = self._releases(pool)
        place = int(np.searchsorted(freed, devices - int(self.free[pool])))
        return float(ends[place]) if place < len(ends) else inf

    def _free_at(self, pool: int, instant: float) -> int:
        ends, freed = self._releases(pool)
        place = int(np.searchsorted(ends, instant, side="right"))
        return int(self.free[pool]) + (int(freed[place - 1]) if place else 0)

    def _releases(self, pool: int) -> tuple[Floats, Counts]:
        """When devices are given back, in order, and how many by then; kept until more are taken."""
        known = self._known.get(pool)
        if known is None:
            ends, freed = self._view.releases(pool)
            taken = self._taken.get(pool)
            if taken:
                ends = np.append(ends, [end for end, _ in taken])
                freed = np.append(freed, [devices for _, devices in taken])
                order = np.argsort(ends, kind="stable")
                ends, freed = ends[order], freed[order]
            known = self._known[pool] = ends, np.cumsum(freed)
        return known
