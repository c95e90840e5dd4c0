"""Which way a job takes: features of its ways, and who makes scores of them.

A scorer sees the ways of the job at hand, those that can be taken now and those that it would have to wait for; the
least score wins. The rule that ships weighs seconds and money; a trained network takes its place with the same means.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kuayu.scheduling.scene import Floats

FEATURES = ("waits", "begins", "runs", "moving", "exchanging", "price", "devices", "crowd", "lost", "size", "age")
"""Columns of features, by row:

- ``waits``: seconds until the devices are free, nought where they are free now;
- ``begins``: seconds from then until the first step; ``runs``: seconds from then until the end;
- ``moving``, ``exchanging``, ``price``: money for data and checkpoint, for exchanges, for devices;
- ``devices``: how many are held;
- ``crowd``: seconds by which holding them delays others, all told;
- ``lost``: device seconds that are held without being what the devices could be at best;
- ``size``: devices that the job asked for; ``age``: seconds since it was submitted. Both are the same in all rows.
"""
WAITS, BEGINS, RUNS, MOVING, EXCHANGING, PRICE, DEVICES, CROWD, LOST, SIZE, AGE = range(len(FEATURES))


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much; only their ratios matter.

    Attributes:
        period: Seconds from submission to end, those of others included.
        communication: Money for bandwidth.
        utilisation: Device seconds that are lost.
        price: Money for devices.
    """

    period: float = 1.0
    communication: float = 1.0
    utilisation: float = 1.0
    price: float = 0.0


OWN = Weights()
"""Of the reference, where a request gives none."""


class Scorer(Protocol):
    """Makes scores of features."""

    def scores(self, features: Floats, weights: Weights) -> Floats:
        """What each way is worth, the less the better.

        Args:
            features: Of the ways of one job, (ways, features); columns are ``FEATURES``.
            weights: What counts.
        """


@dataclass(frozen=True, slots=True)
class Rule:
    """A weighted sum.

    What money and waiting count was tuned by ``kuayu train rule`` in worlds that no judge takes
    (``docs/results/scheduling/tuning.json``).

    Attributes:
        money: Seconds that a unit of money for bandwidth is worth.
        lost: Seconds that a device second is worth that is lost.
        price: Seconds that a unit of money for devices is worth.
        doubt: What a second of waiting counts; more than one, since who waits may wait in vain.
    """

    money: float = 220.0
    lost: float = 0.05
    price: float = 1.0
    doubt: float = 4.0

    def scores(self, features: Floats, weights: Weights) -> Floats:
        """Seconds until the end and what others wait longer; money and devices in seconds."""
        total = weights.period + weights.communication + weights.utilisation + weights.price
        seconds = self.doubt * features[:, WAITS] + features[:, BEGINS] + features[:, RUNS]
        period = seconds + features[:, CROWD]
        communication = self.money * (features[:, MOVING] + features[:, EXCHANGING])
        scores: Floats = (
            weights.period * period
            + weights.communication * communication
            + weights.utilisation * self.lost * features[:, LOST]
            + weights.price * self.price * features[:, PRICE]
        ) / (total or 1.0) + LEAST * seconds
        return np.where(np.isfinite(features[:, RUNS] + features[:, BEGINS]), scores, np.inf)

    def waiting(self, weights: Weights) -> float:
        """What a second of waiting adds to a score."""
        total = weights.period + weights.communication + weights.utilisation + weights.price
        return self.doubt * (weights.period / (total or 1.0) + LEAST)


LEAST = 1e-6
"""Of ways that the weights hold for equal, the sooner one."""
