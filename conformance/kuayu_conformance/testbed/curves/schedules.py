"""Learning rates over the steps of a run, as shares of their highest."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kuayu_conformance.testbed.curves.values import Floats, Steps

Decay = Literal["constant", "linear", "cosine", "stable"]
DECAYS: tuple[Decay, ...] = ("constant", "linear", "cosine", "stable")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A learning rate that rises in a line, and then falls.

    Attributes:
        warm_up: Steps in which it rises; nought where it begins at its highest.
        decay: How it falls: not at all, in a line, as half a cosine (I. Loshchilov and F. Hutter, "SGDR", ICLR 2017),
            or in a line over the last part after having been constant (WSD: S. Hu et al., "MiniCPM", COLM 2024).
        until: Step at which it is lowest.
        lowest: What it falls to, as a share of the highest.
        falls_from: Share of the steps until then after which a stable one begins to fall.
    """

    warm_up: float
    decay: Decay
    until: float
    lowest: float = 0.1
    falls_from: float = 0.8

    def shares(self, steps: Steps) -> Floats:
        """Learning rate at each step over the highest, of shape (points,)."""
        rising = np.minimum(1.0, steps / self.warm_up) if self.warm_up > 0 else np.ones(len(steps))
        begin = self.falls_from * self.until if self.decay == "stable" else self.warm_up
        through = np.clip((steps - begin) / max(self.until - begin, 1.0), 0.0, 1.0)
        if self.decay == "constant":
            left = np.ones(len(steps))
        elif self.decay == "cosine":
            left = 0.5 * (1.0 + np.cos(np.pi * through))
        else:
            left = 1.0 - through
        shares: Floats = np.where(steps < self.warm_up, rising, self.lowest + (1.0 - self.lowest) * left)
        return shares
