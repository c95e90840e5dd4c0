"""Nodes get well again: repaired, restarted, back."""

from collections.abc import Callable

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.telemetry.ledger import SLOW, Ledger
from kuayu_conformance.testbed.telemetry.values import BUSY, DEGRADED, FAULTY, IDLE, OFFLINE, STRAGGLING
from kuayu_conformance.testbed.telemetry.work import Open, Work

_TROUBLED = ((STRAGGLING, 2.0), (DEGRADED, 1.0), (FAULTY, 1.0), (OFFLINE, 1.5))


class Mending:
    """Ways out of trouble. Each method finds some node, and says whether there was one."""

    def __init__(self, ledger: Ledger, work: Work, chance: Chance, may_change: Open) -> None:
        self._ledger = ledger
        self._work = work
        self._chance = chance
        self._open = may_change

    def to_idle(self, tick: int) -> bool:
        """A node that nothing runs on, or nothing any more, is well again."""
        return self._mend(tick, self._idle_again)

    def to_busy(self, tick: int) -> bool:
        """A node works again as it should."""
        return self._mend(tick, self._busy_again)

    def _mend(self, tick: int, way: Callable[[int, int], str | None]) -> bool:
        state_after = IDLE if way == self._idle_again else BUSY
        for state in self._chance.order(_TROUBLED):
            row = self._ledger.pick(state, tick, lambda row: self._free(row, tick) and way(row, -1) is not None)
            if row is None:
                continue
            cause = way(row, tick)
            assert cause is not None, "it was asked before"
            self._ledger.change(row, tick, state_after, cause)
            return True
        return False

    def _free(self, row: int, tick: int) -> bool:
        waited_for = self._ledger.doing(row).stalled and self._ledger.doing(row).troubled == row
        return self._open(self._ledger.group(row).domain, tick) and not waited_for

    def _idle_again(self, row: int, tick: int) -> str | None:
        """How a row becomes idle, done unless the tick is negative; None where it does not."""
        ledger, state = self._ledger, self._ledger.state[row]
        if row in ledger.away or state == STRAGGLING or (state == DEGRADED and ledger.occupied(row)):
            return None
        if tick < 0:
            return "asked"
        ledger.relieve(row, tick)
        ledger.tell(tick, "clear", ledger.group(row).number, (row,))
        if state == FAULTY:
            if ledger.in_family(row):
                ledger.vacate(row, tick)
            else:
                self._work.drop(row, tick)
            return "cleared"
        return "back" if state == OFFLINE else "repaired"

    def _busy_again(self, row: int, tick: int) -> str | None:
        """How a row becomes busy, likewise."""
        ledger, state = self._ledger, self._ledger.state[row]
        working = ledger.occupied(row) and state in {DEGRADED, STRAGGLING}
        restarted = not ledger.in_family(row) and state in {FAULTY, OFFLINE}
        if not (working or restarted or row in ledger.away):
            return None
        if tick < 0:
            return "asked"
        if ledger.afflicted(row, *SLOW):
            ledger.tell(tick, "mend", ledger.group(row).number, (row,))
        ledger.relieve(row, tick)
        ledger.doing(row).troubled = -1
        ledger.doing(row).quiet = tick
        if row in ledger.away:
            ledger.away.discard(row)
            return "in sight again"
        if restarted:
            ledger.tell(tick, "clear", ledger.group(row).number, (row,))
            self._work.drop(row, tick)
            self._work.launch_alone(row, tick)
            return "restarted"
        return "recovered"
