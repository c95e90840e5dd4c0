"""How much work a mix of jobs can get done in a second, at most: SCH-004 divides by it."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack

from kuayu_conformance.testbed.scheduling.bounds.efficiency import Needs
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a linear programme says.

    Attributes:
        throughput: Work a second, in device seconds of the reference device, if the mix goes on for ever.
        share: Share of the devices of each pool that the programme uses; the same for pools that are alike.
        values: What a device second of each pool is worth: the work a second that one more device would bring. Scaled
            so that all devices together are worth ``throughput``.
    """

    throughput: float
    share: Floats
    values: Floats


def capacity(jobs: Needs, devices: Floats | None = None) -> Capacity:
    """The most work a second that is feasible while each kind of job gets its share of the work.

    Jobs of the same rates in all pools are one kind. With ``y`` devices of each pool for each kind, it is the greatest
    ``θ`` such that kind ``c`` does at least ``θ`` times its share of the work, and no pool gives more than it has. Each
    kind may go where it is at its best, so that a ratio to this never exceeds one, as one to the sum of devices does
    where indices depend on the task. Over-requests are forgiven: a device second counts as what the job would make of
    it with as few devices as it runs on. D. Narayanan et al. (Gavel), OSDI 2020, section 4.2, allocate by it.

    Args:
        jobs: The mix; those that can run nowhere are left out.
        devices: Devices of each pool that are there, on average; otherwise all.

    Raises:
        ValueError: None of the jobs can run, or none has work to do.
    """
    available = jobs.places.devices.astype(np.float64) if devices is None else np.asarray(devices, dtype=np.float64)
    able = (np.where(available > 0.0, jobs.rates, 0.0).max(axis=1, initial=0.0) > 0.0) & (jobs.work > 0.0)
    if not able.any():
        raise ValueError("no job has work to do and can run")
    # pools that are alike to all jobs are one to the programme
    merged, pool = np.unique(np.where(available > 0.0, jobs.rates[able], 0.0), axis=1, return_inverse=True)
    pool = pool.reshape(-1)
    sizes = np.bincount(pool, weights=available)
    kinds, which = np.unique(merged, axis=0, return_inverse=True)
    mix = np.bincount(which.reshape(-1), weights=jobs.work[able])
    mix = mix / mix.sum()
    rows, pools = np.nonzero(kinds)
    last = len(rows)
    done = coo_array((-kinds[rows, pools], (rows, np.arange(last))), shape=(len(kinds), last + 1))
    demanded = coo_array((mix, (np.arange(len(kinds)), np.full(len(kinds), last))), shape=(len(kinds), last + 1))
    held = coo_array((np.ones(last), (pools, np.arange(last))), shape=(len(sizes), last + 1))
    limits = np.concatenate([np.zeros(len(kinds)), sizes])
    solved = linprog(
        np.append(np.zeros(last), -1.0), A_ub=vstack([done + demanded, held], format="csr"), b_ub=limits, method="highs"
    )
    assert solved.status == 0, solved.message
    used = np.bincount(pools, weights=solved.x[:last], minlength=len(sizes))
    values = np.maximum(-solved.ineqlin.marginals[len(kinds) :], 0.0)
    share = np.divide(used, sizes, out=np.zeros(len(sizes)), where=sizes > 0.0)
    return Capacity(float(solved.x[last]), share[pool], values[pool])


def cheapest_seconds(jobs: Needs, values: Floats) -> Floats:
    """Least worth of the device seconds that each job holds, wherever it runs; infinite for one that cannot run.

    Whatever ``values`` are, no schedule hands out more in a second than all devices are worth: so the jobs of any
    schedule are those of one machine of that speed. The values of :func:`capacity` make that machine as slow as can be.

    Args:
        jobs: By job and pool.
        values: Of a device second, by pool; none below nought.
    """
    unit_costs = np.divide(values, jobs.rates, out=np.full(jobs.rates.shape, np.inf), where=jobs.rates > 0.0)
    least: Floats = unit_costs.min(axis=1, initial=np.inf)
    return np.where(jobs.work > 0.0, jobs.work * least, 0.0)
