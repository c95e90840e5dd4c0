"""Gaussian posterior of tasks' parameters, devices integrated out.

With the model linear around a point, the log throughputs of device d are r_d = J_d ζ + ε_d, ε_d ~ N(0, Σ_d), and
ζ ~ N(0, P) holds what belongs to tasks. Devices are independent given ζ, so

    ζ | r ~ N(A⁻¹ Σ_d J_dᵀ Σ_d⁻¹ r_d, A⁻¹),   A = P⁻¹ + Σ_d J_dᵀ Σ_d⁻¹ J_d

costs one small inverse for each device and one for all tasks (Rasmussen and Williams 2006, section 2.7).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotri

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


def spread_of(batch: Linear, inverse: Floats, covariance: Floats, width: int) -> Floats:
    """Inverse covariance of each device's rows with ζ integrated out: Σ⁻¹ − Σ⁻¹ J A⁻¹ Jᵀ Σ⁻¹, (B, n, n)."""
    devices, rows = batch.task.shape
    flat = positions(batch.task, width)
    weighted = (inverse[:, :, :, None] * batch.slopes[:, None, :, :]).reshape(devices, rows, rows * width)
    if devices > 1 and (batch.task == batch.task[0]).all():
        held = covariance[np.ix_(flat[0], flat[0])]
        return inverse - weighted @ held @ np.swapaxes(weighted, 1, 2)
    found = np.empty_like(inverse)
    for device in range(devices):
        held = covariance[np.ix_(flat[device], flat[device])]
        found[device] = inverse[device] - weighted[device] @ held @ weighted[device].T
    return found
