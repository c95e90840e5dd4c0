"""Damping: what is said of single moments becomes a state that holds, and a probability that it is right.

A hidden Markov filter (Rabiner 1989): a state is left at a small rate, and each fresh sample adds its evidence. Strong
evidence shows at once, weak evidence only when it comes again. Successive samples are not independent, so their
evidence counts for less than its worth by a power that is fitted on the training generator.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import values as states
from kuayu.perception.recognition.network import Weights
from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.perception.recognition.values import WORKING, Flags, Floats, Places


@dataclass(frozen=True, slots=True)
class Damping:
    """Parameters of the filter, fitted on the training generator.

    Attributes:
        leaving: Rate at which a state is left, in 1/s.
        strength: Power to which the evidence of a fresh sample is taken.
        stale: The same for each second without a fresh sample, in which only other nodes have changed.
        margin: Probability above which another state is shown.
        confidence: Offset and slope of the log odds that the state is right, on those of the filter.
        silence: The same for silence, on the logarithm of how long a node is missed over its threshold.
    """

    leaving: float
    strength: float
    stale: float
    margin: float
    confidence: tuple[float, float] = (0.0, 1.0)
    silence: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, weights: Weights, name: str) -> "Damping":
        """Parameters of the recogniser of that name, as they are shipped."""
        leaving, strength, stale, margin, *fitted = (float(weight) for weight in weights[f"{name}.damping"])
        return cls(leaving, strength, stale, margin, (fitted[0], fitted[1]), (fitted[2], fitted[3]))

    def to_weights(self) -> Floats:
        """The same as an array."""
        return np.array(
            [self.leaving, self.strength, self.stale, self.margin, *self.confidence, *self.silence], np.float32
        )


@dataclass(slots=True)
class _Rows:
    belief: Annotated[Floats, Column(1 / WORKING, np.float32, WORKING)]
    shown: Annotated[NDArray[np.int8], Column(states.BUSY, np.int8)]


class Belief:
    """Probability of each state for each node, and the state that is shown."""

    def __init__(self, nodes: int, damping: Damping) -> None:
        self._rows = blank(_Rows, nodes)
        self._by = damping

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    @property
    def shown(self) -> NDArray[np.int8]:
        """The states that are shown, (nodes,)."""
        return self._rows.shown

    def update(self, said: Floats, fresh: Flags, back: Flags, step: float) -> tuple[NDArray[np.int8], Floats]:
        """Take in the evidence of the moment; returns the states shown and their log odds.

        Args:
            said: Logarithms of the probabilities of the states, (states, nodes).
            fresh: Whether a newer sample of the node has come, (nodes,).
            back: Whether it was gone until now, so that what was believed of it counts no longer.
            step: Seconds since the last call.
        """
        rows, by = self._rows, self._by
        prior = np.where(back, np.float32(1 / WORKING), rows.belief)
        left = np.float32(1 - np.exp(-by.leaving * step))
        prior = prior * (1 - left * WORKING / (WORKING - 1)) + left / (WORKING - 1)
        weight = np.where(fresh, np.float32(by.strength), np.float32(by.stale * min(step, 1.0)))
        posterior = prior * np.exp(np.maximum(said * weight, -20.0))
        rows.belief = posterior / posterior.sum(axis=0)
        likeliest = rows.belief.argmax(axis=0)
        sure = rows.belief.max(axis=0) > by.margin
        rows.shown = np.where(sure | back, likeliest, rows.shown).astype(np.int8)
        shown_belief = np.take_along_axis(rows.belief, rows.shown[None].astype(np.intp), axis=0)[0]
        return rows.shown.copy(), np.log(shown_belief + 1e-6) - np.log1p(1e-6 - shown_belief)


def calibrated(odds: Floats, line: tuple[float, float]) -> Floats:
    """Probability from log odds and the line that was fitted to them (Platt 1999)."""
    probabilities: Floats = (1 / (1 + np.exp(-np.clip(line[0] + line[1] * odds, -20, 20)))).astype(np.float32)
    return probabilities
