"""How streams of a destination share its links, so that each stream's own part of the bandwidth is known."""

import numpy as np

from kuayu.resilience.transfers.layout import Layout
from kuayu.resilience.transfers.scene import Floats, Scene

_ROUNDS = 24


def parts(scene: Scene, its: Layout) -> Floats:
    """Part of each link that is a stream's, (J, S); those of a link that anybody can use sum to one.

    Each stream moves its need to where links have more to spare, again and again, so that loads even out as far as
    copies allow.
    """
    need = np.array([stream.step_bytes / stream.step_s for stream in scene.streams])
    rates = np.maximum(its.expected, 1.0)
    count, width = its.links.shape
    flows = np.where(its.copies, rates[its.of], 0.0)
    columns = np.arange(width)
    cells = its.of[:, None] * width + columns
    loads = np.zeros((count, width))
    for turn in range(_ROUNDS if len(need) else 0):
        sums = flows.sum(axis=1, keepdims=True)
        flows = np.divide(flows * need[:, None], sums, out=np.zeros_like(flows), where=sums > 0.0)
        loads = np.bincount(cells.ravel(), flows.ravel(), count * width).astype(np.float64).reshape(count, width)
        if turn < _ROUNDS - 1:
            spare = np.divide(rates, loads, out=np.zeros_like(loads), where=loads > 0.0)
            flows *= np.sqrt(spare)[its.of]
    held = loads[its.of]
    return np.divide(flows, held, out=np.zeros_like(flows), where=held > 0.0)
