"""Tables, parts and a plot that stand beside the throughput of chosen collectives."""

from collections.abc import Sequence
from statistics import fmean

from kuayu_conformance.checks.res_collectives_scores import Window, best_fixed, kept, leads
from kuayu_conformance.checks.sch_tables import lines, percent, table
from kuayu_conformance.findings import PartFigure
from kuayu_conformance.statistics import mean_lower_bound
from kuayu_conformance.testbed.transfers.collectives import WAYS
from kuayu_conformance.testbed.transfers.collectives_world import INTERVAL
from kuayu_schemas.models import ReportPlot, ReportTable

_ALL = "all"


def parts(windows: Sequence[Window], fixed: int) -> list[PartFigure]:
    """The lead over a fixed way, and over what was quickest at first, by family."""
    made = []
    for name, of in (("", lambda its: leads(its, fixed)), (", over the first", kept)):
        for family, its in _by_family(windows)[:-1]:
            found, label = of(its), f"{family}{name}"
            bound = mean_lower_bound([[lead] for lead in found], label) if len(found) > 1 else None
            made.append(PartFigure(label, fmean(found), bound, len(found)))
    return made


def exhibits(windows: Sequence[Window], fixed: int) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed and not judged."""
    return [_beside(windows, fixed), _fixed(windows)], [_picture(max(windows, key=lambda its: its.switches), fixed)]


def _by_family(windows: Sequence[Window]) -> list[tuple[str, list[Window]]]:
    """Windows of each family, and all of them at last."""
    families = dict.fromkeys(window.family for window in windows)
    found = [(family, [window for window in windows if window.family == family]) for family in families]
    return [*found, (_ALL, list(windows))]


def _beside(windows: Sequence[Window], fixed: int) -> ReportTable:
    rows = []
    for label, its in _by_family(windows):
        own = best_fixed(its)
        hours = sum(len(window.chosen) for window in its) * INTERVAL / 3600.0
        told = [
            fmean(window.share for window in its),
            fmean(window.shares[fixed] for window in its),
            fmean(window.shares[own] for window in its),
            fmean(window.shares[window.first] for window in its),
            fmean(max(window.shares) for window in its),
        ]
        shown = [percent(share) for share in told]
        shown[2] = f"{shown[2]} ({WAYS[own].name})"
        switches = [f"{sum(counted) / hours:.1f}" for counted in _counted(its)]
        rows.append([label, str(len(its)), *shown, *switches])
    columns = (
        "links|windows|chosen|best fixed of all windows|best fixed of these|quickest by the first measurement, kept"
    )
    columns += "|best of each window in hindsight|switches an hour|to another collective or period"
    return table("Steps in parts of those of one who always has the quickest for nothing", columns, rows)


def _counted(windows: Sequence[Window]) -> tuple[list[int], list[int]]:
    return [window.switches for window in windows], [window.changes for window in windows]


def _fixed(windows: Sequence[Window]) -> ReportTable:
    rows = []
    for label, its in _by_family(windows):
        means = (fmean(column) for column in zip(*(window.shares for window in its), strict=True))
        rows.append([label, *map(percent, means)])
    columns = "|".join(("links", *(way.name for way in WAYS)))
    return table("Steps of fixed collectives, likewise", columns, rows)


def _picture(window: Window, fixed: int) -> ReportPlot:
    """The window with the most switches."""
    courses = {"chosen, switches included": window.chosen, f"fixed: {WAYS[fixed].name}": window.fixed[fixed]}
    points = {
        label: [
            (place * INTERVAL / 60.0, 100.0 * each / most)
            for place, (each, most) in enumerate(zip(rates, window.quickest, strict=True))
        ]
        for label, rates in courses.items()
    }
    title = f"Steps a second, {window.family}, the window with the most switches: {window.switches}"
    return lines(title, "minutes", "% of the quickest", points)
