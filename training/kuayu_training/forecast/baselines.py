"""What a forecaster is measured against: the last value, seasonal naive, plain boosting, AutoARIMA and AutoETS.

The last two are those of StatsForecast (A. Garza et al., 2022), which is installed apart; where it is not, they are
left out. They see the last THIN_VALUES values of every tenth minute.
"""

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import xgboost

from kuayu.forecast.requests import Floats, Whole
from kuayu.forecast.series import DAY, Past
from kuayu_training.forecast.fitting import FIRST, MAX_MOVE, SEED
from kuayu_training.forecast.sources import MINUTE, Source

THIN, THIN_VALUES = 10, 288

TREES: dict[str, Any] = {
    "max_depth": 5,
    "learning_rate": 0.05,
    "objective": "reg:quantileerror",
    "quantile_alpha": 0.5,
    "tree_method": "hist",
    "subsample": 0.7,
    "min_child_weight": 50,
    "nthread": 1,
    "seed": SEED % 1000,
}
ROUNDS = 200
"""Plain gradient boosting of the median, one model for each horizon over all series."""


class Boosting:
    """Gradient boosting on the same features, fitted to the first half of every source.

    Args:
        datasets: Sources.
        ahead: Horizons, in minutes.
    """

    def __init__(self, datasets: Sequence[Source], ahead: Sequence[int]) -> None:
        chance = np.random.default_rng(SEED)
        self._models = {}
        for minutes in ahead:
            seen, moved = [], []
            for source in datasets:
                past = Past(source.values[:, : source.values.shape[1] // 2], MINUTE)
                origins = chance.choice(np.arange(FIRST, past.length - minutes), 2000)
                features, scale = past.features(minutes, origins)
                seen.append(features.reshape(-1, features.shape[2]))
                change = (past.values[:, origins + minutes] - past.values[:, origins]) / scale
                moved.append(np.clip(change, -MAX_MOVE, MAX_MOVE).ravel())
            data = xgboost.DMatrix(np.concatenate(seen), np.concatenate(moved), nthread=1)
            self._models[minutes] = xgboost.train(TREES, data, ROUNDS)

    def predict(self, values: Floats, minutes: int) -> Floats:
        """Forecasts from values of S × L, S."""
        past = Past(values, MINUTE)
        features, scale = past.features(minutes, np.array([past.length - 1]))
        moved: Floats = self._models[minutes].inplace_predict(features[:, 0]) * scale[:, 0]
        return np.maximum(values[:, -1] + moved, 0.0)


def seasonal(values: Floats, minutes: int) -> Floats:
    """What was there at the same time of the day before, S, from values of S × L."""
    back = round(DAY / MINUTE) - minutes
    return values[:, -1 - back] if values.shape[1] > back else values[:, 0]


def automatic(values: Floats, minutes: Sequence[int]) -> Mapping[str, Floats]:
    """Forecasts of AutoARIMA and AutoETS, S × T each, from values of each minute, S × L (`automatic_at`)."""
    thin = values[:, ::-1][:, ::THIN][:, :THIN_VALUES][:, ::-1]
    return automatic_at(thin, np.array([one // THIN for one in minutes]))


def automatic_at(values: Floats, steps: Whole) -> Mapping[str, Floats]:
    """Forecasts of AutoARIMA and AutoETS, S × T each, from values of S × L; nothing where they are not installed."""
    if find_spec("statsforecast") is None:
        return {}
    models = import_module("statsforecast.models")
    factories = {"AutoARIMA": models.AutoARIMA, "AutoETS": models.AutoETS}
    return {name: np.stack([_automatic(make, row, steps) for row in values]) for name, make in factories.items()}


def _automatic(make: Any, row: Floats, steps: Whole) -> Floats:
    if np.ptp(row) == 0:
        return np.full(len(steps), row[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = make(season_length=1).forecast(y=row.copy(), h=int(steps.max()))["mean"]
    predicted: Floats = np.maximum(np.nan_to_num(mean[steps - 1], nan=row[-1]), 0.0)
    return predicted
