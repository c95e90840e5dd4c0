"""How much devices and tasks vary: the variances of the model and what is thought of them beforehand.

All of them are variances of natural logarithms. The prior of each is log-normal around the value below. The values were
chosen on one development table, Lambda's series v1 (decision 8), and are the same for every corpus.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kuayu.index.terms import TERMS

Floats = npt.NDArray[np.float64]

OF_DEVICES = (*(str(term) for term in TERMS), "format", "device", "family", "misfit")
"""Effects of a device: on each capability, on the peak of one number format, on all of its tasks, on those of one
family, and on one task.
"""

FORMAT, DEVICE, FAMILY, MISFIT = (OF_DEVICES.index(name) for name in ("format", "device", "family", "misfit"))
"""Places of the effects that belong to no one capability."""

OF_WEIGHTS = ("pool", "weight-family", "weight-task")
"""Effects on a task's weights: of its set of number formats, of its family, of its own."""

OF_LIKENESS = ("likeness-task", "likeness-family")
"""Effects of a task, and of its family, on devices with like data sheets."""

NAMES = (*OF_DEVICES, *OF_WEIGHTS, *OF_LIKENESS)

USUAL = np.array([0.05, 0.05, 0.05, 0.02, 0.05, 0.02, 0.02, 0.01, 0.004, 0.02, 0.01, 0.02, 0.02, 0.01])
"""Medians of the priors, in the order of NAMES."""

PRIOR_SPREAD = 0.5
"""Standard deviation of the logarithm of each variance beforehand."""

COMMON_WEIGHT_VARIANCE = 0.3**2
"""Variance of a weight that all tasks share."""

SCALE_VARIANCE = 10.0**2
"""Variance of a task's unit of throughput: it says nothing."""

USUAL_WEIGHTS = np.array([0.4, 0.1, 0.4, 0.1, 0.1])
"""Weights that tasks start from on the usual device, in the order of the terms."""

_MARKS = np.cumsum([len(OF_DEVICES), len(OF_WEIGHTS)])


@dataclass(frozen=True)
class Variances:
    """Variances by what they belong to; each array in the order of its names above."""

    devices: Floats
    weights: Floats
    likeness: Floats

    @staticmethod
    def of(logs: Floats) -> "Variances":
        """Take the variances from a vector of their logarithms."""
        devices, weights, likeness = np.split(np.exp(logs), _MARKS)
        return Variances(devices, weights, likeness)


@dataclass(frozen=True)
class TaskPrior:
    """Prior of the tasks' parameters: K log demands and p likeness coefficients for each of T tasks.

    Attributes:
        pooled: One where two tasks have the same set of number formats, T × T.
        alike: One where two tasks are of one family, T × T.
        terms: K.
        features: p.
    """

    pooled: Floats
    alike: Floats
    terms: int
    features: int

    def blocks(self, variances: Variances) -> tuple[Floats, Floats, Floats]:
        """Covariances between tasks, T × T each: of demands across the direction of ones, along it, of likeness.

        Demands of a task share an unknown unit, so that their covariance is C ⊗ I + scale · I ⊗ 11ᵀ: on the direction
        of ones it is C + K · scale, across it C.
        """
        one = np.eye(len(self.alike))
        pool, family, own = variances.weights
        across = COMMON_WEIGHT_VARIANCE + pool * self.pooled + family * self.alike + own * one
        likeness = variances.likeness[0] * one + variances.likeness[1] * self.alike
        return across, across + self.terms * SCALE_VARIANCE * one, likeness

    def precision(self, variances: Variances) -> tuple[Floats, float]:
        """Inverse of the prior covariance, T(K + p) square and ordered by task, and that one's log determinant."""
        tasks, width = len(self.alike), self.terms + self.features
        blocks = np.array(self.blocks(variances))
        across, along, likeness = np.linalg.inv(blocks)
        ones = np.full((self.terms, self.terms), 1 / self.terms)
        rest = np.eye(self.terms) - ones
        inverse = np.zeros((tasks, width, tasks, width))
        inverse[:, : self.terms, :, : self.terms] = (
            across[:, None, :, None] * rest[None, :, None, :] + along[:, None, :, None] * ones[None, :, None, :]
        )
        for feature in range(self.terms, width):
            inverse[:, feature, :, feature] = likeness
        logs = np.linalg.slogdet(blocks)[1]
        size = (self.terms - 1) * logs[0] + logs[1] + self.features * logs[2]
        return inverse.reshape(tasks * width, tasks * width), float(size)

    def slopes(self, variances: Variances, covariance: Floats, mean: Floats) -> Floats:
        """Derivatives of twice the cost by the variances of tasks, tr((P⁻¹ − P⁻¹(A⁻¹ + ζζᵀ)P⁻¹) ∂P).

        Terms are turned so that ones is an axis; on the axes P is one block each, so that no product is larger than T.

        Args:
            variances: Where.
            covariance: A⁻¹, T(K + p) square.
            mean: ζ, (T, K + p).
        """
        tasks, width = mean.shape
        turn = np.eye(width)
        start = np.column_stack([np.ones(self.terms), np.eye(self.terms)[:, 1:]])
        turn[: self.terms, : self.terms] = np.linalg.qr(start)[0]
        turned = mean @ turn
        around = np.tensordot(covariance.reshape(tasks, width, tasks, width), turn, axes=(3, 0))
        second = np.einsum("aibk,ik->kab", around, turn) + np.einsum("ak,bk->kab", turned, turned)
        across, along, likeness = np.linalg.inv(np.array(self.blocks(variances)))
        inverses = np.array([along] + [across] * (self.terms - 1) + [likeness] * self.features)
        held = inverses - inverses @ second @ inverses
        weights, liking = held[: self.terms].sum(axis=0), held[self.terms :].sum(axis=0)
        own = [float(np.sum(weights * shape)) for shape in (self.pooled, self.alike, np.eye(tasks))]
        return np.array([*own, float(np.trace(liking)), float(np.sum(liking * self.alike))])
