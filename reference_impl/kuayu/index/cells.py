"""Cells of devices × tasks, batched by device, and how their throughputs vary together.

Given the tasks' parameters, the log throughputs of a device vary as a Gaussian process (Rasmussen and Williams 2006).
An unknown factor δ on capability k moves cell t by s_kt δ, with s_kt the share of the term, so

    cov(t, u) = Σ_k s_kt s_ku (v_k + [k = matrix][same format] v_format + gaps_k) + v_device + [same family] v_family
                + [t = u] v_misfit.

Shares couple what is learnt on one task to others by how much both depend on the capability.
"""

from dataclasses import dataclass, replace

import numpy as np

from kuayu.index.observations import Floats, Observations, Whole
from kuayu.index.terms import MATRIX_TERM, Flags, Levels, TaskTerms, harmonic
from kuayu.index.variances import DEVICE, FAMILY, FORMAT, MISFIT, OF_DEVICES


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


@dataclass(frozen=True)
class Rows:
    """Cells that were measured, with what was found.

    Attributes:
        cells: Where.
        found: Log throughputs of one device, (B, n).
        noise: Variances of ``found`` beyond the model's, (B, n).
    """

    cells: Cells
    found: Floats
    noise: Floats

    def only(self, which: Flags) -> "Rows":
        """The rows of some of the devices."""
        return Rows(part(self.cells, which), self.found[which], self.noise[which])


def batches(seen: Observations, place: Levels, terms: TaskTerms, number: int) -> list[Rows]:
    """Rows of a corpus, devices with as many rows in one batch; batches by rising number of rows."""
    order = np.argsort(seen.device, kind="stable")
    devices, first, rows_on = np.unique(seen.device[order], return_index=True, return_counts=True)
    found: list[Rows] = []
    for size in np.unique(rows_on):
        of_size = rows_on == size
        rows = order[first[of_size][:, None] + np.arange(size)]
        held = cells(devices[of_size], seen.task[rows], place, terms, number)
        found.append(Rows(held, seen.log_throughput[rows], seen.noise[rows]))
    return found


def shapes(a: Cells, b: Cells, shares_a: Floats, shares_b: Floats, alike: Floats) -> Floats:
    """Derivatives of the covariance by each variance of devices, (len(OF_DEVICES), B, n_a, n_b)."""
    terms = shares_a.shape[-1]
    made = np.zeros((len(OF_DEVICES), len(a.device), a.task.shape[1], b.task.shape[1]))
    made[:terms] = np.moveaxis(shares_a[:, :, None, :] * shares_b[:, None, :, :], -1, 0)
    made[FORMAT] = made[MATRIX_TERM] * (a.chosen[:, :, None] == b.chosen[:, None, :])
    made[DEVICE] = 1.0
    made[FAMILY] = alike[a.task[:, :, None], b.task[:, None, :]]
    made[MISFIT] = a.task[:, :, None] == b.task[:, None, :]
    return made


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


def part(held: Cells, which: Flags | Whole) -> Cells:
    """The same cells on some of the devices."""
    return replace(
        held,
        device=held.device[which],
        task=held.task[which],
        logs=held.logs[which],
        gaps=held.gaps[which],
        chosen=held.chosen[which],
        present=held.present[which],
    )
