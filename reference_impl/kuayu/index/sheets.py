"""Data sheets as logarithms, and what stands in for values that a sheet does not state.

A missing value is drawn from a one-factor model of log capabilities, x_j = μ_j + s + e_j, with s the general size of a
device: its mean given the values that are there is μ_j + Σ(x − μ) / (n + σ_e²/σ_s²), which never falls when one of them
rises, so an index stays monotone. Its variance goes into the interval.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kuayu.index.ranges import MAX_AMOUNT
from kuayu_schemas.models import IndexedDevice, PrecisionThroughput

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
    """Natural logarithms of a device's capabilities, NaN where absent; nought, which has none, counts as one."""
    peaks = device.peak_matrix_throughput
    values = [None if peaks is None else getattr(peaks, name) for name in FORMATS]
    values += [device.accelerator_memory_bandwidth, device.scale_out_bandwidth]
    return np.array([math.nan if value is None else math.log(min(max(value, 1.0), MAX_AMOUNT)) for value in values])


@dataclass(frozen=True)
class Sheets:
    """Sheets without gaps.

    Attributes:
        logs: D × len(SHEET).
        variance: Variance of each value, nought where it is stated; D × len(SHEET).
    """

    logs: Floats
    variance: Floats


def usual(sheets: Floats) -> Floats:
    """Mean of each column over the sheets that state it, nought where none does; shape (len(SHEET),)."""
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
