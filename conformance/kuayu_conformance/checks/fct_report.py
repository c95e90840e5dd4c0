"""Tables and plots that stand beside the accuracy of forecasts."""

from collections.abc import Callable, Iterable, Sequence

from kuayu_conformance.checks.fct_bounds import gathered, ratio, ratio_bounds
from kuayu_conformance.checks.fct_origins import LEVELS, Row
from kuayu_conformance.checks.fct_real import RealRow
from kuayu_conformance.checks.sch_tables import NONE, lines, percent, table
from kuayu_conformance.testbed.demand.yardsticks import LAST, PLAN, SIMPLE
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

PARTS = {
    "tenant": "demanded by tenants of domains",
    "training": "demanded by large trainings",
    "held": "held in domains",
    "waiting": "waited for in domains",
    "submitted": "submitted in domains within a minute",
}
_YARDSTICKS = (*SIMPLE, PLAN)


def exhibits(rows: Sequence[Row], seed: str) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Accuracy by domain beside yardsticks, where changes were known apart, and of other series; and drawn."""
    domains = [row for row in rows if row.part == "domain"]
    tables = [_by_domain(domains, seed), _by_change(domains, seed), _others(rows)]
    return tables, [_fan(domains), _agreement(domains)]


def _by_domain(rows: Sequence[Row], seed: str) -> ReportTable:
    cells = []
    for label in dict.fromkeys(row.domain for row in rows):
        its = [row for row in rows if row.domain == label]
        told = [percent(accuracy(its, name)) for name in _YARDSTICKS]
        cells.append([label, str(len(its)), percent(accuracy(its)), *told, _skill(its, f"{seed} {label}")])
    columns = f"domain|forecasts|service|{'|'.join(_YARDSTICKS)}|less error than last value, 5-95 %"
    return table(f"Accuracy by domain, {_ahead(rows)}", columns, cells)


def _by_change(rows: Sequence[Row], seed: str) -> ReportTable:
    cells = []
    for known, label in ((True, "known"), (False, "not known")):
        its = [row for row in rows if row.change is known]
        if its:
            told = [percent(accuracy(its, name)) for name in (LAST, PLAN)]
            share = percent(len(its) / len(rows))
            cells.append([label, share, percent(accuracy(its)), *told, _skill(its, f"{seed} {label}")])
    title = f"Accuracy by whether a change of 5 % or more within the next hour was known beforehand, {_ahead(rows)}"
    return table(title, f"change|share|service|{LAST}|{PLAN}|less error than last value, 5-95 %", cells)


def _others(rows: Sequence[Row]) -> ReportTable:
    cells = []
    for part, label in PARTS.items():
        its = [row for row in rows if row.part == part]
        if its:
            cells.append([label, str(len(its)), percent(accuracy(its)), percent(accuracy(its, LAST))])
    return table(f"Accuracy of other series, not judged, {_ahead(rows)}", f"devices|forecasts|service|{LAST}", cells)


def real_table(rows: Sequence[RealRow]) -> ReportTable:
    """Accuracy of real series beside yardsticks: over all clusters of a set, and of its worst."""
    cells = []
    for name in dict.fromkeys(row.name for row in rows):
        its = [row for row in rows if row.name == name]
        for label, of in (("all clusters", _of_all), ("worst cluster", _of_worst)):
            told = [percent(of(its, yardstick)) for yardstick in SIMPLE]
            cells.append([name, label, str(len(its)), percent(of(its, "")), *told])
    title = f"Accuracy of real series, not judged, {_minutes(rows[0].horizon)} ahead"
    return table(title, f"set|of|forecasts|service|{'|'.join(SIMPLE)}", cells)


def _of_all(rows: Sequence[RealRow], yardstick: str) -> float | None:
    total = sum(row.truth for row in rows)
    missed = sum(abs((row.others[yardstick] if yardstick else row.expected) - row.truth) for row in rows)
    return 1.0 - missed / total if total else None


def _of_worst(rows: Sequence[RealRow], yardstick: str) -> float | None:
    clusters = dict.fromkeys(row.cluster for row in rows)
    found = [_of_all([row for row in rows if row.cluster == cluster], yardstick) for cluster in clusters]
    return min((each for each in found if each is not None), default=None)


def accuracy(rows: Iterable[Row], yardstick: str = "") -> float | None:
    """Accuracy of the service, or of a yardstick; None where nothing came."""
    its = list(rows)
    total = sum(row.truth for row in its)
    missed = sum(abs((row.others[yardstick] if yardstick else row.expected) - row.truth) for row in its)
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
    its = [row for row in rows if row.domain == rows[0].domain and row.world == rows[0].world]
    series: dict[str, Callable[[Row], float]] = {"what came": lambda row: row.truth}
    for level in (LEVELS[0], 0.5, LEVELS[-1]):
        place = LEVELS.index(level)
        series[f"quantile {level:g}"] = lambda row, place=place: row.quantiles[place]  # type: ignore[misc]
    points = {label: [(row.at - its[0].at, of(row)) for row in its] for label, of in series.items()}
    title = f"Quantiles over what came, {_ahead(rows)}: {rows[0].domain}, first world"
    return lines(title, "hours", "devices demanded", points)


def _agreement(rows: Sequence[Row]) -> ReportPlot:
    """Expected against what came; the axes are logarithmic, so that nought is not drawn."""
    drawn = [row for row in rows if row.truth > 0.0 and row.expected > 0.0]
    series = []
    for label in dict.fromkeys(row.domain for row in drawn):
        its = [row for row in drawn if row.domain == label]
        series.append(PlotSeries(label=label, x=[row.truth for row in its], y=[round(row.expected, 1) for row in its]))
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
