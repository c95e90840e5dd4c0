"""Answers to requests for forecasts, and for what to reserve for tenants over a coming horizon.

1. A forecast joins what the structure of jobs says (:mod:`~kuayu.forecast.structure`) with what history says
   (:mod:`~kuayu.forecast.history`), by how well both did of late (:mod:`~kuayu.forecast.hybrid`).
2. How well they did is seen by forecasting the past anew from what was known then.
3. What to reserve for a tenant is read from forecasts at LOOKS instants of the horizon.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from kuayu.forecast.history import MIDDLE, TRUST, independent, origins, predict, replayed
from kuayu.forecast.hybrid import (
    REPLAYED_LEVELS,
    SHIPPED,
    Choice,
    HistoryForecast,
    Replay,
    Weighing,
    at_levels,
    believed,
    explained,
    join,
    mixture,
    rest_moves,
    structured,
    unannounced,
    usual_weighing,
    weighed,
)
from kuayu.forecast.requests import Flags, Floats, Whole, check_forecast, check_reservations, rounded, seconds
from kuayu.forecast.series import (
    WEEK,
    WINDOW,
    Past,
    all_cleaned,
    changes,
    cleaned,
    filled,
    known,
    last_known,
    on_one_clock,
)
from kuayu.forecast.structure import QUANTITIES, Crowd, Foreseen, Standing, courses, foresee, matched, nobody, shifts

if TYPE_CHECKING:
    from kuayu.forecast.requests import SeriesRequest
    from kuayu_schemas import documents


METHOD: "documents.ForecastMethod" = {"name": "kuayu-hybrid", "version": "1.2.1"}

MAX_SERIES_STEPS = 12_288
"""Values of a series that are looked at: a week of minutes, and WINDOW before it."""

WEEKS = 5
"""Weeks of a series that are looked at, where they are told."""

TOGETHER = 256
"""Series that are looked at together."""

REPLAYED = 24
"""Most instants of the past at which structure is tried again."""

MIN_REPLAYED_SECONDS = 6 * 3600.0
"""Least time that these instants cover, as what happened in less may be chance: horizons of half an hour and more."""

REPLAYED_HORIZONS = 4
"""Most horizons of a request at which it is; weights of those between lie between."""

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


def forecast(request: "documents.ForecastRequest") -> "documents.ForecastReport":
    """Forecast series.

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
            {"series": series["id"], "points": _points(request, forecast_of_series, middle, wanted)}
            for series, forecast_of_series in zip(request["series"], answers, strict=True)
        ],
    }


def answer(
    request: "SeriesRequest",
    question: Question,
    histories: Sequence[HistoryForecast] | None = None,
    choice: Choice = SHIPPED,
) -> list[Answer]:
    """Forecast the series of a request at any horizons and levels.

    Args:
        request: Series, jobs and events.
        question: What is asked.
        histories: What history says of the series, where that is known.
        choice: Constants of how structure and history are put together.
    """
    series = request["series"]
    histories = forecast_by_history(series, question) if histories is None else histories
    joined = _joined(request, question, histories, choice)
    forecasts = []
    for index, (entry, past) in enumerate(zip(series, histories, strict=True)):
        moved = shifts(entry, request.get("events") or (), question.now, question.after)
        if index in joined:
            values, part = joined[index]
        else:
            values, part = at_levels(past.values, question.levels), np.zeros(len(question.after))
            values = np.round(values) if past.whole else values
        most = 1.0 if entry["quantity"] == "utilisation" else np.inf
        forecasts.append(Answer(np.clip(values + moved[:, None], 0.0, most), part))
    return forecasts


def forecast_by_history(series: "Sequence[documents.DemandSeries]", question: Question) -> list[HistoryForecast]:
    """What history says of series."""
    groups: dict[tuple[float, int, bool, tuple[int, ...]], list[_SeriesView]] = defaultdict(list)
    for step, view in _series_views(series, question):
        groups[step, len(view.values), view.fresh, tuple(view.ahead.tolist())].append(view)
    by_series: dict[int, list[tuple[_SeriesView, HistoryForecast]]] = defaultdict(list)
    for (step, *_), alike in groups.items():
        for some in (alike[first : first + TOGETHER] for first in range(0, len(alike), TOGETHER)):
            for view, history in zip(some, _together(some, step), strict=True):
                by_series[view.place].append((view, history))
    return [_mixed(by_series[place]) for place in range(len(series))]


def steps(series: "documents.DemandSeries", question: Question) -> list[int]:
    """How many steps after the last value that is known each horizon lies."""
    begin, step = seconds(series["begin"]), float(series["step"])
    last = last_known(series)
    return [max(int((question.now + after - begin) / step + 1e-9) - last, 0) for after in question.after.tolist()]


RESERVATION_METHOD: "documents.ForecastMethod" = {"name": "kuayu-reserve", "version": "1.0.0"}

LOOKS = 8
"""Instants of the horizon at which jobs are followed."""

CLOSEST = 0.0005
"""A promise closer to never or always than this is taken for this."""


def reserve(request: "documents.ReservationRequest") -> "documents.ReservationReport":
    """Find how many devices each tenant needs at most over the horizon, but for the share of cases it was promised.

    Returns:
        One reservation for each series that names a domain and a tenant with a quality.

    Raises:
        kuayu.refusals.RepeatedName: Series, jobs or tenants share a name.
        kuayu.refusals.Impossible: The request contradicts itself.
    """
    check_reservations(request)
    promised = {entry["tenant"]: float(entry["violations"]) for entry in request["qualities"]}
    wanted = [entry for entry in request["series"] if "domain" in entry and entry.get("tenant") in promised]
    values = np.unique(np.clip([1 - promised[entry["tenant"]] for entry in wanted], CLOSEST, 1 - CLOSEST))
    levels = np.unique(np.append(values, 0.5))
    now, horizon = seconds(request["now"]), float(request["horizon"])
    narrowed: documents.ReservationRequest = {**request, "series": wanted}
    highest = _highest(narrowed, now, horizon, levels) if wanted else np.zeros((0, len(levels)))
    reservations: list[documents.TenantReservation] = []
    for entry, row in zip(wanted, highest, strict=True):
        level = min(max(1 - promised[entry["tenant"]], CLOSEST), 1 - CLOSEST)
        most = float(row[np.searchsorted(levels, level)])
        reservations.append(
            {
                "series": entry["id"],
                "tenant": entry["tenant"],
                "domain": entry["domain"],
                "expected": rounded(float(row[np.searchsorted(levels, 0.5)])),
                "devices": ceil(most - 1e-6),
            }
        )
    return {"revision": request["revision"], "method": RESERVATION_METHOD, "reservations": reservations}


def _points(
    request: "documents.ForecastRequest", forecast_answer: Answer, middle: int, wanted: Whole
) -> "list[documents.DemandForecastPoint]":
    shares = forecast_answer.structure.tolist()
    return [
        {
            "horizon": horizon,
            "expected": rounded(values[middle]),
            "quantiles": [
                {"level": level, "value": rounded(values[number])}
                for level, number in zip(request["levels"], wanted.tolist(), strict=True)
            ],
            "structure_share": rounded(share),
        }
        for horizon, values, share in zip(request["horizons"], forecast_answer.values.tolist(), shares, strict=True)
    ]


def _joined(
    request: "SeriesRequest", question: Question, histories: Sequence[HistoryForecast], choice: Choice
) -> dict[int, tuple[Floats, Floats]]:
    """Forecasts of the series that jobs explain, T × P, with the share of structure, T, by place of the series."""
    known, series = request.get("jobs") or (), request["series"]
    places = [index for index, entry in enumerate(series) if entry["quantity"] in QUANTITIES]
    jobs = [job for job in known if "ended_at" not in job]
    if not known or not places:
        return {}
    numbers = matched([series[place] for place in places], known)
    places = [place for place, some in zip(places, numbers, strict=True) if len(some)]
    numbers = [some for some in numbers if len(some)]
    if not places:
        return {}
    picked = [series[place] for place in places]
    present = np.array(["ended_at" not in job for job in known], dtype=bool)
    foreseen = _foreseen(jobs, picked, _among(numbers, present), question)
    pasts = [believed(one, histories[place]) for one, place in zip(foreseen, places, strict=True)]
    last = np.array([past.last for past in pasts])
    weighing = usual_weighing(foreseen, last, choice)
    of_job = np.array(["job" in entry for entry in picked], dtype=bool)
    share = unannounced([one for one, alone in zip(foreseen, of_job, strict=True) if not alone], len(question.after))
    # nothing comes to a job, and there is no crowd
    unforeseen = np.where(of_job[:, None], 0.0, share)
    if choice.replay and not present.all() and not of_job.all():
        crowds = np.flatnonzero(~of_job)
        some = _Past(known, [picked[crowd] for crowd in crowds], [numbers[crowd] for crowd in crowds], question, choice)
        weights = some.weighing([pasts[crowd] for crowd in crowds], _rows(weighing, crowds))
        # what was announced beforehand was not at those instants, and they say nothing of its worth
        for whole, part in zip(weighing, weights, strict=True):
            whole[crowds] += share * (part - whole[crowds])
    weighing.structure[of_job] = 1.0
    values, parts = join(foreseen, pasts, unforeseen, weighing, question.levels)
    return {place: (value, part) for place, value, part in zip(places, values, parts, strict=True)}


def _foreseen(
    jobs: "Sequence[documents.ForeseenJob]",
    series: "Sequence[documents.DemandSeries]",
    numbers: Sequence[Whole],
    question: Question,
) -> list[Foreseen]:
    """What jobs say of series, of which these are the numbers."""
    standing = Standing.seen(jobs, question.now)
    crowd = Crowd.of(jobs, courses(jobs, question.now, question.after, standing=standing), question.now)
    then = [min(_end(entry) - question.now, 0.0) for entry in series]
    return foresee([entry["quantity"] for entry in series], crowd, numbers, then, question.after)


def _among(numbers: Sequence[Whole], chosen: Flags) -> list[Whole]:
    """Numbers of jobs among those that are kept."""
    place = np.cumsum(chosen) - 1
    return [place[some[chosen[some]]] for some in numbers]


def _rows(weighing: Weighing, rows: Whole) -> Weighing:
    return Weighing(*(whole[rows] for whole in weighing))


def _end(series: "documents.DemandSeries") -> float:
    """Instant of the last value that is known, seconds since 1970."""
    return seconds(series["begin"]) + last_known(series) * float(series["step"])


@dataclass(frozen=True)
class _Past:
    """The request as it would have been at instants of the past, by jobs that have ended since.

    Attributes:
        jobs: All jobs of the request.
        series: Series that jobs explain, S.
        numbers: Numbers of the jobs of each.
        question: What is asked.
        choice: Constants.
    """

    jobs: "Sequence[documents.ForeseenJob]"
    series: "Sequence[documents.DemandSeries]"
    numbers: Sequence[Whole]
    question: Question
    choice: Choice

    def weighing(self, pasts: Sequence[HistoryForecast], usual: Weighing) -> Weighing:
        """How structure and history are put together, by how well both did at each horizon."""
        weights = Weighing(*(whole.copy() for whole in usual))
        after = self.question.after
        knots = np.unique(np.linspace(0, len(after) - 1, min(len(after), REPLAYED_HORIZONS)).round().astype(int))
        steps = {float(entry["step"]) for entry in self.series}
        if len(steps) > 1:
            return weights
        step = steps.pop()
        for knot in knots.tolist():
            ahead = round(after[knot] / step)
            column = self._at(knot, ahead, step, pasts, _rows(usual, np.arange(len(pasts)))) if ahead else None
            for whole, part in zip(weights, column or (), strict=False):
                whole[:, knot] = part
        for whole in weights:
            for row in whole:
                row[:] = np.interp(np.arange(len(after)), knots, row[knots])
        return weights

    def _at(
        self, knot: int, ahead: int, step: float, pasts: Sequence[HistoryForecast], usual: Weighing
    ) -> tuple[Floats, Floats, Floats] | None:
        """Weights, widths and movements of the rest at one horizon, S each; nothing where too little has ended."""
        parts = 2 if ahead % 2 == 0 else 1
        stride = ahead // parts
        now = self.question.now
        ended = min(seconds(job["ended_at"]) for job in self.jobs if "ended_at" in job)
        values = [filled(known(entry, MAX_SERIES_STEPS), step) for entry in self.series]
        observed = [known(entry, MAX_SERIES_STEPS) for entry in self.series]
        shortest = min(map(len, values))
        count = min(int((now - ended) / (stride * step)), (shortest - 2) // stride - parts, REPLAYED + parts)
        if count <= parts or count * stride * step < MIN_REPLAYED_SECONDS:
            return None
        back = stride * np.arange(count + 1)
        longest = shortest - 1 - back
        last = np.stack([row[len(row) - shortest :][longest] for row in values])
        real = np.stack([row[len(row) - shortest :][longest] for row in observed])
        medians = _replayed(values, observed, step, ahead, back)
        spread = np.stack([past.values[knot] - past.values[knot][MIDDLE] for past in pasts])
        left, seen, histories = np.zeros_like(last), [], []
        for index, moments in enumerate(back.tolist()):
            foreseen = self._foreseen(now - moments * step, float(self.question.after[knot]))
            left[:, index], _ = explained(foreseen, last[:, index])
            rows = np.maximum(medians[:, index, None] + spread, 0.0)
            seen.append(foreseen)
            histories.append(
                [HistoryForecast(float(one), row[None], False) for one, row in zip(last[:, index], rows, strict=True)]
            )
        now_real, before = real[:, :-parts], last[:, parts:]
        prior = usual.rest[:, knot]
        rest = rest_moves(left[:, parts:], left[:, :-parts], before, now_real, prior, self.choice.prior)
        everybody, levels = np.ones((len(pasts), 1)), REPLAYED_LEVELS
        by_jobs = [
            structured(foreseen, past, everybody, rest[:, None], levels)[:, 0]
            for foreseen, past in zip(seen[parts:], histories[parts:], strict=True)
        ]
        by_history = [at_levels(np.stack([one.values[0] for one in past]), levels) for past in histories[parts:]]
        replay = Replay(np.stack(by_jobs, axis=1), np.stack(by_history, axis=1), now_real, before, 1 / parts)
        return (*weighed(replay, usual.structure[:, knot], self.choice), rest)

    def _foreseen(self, now: float, after: float) -> list[Foreseen]:
        """What the jobs of then said of the series then, for one horizon."""
        chosen = np.zeros(len(self.jobs), dtype=bool)
        jobs: list[documents.ForeseenJob] = []
        for number, job in enumerate(self.jobs):
            if seconds(job["submitted_at"]) > now or ("ended_at" in job and seconds(job["ended_at"]) <= now):
                continue
            chosen[number] = True
            waits = "started_at" in job and seconds(job["started_at"]) > now
            if waits:
                job = job.copy()  # noqa: PLW2901 - the same job as it was then
                del job["started_at"]
            jobs.append(job)
        question = Question(now, np.array([after]), REPLAYED_LEVELS)
        if not jobs:
            return [nobody(1) for _ in self.series]
        return _foreseen(jobs, self.series, _among(self.numbers, chosen), question)


def _replayed(values: Sequence[Floats], observed: Sequence[Floats], step: float, ahead: int, back: Whole) -> Floats:
    """What history would have said so many steps before the last values, S × K."""
    groups: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(values):
        groups[len(row)].append(number)
    forecasts = np.zeros((len(values), len(back)))
    for length, numbers in groups.items():
        past = Past(np.stack([values[one] for one in numbers]), step, np.stack([observed[one] for one in numbers]))
        forecasts[numbers] = replayed(past, ahead, length - 1 - back)[1]
    return forecasts


@dataclass(frozen=True)
class _SeriesView:
    """A series as a forecast uses it.

    Attributes:
        place: Of the series in the request.
        values: Without gaps and without what stands alone, L.
        observed: As told, not a number where a value is missing, L.
        ahead: Steps of each horizon after the last value, T.
        fresh: Its last value is taken for the beginning of something new.
        doubt: Chance that this is right, and not the other one of two.
    """

    place: int
    values: Floats
    observed: Floats
    ahead: Whole
    doubt: float
    fresh: bool


def _series_views(
    series: "Sequence[documents.DemandSeries]", question: Question
) -> Iterator[tuple[float, _SeriesView]]:
    """Series as they are; where an end is new, as something new and as history has it, without what may be an error."""
    groups: dict[tuple[float, int], list[tuple[int, Floats, Whole]]] = defaultdict(list)
    for place, entry in enumerate(series):
        step, ahead = float(entry["step"]), np.array(steps(entry, question))
        weeks = max(WEEKS * round(WEEK / step), round(WEEK / step) + WINDOW)
        seen = known(entry, min(MAX_SERIES_STEPS, max(WINDOW + 20 * int(ahead.max()), weeks)))
        groups[step, len(seen)].append((place, seen, ahead))
    for (step, _), alike in groups.items():
        clean = all_cleaned(np.stack([filled(seen, step) for _, seen, _ in alike]))
        clocks = changes(np.stack([one.values for one in clean]), step)
        for (place, seen, ahead), one, (column, shift) in zip(alike, clean, clocks, strict=True):
            values = one.values
            if shift:
                seen, values = on_one_clock(seen, column, shift), filled(on_one_clock(values, column, shift), step)  # noqa: PLW2901 - the same by one clock
            yield step, _SeriesView(place, values, seen, ahead, 0.0, one.chance > 0)
            if one.chance:
                upto = len(values) - one.doubtful
                yield step, _SeriesView(place, values[:upto], seen[:upto], ahead + one.doubtful, one.chance, False)


def _mixed(pairs: Sequence[tuple[_SeriesView, HistoryForecast]]) -> HistoryForecast:
    """One forecast of a series from that with all its readings and that without those that are in doubt."""
    (doubted, before), (_, taken) = max(pairs, key=_doubt), min(pairs, key=_doubt)
    if not doubted.doubt:
        return taken
    rows = zip(taken.values, before.values, strict=True)
    values = np.stack([mixture(one, other, doubted.doubt) for one, other in rows])
    return HistoryForecast(taken.last, values, taken.whole, before if before.last != taken.last else None)


def _doubt(pair: tuple[_SeriesView, HistoryForecast]) -> float:
    return pair[0].doubt


def _together(views: Sequence[_SeriesView], step: float) -> Iterator[HistoryForecast]:
    """What history says of series of one step and length, at so many steps after their last values."""
    ahead = views[0].ahead
    past = Past(np.stack([view.values for view in views]), step, np.stack([view.observed for view in views]))
    distinct = np.unique(np.maximum(ahead, 1))
    if len(distinct) > KNOTS:
        distinct = np.unique(distinct[np.linspace(0, len(distinct) - 1, KNOTS).round().astype(int)])
    knots = np.stack([predict(past, int(one), fresh=views[0].fresh) for one in distinct])
    whole = (past.values % 1 == 0).all(axis=1)
    for row, view in enumerate(views):
        last = float(view.values[-1])
        curves = _between(knots[:, row], distinct, ahead)
        curves[ahead == 0] = last
        yield HistoryForecast(last, curves, bool(whole[row]))


def _between(knots: Floats, distinct: Whole, ahead: Whole) -> Floats:
    """Quantiles at each horizon, T × Q, from those at knots, K × Q."""
    place = np.interp(ahead, distinct, np.arange(len(distinct)))
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, len(distinct) - 1)
    quantiles_at: Floats = knots[low] + (place - low)[:, None] * (knots[high] - knots[low])
    return quantiles_at


def _highest(request: "documents.ReservationRequest", now: float, horizon: float, levels: Floats) -> Floats:
    """Quantiles of the highest value of each series over the horizon, S × P.

    The highest of what is forecast at some instants of the horizon at the same level, and by how much more history went
    up on its way than at its ends, as far as the forecast comes from history.
    """
    question = Question(now, horizon * np.arange(1, LOOKS + 1) / LOOKS, levels)
    histories = forecast_by_history(request["series"], question)
    forecasts = answer(request, question, histories)
    rows = []
    for entry, past, forecast in zip(request["series"], histories, forecasts, strict=True):
        ends = at_levels(past.values, levels).max(axis=0)
        more = np.maximum(_passed(entry, past, question) - ends, 0.0)
        rows.append(forecast.values.max(axis=0) + (1 - forecast.structure[-1]) * more)
    highest: Floats = np.stack(rows)
    return highest


def _passed(series: "documents.DemandSeries", past: HistoryForecast, question: Question) -> Floats:
    """Quantiles of the highest value by history alone, P.

    What was seen over as long a time counts the more, the more often it was seen. Otherwise a value is passed on the
    way twice as often as it is exceeded at the end (the reflection principle of random walks).
    """
    ends: Floats = at_levels(past.values, 1 - (1 - question.levels) / 2)[-1]
    step = float(series["step"])
    history = Past(cleaned(filled(known(series, MAX_SERIES_STEPS), step)).values[None], step)
    ahead = max(1, steps(series, question)[-1])
    tried = origins(history, ahead)
    if not len(tried):
        return ends
    windows = np.lib.stride_tricks.sliding_window_view(history.values[0], ahead)[tried + 1]
    moved = windows.max(axis=1) - history.values[0, tried]
    trust = independent(history, ahead)
    trust /= trust + TRUST
    # the level p stands at the order statistic p·(n + 1), as split conformal prediction wants it
    place = np.clip(np.ceil(question.levels * (len(tried) + 1)) - 1, 0, len(tried) - 1).astype(int)
    # nothing is given away for a reading that may be an error
    last = past.last if past.before is None else max(past.last, past.before.last)
    quantiles_passed: Floats = (1 - trust) * ends + trust * (last + np.sort(moved)[place])
    return quantiles_passed
