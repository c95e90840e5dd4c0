"""Log throughput of any device on any task, from a calibration, and the index that follows.

A pair that was measured is known. Another pair of a measured device is predicted with the device's calibration. One
without measurements gets the harmonic mean of its data sheet and nothing else, which makes its index monotone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kuayu.index.calibration import Calibration, factors_at
from kuayu.index.cells import Cells, cells, factor_weights, part, rest_weights
from kuayu.index.observations import Floats, Whole
from kuayu.index.terms import MATRIX_TERM, Flags
from kuayu.index.variances import DEVICE, FAMILY, FORMAT, MISFIT

AT_ONCE = 4_000_000
"""Numbers that one array of slopes may hold; more devices are taken in turn."""


@dataclass(frozen=True)
class Predicted:
    """Log throughputs of B devices on Q tasks, each at the device count of the task's index.

    Attributes:
        device: Positions of the devices, (B,).
        mean: Means, (B, Q).
        own: Variances given the tasks' parameters, (B, Q).
        slopes: Derivatives of the means by all parameters of tasks, (B, Q, TM).
        factors: Log factors that calibrate the capabilities, (B, Q, K).
        held: The cells.
        known: Pairs that were measured.
        weights: Weights of the device's rows in each mean, (B, Q, n); none for a device without rows.
        covariances: Covariance of each cell with the device's rows, (B, Q, n).
    """

    device: Whole
    mean: Floats
    own: Floats
    slopes: Floats
    factors: Floats
    held: Cells
    known: Flags
    weights: Floats
    covariances: Floats

    def own_covariance(self, calibration: Calibration, row: int, columns: list[int], *, lend: bool) -> Floats:
        """Covariance of some cells of one device given the tasks' parameters; nought where they are known."""
        chosen = part(self.held, np.array([row]))
        cells = chosen.columns(columns)
        _, shares = cells.times(calibration.demands, self.factors[[row]][:, columns])
        variances = calibration.variances.devices
        by_factor = factor_weights(cells, cells, shares, variances)
        rest = rest_weights(cells, cells, calibration.seen.alike, variances)
        made = np.einsum("bqk,bqnk->bqn", shares, by_factor) + rest
        made = made[0] - self.weights[row, columns] @ self.covariances[row, columns].T
        if not self.weights.shape[2] and not lend:
            likeness = calibration.likeness[self.device[row]]
            own, family = calibration.variances.likeness * float(likeness @ likeness)
            tasks = cells.task[0]
            made += own * (tasks[:, None] == tasks) + family * calibration.seen.alike[np.ix_(tasks, tasks)]
        known = self.known[row, columns]
        made[known] = 0.0
        made[:, known] = 0.0
        return np.asarray(made)


def predict(calibration: Calibration, devices: Whole, tasks: Whole, *, lend: bool = False) -> Iterator[Predicted]:
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
    found = np.full((len(calibration.seen.devices), len(tasks)), np.nan)
    for batch, rows in enumerate(calibration.rows):
        which = np.flatnonzero(np.isin(rows.cells.device, devices))
        if len(which):
            found[rows.cells.device[which]] = _BatchMeans.at(calibration, batch, which, tasks).mean
    table = calibration.seen.measured[:, tasks]
    return np.where(np.isfinite(table), table, found)[devices]


def cells_at(calibration: Calibration, devices: Whole, tasks: Whole) -> Cells:
    """Cells of all pairs of devices and tasks."""
    task = np.broadcast_to(tasks, (len(devices), len(tasks)))
    return cells(devices, task, calibration.place, calibration.terms, calibration.number)


@dataclass(frozen=True)
class _BatchMeans:
    """Devices of a batch with what their rows say of queried cells; fields as those of :class:`Predicted`."""

    measured: Cells
    held: Cells
    factors: Floats
    shares: Floats
    rest: Floats
    mean: Floats

    @staticmethod
    def at(calibration: Calibration, batch: int, which: Whole, tasks: Whole) -> "_BatchMeans":
        measured, pulls = part(calibration.rows[batch].cells, which), calibration.solved.pulls[batch][which]
        shares = -calibration.linear[batch].slopes[which][:, :, : calibration.number]
        variances = calibration.variances
        held = cells_at(calibration, measured.device, tasks)
        factors = factors_at(held, measured, shares, variances, pulls)
        time, own_shares = held.times(calibration.demands, factors)
        rest = rest_weights(held, measured, calibration.seen.alike, variances.devices)
        likeness = calibration.likeness[measured.device]
        mean = -time + likeness @ calibration.likings[tasks].T + np.einsum("bqn,bn->bq", rest, pulls)
        return _BatchMeans(measured, held, factors, own_shares, rest, mean)


def _with_rows(calibration: Calibration, batch: int, which: Whole, tasks: Whole) -> Predicted:
    slopes, inverse = calibration.linear[batch].slopes[which], calibration.solved.inverses[batch][which]
    shares = -slopes[:, :, : calibration.number]
    variances = calibration.variances
    found = _BatchMeans.at(calibration, batch, which, tasks)
    measured, held, factors, own_shares = found.measured, found.held, found.factors, found.shares
    rest, mean = found.rest, found.mean
    likeness = calibration.likeness[measured.device]
    by_factor = factor_weights(held, measured, shares, variances.devices)
    covariances = np.einsum("bqk,bqnk->bqn", own_shares, by_factor) + rest
    weights = covariances @ inverse
    own = _prior_variance(calibration, held, own_shares) - np.einsum("bqn,bqn->bq", weights, covariances)
    phi = np.broadcast_to(likeness[:, None, :], (*held.task.shape, likeness.shape[1]))
    made = _slopes(calibration, tasks, np.concatenate([-own_shares, phi], axis=2))
    flat = made.reshape(*held.task.shape, -1, calibration.width)
    device, cell = np.arange(len(which))[:, None], np.arange(len(tasks))[None, :]
    for row in range(measured.task.shape[1]):
        flat[device, cell, measured.task[:, row, None]] -= weights[:, :, row, None] * slopes[:, None, row, :]
    table = calibration.seen.measured[measured.device][:, tasks]
    known = np.isfinite(table)
    made[known] = 0.0
    mean, own = np.where(known, table, mean), np.where(known, 0.0, np.maximum(own, 0.0))
    return Predicted(measured.device, mean, own, made, factors, held, known, weights, covariances)


def _without_rows(calibration: Calibration, devices: Whole, tasks: Whole, *, lend: bool) -> Predicted:
    held = cells_at(calibration, devices, tasks)
    time, shares = held.times(calibration.demands)
    likeness = calibration.likeness[devices]
    own = _prior_variance(calibration, held, shares)
    phi = np.zeros((*held.task.shape, likeness.shape[1]))
    mean = -time
    if lend:
        phi += likeness[:, None, :]
        mean = mean + likeness @ calibration.likings[tasks].T
    else:
        own += (calibration.variances.likeness.sum() * np.sum(likeness**2, axis=1))[:, None]
    made = _slopes(calibration, tasks, np.concatenate([-shares, phi], axis=2))
    empty = np.zeros((*held.task.shape, 0))
    factors, known = np.zeros(held.logs.shape), np.zeros(own.shape, dtype=bool)
    return Predicted(devices, mean, own, made, factors, held, known, empty, empty)


def _prior_variance(calibration: Calibration, held: Cells, shares: Floats) -> Floats:
    """Variance of each cell before the device's rows are looked at."""
    number = calibration.number
    variances = calibration.variances.devices
    of_factors = variances[:number] + held.gaps**2
    of_factors[..., MATRIX_TERM] += variances[FORMAT]
    return np.asarray(np.sum(shares**2 * of_factors, axis=2) + variances[[DEVICE, FAMILY, MISFIT]].sum())


def _slopes(calibration: Calibration, tasks: Whole, own: Floats) -> Floats:
    """Slopes (B, Q, TM) that are ``own`` (B, Q, M) at the parameters of each cell's task."""
    devices, cell_count, width = own.shape
    made = np.zeros((devices, cell_count, len(calibration.seen.tasks), width))
    made[:, np.arange(cell_count), tasks] = own
    return made.reshape(devices, cell_count, len(calibration.seen.tasks) * width)


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
    reference: Predicted


def indices(calibration: Calibration, devices: Whole, tasks: Whole) -> Indices:
    """Log indices of devices for tasks."""
    seen = calibration.seen
    anchor = next(predict(calibration, np.array([calibration.reference]), tasks))
    shape = (len(seen.devices), len(tasks))
    mean, variance = np.full(shape, np.nan), np.full(shape, np.nan)
    measured = np.zeros(shape, dtype=bool)
    factors = np.zeros((*shape, calibration.number))
    for found in predict(calibration, devices, tasks):
        mean[found.device] = found.mean - anchor.mean
        away = found.slopes - anchor.slopes
        across = np.einsum("bqm,bqm->bq", away @ calibration.solved.covariance, away)
        variance[found.device] = found.own + anchor.own + np.maximum(across, 0.0)
        measured[found.device] = found.known & anchor.known
        factors[found.device] = found.factors
    repeats = np.maximum(seen.repeats[:, tasks], 1.0)
    noise = seen.spread**2 * (1 / repeats + 1 / repeats[calibration.reference])
    variance = np.where(measured, noise, variance + seen.spread**2)
    mean[calibration.reference], variance[calibration.reference] = 0.0, 0.0
    return Indices(mean, variance, measured, factors, anchor)
