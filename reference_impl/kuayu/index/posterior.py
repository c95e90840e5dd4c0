"""Gaussian posterior of tasks' parameters, devices integrated out, and the variances that it rests on.

1. With the model linear around a point, the log throughputs of device d are r_d = J_d ζ + ε_d, ε_d ~ N(0, Σ_d), and
   ζ ~ N(0, P) holds what belongs to tasks. Devices are independent given ζ, so

       ζ | r ~ N(A⁻¹ Σ_d J_dᵀ Σ_d⁻¹ r_d, A⁻¹),   A = P⁻¹ + Σ_d J_dᵀ Σ_d⁻¹ J_d

   costs one small inverse for each device and one for all tasks (Rasmussen and Williams 2006, section 2.7).
2. All variances are of natural logarithms. The prior of each is log-normal around the value below. The values were
   chosen on one development table, Lambda's series v1 (decision 8), and are the same for every corpus.
3. From a corpus they are those that maximise the evidence of its measurements times their prior (``search``). The
   gradient is the usual one, ½ tr((K⁻¹ − ααᵀ) ∂K/∂v) (Rasmussen and Williams 2006, equation 5.9), with K⁻¹ taken device
   by device for what varies between devices and on the tasks' parameters for what varies between tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from kuayu.index.capabilities import TERMS
from kuayu.index.observations import Floats, Whole


@dataclass(frozen=True)
class Linear:
    """A batch of B devices with n rows each, linear in the M parameters of each task.

    Attributes:
        task: Tasks of the rows, (B, n).
        slopes: J, (B, n, M); the parameters are those of the row's own task.
        found: r, (B, n).
    """

    task: Whole
    slopes: Floats
    found: Floats


@dataclass(frozen=True)
class Hints:
    """What is known of differences between two parameters of a task, such as from its work and memory traffic.

    Attributes:
        plus: Flat positions of the parameters that are added.
        minus: Flat positions of those that are taken away.
        found: Differences.
        variance: Their variances.
    """

    plus: Whole
    minus: Whole
    found: Floats
    variance: Floats


@dataclass(frozen=True)
class Solved:
    """Posterior at given variances.

    Attributes:
        mean: ζ, (T, M).
        covariance: A⁻¹, TM × TM, ordered by task.
        inverses: Σ_d⁻¹ of each batch, (B, n, n).
        pulls: Σ_d⁻¹ (r_d − J_d ζ) of each batch, (B, n).
        cost: Minus log evidence, but for a constant.
    """

    mean: Floats
    covariance: Floats
    inverses: tuple[Floats, ...]
    pulls: tuple[Floats, ...]
    cost: float


def positions(task: Whole, width: int) -> Whole:
    """Flat positions of the parameters of tasks (B, n): (B, n · width)."""
    return (task[:, :, None] * width + np.arange(width)).reshape(len(task), -1)


def solve(
    batches: Sequence[Linear], noises: Sequence[Floats], prior: tuple[Floats, float], hints: Hints, width: int
) -> Solved:
    """Solve for ζ.

    Args:
        batches: Rows.
        noises: Σ_d of each batch, (B, n, n).
        prior: P⁻¹ and log |P|.
        hints: What is known of differences beforehand.
        width: M.
    """
    precision, size = prior
    matrix, pull = precision.copy(), np.zeros(len(precision))
    spans = 1 / hints.variance
    for one, other, sign in ((hints.plus, hints.plus, 1), (hints.minus, hints.minus, 1)):
        np.add.at(matrix, (one, other), sign * spans)
    for one, other in ((hints.plus, hints.minus), (hints.minus, hints.plus)):
        np.add.at(matrix, (one, other), -spans)
    np.add.at(pull, hints.plus, spans * hints.found)
    np.add.at(pull, hints.minus, -spans * hints.found)
    inverses: list[Floats] = []
    for batch, noise in zip(batches, noises, strict=True):
        inverse = np.linalg.inv(noise)
        inverses.append((inverse + np.swapaxes(inverse, 1, 2)) / 2)
        _add(matrix, pull, batch, inverses[-1], width)
    covariance, log_size = _inverse(matrix)
    mean = covariance @ pull
    cost = 0.5 * (float(mean @ precision @ mean) + size + log_size)
    cost += 0.5 * float(np.sum(spans * (hints.found - mean[hints.plus] + mean[hints.minus]) ** 2))
    table = mean.reshape(-1, width)
    pulls: list[Floats] = []
    for batch, inverse in zip(batches, inverses, strict=True):
        left = batch.found - np.einsum("bnm,bnm->bn", batch.slopes, table[batch.task])
        pulls.append(np.einsum("bij,bj->bi", inverse, left))
        cost += 0.5 * float(np.sum(left * pulls[-1]) - np.sum(np.linalg.slogdet(inverse)[1]))
    return Solved(table, covariance, tuple(inverses), tuple(pulls), cost)


def spread_of(batch: Linear, inverse: Floats, covariance: Floats, width: int) -> Floats:
    """Inverse covariance of each device's rows with ζ integrated out: Σ⁻¹ − Σ⁻¹ J A⁻¹ Jᵀ Σ⁻¹, (B, n, n)."""
    devices, rows = batch.task.shape
    flat = positions(batch.task, width)
    weighted = (inverse[:, :, :, None] * batch.slopes[:, None, :, :]).reshape(devices, rows, rows * width)
    if devices > 1 and (batch.task == batch.task[0]).all():
        block = covariance[np.ix_(flat[0], flat[0])]
        return inverse - weighted @ block @ np.swapaxes(weighted, 1, 2)
    spreads = np.empty_like(inverse)
    for device in range(devices):
        block = covariance[np.ix_(flat[device], flat[device])]
        spreads[device] = inverse[device] - weighted[device] @ block @ weighted[device].T
    return spreads


STEPS = 6
"""Steps of the search. Few are enough: the prior is narrow and the optimum flat."""


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
        rotation = np.eye(width)
        start = np.column_stack([np.ones(self.terms), np.eye(self.terms)[:, 1:]])
        rotation[: self.terms, : self.terms] = np.linalg.qr(start)[0]
        turned = mean @ rotation
        around = np.tensordot(covariance.reshape(tasks, width, tasks, width), rotation, axes=(3, 0))
        second = np.einsum("aibk,ik->kab", around, rotation) + np.einsum("ak,bk->kab", turned, turned)
        across, along, likeness = np.linalg.inv(np.array(self.blocks(variances)))
        inverses = np.array([along] + [across] * (self.terms - 1) + [likeness] * self.features)
        sensitivity = inverses - inverses @ second @ inverses
        weights, liking = sensitivity[: self.terms].sum(axis=0), sensitivity[self.terms :].sum(axis=0)
        own = [float(np.sum(weights * shape)) for shape in (self.pooled, self.alike, np.eye(tasks))]
        return np.array([*own, float(np.trace(liking)), float(np.sum(liking * self.alike))])


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
        value, slope = _cost_of_variances(batches, prior, hints, logs)
        return value + 0.5 * float(away @ away), slope + away / PRIOR_SPREAD

    bounds = [(low, high) for low, high in zip(usual - 4.0, usual + 4.0, strict=True)]
    solution = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    return np.asarray(solution.x, dtype=float)


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


def _inverse(matrix: Floats) -> tuple[Floats, float]:
    """Inverse and log determinant of a positive definite matrix."""
    root = np.linalg.cholesky(matrix)
    inverse, _ = dpotri(root, lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T, 2 * float(np.log(np.diagonal(root)).sum())


def _add(matrix: Floats, pull: Floats, batch: Linear, inverse: Floats, width: int) -> None:
    """Add the rows of a batch to A and to its right-hand side."""
    total = len(matrix)
    weighted = np.einsum("bij,bj->bi", inverse, batch.found)
    flat = positions(batch.task, width)
    pull += np.bincount(flat.ravel(), (batch.slopes * weighted[:, :, None]).ravel(), total)
    devices, rows = batch.task.shape
    if devices > 1 and (batch.task == batch.task[0]).all():
        # All of these devices were measured on the same tasks: one sum, one place.
        scaled = np.einsum("bij,bim->ijbm", inverse, batch.slopes)
        block = np.einsum("ijbm,bjl->imjl", scaled, batch.slopes, optimize=True).reshape(rows * width, -1)
        matrix[np.ix_(flat[0], flat[0])] += block
        return
    for start in range(0, devices, step := max(1, 2_000_000 // (rows * width) ** 2)):
        chosen = slice(start, start + step)
        slopes = batch.slopes[chosen]
        blocks = slopes[:, :, :, None, None] * inverse[chosen][:, :, None, :, None] * slopes[:, None, None, :, :]
        places = flat[chosen][:, :, None] * total + flat[chosen][:, None, :]
        matrix += np.bincount(places.ravel(), blocks.ravel(), total * total).reshape(total, total)


def _cost_of_variances(batches: Sequence[Batch], prior: TaskPrior, hints: Hints, logs: Floats) -> tuple[float, Floats]:
    variances = Variances.of(logs)
    solved = solve_at(batches, prior, hints, variances)
    width = prior.terms + prior.features
    on_devices = np.zeros(len(OF_DEVICES))
    for batch, inverse, pull in zip(batches, solved.inverses, solved.pulls, strict=True):
        gradient = spread_of(batch.linear, inverse, solved.covariance, width) - pull[:, :, None] * pull[:, None, :]
        on_devices += np.tensordot(batch.shapes, gradient, axes=3) / 2
    on_tasks = prior.slopes(variances, solved.covariance, solved.mean) / 2
    return solved.cost, np.concatenate([on_devices, on_tasks]) * np.exp(logs)
