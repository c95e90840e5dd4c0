"""Forecasts that hang together: all that was asked for, in order, and nothing that contradicts itself (FCT-006)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast.forecast_requests import FORECASTS, HOUR, RESERVATIONS, ForecastRequestBuilder
from kuayu_conformance.checks.kit.decisions import DecisionExchange, Json, ask
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, Finding, holds

if TYPE_CHECKING:
    from kuayu_schemas import documents

REQUIREMENT = "FCT-006"
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
        yield holds(REQUIREMENT, not faults, expected, "; ".join(faults[:3]) or "so they are", repeated.first.answer)
    strict, mild = observation.reservations
    for repeated in (strict, mild):
        yield from _common(repeated, "reservations")
        yield _reserved(repeated)
    pairs = zip(strict.first.decision["reservations"], mild.first.decision["reservations"], strict=False)
    more = [one["series"] for one, other in pairs if other["devices"] > one["devices"]]
    yield holds(REQUIREMENT, not more, "no more is reserved where more violations are allowed", more, mild.first.answer)


def _common(repeated: RepeatedForecast, what: str) -> Iterator[Claim]:
    first, again = repeated.first.decision, repeated.again.decision
    revision = repeated.first.body["revision"]
    same = first["revision"] == revision
    yield holds(REQUIREMENT, same, f"{repeated.what}: the request's revision", first["revision"], repeated.first.answer)
    alike = first[what] == again[what]
    observed = "it is the same" if alike else "it is another"
    yield holds(
        REQUIREMENT, alike, f"{repeated.what}: the same answer to the same question", observed, repeated.again.answer
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
    return holds(REQUIREMENT, rows == wanted, expected, f"{len(rows)} of {len(wanted)}", repeated.first.answer)


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


CHECK = Check("fct_whole", (REQUIREMENT,), observe, judge)
