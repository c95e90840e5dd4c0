"""Forecasts of flows (submissions and requests in ten minutes) beside gradient boosting and other baselines.

``python -m kuayu_training.forecast flows [--json FILE]``. The last quarter of each is forecast from instants spread
over it. Boosting is fitted to the first half of the flow itself, by the features of ``kuayu.forecast.series``, once by
XGBoost and, where it is installed, once by LightGBM; history was fitted to none of these series.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import xgboost

from kuayu.forecast.forecasting import Question, remember
from kuayu.forecast.history import LEVELS, MIDDLE
from kuayu.forecast.hybrid import at_levels
from kuayu.forecast.requests import Floats, Whole
from kuayu.forecast.series import DAY, Past
from kuayu_training.forecast.baselines import ROUNDS, TREES, automatic_at
from kuayu_training.forecast.fitting import MAX_MOVE
from kuayu_training.forecast.judgement import AHEAD, Backtest
from kuayu_training.forecast.judgement import LEVELS as JUDGED
from kuayu_training.forecast.sources import TEN_MINUTES, Source

if TYPE_CHECKING:
    from kuayu_schemas import documents

SEED = 20_261_225

FIRST = 150
"""Values before the first that boosting is fitted to: a day and a little."""

SEEN = 3 * 1008
"""Values that are looked at: three weeks."""

STEPS = tuple(minutes * 60 // int(TEN_MINUTES) for minutes in AHEAD)


def judge(source: Source, count: int, slow: int) -> Iterator[Backtest]:
    """Ours and the baselines' forecasts of one flow."""
    length = source.values.shape[1]
    tried = np.linspace(length * 3 // 4, length - 1 - max(STEPS), count).astype(np.int64)
    yield _judged(source, tried, "history", *_history(source, tried))
    back = round(DAY / source.step)
    yield _judged(source, tried, "seasonal naive", _at(source, [tried + ahead - back for ahead in STEPS]))
    for name in ("XGBoost", "LightGBM"):
        if name == "XGBoost" or find_spec("lightgbm") is not None:
            yield _judged(source, tried, name, _boosted(source, tried, name))
    few = tried[np.linspace(0, len(tried) - 1, slow).astype(np.int64)] if slow else tried[:0]
    predictions = [
        automatic_at(source.values[:, max(one - 1007, 0) : one + 1], np.array(STEPS)) for one in few.tolist()
    ]
    for name in predictions[0] if predictions else ():
        yield _judged(source, few, name, np.stack([prediction[name] for prediction in predictions]))


def _at(source: Source, columns: Sequence[Whole]) -> Floats:
    return np.stack([source.values[:, one].T for one in columns], axis=2)


def _judged(source: Source, tried: Whole, name: str, said: Floats, quantiles: Floats | None = None) -> Backtest:
    real = _at(source, [tried + ahead for ahead in STEPS])
    # blocks of the bootstrap are days, counted in minutes
    return Backtest(source.name, name, 10 * tried, said, real, _at(source, [tried] * len(STEPS)), quantiles)


def _history(source: Source, tried: Whole) -> tuple[Floats, Floats]:
    """Medians, N × D × T, and quantiles at the levels that are judged, N × D × T × Q."""
    question = Question(0.0, np.array([ahead * source.step for ahead in STEPS]), LEVELS)
    quantiles = []
    for one in tried.tolist():
        rows = source.values[:, max(one + 1 - SEEN, 0) : one + 1]
        begin = f"{np.datetime64(0, 's') - np.timedelta64(int(source.step) * (rows.shape[1] - 1), 's')}Z"
        series: list[documents.DemandSeries] = [
            {"id": name, "quantity": "requests", "begin": begin, "step": source.step, "values": row.tolist()}
            for name, row in zip(source.domains, rows, strict=True)
        ]
        quantiles.append(np.stack([past.values for past in remember(series, question)]))
    values = np.stack(quantiles)
    return values[..., MIDDLE], at_levels(values, JUDGED)


def _boosted(source: Source, tried: Whole, name: str) -> Floats:
    """Medians by gradient boosting, fitted to the first half."""
    past = Past(source.values, source.step)
    half = Past(source.values[:, : past.length // 2], source.step)
    predictions = []
    for ahead in STEPS:
        origins = np.arange(FIRST, half.length - ahead)
        seen, scale = half.features(ahead, origins)
        moved = np.clip((half.values[:, origins + ahead] - half.values[:, origins]) / scale, -MAX_MOVE, MAX_MOVE)
        wanted, unit = past.features(ahead, tried)
        rows, target, queries = seen.reshape(-1, seen.shape[2]), moved.ravel(), wanted.reshape(-1, wanted.shape[2])
        if name == "XGBoost":
            model = xgboost.train(TREES | {"seed": SEED % 1000}, xgboost.DMatrix(rows, target, nthread=1), ROUNDS)
            said = model.inplace_predict(queries)
        else:
            given = {"objective": "quantile", "alpha": 0.5, "n_estimators": ROUNDS, "learning_rate": 0.05}
            model = import_module("lightgbm").LGBMRegressor(**given, random_state=SEED, n_jobs=1, verbose=-1)
            said = model.fit(rows, target).predict(queries)
        predictions.append(np.maximum(source.values[:, tried] + said.reshape(unit.shape) * unit, 0.0).T)
    return np.stack(predictions, axis=2)
