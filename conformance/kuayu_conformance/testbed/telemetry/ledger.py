"""The books of a plan: who is in which state since when, and what is brought about to make it so. Times are ticks."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import NamedTuple

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.telemetry.population import FAMILY, Group, Population
from kuayu_conformance.testbed.telemetry.values import DWELL, IDLE, STATES, TICKS

_TRIES = 40
FOREVER = 1 << 40


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
