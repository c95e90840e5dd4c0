"""Forecasts, waveforms and peak plans that hang together (FCT-005, FCT-006).

1. A forecast has all that was asked for, in order, and nothing that contradicts itself (FCT-006).
2. A waveform has a point at each step of its period, near to what the trainings do (FCT-005).
3. A plan lowers the peak of demand by what it says, with all work done (FCT-005).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import pi, sin
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast.forecast_requests import (
    DAY,
    FORECASTS,
    HOUR,
    PEAKS,
    RESERVATIONS,
    WAVEFORMS,
    ForecastRequestBuilder,
)
from kuayu_conformance.checks.kit.decisions import DecisionExchange, Json, ask
from kuayu_conformance.episode import Episode, seconds_of
from kuayu_conformance.findings import Claim, Finding, holds
from kuayu_conformance.testbed.demand.baselines import Laid, Load, cases, greedy, least_peak, level, prices_at
from kuayu_conformance.testbed.demand.world import Period

if TYPE_CHECKING:
    from kuayu_schemas import documents

CONSISTENCY_REQUIREMENT = "FCT-006"
_SAME = 1e-9


@dataclass(frozen=True)
class RepeatedForecast:
    """A question that was asked twice, and both answers.

    Attributes:
        what: What is particular about it.
        first: With the first answer.
        again: With the second.
    """

    what: str
    first: DecisionExchange
    again: DecisionExchange


@dataclass(frozen=True)
class ForecastAnswers:
    """Forecasts, and reservations for two promises: the second allows more violations."""

    forecasts: tuple[RepeatedForecast, ...]
    reservations: tuple[RepeatedForecast, RepeatedForecast]


def observe(episode: Episode) -> ForecastAnswers:
    """Ask for forecasts of unlike things, and for reservations.

    Raises:
        SetUpFailure: One of them is not answered.
    """
    builder = ForecastRequestBuilder(episode.random, episode.naming)
    forecasts = [_twice(episode, FORECASTS, what, body) for what, body in questions(builder)]
    strict = reservations(builder)
    mild: documents.ReservationRequest = {
        **strict,
        "qualities": [{**quality, "violations": 4 * quality["violations"]} for quality in strict["qualities"]],
    }
    return ForecastAnswers(
        tuple(forecasts),
        (_twice(episode, RESERVATIONS, "promises", strict), _twice(episode, RESERVATIONS, "milder promises", mild)),
    )


def _twice(episode: Episode, path: str, what: str, body: Mapping[str, Any]) -> RepeatedForecast:
    return RepeatedForecast(what, ask(episode, path, body), ask(episode, path, body))


def questions(builder: ForecastRequestBuilder) -> "Iterator[tuple[str, documents.ForecastRequest]]":
    """Questions about unlike series, at unlike horizons and levels."""
    chance = builder.chance
    yield "a single short series", _forecast(builder, [builder.series([3.0, 5.0])], [60.0], [0.5])
    quiet = [builder.series([0.0] * 300), builder.series([64.0] * 300)]
    yield "series that stand still", _forecast(builder, quiet, [600.0, HOUR], [0.05, 0.5, 0.95])
    steps = (60.0, 300.0, 600.0)
    walks = [builder.series(builder.walk(chance.randrange(50, 800)), step=chance.choice(steps)) for _ in range(12)]
    levels = sorted({round(chance.uniform(0.005, 0.995), 3) for _ in range(20)})
    yield "many levels", _forecast(builder, walks, [30.0, 90.0, 600.0, HOUR, 6 * HOUR], levels)
    yield "levels on one side", _forecast(builder, walks[:3], [600.0], [0.8, 0.9])
    quantities = ("held_devices", "waiting_devices", "submitted_devices", "requests", "utilisation", "unknown")
    others = [builder.series(builder.walk(400), quantity=quantity) for quantity in quantities]
    others[4]["values"] = [chance.random() for _ in range(400)]
    yield "all quantities", _forecast(builder, others, [600.0, HOUR], [0.1, 0.5, 0.9])
    series, known = _foreseen(builder)
    yield "jobs and events", _forecast(builder, series, [600.0, HOUR], [0.05, 0.25, 0.5, 0.75, 0.95], **known)


def _forecast(
    builder: ForecastRequestBuilder,
    series: "list[documents.DemandSeries]",
    horizons: list[float],
    levels: list[float],
    **members: Any,
) -> "documents.ForecastRequest":
    """A question."""
    body = {"revision": builder.revision, "now": builder.at(0.0), "series": series}
    whole = {**body, **members, "horizons": horizons, "levels": levels}
    return cast("documents.ForecastRequest", whole)


def _foreseen(builder: ForecastRequestBuilder) -> "tuple[list[documents.DemandSeries], Json]":
    """Series of a domain, its tenant and a job, with jobs that run, wait and come, and events."""
    chance = builder.chance
    domain, tenant = builder.name(), builder.name()
    of: Json = {"domain": domain, "tenant": tenant}
    jobs = [
        builder.job(builder.periods(4, (0.2, 2.0)), -4 * HOUR, -2 * HOUR, **of),
        builder.job(builder.periods(2, (0.5, 3.0)), -0.5 * HOUR, **of),
        builder.job(builder.periods(3, (0.2, 1.0)), 0.4 * HOUR, **of),
    ]
    series = [
        builder.series(builder.walk(600), domain=domain),
        builder.series(builder.walk(600, 100), **of),
        builder.series(builder.walk(120, 64), **of, job=jobs[0]["id"]),
    ]
    kinds = ("holiday", "maintenance", "campaign", "deadline", "unknown")
    events = [
        {
            "kind": kind,
            "begins_at": builder.at(chance.uniform(-2 * HOUR, HOUR)),
            "ends_at": builder.at(chance.uniform(1.5 * HOUR, 9 * HOUR)),
            **({"devices": 32.0} if number % 2 else {"domain": domain}),
        }
        for number, kind in enumerate(kinds)
    ]
    return series, {"jobs": jobs, "events": events}


def reservations(builder: ForecastRequestBuilder) -> "documents.ReservationRequest":
    """A question for reservations: tenants with and without a promise, in two domains, and a series of none."""
    tenants, domains = [builder.name() for _ in range(4)], [builder.name() for _ in range(2)]
    series = [
        builder.series(builder.walk(700, 100), tenant=tenant, domain=domain) for tenant in tenants for domain in domains
    ]
    series.insert(3, builder.series(builder.walk(300), domain=domains[0]))
    promised: list[documents.TenantQuality] = [
        {"tenant": tenant, "violations": 0.04} for tenant in (*tenants[1:], builder.name())
    ]
    return {
        "revision": builder.revision,
        "now": builder.at(0.0),
        "series": series,
        "horizon": HOUR,
        "qualities": promised,
    }


def judge(observation: ForecastAnswers) -> Iterable[Finding]:
    """Claims about every answer."""
    for repeated in observation.forecasts:
        yield from _common(repeated, "forecasts")
        faults = list(_faults(repeated.first.body, repeated.first.decision["forecasts"]))
        expected = (
            f"{repeated.what}: forecasts of every series, by horizon and level, that do not contradict themselves"
        )
        yield holds(
            CONSISTENCY_REQUIREMENT, not faults, expected, "; ".join(faults[:3]) or "so they are", repeated.first.answer
        )
    strict, mild = observation.reservations
    for repeated in (strict, mild):
        yield from _common(repeated, "reservations")
        yield _reserved(repeated)
    pairs = zip(strict.first.decision["reservations"], mild.first.decision["reservations"], strict=False)
    more = [one["series"] for one, other in pairs if other["devices"] > one["devices"]]
    yield holds(
        CONSISTENCY_REQUIREMENT,
        not more,
        "no more is reserved where more violations are allowed",
        more,
        mild.first.answer,
    )


def _common(repeated: RepeatedForecast, what: str) -> Iterator[Claim]:
    first, again = repeated.first.decision, repeated.again.decision
    revision = repeated.first.body["revision"]
    same = first["revision"] == revision
    yield holds(
        CONSISTENCY_REQUIREMENT,
        same,
        f"{repeated.what}: the request's revision",
        first["revision"],
        repeated.first.answer,
    )
    alike = first[what] == again[what]
    observed = "it is the same" if alike else "it is another"
    yield holds(
        CONSISTENCY_REQUIREMENT,
        alike,
        f"{repeated.what}: the same answer to the same question",
        observed,
        repeated.again.answer,
    )


def _reserved(repeated: RepeatedForecast) -> Claim:
    """A row for every series of a tenant with a promise, in order."""
    body = repeated.first.body
    promised = {quality["tenant"] for quality in body["qualities"]}
    wanted = [(item["id"], item["tenant"], item["domain"]) for item in body["series"] if item.get("tenant") in promised]
    rows = [
        (entry["series"], entry["tenant"], entry.get("domain")) for entry in repeated.first.decision["reservations"]
    ]
    expected = f"{repeated.what}: a reservation for every series of a tenant with a promise, in order"
    return holds(
        CONSISTENCY_REQUIREMENT, rows == wanted, expected, f"{len(rows)} of {len(wanted)}", repeated.first.answer
    )


def _faults(body: Mapping[str, Any], forecasts: "list[documents.SeriesForecast]") -> Iterator[str]:
    """What does not hang together in forecasts, in words."""
    if [forecast["series"] for forecast in forecasts] != [entry["id"] for entry in body["series"]]:
        yield "the series are not those of the question, in order"
        return
    for item in forecasts:
        if [point["horizon"] for point in item["points"]] != body["horizons"]:
            yield f"{item['series']}: horizons are not those of the question"
            continue
        for point in item["points"]:
            where = f"{item['series']}, {point['horizon']:g} s"
            yield from (f"{where}: {fault}" for fault in _of_point(point, body["levels"]))


def _of_point(point: "documents.DemandForecastPoint", levels: list[float]) -> Iterator[str]:
    quantiles = {item["level"]: item["value"] for item in point["quantiles"]}
    if [entry["level"] for entry in point["quantiles"]] != levels:
        yield "levels are not those of the question"
        return
    values, expected = list(quantiles.values()), point["expected"]
    slack = _SAME * max(1.0, *map(abs, values))
    crossing = [(one, other) for one, other in pairwise(values) if one > other + slack]
    if crossing:
        yield f"quantiles cross: {crossing[0]}"
    below, above = levels[0] <= 0.5, levels[-1] >= 0.5
    if below and expected < values[0] - slack:
        yield f"{expected} is expected, less than the lowest quantile {values[0]}"
    if above and expected > values[-1] + slack:
        yield f"{expected} is expected, more than the highest quantile {values[-1]}"
    if 0.5 in quantiles and abs(quantiles[0.5] - expected) > slack:
        yield f"{expected} is expected, and the median is {quantiles[0.5]}"


CHECK = Check(
    "fct_whole",
    (CONSISTENCY_REQUIREMENT,),
    observe,
    judge,
    summary="Forecasts that hang together: all that was asked for, in order, without contradiction (FCT-006).",
)


PEAK_REQUIREMENT = "FCT-005"
MIN_PEAK_GAIN_SHARE = 0.5
"""Part of what a simple rule lowers peaks by that a plan has to reach, over all questions together."""
QUICK_PEAKS, FULL_PEAKS = 4, 16
_SAME_PEAK = 1e-6


@dataclass(frozen=True)
class PeakPlan:
    """A peak plan that was asked for, the base and the loads of the question."""

    base: tuple[float, ...]
    loads: tuple[Load, ...]
    exchange: DecisionExchange


def observe_peaks(episode: Episode, *, full: bool) -> tuple[PeakPlan, ...]:
    """Ask for plans over days, each with loads of its own."""
    plans = []
    for _ in range(FULL_PEAKS if full else QUICK_PEAKS):
        base, loads, body = peak_request(ForecastRequestBuilder(episode.random, episode.naming))
        plans.append(PeakPlan(base, loads, ask(episode, PEAKS, body)))
    return tuple(plans)


def peak_request(
    builder: ForecastRequestBuilder,
) -> "tuple[tuple[float, ...], tuple[Load, ...], documents.PeakRequest]":
    """A day of quarters of an hour with a peak in the afternoon, near which people plan their work."""
    chance = builder.chance
    steps = 96
    height, swing, peak = chance.uniform(400, 800), chance.uniform(0.2, 0.4), chance.uniform(0.5, 0.75)
    base = tuple(
        float(round(height * (1 + swing * sin(2 * pi * (step / steps - peak + 0.25))) + chance.randrange(40)))
        for step in range(steps)
    )
    loads = []
    for _ in range(chance.randrange(15, 40)):
        slots = chance.randrange(1, 17)
        planned = min(steps - slots, max(0, int(chance.gauss(peak * steps, 10))))
        earliest = max(0, planned - chance.randrange(0, 40))
        latest = min(steps - 1, planned + slots - 1 + chance.randrange(0, 40))
        loads.append(Load(8 * chance.randrange(1, 9), slots, earliest, latest, planned, chance.random() < 0.4))
    body: documents.PeakRequest = {
        "revision": builder.revision,
        "step": 900.0,
        "base": list(base),
        "loads": [_movable(builder.name(), load) for load in loads],
    }
    return base, tuple(loads), body


def _movable(name: str, load: Load) -> "documents.MovableLoad":
    movable: documents.MovableLoad = {
        "id": name,
        "devices": load.devices,
        "slots": load.slots,
        "earliest": load.earliest,
        "latest": load.latest,
        "planned": load.planned,
    }
    if load.interruptible:
        movable["interruptible"] = True
    return movable


def judge_peaks(peaks: Sequence[PeakPlan]) -> Iterator[Claim]:
    """Every plan is sound, and all together they lower peaks."""
    ours = by_rule = 0.0
    shown = []
    for item in peaks:
        faults = list(_plan_faults(item))
        yield holds(
            PEAK_REQUIREMENT, not faults, "a plan that does all work in its time", faults[:3], item.exchange.answer
        )
        before = float(level(item.base, item.loads, [load.as_planned for load in item.loads]).max())
        plan = item.exchange.decision
        same = abs(float(plan["peak_before"]) - before) <= _SAME_PEAK * before
        yield holds(PEAK_REQUIREMENT, same, f"the peak before, {before:g}", plan["peak_before"], item.exchange.answer)
        if faults:
            shown.append(f"{before:g} stays, for a plan that is not sound")
            by_rule += _by_rule(item, before)
            continue
        after = float(level(item.base, item.loads, [entry["slots"] for entry in plan["loads"]]).max())
        same = abs(float(plan["peak_after"]) - after) <= _SAME_PEAK * after
        yield holds(PEAK_REQUIREMENT, same, f"the peak after, {after:g}", plan["peak_after"], item.exchange.answer)
        yield holds(
            PEAK_REQUIREMENT, after <= before, f"no more than {before:g} after all", after, item.exchange.answer
        )
        ours += before - after
        by_rule += _by_rule(item, before)
        shown.append(f"{before:g} to {after:g}, least {least_peak(item.base, item.loads):.1f}")
    if peaks:
        share = f"{MIN_PEAK_GAIN_SHARE:.0%}"
        expected = f"peaks are lowered by {share} of what list scheduling lowers them by, {by_rule:g} devices"
        yield holds(PEAK_REQUIREMENT, ours >= MIN_PEAK_GAIN_SHARE * by_rule, expected, f"{ours:g}: {'; '.join(shown)}")


def _by_rule(peak_plan: PeakPlan, before: float) -> float:
    """By how much the simple rule lowers the peak."""
    return max(
        0.0, before - float(level(peak_plan.base, peak_plan.loads, greedy(peak_plan.base, peak_plan.loads)).max())
    )


def _plan_faults(peak_plan: PeakPlan) -> Iterator[str]:
    """What is wrong with a plan, in words."""
    plan, body = peak_plan.exchange.decision, peak_plan.exchange.body
    if plan["revision"] != body["revision"]:
        yield f"its revision is {plan['revision']}"
    names = [load["id"] for load in body["loads"]]
    if [entry["load"] for entry in plan["loads"]] != names:
        yield "its loads are not those of the question, in order"
        return
    for load, item in zip(peak_plan.loads, plan["loads"], strict=True):
        slots = item["slots"]
        if any(one >= other for one, other in pairwise(slots)):
            yield f"steps that do not rise: {slots}"
        elif len(slots) != load.slots:
            yield f"{len(slots)} steps of work in place of {load.slots}"
        elif slots[0] < load.earliest or slots[-1] > load.latest:
            yield f"steps {slots[0]} to {slots[-1]}, where {load.earliest} to {load.latest} are allowed"
        elif not load.interruptible and slots[-1] - slots[0] != load.slots - 1:
            yield f"an interruption of what may not be interrupted: {slots}"


WAVEFORM_REQUIREMENT = "FCT-005"
CASES = 20_000
NEAR, SUMS = 0.03, 0.01
"""How far means may be off, over the greatest of them, and sums, of themselves."""
SHARES, ALONE = 0.03, 0.04
"""How far shares of cases may be off, as shares: on average over the points of a waveform, and for a single interval.

A service that lays 2 000 cases misses half of them by 1.2 hundredths as standard deviation, whatever it does.
"""
QUICK_WAVES, FULL_WAVES = 3, 12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WaveformAnswer:
    """A waveform that was asked for.

    Attributes:
        jobs: Trainings as they are to be laid.
        exchange: Question and answer.
        seed: Of the suite's own cases.
    """

    jobs: tuple[Laid, ...]
    exchange: DecisionExchange
    seed: str


@dataclass(frozen=True)
class WaveformAnswers:
    """Waveforms and peak plans."""

    waves: tuple[WaveformAnswer, ...]
    peaks: tuple[PeakPlan, ...]


def observe_waveforms(episode: Episode) -> WaveformAnswers:
    """Ask for waveforms of several sets of trainings, then for peak plans."""
    waves = []
    for number in range(FULL_WAVES if episode.settings.full else QUICK_WAVES):
        builder = ForecastRequestBuilder(episode.random, episode.naming)
        jobs, body = wave_request(builder, number)
        waves.append(WaveformAnswer(jobs, ask(episode, WAVEFORMS, body), builder.name()))
    return WaveformAnswers(tuple(waves), observe_peaks(episode, full=episode.settings.full))


def wave_request(builder: ForecastRequestBuilder, number: int) -> "tuple[tuple[Laid, ...], documents.WaveformRequest]":
    """Trainings that run, wait and are announced, and the question for their waveform.

    What runs has just begun, or is in a period that cannot be over: nobody has to ask whether a case in which it were
    is one.
    """
    chance = builder.chance
    step, steps = chance.choice((300.0, 600.0, 900.0)), chance.randrange(60, 120)
    laid, foreseen = [], []
    for place in range(chance.randrange(6, 10)):
        periods = builder.periods(chance.randrange(2, 7), (0.3, 5.0), 0.4)
        if place % 3 == 0:
            started = -float(chance.randrange(1, 900))
            # a period that is over is known, and the next has lasted a tenth at most
            over = Period("warm_up", 64, float(chance.randrange(600, 7_200)), 0.0)
            known = [over] if chance.random() < 0.5 else []
            periods[0] = Period(periods[0].phase, periods[0].devices, max(9_000.0, periods[0].expected), 0.3)
            begin = started - (over.expected if known else 0.0)
            periods = [*known, *periods]
            foreseen.append(builder.job(periods, begin - 100.0, begin))
        else:
            submitted = float(chance.randrange(-7_200, 0) if place % 3 == 1 else chance.randrange(1, 20_000))
            begin = max(0.0, submitted)
            foreseen.append(builder.job(periods, submitted))
        laid.append(Laid(begin, tuple(periods)))
    body: documents.WaveformRequest = {
        "revision": builder.revision,
        "now": builder.at(0.0),
        "period": step * steps,
        "step": step,
        "jobs": foreseen,
    }
    if number % 3:
        body["coverage"] = chance.choice((0.5, 0.8, 0.95))
    if number % 3 != 1:
        begins = [0.0, *sorted(float(entry) for entry in chance.sample(range(600, int(DAY), 600), 4))]
        body["prices"] = [{"begin": begin, "price": round(chance.uniform(1.0, 20.0), 2)} for begin in begins]
    return tuple(laid), body


def judge_waveforms(observation: WaveformAnswers) -> Iterable[Finding]:
    """Claims about waveforms, then about peak plans."""
    for wave in observation.waves:
        yield from _judged(wave)
    yield from judge_peaks(observation.peaks)


def _judged(wave: WaveformAnswer) -> Iterator[Claim]:
    body, waveform, answer = wave.exchange.body, wave.exchange.decision, wave.exchange.answer
    step, coverage = body["step"], body.get("coverage", 0.9)
    ats = np.arange(int(body["period"] // step) + 1) * step
    instants = [point["at"] for point in waveform["points"]]
    same = len(instants) == len(ats) and bool(np.allclose(instants, ats))
    yield holds(
        WAVEFORM_REQUIREMENT,
        same,
        "a point at nought and after each step until the period is over",
        instants[:5],
        answer,
    )
    yield holds(
        WAVEFORM_REQUIREMENT,
        waveform["revision"] == body["revision"],
        "the request's revision",
        waveform["revision"],
        answer,
    )
    if not same:
        return
    mean, low, high = (
        np.array([float(point[name]) for point in waveform["points"]]) for name in ("expected", "low", "high")
    )
    drawn = cases(wave.jobs, ats, CASES, wave.seed)
    means = drawn.mean(axis=0)
    away = float(np.abs(mean - means).max() / means.max())
    expected = f"what is expected is within {NEAR:.0%} of the mean over cases, in that of the greatest"
    yield holds(WAVEFORM_REQUIREMENT, away <= NEAR, expected, f"{away:.1%} at most", answer)
    # devices are whole: what lies half of one beside a whole number means it
    yield _covered("points", drawn, np.rint(low), np.rint(high), coverage, SHARES, wave)
    total = drawn.sum(axis=1) * step
    yield from _sum("device_seconds", float(mean.sum() * step), total, wave)
    if "prices" in body:
        paid = step / HOUR * _prices(body, ats)
        yield from _sum("budget", float((mean * paid).sum()), (drawn * paid).sum(axis=1), wave)


def _prices(body: Mapping[str, Any], ats: Floats) -> Floats:
    now = seconds_of(body["now"]) or 0.0
    prices = body["prices"]
    return prices_at([entry["begin"] for entry in prices], [item["price"] for item in prices], now + ats)


def _sum(what: str, expected: float, drawn: Floats, wave: WaveformAnswer) -> Iterator[Claim]:
    """What an estimate of a sum says."""
    answer = wave.exchange.answer
    estimate = wave.exchange.decision.get(what)
    yield holds(WAVEFORM_REQUIREMENT, estimate is not None, f"{what} are told", estimate, answer)
    if estimate is None:
        return
    near = abs(float(estimate["expected"]) - expected) <= SUMS * expected
    words = f"{what} are {expected:.6g}, what all points make, to {SUMS:.0%}"
    yield holds(WAVEFORM_REQUIREMENT, near, words, estimate["expected"], answer)
    low, high = (np.array([float(estimate[end])]) for end in ("low", "high"))
    yield _covered(what, drawn[:, None], low, high, float(estimate["coverage"]), ALONE, wave)


def _covered(
    what: str, drawn: Floats, low: Floats, high: Floats, coverage: float, off: float, wave: WaveformAnswer
) -> Claim:
    """Whether intervals hold as many cases as they say: those on their ends may be counted either way."""
    inside = ((low < drawn) & (drawn < high)).mean(axis=0)
    upto = ((low <= drawn) & (drawn <= high)).mean(axis=0)
    short, long = float(np.maximum(0.0, coverage - upto).mean()), float(np.maximum(0.0, inside - coverage).mean())
    met = short <= off and long <= off and bool((low <= high).all())
    words = f"intervals of {what} hold {coverage:.0%} of the cases, to {off:.0%}"
    observed = f"on average {short:.1%} too few where they are narrow, {long:.1%} too many where they are wide"
    return holds(WAVEFORM_REQUIREMENT, met, words, observed, wave.exchange.answer)


WAVEFORMS_CHECK = Check(
    "fct_waveforms",
    (WAVEFORM_REQUIREMENT,),
    observe_waveforms,
    judge_waveforms,
    heavy=True,
    summary="Waveforms of demand and plans that lower its peaks (FCT-005).",
)
