"""A small network that was fitted once to series of public traces, evaluated in NumPy.

It sees features of any series at any horizon, in units of that series' own movement, and tells quantiles of what the
series will move until then. ``python -m kuayu_training.forecast fit`` makes its weights.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from kuayu.forecast.requests import Floats

WEIGHTS = "history.npz"

_BELOW = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]

LEVELS = np.array([*_BELOW, 0.5, *(round(1 - level, 3) for level in reversed(_BELOW))])
"""Levels whose quantiles are told, Q."""

MIDDLE = 12
"""Place of the median among them."""

Weights = Mapping[str, Floats]


@cache
def weights() -> Weights:
    """What was fitted. In double precision, so that what stands beside a series does not show in its last digits."""
    with (files("kuayu.forecast") / WEIGHTS).open("rb") as file, np.load(file) as stored:
        return {name: stored[name].astype(float) for name in stored.files if stored[name].dtype == np.float32}


def quantiles(features: Floats) -> Floats:
    """Quantiles of the movement, in units of the usual movement.

    Args:
        features: … × FEATURES.

    Returns:
        … × Q, rising.
    """
    predicted: Floats = _rising(_told(features, slice(None))).reshape(*features.shape[:-1], len(LEVELS))
    return predicted


def medians(features: Floats) -> Floats:
    """Medians of the movement alone, which take less time: … for features of … × FEATURES."""
    predicted: Floats = _told(features, slice(MIDDLE, MIDDLE + 1)).reshape(features.shape[:-1])
    return predicted


def _told(features: Floats, places: slice) -> Floats:
    """What the network puts out at some places, N × places."""
    fitted = weights()
    flat = features.reshape(-1, features.shape[-1])
    hidden: Floats = (flat - fitted["mean"]) * fitted["scale"]
    for layer in ("first", "second"):
        hidden = np.maximum(hidden @ fitted[f"{layer}.weight"] + fitted[f"{layer}.bias"], 0.0)
    out: Floats = hidden @ fitted["last.weight"][:, places] + fitted["last.bias"][places]
    return out


def _rising(out: Floats) -> Floats:
    """The median, and steps from it to both sides that are never negative."""
    steps = np.logaddexp(out, 0.0)
    middle = out[:, MIDDLE : MIDDLE + 1]
    below = middle - np.cumsum(steps[:, MIDDLE - 1 :: -1], axis=1)[:, ::-1]
    above = middle + np.cumsum(steps[:, MIDDLE + 1 :], axis=1)
    return np.concatenate([below, middle, above], axis=1)
