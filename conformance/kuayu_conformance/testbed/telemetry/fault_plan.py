"""The plan: which node changes its state when, and by what. Fixed by design before any recogniser was run.

1. **Into trouble.** Nodes get into trouble, and into worse trouble; each method does it to some node, and says whether
   there was one.
2. **Out of it.** Nodes get well again: repaired, restarted, back.
3. **Balance.** Changes into each of the six states are kept as equal in number as can be: the next one leads into the
   state that is short, so that no state is judged by a handful. Straggling stays behind, since families are used up. It
   takes nodes that go from one trouble into another, as real ones do: a throttled device fails, a hung node is switched
   off.

   What telemetry cannot decide is left out:

   - a single node that hangs without a counted fault: a notebook whose reader thinks, a server that gets no requests,
     and a job that computes on its processors look the same (recorded on an H100, ``tests/perception/recordings``);
   - silent slowness of servers of inference: their load changes more than that, and nobody waits for them;
   - two slow nodes in a family at a time, and slowness from before the first sample of a job: nothing to compare with;
   - a slow node whose job has ended: nothing of it shows (it would be degraded);
   - a degraded network card where no flows are reported, and one of a single node;
   - a stuck kernel in a family without a counted fault: its node looks as those do that wait for it;
   - a device lost in a family: the job could not go on, and the loss would show as a fatal fault;
   - steps longer than two seconds, jobs that read nothing, onsets that a checkpoint or an evaluation would hide;
   - changes within twelve seconds of a partition of the node's domain.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.telemetry import jobs
from kuayu_conformance.testbed.telemetry.jobs import Runs
from kuayu_conformance.testbed.telemetry.ledger import SLOW, Ledger, Open, Trouble, Work
from kuayu_conformance.testbed.telemetry.population import FAMILY, SERVING, SOLO, Population
from kuayu_conformance.testbed.telemetry.values import (
    BUSY,
    DEGRADED,
    DWELL,
    FAULTY,
    IDLE,
    OFFLINE,
    STATES,
    STRAGGLING,
    TICKS,
    Scale,
)

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
MARGIN = 12
"""Seconds around a partition in which nothing changes in its domain."""
Action = Callable[[int], bool]
_FAMILY_CAUSES = ((Trouble.CLOCK, 0.35), (Trouble.HOST, 0.3), (Trouble.MEMORY, 0.15), (Trouble.NETWORK, 0.2))
_SINGLE_CAUSES = ((Trouble.CLOCK, 0.45), (Trouble.HOST, 0.3), (Trouble.MEMORY, 0.25))
_KINDS = ((FAMILY, 0.25), (SOLO, 0.4), (SERVING, 0.35))
"""Where the other troubles of busy nodes happen: less in families, where they stop the work of all."""
_OUT_OF_SIGHT = 0.4  # share of lost nodes whose work goes on
_STUCK = 0.4  # share of fatal faults, where it can be told apart, in which a kernel never ends
_TROUBLED = ((STRAGGLING, 2.0), (DEGRADED, 1.0), (FAULTY, 1.0), (OFFLINE, 1.5))
_PARTITION = 27
_BEFORE_PARTITION = 14


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
        silent = self._chance.fraction() < jobs.SILENT_FATAL_SHARE
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


@dataclass(frozen=True, slots=True)
class Cut:
    """The partition: number of the domain, seconds."""

    domain: int
    since: int
    until: int


def cut(scale: Scale, seed: str) -> Cut:
    """Which domain is partitioned, and when: soon after the warm-up, so that its return is seen too."""
    since = scale.warm_up + _BEFORE_PARTITION
    return Cut(Chance(seed, "partition").below(scale.domains), since, since + _PARTITION)


class Planner:
    """Makes changes second by second, until every node could still be judged after the last of them."""

    def __init__(self, scale: Scale, seed: str, population: Population) -> None:
        self.cut = cut(scale, seed)
        self._scale = scale
        self._chance = Chance(seed, "plan")
        self._last = (scale.total - DWELL) * TICKS
        self.ledger = Ledger(population, self._chance)
        self.runs = Runs(stream(seed, "runs"))
        self._work = Work(self.ledger, self.runs, self._chance, self._open)
        self._actions = self._weights()

    def plan(self) -> Ledger:
        """The whole plan."""
        self._work.begin()
        owed = 0.0
        for second in range(DWELL, self._scale.total):
            owed += self._scale.churn * self.ledger.population.nodes
            for tick in self._instants(second, owed):
                done = len(self.ledger.changes)
                self._work.give_up(tick)
                if tick < self._last and owed > 0:
                    self._one(tick)
                owed -= len(self.ledger.changes) - done
        return self.ledger

    def _instants(self, second: int, owed: float) -> list[int]:
        """Ticks at which something may change, one for each change owed and one at the end of the second."""
        drawn = [second * TICKS + self._chance.below(TICKS) for _ in range(max(0, round(owed)))]
        return [*sorted(drawn), second * TICKS + TICKS - 1]

    def _one(self, tick: int) -> None:
        """Bring about a change into the state that is shortest, or into the next where there is no way."""
        counts = self.ledger.counts
        short = sorted(range(len(STATES)), key=lambda state: counts[state] + self._chance.fraction())
        for state in short:
            for action in self._chance.order(self._actions[state]):
                if action(tick):
                    return

    def _open(self, domain: int, tick: int) -> bool:
        near = self.cut.since - MARGIN <= tick / TICKS <= self.cut.until + MARGIN
        return tick < self._last and not (near and domain == self.cut.domain)

    def _weights(self) -> dict[int, tuple[tuple[Action, float], ...]]:
        """Ways into each state, with the share of the changes that is tried by each first."""
        work, open_ = self._work, self._open
        troubles = Troubles(self.ledger, work, self._chance, open_)
        mending = Mending(self.ledger, work, self._chance, open_)
        return {
            IDLE: ((mending.to_idle, 6.0), (work.stop_alone, 2.0), (work.stop_family, 0.7)),
            BUSY: ((mending.to_busy, 6.0), (work.start_family, 1.2), (work.start_alone, 1.0)),
            DEGRADED: (
                (troubles.slow_alone, 3.0),
                (troubles.faults_at_work, 2.0),
                (troubles.faults_at_rest, 1.0),
                (troubles.lose_at_work, 2.0),
                (troubles.lose_at_rest, 1.5),
            ),
            STRAGGLING: ((troubles.straggle, 1.0),),
            FAULTY: ((troubles.fail_at_work, 3.0), (troubles.fail_worse, 2.5)),
            OFFLINE: (
                (troubles.vanish_at_rest, 2.0),
                (troubles.vanish_at_work, 2.5),
                (troubles.vanish_worse, 2.5),
            ),
        }
