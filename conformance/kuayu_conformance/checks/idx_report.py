"""Tables and plots that stand beside the error of the compute index."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kuayu_conformance.holdout.pairs import Pair, Summary
from kuayu_conformance.holdout.simple import PEAK, ROOFLINE, SCALAR
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

_LEFT_OUT = {"device": "device left out", "family": "family of models left out", "arrival": "devices as they arrive"}

Key = TypeVar("Key")


def exhibits(pairs: Sequence[Pair]) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Errors by table, split and number of probes, by device, and beside the simple indices; and drawn."""
    last = [pair for pair in pairs if pair.last]
    lines = _lines(pairs)
    tables = [_errors(pairs), _comparison(last), _by_device(last)]
    return tables, [_agreement(last), *([lines] if lines else [])]


def _gathered(pairs: Iterable[Pair], key: Callable[[Pair], Key]) -> dict[Key, list[Pair]]:
    """Pairs by a key; those that are judged first, otherwise in their order."""
    groups: dict[Key, list[Pair]] = {}
    for pair in sorted(pairs, key=lambda pair: (not pair.counts, pair.table)):
        groups.setdefault(key(pair), []).append(pair)
    return groups


def _by_probes(pairs: Iterable[Pair]) -> dict[tuple[str, str, int], list[Pair]]:
    groups = _gathered(pairs, lambda pair: (pair.table, pair.split, pair.probes))
    return dict(sorted(groups.items(), key=lambda item: (not item[1][0].counts, item[0])))


def _errors(pairs: Iterable[Pair]) -> ReportTable:
    columns = "table|left out|probes|pairs|mean|median|90th percentile|within 10 %|in interval|abstained|τ of these"
    rows = []
    for (table, split, probes), told in _by_probes(pairs).items():
        s = Summary.of(told)
        shares = [_percent(share) for share in (s.mean, s.median, s.ninetieth, s.near, s.held)]
        correlation = "–" if s.correlation is None else f"{s.correlation:.2f}"
        rows.append([_shown(table, told), split, str(probes), str(s.pairs), *shares, str(s.abstained), correlation])
    return _table("Error of the index by table, by what is left out, and by number of probes", columns, rows)


def _comparison(pairs: Iterable[Pair]) -> ReportTable:
    columns = f"table|left out|pairs|the index|{PEAK}|{SCALAR}|{ROOFLINE}"
    rows = []
    for (table, split), told in _gathered(pairs, lambda pair: (pair.table, pair.split)).items():
        simple = [_simple_error(told, figure) for figure in ("peak", "scalar", "roofline")]
        rows.append([_shown(table, told), split, str(len(told)), _percent(Summary.of(told).mean), *simple])
    return _table("Mean error with four probes, beside that of three simple indices", columns, rows)


def _by_device(pairs: Iterable[Pair]) -> ReportTable:
    groups = _gathered(pairs, lambda pair: (pair.table, pair.split, pair.device))
    rows = [
        [_shown(table, told), split, device, str(len(told)), _percent(Summary.of(told).mean)]
        for (table, split, device), told in groups.items()
    ]
    return _table("Mean error with four probes by device", "table|left out|device|pairs|mean", rows)


def _simple_error(pairs: Sequence[Pair], figure: str) -> str:
    values = [(getattr(pair.simple, figure), pair.measured) for pair in pairs]
    errors = [abs(value / measured - 1) for value, measured in values if value is not None]
    return _percent(sum(errors) / len(errors)) if len(errors) == len(pairs) else "–"


def _agreement(pairs: Sequence[Pair]) -> ReportPlot:
    series = _gathered(pairs, lambda pair: f"{_shown(pair.table, [pair])}, {_LEFT_OUT[pair.split]}")
    return ReportPlot(
        title="Predicted against measured, with four probes",
        kind=PlotKind.agreement,
        x_label="measured index",
        y_label="predicted index",
        series=[
            PlotSeries(
                label=label,
                x=[_short(pair.measured) for pair in each],
                y=[_short(pair.value) for pair in each],
            )
            for label, each in series.items()
        ],
    )


def _lines(pairs: Iterable[Pair]) -> ReportPlot | None:
    """Mean error against the number of probes; None where only one number was tried."""
    series: dict[str, list[tuple[int, float]]] = {}
    for (table, split, probes), told in _by_probes(pairs).items():
        label = f"{_shown(table, told)}, {_LEFT_OUT[split]}"
        series.setdefault(label, []).append((probes, Summary.of(told).mean))
    drawn = {label: points for label, points in series.items() if len(points) > 2}
    if not drawn:
        return None
    return ReportPlot(
        title="Error against number of probes",
        kind=PlotKind.lines,
        x_label="probes",
        y_label="mean error, %",
        series=[
            PlotSeries(label=label, x=[float(k) for k, _ in points], y=[_short(100 * error) for _, error in points])
            for label, points in drawn.items()
        ],
    )


def _shown(table: str, pairs: Sequence[Pair]) -> str:
    return table if pairs[0].counts else f"{table} (not judged)"


def _table(title: str, columns: str, rows: Iterable[Sequence[str]]) -> ReportTable:
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _short(number: float) -> float:
    """Four digits are more than a picture shows."""
    return float(f"{number:.4g}")
