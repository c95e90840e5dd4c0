"""The answer to a request for forecasts."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kuayu.forecast.checking import check_forecast
from kuayu.forecast.courses import courses
from kuayu.forecast.history import told
from kuayu.forecast.joining import Remembered, at_levels, join, unannounced
from kuayu.forecast.matching import matched, shifts
from kuayu.forecast.past import DAY, WEEK, WINDOW, Past
from kuayu.forecast.standing import Standing
from kuayu.forecast.structure import QUANTITIES, Crowd, Foreseen, foresee
from kuayu.forecast.values import Floats, Plain, Whole, rounded, seconds

METHOD = {"name": "kuayu-hybrid", "version": "1.0.0"}

LONGEST = 12_288
"""Values of a series that are looked at: a week of minutes, and WINDOW before it."""

TOGETHER = 256
"""Series that are looked at together."""

KNOTS = 24
"""Horizons of a series that history is asked for; between them it is straight."""


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        now: Seconds since 1970.
        after: Horizons, seconds, T.
        levels: Levels of quantiles, the median among them, P.
    """

    now: float
    after: Floats
    levels: Floats


@dataclass(frozen=True)
class Answer:
    """Forecast of one series.

    Attributes:
        values: Quantiles at the levels asked for, T × P.
        structure: Share that comes from the structure of jobs, T.
    """

    values: Floats
    structure: Floats


def forecast(request: dict[str, Any]) -> dict[str, Any]:
    """Forecast series.

    Args:
        request: A ``ForecastRequest``.

    Returns:
        A ``ForecastReport``.

    Raises:
        kuayu.refusals.RepeatedName: Series or jobs share a name.
        kuayu.refusals.Impossible: The request contradicts itself.
    """
    check_forecast(request)
    levels = np.unique([*request["levels"], 0.5])
    question = Question(seconds(request["now"]), np.array(request["horizons"], dtype=float), levels)
    answers = answer(request, question)
    middle = int(np.searchsorted(levels, 0.5))
    wanted = np.searchsorted(levels, request["levels"])
    return {
        "revision": request["revision"],
        "method": METHOD,
        "forecasts": [
            {"series": series["id"], "points": _points(request, made, middle, wanted)}
            for series, made in zip(request["series"], answers, strict=True)
        ],
    }


def _points(request: Plain, made: Answer, middle: int, wanted: Whole) -> list[dict[str, Any]]:
    shares = made.structure.tolist()
    return [
        {
            "horizon": horizon,
            "expected": rounded(values[middle]),
            "quantiles": [
                {"level": level, "value": rounded(values[at])}
                for level, at in zip(request["levels"], wanted.tolist(), strict=True)
            ],
            "structure_share": rounded(share),
        }
        for horizon, values, share in zip(request["horizons"], made.values.tolist(), shares, strict=True)
    ]


def answer(request: Plain, question: Question, remembered: Sequence[Remembered] | None = None) -> list[Answer]:
    """Forecast the series of a request at any horizons and levels.

    Args:
        request: Series, jobs and events.
        question: What is asked.
        remembered: What history says of the series, where that is known.
    """
    series = request["series"]
    remembered = remember(series, question) if remembered is None else remembered
    foreseen = _foreseen(request, question)
    share = unannounced([each for at, each in foreseen.items() if "job" not in series[at]], len(question.after))
    made = []
    for at, (each, past) in enumerate(zip(series, remembered, strict=True)):
        moved = shifts(each, request.get("events") or (), question.now, question.after)
        if at in foreseen and "job" in each:
            # nothing comes to a job, and there is no crowd
            alone = replace(foreseen[at], sharpness=np.ones(len(question.after)))
            values, part = join(alone, past, np.zeros(len(question.after)), question.levels)
        elif at in foreseen:
            values, part = join(foreseen[at], past, share, question.levels)
        else:
            values, part = at_levels(past.values, question.levels), np.zeros(len(question.after))
            values = np.round(values) if past.whole else values
        most = 1.0 if each["quantity"] == "utilisation" else np.inf
        made.append(Answer(np.clip(values + moved[:, None], 0.0, most), part))
    return made


def _foreseen(request: Plain, question: Question) -> dict[int, Foreseen]:
    """What jobs say of the series that they explain, by place of the series."""
    jobs, series = request.get("jobs") or (), request["series"]
    places = [at for at, each in enumerate(series) if each["quantity"] in QUANTITIES]
    if not jobs or not places:
        return {}
    standing = Standing.seen(jobs, question.now)
    crowd = Crowd.of(jobs, courses(jobs, question.now, question.after, standing=standing), question.now)
    numbers = matched([series[at] for at in places], jobs)
    return {
        at: foresee(series[at]["quantity"], crowd, some, _end(series[at]) - question.now, question.after)
        for at, some in zip(places, numbers, strict=True)
        if len(some)
    }


def _end(series: Plain) -> float:
    """Instant of the last value, seconds since 1970."""
    return seconds(series["begin"]) + (len(series["values"]) - 1) * float(series["step"])


def remember(series: Sequence[Plain], question: Question) -> list[Remembered]:
    """What history says of series."""
    groups: dict[tuple[float, int, tuple[int, ...]], list[int]] = defaultdict(list)
    for at, each in enumerate(series):
        ahead = tuple(steps(each, question))
        groups[float(each["step"]), min(len(each["values"]), LONGEST), ahead].append(at)
    made: dict[int, Remembered] = {}
    for (step, _, ahead), places in groups.items():
        for some in (places[first : first + TOGETHER] for first in range(0, len(places), TOGETHER)):
            values = [np.array(series[at]["values"][-LONGEST:], dtype=float) for at in some]
            made.update(zip(some, _together(values, step, np.array(ahead)), strict=True))
    return [made[at] for at in range(len(series))]


def steps(series: Plain, question: Question) -> list[int]:
    """How many steps after the last value each horizon lies."""
    begin, step = seconds(series["begin"]), float(series["step"])
    last = len(series["values"]) - 1
    return [max(int((question.now + after - begin) / step + 1e-9) - last, 0) for after in question.after.tolist()]


def _together(values: Sequence[Floats], step: float, ahead: Whole) -> Iterator[Remembered]:
    """What history says of series of one step, at so many steps after their last values, T."""
    most = min(LONGEST, max(WINDOW + 20 * int(ahead.max()), round(WEEK / step) + WINDOW, round(DAY / step) + WINDOW))
    past = Past(np.stack([every[-most:] for every in values]), step)
    distinct = np.unique(np.maximum(ahead, 1))
    if len(distinct) > KNOTS:
        distinct = np.unique(distinct[np.linspace(0, len(distinct) - 1, KNOTS).round().astype(int)])
    knots = np.stack([told(past, int(one)) for one in distinct])
    whole = (past.values % 1 == 0).all(axis=1)
    for row, every in enumerate(values):
        curves = _between(knots[:, row], distinct, ahead)
        curves[ahead == 0] = every[-1]
        yield Remembered(float(every[-1]), curves, bool(whole[row]))


def _between(knots: Floats, distinct: Whole, ahead: Whole) -> Floats:
    """Quantiles at each horizon, T × Q, from those at knots, K × Q."""
    place = np.interp(ahead, distinct, np.arange(len(distinct)))
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, len(distinct) - 1)
    found: Floats = knots[low] + (place - low)[:, None] * (knots[high] - knots[low])
    return found
