"""Variances from a corpus: they maximise the evidence of its measurements times their prior.

The gradient is the usual one, ½ tr((K⁻¹ − ααᵀ) ∂K/∂v) (Rasmussen and Williams 2006, equation 5.9), with K⁻¹ taken
device by device for what varies between devices and on the tasks' parameters for what varies between tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from kuayu.index.observations import Floats
from kuayu.index.posterior import Hints, Linear, Solved, solve, spread_of
from kuayu.index.variances import OF_DEVICES, PRIOR_SPREAD, USUAL, TaskPrior, Variances

STEPS = 6
"""Steps of the search. Few are enough: the prior is narrow and the optimum flat."""


@dataclass(frozen=True)
class Batch:
    """Rows with the shapes that their covariance is made of.

    Attributes:
        linear: The rows.
        shapes: Derivatives of the covariance by each variance, (len(OF_DEVICES), B, n, n).
        fixed: Covariance that no variance scales, (B, n, n).
    """

    linear: Linear
    shapes: Floats
    fixed: Floats

    def noise(self, variances: Variances) -> Floats:
        """Covariance of the rows given the tasks' parameters."""
        return np.tensordot(variances.devices, self.shapes, axes=1) + self.fixed


def solve_at(batches: Sequence[Batch], prior: TaskPrior, hints: Hints, variances: Variances) -> Solved:
    """Posterior at given variances."""
    noises = [batch.noise(variances) for batch in batches]
    width = prior.terms + prior.features
    return solve([batch.linear for batch in batches], noises, prior.precision(variances), hints, width)


def search(batches: Sequence[Batch], prior: TaskPrior, hints: Hints, start: Floats, steps: int = STEPS) -> Floats:
    """Logarithms of the likeliest variances, from ``start``."""
    usual = np.log(USUAL)

    def cost(logs: Floats) -> tuple[float, Floats]:
        away = (logs - usual) / PRIOR_SPREAD
        value, slope = _cost(batches, prior, hints, logs)
        return value + 0.5 * float(away @ away), slope + away / PRIOR_SPREAD

    bounds = [(low, high) for low, high in zip(usual - 4.0, usual + 4.0, strict=True)]
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    return np.asarray(found.x, dtype=float)


def _cost(batches: Sequence[Batch], prior: TaskPrior, hints: Hints, logs: Floats) -> tuple[float, Floats]:
    variances = Variances.of(logs)
    solved = solve_at(batches, prior, hints, variances)
    width = prior.terms + prior.features
    on_devices = np.zeros(len(OF_DEVICES))
    for batch, inverse, pull in zip(batches, solved.inverses, solved.pulls, strict=True):
        held = spread_of(batch.linear, inverse, solved.covariance, width) - pull[:, :, None] * pull[:, None, :]
        on_devices += np.tensordot(batch.shapes, held, axes=3) / 2
    on_tasks = prior.slopes(variances, solved.covariance, solved.mean) / 2
    return solved.cost, np.concatenate([on_devices, on_tasks]) * np.exp(logs)
