"""Noise about the trend of a loss, as real curves have it.

What was measured: the standard deviation of the logarithm of the loss about its running mean over a twentieth of the
points, in the last 70 % of a run, and how much of it is left at the next point. Sources: Megatron-LM's release runs and
MLPerf Training (see :mod:`kuayu_conformance.testbed.curves.real`, which names the files); medians over the runs of a
kind. ``tests/conformance/testbed/curves`` measures them anew where the data are at hand.
"""

from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.curves.values import Floats


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of a kind of training.

    Attributes:
        kind: Which.
        size: Standard deviation of the logarithm of the loss from point to point.
        kept: Share of a deviation that is left at the next point (correlation of neighbours).
    """

    kind: str
    size: float
    kept: float


MEASURED = (
    Noise("megatron bert", 0.0308, -0.02),
    Noise("megatron gpt", 0.0104, -0.15),
    Noise("megatron mixtral", 0.0078, -0.03),
    Noise("megatron nemotron", 0.0043, -0.06),
    Noise("megatron t5", 0.0176, 0.0),
    Noise("mlperf llama31_405b", 0.0024, -0.06),
    Noise("mlperf llama31_8b", 0.0183, -0.07),
)


def measure(losses: Floats) -> Noise:
    """Noise of a curve.

    Args:
        losses: Of shape (points,), a hundred or more of them.
    """
    logs = np.log(losses)
    width = max(5, len(logs) // 20)
    trend = np.convolve(logs, np.full(width, 1.0 / width), "valid")
    left = (logs[width // 2 :][: len(trend)] - trend)[int(0.3 * len(trend)) :]
    return Noise("measured", float(left.std()), float(np.corrcoef(left[:-1], left[1:])[0, 1]))


def deviations(drawn: Floats, noise: Noise) -> Floats:
    """Deviations of the logarithm of the loss, each of which keeps a share of the one before.

    Args:
        drawn: Independent normal numbers, of shape (points,).
        noise: Of which size, and how much is kept.
    """
    fresh = noise.size * float(np.sqrt(1.0 - noise.kept**2))
    found, last = np.empty(len(drawn)), noise.size * drawn[0]
    for place, number in enumerate(drawn):
        last = last if place == 0 else noise.kept * last + fresh * number
        found[place] = last
    return found
