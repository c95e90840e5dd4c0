"""Accuracy of forecasts, and their quantiles with what is reserved by them (FCT-001, FCT-002, FCT-004).

Large trainings come and go in five domains beside small jobs and services. Forecasts are asked for again and again, at
instants of worlds in the order of time; the service sees what is known then.

1. *Bounds.* Ratios of totals are bounded over blocks: days of worlds are drawn whole, as demand within a day hangs
   together. Blocks do not overlap; days of independent worlds are exchangeable but for the weekday.
2. *Accuracy* (FCT-001, FCT-002) is one less the sum of absolute errors over the sum of what came, of each domain, ten
   minutes and an hour ahead; the worst domain counts. Forecasts of real series, where the folder of public originals is
   at hand, are shown and not judged.
3. *Quantiles* (FCT-004). A level is kept where a value is not exceeded in that share of cases. Devices are whole: where
   what comes is the value itself, the case counts in part. Reservations are asked for at instants of worlds, and held
   against what the tenants came to need.

Sources: H. R. Künsch, "The jackknife and the bootstrap for general stationary observations", The Annals of Statistics
17 (1989) 1217-1241; C. Czado, T. Gneiting and L. Held, "Predictive model assessment for count data", Biometrics 65
(2009) 1254-1261.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.answers import Answer
from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast.forecast_requests import FORECASTS, RESERVATIONS
from kuayu_conformance.checks.kit.decisions import NONE, is_answer, lines, percent, table
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.testbed.chance import stream
from kuayu_conformance.testbed.demand import baselines
from kuayu_conformance.testbed.demand.baselines import DEMANDED, FILES, LAST, PLAN, SIMPLE, series
from kuayu_conformance.testbed.demand.codec import (
    PAST,
    Names,
    Subject,
    forecast_request,
    past,
    reservation_request,
    subjects,
    values,
)
from kuayu_conformance.testbed.demand.world import DAY, STEP, Floats, World, world
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

RESAMPLES = 4000
CONFIDENCE = 0.95

Totals = tuple[list[float], list[float]]
"""Totals by block: what is divided, and by what."""


def gathered(parts: Iterable[tuple[Hashable, float, float]]) -> Totals:
    """Totals by block, from blocks with what is divided and by what, in any number."""
    over: dict[Hashable, float] = {}
    under: dict[Hashable, float] = {}
    for block, above, below in parts:
        over[block] = over.get(block, 0.0) + above
        under[block] = under.get(block, 0.0) + below
    return list(over.values()), list(under.values())


def ratio(totals: Totals) -> float:
    """The ratio itself; zero over zero is zero."""
    over, under = sum(totals[0]), sum(totals[1])
    return over / under if under else (0.0 if over == 0.0 else float("inf"))


def ratio_bounds(totals: Totals, seed: str, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """One-sided lower and upper bounds of the ratio, by the percentiles of bootstrap ratios.

    Resamples in which nothing is divided by are left out.

    Raises:
        ValueError: There are no blocks.
    """
    over, under = (np.array(total) for total in totals)
    if not len(over):
        raise ValueError("a bootstrap needs blocks")
    drawn = drawn_blocks(len(over), seed)
    above, below = over[drawn].sum(axis=1), under[drawn].sum(axis=1)
    ratios = np.sort(above[below > 0.0] / below[below > 0.0])
    if not len(ratios):
        return 0.0, float("inf")
    place = int(np.ceil(confidence * len(ratios))) - 1
    return float(ratios[len(ratios) - 1 - place]), float(ratios[place])


def drawn_blocks(blocks: int, seed: str) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Numbers of blocks of every resample, shape (resamples, blocks)."""
    return (stream(seed, "blocks").random((RESAMPLES, blocks)) * blocks).astype(np.intp)


def upper_of(samples: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """The percentile of resampled figures that is their one-sided upper bound."""
    return sorted(samples)[int(np.ceil(confidence * len(samples))) - 1]


HORIZONS = (600.0, 3600.0)
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
KNOWN_CHANGE = 0.05
"""Change of a domain's demand within the horizon, over the demand, from which on it counts as known beforehand."""

_FEWEST_PAST = PAST / STEP
_HOPELESS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A forecast and what came.

    Attributes:
        world: Number of the world.
        day: Day of the world on which it was made; with the world it makes a block.
        hour: Hours since the beginning of the world at which the forecast value is seen.
        domain: Label of the domain, which the service does not know.
        part: ``domain``, ``tenant``, ``training``, ``held``, ``waiting`` or ``submitted``.
        tenant: Number of the tenant; -1 where it is of all.
        horizon: Seconds.
        truth: What came.
        expected: What was expected.
        quantiles: By ``LEVELS``.
        others: What yardsticks expected, by name.
        empirical: Last value with the errors that it made before, by ``LEVELS``; only of domains and tenants.
        change: Whether a change of the domain's demand within the horizon was known beforehand.
    """

    world: int
    day: int
    hour: float
    domain: str
    part: str
    tenant: int
    horizon: float
    truth: float
    expected: float
    quantiles: tuple[float, ...]
    others: Mapping[str, float]
    empirical: tuple[float, ...] = ()
    change: bool = False

    @property
    def block(self) -> tuple[int, int]:
        """What is drawn as one: a day of a world."""
        return self.world, self.day


@dataclass(frozen=True, slots=True)
class Size:
    """How much is asked.

    Attributes:
        worlds: Worlds.
        days: Days of each in which forecasts are made.
        origins: Instants of each at which they are.
    """

    worlds: int
    days: int
    origins: int


@dataclass(frozen=True, slots=True)
class OriginForecasts:
    """What was said, and what was not answered as the standard says."""

    rows: tuple[Row, ...]
    refused: tuple[Answer, ...]
    requests: int


def worlds(episode: Episode, size: Size) -> Iterator[tuple[int, World, Names, list[int]]]:
    """Worlds with their names, and the steps at which something is asked: one in each of equal spans."""
    begin = int(_FEWEST_PAST)
    days = size.days + begin * STEP / DAY + 2 * max(HORIZONS) / DAY
    span = int(size.days * DAY / STEP / size.origins)
    for number in range(size.worlds):
        seed = f"{episode.random.getrandbits(64):016x}"
        steps = [begin + span * entry + episode.random.randrange(span) for entry in range(size.origins)]
        yield number, world(seed, days), Names(episode.salted(seed)), steps


def observe_worlds(episode: Episode, size: Size) -> OriginForecasts:
    """Ask at every instant; nothing more once the first questions were all in vain."""
    rows: list[Row] = []
    refused: list[Answer] = []
    requests = 0
    for number, entry, names, steps in worlds(episode, size):
        for step in steps:
            about = subjects(entry, step)
            request = forecast_request(entry, names, step, about, HORIZONS, LEVELS)
            episode.keep_truth(partial(_came, number, entry, step, about, request))
            answer = episode.ask_patiently("POST", FORECASTS, request)
            requests += 1
            forecasts = said(answer, request)
            if forecasts is None:
                refused.append(answer)
            else:
                rows += _forecast_rows(entry, number, step, about, forecasts)
            if len(refused) == requests == _HOPELESS:
                return OriginForecasts((), tuple(refused), requests)
            episode.passed(requests, size.worlds * size.origins)
    return OriginForecasts(tuple(rows), tuple(refused), requests)


def _came(
    number: int, world: World, step: int, about: Sequence[Subject], request: "documents.ForecastRequest"
) -> dict[str, object]:
    """What came of the series of domains that a question is about, at its horizons."""
    series = {entry["id"]: subject for entry, subject in zip(request["series"], about, strict=True)}
    whole = {name: subject for name, subject in series.items() if part_of(subject) == "domain"}
    return {
        "revision": request["revision"],
        "world": number,
        "day": _day(step),
        "domains": [
            {
                "series": name,
                "label": world.domains[subject.domain].kind.label,
                "came": [float(values(world, subject)[step + int(horizon / STEP)]) for horizon in HORIZONS],
            }
            for name, subject in whole.items()
        ],
    }


def _day(step: int) -> int:
    """Day of a world, counted from its beginning, in which a step lies."""
    return int((step * STEP) // DAY)


def said(answer: Answer, request: "documents.ForecastRequest") -> list[list[tuple[float, tuple[float, ...]]]] | None:
    """By series and horizon what is expected and the quantiles; None where anything that was asked for is missing."""
    if not is_answer(FORECASTS, answer):
        return None
    series = [entry["id"] for entry in request["series"]]
    forecasts = answer.json["forecasts"]
    if [forecast["series"] for forecast in forecasts] != series:
        return None
    by_series = []
    for item in forecasts:
        if [point["horizon"] for point in item["points"]] != list(request["horizons"]):
            return None
        if any([one["level"] for one in point["quantiles"]] != list(request["levels"]) for point in item["points"]):
            return None
        by_series.append([(p["expected"], tuple(one["value"] for one in p["quantiles"])) for p in item["points"]])
    return by_series


def _forecast_rows(
    items: World,
    number: int,
    step: int,
    about: Sequence[Subject],
    forecasts: list[list[tuple[float, tuple[float, ...]]]],
) -> Iterator[Row]:
    """What came of the answer to one question."""
    plans = [baselines.plan(domain, step * STEP, HORIZONS) for domain in items.domains]
    for subject, points in zip(about, forecasts, strict=True):
        series = values(items, subject)
        label = items.domains[subject.domain].kind.label
        part = part_of(subject)
        last = float(series[step])
        whole = part == "domain"
        for horizon, (expected, quantiles) in zip(HORIZONS, points, strict=True):
            ahead = int(horizon / STEP)
            others = {baselines.LAST: last}
            if whole:
                change = plans[subject.domain][horizon]
                others = baselines.simple(series[: step + 1], ahead)
                others[baselines.PLAN] = max(0.0, last + change)
            known = whole and abs(plans[subject.domain][max(HORIZONS)]) >= KNOWN_CHANGE * last
            yield Row(
                world=number,
                day=_day(step),
                hour=(step + ahead) * STEP / 3600.0,
                domain=label,
                part=part,
                tenant=-1 if subject.tenant is None else subject.tenant,
                horizon=horizon,
                truth=float(series[step + ahead]),
                expected=float(expected),
                quantiles=tuple(map(float, quantiles)),
                others=others,
                empirical=_empirical(series, step, ahead) if part in {"domain", "tenant"} else (),
                change=known,
            )


def part_of(subject: Subject) -> str:
    """What a series is of, in a word."""
    if subject.job is not None:
        return "training"
    if subject.tenant is not None:
        return "tenant"
    return "domain" if subject.quantity == "demanded" else subject.quantity


def _empirical(series: Floats, step: int, ahead: int) -> tuple[float, ...]:
    """Quantiles by ``LEVELS`` of the last value and the errors that the last value made within a day."""
    return baselines.last_with_errors(series[step - int(DAY / STEP) : step + 1], ahead, LEVELS)


ORIGINS = 30
"""Instants of each set, one in each of equal spans."""


@dataclass(frozen=True, slots=True)
class RealRow:
    """A forecast of a real series and what came.

    Attributes:
        name: Of the set.
        cluster: Of the series.
        horizon: Seconds.
        truth: What came.
        expected: What was expected.
        others: What yardsticks expected, by name.
    """

    name: str
    cluster: str
    horizon: float
    truth: float
    expected: float
    others: Mapping[str, float]


def observe_real(episode: Episode) -> tuple[RealRow, ...]:
    """Ask for forecasts of every set at hand, at instants in the order of time."""
    return tuple(
        row
        for name in FILES
        if name in episode.settings.traces
        for row in _of_set(episode, name, series(name, episode.settings.traces[name]))
    )


def _of_set(episode: Episode, name: str, clusters: Mapping[str, NDArray[np.float64]]) -> Iterator[RealRow]:
    names = Names(episode.salted(f"{episode.random.getrandbits(64):016x}"))
    past, furthest = int(PAST / STEP), int(max(HORIZONS) / STEP)
    length = min(map(len, clusters.values()))
    span = (length - past - furthest) // ORIGINS
    for number in range(ORIGINS):
        step = past + span * number + episode.random.randrange(span)
        request = _request(names, name, clusters, step)
        forecasts = said(episode.ask_patiently("POST", FORECASTS, request), request)
        for (cluster, observed), points in zip(clusters.items(), forecasts or [], strict=False):
            for horizon, (expected, _) in zip(HORIZONS, points, strict=True):
                ahead = int(horizon / STEP)
                others = baselines.simple(observed[: step + 1], ahead)
                yield RealRow(name, cluster, horizon, float(observed[step + ahead]), float(expected), others)


def _request(
    names: Names, name: str, clusters: Mapping[str, NDArray[np.float64]], step: int
) -> "documents.ForecastRequest":
    past = int(PAST / STEP)
    return {
        "revision": {"epoch": names.of("epoch"), "number": step},
        "now": names.at(step * STEP),
        "series": [
            {
                "id": names.of("series", cluster),
                "quantity": "demanded_devices" if name in DEMANDED else "held_devices",
                "domain": names.of("domain", cluster),
                "begin": names.at((step - past) * STEP),
                "step": STEP,
                "values": values[step - past : step + 1].tolist(),
            }
            for cluster, values in clusters.items()
        ],
        "horizons": list(HORIZONS),
        "levels": list(LEVELS),
    }


PARTS = {
    "tenant": "demanded by tenants of domains",
    "training": "demanded by large trainings",
    "held": "held in domains",
    "waiting": "waited for in domains",
    "submitted": "submitted in domains within a minute",
}
_BASELINES = (*SIMPLE, PLAN)


def exhibits(rows: Sequence[Row], seed: str) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Accuracy by domain beside yardsticks, where changes were known apart, and of other series; and drawn."""
    domains = [row for row in rows if row.part == "domain"]
    tables = [_by_domain(domains, seed), _by_change(domains, seed), _others(rows)]
    return tables, [_fan(domains), _agreement(domains)]


def _by_domain(rows: Sequence[Row], seed: str) -> ReportTable:
    cells = []
    for label in dict.fromkeys(row.domain for row in rows):
        selected = [row for row in rows if row.domain == label]
        accuracies = [percent(accuracy(selected, name)) for name in _BASELINES]
        cells.append(
            [label, str(len(selected)), percent(accuracy(selected)), *accuracies, _skill(selected, f"{seed} {label}")]
        )
    columns = f"domain|forecasts|service|{'|'.join(_BASELINES)}|less error than last value, 5-95 %"
    return table(f"Accuracy by domain, {_ahead(rows)}", columns, cells)


def _by_change(rows: Sequence[Row], seed: str) -> ReportTable:
    cells = []
    for known, label in ((True, "known"), (False, "not known")):
        selected = [row for row in rows if row.change is known]
        if selected:
            accuracies = [percent(accuracy(selected, name)) for name in (LAST, PLAN)]
            share = percent(len(selected) / len(rows))
            cells.append([label, share, percent(accuracy(selected)), *accuracies, _skill(selected, f"{seed} {label}")])
    title = f"Accuracy by whether a change of 5 % or more within the next hour was known beforehand, {_ahead(rows)}"
    return table(title, f"change|share|service|{LAST}|{PLAN}|less error than last value, 5-95 %", cells)


def _others(rows: Sequence[Row]) -> ReportTable:
    cells = []
    for part, label in PARTS.items():
        selected = [row for row in rows if row.part == part]
        if selected:
            cells.append([label, str(len(selected)), percent(accuracy(selected)), percent(accuracy(selected, LAST))])
    return table(f"Accuracy of other series, not judged, {_ahead(rows)}", f"devices|forecasts|service|{LAST}", cells)


def real_table(rows: Sequence[RealRow]) -> ReportTable:
    """Accuracy of real series beside yardsticks: over all clusters of a set, and of its worst."""
    cells = []
    for name in dict.fromkeys(row.name for row in rows):
        selected = [row for row in rows if row.name == name]
        for label, of in (("all clusters", _of_all), ("worst cluster", _of_worst)):
            accuracies = [percent(of(selected, baseline)) for baseline in SIMPLE]
            cells.append([name, label, str(len(selected)), percent(of(selected, "")), *accuracies])
    title = f"Accuracy of real series, not judged, {_minutes(rows[0].horizon)} ahead"
    return table(title, f"set|of|forecasts|service|{'|'.join(SIMPLE)}", cells)


def _of_all(rows: Sequence[RealRow], baseline: str) -> float | None:
    total = sum(row.truth for row in rows)
    missed = sum(abs((row.others[baseline] if baseline else row.expected) - row.truth) for row in rows)
    return 1.0 - missed / total if total else None


def _of_worst(rows: Sequence[RealRow], baseline: str) -> float | None:
    clusters = dict.fromkeys(row.cluster for row in rows)
    accuracies = [_of_all([row for row in rows if row.cluster == cluster], baseline) for cluster in clusters]
    return min((entry for entry in accuracies if entry is not None), default=None)


def accuracy(rows: Iterable[Row], baseline: str = "") -> float | None:
    """Accuracy of the service, or of a yardstick; None where nothing came."""
    selected = list(rows)
    total = sum(row.truth for row in selected)
    missed = sum(abs((row.others[baseline] if baseline else row.expected) - row.truth) for row in selected)
    return 1.0 - missed / total if total else None


def _skill(rows: Sequence[Row], seed: str) -> str:
    """By how much errors are less than those of the last value, with an interval."""
    totals = gathered((row.block, abs(row.expected - row.truth), abs(row.others[LAST] - row.truth)) for row in rows)
    if not sum(totals[1]):
        return NONE
    low, high = ratio_bounds(totals, f"skill {seed}")
    return f"{percent(1.0 - ratio(totals))} ({percent(1.0 - high)} to {percent(1.0 - low)})"


def _fan(rows: Sequence[Row]) -> ReportPlot:
    """Quantiles over what came, in the first domain of the first world."""
    selected = [row for row in rows if row.domain == rows[0].domain and row.world == rows[0].world]
    series: dict[str, Callable[[Row], float]] = {"what came": lambda row: row.truth}
    for level in (LEVELS[0], 0.5, LEVELS[-1]):
        place = LEVELS.index(level)
        series[f"quantile {level:g}"] = lambda row, place=place: row.quantiles[place]  # type: ignore[misc]
    points = {label: [(row.hour - selected[0].hour, of(row)) for row in selected] for label, of in series.items()}
    title = f"Quantiles over what came, {_ahead(rows)}: {rows[0].domain}, first world"
    return lines(title, "hours", "devices demanded", points)


def _agreement(rows: Sequence[Row]) -> ReportPlot:
    """Expected against what came; the axes are logarithmic, so that zero is not drawn."""
    drawn = [row for row in rows if row.truth > 0.0 and row.expected > 0.0]
    series = []
    for label in dict.fromkeys(row.domain for row in drawn):
        selected = [row for row in drawn if row.domain == label]
        series.append(
            PlotSeries(label=label, x=[row.truth for row in selected], y=[round(row.expected, 1) for row in selected])
        )
    return ReportPlot(
        title=f"Expected against what came, {_ahead(rows)}",
        kind=PlotKind.agreement,
        x_label="devices demanded",
        y_label="devices expected",
        series=series,
    )


def _ahead(rows: Sequence[Row]) -> str:
    return f"{_minutes(rows[0].horizon)} ahead"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} minutes"


ACCURACY_REQUIREMENTS = dict(zip(HORIZONS, ("FCT-001", "FCT-002"), strict=True))
QUICK, FULL = Size(worlds=3, days=5, origins=20), Size(worlds=8, days=7, origins=50)


@dataclass(frozen=True)
class AccuracyForecasts:
    """What was said of worlds and of real series, and what was not answered."""

    forecasts: OriginForecasts
    real: tuple[RealRow, ...] = ()


def observe(episode: Episode) -> AccuracyForecasts:
    """Ask in worlds, and in a full run of real series as far as they are at hand."""
    forecasts = observe_worlds(episode, FULL if episode.settings.full else QUICK)
    return AccuracyForecasts(forecasts, observe_real(episode) if forecasts.rows else ())


def judge(seen: AccuracyForecasts) -> Iterable[Finding]:
    """The worst domain by horizon."""
    forecasts = seen.forecasts
    for horizon, requirement in ACCURACY_REQUIREMENTS.items():
        missing = len(forecasts.refused)
        expected = "every question is answered by forecasts of all series, horizons and levels, in order"
        yield holds(
            requirement, not missing, expected, f"{missing} of {forecasts.requests} are not", *forecasts.refused[:1]
        )
        rows = [row for row in forecasts.rows if row.horizon == horizon]
        if rows:
            yield _figure(requirement, rows, seen)


def _figure(requirement: str, rows: Sequence[Row], seen: AccuracyForecasts) -> Figure:
    domains = [row for row in rows if row.part == "domain"]
    labels = list(dict.fromkeys(row.domain for row in domains))
    parts, ceilings = [], []
    for label in labels:
        totals = error_totals([row for row in domains if row.domain == label])
        low, _ = ratio_bounds(totals, f"{requirement} {label}", 1.0 - (1.0 - CONFIDENCE) / len(labels))
        _, high = ratio_bounds(totals, f"{requirement} {label}")
        n = sum(row.domain == label for row in domains)
        parts.append(PartFigure(label, 1.0 - ratio(totals), 1.0 - high, n))
        ceilings.append(1.0 - low)
    tables, plots = exhibits(rows, requirement)
    real = [row for row in seen.real if row.horizon == rows[0].horizon]
    return Figure(
        requirement,
        min(part.estimate for part in parts),
        min(part.bound for part in parts if part.bound is not None),
        len(domains),
        "1 - sum of absolute errors over sum of devices demanded, in the order of time; the worst domain; bound: the "
        "least of the domains' one-sided 95 % bounds, by bootstrap over days of worlds",
        parts=parts,
        tables=[*tables, *([real_table(real)] if real else [])],
        plots=plots,
        ceiling=min(ceilings),
    )


def error_totals(rows: Iterable[Row]) -> tuple[list[float], list[float]]:
    """Absolute errors and devices by block."""
    return gathered((row.block, abs(row.expected - row.truth), row.truth) for row in rows)


CHECK = Check(
    "fct_accuracy",
    tuple(ACCURACY_REQUIREMENTS.values()),
    observe,
    judge,
    traces=tuple(FILES),
    heavy=True,
    summary="Accuracy of forecasts ten minutes and an hour ahead (FCT-001, FCT-002).",
)


HORIZON = 3_600.0
PROMISES = (0.05, 0.1, 0.2)
"""Shares of cases in which tenants may come to need more; each tenant of a world has one."""


@dataclass(frozen=True, slots=True)
class ReservedRow:
    """A reservation and what came.

    Attributes:
        world: Number of the world.
        day: Day of the world.
        promised: Share of cases in which more may be needed.
        reserved: Devices.
        needed: Most that were demanded at once until the horizon.
        seen: Most that were demanded in the series of the request.
        last: What was demanded when it was asked.
    """

    world: int
    day: int
    promised: float
    reserved: float
    needed: float
    seen: float
    last: float

    @property
    def block(self) -> tuple[int, int]:
        """What is drawn as one: a day of a world."""
        return self.world, self.day


def observe_reserved(episode: Episode, size: Size) -> tuple[tuple[ReservedRow, ...], int]:
    """Reservations for all tenants of worlds, and how many questions were not answered."""
    rows: list[ReservedRow] = []
    unanswered = 0
    for number, row, names, steps in worlds(episode, size):
        about = [Subject(domain, tenant) for domain, of in enumerate(row.domains) for tenant in range(len(of.tenants))]
        promises = _draw_promises(episode.random, len(about))
        for step in steps:
            request = reservation_request(row, names, step, about, HORIZON, promises)
            answer = episode.ask_patiently("POST", RESERVATIONS, request)
            reservations = answer.json["reservations"] if is_answer(RESERVATIONS, answer) else []
            if [entry["series"] for entry in reservations] != [series["id"] for series in request["series"]]:
                unanswered += 1
                continue
            devices = [float(item["devices"]) for item in reservations]
            rows += _reserved_rows(row, number, step, list(zip(about, promises, devices, strict=True)))
    return tuple(rows), unanswered


def _draw_promises(chance: Random, count: int) -> list[float]:
    return [chance.choice(PROMISES) for _ in range(count)]


def _reserved_rows(
    world: World, number: int, step: int, reservations: Sequence[tuple[Subject, float, float]]
) -> Iterator[ReservedRow]:
    ahead = int(HORIZON / STEP)
    for subject, promised, devices in reservations:
        series = values(world, subject)
        needed = series[step + 1 : step + ahead + 1].max()
        seen = series[max(0, step - past(subject)) : step + 1].max()
        day = int(step * STEP // 86_400.0)
        yield ReservedRow(number, day, promised, devices, float(needed), float(seen), float(series[step]))


def reserved_table(rows: Sequence[ReservedRow]) -> ReportTable:
    """Violations and devices by promise, beside two rules that anybody can follow."""
    cells = []
    for promised in sorted({row.promised for row in rows}):
        selected = [row for row in rows if row.promised == promised]
        for label in ("service", "the most that was seen", "last value"):
            of = [_by(label, row) for row in selected]
            totals = gathered((row.block, float(row.needed > had), 1.0) for row, had in zip(selected, of, strict=True))
            share = sum(row.needed > had for row, had in zip(selected, of, strict=True)) / len(selected)
            low, high = ratio_bounds(totals, f"{label} {promised}")
            needed = sum(row.needed for row in selected) or 1.0
            shown = [percent(share), f"{percent(low)} to {percent(high)}", f"{sum(of) / needed:.3f}"]
            cells.append([percent(promised), label, str(len(selected)), *shown])
    title = "Reservations for an hour: cases in which more is needed, and devices reserved over the most needed"
    return table(title, "promised|rule|cases|more is needed|5-95 %|reserved over needed", cells)


def _by(label: str, row: ReservedRow) -> float:
    return {"service": row.reserved, "the most that was seen": row.seen, "last value": row.last}[label]


QUANTILES_REQUIREMENT = "FCT-004"
_CRUMB = 1e-9
QUANTILES_QUICK, QUANTILES_FULL = Size(worlds=2, days=5, origins=20), Size(worlds=8, days=7, origins=50)
QUICK_RESERVED, FULL_RESERVED = Size(worlds=2, days=5, origins=10), Size(worlds=6, days=7, origins=35)


@dataclass(frozen=True)
class QuantileForecasts:
    """Forecasts, and reservations; ``unanswered`` of these were not answered as the standard says."""

    forecasts: OriginForecasts
    reserved: tuple[ReservedRow, ...]
    unanswered: int = 0


def observe_quantiles(episode: Episode) -> QuantileForecasts:
    """Ask for forecasts, then in other worlds for reservations."""
    full = episode.settings.full
    forecasts = observe_worlds(episode, QUANTILES_FULL if full else QUANTILES_QUICK)
    reserved, unanswered = observe_reserved(episode, FULL_RESERVED if full else QUICK_RESERVED)
    return QuantileForecasts(forecasts, reserved, unanswered)


def judge_quantiles(seen: QuantileForecasts) -> Iterable[Finding]:
    """Coverage, then reservations."""
    missing = len(seen.forecasts.refused)
    expected = "every question is answered by forecasts of all series, horizons and levels, in order"
    observed = f"{missing} of {seen.forecasts.requests} are not"
    yield holds(QUANTILES_REQUIREMENT, not missing, expected, observed, *seen.forecasts.refused[:1])
    expected = "every question is answered by a reservation for every tenant, in order"
    yield holds(QUANTILES_REQUIREMENT, not seen.unanswered, expected, f"{seen.unanswered} are not")
    if seen.reserved:
        yield from _promises(seen.reserved)
    rows = [row for row in seen.forecasts.rows if row.part in {"domain", "tenant"}]
    if rows:
        yield _cover_figure(rows, seen)


def _promises(rows: Sequence[ReservedRow]) -> Iterator[Finding]:
    """What was promised is kept, with less than would be by reserving the most that was seen."""
    promises = sorted({row.promised for row in rows})
    level = 1.0 - (1.0 - CONFIDENCE) / len(promises)
    for promised in promises:
        selected = [row for row in rows if row.promised == promised]
        totals = gathered((row.block, float(row.needed > row.reserved), 1.0) for row in selected)
        low, _ = ratio_bounds(totals, f"{QUANTILES_REQUIREMENT} violations {promised}", level)
        expected = (
            f"tenants need more than is reserved for them in no more than {percent(promised)} of cases, as promised"
        )
        observed = f"in {percent(ratio(totals))}, in {percent(low)} at least"
        yield holds(QUANTILES_REQUIREMENT, low <= promised + _CRUMB, expected, observed)
    ours, most = (sum(entry) for entry in zip(*((row.reserved, row.seen) for row in rows), strict=True))
    expected = "less is reserved than the most that was seen of each tenant"
    yield holds(QUANTILES_REQUIREMENT, ours < most, expected, f"{ours:.0f} devices against {most:.0f}")


def _cover_figure(rows: Sequence[Row], seen: QuantileForecasts) -> Figure:
    groups = {
        f"{label}, {part}": [row for row in rows if (row.domain, row.part) == (label, part)]
        for label, part in dict.fromkeys((row.domain, row.part) for row in rows)
    }
    parts = [
        PartFigure(label, deviation(entry), _deviation_bound(entry, f"{QUANTILES_REQUIREMENT} {label}"), len(entry))
        for label, entry in groups.items()
    ]
    tables = [_coverage(groups), _scores(groups, rows)]
    if seen.reserved:
        tables.append(reserved_table(seen.reserved))
    return Figure(
        QUANTILES_REQUIREMENT,
        max(part.estimate for part in parts),
        max(part.bound for part in parts if part.bound is not None),
        len(rows),
        "mean over levels of how far the share of cases that do not exceed a quantile is from its level; the worst of "
        "domains and of their tenants, both horizons together; bound: the greatest of their one-sided 95 % bounds, by "
        "bootstrap over days of worlds",
        parts=parts,
        tables=tables,
        plots=[_drawn(groups)],
    )


def deviation(rows: Sequence[Row]) -> float:
    """Mean over levels of how far a level is from being kept."""
    below, upto = _bounds_of_cover(rows)
    return float(_away(below.mean(axis=0), upto.mean(axis=0)))


def _bounds_of_cover(rows: Sequence[Row]) -> tuple[Floats, Floats]:
    """By row and level, the least and the most that a case counts as one that does not exceed the quantile.

    It is one or zero but where what came is the quantile, in whole devices. Then the forecast lays some probability
    on that number, and the case is worth the part of it that lies below the level; its ends are between two levels
    each, which leaves a least and a most.
    """
    truth = np.array([row.truth for row in rows])[:, None]
    # what lies half a device beside a whole number means it
    quantiles = np.rint(np.minimum(np.array([row.quantiles for row in rows]), 1e15))
    levels, edges = np.array(LEVELS), np.array([0.0, *LEVELS, 1.0])
    first, beyond = ((quantiles < truth).sum(axis=1), (quantiles <= truth).sum(axis=1))
    begin_least, begin_most = edges[first][:, None], edges[np.minimum(first + 1, len(LEVELS))][:, None]
    end_least, end_most = edges[beyond][:, None], edges[beyond + 1][:, None]
    on_it = quantiles == truth
    least = np.where(on_it, _part(levels, begin_most, end_most), quantiles > truth)
    most = np.where(on_it, _part(levels, begin_least, end_least), quantiles > truth)
    return least, most


def _part(levels: Floats, begin: Floats, end: Floats) -> Floats:
    """Part of the stretch between two levels that lies below each level; all of it where it has no length."""
    length = end - begin
    part: Floats = np.clip((levels - begin) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
    return np.where(length > 0.0, part, 1.0)


def _away(below: Floats, upto: Floats) -> Floats:
    """How far levels are from lying between both shares, as a mean over the last axis."""
    levels = np.array(LEVELS)
    away: Floats = np.maximum(0.0, np.maximum(levels - upto, below - levels)).mean(axis=-1)
    return away


def _deviation_bound(rows: Sequence[Row], seed: str) -> float:
    """One-sided upper bound of the deviation; no less than the deviation itself."""
    blocks = sorted({row.block for row in rows})
    place = {block: number for number, block in enumerate(blocks)}
    below, upto = _bounds_of_cover(rows)
    sums = np.zeros((len(blocks), 2 * len(LEVELS) + 1))
    for row, less, no_more in zip(rows, below, upto, strict=True):
        sums[place[row.block]] += np.concatenate((less, no_more, [1.0]))
    drawn = sums[drawn_blocks(len(blocks), seed)].sum(axis=1)
    shares = drawn[:, :-1] / drawn[:, -1:]
    deviations = _away(shares[:, : len(LEVELS)], shares[:, len(LEVELS) :])
    return max(deviation(rows), upper_of(deviations.tolist()))


def pinball(rows: Sequence[Row], quantiles: Sequence[Sequence[float]]) -> float:
    """Sum over levels of the pinball loss, mean over cases: twice that is the interval score of all intervals.

    T. Gneiting and A. E. Raftery, Journal of the American Statistical Association 102 (2007) 359-378, section 6.
    """
    truth = np.array([row.truth for row in rows])[:, None]
    away = truth - np.array(quantiles)
    levels = np.array(LEVELS)
    return float(np.maximum(levels * away, (levels - 1.0) * away).sum(axis=1).mean())


def _coverage(groups: dict[str, list[Row]]) -> ReportTable:
    cells = []
    for label, item in groups.items():
        below, upto = (entry.mean(axis=0) for entry in _bounds_of_cover(item))
        shown = (f"{100 * less:.0f}-{100 * more:.0f}" for less, more in zip(below, upto, strict=True))
        cells.append([label, str(len(item)), percent(deviation(item)), *shown])
    columns = "|".join(f"{100 * level:g} %" for level in LEVELS)
    title = "Share of cases that do not exceed a quantile, in per cent: the least and the most, where it is met"
    return table(title, f"series of|cases|away|{columns}", cells)


def _scores(groups: dict[str, list[Row]], rows: Sequence[Row]) -> ReportTable:
    cells = []
    horizons = dict.fromkeys(row.horizon for row in rows)
    for label, all_of in groups.items():
        for horizon in horizons:
            selected = [row for row in all_of if row.horizon == horizon]
            ours = pinball(selected, [row.quantiles for row in selected])
            simple = pinball(selected, [row.empirical for row in selected])
            less = percent(1.0 - ours / simple if simple else None)
            cells.append([label, f"{horizon / 60:g}", str(len(selected)), f"{ours:.2f}", f"{simple:.2f}", less])
    title = "Pinball loss over all levels, in devices, beside the last value with the errors that it made within a day"
    return table(title, "series of|minutes|cases|service|last value with errors|less", cells)


def _drawn(groups: dict[str, list[Row]]) -> ReportPlot:
    points = {
        label: [
            (level, float(share)) for level, share in zip(LEVELS, _bounds_of_cover(entry)[1].mean(axis=0), strict=True)
        ]
        for label, entry in groups.items()
    }
    level = {"as stated": [(level, level) for level in LEVELS]}
    return lines("Share of cases that do not exceed a quantile", "level", "share", level | points)


QUANTILES_CHECK = Check(
    "fct_quantiles",
    (QUANTILES_REQUIREMENT,),
    observe_quantiles,
    judge_quantiles,
    heavy=True,
    summary="Quantiles of forecasts, and what is reserved for tenants by what they were promised (FCT-004).",
)
