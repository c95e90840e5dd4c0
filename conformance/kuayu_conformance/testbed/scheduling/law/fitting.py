"""Fits the penalty on quality to what was published."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from kuayu_conformance.testbed.scheduling.law.evidence import (
    FITTED,
    LONGER_PERIODS,
    LONGER_REPLICAS,
    LONGER_RISE,
    LONGER_TOKENS,
    Cell,
)
from kuayu_conformance.testbed.scheduling.law.facts import DATA_EXPONENT, DATA_TERM

Floats = NDArray[np.float64]

_BEGIN = (-4.0, 0.9, 3.0, 0.0)


@dataclass(frozen=True, slots=True)
class Fit:
    """What it comes to.

    Attributes:
        gap: Share by which two replicas enlarge the part of the loss that tokens reduce, over the logarithm.
        replicas: Exponent of the replicas beyond the first.
        scale: Steps.
        tokens: Exponent of the tokens over 20 billion, if it was fitted; else zero.
        error: Standard error of that exponent.
        misfit: Root mean square of what is left, in nats.
        term: The part of the loss that one token reduces.
        falling: Exponent by which it falls with tokens.
    """

    gap: float
    replicas: float
    scale: float
    tokens: float
    error: float
    misfit: float
    term: float
    falling: float

    def share(self, replicas: float, period: float, tokens: float) -> float:
        """By what share the part of the loss that tokens reduce is larger."""
        grown = np.power(replicas - 1.0, self.replicas) * np.log1p(period / self.scale)
        return float(self.gap * grown * np.power(tokens / _MIDDLE, self.tokens))

    def rise(self, cell: Cell) -> float:
        """What the gap of a cell should be, in nats."""
        reduced = self.term * float(np.power(cell.tokens, -self.falling))
        return self.share(cell.replicas, cell.period, cell.tokens) * reduced

    def penalty(self, replicas: float, period: float) -> float:
        """How many times as many tokens it takes to the same loss."""
        return float((1.0 + self.share(replicas, period, _MIDDLE)) ** (1.0 / self.falling))


_MIDDLE = 20e9


def fit(term: float = DATA_TERM, falling: float = DATA_EXPONENT, *, by_tokens: bool = False) -> Fit:
    """Least squares over all cells, in nats.

    Args:
        term: The part of the loss that one token reduces.
        falling: Exponent by which it falls with tokens.
        by_tokens: Whether the share may depend on tokens, and so on the size of the model.
    """
    free = 4 if by_tokens else 3

    def read(found: Floats) -> Fit:
        tokens = float(found[3]) if by_tokens else 0.0
        return Fit(float(np.exp(found[0])), float(found[1]), float(np.exp(found[2])), tokens, 0.0, 0.0, term, falling)

    def left(found: Floats) -> Floats:
        tried = read(found)
        low, high = (Cell(LONGER_TOKENS, LONGER_REPLICAS, period, 0.0, 0.0) for period in LONGER_PERIODS)
        rest = [tried.rise(cell) - cell.gap for cell in FITTED]
        return np.array([*rest, tried.rise(high) - tried.rise(low) - float(np.log1p(LONGER_RISE))])

    answer: Any = least_squares(left, _BEGIN[:free])
    found, rest = read(answer.x), left(answer.x)
    error = 0.0
    if by_tokens:
        spread = np.linalg.inv(answer.jac.T @ answer.jac) * float(rest @ rest) / (len(rest) - free)
        error = float(np.sqrt(spread[3, 3]))
    misfit = float(np.sqrt(np.mean(rest * rest)))
    return Fit(found.gap, found.replicas, found.scale, found.tokens, error, misfit, term, falling)
