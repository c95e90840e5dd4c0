"""The books of a plan: who is in which state since when, what makes it so, and jobs that come and go.

1. **Books.** States, activities and what follows from them are entered here. Times are ticks.
2. **Work.** Jobs begin, end, wait for the dead and go on without them: changes between idle and busy.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import NamedTuple

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.telemetry.jobs import Runs
from kuayu_conformance.testbed.telemetry.population import FAMILY, SERVING, Group, Population
from kuayu_conformance.testbed.telemetry.values import BUSY, DWELL, IDLE, STATES, TICKS

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


class Trouble(IntEnum):
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


SLOW = (Trouble.CLOCK, Trouble.HOST, Trouble.NETWORK, Trouble.MEMORY)


@dataclass(slots=True)
class Affliction:
    """A trouble of a row, from one tick to another; ``strength`` is a speed, or how many devices are lost."""

    trouble: Trouble
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
        self._troubles: dict[int, dict[Trouble, Affliction]] = {}
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

    def afflict(self, row: int, tick: int, trouble: Trouble, strength: float = 0.0) -> None:
        """Something begins to be the matter with a row."""
        affliction = Affliction(trouble, row, tick, FOREVER, strength)
        self._troubles.setdefault(row, {})[trouble] = affliction
        self.afflictions.append(affliction)

    def afflicted(self, row: int, *troubles: Trouble) -> bool:
        """Whether one of these is the matter with a row."""
        return any(trouble in self._troubles.get(row, ()) for trouble in troubles)

    def relieve(self, row: int, tick: int, but: Trouble | None = None) -> None:
        """All is well again with a row, but for what stays."""
        troubles = self._troubles.get(row, {})
        for trouble in [trouble for trouble in troubles if trouble is not but]:
            troubles.pop(trouble).until = tick

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
