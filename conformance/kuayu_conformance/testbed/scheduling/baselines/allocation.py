"""How many jobs of each class should run in each pool: a linear programme, and its rounding to whole gangs."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.places import Counts

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
    places, ones = np.arange(len(rows)), np.ones(len(rows))
    of_class = csr_array((ones, (rows, places)), shape=(len(gang), len(rows)))
    of_pool = csr_array((gang[rows].astype(np.float64), (pools, places)), shape=(len(capacity), len(rows)))
    limits = np.concatenate([jobs, capacity]).astype(np.float64)
    weights = value[rows, pools] / value.max()
    solved = linprog(-weights, A_ub=vstack([of_class, of_pool], format="csr"), b_ub=limits, method="highs")
    if solved.status == 0:
        found[rows, pools] = np.maximum(solved.x, 0.0)
    return found


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
