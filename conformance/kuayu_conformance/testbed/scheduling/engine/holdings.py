"""Who holds which devices, and which are broken."""

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.places import Holding, Places


class Holdings:
    """Devices by pool; never more are held than work.

    Attributes:
        working: Devices that are not broken, by pool.
        free: Those of them that nobody holds, by pool.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self.working = places.devices.copy()
        self.free = places.devices.copy()
        self._held: tuple[dict[int, int], ...] = tuple({} for _ in places.pools)
        self._since = 0.0
        self._there, self._taken = np.zeros(len(places.pools)), np.zeros(len(places.pools))

    def fits(self, holding: Holding) -> bool:
        """Whether so many devices are free."""
        return all(devices <= self.free[pool] for pool, devices in holding)

    def take(self, job: int, holding: Holding, now: float) -> None:
        """A job takes devices in addition to those that it has."""
        self._count(now)
        for pool, devices in holding:
            assert 0 < devices <= self.free[pool], "capacity is never exceeded"
            self.free[pool] -= devices
            self._held[pool][job] = self._held[pool].get(job, 0) + devices

    def give_back(self, job: int, holding: Holding, now: float) -> None:
        """A job gives back some of those that it has."""
        self._count(now)
        for pool, devices in holding:
            left = self._held[pool][job] - devices
            assert left >= 0, "nobody gives back what it does not have"
            if left:
                self._held[pool][job] = left
            else:
                del self._held[pool][job]
            self.free[pool] += devices
            assert self.free[pool] <= self.working[pool], "no device is there twice"

    def on_node(self, pool: int, place: float) -> tuple[list[int], int]:
        """Jobs that hold devices of a node, and how many working devices it has.

        Jobs fill the working devices of a pool in the order in which they came; ``place``, of [0, 1), is where among
        these the node is.
        """
        working = int(self.working[pool])
        size = min(int(self._places.per_node[pool]), working)
        first = int(place * (working - size + 1))
        hit, begin = [], 0
        for job, devices in self._held[pool].items():
            if begin < first + size and first < begin + devices:
                hit.append(job)
            begin += devices
        return hit, size

    def breaks(self, pool: int, devices: int, now: float) -> None:
        """Devices that nobody holds fail."""
        self._count(now)
        assert devices <= self.free[pool], "who held them has lost them before"
        self.free[pool] -= devices
        self.working[pool] -= devices

    def repaired(self, pool: int, devices: int, now: float) -> None:
        """Devices are back."""
        self._count(now)
        self.free[pool] += devices
        self.working[pool] += devices

    def device_seconds(self, now: float) -> tuple[Floats, Floats]:
        """Device seconds that have been there to be used, and those that were held, by pool."""
        passed = now - self._since
        return self._there + self.working * passed, self._taken + (self.working - self.free) * passed

    def _count(self, now: float) -> None:
        self._there, self._taken = self.device_seconds(now)
        self._since = now
