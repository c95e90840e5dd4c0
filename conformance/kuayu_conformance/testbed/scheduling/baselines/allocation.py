"""How many jobs of each class should run in each pool: a linear programme, and its rounding to whole gangs."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize._highspy._core import HighsLp, HighsModelStatus, HighsOptions, MatrixFormat, _Highs

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.state import Counts

SOLVER = HighsOptions()
"""As ``scipy.optimize.linprog`` sets them, which takes twice as long for the same programme: it makes options and
matrices anew each time, and looks at duals one by one."""
SOLVER.output_flag = SOLVER.log_to_console = False
SOLVER.presolve = "on"

_WHOLE = 1e-6
"""A fraction of a job that near to a whole one is one: the tolerance of the solver."""


def allocate(value: Floats, gang: Counts, jobs: Counts, capacity: Counts) -> Floats:
    """Jobs of each class in each pool, fractions included, so that their value is greatest; (classes, pools).

    No class has more jobs than there are, and no pool gives more devices than it has. It is the allocation of D.
    Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads" (Gavel), OSDI 2020,
    with what S. Jayaram Subramanya et al., "Sia", SOSP 2023, take for objective: the sum of goodputs, each normalised.

    Args:
        value: Of a job by class and pool; nought where it cannot run.
        gang: Devices that a job needs, by class.
        jobs: How many jobs there are, by class.
        capacity: Devices, by pool.
    """
    able = (value > 0.0) & (gang[:, np.newaxis] <= capacity) & (jobs[:, np.newaxis] > 0)
    rows, pools = np.nonzero(able)
    found = np.zeros(value.shape)
    if not len(rows):
        return found
    found[rows, pools] = np.maximum(_solved(value[rows, pools] / value.max(), gang, jobs, capacity, rows, pools), 0.0)
    return found


def _solved(weights: Floats, gang: Counts, jobs: Counts, capacity: Counts, rows: Counts, pools: Counts) -> Floats:
    """Jobs by pair of class and pool, (pairs,), so that the weighted sum is greatest; noughts without a solution."""
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
    left, room = jobs.copy(), free.copy()
    lower = np.floor(np.maximum(wanted, 0.0) + _WHOLE)
    for row, pool in np.argwhere(lower > 0.0).tolist():
        whole[row, pool] = most = max(min(int(lower[row, pool]), int(left[row]), int(room[pool] // gang[row])), 0)
        left[row] -= most
        room[pool] -= most * int(gang[row])
    fractions = wanted - lower
    some = np.argwhere(fractions > _WHOLE)
    for row, pool in some[np.argsort(-fractions[some[:, 0], some[:, 1]], kind="stable")].tolist():
        if left[row] > 0 and gang[row] <= room[pool]:
            whole[row, pool] += 1
            left[row] -= 1
            room[pool] -= gang[row]
    return whole
