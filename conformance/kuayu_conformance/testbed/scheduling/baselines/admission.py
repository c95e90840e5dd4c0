"""B2: a job is offered to all domains, and the first that admits it wins, in the way of MultiKueue."""

from collections.abc import Sequence
from zlib import crc32

from kuayu_conformance.testbed.scheduling.baselines.trust import Trust
from kuayu_conformance.testbed.scheduling.baselines.ways import usable, way
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Start
from kuayu_conformance.testbed.scheduling.engine.state import Counts
from kuayu_conformance.testbed.scheduling.engine.view import View


class FirstToAdmit:
    """B2: in the order of the queue, each job to the first domain with room; who does not fit blocks nobody.

    Kueue's documentation, "MultiKueue" (all workers are offered a workload at once, the first to reserve quota keeps
    it) and "ClusterQueue" (``BestEffortFIFO``; flavours are tried in the order in which they are listed; partial
    admission). Which of several domains with room is first is chance there; here the name of the job decides where the
    round begins. A job that no pool could ever hold is admitted with fewer devices, as many as a pool has, if it runs
    on that; it is never spread.
    """

    def __init__(self) -> None:
        self._trust = Trust()
        self._ways: dict[int, tuple[tuple[int, int], ...]] = {}

    def decide(self, view: View) -> Sequence[Order]:
        """Start whoever fits anywhere."""
        free = self._trust.free(view)
        largest = int(free.max(initial=0))
        orders: list[Order] = []
        for number in view.pending.tolist():
            if largest == 0:
                break
            if min(view.register.requested[number], view.places.devices.max()) > largest:
                continue
            taken = self._admit(view, number, free)
            if taken:
                free[taken[0]] -= taken[1]
                largest = int(free.max())
                orders.append(Start(view.job(number).name, way(view, (taken,)).placement))
        return orders

    def _admit(self, view: View, number: int, free: Counts) -> tuple[int, int] | None:
        """The first pool with room, and how many of its devices."""
        ways = self._ways.get(number)
        if ways is None:
            ways = self._ways[number] = _offers(view, number)
        return next(((pool, devices) for pool, devices in ways if devices <= free[pool]), None)


def _offers(view: View, number: int) -> tuple[tuple[int, int], ...]:
    """Pools in the order in which they are asked, and for how many devices."""
    pools = usable(view, number).tolist()
    begin = crc32(view.job(number).name.encode()) % len(view.places.sites)
    pools.sort(key=lambda pool: ((int(view.places.site[pool]) - begin) % len(view.places.sites), pool))
    sizes, requested = view.places.devices, int(view.register.requested[number])
    if any(sizes[pool] >= requested for pool in pools):
        return tuple((pool, requested) for pool in pools if sizes[pool] >= requested)
    return tuple((pool, int(sizes[pool])) for pool in pools if sizes[pool] >= view.register.minimum[number])
