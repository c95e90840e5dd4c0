"""Which reports of free devices to believe: a domain that has refused for want of room is left alone for a while."""

from kuayu_conformance.testbed.scheduling.engine.orders import Move, Refusal, Start
from kuayu_conformance.testbed.scheduling.engine.state import Counts
from kuayu_conformance.testbed.scheduling.engine.view import View

_WARY = 600.0
"""Seconds for which the devices of a pool that has refused are taken to be held; ten epochs."""


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
