"""Running jobs that go on elsewhere, or on more devices, where some would be idle.

Whoever started on slow devices, or on few, need not stay there once better ones are free and nobody who waits takes
them: it writes a checkpoint and goes on. It is interrupted only if that is little beside what it has before it, and if
it ends clearly sooner, what it costs included.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.scheduling.candidates import MONEY
from kuayu.scheduling.deciding import Decided
from kuayu.scheduling.habits import Habits
from kuayu.scheduling.planning import Plan
from kuayu.scheduling.running import paces
from kuayu.scheduling.scene import NONE, Counts, Floats, Numbers, Scene
from kuayu.scheduling.speeds import BITS, restart, saving
from kuayu.scheduling.worth import worthiness

LONGEST = 5e-3
"""Share of what a job has before it that its interruption may take."""
SOONER = 0.1
"""Share of what it has before it that it must gain."""
GAIN = 10.0
"""Seconds that must be gained for each that it is interrupted."""
COMING = 0.05
"""Part of the running jobs that count as if they waited: as many will come."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A running job that goes on elsewhere or on other devices.

    Attributes:
        job: Its number.
        pool: Number of the pool.
        devices: How many of it.
        stays: Whether it is the pool where it is.
        bought: Number of the way of buying them, or ``NOWHERE`` where the pool has no offers.
    """

    job: int
    pool: int
    devices: int
    stays: bool
    bought: int


@dataclass(frozen=True, slots=True)
class _Present:
    """Jobs that can be moved, as they are, by row."""

    job: Numbers
    pool: Numbers
    devices: Counts
    bought: Numbers
    left: Floats


def movable(scene: Scene) -> Numbers:
    """Shares of jobs that run undisturbed in one pool, and of which it is known what they keep busy."""
    jobs, held = scene.jobs, scene.held
    place = held.holder - scene.waiting
    found: Numbers = np.flatnonzero(
        (np.bincount(place, minlength=len(jobs) - scene.waiting)[place] == 1)
        & (held.mode[place] == NONE)
        & (held.ready[place] == 0.0)
        & (held.rate[place] > 0.0)
        & ~held.saving[place]
        & jobs.measured[held.holder]
        & scene.reachable[scene.pools.domain[held.pool]]
    )
    return found


def moved(scene: Scene, decided: Decided, but: frozenset[int] = frozenset()) -> list[Moved]:
    """Jobs that go on with devices that nobody who waits is given, those that gain most first.

    Args:
        scene: What was decided on.
        decided: What was decided.
        but: Numbers of jobs that something else becomes of.
    """
    plan, held = decided.plan, scene.held
    spare = np.flatnonzero(plan.free > 0)
    shares = movable(scene) if len(spare) else np.zeros(0, dtype=np.intp)
    shares = shares[~np.isin(held.holder[shares], list(but))]
    if not len(shares):
        return []
    job = held.holder[shares]
    left = scene.jobs.left[job] / held.rate[job - scene.waiting]
    now = _Present(job, held.pool[shares], held.devices[shares], held.purchase[shares], left)
    row, pool, devices = _ways(scene, now, spare, plan.free)
    gained, seconds = _gained(scene, decided, now, row, pool, devices)
    found: list[Moved] = []
    gone: set[int] = set()
    for way in np.lexsort((np.arange(len(row)), -gained)).tolist():
        if gained[way] <= 0.0:
            break
        its, where, count = int(row[way]), int(pool[way]), int(devices[way])
        mover, stays = int(now.job[its]), bool(pool[way] == now.pool[its])
        more = count - int(now.devices[its]) * stays
        if mover in gone or not _admitted(plan, where, more, float(seconds[way])):
            continue
        bought = plan.shop.cheapest(mover, where, more, float(seconds[way]))
        if stays and bought != now.bought[its]:
            continue
        plan.take(mover, np.array([where]), np.array([more]), float(seconds[way]))
        gone.add(mover)
        found.append(Moved(mover, where, count, stays, bought))
    return found


def _ways(scene: Scene, now: _Present, spare: Numbers, free: Counts) -> tuple[Numbers, Numbers, Counts]:
    """Row, pool and devices of what else they could hold: what they asked for, or as many as are of use and free."""
    jobs, job = scene.jobs, now.job
    usable = (scene.worth[job][:, scene.pools.accelerator[spare]] > 0.0) & np.isfinite(
        scene.data_staging[0][job][:, scene.pools.domain[spare]]
    )
    row, column = np.nonzero(usable)
    pool = spare[column]
    room = free[pool] + np.where(now.pool[row] == pool, now.devices[row], 0)
    least, step = jobs.minimum[job[row]], jobs.step[job[row]]
    sizes = np.stack([np.minimum(jobs.maximum[job[row]], room), np.minimum(jobs.requested[job[row]], room)])
    sizes = least + (sizes - least) // step * step
    able = sizes >= least
    able[1] &= sizes[1] != sizes[0]
    able &= (now.pool[row] != pool) | (sizes > now.devices[row])
    which, place = np.nonzero(able)
    return row[place], pool[place], sizes[which, place]


def _gained(
    scene: Scene, decided: Decided, now: _Present, row: Numbers, pool: Numbers, devices: Counts
) -> tuple[Floats, Floats]:
    """Seconds that ways gain, less what they cost others and in money, and seconds that are left on them then.

    Nought is gained where it does not pay.
    """
    jobs, pools, paths = scene.jobs, scene.pools, scene.paths
    job, was, held = now.job[row], now.pool[row], now.devices[row]
    habits, pace, value = Habits(scene), paces(scene), worthiness(scene)
    here, there = pools.domain[was], pools.domain[pool]
    slower = habits.longer(job, devices.astype(np.float64)) / habits.longer(job, held.astype(np.float64))
    worth = scene.worth[job, pools.accelerator[was]] / scene.worth[job, pools.accelerator[pool]]
    left = now.left[row]
    then = left * slower * worth * pace[here] / pace[there]
    size = jobs.checkpoint[job]
    bits = size * BITS
    away = here != there
    with np.errstate(divide="ignore", invalid="ignore"):
        sent = np.where(away & (bits > 0.0), bits / paths.available[here, there], 0.0)
        money = np.where(away & (bits > 0.0), bits * paths.tariff[here, there], 0.0)
    stays = was == pool
    staging, paid = (each[job, there] for each in scene.data_staging)
    money = money + np.where(stays, 0.0, paid)
    pause = (
        saving(size, held.astype(np.float64))
        + sent
        + np.where(stays, 0.0, staging)
        + restart(size, devices.astype(np.float64))
    )
    gained = left - then - pause
    waiting = scene.waiting - sum(turn.starts for turn in decided.turns)
    crowd = (waiting + COMING * (len(jobs) - scene.waiting)) / max(int(pools.devices.sum()), 1)
    others = crowd * (value[pool] * devices * (pause + then) - value[was] * held * left)
    pays = (gained >= SOONER * left) & (gained >= GAIN * pause) & (pause <= LONGEST * left) & np.isfinite(then)
    with np.errstate(invalid="ignore"):
        net = gained - others - MONEY * money
    return np.where(pays, net, 0.0), pause + then


def _admitted(plan: Plan, pool: int, more: int, seconds: float) -> bool:
    """Whether so many more devices of a pool are free, and nobody who has a reservation is delayed."""
    pools, devices = np.array([[pool]]), np.array([[more]])
    return bool(plan.admits(pools, devices, np.array([seconds]))[0])
