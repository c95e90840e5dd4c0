"""Nodes get into trouble, and into worse trouble; ``planning`` says which, ``mending`` how they get out of it."""

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.telemetry import facts
from kuayu_conformance.testbed.telemetry.ledger import SLOW, Ledger, Trouble
from kuayu_conformance.testbed.telemetry.population import FAMILY, SERVING, SOLO
from kuayu_conformance.testbed.telemetry.values import BUSY, DEGRADED, FAULTY, IDLE, OFFLINE, STRAGGLING
from kuayu_conformance.testbed.telemetry.work import Open, Work

SLOWEST, LEAST_SLOW = 0.4, 0.8
"""Speeds of slow nodes, as requirement MET-006 states them."""

CAUSES = {
    Trouble.CLOCK: "clock throttled",
    Trouble.HOST: "slow host",
    Trouble.NETWORK: "degraded network card",
    Trouble.MEMORY: "memory errors",
    Trouble.FAULTS: "recurring mended faults",
    Trouble.LOST: "device lost",
}
_FAMILY_CAUSES = ((Trouble.CLOCK, 0.35), (Trouble.HOST, 0.3), (Trouble.MEMORY, 0.15), (Trouble.NETWORK, 0.2))
_SINGLE_CAUSES = ((Trouble.CLOCK, 0.45), (Trouble.HOST, 0.3), (Trouble.MEMORY, 0.25))
_KINDS = ((FAMILY, 0.25), (SOLO, 0.4), (SERVING, 0.35))
"""Where the other troubles of busy nodes happen: less in families, where they stop the work of all."""
_OUT_OF_SIGHT = 0.4  # share of lost nodes whose work goes on
_STUCK = 0.4  # share of fatal faults, where it can be told apart, in which a kernel never ends


class Troubles:
    """What happens to nodes, one at a time. Each method does it to some node, and says whether there was one."""

    def __init__(self, ledger: Ledger, work: Work, chance: Chance, may_change: Open) -> None:
        self._ledger = ledger
        self._work = work
        self._chance = chance
        self._open = may_change

    def straggle(self, tick: int) -> bool:
        """A member of a family becomes slow, and the others wait."""
        row = self._busy(tick, FAMILY)
        if row is None:
            return False
        shown = self._ledger.population.kind(row).shows_network
        cause = self._chance.weighted(_FAMILY_CAUSES if shown else _FAMILY_CAUSES[:-1])
        self._slow(row, tick, cause, STRAGGLING)
        return True

    def slow_alone(self, tick: int) -> bool:
        """A single node becomes slow."""
        row = self._busy(tick, SOLO)
        if row is None:
            return False
        self._slow(row, tick, self._chance.weighted(_SINGLE_CAUSES), DEGRADED)
        return True

    def faults_at_work(self, tick: int) -> bool:
        """Faults that are mended come again and again on a node that works."""
        return self._degrade(self._busy(tick, self._chance.weighted(_KINDS)), tick, Trouble.FAULTS)

    def faults_at_rest(self, tick: int) -> bool:
        """The same on a node that is idle."""
        return self._degrade(self._idle(tick), tick, Trouble.FAULTS)

    def lose_at_work(self, tick: int) -> bool:
        """A device of a node is lost, and the rest goes on; in a family the job could not."""
        return self._degrade(self._busy(tick, self._chance.pick((SOLO, SERVING))), tick, Trouble.LOST)

    def lose_at_rest(self, tick: int) -> bool:
        """A device of an idle node is lost."""
        return self._degrade(self._idle(tick), tick, Trouble.LOST)

    def fail_at_work(self, tick: int) -> bool:
        """A busy node fails."""
        return self._fail(self._busy(tick, self._chance.weighted(_KINDS)), tick)

    def fail_worse(self, tick: int) -> bool:
        """A node that was in trouble fails."""
        state = self._chance.pick((DEGRADED, STRAGGLING))
        return self._fail(self._ledger.pick(state, tick, lambda row: self._runs_on(row, tick)), tick)

    def vanish_at_rest(self, tick: int) -> bool:
        """An idle node goes off."""
        return self._vanish(self._idle(tick), tick)

    def vanish_at_work(self, tick: int) -> bool:
        """A busy node goes off, or only out of sight."""
        row = self._busy(tick, self._chance.weighted(_KINDS))
        if row is not None and self._chance.fraction() < _OUT_OF_SIGHT:
            self._ledger.away.add(row)
            self._ledger.doing(row).troubled = row
            self._ledger.afflict(row, tick, Trouble.SILENT)
            self._ledger.change(row, tick, OFFLINE, "out of sight")
            return True
        return self._vanish(row, tick)

    def vanish_worse(self, tick: int) -> bool:
        """A node that was in trouble goes off, or is taken out."""
        state = self._chance.pick((DEGRADED, STRAGGLING, FAULTY))
        return self._vanish(self._ledger.pick(state, tick, lambda row: self._free(row, tick)), tick)

    def _busy(self, tick: int, kind: str) -> int | None:
        ledger = self._ledger

        def fits(row: int) -> bool:
            group = ledger.group(row)
            return group.kind == kind and ledger.calm(ledger.doing(row), tick) and self._open(group.domain, tick)

        return ledger.pick(BUSY, tick, fits)

    def _idle(self, tick: int) -> int | None:
        return self._ledger.pick(IDLE, tick, lambda row: self._open(self._ledger.group(row).domain, tick))

    def _free(self, row: int, tick: int) -> bool:
        """Nobody waits for it that would have to wait longer."""
        return self._open(self._ledger.group(row).domain, tick) and not self._ledger.doing(row).stalled

    def _runs_on(self, row: int, tick: int) -> bool:
        return self._free(row, tick) and self._ledger.occupied(row)

    def _slow(self, row: int, tick: int, cause: Trouble, state: int) -> None:
        speed = round(self._chance.between(SLOWEST, LEAST_SLOW), 3)
        self._ledger.doing(row).troubled = row
        self._ledger.afflict(row, tick, cause, speed)
        self._ledger.tell(tick, f"slow {cause.name}", self._ledger.group(row).number, (row,), speed)
        self._ledger.change(row, tick, state, CAUSES[cause])

    def _degrade(self, row: int | None, tick: int, cause: Trouble) -> bool:
        if row is None:
            return False
        if self._ledger.state[row] == BUSY:
            self._ledger.doing(row).troubled = row
        devices = self._ledger.population.kind(row).devices
        lost = 1 + self._chance.below(max(1, devices // 4)) if cause is Trouble.LOST else 0
        self._ledger.afflict(row, tick, cause, lost)
        self._ledger.change(row, tick, DEGRADED, CAUSES[cause])
        return True

    def _fail(self, row: int | None, tick: int) -> bool:
        """Nothing goes on, and it shows: in a family a stuck kernel looks like a wait, alone a hang like a rest."""
        if row is None:
            return False
        ledger, kind = self._ledger, self._ledger.group(row).kind
        silent = self._chance.fraction() < facts.SILENT_FATAL_SHARE
        stuck = self._chance.fraction() < _STUCK and not (silent and kind == FAMILY)
        silent = silent and (stuck or kind == FAMILY)
        self._relieve(row, tick, but=Trouble.LOST)
        ledger.afflict(row, tick, Trouble.STUCK if stuck else Trouble.HUNG)
        if not silent:
            ledger.afflict(row, tick, Trouble.FATAL)
        ledger.tell(tick, "stick" if stuck else "hang", ledger.group(row).number, (row,))
        ledger.doing(row).troubled = row
        if kind == FAMILY:
            self._work.stall(row, tick)
        ledger.change(row, tick, FAULTY, f"{'stuck' if stuck else 'hung'}, {'silently' if silent else 'with faults'}")
        return True

    def _vanish(self, row: int | None, tick: int) -> bool:
        """A node goes off: what ran on it is lost, and the others of its family wait."""
        if row is None:
            return False
        ledger, activity = self._ledger, self._ledger.doing(row)
        self._relieve(row, tick)
        ledger.vacate(row, tick)
        if ledger.in_family(row) and row in activity.active:
            ledger.tell(tick, "die", ledger.group(row).number, (row,))
            self._work.stall(row, tick)
        else:
            ledger.tell(tick, "clear", ledger.group(row).number, (row,))
            if not ledger.in_family(row):
                self._work.drop(row, tick)
        ledger.afflict(row, tick, Trouble.SILENT)
        ledger.change(row, tick, OFFLINE, "node died")
        return True

    def _relieve(self, row: int, tick: int, but: Trouble | None = None) -> None:
        if self._ledger.afflicted(row, *SLOW):
            self._ledger.tell(tick, "mend", self._ledger.group(row).number, (row,))
        self._ledger.relieve(row, tick, but)
