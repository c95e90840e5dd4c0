"""Calibration of the harmonic mean by a corpus: the posterior of tasks' parameters, and how throughputs vary together.

1. The log throughput of device d on task t is y_dt = −log Σ_k exp(z_tk − l_dtk − δ_dtk) + β_t · φ_d + ρ_dt + ε, with
   log demands z of the task, log capabilities l of the data sheet, log factors δ that calibrate them, likeness β · φ
   and a rest ρ. The time as a sum over what a task needs is the roofline's (Williams, Waterman and Patterson 2009) with
   a sum for the maximum. Gavel (Narayanan et al. 2020) takes full tables of measured throughputs instead, NeuSight (Lee
   et al. 2025) a network for each kind of operation.
2. Demands follow by Gauss-Newton steps, in which everything but the first term is Gaussian. With the model linear
   around a point, the log throughputs of device d are r_d = J_d ζ + ε_d, ε_d ~ N(0, Σ_d), and ζ ~ N(0, P) holds what
   belongs to tasks. Devices are independent given ζ, so that ζ | r ~ N(A⁻¹ Σ_d J_dᵀ Σ_d⁻¹ r_d, A⁻¹) with A = P⁻¹ + Σ_d
   J_dᵀ Σ_d⁻¹ J_d costs one small inverse for each device and one for all tasks (Rasmussen and Williams 2006, section
   2.7).
3. All variances are of natural logarithms. The prior of each is log-normal around the value below. The values were
   chosen on one development table, Lambda's series v1 (decision 8), and are the same for every corpus. From a corpus
   they are those that maximise the evidence of its measurements on the well-measured devices times their prior
   (``search``). The gradient is the usual one, ½ tr((K⁻¹ − ααᵀ) ∂K/∂v) (Rasmussen and Williams 2006, equation 5.9),
   with K⁻¹ taken device by device for what varies between devices and on the tasks' parameters for what varies between
   tasks.
4. Given the tasks' parameters, the log throughputs of a device vary as a Gaussian process (Rasmussen and Williams
   2006). An unknown factor δ on capability k moves cell t by s_kt δ, with s_kt the share of the term, so that cov(t, u)
   = Σ_k s_kt s_ku (v_k + [k = matrix][same format] v_format + gaps_k) + v_device + [same family] v_family + [t = u]
   v_misfit. Shares couple what is learnt on one task to others by how much both depend on the capability.
5. Likeness of data sheets is a few features, so that devices lend each other what they have in common on a task: the
   kernel exp(−|x − y|²/2ℓ²) on log capabilities, cut to its leading directions on the well-measured devices (Nyström;
   Rasmussen and Williams 2006, section 8.1). It serves devices that were measured at least once: on them a probe can
   show that likeness misleads. An unmeasured device gets nothing from it, since its index has to be monotone in its
   data sheet.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from kuayu.index.observations import (
    MATRIX_TERM,
    MEMORY,
    MEMORY_TERM,
    TERMS,
    VECTOR,
    Flags,
    Floats,
    Levels,
    Observations,
    TaskTerms,
    Whole,
    complete,
    harmonic,
    levels,
    task_terms,
    usual_sheet,
)

SEARCH_STEPS = 6
"""Steps of the search. Few are enough: the prior is narrow and the optimum flat."""

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

VARIANCE_NAMES = (*OF_DEVICES, *OF_WEIGHTS, *OF_LIKENESS)

USUAL_VARIANCES = np.array([0.05, 0.05, 0.05, 0.02, 0.05, 0.02, 0.02, 0.01, 0.004, 0.02, 0.01, 0.02, 0.02, 0.01])
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

BASIS_SIZE = 32
"""How many well-measured devices variances and likeness rest on at most."""

MAX_STEPS, SETTLED = 8, 1e-11
"""Gauss-Newton steps at most, and the change at which they end."""

WHOLE_STEPS = 5
"""Steps that are taken whole. Each later one is half of the one before, so that any measurements come to rest."""

MAX_STEP = 3.0
"""Largest change of a log demand or factor in one step, so that wild measurements cannot throw it off."""

HINT_VARIANCE = 0.5**2
"""Variance of log(work / memory traffic) around what a task's profile says: neither runs at its peak."""

DIRECTIONS = 4
"""How many leading directions are kept."""

REACH = 1.0
"""ℓ: root mean square difference of log capabilities at which likeness has faded to exp(−½)."""

MIN_TRACE_SHARE = 1e-6
"""Directions with less than this part of the kernel's trace are noise."""


@dataclass(frozen=True)
class Linear:
    """A batch of B devices with n rows each, linear in the M parameters of each task.

    Attributes:
        task: Tasks of the rows, (B, n).
        slopes: J, (B, n, M); the parameters are those of the row's own task.
        measured: r, (B, n).
    """

    task: Whole
    slopes: Floats
    measured: Floats


@dataclass(frozen=True)
class Hints:
    """What is known of differences between two parameters of a task, such as from its work and memory traffic.

    Attributes:
        plus: Flat positions of the parameters that are added.
        minus: Flat positions of those that are taken away.
        difference: Differences.
        variance: Their variances.
    """

    plus: Whole
    minus: Whole
    difference: Floats
    variance: Floats


@dataclass(frozen=True)
class Posterior:
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
) -> Posterior:
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
    np.add.at(pull, hints.plus, spans * hints.difference)
    np.add.at(pull, hints.minus, -spans * hints.difference)
    inverses: list[Floats] = []
    for batch, noise in zip(batches, noises, strict=True):
        inverse = np.linalg.inv(noise)
        inverses.append((inverse + np.swapaxes(inverse, 1, 2)) / 2)
        _add_batch(matrix, pull, batch, inverses[-1], width)
    covariance, log_size = _inverse(matrix)
    mean = covariance @ pull
    cost = 0.5 * (float(mean @ precision @ mean) + size + log_size)
    cost += 0.5 * float(np.sum(spans * (hints.difference - mean[hints.plus] + mean[hints.minus]) ** 2))
    table = mean.reshape(-1, width)
    pulls: list[Floats] = []
    for batch, inverse in zip(batches, inverses, strict=True):
        left = batch.measured - np.einsum("bnm,bnm->bn", batch.slopes, table[batch.task])
        pulls.append(np.einsum("bij,bj->bi", inverse, left))
        cost += 0.5 * float(np.sum(left * pulls[-1]) - np.sum(np.linalg.slogdet(inverse)[1]))
    return Posterior(table, covariance, tuple(inverses), tuple(pulls), cost)


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


def solve_at(batches: Sequence[Batch], prior: TaskPrior, hints: Hints, variances: Variances) -> Posterior:
    """Posterior at given variances."""
    noises = [batch.noise(variances) for batch in batches]
    width = prior.terms + prior.features
    return solve([batch.linear for batch in batches], noises, prior.precision(variances), hints, width)


def search(
    batches: Sequence[Batch], prior: TaskPrior, hints: Hints, start: Floats, steps: int = SEARCH_STEPS
) -> Floats:
    """Logarithms of the likeliest variances, from ``start``."""
    centre = np.log(USUAL_VARIANCES)

    def cost(logs: Floats) -> tuple[float, Floats]:
        away = (logs - centre) / PRIOR_SPREAD
        value, slope = _cost_of_variances(batches, prior, hints, logs)
        return value + 0.5 * float(away @ away), slope + away / PRIOR_SPREAD

    bounds = [(low, high) for low, high in zip(centre - 4.0, centre + 4.0, strict=True)]
    solution = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    return np.asarray(solution.x, dtype=float)


def _inverse(matrix: Floats) -> tuple[Floats, float]:
    """Inverse and log determinant of a positive definite matrix."""
    root = np.linalg.cholesky(matrix)
    inverse, _ = dpotri(root, lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T, 2 * float(np.log(np.diagonal(root)).sum())


def _add_batch(matrix: Floats, pull: Floats, batch: Linear, inverse: Floats, width: int) -> None:
    """Add the rows of a batch to A and to its right-hand side."""
    total = len(matrix)
    weighted = np.einsum("bij,bj->bi", inverse, batch.measured)
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


@dataclass(frozen=True)
class Cells:
    """As many cells on each of B devices: n of them; K terms.

    Attributes:
        device: Positions of the devices, (B,).
        task: Tasks, (B, n).
        logs: Logarithms of capabilities, (B, n, K).
        gaps: Standard deviations of capabilities that were not stated, (B, n, K).
        chosen: Number formats, (B, n).
        present: Terms that count, (B, n, K).
    """

    device: Whole
    task: Whole
    logs: Floats
    gaps: Floats
    chosen: Whole
    present: Flags

    def columns(self, which: list[int]) -> "Cells":
        """Some of the cells of each device."""
        return Cells(
            self.device,
            self.task[:, which],
            self.logs[:, which],
            self.gaps[:, which],
            self.chosen[:, which],
            self.present[:, which],
        )

    def times(self, demands: Floats, factors: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """Log times (B, n) and shares (B, n, K), given log demands (T, K) and log factors on the capabilities."""
        return harmonic(demands[self.task], self.logs + factors, self.present)


@dataclass(frozen=True)
class Rows:
    """Cells that were measured, and what was.

    Attributes:
        cells: Where.
        measured: Log throughputs of one device, (B, n).
        noise: Variances of ``measured`` beyond the model's, (B, n).
    """

    cells: Cells
    measured: Floats
    noise: Floats

    def only(self, which: Flags) -> "Rows":
        """The rows of some of the devices."""
        return Rows(part(self.cells, which), self.measured[which], self.noise[which])


@dataclass(frozen=True)
class Calibration:
    """What a corpus says of its tasks and devices.

    Attributes:
        seen: The corpus.
        reference: Position of the reference.
        terms: Terms of the tasks.
        number: How many terms there are: without *scale_out* where every index is one of single devices.
        centre: Usual data sheet.
        shift: Logarithms of capabilities of the usual device for each task, T × len(TERMS).
        place: Log capabilities less ``shift``.
        likeness: Features of the devices, D × p.
        basis: Well-measured devices.
        variances: How much things vary.
        demands: Log demands z, T × K.
        rows: Measured rows, in batches.
        linear: The same, linear around the solution.
        solved: Posterior.
    """

    seen: Observations
    reference: int
    terms: TaskTerms
    number: int
    centre: Floats
    shift: Floats
    place: Levels
    likeness: Floats
    basis: Whole
    variances: Variances
    demands: Floats
    rows: tuple[Rows, ...]
    linear: tuple[Linear, ...]
    solved: Posterior

    @property
    def width(self) -> int:
        """Parameters of a task."""
        return self.number + int(self.likeness.shape[1])

    @property
    def likings(self) -> Floats:
        """β, T × p."""
        return self.solved.mean[:, self.number :]

    def levels_of(self, sheets: Floats) -> Levels:
        """Capabilities that devices with these data sheets would have, on the scale of ``place``."""
        capabilities = levels(sheets, self.centre, self.terms)
        return Levels(capabilities.logs - self.shift, capabilities.variance, capabilities.chosen)


def calibrate(seen: Observations, reference: int) -> Calibration:
    """Calibrate by a corpus.

    Nothing here depends on the data sheet of a device that was not measured, unless it is the reference.
    """
    terms = task_terms(seen.formats, seen.index_count)
    number = len(TERMS) - (0 if (seen.index_count > 1).any() else 1)
    basis = _well_measured(seen, reference)
    counted = np.unique(np.append(basis, reference))
    centre = usual_sheet(seen.sheets[counted])
    place = levels(seen.sheets, centre, terms)
    shift = place.logs[counted].mean(axis=0)
    place = Levels(place.logs - shift, place.variance, place.chosen)
    likeness = features(coordinates(seen.sheets, centre, terms, counted), counted)
    pooled = (terms.pool[:, None] == terms.pool[None, :]).astype(float)
    prior = TaskPrior(pooled, seen.alike, number, likeness.shape[1])
    rows = batches(seen, place, terms, number)
    start = _start(rows, seen, number)
    search_on = _Fit(tuple(_on(rows, basis)), likeness, seen, prior, start, _hints(seen, shift, start, prior))
    logs = np.log(USUAL_VARIANCES)
    if rows:
        search_on.settle(Variances.of(logs), steps=3)
        logs = search(search_on.batches(), prior, search_on.hints, logs)
    fit = _Fit(tuple(rows), likeness, seen, prior, start, search_on.hints)
    fit.demands = search_on.demands
    variances = Variances.of(logs)
    solved = fit.settle(variances)
    linear = tuple(batch.linear for batch in fit.batches())
    return Calibration(
        seen,
        reference,
        terms,
        number,
        centre,
        shift,
        place,
        likeness,
        basis,
        variances,
        fit.demands,
        fit.rows,
        linear,
        solved,
    )


def factors_at(cells: Cells, measured: Cells, shares: Floats, variances: Variances, pulls: Floats) -> Floats:
    """Log factors on the capabilities at cells, given what the same devices' measured rows pull at, (B, n, K)."""
    return np.asarray(np.einsum("bqnk,bn->bqk", factor_weights(cells, measured, shares, variances.devices), pulls))


def cells(devices: Whole, task: Whole, place: Levels, terms: TaskTerms, number: int) -> Cells:
    """Cells of ``devices`` (B,), at these tasks (B, n), with ``number`` terms.

    Args:
        devices: Positions of the devices.
        task: Tasks of the cells.
        place: Capabilities of all devices for all tasks.
        terms: Terms of all tasks.
        number: K.
    """
    pairs = (devices[:, None], task)
    gaps = np.sqrt(place.variance[pairs])[..., :number]
    return Cells(
        devices, task, place.logs[pairs][..., :number], gaps, place.chosen[pairs], terms.present[task][..., :number]
    )


def batches(seen: Observations, place: Levels, terms: TaskTerms, number: int) -> list[Rows]:
    """Rows of a corpus, devices with as many rows in one batch; batches by rising number of rows."""
    order = np.argsort(seen.device, kind="stable")
    devices, first, rows_on = np.unique(seen.device[order], return_index=True, return_counts=True)
    rows_by_size: list[Rows] = []
    for size in np.unique(rows_on):
        of_size = rows_on == size
        rows = order[first[of_size][:, None] + np.arange(size)]
        cells_of_size = cells(devices[of_size], seen.task[rows], place, terms, number)
        rows_by_size.append(Rows(cells_of_size, seen.log_throughput[rows], seen.noise[rows]))
    return rows_by_size


def shapes(a: Cells, b: Cells, shares_a: Floats, shares_b: Floats, alike: Floats) -> Floats:
    """Derivatives of the covariance by each variance of devices, (len(OF_DEVICES), B, n_a, n_b)."""
    terms = shares_a.shape[-1]
    derivatives = np.zeros((len(OF_DEVICES), len(a.device), a.task.shape[1], b.task.shape[1]))
    derivatives[:terms] = np.moveaxis(shares_a[:, :, None, :] * shares_b[:, None, :, :], -1, 0)
    derivatives[FORMAT] = derivatives[MATRIX_TERM] * (a.chosen[:, :, None] == b.chosen[:, None, :])
    derivatives[DEVICE] = 1.0
    derivatives[FAMILY] = alike[a.task[:, :, None], b.task[:, None, :]]
    derivatives[MISFIT] = a.task[:, :, None] == b.task[:, None, :]
    return derivatives


def gap_shapes(a: Cells, b: Cells, shares_a: Floats, shares_b: Floats) -> Floats:
    """Covariance by capabilities that were not stated, term by term, (B, n_a, n_b, K)."""
    both = (shares_a * a.gaps)[:, :, None, :] * (shares_b * b.gaps)[:, None, :, :]
    both[..., MATRIX_TERM] *= a.chosen[:, :, None] == b.chosen[:, None, :]
    return both


def factor_weights(a: Cells, b: Cells, shares_b: Floats, variances: Floats) -> Floats:
    """Covariance of the log factors on the capabilities at cells ``a`` with the throughputs at ``b``.

    Shape (B, n_a, n_b, K).
    """
    terms = shares_b.shape[-1]
    same = (a.chosen[:, :, None] == b.chosen[:, None, :]).astype(float)
    gaps = a.gaps[:, :, None, :] * b.gaps[:, None, :, :]
    gaps[..., MATRIX_TERM] = gaps[..., MATRIX_TERM] * same + variances[FORMAT] * same
    return shares_b[:, None, :, :] * (variances[:terms] + gaps)


def rest_weights(a: Cells, b: Cells, alike: Floats, variances: Floats) -> Floats:
    """Covariance of what no capability explains, at ``a``, with the throughputs at ``b``, (B, n_a, n_b)."""
    family = alike[a.task[:, :, None], b.task[:, None, :]]
    same = a.task[:, :, None] == b.task[:, None, :]
    return np.asarray(variances[DEVICE] + variances[FAMILY] * family + variances[MISFIT] * same)


def part(cells_in: Cells, which: Flags | Whole) -> Cells:
    """The same cells on some of the devices."""
    return replace(
        cells_in,
        device=cells_in.device[which],
        task=cells_in.task[which],
        logs=cells_in.logs[which],
        gaps=cells_in.gaps[which],
        chosen=cells_in.chosen[which],
        present=cells_in.present[which],
    )


def coordinates(sheets: Floats, centre: Floats, tasks: TaskTerms, basis: Whole) -> Floats:
    """Log capabilities of devices: the peak for each set of formats, binary32 and memory bandwidth; D × any.

    Those that are the same number on every device of ``basis`` count once.
    """
    filled = complete(sheets, centre).logs
    firsts = np.unique(tasks.pool, return_index=True)[1].astype(np.int64)
    peaks = levels(sheets, centre, tasks.only(firsts)).logs[:, :, MATRIX_TERM]
    columns = [*peaks.T, filled[:, VECTOR], filled[:, MEMORY]]
    table = np.stack(columns, axis=1)
    distinct_columns = np.unique(table[basis], axis=1, return_index=True)[1]
    return table[:, np.sort(distinct_columns)]


def features(points: Floats, basis: Whole) -> Floats:
    """Features of devices, D × p, from coordinates; inner products are the kernel's, centred on ``basis``."""
    near = points[basis]
    kernel = np.exp(-np.mean((points[:, None, :] - near[None, :, :]) ** 2, axis=-1) / (2 * REACH**2))
    sizes, directions = np.linalg.eigh(kernel[basis])
    directions_kept = np.argsort(-sizes)[: min(DIRECTIONS, len(basis) - 1)]
    directions_kept = directions_kept[sizes[directions_kept] > MIN_TRACE_SHARE * sizes.sum()]
    projected = kernel @ directions[:, directions_kept] / np.sqrt(sizes[directions_kept])
    return np.asarray(projected - projected[basis].mean(axis=0))


def _well_measured(seen: Observations, reference: int) -> Whole:
    """Devices with at least half as many rows as the one with most, the most measured first where they are too many."""
    rows = np.bincount(seen.device, minlength=len(seen.devices))
    if not rows.any():
        return np.array([reference], dtype=np.int64)
    chosen = np.flatnonzero(2 * rows >= rows.max())
    by_rows = chosen[np.argsort(-rows[chosen], kind="stable")]
    return np.sort(by_rows[:BASIS_SIZE])


def _on(rows: list[Rows], devices: Whole) -> list[Rows]:
    """Rows on these devices alone."""
    batches_on = []
    for batch in rows:
        chosen = np.isin(batch.cells.device, devices)
        if chosen.any():
            batches_on.append(batch.only(chosen))
    return batches_on


def _start(rows: list[Rows], seen: Observations, number: int) -> Floats:
    """Log demands that tasks start from: usual weights, in the unit of the task's throughput."""
    demands = np.tile(np.log(USUAL_WEIGHTS[:number]), (len(seen.tasks), 1))
    total, counts = np.zeros(len(seen.tasks)), np.zeros(len(seen.tasks))
    for batch in rows:
        time, _ = batch.cells.times(demands)
        np.add.at(total, batch.cells.task, -batch.measured - time)
        np.add.at(counts, batch.cells.task, 1.0)
    return demands + (total / np.maximum(counts, 1.0))[:, None]


def _hints(seen: Observations, shift: Floats, start: Floats, prior: TaskPrior) -> Hints:
    """What tasks' work and memory traffic say: their ratio alone, since their unit need not be that of throughput."""
    width = prior.terms + prior.features
    known = [place for place, task in enumerate(seen.tasks) if task.work and task.memory_traffic]
    ratios = [math.log(task.work / task.memory_traffic) for task in seen.tasks if task.work and task.memory_traffic]
    places = np.array(known, dtype=np.int64)
    usual_ratio = (start + shift[:, : prior.terms])[places][:, [MATRIX_TERM, MEMORY_TERM]]
    differences = np.array(ratios) - (usual_ratio[:, 0] - usual_ratio[:, 1])
    plus, minus = places * width + MATRIX_TERM, places * width + MEMORY_TERM
    return Hints(plus, minus, differences, np.full(len(places), HINT_VARIANCE))


class _Fit:
    """Gauss-Newton steps on rows of measurements."""

    def __init__(
        self,
        rows: tuple[Rows, ...],
        likeness: Floats,
        seen: Observations,
        prior: TaskPrior,
        start: Floats,
        hints: Hints,
    ) -> None:
        self.rows, self.likeness, self.seen, self.prior, self.start, self.hints = (
            rows,
            likeness,
            seen,
            prior,
            start,
            hints,
        )
        self.demands = start
        self.factors: list[Floats] = [np.zeros(batch.cells.logs.shape) for batch in rows]

    def settle(self, variances: Variances, steps: int = MAX_STEPS) -> Posterior:
        """Step until nothing changes, and solve there."""
        for step in range(steps):
            solved = solve_at(self.batches(), self.prior, self.hints, variances)
            if self._step(variances, solved, 0.5 ** max(0, step + 1 - WHOLE_STEPS)) < SETTLED:
                break
        return solve_at(self.batches(), self.prior, self.hints, variances)

    def batches(self) -> list[Batch]:
        """The rows, linear around the present point."""
        linear_batches: list[Batch] = []
        for rows, factors in zip(self.rows, self.factors, strict=True):
            cells_of = rows.cells
            time, shares = cells_of.times(self.demands, factors)
            moved = (factors - (self.demands - self.start)[cells_of.task]) * shares
            phi = np.broadcast_to(
                self.likeness[cells_of.device][:, None, :], (*cells_of.task.shape, self.likeness.shape[1])
            )
            linear = Linear(
                cells_of.task, np.concatenate([-shares, phi], axis=2), rows.measured + time + moved.sum(axis=2)
            )
            fixed = gap_shapes(cells_of, cells_of, shares, shares).sum(axis=3) + rows.noise[:, :, None] * np.eye(
                cells_of.task.shape[1]
            )
            linear_batches.append(Batch(linear, shapes(cells_of, cells_of, shares, shares, self.seen.alike), fixed))
        return linear_batches

    def _step(self, variances: Variances, solved: Posterior, length: float) -> float:
        """Move so much of the way to the solution; return the largest change."""
        aim = self.start + solved.mean[:, : self.prior.terms]
        change = length * np.clip(aim - self.demands, -MAX_STEP, MAX_STEP)
        largest = float(np.abs(change).max())
        factors: list[Floats] = []
        for rows, old, pulls in zip(self.rows, self.factors, solved.pulls, strict=True):
            _, shares = rows.cells.times(self.demands, old)
            aimed = factors_at(rows.cells, rows.cells, shares, variances, pulls)
            moved = length * np.clip(aimed - old, -MAX_STEP, MAX_STEP)
            largest = max(largest, float(np.abs(moved).max()))
            factors.append(old + moved)
        self.demands, self.factors = self.demands + change, factors
        return largest
