"""In which order waiting jobs take turns: by priority, then who has waited too long, then by what they hold.

Small jobs first makes the mean period short (W. E. Smith, "Various optimizers for single-stage production", Naval
Research Logistics Quarterly 3, 1956); whoever has waited several times its own length goes before, so that large jobs
come to their turn.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.scheduling.scene import Numbers, Scene


@dataclass(frozen=True, slots=True)
class Manners:
    """How jobs take turns.

    Attributes:
        area: Exponent of the devices in what a job is ordered by; that of its seconds is one.
        patience: A job that has waited so many times its own length goes before others.
        least: Seconds that its length counts at least.
        kept: Jobs that wait whose devices nobody else may hold when they come free.
        eager: Part of the running jobs that count as if they waited: as many will come.
        gang: Exponent of the devices by which less is made of those whom a large job delays: it delays many wherever it
            goes, and would go where devices are slow for ever.
    """

    area: float = 0.25
    patience: float = 4.0
    least: float = 600.0
    kept: int = 8
    eager: float = 0.05
    gang: float = 0.5


def ordered(scene: Scene, manners: Manners) -> Numbers:
    """Numbers of the waiting jobs in the order in which they take turns."""
    jobs, waiting = scene.jobs, np.arange(scene.waiting)
    best = np.maximum(scene.worth[waiting].max(axis=1, initial=0.0), 1e-9)
    asked = jobs.requested[waiting].astype(np.float64)
    # work is told in seconds of busy devices, whose number is not known before they were measured
    seconds = jobs.left[waiting] / np.maximum(asked * jobs.used[waiting], 1e-9) / best
    overdue = -jobs.submitted[waiting] > manners.patience * np.maximum(seconds, manners.least)
    key = np.where(overdue, jobs.submitted[waiting], np.maximum(seconds, 1.0) * asked**manners.area)
    return np.lexsort((waiting, key, ~overdue, -jobs.priority[waiting]))
