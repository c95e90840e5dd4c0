"""Tables and plots beside the gains of right-sizing: by mix and policy, beside the source, as assumptions vary."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kuayu_conformance.checks.dem_sizing_claims import Ranked
from kuayu_conformance.checks.dem_sizing_questions import Setting
from kuayu_conformance.checks.dem_sizing_scores import REQUIRED, Window, gains, least, points
from kuayu_conformance.testbed.tasks.cluster import FIFO
from kuayu_conformance.testbed.tasks.kinds import KINDS, MIXES, OVER_REQUEST, RATE, RESOURCES
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable, TableRow

BESIDE = ("what is needed", "as much slower as allowed", "one rate for cores")
"""Sizes that know the truth: see :mod:`kuayu_conformance.testbed.tasks.sizes`."""

SERVICE, SOURCE = "service", "source"

_ERRORS = {"CTR": 0.13, "ResNet": 0.15, "NMT": 0.11}
"""Weighted percentage errors of table 3 of the source."""


@dataclass(frozen=True)
class Cell:
    """Windows of a setting.

    Attributes:
        setting: Which.
        service: With the sizes of the service.
        beside: With sizes that need none, by name.
    """

    setting: Setting
    service: tuple[Window, ...]
    beside: Mapping[str, tuple[Window, ...]]

    @property
    def usual(self) -> bool:
        """Whether it is one of the mixes as they are judged."""
        return self.setting == Setting(self.setting.mix)

    @property
    def all(self) -> Mapping[str, Sequence[Window]]:
        """The service first."""
        return {SERVICE: self.service, **self.beside}


def tables(cells: Sequence[Cell], ranks: Sequence[Ranked]) -> list[ReportTable]:
    """All tables."""
    usual = [cell for cell in cells if cell.usual]
    made = [_gains(usual), _points(usual), _costs(usual), _varied([cell for cell in cells if not cell.usual])]
    return [*made, _importance(ranks)] if ranks else made


def _gains(cells: Sequence[Cell]) -> ReportTable:
    rows = [["not named", SOURCE, FIFO, *map(_percent, REQUIRED), "1.00"]]
    for cell in cells:
        for who, its in cell.all.items():
            for policy in (name for name in its[0].before if name in its[0].after):
                found = gains(its, policy)
                rows.append([cell.setting.mix, who, policy, *map(_percent, found), f"{least(found):.2f}"])
    return _table(
        "Gains over what was asked for, relative; the last three of each mix know what every task needs: what is "
        "needed, as little as makes each task 5 % slower, one part of their cores for all that makes them 5 % slower "
        "on the mean (what the source's algorithm 1 comes to)",
        "mix (ResNet:NMT:GraphLearn:CTR)|sizes|policy|deployed|completed|devices|memory|least ÷ required",
        rows,
    )


def _points(cells: Sequence[Cell]) -> ReportTable:
    rows = []
    for cell in cells:
        for who, its in cell.all.items():
            for policy in (name for name in its[0].before if name in its[0].after):
                was = [sum(w.before[policy].four[k] for w in its) / len(its) for k in range(len(REQUIRED))]
                held = [
                    sum(w.after[policy].held[k] - w.before[policy].held[k] for w in its) / len(its)
                    for k in range(len(RESOURCES))
                ]
                before = [f"{was[0]:.0f}", *(f"{100 * value:.1f}" for value in was[1:])]
                after = [_signed(value) for value in (*points(its, policy)[1:], *held)]
                rows.append([cell.setting.mix, who, policy, *before, *after])
    return _table(
        "The same as per cent before and points added: put to use is what tasks use while they run, given away what "
        "they hold. Whether its per cents of shares are relative, and which of the two it counts, "
        "the source does not say",
        "mix|sizes|policy|deployed before|completed|devices used|memory used|completed +|devices used +|memory used +|"
        "devices held +|cores held +|memory held +",
        rows,
    )


def _costs(cells: Sequence[Cell]) -> ReportTable:
    rows = [
        [
            cell.setting.mix,
            who,
            f"{_mean(w.dying for w in its):.2%}".replace("%", " %"),
            f"{_mean(w.after[FIFO].died for w in its):.1f}",
            f"{_mean(w.after[FIFO].lost for w in its) / 3600:.1f}",
            _percent(_mean(w.slower for w in its)),
            _percent(_mean(w.cut for w in its)),
        ]
        for cell in cells
        for who, its in cell.all.items()
    ]
    return _table(
        "What it costs; of a window under FIFO, where it is not of all tasks",
        "mix|sizes|tasks that run out of memory|runs lost|hours lost|slower on the mean|"
        "cores not given (source: 28.5 %)",
        rows,
    )


def _varied(cells: Sequence[Cell]) -> ReportTable:
    rows = []
    for cell in cells:
        for who, its in cell.all.items():
            found = gains(its, FIFO)
            its_costs = [
                _percent(_mean(w.slower for w in its)),
                f"{_mean(w.dying for w in its):.1%}".replace("%", " %"),
            ]
            rows.append([_named(cell.setting), who, *map(_percent, found), f"{least(found):.2f}", *its_costs])
    return _table(
        f"As loads and assumptions vary, under FIFO in the mix {next(iter(MIXES))}",
        "what is other|sizes|deployed|completed|devices|memory|least ÷ required|slower|run out of memory",
        rows,
    )


def _named(setting: Setting) -> str:
    if setting.label:
        return setting.label
    if setting.rate != RATE:
        return f"{setting.rate:g} tasks an hour"
    allowed = ", no slow-down allowed" if setting.allowed == 0.0 else ""
    return f"over-request {setting.over_request:g}{allowed}"


def _importance(ranks: Sequence[Ranked]) -> ReportTable:
    rows = []
    for mix in MIXES:
        for k, kind in enumerate(KINDS):
            its = [rank for rank in ranks if (rank.mix, rank.kind) == (mix, k)]
            if not its:
                continue
            told = [f"{_mean(rank.importance[r] for rank in its):.2f}" for r in range(len(RESOURCES))]
            known = _percent(_ERRORS[kind.name]) if kind.name in _ERRORS else "–"
            matters = RESOURCES[kind.rules] if kind.strong else "–"
            records = f"{_mean(rank.records for rank in its):.0f}"
            rows.append([mix, kind.name, records, *told, matters, _percent(_mean(r.error for r in its)), known])
    return _table(
        "What the service says time depends on, mean over histories",
        "mix|kind|records|devices|cores|memory|what matters|stated error|error in the source",
        rows,
    )


def plots(cells: Sequence[Cell]) -> list[ReportPlot]:
    """Gains in deployed tasks along the over-request and the load, where these were varied."""
    base = next(cell for cell in cells if cell.usual)
    plain = [cell for cell in cells if not cell.setting.label and cell.setting.allowed == base.setting.allowed]
    along = [cell for cell in plain if cell.setting.mix == base.setting.mix]
    factors = sorted((c for c in along if c.setting.rate == RATE), key=lambda cell: cell.setting.over_request)
    rates = sorted((c for c in along if c.setting.over_request == OVER_REQUEST), key=lambda cell: cell.setting.rate)
    made = []
    if len(factors) > 1:
        xs = [cell.setting.over_request for cell in factors]
        made.append(_lines("Gain in deployed tasks along the over-request", "asked for ÷ needed", xs, factors))
    if len(rates) > 1:
        made.append(
            _lines("Gain in deployed tasks along the load", "tasks an hour", [c.setting.rate for c in rates], rates)
        )
    return made


def _lines(title: str, label: str, xs: Sequence[float], cells: Sequence[Cell]) -> ReportPlot:
    series = [
        PlotSeries(label=who, x=list(xs), y=[round(100 * gains(cell.all[who], FIFO)[0], 2) for cell in cells])
        for who in (SERVICE, *BESIDE)
    ]
    return ReportPlot(title=title, kind=PlotKind.lines, x_label=label, y_label="more tasks, %", series=series)


def _mean(values: Iterable[float]) -> float:
    its = list(values)
    return sum(its) / len(its)


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %".replace("-", "−")


def _table(title: str, columns: str, rows: Iterable[Sequence[str]]) -> ReportTable:
    return ReportTable(title=title, columns=columns.split("|"), rows=[TableRow(cells=list(cells)) for cells in rows])
