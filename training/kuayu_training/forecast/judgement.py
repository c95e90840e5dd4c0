"""Forecasts of public traces that nothing was fitted to, beside those of baselines.

1. Forecasts are of the last quarter of every source. Figures of them are JSON (:func:`figures`) and tables
   (:func:`tables`).
2. Baselines are the last value, seasonal naive, plain boosting, AutoARIMA and AutoETS. The last two are those of
   StatsForecast (A. Garza et al., 2022), which is installed apart; where it is not, they are left out. They see the
   last THIN_VALUES values of every tenth minute.
3. Flows are submissions and requests in ten minutes, forecast from instants spread over the last quarter of each.
   Boosting is fitted to the first half of the flow itself, by the features of ``kuayu.forecast.series``, once by
   XGBoost and, where it is installed, once by LightGBM; history was fitted to none of these series.
"""

import datetime as dt
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost
from rich.table import Table

from kuayu.forecast.forecasting import Question, forecast, forecast_by_history
from kuayu.forecast.history import LEVELS as HISTORY_LEVELS
from kuayu.forecast.history import MIDDLE as HISTORY_MIDDLE
from kuayu.forecast.hybrid import at_levels
from kuayu.forecast.requests import Floats, Whole
from kuayu.forecast.series import DAY, Past
from kuayu_training.forecast.fitting import FIRST, MAX_MOVE
from kuayu_training.forecast.fitting import SEED as FIT_SEED
from kuayu_training.forecast.sources import AHEAD, MINUTE, TEN_MINUTES, Jobs, Source, Teller

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
    "seed": FIT_SEED % 1000,
}
ROUNDS = 200
"""Plain gradient boosting of the median, one model for each horizon over all series."""

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])

MIDDLE = 3

SEEN = 2000
"""Values of a series that are shown to a method."""

BLOCK = 1440
"""Minutes that are drawn together by the bootstrap: a day."""

DRAWS = 1000

ANNOUNCED = 3600.0
"""For how many seconds arrivals are known beforehand, where they are."""

SEED = 7

_ORIGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

FLOW_SEED = 20_261_225

FLOW_FIRST = 150
"""Values before the first that boosting is fitted to: a day and a little."""

FLOW_SEEN = 3 * 1008
"""Values that are looked at: three weeks."""

FLOW_STEPS = tuple(minutes * 60 // int(TEN_MINUTES) for minutes in AHEAD)


class Boosting:
    """Gradient boosting on the same features, fitted to the first half of every source.

    Args:
        datasets: Sources.
        ahead: Horizons, in minutes.
    """

    def __init__(self, datasets: Sequence[Source], ahead: Sequence[int]) -> None:
        chance = np.random.default_rng(FIT_SEED)
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


@dataclass(frozen=True)
class Backtest:
    """Forecasts of one source by one method.

    Attributes:
        source: Name of the source.
        method: Name of the method.
        origins: Minutes from which it was forecast, N.
        predicted: Medians, N × D × T.
        real: What came, N × D × T.
        last: Last values, N × D × T.
        quantiles: At LEVELS, N × D × T × Q; nothing where a method tells none.
    """

    source: str
    method: str
    origins: Whole
    predicted: Floats
    real: Floats
    last: Floats
    quantiles: Floats | None = None


def origins(source: Source, count: int) -> Whole:
    """So many minutes, evenly over the last quarter."""
    length = source.values.shape[1]
    return np.linspace(length * 3 // 4, length - 1 - max(AHEAD), count).astype(np.int64)


def judge(source: Source, count: int, boosting: Boosting) -> list[Backtest]:
    """Our forecasts without jobs, and those of the baselines that are quick."""
    return [
        _hybrid(source, origins(source, count), "history", None, None),
        _by_baseline(source, origins(source, count), "seasonal naive", lambda seen: _at_horizons(seasonal, seen)),
        _by_baseline(source, origins(source, count), "boosting", lambda seen: _at_horizons(boosting.predict, seen)),
    ]


def judge_jobs(source: Source, jobs: Jobs, tellers: Mapping[str, Teller], count: int) -> list[Backtest]:
    """Our forecasts with the jobs that are there at each instant, and by the first teller also with those to come."""
    tried = origins(source, count)
    first, teller = next(iter(tellers.items()))
    backtests = [_hybrid(source, tried, name, jobs, other) for name, other in tellers.items()]
    return [*backtests, _hybrid(source, tried, f"{first}, arrivals announced", jobs, teller, ANNOUNCED)]


def judge_slow(source: Source, count: int) -> list[Backtest]:
    """AutoARIMA and AutoETS, where they are installed."""
    tried = origins(source, count)
    predictions = [automatic(_seen(source, one), AHEAD) for one in tried.tolist()]
    return [
        _judged(source, tried, name, np.stack([prediction[name] for prediction in predictions]))
        for name in predictions[0]
    ]


def request_at(
    source: Source,
    minute: int,
    jobs: Jobs | None,
    teller: Teller | None,
    announced: float = 0.0,
    ended: float = 0.0,
) -> "documents.ForecastRequest":
    """What a service would be asked when the value of a minute has just become known.

    Args:
        source: Series.
        minute: The last that is known.
        jobs: Jobs, where they are known.
        teller: What was said of their durations.
        announced: Seconds for which arrivals are known beforehand.
        ended: Seconds for which jobs that ended are known.
    """
    now = source.offset + MINUTE * (minute + 1) - 0.001
    begin = _instant(source.offset + MINUTE * (minute - SEEN + 1))
    request: documents.ForecastRequest = {
        "revision": {"epoch": "judging", "number": minute},
        "now": _instant(now),
        "horizons": [MINUTE * one for one in AHEAD],
        "levels": LEVELS.tolist(),
        "series": [
            {
                "id": name,
                "domain": name,
                "quantity": "demanded_devices",
                "begin": begin,
                "step": MINUTE,
                "values": row.tolist(),
            }
            for name, row in zip(source.domains, _seen(source, minute), strict=True)
        ],
    }
    if jobs is not None and teller is not None:
        coming = np.flatnonzero((now < jobs.came) & (jobs.came <= now + announced))
        request["jobs"] = [_job(source, jobs, teller, one) for one in jobs.at(now).tolist()]
        request["jobs"] += [_job(source, jobs, teller, one, runs=False) for one in coming.tolist()]
        ends = jobs.came + jobs.lasts
        gone = np.flatnonzero((now - ended < ends) & (ends <= now)).tolist()
        over = [_job(source, jobs, teller, one) | {"ended_at": _instant(float(ends[one]))} for one in gone]
        request["jobs"] += over
    return request


def waped(judged: Backtest) -> Floats:
    """Sum of errors over sum of values of each domain, D × T; not a number where nothing was needed."""
    needed = judged.real.sum(axis=0)
    errors = np.abs(judged.predicted - judged.real).sum(axis=0)
    return np.where(needed > 0, errors / np.maximum(needed, 1e-9), np.nan)


def skills(judged: Backtest, place: int) -> tuple[Floats, float, float, float]:
    """One less the error over that of the last value.

    Args:
        judged: Forecasts.
        place: Of the horizon in AHEAD.

    Returns:
        By domain, D, those left out where the last value never misses; the median of them, and its interval of 90 %
        from drawing whole days with replacement.
    """
    mine = np.abs(judged.predicted - judged.real)[:, :, place]
    theirs = np.abs(judged.last - judged.real)[:, :, place]
    counted = theirs.sum(axis=0) > 0
    blocks = judged.origins // BLOCK
    days = np.unique(blocks)
    summed = [np.stack([misses[blocks == day][:, counted].sum(axis=0) for day in days]) for misses in (mine, theirs)]
    drawn = np.random.default_rng(SEED).integers(0, len(days), (DRAWS, len(days)))
    by_domain = _skill(summed[0].sum(axis=0), summed[1].sum(axis=0))
    with warnings.catch_warnings():
        # days may be drawn on which the last value never misses
        warnings.simplefilter("ignore", RuntimeWarning)
        again = [np.nanmedian(_skill(summed[0][some].sum(axis=0), summed[1][some].sum(axis=0))) for some in drawn]
        low, high = np.nanquantile(again, [0.05, 0.95]).tolist()
    return by_domain, float(np.median(by_domain)), float(low), float(high)


def covered(judged: Backtest, place: int) -> dict[str, float]:
    """Coverage of the interval of 90 %, mean pinball loss over the mean error of the last value."""
    assert judged.quantiles is not None
    quantiles, real = judged.quantiles[:, :, place], judged.real[:, :, place]
    base = np.abs(judged.last - judged.real)[:, :, place].mean(axis=0)
    inside = (quantiles[:, :, 0] - 1e-6 <= real) & (real <= quantiles[:, :, -1] + 1e-6)
    missed = real[:, :, None] - quantiles
    loss = np.maximum(LEVELS * missed, (LEVELS - 1) * missed).mean(axis=(0, 2))
    counted = base > 0
    return {"coverage": float(inside[:, counted].mean()), "pinball": float((loss[counted] / base[counted]).mean())}


def _hybrid(
    source: Source, tried: Whole, name: str, jobs: Jobs | None, teller: Teller | None, announced: float = 0.0
) -> Backtest:
    rows = []
    for minute in tried.tolist():
        report = forecast(request_at(source, minute, jobs, teller, announced))
        rows.append(
            [
                [[quantile["value"] for quantile in point["quantiles"]] for point in series["points"]]
                for series in report["forecasts"]
            ]
        )
    values = np.array(rows)
    return _judged(source, tried, name, values[:, :, :, MIDDLE], values)


def _by_baseline(source: Source, tried: Whole, name: str, predict: Callable[[Floats], Floats]) -> Backtest:
    return _judged(source, tried, name, np.stack([predict(_seen(source, minute)) for minute in tried.tolist()]))


def _at_horizons(predict: Callable[[Floats, int], Floats], seen: Floats) -> Floats:
    return np.stack([predict(seen, minutes) for minutes in AHEAD], axis=1)


def _judged(source: Source, tried: Whole, name: str, predicted: Floats, quantiles: Floats | None = None) -> Backtest:
    real = np.stack([source.values[:, tried + minutes].T for minutes in AHEAD], axis=2)
    last = np.repeat(source.values[:, tried].T[:, :, None], len(AHEAD), axis=2)
    return Backtest(source.name, name, tried, predicted, real, last, quantiles)


def _seen(source: Source, minute: int) -> Floats:
    return source.values[:, minute - SEEN + 1 : minute + 1]


def _job(source: Source, jobs: Jobs, teller: Teller, number: int, *, runs: bool = True) -> "documents.ForeseenJob":
    came = _instant(float(jobs.came[number]))
    job: documents.ForeseenJob = {
        "id": f"j{number}",
        "domain": source.domains[int(jobs.domain[number])],
        "submitted_at": came,
        "periods": [{"devices": int(jobs.devices[number]), "duration": teller.estimate(number)}],
    }
    if runs:
        job["started_at"] = came
    return job


def _skill(mine: Floats, theirs: Floats) -> Floats:
    skill: Floats = 1 - np.where(theirs > 0, mine / np.maximum(theirs, 1e-9), np.nan)
    return skill


def _instant(seconds: float) -> str:
    return (_ORIGIN + dt.timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


def figures(backtests: Sequence[Backtest]) -> list[dict[str, Any]]:
    """A row for each source, method and horizon, ready for JSON."""
    return [_row(judged, place) for judged in backtests for place in range(len(AHEAD))]


def _row(judged: Backtest, place: int) -> dict[str, Any]:
    missed = waped(judged)[:, place]
    last = waped(Backtest(judged.source, "", judged.origins, judged.last, judged.real, judged.last))[:, place]
    by_domain, skill, low, high = skills(judged, place)
    row: dict[str, Any] = {
        "source": judged.source,
        "method": judged.method,
        "minutes": AHEAD[place],
        "origins": len(judged.origins),
        "wape": {"median": float(np.nanmedian(missed)), "worst": float(np.nanmax(missed))},
        "last": {"median": float(np.nanmedian(last)), "worst": float(np.nanmax(last))},
        "skill": {"median": skill, "low": low, "high": high, "worst": float(by_domain.min())},
        "twenty": float((by_domain >= 0.2).mean()),
    }
    return row | (covered(judged, place) if judged.quantiles is not None else {})


def tables(rows: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """A table for each horizon."""
    for minutes in AHEAD:
        table = Table(title=f"{minutes} minutes ahead, last quarter; skill against the last value, with 90 % interval")
        for name in ("source", "method", "WAPE % median, worst", "last value", "skill % median", "worst", "≥ 20 %"):
            table.add_column(name)
        for name in ("coverage of 90 %", "pinball"):
            table.add_column(name)
        for row in rows:
            if row["minutes"] == minutes:
                table.add_row(*_cells(row))
        yield table


def _cells(row: dict[str, Any]) -> Iterator[str]:
    yield row["source"]
    yield f"{row['method']} ({row['origins']})"
    for name in ("wape", "last"):
        yield f"{100 * row[name]['median']:.1f}, {100 * row[name]['worst']:.1f}"
    skill = row["skill"]
    yield f"{100 * skill['median']:+.1f} ({100 * skill['low']:+.1f} … {100 * skill['high']:+.1f})"
    yield f"{100 * skill['worst']:+.1f}"
    yield f"{100 * row['twenty']:.0f} %"
    yield f"{100 * row['coverage']:.1f} %" if "coverage" in row else ""
    yield f"{row['pinball']:.3f}" if "pinball" in row else ""


def judge_flow(source: Source, count: int, slow: int) -> Iterator[Backtest]:
    """Ours and the baselines' forecasts of one flow."""
    length = source.values.shape[1]
    tried = np.linspace(length * 3 // 4, length - 1 - max(FLOW_STEPS), count).astype(np.int64)
    yield _judged_flow(source, tried, "history", *_flow_by_history(source, tried))
    back = round(DAY / source.step)
    yield _judged_flow(
        source, tried, "seasonal naive", _columns(source, [tried + ahead - back for ahead in FLOW_STEPS])
    )
    for name in ("XGBoost", "LightGBM"):
        if name == "XGBoost" or find_spec("lightgbm") is not None:
            yield _judged_flow(source, tried, name, _flow_by_boosting(source, tried, name))
    few = tried[np.linspace(0, len(tried) - 1, slow).astype(np.int64)] if slow else tried[:0]
    predictions = [
        automatic_at(source.values[:, max(one - 1007, 0) : one + 1], np.array(FLOW_STEPS)) for one in few.tolist()
    ]
    for name in predictions[0] if predictions else ():
        yield _judged_flow(source, few, name, np.stack([prediction[name] for prediction in predictions]))


def _columns(source: Source, columns: Sequence[Whole]) -> Floats:
    return np.stack([source.values[:, one].T for one in columns], axis=2)


def _judged_flow(source: Source, tried: Whole, name: str, said: Floats, quantiles: Floats | None = None) -> Backtest:
    real = _columns(source, [tried + ahead for ahead in FLOW_STEPS])
    # blocks of the bootstrap are days, counted in minutes
    return Backtest(source.name, name, 10 * tried, said, real, _columns(source, [tried] * len(FLOW_STEPS)), quantiles)


def _flow_by_history(source: Source, tried: Whole) -> tuple[Floats, Floats]:
    """Medians, N × D × T, and quantiles at the levels that are judged, N × D × T × Q."""
    question = Question(0.0, np.array([ahead * source.step for ahead in FLOW_STEPS]), HISTORY_LEVELS)
    quantiles = []
    for one in tried.tolist():
        rows = source.values[:, max(one + 1 - FLOW_SEEN, 0) : one + 1]
        begin = f"{np.datetime64(0, 's') - np.timedelta64(int(source.step) * (rows.shape[1] - 1), 's')}Z"
        series: list[documents.DemandSeries] = [
            {"id": name, "quantity": "requests", "begin": begin, "step": source.step, "values": row.tolist()}
            for name, row in zip(source.domains, rows, strict=True)
        ]
        quantiles.append(np.stack([past.values for past in forecast_by_history(series, question)]))
    values = np.stack(quantiles)
    return values[..., HISTORY_MIDDLE], at_levels(values, LEVELS)


def _flow_by_boosting(source: Source, tried: Whole, name: str) -> Floats:
    """Medians by gradient boosting, fitted to the first half."""
    past = Past(source.values, source.step)
    half = Past(source.values[:, : past.length // 2], source.step)
    predictions = []
    for ahead in FLOW_STEPS:
        origins = np.arange(FLOW_FIRST, half.length - ahead)
        seen, scale = half.features(ahead, origins)
        moved = np.clip((half.values[:, origins + ahead] - half.values[:, origins]) / scale, -MAX_MOVE, MAX_MOVE)
        wanted, unit = past.features(ahead, tried)
        rows, target, queries = seen.reshape(-1, seen.shape[2]), moved.ravel(), wanted.reshape(-1, wanted.shape[2])
        if name == "XGBoost":
            model = xgboost.train(TREES | {"seed": FLOW_SEED % 1000}, xgboost.DMatrix(rows, target, nthread=1), ROUNDS)
            said = model.inplace_predict(queries)
        else:
            given = {"objective": "quantile", "alpha": 0.5, "n_estimators": ROUNDS, "learning_rate": 0.05}
            model = import_module("lightgbm").LGBMRegressor(**given, random_state=FLOW_SEED, n_jobs=1, verbose=-1)
            said = model.fit(rows, target).predict(queries)
        predictions.append(np.maximum(source.values[:, tried] + said.reshape(unit.shape) * unit, 0.0).T)
    return np.stack(predictions, axis=2)
