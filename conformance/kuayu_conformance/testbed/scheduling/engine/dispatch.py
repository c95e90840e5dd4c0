"""Orders: checked, then carried out."""

from kuayu_conformance.testbed.scheduling.engine.checking import holding_of, room, unfit
from kuayu_conformance.testbed.scheduling.engine.orders import Move, Order, Refusal, Resize, Start, Stop
from kuayu_conformance.testbed.scheduling.engine.places import Holding
from kuayu_conformance.testbed.scheduling.engine.progress import Phase
from kuayu_conformance.testbed.scheduling.engine.queue import Queue
from kuayu_conformance.testbed.scheduling.engine.stages import Stages
from kuayu_conformance.testbed.scheduling.engine.view import Parts, View
from kuayu_conformance.testbed.scheduling.values import Placement, Share


class Dispatch:
    """Carries out orders.

    Args:
        parts: What a check looks at.
        stages: Jobs with devices.
        queue: Jobs without.
    """

    def __init__(self, parts: Parts, stages: Stages, queue: Queue) -> None:
        self._parts, self._stages, self._queue = parts, stages, queue

    def obey(self, order: Order, view: View) -> Refusal | None:
        """Carry out an order, or say why not; the view is that on which it was given."""
        number = self._parts.register.number.get(order.job)
        phase = Phase.ABSENT if number is None else self._stages.progress.phase[number]
        if number is None or phase == Phase.ABSENT:
            return Refusal.UNKNOWN_JOB
        if isinstance(order, Start):
            return self._start(number, order.placement, view) if phase == Phase.PENDING else Refusal.NOT_PENDING
        if phase != Phase.RUNNING:
            return Refusal.NOT_RUNNING
        if view.cut.intersection(int(self._parts.places.site[pool]) for pool, _ in self._stages.runs[number].holding):
            return Refusal.CUT_OFF
        if isinstance(order, Stop):
            self._stages.stop(number, None)
            return None
        if isinstance(order, Move):
            return self._move(number, order.placement, view)
        return self._resize(number, order, view)

    def _start(self, number: int, placement: Placement, view: View) -> Refusal | None:
        why = unfit(self._parts, number, placement, view.cut) or self._full(placement, ())
        if why is None:
            expected = view.expected(number, placement)
            self._queue.remove(number)
            self._stages.begin(number, placement, expected)
        return why

    def _move(self, number: int, placement: Placement, view: View) -> Refusal | None:
        why = unfit(self._parts, number, placement, view.cut)
        why = why or self._full(placement, self._stages.runs[number].holding)
        if why is None:
            self._stages.stop(number, placement, view.expected(number, placement))
        return why

    def _resize(self, number: int, order: Resize, view: View) -> Refusal | None:
        shares = self._stages.runs[number].placement.shares
        if len(shares) > 1:
            return Refusal.SPLIT
        return self._move(number, Placement((Share(shares[0].site, shares[0].device, order.devices),)), view)

    def _full(self, placement: Placement, present: Holding) -> Refusal | None:
        holding = holding_of(self._parts.places, placement.shares)
        if isinstance(holding, Refusal):
            return holding
        return None if room(self._stages.holdings.free, holding, present) else Refusal.NO_ROOM
