"""Accuracy of forecasts ten minutes and an hour ahead (FCT-001, FCT-002).

Large trainings come and go in five domains beside small jobs and services. The service sees what is known, at instants
in the order of time; accuracy is one less the sum of absolute errors over the sum of what came, of each domain, and the
worst domain counts.

1. Forecasts of real series, where the folder of public originals is at hand; they are shown and not judged.
2. Tables and plots that stand beside the accuracy of forecasts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.check import Check
from kuayu_conformance.checks.forecast.forecast_requests import FORECASTS
from kuayu_conformance.checks.forecast.origins import (
    CONFIDENCE,
    HORIZONS,
    LEVELS,
    OriginForecasts,
    Row,
    Size,
    gathered,
    ratio,
    ratio_bounds,
    said,
)
from kuayu_conformance.checks.forecast.origins import observe as observe_worlds
from kuayu_conformance.checks.kit.tables import NONE, lines, percent, table
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure, holds
from kuayu_conformance.testbed.demand import baselines
from kuayu_conformance.testbed.demand.baselines import DEMANDED, FILES, LAST, PLAN, SIMPLE, series
from kuayu_conformance.testbed.demand.codec import PAST, Names
from kuayu_conformance.testbed.demand.world import STEP
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
        for (cluster, values), points in zip(clusters.items(), forecasts or [], strict=False):
            for horizon, (expected, _) in zip(HORIZONS, points, strict=True):
                ahead = int(horizon / STEP)
                others = baselines.simple(values[: step + 1], ahead)
                yield RealRow(name, cluster, horizon, float(values[step + ahead]), float(expected), others)


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


REQUIREMENTS = dict(zip(HORIZONS, ("FCT-001", "FCT-002"), strict=True))
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
    for horizon, requirement in REQUIREMENTS.items():
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


CHECK = Check("fct_accuracy", tuple(REQUIREMENTS.values()), observe, judge, traces=tuple(FILES), heavy=True)
