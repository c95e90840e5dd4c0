"""Capabilities of devices: data sheets as logarithms, what stands in for gaps, and the terms of the harmonic mean.

1. A data sheet is a row of natural logarithms, one column for each of ``SHEET``; NaN is what it does not state.
2. A missing value is drawn from a one-factor model of log capabilities, x_j = μ_j + s + e_j, with s the general size of
   a device: its mean given the values that are there is μ_j + Σ(x − μ) / (n + σ_e²/σ_s²), which never falls when one of
   them rises, so an index stays monotone. Its variance goes into the interval.
3. A term says which capability stands for which part of a task's time. *matrix* is the fastest of the task's number
   formats that the device states. *vector* is binary32; a task whose only format is binary32 has no such term, since
   the two would be one number. A task that may also take binary32 keeps both: its matrix work runs in the fastest
   format and its other work in binary32. *scale_out* counts where several devices work together; *fixed* is one for
   every device.
4. An amount beyond what the model can hold is given as the end of its range (``positive``, ``raised``).
 Example: of a device that states fp16 and memory bandwidth alone, the *vector* term is filled in from the other two,
with a variance; the *matrix* term of a task in fp16 is what the sheet says, with none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kuayu_schemas.models import Capability, IndexedDevice, PrecisionThroughput

Floats = npt.NDArray[np.float64]

FORMATS = tuple(PrecisionThroughput.model_fields)
"""Number formats whose peak a data sheet may state."""

MEMORY, SCALE_OUT = len(FORMATS), len(FORMATS) + 1
"""Columns of the bandwidths, after those of the formats."""

SHEET = (*FORMATS, "accelerator_memory_bandwidth", "scale_out_bandwidth")
"""Columns of a sheet."""

VECTOR = FORMATS.index("fp32")

SIZE_VARIANCE, OWN_VARIANCE = 0.8**2, 0.5**2
"""Variance of the general size of a device, and of one value around it; natural logarithms.

About what the data sheets of accelerators between 2014 and 2024 show: they span a factor of ten to a hundred, and a
value strays from the others by one half.
"""


def sheet_of(device: IndexedDevice) -> Floats:
    """Natural logarithms of a device's capabilities, NaN where absent; zero, which has none, counts as one."""
    peaks = device.peak_matrix_throughput
    values = [None if peaks is None else getattr(peaks, name) for name in FORMATS]
    values += [device.accelerator_memory_bandwidth, device.scale_out_bandwidth]
    return np.array([math.nan if value is None else math.log(min(max(value, 1.0), MAX_AMOUNT)) for value in values])


@dataclass(frozen=True)
class Sheets:
    """Sheets without gaps.

    Attributes:
        logs: D × len(SHEET).
        variance: Variance of each value, zero where it is stated; D × len(SHEET).
    """

    logs: Floats
    variance: Floats


def usual(sheets: Floats) -> Floats:
    """Mean of each column over the sheets that state it, zero where none does; shape (len(SHEET),)."""
    known = np.isfinite(sheets)
    total: Floats = np.where(known, sheets, 0.0).sum(axis=0)
    return np.asarray(total / np.maximum(known.sum(axis=0), 1))


def complete(sheets: Floats, centre: Floats) -> Sheets:
    """Fill the gaps of sheets (… × len(SHEET)) around usual values.

    The bandwidth between devices says nothing of a single device and is drawn from the others, never the other way.
    """
    known = np.isfinite(sheets)
    telling = known & (np.arange(len(SHEET)) != SCALE_OUT)
    number = telling.sum(axis=-1, keepdims=True)
    size = np.where(telling, sheets - centre, 0.0).sum(axis=-1, keepdims=True) / (number + OWN_VARIANCE / SIZE_VARIANCE)
    unsure = OWN_VARIANCE + 1 / (1 / SIZE_VARIANCE + number / OWN_VARIANCE)
    return Sheets(np.where(known, sheets, centre + size), np.where(known, 0.0, unsure))


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
        logs: Devices × tasks × len(TERMS); zero for *fixed*.
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


MIN_AMOUNT, MAX_AMOUNT = 1e-30, 1e30
"""Ends of a positive amount."""

MAX_LOG = 69.0
"""About the logarithm of the largest positive amount; where logarithms are cut before they are raised to e."""


def positive(value: float) -> float:
    """A value as a positive amount."""
    return min(max(value, MIN_AMOUNT), MAX_AMOUNT)


def raised(logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Positive amounts of these logarithms."""
    return np.asarray(np.clip(np.exp(np.clip(logs, -MAX_LOG - 1, MAX_LOG + 1)), MIN_AMOUNT, MAX_AMOUNT))
