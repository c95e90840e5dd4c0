"""Tables and plots that stand beside the error of the demand law."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TypeVar

from kuayu_conformance.checks.dem_told import DENSE, EXPERTS, GUESSED, Summary, Told, rankings
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

CALCULON, SAME_RUNS = 0.037, "korthikanti-2205.05198-table5"
"""Error that M. Isaev et al., "Calculon" (SC 2023), table 2, publish, and the source of the runs that it is of."""
NEAR = 0.1

STRATA = (DENSE, GUESSED, EXPERTS)

Key = TypeVar("Key")


def exhibits(told: Sequence[Told], apart: Sequence[Told] = ()) -> tuple[list[ReportTable], list[ReportPlot]]:
    """Errors by kind of model and by source, memory, order of layouts; and drawn.

    Where whole teams were left out, a table of those runs is added.
    """
    timed, teams = ([each for each in some if each.measured is not None] for some in (told, apart))
    tables = [_kinds(timed), _sources(timed), _memory(told), _layouts(timed)]
    if teams:
        tables.append(
            _sources(teams, "Error of the step time, every source of the same team on the same machine left out")
        )
    return tables, [_agreement(timed)]


_COLUMNS = "runs|mean|median|90th percentile|bias|in 90 % interval|6·P·tokens"


def _cells(told: Sequence[Told]) -> list[str]:
    s = Summary.of(told)
    shares = (s.mean, s.median, s.ninetieth, s.bias, s.held, s.yardstick)
    return [str(s.runs), *map(_percent, shares)]


def _kinds(timed: Sequence[Told]) -> ReportTable:
    own = [each for each in timed if each.counts]
    rows = []
    for stratum in STRATA:
        its = [each for each in own if each.stratum == stratum]
        if its:
            rows.append([stratum, str(Summary.of(its).sources), *_cells(its)])
    same = [each for each in own if each.run.source == SAME_RUNS]
    if same:
        rows.append(["the runs that Calculon publishes", "1", *_cells(same)])
    rows.append(["Calculon itself, its efficiencies measured there", "1", "8", _percent(CALCULON), *5 * ["–"]])
    return _table("Error of the step time, its source left out", f"models|sources|{_COLUMNS}", rows)


def _sources(timed: Sequence[Told], title: str = "Error of the step time by source") -> ReportTable:
    groups = _gathered(timed, lambda each: (not each.counts, each.run.source, each.stratum))
    rows = [
        [source + (" (not judged)" if apart else ""), stratum, *_cells(its)]
        for (apart, source, stratum), its in sorted(groups.items())
    ]
    return _table(title, f"source|models|{_COLUMNS}", rows)


def _memory(told: Sequence[Told]) -> ReportTable:
    rows = []
    for source, its in _gathered(told, lambda each: each.run.source).items():
        quotients = [each.memory / each.run.memory for each in its if each.run.memory]
        errors = [abs(quotient - 1) for quotient in quotients]
        figures = (
            [_percent(fmean(errors)), _percent(fmean(quotients) - 1), _percent(fmean(e <= NEAR for e in errors))]
            if errors
            else 3 * ["–"]
        )
        failed, ran = ([each for each in its if each.run.failed is flag] for flag in (True, False))
        foreseen = f"{sum(not each.fits for each in failed)} of {len(failed)}" if failed else "–"
        rows.append([source, str(len(errors)), *figures, foreseen, f"{sum(each.fits for each in ran)} of {len(ran)}"])
    columns = "source|runs that tell it|mean|bias|within 10 %|ran out of memory, and that was told|ran, and fits"
    return _table("Memory of the fullest accelerator against what was reported", columns, rows)


def _layouts(timed: Sequence[Told]) -> ReportTable:
    groups: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for each in rankings(timed):
        groups.setdefault((each.source, each.model), []).append((each.layouts, each.tau))
    rows = [
        [source, model, str(len(its)), str(sum(layouts for layouts, _ in its)), f"{fmean(tau for _, tau in its):.2f}"]
        for (source, model), its in sorted(groups.items())
    ]
    taus = [tau for its in groups.values() for _, tau in its]
    if taus:
        layouts = sum(layouts for its in groups.values() for layouts, _ in its)
        rows.append(["all", "all", str(len(taus)), str(layouts), f"{fmean(taus):.2f}"])
    title = "Order of layouts of one model on one machine: mean of Kendall's τ over pairs that differ by more than 2 %"
    return _table(title, "source|model|groups|layouts|τ", rows)


def _agreement(timed: Sequence[Told]) -> ReportPlot:
    series = _gathered(timed, lambda each: each.stratum)
    return ReportPlot(
        title="Predicted against measured step time, its source left out",
        kind=PlotKind.agreement,
        x_label="measured, s",
        y_label="predicted, s",
        series=[
            PlotSeries(
                label=label,
                x=[_short(each.measured or 0.0) for each in its],
                y=[_short(each.predicted) for each in its],
            )
            for label, its in sorted(series.items(), key=lambda item: STRATA.index(item[0]))
        ],
    )


def _gathered(told: Iterable[Told], key: Callable[[Told], Key]) -> dict[Key, list[Told]]:
    groups: dict[Key, list[Told]] = {}
    for each in told:
        groups.setdefault(key(each), []).append(each)
    return groups


def _table(title: str, columns: str, rows: Iterable[Sequence[str]]) -> ReportTable:
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _short(number: float) -> float:
    """Four digits are more than a picture shows."""
    return float(f"{number:.4g}")
