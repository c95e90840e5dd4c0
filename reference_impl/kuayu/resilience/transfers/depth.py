"""How many steps ahead data are fetched: as many as save enough waiting for the buffer that they hold.

Waiting is expected from three things that a cover of ``x`` seconds is to hide:

- the transfer itself, as far as it lasts longer than its head start;
- bandwidths: over a horizon of ``h`` seconds, what a quantile of a stream's part of all links carries less than it
  needs is a deficit, ``h · (1 - bandwidth / need)``; what exceeds ``x`` is waited for. Links are slow together;
- outages: while a link is out, the others leave a share ``u`` of the need unserved. With outages of exponential
  length, mean ``m``, that come at a rate ``λ``, the share of time waited is ``λ · u · m · exp(-x / (u · m))``.

The sum falls ever less with each step of depth, so the last step that saves at least so much is the best. Where all
together do not fit, the steps that save least for their bytes are left out, and then streams have theirs in order.
"""

from dataclasses import dataclass

import numpy as np

from kuayu.resilience.transfers.bandwidth import HORIZONS
from kuayu.resilience.transfers.layout import Layout
from kuayu.resilience.transfers.scene import Flags, Floats, Scene, Whole
from kuayu.resilience.transfers.sharing import parts

DEEPEST = 128
"""Steps; nothing is fetched earlier."""
LEAST = 2
"""Steps: while one step's data wait, those of the next are under way."""
WEIGHTS = np.array([0.075, 0.1, 0.2, 0.25, 0.2, 0.1, 0.075])
"""How much of the time each quantile of a forecast stands for."""
_HALVINGS = 16
_WHOLE = 1 + 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Depths:
    """How deep, and why.

    Attributes:
        steps: Of each stream, (J,); nought where the room does not hold one step.
        waiting: Share of time that each stream is expected to wait at each depth, (J, DEEPEST + 1).
        saving: Share of time that the last step of depth saves at least, for a step of mean size, (D,); more than asked
            for where the room is too small.
    """

    steps: Whole
    waiting: Floats
    saving: Floats


def depths(scene: Scene, its: Layout, outage_s: float) -> Depths:
    """Choose depths for all streams."""
    count = len(its.destinations)
    step_bytes = np.array([stream.step_bytes for stream in scene.streams], dtype=np.float64)
    many = np.maximum(np.bincount(its.of, minlength=count), 1)
    mean = np.bincount(its.of, step_bytes, minlength=count) / many
    waiting = _waiting(scene, its, outage_s)
    saved = (waiting[:, :-1] - waiting[:, 1:]) * (mean[its.of] / step_bytes)[:, None]
    most = np.minimum(np.floor(its.rooms[its.of] / step_bytes * _WHOLE), DEEPEST).astype(np.int64)

    def taken(saving: Floats) -> Whole:
        worth = saved >= saving[its.of, None]
        wanted = np.where(worth.any(axis=1), saved.shape[1] - np.argmax(worth[:, ::-1], axis=1), 1)
        made: Whole = np.minimum(np.maximum(wanted, LEAST), most)
        return made

    def fits(steps: Whole) -> Flags:
        room: Flags = np.bincount(its.of, steps * step_bytes, count) <= its.rooms * _WHOLE
        return room

    saving = np.full(count, scene.saving)
    steps = taken(saving)
    if not fits(steps).all():
        low, high = saving, np.maximum(saving, float(saved.max(initial=0.0)) + scene.saving)
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            fit = fits(taken(middle))
            low, high = np.where(fit, low, middle), np.where(fit, middle, high)
        saving = np.where(fits(steps), saving, high)
        steps = taken(saving)
    return Depths(_at_most(steps, step_bytes, its), waiting, saving)


def _waiting(scene: Scene, its: Layout, outage_s: float) -> Floats:
    """Expected share of waiting at depths of 0 to DEEPEST, (J, DEEPEST + 1)."""
    step_s = np.array([stream.step_s for stream in scene.streams])
    need = np.array([stream.step_bytes for stream in scene.streams]) / step_s
    mine = parts(scene, its)
    carried = mine * its.expected[its.of]
    together = np.maximum(carried.sum(axis=1), 1.0)
    latency = np.where(its.copies, its.latency_s[its.of], 0.0).max(axis=1, initial=0.0)
    head = need / together * step_s + latency  # seconds that a step's own transfer takes
    early = np.arange(DEEPEST + 1) * step_s[:, None]
    late = np.maximum(head[:, None] - early, 0.0) / step_s[:, None]
    cover = np.maximum(early - head[:, None], 0.0)
    slow = np.zeros_like(cover)
    sums = np.einsum("js,jshq->jhq", mine, its.rates[its.of])
    for place, horizon in enumerate(HORIZONS):
        span = horizon * scene.interval_s
        deficit = span * np.maximum(1.0 - sums[:, place] / need[:, None], 0.0)
        waited = np.zeros_like(cover)
        for quantile, weight in enumerate(WEIGHTS):
            waited += weight / span * np.maximum(deficit[:, quantile, None] - cover, 0.0)
        slow = np.maximum(slow, waited)  # the horizon that asks for most; longer ones hold the same deficits again
    left = together[:, None] - carried
    unserved = np.where(its.copies, np.clip(1.0 - left / need[:, None], 0.0, 1.0), 0.0) * outage_s
    gone = np.zeros_like(cover)
    for column in range(its.links.shape[1]):
        mean = np.maximum(unserved[:, column], 1e-9)
        gone += (its.hazards[its.of, column] * unserved[:, column])[:, None] * np.exp(-cover / mean[:, None])
    total: Floats = late + slow + gone
    return total


def _at_most(steps: Whole, step_bytes: Floats, its: Layout) -> Whole:
    """No more than the room: where not even two steps of each stream fit, streams have one after the other in order."""
    free = its.rooms * _WHOLE
    if (np.bincount(its.of, steps * step_bytes, len(free)) <= free).all():
        return steps
    made = np.zeros_like(steps)
    for _ in range(int(steps.max())):
        for row in np.flatnonzero(made < steps).tolist():
            if step_bytes[row] <= free[its.of[row]]:
                made[row] += 1
                free[its.of[row]] -= step_bytes[row]
    return made
