"""Jobs begin, end, wait for the dead and go on without them: changes between idle and busy."""

import heapq
from collections.abc import Callable, Sequence

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.telemetry.jobs import Runs
from kuayu_conformance.testbed.telemetry.ledger import Activity, Ledger
from kuayu_conformance.testbed.telemetry.population import FAMILY, SERVING, Group
from kuayu_conformance.testbed.telemetry.values import BUSY, DWELL, IDLE, TICKS

_AT_WORK = 0.72
"""Share of the groups that work in the beginning. Acme and Philly: 66–69 % of samples show some utilisation."""
_TRIES = 30
_MOST_WAITED = 28.0  # seconds after which those who wait for the dead give up
_ELASTIC = 0.65  # share of stalled families that go on without the one that they wait for
_BEFORE = -60 * TICKS  # when what runs in the beginning was started

Open = Callable[[int, int], bool]
"""Whether the truth may change in a domain at a tick."""


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
        for _ in range(_TRIES if self._families else 0):
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
        for _ in range(_TRIES if self._families else 0):
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
