"""Log throughput of any device on any task, by two estimates that are averaged, and the index that follows.

1. A pair that was measured is known. Another pair of a measured device is predicted with the device's calibration. One
   without measurements gets the harmonic mean of its data sheet and nothing else, which makes its index monotone.
2. The second estimate of a measured device is a Gaussian process on log throughput. With x_dt the log capabilities of
   device d that count for task t, memory capacity among them (it sets the batch, and no term of the harmonic mean reads
   it), centred on the devices that the process rests on,

       y_dt = a_t + s · x_dt + f_dt + ε,
       cov(f_dt, f_eu) = x_dt · x_eu (v_slope + v_task-slope κ_tu) + r(x_dt, x_eu) (v_shape + v_task-shape κ_tu)
                         + [d = e] (v_device + v_device-task κ_tu + [t = u] v_misfit),

   r a squared exponential and κ the likeness of two tasks: of what they are embedded as, of their families, and of one
   with itself. A task is embedded as its throughputs on the well-measured devices, as the harmonic mean completes them,
   less the means of the task and of the device. Which devices are near each other is then seen from the probes alone,
   where the harmonic mean has to explain them by capabilities. All covariances are scaled by what the rows scatter,
   pulled towards one.
3. The average is that of a mixture of both with equal weights: the mean of the two log indices, and the mean of the two
   variances and of the squared differences from that mean. A device without measurements gets nothing from the process,
   so that its index stays monotone in its data sheet and its levers exact.

Sources: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 4; Bonilla, Chai and
Williams, "Multi-task Gaussian process prediction", NIPS 2007. Constants of the process were chosen in the inner loop of
``python -m kuayu_training.index.protocol`` (decision 55).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from kuayu.index.calibration import (
    DEVICE,
    FAMILY,
    FORMAT,
    MISFIT,
    Calibration,
    Cells,
    cells,
    factor_weights,
    factors_at,
    part,
    rest_weights,
)
from kuayu.index.observations import MATRIX_TERM, MEMORY_TERM, VECTOR_TERM, Flags, Floats, Whole

AT_ONCE = 4_000_000
"""Numbers that one array of slopes may hold; more devices are taken in turn."""


@dataclass(frozen=True)
class Prediction:
    """Log throughputs of B devices on Q tasks, each at the device count of the task's index.

    Attributes:
        device: Positions of the devices, (B,).
        mean: Means, (B, Q).
        own: Variances given the tasks' parameters, (B, Q).
        slopes: Derivatives of the means by all parameters of tasks, (B, Q, TM).
        factors: Log factors that calibrate the capabilities, (B, Q, K).
        cells: The cells.
        known: Pairs that were measured.
        weights: Weights of the device's rows in each mean, (B, Q, n); none for a device without rows.
        covariances: Covariance of each cell with the device's rows, (B, Q, n).
    """

    device: Whole
    mean: Floats
    own: Floats
    slopes: Floats
    factors: Floats
    cells: Cells
    known: Flags
    weights: Floats
    covariances: Floats

    def own_covariance(self, calibration: Calibration, row: int, columns: list[int], *, lend: bool) -> Floats:
        """Covariance of some cells of one device given the tasks' parameters; zero where they are known."""
        chosen = part(self.cells, np.array([row]))
        cells = chosen.columns(columns)
        _, shares = cells.times(calibration.demands, self.factors[[row]][:, columns])
        variances = calibration.variances.devices
        by_factor = factor_weights(cells, cells, shares, variances)
        rest = rest_weights(cells, cells, calibration.seen.alike, variances)
        covariance = np.einsum("bqk,bqnk->bqn", shares, by_factor) + rest
        covariance = covariance[0] - self.weights[row, columns] @ self.covariances[row, columns].T
        if not self.weights.shape[2] and not lend:
            likeness = calibration.likeness[self.device[row]]
            own, family = calibration.variances.likeness * float(likeness @ likeness)
            tasks = cells.task[0]
            covariance += own * (tasks[:, None] == tasks) + family * calibration.seen.alike[np.ix_(tasks, tasks)]
        known = self.known[row, columns]
        covariance[known] = 0.0
        covariance[:, known] = 0.0
        return np.asarray(covariance)


def predict(calibration: Calibration, devices: Whole, tasks: Whole, *, lend: bool = False) -> Iterator[Prediction]:
    """Predict for all pairs of devices and tasks; batches of devices, in any order.

    With ``lend``, devices without rows get what likeness says, as they will once they are probed.
    """
    step = max(1, AT_ONCE // max(1, len(tasks) * len(calibration.solved.covariance)))
    measured = np.zeros(len(calibration.seen.devices), dtype=bool)
    for batch, rows in enumerate(calibration.rows):
        measured[rows.cells.device] = True
        wanted = np.flatnonzero(np.isin(rows.cells.device, devices))
        for start in range(0, len(wanted), step):
            yield _with_rows(calibration, batch, wanted[start : start + step], tasks)
    others = np.unique(devices[~measured[devices]])
    for start in range(0, len(others), step):
        yield _without_rows(calibration, others[start : start + step], tasks, lend=lend)


def means(calibration: Calibration, devices: Whole, tasks: Whole) -> Floats:
    """Log throughputs of measured devices on tasks, (B, Q), without their variances."""
    log_means = np.full((len(calibration.seen.devices), len(tasks)), np.nan)
    for batch, rows in enumerate(calibration.rows):
        which = np.flatnonzero(np.isin(rows.cells.device, devices))
        if len(which):
            log_means[rows.cells.device[which]] = _BatchMeans.at(calibration, batch, which, tasks).mean
    table = calibration.seen.measured[:, tasks]
    return np.where(np.isfinite(table), table, log_means)[devices]


def cells_at(calibration: Calibration, devices: Whole, tasks: Whole) -> Cells:
    """Cells of all pairs of devices and tasks."""
    task = np.broadcast_to(tasks, (len(devices), len(tasks)))
    return cells(devices, task, calibration.place, calibration.terms, calibration.number)


@dataclass(frozen=True)
class Indices:
    """Log indices of all devices (D) for Q tasks; rows of devices that were not asked for are NaN.

    Attributes:
        mean: Medians of the log indices, (D, Q).
        variance: Their variances, (D, Q).
        measured: Pairs of which device and reference were measured.
        factors: Log factors on capabilities, (D, Q, K).
        reference: The reference's prediction.
    """

    mean: Floats
    variance: Floats
    measured: Flags
    factors: Floats
    reference: Prediction


def indices(calibration: Calibration, devices: Whole, tasks: Whole) -> Indices:
    """Log indices of devices for tasks."""
    seen = calibration.seen
    anchor = next(predict(calibration, np.array([calibration.reference]), tasks))
    shape = (len(seen.devices), len(tasks))
    mean, variance = np.full(shape, np.nan), np.full(shape, np.nan)
    measured = np.zeros(shape, dtype=bool)
    factors = np.zeros((*shape, calibration.number))
    for predicted in predict(calibration, devices, tasks):
        mean[predicted.device] = predicted.mean - anchor.mean
        away = predicted.slopes - anchor.slopes
        across = np.einsum("bqm,bqm->bq", away @ calibration.solved.covariance, away)
        variance[predicted.device] = predicted.own + anchor.own + np.maximum(across, 0.0)
        measured[predicted.device] = predicted.known & anchor.known
        factors[predicted.device] = predicted.factors
    repeats = np.maximum(seen.repeats[:, tasks], 1.0)
    noise = seen.spread**2 * (1 / repeats + 1 / repeats[calibration.reference])
    variance = np.where(measured, noise, variance + seen.spread**2)
    mean[calibration.reference], variance[calibration.reference] = 0.0, 0.0
    return Indices(mean, variance, measured, factors, anchor)


CORE_ROWS = 512
"""Rows that the process rests on at most; a device is taken with all of its rows, the reference always."""

OFFSET_VARIANCE = 10.0
"""Variance of a task's mean around that of its rows: it says nothing."""

SCALE_WEIGHT = 20.0
"""How many rows the usual scale of the covariances, one, is worth."""

QUERY_ROWS = 4096
"""Cells whose covariances are computed at once."""


@dataclass(frozen=True)
class Kernel:
    """Constants of the process; variances are those of natural logarithms.

    Attributes:
        slopes: s, usual exponents of matrix, vector and memory throughput and of memory capacity.
        slope: v_slope.
        task_slope: v_task-slope.
        shape: v_shape.
        task_shape: v_task-shape.
        device: v_device.
        device_task: v_device-task.
        misfit: v_misfit.
        reach: Root mean square difference of log capabilities at which r has faded to exp(−½).
        task_reach: The same of embeddings of tasks.
        family: Part of κ that tasks of one family share.
        own: Part of κ that belongs to a task alone.
        capacity: How much a difference of memory capacity counts beside one of throughput.
        weight: Weight of the process in the average.
    """

    slopes: tuple[float, float, float, float] = (0.4, 0.1, 0.4, 0.0)
    slope: float = 0.03
    task_slope: float = 0.007
    shape: float = 0.02
    task_shape: float = 0.02
    device: float = 0.05
    device_task: float = 0.06
    misfit: float = 0.003
    reach: float = 0.7
    task_reach: float = 0.12
    family: float = 0.2
    own: float = 0.05
    capacity: float = 1.0
    weight: float = 0.5


KERNEL = Kernel()


@dataclass(frozen=True)
class ProcessCells:
    """Any N cells: positions of their devices and tasks, (N,) each."""

    device: Whole
    task: Whole


@dataclass(frozen=True)
class Process:
    """The process, given the rows of well-measured devices.

    Attributes:
        calibration: What the harmonic mean makes of the same corpus.
        kernel: Constants.
        features: x, D × T × 4.
        kinship: κ, T × T.
        core: Devices that the process rests on.
        rows: Their measured cells.
        offsets: Mean of each task over ``rows`` after s · x, (T,); NaN for a task that is not among them.
        root: Lower Cholesky factor of the covariance of ``rows``.
        pull: Inverse covariance times what was found at ``rows``.
        scale: Factor on all covariances.
    """

    calibration: Calibration
    kernel: Kernel
    features: Floats
    kinship: Floats
    core: Whole
    rows: ProcessCells
    offsets: Floats
    root: Floats
    pull: Floats
    scale: float

    @classmethod
    def of(cls, calibration: Calibration, kernel: Kernel = KERNEL) -> "Process | None":
        """The process for a corpus; None where its reference was not measured, so that nothing refers to it."""
        seen = calibration.seen
        core = _core(calibration)
        if not (seen.device == calibration.reference).any():
            return None
        features = _features(calibration, core, kernel)
        kinship = _kinship(calibration, core, kernel)
        on_core = np.isin(seen.device, core)
        rows = ProcessCells(seen.device[on_core], seen.task[on_core])
        logs = seen.log_throughput[on_core] - features[rows.device, rows.task] @ np.array(kernel.slopes)
        counts = np.bincount(rows.task, minlength=len(seen.tasks))
        with np.errstate(invalid="ignore"):
            offsets = np.bincount(rows.task, logs, minlength=len(seen.tasks)) / counts
        prior = cls(calibration, kernel, features, kinship, core, rows, offsets, np.empty((0, 0)), np.empty(0), 1.0)
        covariance = prior.covariance(rows, rows) + np.diag(seen.noise[on_core])
        root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        left = logs - offsets[rows.task]
        pull = cho_solve((root, True), left)
        freedom = len(left) - int((counts > 0).sum()) + SCALE_WEIGHT
        scale = (float(left @ pull) + SCALE_WEIGHT) / freedom
        return replace(prior, root=root, pull=pull, scale=scale)

    def covariance(self, one: ProcessCells, other: ProcessCells) -> Floats:
        """Covariance of log throughputs at cells before anything is measured, (N, M); not scaled."""
        kernel = self.kernel
        left, right = self.features[one.device, one.task], self.features[other.device, other.task]
        products = left @ right.T
        squares = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1) - 2 * products
        near = np.exp(np.maximum(squares, 0.0) / (-2 * left.shape[1] * kernel.reach**2))
        kin = self.kinship[one.task[:, None], other.task]
        same_task = one.task[:, None] == other.task
        same_device = one.device[:, None] == other.device
        on_device = kernel.device + kernel.device_task * kin + kernel.misfit * same_task
        return np.asarray(
            products * (kernel.slope + kernel.task_slope * kin)
            + near * (kernel.shape + kernel.task_shape * kin)
            + same_device * on_device
            + OFFSET_VARIANCE * same_task
        )

    def variance(self, cells: ProcessCells) -> Floats:
        """Diagonal of :meth:`covariance`."""
        kernel = self.kernel
        kin = self.kinship[cells.task, cells.task]
        squares = np.sum(self.features[cells.device, cells.task] ** 2, axis=1)
        of_data_sheet = squares * (kernel.slope + kernel.task_slope * kin) + kernel.shape + kernel.task_shape * kin
        on_device = kernel.device + kernel.device_task * kin + kernel.misfit
        return np.asarray(of_data_sheet + on_device + OFFSET_VARIANCE)

    def joint(self, devices: Whole, tasks: Whole) -> Floats:
        """Covariance of the log throughputs of cells, (N,) each, given all that was measured on their devices."""
        seen = self.calibration.seen
        cells = ProcessCells(devices, tasks)
        own = np.isin(seen.device, devices) & ~np.isin(seen.device, self.core) & np.isfinite(self.offsets[seen.task])
        more = ProcessCells(seen.device[own], seen.task[own])
        half = solve_triangular(self.root, self.covariance(self.rows, cells), lower=True)
        posterior = self.covariance(cells, cells) - half.T @ half
        if len(more.device):
            other = solve_triangular(self.root, self.covariance(self.rows, more), lower=True)
            among = self.covariance(more, more) - other.T @ other + np.diag(seen.noise[own])
            cross = self.covariance(more, cells) - other.T @ half
            posterior -= cross.T @ np.linalg.solve(among, cross)
        return np.asarray(self.scale * posterior)

    def relative(self, devices: Whole, tasks: Whole) -> tuple[Floats, Floats]:
        """Log indices of measured devices for tasks and their variances, (B, Q) each; NaN where it says nothing.

        It says nothing of tasks that were not measured on any device that it rests on.
        """
        mean = np.full((len(devices), len(tasks)), np.nan)
        variance = mean.copy()
        known = np.flatnonzero(np.isfinite(self.offsets[tasks]))
        step = max(1, QUERY_ROWS // max(1, len(tasks)))
        for start in range(0, len(devices) if len(known) else 0, step):
            part = np.arange(start, min(start + step, len(devices)))
            block = np.ix_(part, known)
            mean[block], variance[block] = self._relative(devices[part], tasks[known])
        return mean, variance

    def _relative(self, devices: Whole, tasks: Whole) -> tuple[Floats, Floats]:
        seen, reference = self.calibration.seen, self.calibration.reference
        measured = seen.measured[reference, tasks]
        open_ = ~np.isfinite(measured)
        shape = (len(devices), len(tasks))
        queries = ProcessCells(np.repeat(devices, len(tasks)), np.tile(tasks, len(devices)))
        anchor = ProcessCells(np.full(len(tasks), reference), tasks)
        # Where the reference was measured that measurement is subtracted, elsewhere what the process says of it.
        at_anchor = self.covariance(anchor, self.rows) * open_[:, None]
        cross = self.covariance(queries, self.rows) - np.tile(at_anchor, (len(devices), 1))
        both = self.covariance(queries, anchor)[
            np.arange(len(queries.task)), np.tile(np.arange(len(tasks)), len(devices))
        ]
        prior = self.variance(queries).reshape(shape) + (self.variance(anchor) - 2 * both.reshape(shape)) * open_
        slopes = np.array(self.kernel.slopes)
        mean = (self.features[queries.device, queries.task] @ slopes).reshape(shape) + self.offsets[tasks]
        of_anchor = self.features[reference, tasks] @ slopes + self.offsets[tasks]
        mean = mean - np.where(open_, of_anchor, measured) + (cross @ self.pull).reshape(shape)
        whitened = solve_triangular(self.root, cross.T, lower=True).T.reshape(*shape, -1)
        variance = prior - np.sum(whitened**2, axis=2)
        for row in np.flatnonzero(~np.isin(devices, self.core)).tolist():
            self._condition(row, int(devices[row]), tasks, open_, whitened[row], mean, variance)
        return mean, self.scale * np.maximum(variance, 0.0)

    def _condition(
        self,
        row: int,
        device: int,
        tasks: Whole,
        open_: Flags,
        whitened: Floats,
        mean: Floats,
        variance: Floats,
    ) -> None:
        """Add to one row of the means and variances what was measured on a device that the process does not rest on."""
        seen = self.calibration.seen
        own = np.flatnonzero((seen.device == device) & np.isfinite(self.offsets[seen.task]))
        if not len(own):
            return
        cells = ProcessCells(seen.device[own], seen.task[own])
        cross = self.covariance(cells, self.rows)
        half = solve_triangular(self.root, cross.T, lower=True)
        surprise = seen.log_throughput[own] - self.offsets[cells.task]
        surprise = surprise - self.features[device, cells.task] @ np.array(self.kernel.slopes) - cross @ self.pull
        among = self.covariance(cells, cells) - half.T @ half + np.diag(seen.noise[own])
        queries = ProcessCells(np.full(len(tasks), device), tasks)
        anchor = ProcessCells(np.full(len(tasks), self.calibration.reference), tasks)
        with_asked = self.covariance(queries, cells) - self.covariance(anchor, cells) * open_[:, None] - whitened @ half
        root = np.linalg.cholesky(among)
        mean[row] += with_asked @ cho_solve((root, True), surprise)
        variance[row] -= np.sum(solve_triangular(root, with_asked.T, lower=True) ** 2, axis=0)


def average(indices: Indices, process: Process | None, devices: Whole, tasks: Whole) -> Indices:
    """Indices by the harmonic mean, averaged with those of the process where it says something.

    Pairs that were measured, devices without measurements and the reference stay as they are.
    """
    if process is None:
        return indices
    calibration, weight = process.calibration, process.kernel.weight
    counts = np.bincount(calibration.seen.device, minlength=len(calibration.seen.devices))
    chosen = np.unique(devices[(counts[devices] > 0) & (devices != calibration.reference)])
    chosen = chosen[~indices.measured[chosen].all(axis=1)]
    second, variance = process.relative(chosen, tasks)
    first = indices.mean[chosen]
    taken = np.isfinite(second) & ~indices.measured[chosen]
    mean, spread = indices.mean.copy(), indices.variance.copy()
    mixed = (1 - weight) * indices.variance[chosen] + weight * (variance + calibration.seen.spread**2)
    mixed = mixed + weight * (1 - weight) * (first - second) ** 2
    mean[chosen] = np.where(taken, (1 - weight) * first + weight * second, first)
    spread[chosen] = np.where(taken, mixed, indices.variance[chosen])
    return replace(indices, mean=mean, variance=spread)


@dataclass(frozen=True)
class _BatchMeans:
    """Devices of a batch with what their rows say of queried cells; fields as those of :class:`Prediction`."""

    measured: Cells
    cells: Cells
    factors: Floats
    shares: Floats
    rest: Floats
    mean: Floats

    @staticmethod
    def at(calibration: Calibration, batch: int, which: Whole, tasks: Whole) -> "_BatchMeans":
        measured, pulls = part(calibration.rows[batch].cells, which), calibration.solved.pulls[batch][which]
        shares = -calibration.linear[batch].slopes[which][:, :, : calibration.number]
        variances = calibration.variances
        target_cells = cells_at(calibration, measured.device, tasks)
        factors = factors_at(target_cells, measured, shares, variances, pulls)
        time, own_shares = target_cells.times(calibration.demands, factors)
        rest = rest_weights(target_cells, measured, calibration.seen.alike, variances.devices)
        likeness = calibration.likeness[measured.device]
        mean = -time + likeness @ calibration.likings[tasks].T + np.einsum("bqn,bn->bq", rest, pulls)
        return _BatchMeans(measured, target_cells, factors, own_shares, rest, mean)


def _with_rows(calibration: Calibration, batch: int, which: Whole, tasks: Whole) -> Prediction:
    slopes, inverse = calibration.linear[batch].slopes[which], calibration.solved.inverses[batch][which]
    shares = -slopes[:, :, : calibration.number]
    variances = calibration.variances
    batch_means = _BatchMeans.at(calibration, batch, which, tasks)
    measured, target_cells, factors, own_shares = (
        batch_means.measured,
        batch_means.cells,
        batch_means.factors,
        batch_means.shares,
    )
    rest, mean = batch_means.rest, batch_means.mean
    likeness = calibration.likeness[measured.device]
    by_factor = factor_weights(target_cells, measured, shares, variances.devices)
    covariances = np.einsum("bqk,bqnk->bqn", own_shares, by_factor) + rest
    weights = covariances @ inverse
    own = _prior_variance(calibration, target_cells, own_shares) - np.einsum("bqn,bqn->bq", weights, covariances)
    phi = np.broadcast_to(likeness[:, None, :], (*target_cells.task.shape, likeness.shape[1]))
    all_slopes = _slopes(calibration, tasks, np.concatenate([-own_shares, phi], axis=2))
    flat = all_slopes.reshape(*target_cells.task.shape, -1, calibration.width)
    device, cell = np.arange(len(which))[:, None], np.arange(len(tasks))[None, :]
    for row in range(measured.task.shape[1]):
        flat[device, cell, measured.task[:, row, None]] -= weights[:, :, row, None] * slopes[:, None, row, :]
    table = calibration.seen.measured[measured.device][:, tasks]
    known = np.isfinite(table)
    all_slopes[known] = 0.0
    mean, own = np.where(known, table, mean), np.where(known, 0.0, np.maximum(own, 0.0))
    return Prediction(measured.device, mean, own, all_slopes, factors, target_cells, known, weights, covariances)


def _without_rows(calibration: Calibration, devices: Whole, tasks: Whole, *, lend: bool) -> Prediction:
    target_cells = cells_at(calibration, devices, tasks)
    time, shares = target_cells.times(calibration.demands)
    likeness = calibration.likeness[devices]
    own = _prior_variance(calibration, target_cells, shares)
    phi = np.zeros((*target_cells.task.shape, likeness.shape[1]))
    mean = -time
    if lend:
        phi += likeness[:, None, :]
        mean = mean + likeness @ calibration.likings[tasks].T
    else:
        own += (calibration.variances.likeness.sum() * np.sum(likeness**2, axis=1))[:, None]
    slopes = _slopes(calibration, tasks, np.concatenate([-shares, phi], axis=2))
    empty = np.zeros((*target_cells.task.shape, 0))
    factors, known = np.zeros(target_cells.logs.shape), np.zeros(own.shape, dtype=bool)
    return Prediction(devices, mean, own, slopes, factors, target_cells, known, empty, empty)


def _prior_variance(calibration: Calibration, target_cells: Cells, shares: Floats) -> Floats:
    """Variance of each cell before the device's rows are looked at."""
    number = calibration.number
    variances = calibration.variances.devices
    of_factors = variances[:number] + target_cells.gaps**2
    of_factors[..., MATRIX_TERM] += variances[FORMAT]
    return np.asarray(np.sum(shares**2 * of_factors, axis=2) + variances[[DEVICE, FAMILY, MISFIT]].sum())


def _slopes(calibration: Calibration, tasks: Whole, own: Floats) -> Floats:
    """Slopes (B, Q, TM) that are ``own`` (B, Q, M) at the parameters of each cell's task."""
    devices, cell_count, width = own.shape
    slopes = np.zeros((devices, cell_count, len(calibration.seen.tasks), width))
    slopes[:, np.arange(cell_count), tasks] = own
    return slopes.reshape(devices, cell_count, len(calibration.seen.tasks) * width)


def _core(calibration: Calibration) -> Whole:
    """Devices that the process rests on: the reference, and the well-measured ones while their rows are few enough."""
    rows = np.bincount(calibration.seen.device, minlength=len(calibration.seen.devices))
    basis = calibration.basis[calibration.basis != calibration.reference]
    by_rows = basis[np.argsort(-rows[basis], kind="stable")]
    rows_left = max(0, CORE_ROWS - int(rows[calibration.reference]))
    chosen = by_rows[np.cumsum(rows[by_rows]) <= rows_left]
    return np.sort(np.append(chosen, calibration.reference))


def _features(calibration: Calibration, core: Whole, kernel: Kernel) -> Floats:
    """Log capabilities by device and task, D × T × 4, centred on ``core``; a capacity not stated is the mean."""
    logs = calibration.place.logs[:, :, [MATRIX_TERM, VECTOR_TERM, MEMORY_TERM]]
    stated = [device.accelerator_memory_capacity for device in calibration.seen.devices]
    capacity = np.log(np.array([np.nan if value is None else value for value in stated], dtype=float))
    known = core[np.isfinite(capacity[core])]
    centre = capacity[known].mean() if len(known) else 0.0
    capacity = np.where(np.isfinite(capacity), capacity - centre, 0.0)
    if not len(known):
        capacity = np.zeros_like(capacity)
    by_task = np.broadcast_to(kernel.capacity * capacity[:, None, None], (*logs.shape[:2], 1))
    return np.concatenate([logs - logs[core].mean(axis=0), by_task], axis=2)


def _kinship(calibration: Calibration, core: Whole, kernel: Kernel) -> Floats:
    """κ."""
    table = means(calibration, core, np.arange(len(calibration.seen.tasks)))
    table = table - table.mean(axis=0)
    table = table - table.mean(axis=1, keepdims=True)
    norms = np.sum(table**2, axis=0)
    squares = np.maximum(norms[:, None] + norms - 2 * table.T @ table, 0.0) / len(core)
    embedded = np.exp(squares / (-2 * kernel.task_reach**2))
    alike = calibration.seen.alike
    return np.asarray(
        (1 - kernel.family - kernel.own) * embedded + kernel.family * alike + kernel.own * np.eye(len(alike))
    )
