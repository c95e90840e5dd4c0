"""The answer to a request for forecasts."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kuayu.forecast.checking import check_forecast
from kuayu.forecast.clocks import change, on_one_clock
from kuayu.forecast.courses import courses
from kuayu.forecast.gaps import filled, known, last_known
from kuayu.forecast.history import told
from kuayu.forecast.joining import Remembered, at_levels, believed, join, mixture, unannounced
from kuayu.forecast.matching import matched, shifts
from kuayu.forecast.outliers import cleaned
from kuayu.forecast.past import WEEK, WINDOW, Past
from kuayu.forecast.standing import Standing
from kuayu.forecast.structure import QUANTITIES, Crowd, Foreseen, foresee
from kuayu.forecast.values import Floats, Plain, Whole, rounded, seconds

METHOD = {"name": "kuayu-hybrid", "version": "1.1.0"}

LONGEST = 12_288
"""Values of a series that are looked at: a week of minutes, and WINDOW before it."""

WEEKS = 5
"""Weeks of a series that are looked at, where they are told."""

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
        past = believed(foreseen[at], past) if at in foreseen else past  # noqa: PLW2901 - the same, known better
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
    """Instant of the last value that is known, seconds since 1970."""
    return seconds(series["begin"]) + last_known(series) * float(series["step"])


@dataclass(frozen=True)
class _Looked:
    """A series as it is looked at.

    Attributes:
        place: Of the series in the request.
        values: Without gaps and without what stands alone, L.
        told: As told, not a number where a value is missing, L.
        ahead: Steps of each horizon after the last value, T.
        fresh: Its last value is taken for the begin of something new.
        doubt: Chance that this is right, and not the other one of two.
    """

    place: int
    values: Floats
    told: Floats
    ahead: Whole
    doubt: float
    fresh: bool


def remember(series: Sequence[Plain], question: Question) -> list[Remembered]:
    """What history says of series."""
    groups: dict[tuple[float, int, bool, tuple[int, ...]], list[_Looked]] = defaultdict(list)
    for place, each in enumerate(series):
        for looked in _looked_at(place, each, question):
            groups[float(each["step"]), len(looked.values), looked.fresh, tuple(looked.ahead.tolist())].append(looked)
    made: dict[int, list[tuple[_Looked, Remembered]]] = defaultdict(list)
    for (step, *_), alike in groups.items():
        for some in (alike[first : first + TOGETHER] for first in range(0, len(alike), TOGETHER)):
            for looked, found in zip(some, _together(some, step), strict=True):
                made[looked.place].append((looked, found))
    return [_mixed(made[place]) for place in range(len(series))]


def _looked_at(place: int, series: Plain, question: Question) -> Iterator[_Looked]:
    """A series as it is; where its end is new, as something new and as history has it, without what may be an error."""
    step, ahead = float(series["step"]), np.array(steps(series, question))
    most = min(LONGEST, max(WINDOW + 20 * int(ahead.max()), WEEKS * round(WEEK / step), round(WEEK / step) + WINDOW))
    told = known(series, most)
    clean = cleaned(filled(told, step))
    values = clean.values
    column, shift = change(values, step)
    if shift:
        told, values = on_one_clock(told, column, shift), filled(on_one_clock(values, column, shift), step)
    yield _Looked(place, values, told, ahead, 0.0, clean.chance > 0)
    if clean.chance:
        upto = len(values) - clean.doubtful
        yield _Looked(place, values[:upto], told[:upto], ahead + clean.doubtful, clean.chance, False)


def _mixed(found: Sequence[tuple[_Looked, Remembered]]) -> Remembered:
    """One forecast of a series from that with all its readings and that without those that are in doubt."""
    (doubted, before), (_, taken) = max(found, key=_doubt), min(found, key=_doubt)
    if not doubted.doubt:
        return taken
    rows = zip(taken.values, before.values, strict=True)
    values = np.stack([mixture(one, other, doubted.doubt) for one, other in rows])
    return Remembered(taken.last, values, taken.whole, before if before.last != taken.last else None)


def _doubt(found: tuple[_Looked, Remembered]) -> float:
    return found[0].doubt


def steps(series: Plain, question: Question) -> list[int]:
    """How many steps after the last value that is known each horizon lies."""
    begin, step = seconds(series["begin"]), float(series["step"])
    last = last_known(series)
    return [max(int((question.now + after - begin) / step + 1e-9) - last, 0) for after in question.after.tolist()]


def _together(looked: Sequence[_Looked], step: float) -> Iterator[Remembered]:
    """What history says of series of one step and length, at so many steps after their last values."""
    ahead = looked[0].ahead
    past = Past(np.stack([each.values for each in looked]), step, np.stack([each.told for each in looked]))
    distinct = np.unique(np.maximum(ahead, 1))
    if len(distinct) > KNOTS:
        distinct = np.unique(distinct[np.linspace(0, len(distinct) - 1, KNOTS).round().astype(int)])
    knots = np.stack([told(past, int(one), fresh=looked[0].fresh) for one in distinct])
    whole = (past.values % 1 == 0).all(axis=1)
    for row, each in enumerate(looked):
        last = float(each.values[-1])
        curves = _between(knots[:, row], distinct, ahead)
        curves[ahead == 0] = last
        yield Remembered(last, curves, bool(whole[row]))


def _between(knots: Floats, distinct: Whole, ahead: Whole) -> Floats:
    """Quantiles at each horizon, T × Q, from those at knots, K × Q."""
    place = np.interp(ahead, distinct, np.arange(len(distinct)))
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, len(distinct) - 1)
    found: Floats = knots[low] + (place - low)[:, None] * (knots[high] - knots[low])
    return found
