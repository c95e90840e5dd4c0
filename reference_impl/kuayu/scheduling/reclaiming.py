"""Devices that running jobs hold and do not keep busy, given to those that wait.

Whoever asks for more than it uses is told from its first steps on. A job that can do with fewer goes on with as many as
it keeps busy, where others wait for devices of its pool; it is interrupted once, and only if that is little beside what
it has before it and beside what the others gain.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.scheduling.deciding import Decided
from kuayu.scheduling.habits import Habits
from kuayu.scheduling.scene import NONE, Counts, Scene
from kuayu.scheduling.speeds import STARTING, STORAGE

LONGEST = 1e-3
"""Share of what a job has before it that its interruption may take."""
SLOWER = 1.02
"""A job may take so many times as long with fewer devices."""
GAIN = 4.0
"""Seconds that others gain, for each that a job is interrupted."""


@dataclass(frozen=True, slots=True)
class Resized:
    """A running job that goes on with fewer devices.

    Attributes:
        job: Its number.
        pool: Number of its pool.
        devices: How many it goes on with.
    """

    job: int
    pool: int
    devices: int


def reclaimed(scene: Scene, decided: Decided) -> list[Resized]:
    """Jobs that go on with fewer devices, those that give back most first, as long as anybody waits for them."""
    asked = wanted(scene, decided)
    if not asked.any():
        return []
    jobs, held = scene.jobs, scene.held
    shares = np.bincount(held.holder - scene.waiting, minlength=len(jobs) - scene.waiting)
    alone = np.flatnonzero(
        (shares[held.holder - scene.waiting] == 1)
        & (held.mode[held.holder - scene.waiting] == NONE)
        & (held.ready[held.holder - scene.waiting] == 0.0)
        & (held.rate[held.holder - scene.waiting] > 0.0)
        & ~held.saving[held.holder - scene.waiting]
        & jobs.measured[held.holder]
        & (asked[held.pool] > 0)
        & scene.reachable[scene.pools.domain[held.pool]]
        & ~np.isin(held.holder, [each.job for each in decided.yielding])
    )
    if not len(alone):
        return []
    job, pool, devices = held.holder[alone], held.pool[alone], held.devices[alone]
    least, step = jobs.minimum[job], jobs.step[job]
    busy = np.maximum(np.ceil(jobs.used[job] * jobs.requested[job] - 1e-9).astype(np.int64), least)
    fewer = least + -(-(busy - least) // step) * step
    habits = Habits(scene)
    slower = habits.longer(job, fewer.astype(np.float64)) / habits.longer(job, devices.astype(np.float64))
    left = jobs.left[job] / held.rate[job - scene.waiting]
    pause = STARTING + jobs.checkpoint[job] / STORAGE * (1.0 / devices + 1.0 / fewer)
    waiting = scene.waiting - sum(turn.starts for turn in decided.turns)
    freed = devices - fewer
    gained = freed * left * waiting / max(int(scene.pools.devices.sum()), 1)
    pays = (freed > 0) & (slower <= SLOWER) & (pause <= LONGEST * left) & (gained >= GAIN * pause)
    found = []
    for place in np.lexsort((np.arange(len(alone)), -np.where(pays, freed * left, 0.0))).tolist():
        if pays[place] and asked[pool[place]] > 0:
            asked[pool[place]] -= freed[place]
            found.append(Resized(int(job[place]), int(pool[place]), int(fewer[place])))
    return found


def wanted(scene: Scene, decided: Decided) -> Counts:
    """Devices that those who wait would take if they were free, by pool; not those that are free already."""
    found = np.zeros(len(scene.pools.devices), dtype=np.int64)
    for turn in decided.turns:
        if turn.counts and turn.chosen is not None and not turn.starts:
            row = turn.row
            there = decided.ways.pools[row] >= 0
            np.add.at(found, decided.ways.pools[row][there], decided.ways.devices[row][there])
    return found - np.where(found > 0, decided.plan.free, 0)
