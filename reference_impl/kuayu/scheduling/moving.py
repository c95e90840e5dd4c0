"""Running jobs that go on elsewhere, or on more devices, where some would be idle.

Whoever started on slow devices, or on few, need not stay there once better ones are free and nobody who waits takes
them: it writes a checkpoint and goes on. It is interrupted only if that is little beside what it has before it, and if
it ends clearly sooner, what it costs included.
"""

import numpy as np

from kuayu.scheduling.candidates import MONEY
from kuayu.scheduling.deciding import Decided
from kuayu.scheduling.elsewhere import Elsewhere
from kuayu.scheduling.room import Moved
from kuayu.scheduling.scene import Counts, Floats, Numbers, Scene
from kuayu.scheduling.worth import worthiness

LONGEST = 5e-3
"""Share of what a job has before it that its interruption may take."""
SOONER = 0.1
"""Share of what it has before it that it must gain."""
GAIN = 10.0
"""Seconds that must be gained for each that it is interrupted."""
AHEAD = 7200.0
"""Seconds for which it counts what a job gains; later others may want its devices."""
COMING = 0.05
"""Part of the running jobs that count as if they waited: as many will come."""


def moved(scene: Scene, decided: Decided, but: frozenset[int] = frozenset()) -> list[Moved]:
    """Jobs that go on with devices that nobody who waits is given, those that gain most first.

    Args:
        scene: What was decided on.
        decided: What was decided.
        but: Numbers of jobs that something else becomes of.
    """
    plan = decided.plan
    found = list(decided.yielding)
    gone = {each.job for each in found}
    spare = np.flatnonzero(plan.free > 0)
    if not len(spare):
        return found
    now = Elsewhere(scene)
    row, pool, devices = _ways(scene, now, spare, plan.free)
    gained, seconds = _gained(scene, decided, now, row, pool, devices)
    for way in np.lexsort((np.arange(len(row)), -gained)).tolist():
        if gained[way] <= 0.0:
            break
        its, where, count = int(row[way]), int(pool[way]), int(devices[way])
        mover, stays = int(now.job[its]), bool(pool[way] == now.pool[its])
        more = count - int(now.devices[its]) * stays
        if mover in gone or mover in but or not plan.leaves(where, more, float(seconds[way])):
            continue
        bought = plan.shop.cheapest(mover, where, more, float(seconds[way]))
        if stays and bought != now.bought[its]:
            continue
        plan.take(mover, np.array([where]), np.array([more]), float(seconds[way]))
        gone.add(mover)
        found.append(Moved(mover, where, count, stays, bought))
    return found


def _ways(scene: Scene, now: Elsewhere, spare: Numbers, free: Counts) -> tuple[Numbers, Numbers, Counts]:
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
    scene: Scene, decided: Decided, running: Elsewhere, row: Numbers, pool: Numbers, devices: Counts
) -> tuple[Floats, Floats]:
    """Seconds that ways gain, less what they cost others and in money, and seconds that are left on them then.

    Nought is gained where it does not pay.
    """
    jobs, pools, value = scene.jobs, scene.pools, worthiness(scene)
    was, held, left = running.pool[row], running.devices[row], running.left[row]
    change = running.change(row, pool, devices)
    with np.errstate(divide="ignore", invalid="ignore"):
        then = left / change.speed
        near = np.minimum(left, AHEAD)
        gained = np.minimum(left - then, near * (1.0 - 1.0 / change.speed)) - change.pause
    waiting = scene.waiting - sum(turn.starts for turn in decided.turns)
    crowd = (waiting + COMING * (len(jobs) - scene.waiting)) / max(int(pools.devices.sum()), 1)
    others = crowd * (value[pool] * devices * (change.pause + then) - value[was] * held * left)
    pays = (gained >= SOONER * near) & (gained >= GAIN * change.pause) & (change.pause <= LONGEST * left)
    with np.errstate(invalid="ignore"):
        net = gained - others - MONEY * change.money
    return np.where(pays & np.isfinite(then), net, 0.0), change.pause + then
