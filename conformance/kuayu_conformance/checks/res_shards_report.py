"""Falls of waiting and of blocked transfers, and the tables and plots that stand beside them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from kuayu_conformance.checks.res_windows import AHEAD, DEMAND, SEER, SERVICE, Played
from kuayu_conformance.findings import PartFigure
from kuayu_conformance.statistics import ratio_lower_bound
from kuayu_conformance.testbed.transfers.shards_schedules import Schedule, best
from kuayu_conformance.testbed.transfers.shards_state import Outcome
from kuayu_conformance.testbed.transfers.shards_world import FAMILIES
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

STATIC, PULLED = "best static schedule with overlap", "best one whose idle links pull"
"""Chosen in hindsight, for each family and measure anew."""

TITLES = {
    "waiting": "Share of time in which compute waits for data",
    "blocked": "Share of transfers that are blocked, by number",
    "blocked_bytes": "Share of transfers that are blocked, by bytes",
}
_LABELS = {"waiting": "", "blocked": ", by number", "blocked_bytes": ", by bytes"}
_SHOWN = (DEMAND, AHEAD, STATIC, PULLED, SEER, SERVICE)
NONE = "–"


@dataclass(frozen=True)
class Fall:
    """By which part something is less under the service, with both one-sided 95 % bounds."""

    estimate: float
    bound: float
    ceiling: float


def fall(windows: Sequence[Played], measure: str, seed: str) -> Fall:
    """Fall of a measure against fixed shards on demand, whose share is never nought: every request takes its latency.

    Raises:
        ValueError: There is no window.
    """
    pairs = []
    for window in windows:
        ours, theirs = (float(getattr(window.outcomes[name], measure)) for name in (SERVICE, DEMAND))
        pairs.append((theirs - ours, theirs))
    away = [(-part, whole) for part, whole in pairs]
    return Fall(
        fsum(part for part, _ in pairs) / fsum(whole for _, whole in pairs),
        ratio_lower_bound(pairs, f"{seed}/{measure}"),
        0.0 - ratio_lower_bound(away, f"{seed}/{measure}"),
    )


def parts(windows: Sequence[Played], measure: str) -> list[PartFigure]:
    """The fall against fixed shards on demand by family, and against the best static schedules where they played."""
    made = []
    for family, its in _families(windows):
        found = fall(its, measure, family)
        label = f"{family}{_LABELS[measure]}"
        made.append(PartFigure(f"{label}, against {DEMAND}", found.estimate, found.bound, len(its)))
        shares = _shares(its, measure)
        made += [
            PartFigure(f"{label}, against the {name}", 1.0 - fsum(shares[SERVICE]) / fsum(shares[name]), None, len(its))
            for name in (STATIC, PULLED)
            if fsum(shares.get(name, ())) > 0.0
        ]
    return made


def exhibits(windows: Sequence[Played], measures: Sequence[str]) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Everything that is printed and not judged."""
    tables = [_table(windows, measure) for measure in measures]
    chosen = [row for measure in measures for row in _chosen(windows, measure)]
    if chosen:
        tables.append(
            _tabled("Best static schedules, chosen in hindsight", "links|least|schedule|idle links pull", chosen)
        )
    return tables, [_drawn(family, its, measures[0]) for family, its in _families(windows)]


def _families(windows: Sequence[Played]) -> Iterator[tuple[str, list[Played]]]:
    for family in FAMILIES:
        its = [window for window in windows if window.family == family]
        if its:
            yield family, its


def _schedules(windows: Sequence[Played]) -> Mapping[Schedule, Sequence[Outcome]]:
    return {each: [window.schedules[each] for window in windows] for each in windows[0].schedules}


def _shares(windows: Sequence[Played], measure: str) -> dict[str, list[float]]:
    """A measure of each policy, window by window."""
    found: dict[str, Sequence[Outcome]] = {
        name: [window.outcomes[name] for window in windows] for name in windows[0].outcomes
    }
    schedules = _schedules(windows)
    if schedules:
        for name, pulling in ((STATIC, False), (PULLED, True)):
            found[name] = schedules[best(schedules, measure, pulling=pulling)]
    return {name: [float(getattr(each, measure)) for each in its] for name, its in found.items()}


def _table(windows: Sequence[Played], measure: str) -> ReportTable:
    found = [(family, its, _shares(its, measure)) for family, its in _families(windows)]
    shown = [name for name in _SHOWN if any(name in shares for _, _, shares in found)]
    rows = []
    for family, its, shares in found:
        means = [f"{100 * fsum(shares[name]) / len(its):.2f} %" if name in shares else NONE for name in shown]
        rows.append([family, str(len(its)), *means, str(sum(not each.outcomes[SERVICE].finished for each in its))])
    columns = "|".join(("links", "windows", *shown, "not finished under the service"))
    return _tabled(f"{TITLES[measure]}, mean over windows", columns, rows)


def _chosen(windows: Sequence[Played], measure: str) -> Iterator[list[str]]:
    for family, its in _families(windows):
        schedules = _schedules(its)
        if schedules:
            found = [str(best(schedules, measure, pulling=pulling)) for pulling in (False, True)]
            yield [family, TITLES[measure], *found]


def _drawn(family: str, windows: Sequence[Played], measure: str) -> ReportPlot:
    """Windows in the order in which fixed shards do, from the best to the worst."""
    shares = _shares(windows, measure)
    order = sorted(range(len(windows)), key=lambda number: (shares[DEMAND][number], number))
    return ReportPlot(
        title=f"{TITLES[measure]} at {family}, window by window",
        kind=PlotKind.lines,
        x_label=f"windows, by what it is under {DEMAND}",
        y_label="share",
        series=[
            PlotSeries(
                label=name,
                x=[float(place + 1) for place in range(len(order))],
                y=[shares[name][number] for number in order],
            )
            for name in _SHOWN
            if name in shares
        ],
    )


def _tabled(title: str, columns: str, rows: Sequence[Sequence[str]]) -> ReportTable:
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])
