"""Courses of trainings, and the phases that they go through."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]

WARM_UP, FAST, STABLE = "warm_up", "fast_convergence", "stable_convergence"
PHASES = (WARM_UP, FAST, STABLE)
"""In the order in which a training goes through them; each may be missing."""

STRETCH = 1.25
"""How many times as many steps a window reaches over, where it holds points enough."""

KNOWN = STRETCH**2
"""How many times as many steps as a step has a run must have so that no end of it plays a part in the step's label.

That is where windows hold points enough; what is exact is :func:`kuayu_conformance.testbed.curves.labels.known_at`.
"""

_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Curve:
    """Course of a training.

    Attributes:
        name: Which training.
        source: Where it comes from: ``generated``, or a data set with the kind of model.
        steps: Steps at which something is known, rising, counted from one; of shape (points,).
        losses: Loss of training at each of them, more than nought.
        rates: Learning rate at each of them.
    """

    name: str
    source: str
    steps: Steps
    losses: Floats
    rates: Floats

    def __post_init__(self) -> None:
        """Check what everything else relies on.

        Raises:
            ValueError: Steps do not rise from one, a loss is not positive, or lengths differ.
        """
        length = len(self.steps)
        if not length or len(self.losses) != length or len(self.rates) != length:
            raise ValueError(f"{self.name}: steps, losses and learning rates must be as many")
        if self.steps[0] < 1 or not all(later > earlier for earlier, later in pairwise(self.steps.tolist())):
            raise ValueError(f"{self.name}: steps must rise from one")
        if not bool(np.all(self.losses > 0.0) and np.all(np.isfinite(self.losses))):
            raise ValueError(f"{self.name}: a loss must be more than nought")


def rounded(values: Floats) -> Floats:
    """Five digits of each, as logs have them; whatever the last ones of a processor are, these are the same."""
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values.tolist()])
