"""Explanations: index = residual / Σ_k weight_k / ratio_k, and what a changed data sheet would do.

Weights are the shares of the task's time on the reference, ratios are calibrated capabilities over the reference's, and
the residual is what is left. A lever is the data sheet changed and the harmonic mean taken again, calibration kept:
*matrix* stands for all number formats that the task may take, *vector* for binary32. For a device without measurements
that is what its index would be, to the last digit, however the terms overlap and whatever is filled in from the value.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kuayu.index.calibration import Calibration
from kuayu.index.cells import cells
from kuayu.index.observations import Floats, Whole
from kuayu.index.prediction import Indices, cells_at
from kuayu.index.ranges import MAX_AMOUNT, MIN_AMOUNT, raised
from kuayu.index.sheets import MEMORY, SCALE_OUT, VECTOR
from kuayu.index.terms import MATRIX_TERM, MEMORY_TERM, SCALE_OUT_TERM, TERMS, VECTOR_TERM, Flags

FACTOR = 2.0
"""Factor of every lever."""


@dataclass(frozen=True)
class Explained:
    """Explanations of B devices on Q tasks, as arrays.

    Attributes:
        weights: (Q, K).
        ratios: (B, Q, K).
        shares: (B, Q, K).
        residual: (B, Q).
        present: Terms that a task has, (Q, K).
        levers: Indices with a term's capability changed, (B, Q, K); NaN where there is no lever.
    """

    weights: Floats
    ratios: Floats
    shares: Floats
    residual: Floats
    present: Flags
    levers: Floats


def explain(calibration: Calibration, devices: Whole, tasks: Whole, found: Indices) -> Explained:
    """Explain the indices of devices for tasks."""
    anchor = found.reference
    _, weights = anchor.held.times(calibration.demands, anchor.factors)
    held = cells_at(calibration, devices, tasks)
    factors = found.factors[devices]
    ratios = raised(held.logs + factors - anchor.held.logs - anchor.factors)
    parts = weights / ratios
    total = parts.sum(axis=2, keepdims=True)
    value = raised(found.mean[devices])
    residual = np.clip(value * total[..., 0], MIN_AMOUNT, MAX_AMOUNT)
    present = held.present[0]
    levers = _levers(calibration, devices, tasks, found)
    return Explained(weights[0], ratios, parts / total, residual, present, levers)


def _levers(calibration: Calibration, devices: Whole, tasks: Whole, found: Indices) -> Floats:
    """Indices with each capability changed by FACTOR in the data sheet, (B, Q, K)."""
    sheets = calibration.seen.sheets[devices]
    factors = found.factors[devices]
    before, _ = cells_at(calibration, devices, tasks).times(calibration.demands, factors)
    made = np.full((len(devices), len(tasks), calibration.number), np.nan)
    for columns, term, on in _changes(calibration, tasks):
        stated = np.isfinite(sheets[:, columns]).any(axis=1)
        if not stated.any() or not on.any():
            continue
        changed = sheets.copy()
        changed[:, columns] += np.log(FACTOR)
        place = calibration.levels_of(changed)
        tasks_at = np.broadcast_to(tasks[on], (len(devices), int(on.sum())))
        held = cells(np.arange(len(devices)), tasks_at, place, calibration.terms, calibration.number)
        after, _ = held.times(calibration.demands, factors[:, on])
        value = raised(found.mean[devices][:, on] + before[:, on] - after)
        made[:, on, term] = np.where(stated.reshape(-1, 1), value, np.nan)
    made[devices == calibration.reference] = np.nan  # its index is one, whatever changes
    return made


def _changes(calibration: Calibration, tasks: Whole) -> list[tuple[Whole, int, Flags]]:
    """What levers change: columns of the data sheet, the term, and the tasks for which they do."""
    pools = calibration.terms.pool[tasks]
    present = calibration.terms.present[tasks]
    found: list[tuple[Whole, int, Flags]] = []
    for pool in np.unique(pools):
        allowed = calibration.terms.allowed[tasks][pools == pool][0]
        found.append((np.flatnonzero(allowed), MATRIX_TERM, pools == pool))
    for column, term in ((VECTOR, VECTOR_TERM), (MEMORY, MEMORY_TERM), (SCALE_OUT, SCALE_OUT_TERM)):
        if term < calibration.number:
            found.append((np.array([column], dtype=np.int64), term, present[:, term]))
    return found


def written(explained: Explained, device: int) -> list[dict[str, Any]]:
    """Write the explanations of one device, task by task, as values of the model's classes."""
    weights, ratios = explained.weights.tolist(), explained.ratios[device].tolist()
    shares, levers = explained.shares[device].tolist(), explained.levers[device].tolist()
    residual = explained.residual[device].tolist()
    found: list[dict[str, Any]] = []
    for task, present in enumerate(explained.present.tolist()):
        shown = [term for term, is_present in enumerate(present) if is_present]
        share = shares[task]
        terms = [
            {
                "capability": TERMS[term],
                "weight": min(1.0, weights[task][term]),
                "ratio": ratios[task][term],
                "share": min(1.0, share[term]),
            }
            for term in shown
        ]
        pulled = [
            {"capability": TERMS[term], "factor": FACTOR, "value": levers[task][term]}
            for term in shown
            if math.isfinite(levers[task][term])
        ]
        dominant = TERMS[max(shown, key=share.__getitem__)]
        found.append({"terms": terms, "residual": residual[task], "dominant": dominant, "levers": pulled})
    return found
