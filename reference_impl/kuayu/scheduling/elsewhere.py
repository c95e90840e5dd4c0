"""What it means for a running job to go on in another pool or on other devices: how fast, and what the change costs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kuayu.scheduling.habits import Habits
from kuayu.scheduling.running import paces
from kuayu.scheduling.scene import NONE, Counts, Floats, Numbers, Scene
from kuayu.scheduling.speeds import BITS, restart, saving


@dataclass(frozen=True, slots=True)
class Change:
    """What changes lead to, by row.

    Attributes:
        speed: Speed then over speed now.
        saves: Seconds until the checkpoint is written and the devices are given back.
        pause: Seconds without steps, these included; infinite where the job cannot go.
        money: For data and checkpoint.
    """

    speed: Floats
    saves: Floats
    pause: Floats
    money: Floats


class Elsewhere:
    """Running jobs that can be changed: undisturbed, in one pool, and known in what they keep busy.

    Attributes:
        job: Numbers of these jobs.
        pool: Where each is.
        devices: How many it holds.
        bought: Number of the way of buying them.
        left: Seconds that it has before it where it is.

    Args:
        scene: Its running jobs.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        shares = _undisturbed(scene)
        held = scene.held
        self.job, self.pool = held.holder[shares], held.pool[shares]
        self.devices, self.bought = held.devices[shares], held.purchase[shares]
        self.left: Floats = scene.jobs.left[self.job] / held.rate[self.job - scene.waiting]

    @cached_property
    def _habits(self) -> Habits:
        return Habits(self._scene)

    @cached_property
    def _paces(self) -> Floats:
        return paces(self._scene)

    def change(self, row: Numbers, pool: Numbers, devices: Counts) -> Change:
        """What it means for jobs to go on so.

        Args:
            row: Of the job among these.
            pool: Where it goes on.
            devices: On how many.
        """
        scene, jobs, pools, paths = self._scene, self._scene.jobs, self._scene.pools, self._scene.paths
        job, was, has = self.job[row], self.pool[row], self.devices[row].astype(np.float64)
        here, there, then = pools.domain[was], pools.domain[pool], devices.astype(np.float64)
        size, stays = jobs.checkpoint[job], was == pool
        sent = (here != there) & (size > 0.0)
        staging, paid = (np.where(stays, 0.0, each[job, there]) for each in scene.data_staging)
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = self._habits.longer(job, has) / self._habits.longer(job, then)
            speed *= scene.worth[job, pools.accelerator[pool]] / scene.worth[job, pools.accelerator[was]]
            moving = np.where(sent, size * BITS / paths.available[here, there], 0.0)
            money = np.where(sent, size * BITS * paths.tariff[here, there], 0.0)
        saves = saving(size, has)
        pause = saves + moving + staging + restart(size, then)
        return Change(speed * self._paces[there] / self._paces[here], saves, pause, money + paid)


def _undisturbed(scene: Scene) -> Numbers:
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
