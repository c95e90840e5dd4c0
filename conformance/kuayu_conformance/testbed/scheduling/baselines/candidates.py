"""What baselines share: how a job can be placed, EASY backfill over pools, and which reports to believe.

1. **Candidates.** A job can be placed in one pool, shrunk, or spread over domains.
2. **Backfill.** Who waits first has a reservation, and nobody who comes before it delays it. Lifka, "The ANL/IBM SP
   scheduling system", JSSPP 1995; Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime
   estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.
3. **Trust.** A domain that has refused for want of room is left alone for a while.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Refusal, Start
from kuayu_conformance.testbed.scheduling.engine.state import Counts, Holding
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.values import Placement, Split

SHRUNK = 0.75
"""Share of a pool to which a job is shrunk that is too large for it."""
PERIOD = 50
"""Steps between the reconciliations of a job that is spread."""
_WARY = 600.0
"""Seconds for which the devices of a pool that has refused are taken to be held; ten epochs."""


@dataclass(frozen=True, slots=True)
class Way:
    """A placement that a job might have.

    Attributes:
        placement: Where it would run.
        holding: The same by number.
        sites: Numbers of its domains.
    """

    placement: Placement
    holding: Holding
    sites: tuple[int, ...]


def way(view: View, holding: Holding) -> Way:
    """These devices, periodically reconciled if they are in several domains."""
    shares = tuple(view.places.share(pool, devices) for pool, devices in holding)
    sites = tuple(int(view.places.site[pool]) for pool, _ in holding)
    if len(holding) == 1:
        return Way(Placement(shares), holding, sites)
    return Way(Placement(shares, Split.PERIODIC, PERIOD), holding, sites)


def seconds(view: View, number: int, candidate: Way) -> float:
    """How long a job would hold the devices if it were given them now; infinite if it cannot run there."""
    staging, rate = view.expected(number, candidate.placement)
    left = float(view.work_left(np.array([number], dtype=np.intp))[0])
    return staging + left / rate if rate > 0.0 else inf


def all_seconds(view: View, number: int, ways: Sequence[Way]) -> Floats:
    """The same for many ways, by way."""
    left = float(view.work_left(np.array([number], dtype=np.intp))[0])
    staging, rates = view.staging(number), view.register.rates[number]
    requested, fresh = int(view.register.requested[number]), view.checkpoint_at(number) is None
    found = np.empty(len(ways))
    for place, candidate in enumerate(ways):
        pool, devices = candidate.holding[0]
        if fresh and devices == requested:
            rate = float(rates[view.places.type[pool]])
            found[place] = float(staging[candidate.sites[0]]) + left / rate if rate > 0.0 else inf
        else:
            found[place] = seconds(view, number, candidate)
    return found


def usable(view: View, number: int) -> Numbers:
    """Pools with memory enough, and where data and checkpoint may go."""
    kinds = view.register.rates[number] > 0.0
    reachable = np.zeros(len(view.places.sites), dtype=bool)
    reachable[list(view.data_at(number))] = True
    if not view.dataset(number).pinned:
        reachable |= np.isfinite(view.round_trips[list(view.data_at(number))]).any(axis=0)
    return np.flatnonzero(kinds[view.places.type] & reachable[view.places.site])


def shrunk(view: View, number: int, pool: int) -> Way | None:
    """Three quarters of a pool that is too small for what the job asks for, if the job goes on with so few."""
    devices = int(SHRUNK * view.places.devices[pool])
    return way(view, ((pool, devices),)) if devices >= view.register.minimum[number] and devices > 0 else None


def spread(view: View, number: int, pools: tuple[int, ...]) -> Way | None:
    """Pools of different domains that share what a job asks for in proportion to their size.

    If they are too small for it, it has all of them, if it goes on with so few.
    """
    if Split.PERIODIC not in view.job(number).splits:
        return None
    sizes = view.places.devices[list(pools)].tolist()
    requested = int(view.register.requested[number])
    wanted = min(requested, sum(sizes))
    if wanted < view.register.minimum[number]:
        return None
    counts = [min(size, ceil(wanted * size / sum(sizes))) for size in sizes[1:]]
    counts.insert(0, wanted - sum(counts))
    holding = tuple(zip(pools, counts, strict=True))
    return way(view, holding) if min(counts) > 0 else None


def nearest(view: View, site: int) -> Iterator[int]:
    """The other domains that can be reached from one, the nearest first."""
    round_trips = view.round_trips[site]
    for other in np.argsort(round_trips, kind="stable").tolist():
        if other != site and round_trips[other] < inf:
            yield other


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


class Trust:
    """Remembers who has refused."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}

    def free(self, view: View) -> Counts:
        """Free devices that may be counted upon, by pool."""
        for refused in view.refused:
            if refused.why == Refusal.NO_ROOM and isinstance(refused.order, Start | Move):
                for pool, _ in view.places.holding(refused.order.placement.shares):
                    self._until[pool] = view.now + _WARY
        free = view.free.copy()
        for pool in [pool for pool, until in self._until.items() if until > view.now]:
            free[pool] = 0
        for site in view.cut:
            free[view.places.of_site[site]] = 0
        return free
