"""What anybody can do who knows only what was before: a recogniser to hold others against.

It applies the definition to the past alone. It says that warm-up is over once the learning rate does not rise,
and that convergence is stable once everything lies behind that the definition looks at: after 1.25² times as many
steps, or twenty points where these reach further.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.curves.labels import (
    NEVER,
    Switches,
    begin_of_stability,
    known_at,
    next_higher,
    reach_of_rates,
)
from kuayu_conformance.testbed.curves.values import FAST, STABLE, WARM_UP, Curve


@dataclass(frozen=True)
class Delayed:
    """The definition applied to the past alone.

    Attributes:
        curve: The training.
        higher: For each point the place of the next higher learning rate.
        reach: For each point the place behind the last one that is looked at for it.
        shown: Place at which it shows that convergence is stable; beyond all others where it does not.
    """

    curve: Curve
    higher: NDArray[np.intp]
    reach: NDArray[np.intp]
    shown: int

    @classmethod
    def of(cls, curve: Curve, truth: Switches) -> "Delayed":
        """The recogniser of a curve. Whatever it is told here, it says nothing of a step before that has passed."""
        begin = None if truth.fast is None else begin_of_stability(curve.steps, curve.losses, truth.fast)
        shown = NEVER if begin is None else int(known_at(curve.steps)[begin])
        return cls(curve, next_higher(curve.rates), reach_of_rates(curve.steps), shown)

    def phase(self, place: int) -> str:
        """Phase at a point, by the points until there."""
        over = (self.higher > place) | (self.higher >= self.reach)
        if not over[:place].any():
            return WARM_UP
        return STABLE if place >= self.shown else FAST
