"""What share of its devices a job keeps busy before it has run: as jobs of its profile that were measured do.

Whoever asks for devices asks for more than are kept busy; those of a job become known with its first step. Until then
the measured ones of its profile stand for it, together with a few that are spread over all shares.
"""

import numpy as np

from kuayu.scheduling.scene import Floats, Numbers, Scene
from kuayu.scheduling.speeds import gain

SHARES: Floats = (np.arange(8, dtype=np.float64) + 0.5) / 8.0
"""Shares that are told apart: the middles of eighths."""
PRIOR = 4.0
"""Measured jobs that the even spread over all shares counts as much as."""


class Habits:
    """Shares of devices that are kept busy, by profile.

    Args:
        scene: Its jobs that were measured.
    """

    def __init__(self, scene: Scene) -> None:
        jobs = scene.jobs
        counts = np.full((len(scene.index) + 1, len(SHARES)), PRIOR / len(SHARES))
        known = np.flatnonzero(jobs.measured)
        eighth = np.minimum((jobs.used[known] * len(SHARES)).astype(np.intp), len(SHARES) - 1)
        np.add.at(counts, (jobs.profile[known], eighth), 1.0)
        self._chances = counts / counts.sum(axis=1, keepdims=True)
        self._jobs = jobs

    def longer(self, job: Numbers, devices: Floats) -> Floats:
        """How many times as long jobs take on so many devices as on those that they asked for, by row."""
        jobs = self._jobs
        asked, serial = jobs.requested[job].astype(np.float64), jobs.serial[job]
        found = np.ones(len(job))
        known = jobs.measured[job]
        found[known] = _longer(
            jobs.used[job[known]], asked[known], np.minimum(devices, jobs.maximum[job])[known], serial[known]
        )
        open_ones = np.flatnonzero(~known & (devices != asked))
        if len(open_ones):
            job, devices = job[open_ones], np.minimum(devices, jobs.maximum[job])[open_ones]
            by_share = _longer(SHARES[None, :], asked[open_ones, None], devices[:, None], serial[open_ones, None])
            found[open_ones] = (by_share * self._chances[jobs.profile[job]]).sum(axis=1)
        return found


def _longer(used: Floats, asked: Floats, devices: Floats, serial: Floats) -> Floats:
    busy = used * asked
    return gain(busy, serial) / gain(np.minimum(devices, used * np.maximum(devices, asked)), serial)
