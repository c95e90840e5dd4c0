"""Schedules that no other beats in time and money, looked for from many sides.

A schedule is told by the way of each job and by an order: in this order each job starts at the first slot from which on
its devices are free as long as it holds them. Some order leads to a best schedule (active schedules: A. Sprecher,
R. Kolisch, A. Drexl, "Semi-active, active, and non-delay schedules for the resource-constrained project scheduling
problem", European Journal of Operational Research 80, 1995).

The search begins with what would be best if devices were free but had a price. Then it tries neighbours of the
schedules that it has kept, as long as there are new ones (Pareto local search: L. Paquete, M. Chiarandini, T. Stützle,
in "Metaheuristics for Multiobjective Optimisation", 2004): another way for a job, another place in the order. When
there are none, it crosses schedules that lie near to each other. It ends when that leads nowhere, or after so many
schedules, not after so much time, so that the answer is always the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from kuayu.scheduling.front_trial import FEW, Batch, Trial
from kuayu.scheduling.front_ways import Way
from kuayu.scheduling.scene import Counts, Flags, Floats, Numbers

MOST = 30_000
"""Schedules that are tried."""
EFFORT = 3e8, 3e4
"""The same times the cube of the number of jobs, up to ``FEW`` of them, and times their number beyond."""
NEAR = 24
"""Jobs up to which all neighbours are tried."""
PRICES = (0.0, 0.1, 0.3, 1.0, 3.0)
"""Prices of devices at which the search begins: by how much others are thought to wait for those that are held."""
AT_ONCE = 2000
"""Schedules that are tried at a time."""
IDLE = 3
"""Times that crosses may find nothing new before the search ends."""
FRESH = 6
"""Schedules whose neighbours are tried at a time."""
SUMS = 150
"""Sums that are kept while jobs are added."""
_ENDS = (0, -1)
"""Rows that are always kept where more than as many are."""
_SAME = 1e-9
"""Share by which figures may differ and be the same."""
_SEED = 20_261_121
"""Of the crosses."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule.

    Attributes:
        ways: Number of the way, by job.
        starts: Slot in which it starts, by job; one is the first.
        ends: Slot in which it holds its devices no more, by job.
        period: Mean seconds to the end.
        money: Of all jobs.
    """

    ways: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    period: float
    money: float


def search(options: Sequence[Sequence[Way]], room: Counts, slot: float, keep: int) -> tuple[Schedule, ...]:
    """Schedules from the quickest to the cheapest, none of which beats another.

    Args:
        options: Ways of each job, at least one of each.
        room: Devices, by pool; each way fits in.
        slot: Seconds.
        keep: How many schedules at most.
    """
    trial = Trial(options, room, slot)
    chance = np.random.default_rng(_SEED)
    few = trial.jobs <= NEAR
    left = min(MOST, int(EFFORT[0] / trial.jobs**3 if trial.jobs <= FEW else EFFORT[1] / trial.jobs) + 1)
    at_once = min(AT_ONCE, AT_ONCE * NEAR**2 // trial.jobs**2 + 1)
    kept = _Kept(2 * max(keep, 50))

    def tried(ways: Numbers, orders: Numbers) -> int:
        ways, orders = ways[:left], orders[:left]
        for begin in range(0, len(ways), at_once):
            kept.add(trial.run(ways[begin : begin + at_once], orders[begin : begin + at_once]))
        return len(ways)

    for ways, orders in _beginnings(trial, SUMS if few else max(left // 40, 2)):
        left -= tried(ways, orders)
    idle = 0
    while left > 0 and idle < IDLE:
        fresh = kept.fresh(FRESH)
        if few and len(fresh.ways):
            left -= tried(*_neighbours(trial, fresh))
        else:
            left -= tried(*_crosses(trial, kept.batch, chance, min(AT_ONCE, left)))
            idle = 0 if kept.news else idle + 1
    found = kept.best(keep)
    ends = found.starts + trial.lasting[np.arange(trial.jobs), found.ways]
    return tuple(
        Schedule(
            tuple(found.ways[row].tolist()),
            tuple(found.starts[row].tolist()),
            tuple(ends[row].tolist()),
            float(found.period[row]),
            float(found.money[row]),
        )
        for row in range(len(ends))
    )


class _Kept:
    """Schedules that no other beats, from the quickest to the cheapest.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.batch: Batch | None = None
        self._explored: Flags = np.zeros(0, dtype=np.bool_)

    def add(self, more: Batch) -> None:
        """Keep those of more that are not beaten."""
        together = more if self.batch is None else self.batch.and_also(more)
        explored = np.append(self._explored, np.zeros(len(more.ways), dtype=np.bool_))
        rows = _unbeaten(together.period, together.money)
        if len(rows) > self._most:
            rows = rows[_spaced(together.period[rows], together.money[rows], self._most)]
        self.batch, self._explored = together.of(rows), explored[rows]

    @property
    def news(self) -> bool:
        """Whether there are schedules whose neighbours have not been tried."""
        return not self._explored.all()

    def fresh(self, most: int) -> Batch:
        """Some whose neighbours have not been tried; they count as tried from now on."""
        assert self.batch is not None
        rows = np.flatnonzero(~self._explored)
        if len(rows) > most:
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
        self._explored[rows] = True
        return self.batch.of(rows)

    def best(self, most: int) -> Batch:
        """So many of them at most, those that say most about where the others lie."""
        assert self.batch is not None
        return self.batch.of(_spaced(self.batch.period, self.batch.money, most))


def _unbeaten(period: Floats, money: Floats) -> Numbers:
    """Rows that no other beats, by period; of equal ones the first."""
    order = np.lexsort((np.arange(len(period)), money, period))
    least = np.minimum.accumulate(money[order])
    better = np.ones(len(order), dtype=np.bool_)
    better[1:] = least[1:] < least[:-1] * (1.0 - _SAME)
    rows: Numbers = order[better]
    # one that is a little dearer and no slower than one a hair quicker stays; one as quick as its follower goes
    same = np.append(period[rows][1:] <= period[rows][:-1] * (1.0 + _SAME), False)
    kept: Numbers = rows[~same]
    return kept


def _spaced(period: Floats, money: Floats, most: int) -> Numbers:
    """Rows, in their order, without those whose absence is least felt: by the area that they alone cover."""
    rows = list(range(len(period)))
    if most <= len(_ENDS):
        return np.array(rows[:most], dtype=np.intp)
    if len(rows) > 3 * most:  # too many to look at one by one: as many as that, evenly along the front
        extent = np.abs(np.diff(period)) / np.ptp(period) + np.abs(np.diff(money)) / np.ptp(money)
        along = np.append(0.0, np.cumsum(extent))
        rows = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], 3 * most))).clip(max=len(rows) - 1).tolist()
    while len(rows) > most:
        p, m = period[rows], money[rows]
        lost = (p[2:] - p[1:-1]) * (m[:-2] - m[1:-1])
        del rows[int(np.argmin(lost)) + 1]
    return np.array(rows, dtype=np.intp)


def _beginnings(trial: Trial, most: int) -> list[tuple[Numbers, Numbers]]:
    """Best sums of ways at several prices of devices, each in several orders."""
    found: list[tuple[Numbers, Numbers]] = []
    for price in PRICES:
        held = trial.part * trial.lasting * trial.slot
        ways = _sums(trial, trial.seconds + price * trial.jobs / 2.0 * held, most)
        every = np.arange(trial.jobs)
        lasting, part = trial.lasting[every, ways], trial.part[every, ways]
        by = (lasting, lasting * part, -part, lasting / part)
        found.extend((ways, np.argsort(each, axis=1, kind="stable")) for each in by)
    return found


def _sums(trial: Trial, cost: Floats, most: int) -> Numbers:
    """Ways of all jobs whose sums of cost and money no others beat, or some of them; (rows, jobs)."""
    ways = np.zeros((1, 0), dtype=np.intp)
    costs, money = np.zeros(1), np.zeros(1)
    for job in range(trial.jobs):
        count = int(trial.counts[job])
        more_costs = (costs[:, None] + cost[job, None, :count]).ravel()
        more_money = (money[:, None] + trial.money[job, None, :count]).ravel()
        rows = _unbeaten(more_costs, more_money)
        if len(rows) > most:
            rows = rows[_spaced(more_costs[rows], more_money[rows], most)]
        ways = np.column_stack([ways[rows // count], rows % count])
        costs, money = more_costs[rows], more_money[rows]
    return ways


def _neighbours(trial: Trial, batch: Batch) -> tuple[Numbers, Numbers]:
    """Every other way of every job, where it is in the order and first of all; and every other place in the order."""
    ways: list[Numbers] = []
    orders: list[Numbers] = []
    jobs = np.repeat(np.arange(trial.jobs), trial.counts)
    numbers = np.concatenate([np.arange(count) for count in trial.counts])
    first, second = np.triu_indices(trial.jobs, 1)
    for own, order, starts in zip(batch.ways, batch.orders, batch.starts, strict=True):
        other = numbers != own[jobs]
        changed = np.tile(own, (int(other.sum()), 1))
        changed[np.arange(len(changed)), jobs[other]] = numbers[other]
        same = np.tile(order, (len(changed), 1))
        ways.append(changed)
        orders.append(same)
        crowded = starts.max() > 1
        if not crowded:
            continue
        ways.append(changed)
        orders.append(_moved_first(same, jobs[other]))
        swapped = np.tile(order, (len(first), 1))
        rows = np.arange(len(first))
        swapped[rows, first], swapped[rows, second] = order[second], order[first]
        moved = [
            np.insert(np.delete(order, one), other, order[one])
            for one, other in permutations(range(trial.jobs), 2)
            if abs(one - other) > 1
        ]
        together = np.concatenate([swapped, np.array(moved, dtype=np.intp).reshape(-1, trial.jobs)])
        ways.append(np.tile(own, (len(together), 1)))
        orders.append(together)
    return np.concatenate(ways), np.concatenate(orders)


def _moved_first(orders: Numbers, jobs: Numbers) -> Numbers:
    """Orders in which one job has come to the front."""
    rest = orders[orders != jobs[:, None]].reshape(len(orders), orders.shape[1] - 1)
    return np.column_stack([jobs, rest])


def _crosses(trial: Trial, batch: Batch | None, chance: np.random.Generator, many: int) -> tuple[Numbers, Numbers]:
    """Children of schedules near to each other, some jobs of which are placed anew."""
    assert batch is not None
    one = chance.integers(len(batch.ways), size=many)
    other = np.clip(one + chance.integers(-5, 6, size=many), 0, len(batch.ways) - 1)
    take = chance.integers(2, size=(many, trial.jobs)) > 0
    ways = np.where(take, batch.ways[one], batch.ways[other])
    anew = chance.random((many, trial.jobs)) < chance.integers(0, 4, size=many)[:, None] / trial.jobs
    ways = np.where(anew, (chance.random((many, trial.jobs)) * trial.counts).astype(np.intp), ways)
    ranks = np.argsort(batch.orders[one], axis=1) + chance.normal(0.0, 2.0, (many, trial.jobs)) * chance.integers(
        2, size=(many, 1)
    )
    return ways, np.argsort(ranks, axis=1, kind="stable")
