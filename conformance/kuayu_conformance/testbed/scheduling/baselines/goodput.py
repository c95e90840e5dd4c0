"""B4: a linear programme on goodput says which kinds of jobs should run in which pools.

1. **Programme.** It says how many jobs of each class should run in each pool, and is rounded to whole gangs.
2. **Policy.** At each change, jobs are shared out to pools by the programme; those that are free start accordingly, and
   gaps are filled as B3 does.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize._highspy._core import HighsLp, HighsModelStatus, HighsOptions, MatrixFormat, _Highs

from kuayu_conformance.testbed.elementary import power
from kuayu_conformance.testbed.scheduling.baselines.greedy import Candidate, EarliestCompletion, Schedule, tuned
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats, Numbers
from kuayu_conformance.testbed.scheduling.engine.state import SEVERAL, Counts
from kuayu_conformance.testbed.scheduling.engine.view import View

SOLVER = HighsOptions()
"""As ``scipy.optimize.linprog`` sets them, which takes twice as long for the same programme: it makes options and
matrices anew each time, and looks at duals one by one."""
SOLVER.output_flag = SOLVER.log_to_console = False
SOLVER.presolve = "on"
ELSEWHERE = 1e15
"""Seconds by which all candidates are worse that are not planned: more than any job takes."""
_WHOLE = 1e-6
"""A fraction of a job that near to a whole one is one: the tolerance of the solver."""
_BITS = 8.0
_STEP = 3
"""Jobs of a class differ in what they state by a factor of two to that power at most."""


def allocate(value: Floats, gang: Counts, jobs: Counts, capacity: Counts) -> Floats:
    """Jobs of each class in each pool, fractions included, so that their value is greatest; (classes, pools).

    No class has more jobs than there are, and no pool gives more devices than it has. It is the allocation of D.
    Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads" (Gavel), OSDI 2020,
    with what S. Jayaram Subramanya et al., "Sia", SOSP 2023, take for objective: the sum of goodputs, each normalised.

    Args:
        value: Of a job by class and pool; zero where it cannot run.
        gang: Devices that a job needs, by class.
        jobs: How many jobs there are, by class.
        capacity: Devices, by pool.
    """
    able = (value > 0.0) & (gang[:, np.newaxis] <= capacity) & (jobs[:, np.newaxis] > 0)
    rows, pools = np.nonzero(able)
    amounts = np.zeros(value.shape)
    if not len(rows):
        return amounts
    amounts[rows, pools] = np.maximum(_solved(value[rows, pools] / value.max(), gang, jobs, capacity, rows, pools), 0.0)
    return amounts


def gangs(wanted: Floats, gang: Counts, jobs: Counts, free: Counts) -> NDArray[np.int64]:
    """Whole jobs by class and pool, near to what is wanted; never more than there are, or than devices are free.

    First all whole ones, then one more where the largest fractions are left; ties in the order of classes and pools.

    Args:
        wanted: Jobs by class and pool, fractions included; negative ones are none.
        gang: Devices that a job needs, by class.
        jobs: How many jobs may start, by class.
        free: Devices that are free, by pool.
    """
    whole = np.zeros(wanted.shape, dtype=np.int64)
    left, available = jobs.copy(), free.copy()
    lower = np.floor(np.maximum(wanted, 0.0) + _WHOLE)
    for row, pool in np.argwhere(lower > 0.0).tolist():
        whole[row, pool] = most = max(min(int(lower[row, pool]), int(left[row]), int(available[pool] // gang[row])), 0)
        left[row] -= most
        available[pool] -= most * int(gang[row])
    fractions = wanted - lower
    some = np.argwhere(fractions > _WHOLE)
    for row, pool in some[np.argsort(-fractions[some[:, 0], some[:, 1]], kind="stable")].tolist():
        if left[row] > 0 and gang[row] <= available[pool]:
            whole[row, pool] += 1
            left[row] -= 1
            available[pool] -= gang[row]
    return whole


@dataclass(frozen=True, slots=True)
class Active:
    """Jobs that a plan is made for: those that wait, then those that run; n of them, in P pools.

    Attributes:
        waiting: How many wait.
        pool: Pool of each that runs, (n - waiting,).
        requested: Devices, (n,).
        stated: Work that each is stated to be, (n,).
        profile: Number of its profile, (n,); numbers in the order of names.
        shortest: Seconds that it takes where its goodput is best, (n,).
        goodput: Its goodput over the best of it, (n, P); zero where it cannot run.
    """

    waiting: int
    pool: Numbers
    requested: Numbers
    stated: Floats
    profile: Numbers
    shortest: Floats
    goodput: Floats


def plan(active: Active, free: Counts, favour: float) -> tuple[Numbers, Floats]:
    """Where those that wait should start, and its value there; -1 and zero for whom the plan leaves open.

    Args:
        active: Whom it is made for.
        free: Devices that are free, by pool.
        favour: See ``Goodput``.

    Returns:
        Pool and value, both (waiting,).
    """
    waiting = active.waiting
    value = power(np.maximum(active.shortest, 1.0), -favour)[:, np.newaxis] * active.goodput
    first, kind = _classes(active)
    gang = active.requested[first]
    counts = np.bincount(kind)
    means = np.zeros((len(gang), value.shape[1]))
    np.add.at(means, kind, value)
    means /= counts[:, np.newaxis]
    present = np.zeros(means.shape, dtype=np.int64)
    np.add.at(present, (kind[waiting:], active.pool), 1)
    occupied = (present * gang[:, np.newaxis]).sum(axis=0)
    wanted = allocate(means, gang, counts, occupied + free) - present
    starts = gangs(wanted, gang, np.bincount(kind[:waiting], minlength=len(gang)), free)
    return _assigned(kind[:waiting], value[:waiting], starts)


class Goodput(EarliestCompletion):
    """B4: at each change, jobs are shared out to pools by a linear programme; those that are free start accordingly.

    Jobs that run and jobs that wait form classes: of one profile, one number of devices, one set of pools that they can
    use, and about the same length. What a job is worth in a pool is its goodput there (work over the time of staging
    and running) over the best that it has in any, times its shortest time to the power of ``-favour``. The programme
    says how many of a class should run where if all could be moved for nothing; nobody is preempted, so that those
    that wait go where fewer run than should, as many as devices are free. The head of the queue keeps its reservation.
    What the programme leaves open (devices that it gives to nobody who waits, jobs that no pool can hold) is filled
    as B3 does; if there is no solution, everything is.

    Args:
        favour: How much short jobs are favoured: zero not at all, one as the rate at which jobs are finished does;
            as tuned unless it is given.

    Attributes:
        favour: What it is.
    """

    def __init__(self, favour: float | None = None) -> None:
        super().__init__()
        self.favour = tuned().favour if favour is None else favour
        self._seen = -1
        self._planned: dict[int, int] = {}
        self._value: dict[int, float] = {}
        self._known: dict[int, _Known] = {}

    def _prepare(self, view: View, schedule: Schedule) -> None:
        if self._seen != view.revision:
            self._seen = view.revision
            self._planned, self._value = {}, {}
            if self._some_fit(view, schedule):
                self._plan(view, schedule)

    def _scores(self, view: View, number: int, candidates: tuple[Candidate, ...], ends: Floats) -> Floats:
        del view
        planned = self._planned.get(number)
        if planned is None:
            return ends
        scores: Floats = ends + np.array(
            [0.0 if candidate.holding[0][0] == planned else ELSEWHERE for candidate in candidates]
        )
        return scores

    def _ordered(self, view: View, jobs: list[int]) -> list[int]:
        del view
        return sorted(jobs, key=lambda number: -self._value.get(number, 0.0))

    @staticmethod
    def _some_fit(view: View, schedule: Schedule) -> bool:
        """Whether any that waits could start on what is free: else no programme would start one."""
        requested, rates = view.register.requested[view.pending], view.register.rates[view.pending]
        fits = (requested[:, np.newaxis] <= schedule.free) & (rates[:, view.places.type] > 0.0)
        return bool(fits.any())

    def _plan(self, view: View, schedule: Schedule) -> None:
        """Which of those that wait should start in which pool."""
        jobs = self._active(view)
        if not len(jobs):
            return
        names = [self._of_job(view, number).profile for number in jobs.tolist()]
        profiles = {name: place for place, name in enumerate(sorted(set(names)))}
        waiting = int(np.isin(jobs, view.pending).sum())
        active = Active(
            waiting,
            view.pools(jobs[waiting:]),
            view.register.requested[jobs],
            view.register.stated_work[jobs],
            np.array([profiles[name] for name in names], dtype=np.int64),
            *self._goodput(view, jobs),
        )
        pools, values = plan(active, schedule.free, self.favour)
        for place in np.flatnonzero(pools >= 0).tolist():
            self._planned[int(jobs[place])], self._value[int(jobs[place])] = int(pools[place]), float(values[place])

    @staticmethod
    def _active(view: View) -> Numbers:
        """Jobs that wait, and those that run on what they asked for in one pool; each of a size that some pool has."""
        running = view.running
        alone = view.pools(running) != SEVERAL
        same = view.devices(running) == view.register.requested[running]
        jobs = np.concatenate([view.pending, running[alone & same]])
        able: Numbers = jobs[view.register.requested[jobs] <= view.places.devices.max()]
        return able

    def _goodput(self, view: View, jobs: Numbers) -> tuple[Floats, Floats]:
        """Shortest time of each job, and its normalised goodput by pool; (jobs,) and (jobs, pools)."""
        rates = view.register.rates[jobs][:, view.places.type]
        rates = np.where(view.register.requested[jobs][:, np.newaxis] <= view.places.devices, rates, 0.0)
        left = view.work_left(jobs)[:, np.newaxis]
        running = np.divide(left, rates, out=np.full(rates.shape, np.inf), where=rates > 0.0)
        seconds = running + self._staging(view, jobs)[:, view.places.site]
        goodput = np.divide(left, seconds, out=np.zeros(rates.shape), where=np.isfinite(seconds))
        best = goodput.max(axis=1)
        goodput = np.divide(goodput, best[:, np.newaxis], out=np.zeros(rates.shape), where=best[:, np.newaxis] > 0.0)
        return np.divide(left[:, 0], best, out=np.ones(len(jobs)), where=best > 0.0), goodput

    def _staging(self, view: View, jobs: Numbers) -> Floats:
        """Seconds until the data of each would be in each domain, at present bandwidths; (jobs, domains)."""
        known = [self._of_job(view, number) for number in jobs.tolist()]
        kinds = {kind: view.shares[list(kind)].max(axis=0) for kind in {data.sources for data in known}}
        shares = np.stack([kinds[data.sources] for data in known])
        size = np.array([data.bits for data in known])[:, np.newaxis]
        with np.errstate(invalid="ignore", divide="ignore"):
            seconds = np.where(np.isinf(shares), 0.0, np.where(shares > 0.0, size / shares, np.inf))
        by_domain: Floats = seconds
        return by_domain

    def _of_job(self, view: View, number: int) -> "_Known":
        """What is looked up when a job is seen for the first time."""
        known = self._known.get(number)
        if known is None:
            data = view.dataset(number)
            bits = np.inf if data.pinned else data.size * _BITS
            known = self._known[number] = _Known(view.job(number).profile, view.data_at(number), bits)
        return known


def _solved(weights: Floats, gang: Counts, jobs: Counts, capacity: Counts, rows: Counts, pools: Counts) -> Floats:
    """Jobs by pair of class and pool, (pairs,), so that the weighted sum is greatest; zeros without a solution."""
    pairs, limits = len(rows), np.concatenate([jobs, capacity]).astype(np.float64)
    problem = HighsLp()
    problem.num_col_, problem.num_row_ = pairs, len(limits)
    problem.col_cost_, problem.col_lower_, problem.col_upper_ = -weights, np.zeros(pairs), np.full(pairs, np.inf)
    problem.row_lower_, problem.row_upper_ = np.full(len(limits), -np.inf), limits
    matrix = problem.a_matrix_
    matrix.num_col_, matrix.num_row_, matrix.format_ = pairs, len(limits), MatrixFormat.kColwise
    matrix.start_ = np.arange(0, 2 * pairs + 1, 2, dtype=np.int32)
    matrix.index_ = np.stack([rows, len(jobs) + pools], axis=1).astype(np.int32).reshape(-1)
    matrix.value_ = np.stack([np.ones(pairs), gang[rows].astype(np.float64)], axis=1).reshape(-1)
    solver = _Highs()
    solver.passOptions(SOLVER)
    solver.passModel(problem)
    solver.run()
    if solver.getModelStatus() != HighsModelStatus.kOptimal:
        return np.zeros(pairs)
    return np.array(solver.getSolution().col_value)


def _classes(active: Active) -> tuple[Numbers, Numbers]:
    """The first job of each class, and the class of each job: what its members have in common decides the order."""
    _, length = np.frexp(active.stated)
    _, usable = np.unique(active.goodput > 0.0, axis=0, return_inverse=True)
    columns = [active.profile, active.requested, length.astype(np.int64) // _STEP, usable.reshape(-1)]
    _, first, kind = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)


def _assigned(kind: Numbers, value: Floats, starts: NDArray[np.int64]) -> tuple[Numbers, Floats]:
    """In the order of the queue each takes the best pool of those that its class has left."""
    pools, values = np.full(len(kind), -1, dtype=np.int64), np.zeros(len(kind))
    some = starts.sum(axis=1)
    for place in np.flatnonzero(some[kind]).tolist():
        row = kind[place]
        if some[row]:
            left = np.where(starts[row] > 0, value[place], 0.0)
            best = int(np.argmax(left))
            if left[best] > 0.0:
                pools[place], values[place] = best, left[best]
                starts[row, best] -= 1
                some[row] -= 1
    return pools, values


@dataclass(frozen=True, slots=True)
class _Known:
    """A job: its profile, the domains that held its data when it was first seen, and bits to fetch from there."""

    profile: str
    sources: tuple[int, ...]
    bits: float
