"""Cells, tables and lines of a report."""

from collections.abc import Iterable, Mapping, Sequence

from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

NONE = "–"


def percent(share: float | None) -> str:
    """A share as per cent, with a minus sign."""
    return NONE if share is None else f"{100 * share:.1f} %".replace("-", "−")


def short(number: float) -> float:
    """Four digits are more than a picture shows."""
    return float(f"{number:.4g}")


def lines(title: str, x: str, y: str, points: Mapping[str, Sequence[tuple[float, float]]]) -> ReportPlot:
    """A plot of lines."""
    series = [
        PlotSeries(label=name, x=[round(a, 4) for a, _ in pairs], y=[round(b, 2) for _, b in pairs])
        for name, pairs in points.items()
    ]
    return ReportPlot(title=title, kind=PlotKind.lines, x_label=x, y_label=y, series=series)


def table(title: str, columns: str, rows: Iterable[Sequence[str]]) -> ReportTable:
    """A table; names of columns are separated by bars."""
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])
