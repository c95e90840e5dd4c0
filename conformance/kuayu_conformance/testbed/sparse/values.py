"""What a world of sparse telemetry consists of. Times are seconds since the beginning of the warm-up."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DOMAINS = 4

GRACE = 10.0
"""Seconds within which a state has to be recognised (MET-006)."""

LASTING = 5.0
"""Seconds for which a state must be shown to count as recognised, as in MET-006."""

SAMPLES = 2
"""Samples that are waited for beyond it, where they come seldom: one that differs may be a slip."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a world is: units with which nothing is wrong, units that stop, seconds before judging, and after."""

    healthy: int
    faulty: int
    warm_up: int
    seconds: int

    @property
    def total(self) -> int:
        """Seconds from the beginning of the warm-up to the end."""
        return self.warm_up + self.seconds


QUICK = Scale(healthy=520, faulty=480, warm_up=48, seconds=62)
FULL = Scale(healthy=2600, faulty=2400, warm_up=48, seconds=92)
"""With one unit of 480 shown wrongly the exact bound is 99.0 %; with thirteen of 2 400 too."""


@dataclass(slots=True)
class Activity:
    """What the accelerators of a node do in each second.

    Attributes:
        utilisation: Share of the time in which they compute, or wait busily.
        effort: How much of what they can do gets done; pipes, memory and flows follow it.
        power: Where their power stands between that at rest (0) and the most (1).
        memory: Share of their memory that is held.
        works: Whether they work, which is the truth of a node that is well.
        faults: Faults that are counted, or one in each second in which one stands.
        fails: Whether what was given to the node does not go on any more.
    """

    utilisation: Floats
    effort: Floats
    power: Floats
    memory: Floats
    works: Flags
    faults: Floats
    fails: Flags

    @classmethod
    def of(cls, utilisation: Floats, effort: Floats, power: Floats, memory: Floats) -> "Activity":
        """Activity of a node that is well; it works where anything is computed."""
        none = np.zeros(len(utilisation))
        return cls(utilisation, effort, power, memory, utilisation > 0, none, none > 0)


@dataclass(frozen=True, slots=True)
class Unit:
    """One node, or one family, of which one thing is judged: whether it is shown rightly.

    Attributes:
        pattern: What it does.
        measures: What it sends.
        nodes: Its nodes; of a family that stops, the one that does so is the first.
        works: Whether it works, by second.
        onset: Second from which it does not go on; None where nothing is wrong.
        patience: Seconds after a change within which it need not be shown.
    """

    pattern: str
    measures: tuple[str, ...]
    nodes: tuple[str, ...]
    works: Flags
    onset: int | None
    patience: float
