"""Figures of some windows as cells of tables and points of lines."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from kuayu_conformance.checks.sch_cells import AGAINST, HOUR
from kuayu_conformance.checks.sch_kpis import money_gain
from kuayu_conformance.checks.sch_scores import LARGE_TRAINING, Of, Window
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

NONE = "–"


def mean_period(its: Sequence[Window], policy: str, of: Of) -> float | None:
    """Seconds, over the jobs of all windows; None where there are none."""
    groups = [of(window.scores[policy]) for window in its]
    jobs = sum(group.jobs for group in groups)
    return fsum(group.period for group in groups) / jobs if jobs else None


def least_period(its: Sequence[Window], of: Of) -> float | None:
    """Seconds below which no policy brings the mean period of the jobs that train, or of the large ones of them."""
    jobs = [of(window.scores[AGAINST]).jobs for window in its]
    least = [window.bounds.large_training if of is LARGE_TRAINING else window.bounds.training for window in its]
    return fsum(mean * n for mean, n in zip(least, jobs, strict=True)) / sum(jobs) if any(jobs) else None


def money(its: Sequence[Window], policy: str, of: Of) -> str:
    """Yuan for the work of a reference device in an hour."""
    groups = [of(window.scores[policy]) for window in its if policy in window.scores]
    done = fsum(group.done for group in groups)
    return f"{fsum(group.money for group in groups) / done * HOUR:.3g}" if done else NONE


def money_less(its: Sequence[Window], of: Of, policy: str, against: str = AGAINST) -> float | None:
    """Part by which that is less than under another policy; None where it is nought there."""
    if not sum(of(window.scores[against]).money for window in its):
        return None
    return money_gain([its], of, policy, against).estimate


def less(value: float | None, base: float | None) -> float | None:
    """Part by which a value is less than another."""
    return 1.0 - value / base if value is not None and base else None


def hours(seconds: float | None) -> str:
    """Seconds as hours."""
    return NONE if seconds is None else f"{seconds / HOUR:.2f}"


def percent(share: float | None) -> str:
    """A share as per cent, with a minus sign."""
    return NONE if share is None else f"{100 * share:.1f} %".replace("-", "−")


def lines(title: str, x: str, y: str, points: Mapping[str, Sequence[tuple[float, float]]]) -> ReportPlot:
    """A plot of lines."""
    series = [
        PlotSeries(label=name, x=[round(a, 4) for a, _ in its], y=[round(b, 2) for _, b in its])
        for name, its in points.items()
    ]
    return ReportPlot(title=title, kind=PlotKind.lines, x_label=x, y_label=y, series=series)


def table(title: str, columns: str, rows: Iterable[Sequence[str]]) -> ReportTable:
    """A table; names of columns are separated by bars."""
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])
