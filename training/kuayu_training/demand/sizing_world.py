"""Tasks drawn after the published figures of Yang, Hong and Tang (High Technology Letters 2023, 33(5)).

This is NOT the trace that they used (Alibaba PAI), which is not at hand. From the paper: mean use by kind (table 1),
mean duration by kind as MAE over WMAPE and what cannot be explained of it (table 3), the mixes of experiment 2, and how
much of the cores that were asked for could be saved (28.5 %). Assumed: all distributions (log-normal), the duration of
graph learning (table 3 leaves it out), and that accelerators and memory are asked for as generously as cores.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kuayu.demand.strategy import Floats

if TYPE_CHECKING:
    from kuayu_schemas import documents

HOUR, GB = 3600.0, 1e9


@dataclass(frozen=True)
class Kind:
    """Published figures of a kind of task.

    Attributes:
        use: Mean accelerators, cores, bytes of memory (table 1).
        hours: Mean duration, MAE/WMAPE of XGBoost (table 3).
        noise: WMAPE of XGBoost (table 3), taken for what cannot be explained.
        published: MAE and WMAPE of XGBoost and of the random forest; none for graph learning.
    """

    use: tuple[float, float, float]
    hours: float
    noise: float
    published: tuple[float, float, float, float] | None


KINDS = {
    "CTR": Kind((0.068, 3.9, 2.8 * GB), 0.16 / 0.13, 0.13, (0.16, 0.13, 0.17, 0.14)),
    "GraphLearn": Kind((0.008, 11.9, 9.5 * GB), 3.0, 0.13, None),
    "NMT": Kind((0.341, 10.6, 10.0 * GB), 0.75 / 0.11, 0.11, (0.75, 0.11, 1.01, 0.15)),
    "ResNet": Kind((0.302, 2.1, 19.9 * GB), 1.45 / 0.15, 0.15, (1.45, 0.15, 1.46, 0.16)),
}

MIXES = {
    "5:15:15:65": {"ResNet": 0.05, "NMT": 0.15, "GraphLearn": 0.15, "CTR": 0.65},
    "40:30:20:10": {"ResNet": 0.40, "NMT": 0.30, "GraphLearn": 0.20, "CTR": 0.10},
}

OVER = 1 / (1 - 0.285)
"""Asked for over needed, median: 28.5 % of the cores could be saved."""


@dataclass(frozen=True)
class Tasks:
    """N tasks with the truth about them.

    Attributes:
        kind: Names of kinds, N.
        given: What they ask for and get, N × 3.
        used: Mean use, N × 3.
        peak: The most that they use if they can, N × 3.
        duration: Seconds on what they ask for, N.
    """

    kind: list[str]
    given: Floats
    used: Floats
    peak: Floats
    duration: Floats

    def history(self) -> "list[documents.TaskRecord]":
        """As ``TaskRecord``."""
        columns = zip(self.kind, self.given, self.used, self.peak, self.duration, strict=True)
        return [
            {
                "kind": kind,
                "requested": resources(given),
                "used": resources(used),
                "peak": resources(peak),
                "duration": float(duration),
            }
            for kind, given, used, peak, duration in columns
        ]


def resources(values: Floats) -> "documents.TaskResources":
    """As ``TaskResources``."""
    return {"devices": float(values[0]), "cores": float(values[1]), "memory": float(values[2])}


def draw(random: np.random.Generator, count: int, mix: str, over: float = OVER) -> Tasks:
    """Tasks of a mix.

    Args:
        random: Chance.
        count: How many.
        mix: One of MIXES.
        over: Asked for over peak, median; at one, everybody asks for the peak.
    """
    names = random.choice(list(MIXES[mix]), count, p=list(MIXES[mix].values()))
    kinds = [KINDS[name] for name in names]
    size = random.lognormal(-0.125, 0.5, count)
    used = np.array([kind.use for kind in kinds]) * size[:, None] * random.lognormal(-0.02, 0.2, (count, 3))
    peak = used * (1 + random.gamma(2.0, 0.1, (count, 3)))
    # Generosity is a habit of people: the same for all that one asks for, but for a little.
    spread = 0.0 if over <= 1 else 0.15
    habit = np.log(max(over, 1.0)) + spread * random.standard_normal((count, 1))
    given = peak * np.exp(np.maximum(habit + spread / 3 * random.standard_normal((count, 3)), 0.0))
    # A mean absolute deviation of w is a standard deviation of 1.25 w.
    noise = np.array([1.25 * kind.noise for kind in kinds]) * random.standard_normal(count)
    seconds = HOUR * np.array([kind.hours for kind in kinds]) * size * np.exp(noise)
    return Tasks([str(name) for name in names], given, used, peak, seconds)
