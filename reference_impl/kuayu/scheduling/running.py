"""What is known of devices and of jobs that hold some: what is free, how fast domains truly are, when jobs end."""

from math import inf

import numpy as np

from kuayu.scheduling.scene import Counts, Floats, Scene
from kuayu.scheduling.speeds import asked_of, fast

SLOWEST = 0.05
"""Share of its speed on paper below which a job does not say anything of its domain."""
BELIEF = 0.25
"""Jobs that are as fast as on paper, before any was measured."""


def trusted(scene: Scene) -> Counts:
    """Free devices that may be counted upon, by pool.

    No more than work beside those that are known to be held, no more than the nodes have, none where nobody can be
    reached.
    """
    pools, held = scene.pools, scene.held
    taken = np.bincount(held.pool, held.devices, len(pools.devices)).astype(np.int64)
    free = np.minimum(pools.free, np.maximum(pools.devices - taken, 0))
    for number, nodes in enumerate(pools.nodes):
        if nodes is not None:
            free[number] = min(int(free[number]), int(nodes.free.sum()))
    return np.where(scene.reachable[pools.domain], free, 0)


def paces(scene: Scene) -> Floats:
    """Share of their speed on paper that jobs have in practice, by domain; one where nothing is known.

    It is that of the jobs that run there and were measured, among which a few that are as fast as on paper.
    """
    held, jobs = scene.held, scene.jobs
    place = held.holder - scene.waiting
    alone = np.bincount(place, minlength=len(jobs) - scene.waiting)[place] == 1
    known = np.flatnonzero(alone & jobs.measured[held.holder] & (held.rate[place] > 0.0) & (held.ready[place] == 0.0))
    job, devices = held.holder[known], held.devices[known].astype(np.float64)
    paper = fast(devices, scene.worth[job, scene.pools.accelerator[held.pool[known]]], asked_of(jobs, job))
    ratio = np.divide(held.rate[place[known]], paper, out=np.ones(len(known)), where=paper > 0.0)
    domain = scene.pools.domain[held.pool[known]]
    sums = np.bincount(domain, np.clip(ratio, SLOWEST, 1.0 / SLOWEST), scene.domains)
    counts = np.bincount(domain, minlength=scene.domains)
    found: Floats = (sums + BELIEF) / (counts + BELIEF)
    return found


def ends(scene: Scene) -> Floats:
    """Seconds until each running job is expected to give its devices back; infinite for one that stands still."""
    held, jobs = scene.held, scene.jobs
    numbers = np.arange(scene.waiting, len(jobs))
    devices = np.bincount(held.holder - scene.waiting, held.devices, len(numbers))
    worth = scene.worth[held.holder, scene.pools.accelerator[held.pool]] * held.devices
    rate = np.bincount(held.holder - scene.waiting, worth, len(numbers)) / np.maximum(devices, 1.0)
    rate = rate * np.minimum(devices, jobs.used[numbers] * jobs.requested[numbers])
    rate = np.where(np.isfinite(held.rate), held.rate, rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(rate > 0.0, jobs.left[numbers] / rate, inf)
    ready = np.where(np.isfinite(held.ready), held.ready, 0.0)
    found: Floats = np.where(held.saving, ready, ready + seconds)
    return found
