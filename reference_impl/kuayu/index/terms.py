"""Terms of the harmonic mean: which capability of a device stands for which part of a task's time.

*matrix* is the fastest of the task's number formats that the device states. *vector* is binary32; a task whose only
format is binary32 has no such term, since the two would be one number. A task that may also take binary32 keeps both:
its matrix work runs in the fastest format and its other work in binary32. *scale_out* counts where several devices work
together; *fixed* is one for every device.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kuayu.index.sheets import FORMATS, MEMORY, SCALE_OUT, VECTOR, complete
from kuayu_schemas.models import Capability

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

TERMS = (Capability.matrix, Capability.vector, Capability.memory, Capability.fixed, Capability.scale_out)
MATRIX_TERM, VECTOR_TERM, MEMORY_TERM, FIXED_TERM, SCALE_OUT_TERM = range(len(TERMS))
"""Places of the terms. That of *scale_out* is last, since it is cut off where every index is one of single devices."""

OWN_FORMAT = len(FORMATS)
"""Number of the format of a device that states none of the task's formats."""


@dataclass(frozen=True)
class TaskTerms:
    """What the terms of T tasks are.

    Attributes:
        allowed: Formats that each task may take, T × len(FORMATS).
        present: Terms that each task has at the count of its index, T × len(TERMS).
        pool: Number of each task's set of formats; tasks of one set share typical weights.
    """

    allowed: Flags
    present: Flags
    pool: Whole

    def only(self, tasks: Whole) -> "TaskTerms":
        """The same for some of the tasks."""
        return TaskTerms(self.allowed[tasks], self.present[tasks], self.pool[tasks])


@dataclass(frozen=True)
class Levels:
    """Logarithms of capabilities, term by term.

    Attributes:
        logs: Devices × tasks × len(TERMS); nought for *fixed*.
        variance: Variance of what was not stated, same shape.
        chosen: Number format that each device would take for each task; devices × tasks.
    """

    logs: Floats
    variance: Floats
    chosen: Whole


def task_terms(formats: Sequence[frozenset[str]], index_count: Whole) -> TaskTerms:
    """Terms of tasks with these number formats, whose indices are told at these device counts."""
    allowed = np.array([[name in own for name in FORMATS] for own in formats]).reshape(-1, len(FORMATS))
    present = np.ones((len(formats), len(TERMS)), dtype=bool)
    present[:, VECTOR_TERM] = [own != {FORMATS[VECTOR]} for own in formats]
    present[:, SCALE_OUT_TERM] = index_count > 1
    sets = sorted({tuple(sorted(own)) for own in formats})
    pool = np.array([sets.index(tuple(sorted(own))) for own in formats], dtype=np.int64)
    return TaskTerms(allowed, present, pool)


def levels(sheets: Floats, centre: Floats, tasks: TaskTerms) -> Levels:
    """Capabilities of devices (D × len(SHEET), with gaps) for tasks."""
    filled = complete(sheets, centre)
    devices, number = len(sheets), len(tasks.allowed)
    logs = np.zeros((devices, number, len(TERMS)))
    variance = np.zeros_like(logs)
    chosen = np.zeros((devices, number), dtype=np.int64)
    for pool in np.unique(tasks.pool):
        of_pool = tasks.pool == pool
        allowed = tasks.allowed[of_pool][0]
        stated = np.isfinite(sheets[:, : len(FORMATS)]) & allowed
        none = ~stated.any(axis=1)
        guessed = allowed if allowed.any() else np.ones(len(FORMATS), dtype=bool)
        eligible = np.where(none[:, None], guessed, stated)
        peaks = np.where(eligible, filled.logs[:, : len(FORMATS)], -np.inf)
        best = peaks.argmax(axis=1)
        own = np.arange(devices)
        logs[:, of_pool, MATRIX_TERM] = peaks[own, best][:, None]
        variance[:, of_pool, MATRIX_TERM] = np.where(none, filled.variance[own, best], 0.0)[:, None]
        chosen[:, of_pool] = np.where(none, OWN_FORMAT + pool, best)[:, None]
    for term, column in ((VECTOR_TERM, VECTOR), (MEMORY_TERM, MEMORY), (SCALE_OUT_TERM, SCALE_OUT)):
        logs[:, :, term] = filled.logs[:, column][:, None]
        variance[:, :, term] = filled.variance[:, column][:, None]
    return Levels(logs, variance, chosen)


def harmonic(demands: Floats, logs: Floats, present: Flags) -> tuple[Floats, Floats]:
    """Log time log Σ exp(z_k − l_k) and the share of each term; terms on the last axis."""
    exponents = np.where(present, demands - logs, -np.inf)
    highest = exponents.max(axis=-1, keepdims=True)
    parts = np.exp(exponents - highest)
    total = parts.sum(axis=-1, keepdims=True)
    return (highest + np.log(total))[..., 0], parts / total
