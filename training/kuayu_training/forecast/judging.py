"""Forecasts of the last quarter of every source, which nothing was fitted to, beside those of rivals."""

import datetime as dt
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kuayu.forecast.forecasting import forecast
from kuayu.forecast.requests import Floats, Whole
from kuayu_training.forecast.jobs import Jobs, Teller
from kuayu_training.forecast.rivals import Boosting, automatic, seasonal
from kuayu_training.forecast.sources import MINUTE, Source

if TYPE_CHECKING:
    from kuayu_schemas import documents

AHEAD = (10, 60)
"""Horizons, in minutes."""

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])

MIDDLE = 3

SEEN = 2000
"""Values of a series that are told."""

BLOCK = 1440
"""Minutes that are drawn together by the bootstrap: a day."""

DRAWS = 1000

ANNOUNCED = 3600.0
"""For how many seconds arrivals are known beforehand, where they are."""

SEED = 7

_ORIGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Judged:
    """Forecasts of one source by one method.

    Attributes:
        source: Name of the source.
        method: Name of the method.
        origins: Minutes from which it was forecast, N.
        told: Medians, N × D × T.
        real: What came, N × D × T.
        last: Last values, N × D × T.
        quantiles: At LEVELS, N × D × T × Q; nothing where a method tells none.
    """

    source: str
    method: str
    origins: Whole
    told: Floats
    real: Floats
    last: Floats
    quantiles: Floats | None = None


def origins(source: Source, count: int) -> Whole:
    """So many minutes, evenly over the last quarter."""
    length = source.values.shape[1]
    return np.linspace(length * 3 // 4, length - 1 - max(AHEAD), count).astype(np.int64)


def judge(source: Source, count: int, boosting: Boosting) -> list[Judged]:
    """Our forecasts without jobs, and those of the rivals that are quick."""
    return [
        _hybrid(source, origins(source, count), "history", None, None),
        _rival(source, origins(source, count), "seasonal naive", lambda seen: _each(seasonal, seen)),
        _rival(source, origins(source, count), "boosting", lambda seen: _each(boosting.told, seen)),
    ]


def judge_jobs(source: Source, jobs: Jobs, tellers: Mapping[str, Teller], count: int) -> list[Judged]:
    """Our forecasts with the jobs that are there at each instant, and by the first teller also with those to come."""
    tried = origins(source, count)
    first, teller = next(iter(tellers.items()))
    made = [_hybrid(source, tried, name, jobs, each) for name, each in tellers.items()]
    return [*made, _hybrid(source, tried, f"{first}, arrivals announced", jobs, teller, ANNOUNCED)]


def judge_slow(source: Source, count: int) -> list[Judged]:
    """AutoARIMA and AutoETS, where they are installed."""
    tried = origins(source, count)
    made = [automatic(_seen(source, one), AHEAD) for one in tried.tolist()]
    return [_judged(source, tried, name, np.stack([each[name] for each in made])) for name in made[0]]


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
    made: documents.ForecastRequest = {
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
        made["jobs"] = [_job(source, jobs, teller, one) for one in jobs.at(now).tolist()]
        made["jobs"] += [_job(source, jobs, teller, one, runs=False) for one in coming.tolist()]
        ends = jobs.came + jobs.lasts
        gone = np.flatnonzero((now - ended < ends) & (ends <= now)).tolist()
        over = [_job(source, jobs, teller, one) | {"ended_at": _instant(float(ends[one]))} for one in gone]
        made["jobs"] += over
    return made


def waped(judged: Judged) -> Floats:
    """Sum of errors over sum of values of each domain, D × T; not a number where nothing was needed."""
    needed = judged.real.sum(axis=0)
    errors = np.abs(judged.told - judged.real).sum(axis=0)
    return np.where(needed > 0, errors / np.maximum(needed, 1e-9), np.nan)


def skills(judged: Judged, place: int) -> tuple[Floats, float, float, float]:
    """One less the error over that of the last value.

    Args:
        judged: Forecasts.
        place: Of the horizon in AHEAD.

    Returns:
        By domain, D, those left out where the last value never misses; the median of them, and its interval of 90 %
        from drawing whole days with replacement.
    """
    mine = np.abs(judged.told - judged.real)[:, :, place]
    theirs = np.abs(judged.last - judged.real)[:, :, place]
    counted = theirs.sum(axis=0) > 0
    blocks = judged.origins // BLOCK
    days = np.unique(blocks)
    summed = [np.stack([each[blocks == day][:, counted].sum(axis=0) for day in days]) for each in (mine, theirs)]
    drawn = np.random.default_rng(SEED).integers(0, len(days), (DRAWS, len(days)))
    found = _skill(summed[0].sum(axis=0), summed[1].sum(axis=0))
    with warnings.catch_warnings():
        # days may be drawn on which the last value never misses
        warnings.simplefilter("ignore", RuntimeWarning)
        again = [np.nanmedian(_skill(summed[0][some].sum(axis=0), summed[1][some].sum(axis=0))) for some in drawn]
        low, high = np.nanquantile(again, [0.05, 0.95]).tolist()
    return found, float(np.median(found)), float(low), float(high)


def covered(judged: Judged, place: int) -> dict[str, float]:
    """Coverage of the interval of 90 %, mean pinball loss over the mean error of the last value."""
    assert judged.quantiles is not None
    told, real = judged.quantiles[:, :, place], judged.real[:, :, place]
    base = np.abs(judged.last - judged.real)[:, :, place].mean(axis=0)
    inside = (told[:, :, 0] - 1e-6 <= real) & (real <= told[:, :, -1] + 1e-6)
    missed = real[:, :, None] - told
    loss = np.maximum(LEVELS * missed, (LEVELS - 1) * missed).mean(axis=(0, 2))
    counted = base > 0
    return {"coverage": float(inside[:, counted].mean()), "pinball": float((loss[counted] / base[counted]).mean())}


def _hybrid(
    source: Source, tried: Whole, name: str, jobs: Jobs | None, teller: Teller | None, announced: float = 0.0
) -> Judged:
    found = []
    for minute in tried.tolist():
        report = forecast(request_at(source, minute, jobs, teller, announced))
        found.append(
            [
                [[each["value"] for each in point["quantiles"]] for point in made["points"]]
                for made in report["forecasts"]
            ]
        )
    values = np.array(found)
    return _judged(source, tried, name, values[:, :, :, MIDDLE], values)


def _rival(source: Source, tried: Whole, name: str, told: Callable[[Floats], Floats]) -> Judged:
    return _judged(source, tried, name, np.stack([told(_seen(source, minute)) for minute in tried.tolist()]))


def _each(told: Callable[[Floats, int], Floats], seen: Floats) -> Floats:
    return np.stack([told(seen, minutes) for minutes in AHEAD], axis=1)


def _judged(source: Source, tried: Whole, name: str, told: Floats, quantiles: Floats | None = None) -> Judged:
    real = np.stack([source.values[:, tried + minutes].T for minutes in AHEAD], axis=2)
    last = np.repeat(source.values[:, tried].T[:, :, None], len(AHEAD), axis=2)
    return Judged(source.name, name, tried, told, real, last, quantiles)


def _seen(source: Source, minute: int) -> Floats:
    return source.values[:, minute - SEEN + 1 : minute + 1]


def _job(source: Source, jobs: Jobs, teller: Teller, number: int, *, runs: bool = True) -> "documents.ForeseenJob":
    came = _instant(float(jobs.came[number]))
    made: documents.ForeseenJob = {
        "id": f"j{number}",
        "domain": source.domains[int(jobs.domain[number])],
        "submitted_at": came,
        "periods": [{"devices": int(jobs.devices[number]), "duration": teller.estimate(number)}],
    }
    if runs:
        made["started_at"] = came
    return made


def _skill(mine: Floats, theirs: Floats) -> Floats:
    found: Floats = 1 - np.where(theirs > 0, mine / np.maximum(theirs, 1e-9), np.nan)
    return found


def _instant(seconds: float) -> str:
    return (_ORIGIN + dt.timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"
