"""The network that sets constants, compiled: ``kuayu.scheduling.policy_network`` over the compiled world.

Its weights are one row of numbers (:func:`flat`), which is empty where there is none. It is asked at the beginning of
each epoch that is decided, after the order of jobs is found, since that does not depend on what it sets.
"""

from collections.abc import Mapping
from math import isfinite, log1p, tanh
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu.scheduling.policy_network import BOUND, HIDDEN, LARGE, LAYERS, SEEN, SET, SPAN, TERABYTE
from kuayu_training.scheduling.core.layout import PARAMETERS, Floats, compiled

COUNT, CHOSEN = len(SEEN), len(SET)
PLACES = np.array([list(PARAMETERS).index(name) for name in SET])
"""Of what is set among all constants."""


def flat(weights: Mapping[str, NDArray[Any]]) -> Floats:
    """Weights and biases of all layers in a row, as float64."""
    return np.concatenate(
        [
            np.asarray(weights[f"{name}.{part}"], dtype=np.float64).ravel()
            for name in LAYERS
            for part in ("weight", "bias")
        ]
    )


@compiled
def see(w, r):
    """How things stand, after the order of jobs is found: ``SEEN``, into ``r.seen``."""
    e, records, seen = r.epoch[0], w.jobs, r.seen
    pending, best, left, used, overdue = w.pending, r.best, r.left, r.used, r.overdue
    total = float(e.reachable)
    demanded = large = late = length = 0.0
    for place in range(e.waiting):
        job = pending[place]
        requested = float(records[job].requested)
        demanded += requested
        large += requested if requested >= LARGE else 0.0
        late += overdue[job]
        length += log1p(left[job] / max(requested * used[job], 1e-9) / max(best[job], 1e-9) / 3600.0)
    large_running = 0.0
    for place in range(e.running):
        requested = float(records[r.running[place]].requested)
        large_running += requested if requested >= LARGE else 0.0
    free = 0.0
    for pool in range(r.reported.size):
        free += r.reported[pool] if r.reach[r.pool_site[pool]] else 0
    sites, reached, money, links = r.reach.size, 0, 0.0, 0
    for site in range(sites):
        reached += r.reach[site]
        for other in range(sites):
            if other != site and isfinite(r.tariff[site, other]):
                money += r.tariff[site, other]
                links += 1
    count = max(e.waiting, 1)
    seen[0], seen[1] = log1p(e.waiting) / 2.0, log1p(e.running) / 2.0
    seen[2], seen[3], seen[4], seen[5] = demanded / total, large / total, large_running / total, free / total
    seen[6], seen[7], seen[8] = late / count, length / count, reached / sites
    seen[9] = log1p(TERABYTE * (money / links)) / 2.0 if links else 0.0
    for place in range(seen.size):
        seen[place] = min(seen[place], BOUND)


@compiled
def set_constants(w, r):
    """Constants of the rule as the network wants them for the present state."""
    see(w, r)
    weights, scratch = r.network, r.levels
    width, begin, source = r.seen.size, 0, r.seen
    for layer in range(3):
        height = CHOSEN if layer == 2 else HIDDEN
        target = scratch[layer]
        for row in range(height):
            total = weights[begin + height * width + row]
            for column in range(width):
                total += weights[begin + row * width + column] * source[column]
            target[row] = tanh(total)
        begin += height * (width + 1)
        width, source = height, target
    for place in range(CHOSEN):
        r.parameters[PLACES[place]] = r.shipped[PLACES[place]] * 2.0 ** (SPAN * source[place])
