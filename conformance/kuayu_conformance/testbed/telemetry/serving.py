"""Servers of inference: requests queue up and are worked off; load comes in bursts and moves about its mean."""

import numpy as np

from kuayu_conformance.testbed.chance import normal
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.telemetry.history import Floats, History

_KEPT = 0.85  # share of a deviation from the mean that is left a second later
_SPREAD = 0.12  # standard deviation of the logarithm of the load, by second
_BURSTS = 0.02  # chance by second that a burst begins
_BURST_SECONDS = 8.0  # mean length
_MIN_LOAD, _MAX_LOAD = 0.08, 0.95
_MOST_QUEUED = 2.0  # seconds of work; those who wait longer have gone


def duties(history: History, table: dict[str, Floats], chance: np.random.Generator) -> Floats:
    """Share of time in which the devices that are left work, rows × samples; means something for servers only."""
    rows, seconds = history.run.shape
    usual, factor = table["duty"], table["burst"]
    duty = np.zeros((rows, seconds), dtype=np.float32)
    aside = np.zeros(rows, dtype=np.float32)
    queue = np.zeros(rows, dtype=np.float32)
    bursting = np.zeros(rows, dtype=bool)
    for second in range(seconds):
        noise = normal(chance, rows)
        draws = chance.random(rows, dtype=np.float32)
        aside = np.float32(_KEPT) * aside + np.float32(_SPREAD) * noise
        bursting = np.where(bursting, draws > 1.0 / _BURST_SECONDS, draws < _BURSTS)
        run = history.run[:, second]
        mood = exponential(np.clip(aside, -0.6, 0.6).astype(np.float64)).astype(np.float32)
        load = usual[run] * mood * np.where(bursting, factor[run], np.float32(1.0))
        came = np.where(run >= 0, np.clip(load, _MIN_LOAD, _MAX_LOAD), np.float32(0.0)) * history.serving[:, second]
        room = history.serving[:, second] * (1 - history.lost[:, second])
        queue = np.where(history.serving[:, second] > 0, queue + came, np.float32(0.0))
        done = np.minimum(queue, room)
        queue = np.minimum(queue - done, np.float32(_MOST_QUEUED))
        duty[:, second] = done / np.maximum(1 - history.lost[:, second], np.float32(1e-6))
    return duty
