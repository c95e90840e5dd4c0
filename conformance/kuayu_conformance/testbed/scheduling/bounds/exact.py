"""The best of all placements and orders of few jobs, by an integer programme."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from kuayu_conformance.testbed.scheduling.bounds.instances import Instance, Option
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers

_TOLERANCE = 1e-6
"""Share of a figure by which the solver may be off."""


_APART = 1e-4
"""Share of the money of the quickest schedule by which two points of a front differ; well above that tolerance."""
_INFEASIBLE, _OTHER = 2, 4
"""Status of the solver: there is no solution; it has failed."""


class NotSolved(Exception):
    """The solver has not found the optimum in the time that it was given; the instance is too large for it."""


class _Infeasible(Exception):
    """There is no such schedule."""


@dataclass(frozen=True, slots=True)
class Point:
    """A schedule.

    Attributes:
        period: Mean seconds from submission to end, weighted.
        money: For bandwidth.
        makespan: When the last job ends.
        starts: When each task is given its devices, in the order of the instance.
        options: How.
    """

    period: float
    money: float
    makespan: float
    starts: tuple[float, ...]
    options: tuple[Option, ...]


def quickest(instance: Instance, seconds: float = 60.0) -> Point:
    """The schedule of the least mean period, and of these the cheapest.

    No job is preempted. Time is cut into slots, at the beginnings of which jobs start; that is exact for whoever
    decides at epochs as long as a slot. The formulation is that of J. P. Sousa, L. A. Wolsey, "A time indexed
    formulation of non-preemptive single machine scheduling problems", Mathematical Programming 54 (1992), with a choice
    of places.

    Args:
        instance: A dozen jobs or so.
        seconds: For which the solver may try, for each of its programmes.

    Raises:
        NotSolved: That was not enough.
    """
    return _Programme(instance, seconds).least_period(inf)


def cheapest(instance: Instance, seconds: float = 60.0) -> Point:
    """The schedule of the least money, and of these the quickest; arguments and errors as for ``quickest``."""
    return _Programme(instance, seconds).least_money()


def soonest(instance: Instance, seconds: float = 60.0) -> Point:
    """A schedule of the least makespan; arguments and errors as for ``quickest``."""
    return _Programme(instance, seconds).least_makespan()


def front(instance: Instance, seconds: float = 60.0) -> tuple[Point, ...]:
    """All schedules that none beats in period and money both, from the quickest to the cheapest.

    By ε-constraint: the quickest, then the quickest of those that are cheaper, and so on (Y. Haimes et al., IEEE
    Transactions on Systems, Man and Cybernetics 1, 1971; of those of one period the cheapest is taken, so that none is
    weakly dominated: G. Mavrotas, "Effective implementation of the ε-constraint method", Applied Mathematics and
    Computation 213, 2009). Points whose money differs by less than a ten-thousandth of the quickest one's
    count as one. Arguments and errors as for ``quickest``.
    """
    programme = _Programme(instance, seconds)
    least = programme.least_money().money
    points = [programme.least_period(inf)]
    step = _APART * max(points[0].money, 1e-300)
    budget = points[0].money - step
    while budget > least:
        found = programme.least_period(budget)
        if found.money < points[-1].money - step / 2.0:
            points.append(found)
        budget = min(found.money, budget) - step
    return tuple(points) if points[-1].money <= least + step else (*points, programme.least_money())


class _Programme:
    """A binary variable for each task, way and slot."""

    def __init__(self, instance: Instance, seconds: float) -> None:
        self._instance, self._seconds = instance, seconds
        tasks, slot = instance.tasks, instance.slot
        first = [max(1, ceil(task.submitted / slot)) for task in tasks]
        lasting = [[max(1, ceil(option.seconds / slot - _TOLERANCE)) for option in task.options] for task in tasks]
        # in the best schedules each job starts when it may or when another ends: after all others, each in the way that
        # takes longest, at the latest
        longest = [max(slots) for slots in lasting]
        latest = max(first) + sum(longest)
        columns = [
            (number, way, start)
            for number, task in enumerate(tasks)
            for way in range(len(task.options))
            for start in range(first[number], latest - longest[number] + 1)
        ]
        horizon = latest + 1
        self._task, self._way, self._start = (np.array(part, dtype=np.intp) for part in zip(*columns, strict=True))
        self._lasting = np.array([lasting[number][way] for number, way, _ in columns], dtype=np.intp)
        options = [tasks[number].options[way] for number, way, _ in columns]
        self._money = np.array([option.money for option in options])
        self._ends = self._start * slot + np.array([option.seconds for option in options])
        weights = np.array([task.weight for task in tasks])
        submitted = np.array([task.submitted for task in tasks])
        self._period = (self._ends - submitted[self._task]) * weights[self._task] / weights.sum()
        self._rows = [self._once(), self._never_full(options, horizon)]

    def least_period(self, budget: float) -> Point:
        """Of those within a budget the quickest, and of these the cheapest."""
        within = [] if budget == inf else [self._at_most(self._money, budget)]
        found = self._solve(self._period, within)
        limit = float(self._period[found].sum()) * (1.0 + _TOLERANCE * 1e-2) + 1e-9
        return self._point(self._solve(self._money, [*within, self._at_most(self._period, limit)]))

    def least_money(self) -> Point:
        """Of the cheapest the quickest."""
        found = self._solve(self._money, [])
        budget = float(self._money[found].sum())
        return self._point(self._solve(self._period, [self._at_most(self._money, budget)]))

    def least_makespan(self) -> Point:
        """One whose last job ends first: the least instant among all ends that leaves a schedule."""
        instants = np.unique(self._ends)
        found = self._solve(self._period, [])
        low, high = 0, int(np.searchsorted(instants, self._ends[found].max()))
        while low < high:
            middle = (low + high) // 2
            try:
                found = self._solve(self._period, [], self._ends <= instants[middle])
            except _Infeasible:
                low = middle + 1
            else:
                high = int(np.searchsorted(instants, self._ends[found].max()))
        return self._point(found)

    def _once(self) -> LinearConstraint:
        """Each task starts once."""
        ones = np.ones(len(self._task))
        rows = csr_array((ones, (self._task, np.arange(len(self._task)))))
        return LinearConstraint(rows, 1.0, 1.0)

    def _never_full(self, options: Sequence[Option], horizon: int) -> LinearConstraint:
        """No pool gives more than it has in any slot."""
        pools = len(self._instance.capacity)
        rows: list[int] = []
        columns: list[int] = []
        held: list[float] = []
        for column, option in enumerate(options):
            since = int(self._start[column])
            for slot in range(since, min(since + int(self._lasting[column]), horizon)):
                for pool, devices in option.holding:
                    rows.append(slot * pools + pool)
                    columns.append(column)
                    held.append(float(devices))
        limits = np.tile(np.array(self._instance.capacity, dtype=np.float64), horizon)
        matrix = csr_array((held, (rows, columns)), shape=(horizon * pools, len(options)))
        return LinearConstraint(matrix, -np.inf, limits)

    @staticmethod
    def _at_most(figure: Floats, limit: float) -> LinearConstraint:
        """Scaled, so that the solver's tolerance is relative."""
        scale = max(abs(limit), float(np.abs(figure).max(initial=0.0)) * _TOLERANCE, 1e-300)
        return LinearConstraint(csr_array((figure / scale)[np.newaxis]), -np.inf, limit / scale + 1e-9)

    def _solve(
        self, figure: Floats, more: Sequence[LinearConstraint], among: NDArray[np.bool_] | None = None
    ) -> Numbers:
        """Columns of the schedule that has the least sum of a figure."""
        upper = np.ones(len(figure)) if among is None else among.astype(np.float64)
        scale = float(np.abs(figure).max(initial=0.0)) or 1.0
        for presolve in (True, False):  # HiGHS fails now and then on what it made simpler, not on what it was given
            solved = milp(
                figure / scale,
                integrality=np.ones(len(figure)),
                bounds=Bounds(0.0, upper),
                constraints=[*self._rows, *more],
                options={"time_limit": self._seconds, "mip_rel_gap": 0.0, "presolve": presolve},
            )
            if solved.status != _OTHER:
                break
        if solved.status == _INFEASIBLE:
            raise _Infeasible
        if solved.status != 0:
            raise NotSolved(solved.message)
        return np.flatnonzero(np.rint(solved.x))

    def _point(self, columns: Numbers) -> Point:
        """The schedule of some columns."""
        ordered = columns[np.argsort(self._task[columns], kind="stable")]
        tasks = self._instance.tasks
        return Point(
            float(self._period[ordered].sum()),
            float(self._money[ordered].sum()),
            float(self._ends[ordered].max()),
            tuple((self._start[ordered] * self._instance.slot).tolist()),
            tuple(tasks[task].options[way] for task, way in zip(self._task[ordered], self._way[ordered], strict=True)),
        )
