"""The plan of a world: which node changes its state when, by what, and what jobs do meanwhile.

It was fixed by design before any recogniser was run.

1. **Books.** States, activities and what follows from them are entered here. Times are ticks.
2. **Work.** Jobs begin, end, wait for the dead and go on without them: changes between idle and busy.
3. **Into trouble.** Nodes get into trouble, and into worse trouble; each method does it to some node, and says whether
   there was one.
4. **Out of it.** Nodes get well again: repaired, restarted, back.
5. **Balance.** Changes into each of the six states are kept as equal in number as can be: the next one leads into the
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

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import NamedTuple

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.telemetry.population import (
    BUSY,
    DEGRADED,
    DWELL,
    FAMILY,
    FAULTY,
    IDLE,
    OFFLINE,
    SERVING,
    SILENT_FATAL_SHARE,
    SOLO,
    STATES,
    STRAGGLING,
    TICKS,
    Group,
    Population,
    Runs,
    Scale,
)

FOREVER = 1 << 40
Open = Callable[[int, int], bool]
"""Whether the truth may change in a domain at a tick."""
_TRIES = 40
_AT_WORK = 0.72
"""Share of the groups that work in the beginning. Acme and Philly: 66–69 % of samples show some utilisation."""
_TRIES_TO_BEGIN = 30
_MOST_WAITED = 28.0  # seconds after which those who wait for the dead give up
_ELASTIC = 0.65  # share of stalled families that go on without the one that they wait for
_BEFORE = -60 * TICKS  # when what runs in the beginning was started

SLOWEST, LEAST_SLOW = 0.4, 0.8
"""Speeds of slow nodes, as requirement MET-006 states them."""
MARGIN = 12
"""Seconds around a partition in which nothing changes in its domain."""
Action = Callable[[int], bool]
_KINDS = ((FAMILY, 0.25), (SOLO, 0.4), (SERVING, 0.35))
"""Where the other troubles of busy nodes happen: less in families, where they stop the work of all."""
_OUT_OF_SIGHT = 0.4  # share of lost nodes whose work goes on
_STUCK = 0.4  # share of fatal faults, where it can be told apart, in which a kernel never ends
_TROUBLED = ((STRAGGLING, 2.0), (DEGRADED, 1.0), (FAULTY, 1.0), (OFFLINE, 1.5))
_PARTITION = 27
_BEFORE_PARTITION = 14


class InjectedFault(IntEnum):
    """What may be the matter with a node."""

    CLOCK = 0
    HOST = auto()
    NETWORK = auto()
    MEMORY = auto()
    FAULTS = auto()
    FATAL = auto()
    LOST = auto()
    HUNG = auto()
    STUCK = auto()
    SILENT = auto()


SLOW = (InjectedFault.CLOCK, InjectedFault.HOST, InjectedFault.NETWORK, InjectedFault.MEMORY)
CAUSES = {
    InjectedFault.CLOCK: "clock throttled",
    InjectedFault.HOST: "slow host",
    InjectedFault.NETWORK: "degraded network card",
    InjectedFault.MEMORY: "memory errors",
    InjectedFault.FAULTS: "recurring mended faults",
    InjectedFault.LOST: "device lost",
}
_FAMILY_CAUSES = (
    (InjectedFault.CLOCK, 0.35),
    (InjectedFault.HOST, 0.3),
    (InjectedFault.MEMORY, 0.15),
    (InjectedFault.NETWORK, 0.2),
)
_SINGLE_CAUSES = ((InjectedFault.CLOCK, 0.45), (InjectedFault.HOST, 0.3), (InjectedFault.MEMORY, 0.25))


@dataclass(slots=True)
class Affliction:
    """A fault of a row, from one tick to another; ``strength`` is a speed, or how many devices are lost."""

    fault: InjectedFault
    row: int
    since: int
    until: int
    strength: float = 0.0


@dataclass(slots=True)
class Tenure:
    """A run holds the memory of a row, from one tick to another."""

    row: int
    run: int
    since: int
    until: int


class Order(NamedTuple):
    """What the simulation of steps is told; ``rows`` take part, ``figure`` is a run or a speed."""

    tick: int
    name: str
    group: int
    rows: tuple[int, ...] = ()
    figure: float = 0.0


class Change(NamedTuple):
    """A change of truth of a row."""

    row: int
    tick: int
    before: int
    after: int
    cause: str


@dataclass(slots=True)
class Activity:
    """What a group does.

    Attributes:
        run: Number of its run, -1 without one.
        active: Rows that take part in it, dead and hung ones included until the others go on without them.
        quiet: Tick since which nothing has happened to it.
        troubled: Row that something is the matter with, -1 where there is none.
        stalled: Whether the others wait for a row that will not come.
    """

    run: int
    active: set[int]
    quiet: int
    troubled: int
    stalled: bool


class Ledger:
    """States, activities and what follows from them.

    Attributes:
        state: State of each row.
        since: Tick of its last change.
        away: Rows that are only out of sight, their work going on.
    """

    def __init__(self, population: Population, chance: Chance) -> None:
        self.population = population
        self.state = [IDLE] * population.nodes
        self.since: list[int] = [join * TICKS for join in population.joins.tolist()]
        self.activity = [Activity(-1, set(), 0, -1, stalled=False) for _ in population.groups]
        self.away: set[int] = set()
        self.changes: list[Change] = []
        self.orders: list[Order] = []
        self.afflictions: list[Affliction] = []
        self.tenures: list[Tenure] = []
        self.counts = [0] * len(STATES)
        self._chance = chance
        self._faults: dict[int, dict[InjectedFault, Affliction]] = {}
        self._tenure: dict[int, Tenure] = {}
        self._pools: list[list[int]] = [list(range(population.nodes)), *([] for _ in STATES[1:])]
        self._place = list(range(population.nodes))

    def group(self, row: int) -> Group:
        """The group of a row."""
        return self.population.groups[int(self.population.group[row])]

    def doing(self, row: int) -> Activity:
        """What the group of a row does."""
        return self.activity[int(self.population.group[row])]

    def in_family(self, row: int) -> bool:
        """Whether a row belongs to a family."""
        return self.group(row).kind == FAMILY

    def settled(self, row: int, tick: int) -> bool:
        """Whether a row has kept its state long enough to change it."""
        return tick - self.since[row] >= DWELL * TICKS

    def calm(self, activity: Activity, tick: int) -> bool:
        """Whether a group works undisturbed, and has for long enough."""
        running = activity.run >= 0 and activity.troubled < 0 and not activity.stalled
        return running and tick - activity.quiet >= DWELL * TICKS

    def pick(self, state: int, tick: int, fits: Callable[[int], bool]) -> int | None:
        """A row of a state that has been in it for long enough and fits; None where some tries found none."""
        pool = self._pools[state]
        for _ in range(_TRIES if pool else 0):
            row = self._chance.pick(pool)
            if self.settled(row, tick) and fits(row):
                return row
        return None

    def assume(self, row: int, state: int) -> None:
        """Begin in another state than idle."""
        self._move(row, state)

    def change(self, row: int, tick: int, state: int, cause: str) -> None:
        """The truth about a row changes."""
        self.changes.append(Change(row, tick, self.state[row], state, cause))
        self.counts[state] += 1
        self.since[row] = tick
        self._move(row, state)

    def tell(self, tick: int, name: str, group: int, rows: tuple[int, ...] = (), figure: float = 0.0) -> None:
        """Give an order to the simulation of steps."""
        self.orders.append(Order(tick, name, group, rows, figure))

    def afflict(self, row: int, tick: int, fault: InjectedFault, strength: float = 0.0) -> None:
        """Something begins to be the matter with a row."""
        affliction = Affliction(fault, row, tick, FOREVER, strength)
        self._faults.setdefault(row, {})[fault] = affliction
        self.afflictions.append(affliction)

    def afflicted(self, row: int, *faults: InjectedFault) -> bool:
        """Whether one of these is the matter with a row."""
        return any(fault in self._faults.get(row, ()) for fault in faults)

    def relieve(self, row: int, tick: int, but: InjectedFault | None = None) -> None:
        """All is well again with a row, but for what stays."""
        faults = self._faults.get(row, {})
        for fault in [fault for fault in faults if fault is not but]:
            faults.pop(fault).until = tick

    def occupy(self, row: int, tick: int, run: int) -> None:
        """A run takes a row."""
        self._tenure[row] = Tenure(row, run, tick, FOREVER)
        self.tenures.append(self._tenure[row])

    def vacate(self, row: int, tick: int) -> None:
        """Whatever runs on a row ends."""
        tenure = self._tenure.pop(row, None)
        if tenure:
            tenure.until = tick

    def occupied(self, row: int) -> bool:
        """Whether a run holds a row."""
        return row in self._tenure

    def _move(self, row: int, state: int) -> None:
        pool, place = self._pools[self.state[row]], self._place[row]
        pool[place] = pool[-1]
        self._place[pool[place]] = place
        pool.pop()
        self.state[row] = state
        self._place[row] = len(self._pools[state])
        self._pools[state].append(row)


class Work:
    """What is done with groups that are well."""

    def __init__(self, ledger: Ledger, runs: Runs, chance: Chance, may_change: Open) -> None:
        self._ledger = ledger
        self._runs = runs
        self._chance = chance
        self._open = may_change
        self._stalls: list[tuple[int, int]] = []
        groups = ledger.population.groups
        self._families = [group for group in groups if group.kind == FAMILY]

    def begin(self) -> None:
        """Most groups already work when the world begins."""
        joins = self._ledger.population.joins
        for group in self._ledger.population.groups:
            if joins[group.first] or self._chance.fraction() >= _AT_WORK:
                continue
            rows = tuple(range(group.first, group.last))
            self._launch(group, rows, _BEFORE, "running")
            for row in rows:
                self._ledger.assume(row, BUSY)
            self._ledger.activity[group.number].quiet = 0

    def start_family(self, tick: int) -> bool:
        """The idle nodes of a family get a job."""
        for _ in range(_TRIES_TO_BEGIN if self._families else 0):
            group = self._chance.pick(self._families)
            rows = [row for row in range(group.first, group.last) if self._ledger.state[row] == IDLE]
            enough = len(rows) >= max(2, (group.last - group.first + 1) // 2)
            if not enough or self._ledger.activity[group.number].run >= 0 or not self._open(group.domain, tick):
                continue
            if all(self._ledger.settled(row, tick) for row in rows):
                self._launch(group, tuple(rows), tick, "start")
                self._all(rows, tick, BUSY, "job started")
                return True
        return False

    def stop_family(self, tick: int) -> bool:
        """The job of a family ends."""
        for _ in range(_TRIES_TO_BEGIN if self._families else 0):
            group = self._chance.pick(self._families)
            activity = self._ledger.activity[group.number]
            rows = sorted(activity.active)
            ready = self._ledger.calm(activity, tick) and self._open(group.domain, tick)
            if ready and all(self._ledger.settled(row, tick) for row in rows):
                self._end(group, rows, tick, "job ended")
                return True
        return False

    def start_alone(self, tick: int) -> bool:
        """A single node gets a job, or begins to serve."""
        row = self._ledger.pick(IDLE, tick, lambda row: self._alone(row, tick) and self._ledger.doing(row).run < 0)
        if row is None:
            return False
        self.launch_alone(row, tick)
        self._ledger.change(row, tick, BUSY, "job started")
        return True

    def stop_alone(self, tick: int) -> bool:
        """The job of a single node ends."""
        ledger = self._ledger
        row = ledger.pick(BUSY, tick, lambda row: self._alone(row, tick) and ledger.calm(ledger.doing(row), tick))
        if row is None:
            return False
        self._end(ledger.group(row), [row], tick, "job ended")
        return True

    def launch_alone(self, row: int, tick: int) -> None:
        """A job of one node starts."""
        self._launch(self._ledger.group(row), (row,), tick, "start")

    def drop(self, row: int, tick: int) -> None:
        """What ran on a single node is over."""
        activity = self._ledger.doing(row)
        self._ledger.vacate(row, tick)
        self._ledger.tell(tick, "stop", self._ledger.group(row).number)
        activity.run, activity.active, activity.troubled, activity.quiet = -1, set(), -1, tick

    def stall(self, row: int, tick: int) -> None:
        """A row of a family will not come any more; the others wait for a while."""
        activity = self._ledger.doing(row)
        activity.stalled, activity.troubled = True, row
        wait = self._chance.between(DWELL + 1, _MOST_WAITED)
        heapq.heappush(self._stalls, (tick + round(wait * TICKS), self._ledger.group(row).number))

    def give_up(self, tick: int) -> None:
        """Those whose patience is at an end go on without the one that they wait for, or end their job."""
        while self._stalls and self._stalls[0][0] <= tick:
            due, number = heapq.heappop(self._stalls)
            group, activity = self._ledger.population.groups[number], self._ledger.activity[number]
            left = sorted(activity.active - {activity.troubled})
            if len(left) > 1 and (self._chance.fraction() < _ELASTIC or not self._open(group.domain, due)):
                self._ledger.tell(due, "resume", number, tuple(left))
                activity.active, activity.troubled, activity.stalled, activity.quiet = set(left), -1, False, due
            elif self._open(group.domain, due):
                self._end(group, left, due, "peer failed")
            else:
                heapq.heappush(self._stalls, (due + 5 * TICKS, number))

    def _alone(self, row: int, tick: int) -> bool:
        group = self._ledger.group(row)
        return group.kind != FAMILY and self._open(group.domain, tick)

    def _launch(self, group: Group, rows: tuple[int, ...], tick: int, name: str) -> None:
        run = self._runs.new(alone=group.kind != FAMILY)
        activity = self._ledger.activity[group.number]
        activity.run, activity.active, activity.quiet = run, set(rows), tick
        activity.troubled, activity.stalled = -1, False
        if group.kind != SERVING:
            self._ledger.tell(tick, name, group.number, rows, run)
        for row in rows:
            self._ledger.occupy(row, tick, run)

    def _end(self, group: Group, rows: Sequence[int], tick: int, cause: str) -> None:
        activity: Activity = self._ledger.activity[group.number]
        for row in rows:
            self._ledger.vacate(row, tick)
        self._all(rows, tick, IDLE, cause)
        self._ledger.tell(tick, "stop", group.number)
        activity.run, activity.active, activity.quiet = -1, set(), tick
        activity.troubled, activity.stalled = -1, False

    def _all(self, rows: Sequence[int], tick: int, state: int, cause: str) -> None:
        for row in rows:
            self._ledger.change(row, tick, state, cause)


class FaultInjector:
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
        return self._degrade(self._busy(tick, self._chance.weighted(_KINDS)), tick, InjectedFault.FAULTS)

    def faults_at_rest(self, tick: int) -> bool:
        """The same on a node that is idle."""
        return self._degrade(self._idle(tick), tick, InjectedFault.FAULTS)

    def lose_at_work(self, tick: int) -> bool:
        """A device of a node is lost, and the rest goes on; in a family the job could not."""
        return self._degrade(self._busy(tick, self._chance.pick((SOLO, SERVING))), tick, InjectedFault.LOST)

    def lose_at_rest(self, tick: int) -> bool:
        """A device of an idle node is lost."""
        return self._degrade(self._idle(tick), tick, InjectedFault.LOST)

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
            self._ledger.afflict(row, tick, InjectedFault.SILENT)
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

    def _slow(self, row: int, tick: int, cause: InjectedFault, state: int) -> None:
        speed = round(self._chance.between(SLOWEST, LEAST_SLOW), 3)
        self._ledger.doing(row).troubled = row
        self._ledger.afflict(row, tick, cause, speed)
        self._ledger.tell(tick, f"slow {cause.name}", self._ledger.group(row).number, (row,), speed)
        self._ledger.change(row, tick, state, CAUSES[cause])

    def _degrade(self, row: int | None, tick: int, cause: InjectedFault) -> bool:
        if row is None:
            return False
        if self._ledger.state[row] == BUSY:
            self._ledger.doing(row).troubled = row
        devices = self._ledger.population.kind(row).devices
        lost = 1 + self._chance.below(max(1, devices // 4)) if cause is InjectedFault.LOST else 0
        self._ledger.afflict(row, tick, cause, lost)
        self._ledger.change(row, tick, DEGRADED, CAUSES[cause])
        return True

    def _fail(self, row: int | None, tick: int) -> bool:
        """Nothing goes on, and it shows: in a family a stuck kernel looks like a wait, alone a hang like a rest."""
        if row is None:
            return False
        ledger, kind = self._ledger, self._ledger.group(row).kind
        silent = self._chance.fraction() < SILENT_FATAL_SHARE
        stuck = self._chance.fraction() < _STUCK and not (silent and kind == FAMILY)
        silent = silent and (stuck or kind == FAMILY)
        self._relieve(row, tick, but=InjectedFault.LOST)
        ledger.afflict(row, tick, InjectedFault.STUCK if stuck else InjectedFault.HUNG)
        if not silent:
            ledger.afflict(row, tick, InjectedFault.FATAL)
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
        ledger.afflict(row, tick, InjectedFault.SILENT)
        ledger.change(row, tick, OFFLINE, "node died")
        return True

    def _relieve(self, row: int, tick: int, but: InjectedFault | None = None) -> None:
        if self._ledger.afflicted(row, *SLOW):
            self._ledger.tell(tick, "mend", self._ledger.group(row).number, (row,))
        self._ledger.relieve(row, tick, but)


class Repairs:
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

    def _mend(self, tick: int, mend: Callable[[int, int], str | None]) -> bool:
        state_after = IDLE if mend == self._idle_again else BUSY
        for state in self._chance.order(_TROUBLED):
            row = self._ledger.pick(state, tick, lambda row: self._free(row, tick) and mend(row, -1) is not None)
            if row is None:
                continue
            cause = mend(row, tick)
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
        injector = FaultInjector(self.ledger, work, self._chance, open_)
        repairs = Repairs(self.ledger, work, self._chance, open_)
        return {
            IDLE: ((repairs.to_idle, 6.0), (work.stop_alone, 2.0), (work.stop_family, 0.7)),
            BUSY: ((repairs.to_busy, 6.0), (work.start_family, 1.2), (work.start_alone, 1.0)),
            DEGRADED: (
                (injector.slow_alone, 3.0),
                (injector.faults_at_work, 2.0),
                (injector.faults_at_rest, 1.0),
                (injector.lose_at_work, 2.0),
                (injector.lose_at_rest, 1.5),
            ),
            STRAGGLING: ((injector.straggle, 1.0),),
            FAULTY: ((injector.fail_at_work, 3.0), (injector.fail_worse, 2.5)),
            OFFLINE: (
                (injector.vanish_at_rest, 2.0),
                (injector.vanish_at_work, 2.5),
                (injector.vanish_worse, 2.5),
            ),
        }
