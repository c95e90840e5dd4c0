"""DRF: dominant resource fairness between tenants, over all domains; nobody is preempted.

A. Ghodsi et al., "Dominant resource fairness: fair allocation of multiple resource types", NSDI 2011.

1. *Resources* are the accelerators of each kind, in all domains together. A tenant's share of a kind is what its jobs
   hold of it over what there is of it; its dominant share is the greatest of these.
2. *Progressive filling* (algorithm 1 there): the tenant of least dominant share is next, and its next job is given
   devices; then it is seen anew who is next. The next job of a tenant is that which comes first in the queue, so that
   priorities order a tenant's own jobs and not those of others. Tenants have equal weights.
3. *Placement.* There a task names what it needs of each resource; a job here can run on several kinds, in any domain.
   It goes where B3 would send it, where staging and running end first.
4. *Gangs.* There it ends when the next task does not fit. Here the first job that rather waits, or does not fit, has
   a reservation, since otherwise large jobs would never find enough devices free; whoever is next after it fills in
   where that does not delay it.
5. Shares change as jobs end: who holds more than its share keeps it until then, as there.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kuayu_conformance.testbed.scheduling.baselines.easy import Schedule
from kuayu_conformance.testbed.scheduling.baselines.greedy import EarliestCompletion
from kuayu_conformance.testbed.scheduling.engine.orders import Order
from kuayu_conformance.testbed.scheduling.engine.state import Counts, Holding
from kuayu_conformance.testbed.scheduling.engine.view import View

_AGAIN = 600.0
"""Seconds after which it is decided anew although no job and no device has come or gone; ten epochs."""


class DominantShares:
    """What tenants hold, while an epoch is being decided.

    Args:
        view: The epoch; jobs that hold devices count, also those that do not run yet.
    """

    def __init__(self, view: View) -> None:
        self._kinds, count = view.places.type, len(view.places.types)
        self._devices: Counts = np.bincount(self._kinds, weights=view.places.devices, minlength=count).astype(np.int64)
        self._held: defaultdict[str, Counts] = defaultdict(lambda: np.zeros(count, dtype=np.int64))
        for number in view.running.tolist():
            self.take(view.job(number).tenant, view.holding(number))

    def take(self, tenant: str, holding: Holding) -> None:
        """A tenant is given devices."""
        for pool, devices in holding:
            self._held[tenant][self._kinds[pool]] += devices

    def of(self, tenant: str) -> float:
        """Dominant share of a tenant, from nought to one."""
        return float((self._held[tenant] / self._devices).max())


class DominantResourceFairness(EarliestCompletion):
    """DRF: the tenant of least dominant share is next, its job goes to the pool where it ends first."""

    def __init__(self) -> None:
        super().__init__()
        self._idle: tuple[int, float] = (-1, 0.0)

    def decide(self, view: View) -> Sequence[Order]:
        """Start jobs of tenants in the order of their dominant shares."""
        revision, until = self._idle
        if view.revision == revision and view.now < until:
            return ()
        schedule, shares = Schedule(view, self._trust.free(view)), DominantShares(view)
        orders: list[Order] = []
        reserved = False
        for number in _in_turn(shares, _queues(view)):
            ways = self._of(view, number)
            if reserved and not any(schedule.fits(candidate.holding) for candidate in ways):
                continue
            ends = self._ends(view, number, ways)
            best = self._best_now(schedule, ways, ends, ends)
            if not reserved and self._waits(view, schedule, ways, ends, best):
                reserved = True
            elif best is not None:
                self._start(view, schedule, number, ways[best], float(ends[best]), orders)
                shares.take(view.job(number).tenant, ways[best].holding)
        if not orders:
            self._idle = view.revision, view.now + _AGAIN
        return orders


def _queues(view: View) -> dict[str, deque[int]]:
    """Those that wait by tenant, in the order of the queue."""
    queues: dict[str, deque[int]] = {}
    for number in view.pending.tolist():
        queues.setdefault(view.job(number).tenant, deque()).append(number)
    return queues


def _in_turn(shares: DominantShares, queues: Mapping[str, deque[int]]) -> Iterator[int]:
    """All who wait, always the next of the tenant that has least then; of equal ones that which is first by name."""
    left = dict(queues)
    while left:
        tenant = min(left, key=lambda name: (shares.of(name), name))
        yield left[tenant].popleft()
        if not left[tenant]:
            del left[tenant]
