"""What devices are worth to the jobs of a scene, and where a job is at its best among them.

Comparative advantage: D. Ricardo, "On the principles of political economy and taxation", 1817, chapter 7.
"""

import numpy as np

from kuayu.scheduling.scene import Floats, Scene
from kuayu.scheduling.ways import Outlook, Ways

MOST = 10.0
"""Times the median at which the work of a job counts at most in what devices are worth."""
LEAST = 0.05
"""What a device is worth at least over the mean of all."""


def worthiness(scene: Scene) -> Floats:
    """What a device of each pool is worth over the mean of all, for the jobs of the scene; about one, by pool."""
    relative = _relative(scene)
    some = relative.any(axis=1)
    if not some.any():
        return np.ones(len(scene.pools.devices))
    work = scene.jobs.left[some]
    weight = np.minimum(work, np.median(work) * MOST) + LEAST
    value: Floats = np.maximum((relative[some] * weight[:, None]).sum(axis=0) / weight.sum(), LEAST)
    return value


def advantage(scene: Scene, ways: Ways, outlook: Outlook, rated: Floats) -> Floats:
    """Work a second of the devices of a way over what they are worth to all; one where it is the same, by row.

    Args:
        scene: Its jobs.
        ways: Rows.
        outlook: What they lead to.
        rated: What their devices are worth, all together.
    """
    mean = _mean(scene)[ways.job]
    return outlook.worth / np.maximum(mean, LEAST) * outlook.devices / np.maximum(rated, LEAST)


def _mean(scene: Scene) -> Floats:
    """Mean index of all devices that a job can run on, by job."""
    worth = scene.worth[:, scene.pools.accelerator]
    devices = scene.pools.devices
    found: Floats = (worth * devices).sum(axis=1) / np.maximum(((worth > 0.0) * devices).sum(axis=1), 1)
    return found


def _relative(scene: Scene) -> Floats:
    """Index of a device of each pool over the mean of all, (jobs, pools); nought where a job runs nowhere."""
    mean = _mean(scene)[:, None]
    worth = scene.worth[:, scene.pools.accelerator]
    return np.divide(worth, mean, out=np.zeros_like(worth), where=mean > 0.0)
