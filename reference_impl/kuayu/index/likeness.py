"""Likeness of data sheets as a few features, so that devices lend each other what they have in common on a task.

The kernel exp(−|x − y|²/2ℓ²) on log capabilities is cut to its leading directions on the well-measured devices
(Nyström; Rasmussen and Williams 2006, section 8.1). It serves devices that were measured at least once: on them a
probe can show that likeness misleads. An unmeasured device gets nothing from it, since its index has to be monotone in
its data sheet.
"""

import numpy as np

from kuayu.index.observations import Floats, Whole
from kuayu.index.sheets import MEMORY, VECTOR, complete
from kuayu.index.terms import MATRIX_TERM, TaskTerms, levels

DIRECTIONS = 4
"""How many leading directions are kept."""

REACH = 1.0
"""ℓ: root mean square difference of log capabilities at which likeness has faded to exp(−½)."""

MIN_TRACE_SHARE = 1e-6
"""Directions with less than this part of the kernel's trace are noise."""


def coordinates(sheets: Floats, centre: Floats, tasks: TaskTerms, basis: Whole) -> Floats:
    """Log capabilities of devices: the peak for each set of formats, binary32 and memory bandwidth; D × any.

    Those that are the same number on every device of ``basis`` count once.
    """
    filled = complete(sheets, centre).logs
    firsts = np.unique(tasks.pool, return_index=True)[1].astype(np.int64)
    peaks = levels(sheets, centre, tasks.only(firsts)).logs[:, :, MATRIX_TERM]
    columns = [*peaks.T, filled[:, VECTOR], filled[:, MEMORY]]
    table = np.stack(columns, axis=1)
    kept = np.unique(table[basis], axis=1, return_index=True)[1]
    return table[:, np.sort(kept)]


def features(points: Floats, basis: Whole) -> Floats:
    """Features of devices, D × p, from coordinates; inner products are the kernel's, centred on ``basis``."""
    near = points[basis]
    kernel = np.exp(-np.mean((points[:, None, :] - near[None, :, :]) ** 2, axis=-1) / (2 * REACH**2))
    sizes, directions = np.linalg.eigh(kernel[basis])
    kept = np.argsort(-sizes)[: min(DIRECTIONS, len(basis) - 1)]
    kept = kept[sizes[kept] > MIN_TRACE_SHARE * sizes.sum()]
    made = kernel @ directions[:, kept] / np.sqrt(sizes[kept])
    return np.asarray(made - made[basis].mean(axis=0))
