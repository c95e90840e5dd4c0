"""Right-sizing of requests: what it gains in a cluster, what it costs, and what it may say (DEM-003, DEM-007).

Tasks of a simulated window (:mod:`kuayu_conformance.testbed.right_sizing`), and thousands that ran before, go to the
service under names that tell nothing; the window is then played with what was asked for and with what the
service would give.

1. Judged is the gain over what was asked for along the over-request, beside that of one rate for the cores of all
   tasks, which knows afterwards how far it may go; and that nothing is gained where nothing was asked for in excess.
2. Tables and plots beside: gains by mix and policy, the source's figures with the set-up that comes nearest to each,
   what sizes cost, and how all of it varies with what had to be assumed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand import sizing_scores as dem_sizing_claims
from kuayu_conformance.checks.demand.sizing_scores import (
    FIGURE,
    QUANTITIES,
    SIZES,
    STATED,
    AnswerFaults,
    KindRanking,
    Questioner,
    RatePair,
    Setting,
    SizedWindow,
    SizingExchange,
    Window,
    advantage,
    gains,
    mean_gain,
    originals,
    points,
    ranked,
    score,
)
from kuayu_conformance.checks.kit.tables import percent, table
from kuayu_conformance.episode import Episode, Settings
from kuayu_conformance.findings import Figure, Finding, PartFigure
from kuayu_conformance.memory import Memory
from kuayu_conformance.testbed import right_sizing
from kuayu_conformance.testbed.right_sizing import (
    DRF,
    FIFO,
    IN_ORDER,
    KINDS,
    MIXES,
    OVER_REQUEST,
    POLICIES,
    RATE,
    RESOURCES,
    SRTF,
    Numbers,
    Tasks,
    World,
)
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

ONE_RATE = "one rate for cores"
BESIDE = ("what is needed", "as much slower as allowed", ONE_RATE)
"""Sizes that know the truth: see :mod:`kuayu_conformance.testbed.right_sizing`."""

JUDGED = (FIFO, SRTF, DRF)
"""Policies of the source's experiment 3, under which it is judged; in all of them the queue may be overtaken."""

CURVE = (1.2, OVER_REQUEST, 1.6)
"""Over-requests at which the gain is judged beside that of one rate."""

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
    def judged(self) -> bool:
        """Whether it is a point of the curve that is judged."""
        return any(self.setting == Setting(self.setting.mix, over_request=factor) for factor in CURVE)

    @property
    def all(self) -> Mapping[str, Sequence[Window]]:
        """The service first."""
        return {SERVICE: self.service, **self.beside}


def tables(cells: Sequence[Cell], ranks: Sequence[KindRanking]) -> list[ReportTable]:
    """All tables."""
    usual = [cell for cell in cells if cell.usual]
    judged = [cell for cell in cells if cell.judged]
    varied = _varied([cell for cell in cells if not cell.judged])
    all_tables = [_curve(judged), _stated(cells), _gains(usual), _points(usual), _costs(usual), varied]
    return [*all_tables, _importance(ranks)] if ranks else all_tables


def _curve(cells: Sequence[Cell]) -> ReportTable:
    rows = []
    for cell in sorted(cells, key=lambda one: (list(MIXES).index(one.setting.mix), one.setting.over_request)):
        for policy in JUDGED:
            by_sizes = {
                who: mean_gain(gains(entry, policy)) for who, entry in cell.all.items() if policy in entry[0].after
            }
            shown = [percent(by_sizes[who]) if who in by_sizes else "–" for who in (SERVICE, *BESIDE)]
            ahead = _signed(by_sizes[SERVICE] - by_sizes[ONE_RATE])
            rows.append([cell.setting.mix, f"{cell.setting.over_request:g}", policy, *shown, ahead])
    return table(
        "Gain over what was asked for along the over-request, mean of the four; in points, by how much the service "
        "exceeds one rate",
        f"mix|asked for ÷ needed|policy|service|{'|'.join(BESIDE)}|service less one rate",
        rows,
    )


def _stated(cells: Sequence[Cell]) -> ReportTable:
    """Beside each figure of the source, the set-up whose gain is nearest; last, the one nearest in all four."""
    every = [
        (f"{cell.setting.mix}, {policy}, {_named(cell.setting)}", who, gains(entry, policy))
        for cell in cells
        for who, entry in cell.all.items()
        for policy in entry[0].after
    ]
    rows = []
    for k, quantity in enumerate(QUANTITIES):
        where, who, four = min(every, key=lambda one, k=k: abs(one[2][k] - STATED[k]))  # type: ignore[misc]
        rows.append([quantity, percent(STATED[k]), where, who, *map(percent, four)])
    where, who, four = min(
        every, key=lambda one: max(abs(gain / stated - 1.0) for gain, stated in zip(one[2], STATED, strict=True))
    )
    rows.append(["all four", ", ".join(map(percent, STATED)), where, who, *map(percent, four)])
    return table(
        "What the source states, and the set-up of this world that comes nearest to each figure, and to all four at "
        "once",
        "figure|source|set-up that comes nearest|sizes|deployed|completed|devices|memory",
        rows,
    )


def _gains(cells: Sequence[Cell]) -> ReportTable:
    rows = [["not named", SOURCE, FIFO, *map(percent, STATED), percent(mean_gain(STATED))]]
    for cell in cells:
        for who, entry in cell.all.items():
            for policy in (name for name in entry[0].before if name in entry[0].after):
                by_measure = gains(entry, policy)
                rows.append([cell.setting.mix, who, policy, *map(percent, by_measure), percent(mean_gain(by_measure))])
    return table(
        "Gains over what was asked for, relative; the last three of each mix know what every task needs: what is "
        "needed, as little as makes each task 5 % slower, one part of their cores for all that makes them 5 % slower "
        "on the mean (what the source's algorithm 1 comes to)",
        "mix (ResNet:NMT:GraphLearn:CTR)|sizes|policy|deployed|completed|devices|memory|mean of the four",
        rows,
    )


def _points(cells: Sequence[Cell]) -> ReportTable:
    rows = []
    for cell in cells:
        for who, entry in cell.all.items():
            for policy in (name for name in entry[0].before if name in entry[0].after):
                was = [sum(w.before[policy].four[k] for w in entry) / len(entry) for k in range(len(STATED))]
                holdings = [
                    sum(w.after[policy].holdings[k] - w.before[policy].holdings[k] for w in entry) / len(entry)
                    for k in range(len(RESOURCES))
                ]
                before = [f"{was[0]:.0f}", *(f"{100 * value:.1f}" for value in was[1:])]
                after = [_signed(value) for value in (*points(entry, policy)[1:], *holdings)]
                rows.append([cell.setting.mix, who, policy, *before, *after])
    return table(
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
            f"{_mean(w.dying for w in entry):.2%}".replace("%", " %"),
            f"{_mean(w.after[FIFO].died for w in entry):.1f}",
            f"{_mean(w.after[FIFO].lost for w in entry) / 3600:.1f}",
            percent(_mean(w.slower for w in entry)),
            percent(_mean(w.cut for w in entry)),
        ]
        for cell in cells
        for who, entry in cell.all.items()
    ]
    return table(
        "What it costs; of a window under FIFO, where it is not of all tasks",
        "mix|sizes|tasks that run out of memory|runs lost|hours lost|slower on the mean|"
        "cores not given (source: 28.5 %)",
        rows,
    )


def _varied(cells: Sequence[Cell]) -> ReportTable:
    rows = []
    for cell in cells:
        for who, entry in cell.all.items():
            by_measure = gains(entry, FIFO)
            its_costs = [
                percent(_mean(w.slower for w in entry)),
                f"{_mean(w.dying for w in entry):.1%}".replace("%", " %"),
            ]
            rows.append(
                [_named(cell.setting), who, *map(percent, by_measure), percent(mean_gain(by_measure)), *its_costs]
            )
    return table(
        f"As loads and assumptions vary, under FIFO in the mix {next(iter(MIXES))}",
        "what is other|sizes|deployed|completed|devices|memory|mean of the four|slower|run out of memory",
        rows,
    )


def _named(setting: Setting) -> str:
    if setting.label:
        return setting.label
    if setting.rate != RATE:
        return f"{setting.rate:g} tasks an hour"
    allowed = ", no slow-down allowed" if setting.allowed == 0.0 else ""
    return f"over-request {setting.over_request:g}{allowed}"


def _importance(ranks: Sequence[KindRanking]) -> ReportTable:
    rows = []
    for mix in MIXES:
        for k, kind in enumerate(KINDS):
            selected = [rank for rank in ranks if (rank.mix, rank.kind) == (mix, k)]
            if not selected:
                continue
            shares = [f"{_mean(rank.importance[r] for rank in selected):.2f}" for r in range(len(RESOURCES))]
            known = percent(_ERRORS[kind.name]) if kind.name in _ERRORS else "–"
            matters = RESOURCES[kind.rules] if kind.strong else "–"
            records = f"{_mean(rank.records for rank in selected):.0f}"
            rows.append([mix, kind.name, records, *shares, matters, percent(_mean(r.error for r in selected)), known])
    return table(
        "What the service says time depends on, mean over histories",
        "mix|kind|records|devices|cores|memory|what matters|stated error|error in the source",
        rows,
    )


def plots(cells: Sequence[Cell]) -> list[ReportPlot]:
    """Gains along the over-request and the load, where these were varied.

    At an over-request of 1 nothing may be slower.
    """
    base = next(cell for cell in cells if cell.usual)
    plain = [cell for cell in cells if not cell.setting.label and cell.setting.mix == base.setting.mix]
    along = [cell for cell in plain if (cell.setting.over_request == 1.0) == (cell.setting.allowed == 0.0)]
    factors = sorted((c for c in along if c.setting.rate == RATE), key=lambda cell: cell.setting.over_request)
    rates = sorted((c for c in along if c.setting.over_request == OVER_REQUEST), key=lambda cell: cell.setting.rate)
    drawn = []
    if len(factors) > 1:
        xs = [cell.setting.over_request for cell in factors]
        drawn.append(_lines("Gain along the over-request, FIFO", "asked for ÷ needed", xs, factors))
    if len(rates) > 1:
        drawn.append(_lines("Gain along the load, FIFO", "tasks an hour", [c.setting.rate for c in rates], rates))
    return drawn


def _lines(title: str, label: str, xs: Sequence[float], cells: Sequence[Cell]) -> ReportPlot:
    series = [
        PlotSeries(label=who, x=list(xs), y=[round(100 * mean_gain(gains(cell.all[who], FIFO)), 2) for cell in cells])
        for who in (SERVICE, *BESIDE)
    ]
    return ReportPlot(title=title, kind=PlotKind.lines, x_label=label, y_label="mean gain, %", series=series)


def _mean(values: Iterable[float]) -> float:
    selected = list(values)
    return sum(selected) / len(selected)


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−")


SMOKE, QUICK, FULL = (1, 1), (1, 4), (8, 3)
"""Histories of each mix, and windows that are asked for with each; a smoke run looks at the answers alone (DEM-007)."""
CURVE_QUICK, CURVE_FULL = (1, 2), (4, 3)
"""The same at the other over-requests that are judged; a smoke run leaves them out."""
NOTHING_SMOKE, NOTHING_QUICK, NOTHING_FULL = (1, 2), (1, 8), (4, 6)
"""The same where nothing is asked for in excess."""
FEW = (2, 3)
"""The same where loads and assumptions vary."""
REAL_MIX = next(iter(MIXES))
RATES = (10.0, 30.0, 50.0, 90.0)
FACTORS = (1.0, 2.0)
OTHERS = (
    ("excess alike in a kind (spread 0.25)", World(spread=0.25)),
    ("excess unlike in a kind (spread 0.75)", World(spread=0.75)),
    ("nobody asks for too little", World(short=0.0)),
    ("CTR asks for 1.6, ResNet for 1.5, others for 1.25 times the need", World(over_request=(1.5, 1.25, 1.25, 1.6))),
    ("tasks of a kind alike (spread of use 0.25)", World(use_spread=0.25)),
    ("durations in thousand seconds, not hours", World(unit=1 / 3.6)),
)

_KNOWN: Memory[tuple[Mapping[str, SizedWindow], Mapping[str, Window]]] = Memory(200)
"""Windows by what they are drawn from and how they are played, some kB each."""


@dataclass(frozen=True)
class SizedHistories:
    """What was asked and played.

    Attributes:
        cells: The mixes first, then these at other over-requests, as they are judged; then the one where nothing is
            asked for in excess; then others.
        answered: What is said of every answer.
        ranked: What was said of the importance of resources.
    """

    cells: tuple[Cell, ...]
    answered: tuple[AnswerFaults, ...]
    ranked: tuple[KindRanking, ...]


def observe(episode: Episode) -> SizedHistories:
    """Ask for the sizes of all windows and play them."""
    player = _Player(episode)
    plan = list(_plan(episode.settings))
    cells = []
    for setting, size, policies in plan:
        cells.append(player.cell(setting, size, policies))
        episode.passed(len(cells), len(plan))
    for label, exchange in player.questioner.unusual():
        player.answered.append(AnswerFaults.of(label, exchange))
    return SizedHistories(tuple(cells), tuple(player.answered), tuple(player.ranked))


def _plan(run: Settings) -> Iterator[tuple[Setting, tuple[int, int], Sequence[str]]]:
    """Settings, each with its histories and windows of each, and the policies that are played."""
    for mix in MIXES:
        yield Setting(mix), run.sized(smoke=SMOKE, quick=QUICK, full=FULL), POLICIES
    for mix in () if run.smoke else MIXES:
        for factor in CURVE:
            if factor != OVER_REQUEST:
                yield Setting(mix, over_request=factor), CURVE_FULL if run.full else CURVE_QUICK, JUDGED
    nothing = run.sized(smoke=NOTHING_SMOKE, quick=NOTHING_QUICK, full=NOTHING_FULL)
    yield Setting(REAL_MIX, over_request=1.0, allowed=0.0), nothing, (FIFO,)
    if run.full:
        others = [
            *(Setting(REAL_MIX, over_request=factor) for factor in FACTORS),
            *(Setting(REAL_MIX, rate=rate) for rate in RATES),
            *(Setting(REAL_MIX, label=label, world=world) for label, world in OTHERS),
        ]
        yield from ((setting, FEW, (FIFO,)) for setting in others)


class _Player:
    """Asks and plays, and keeps what was said."""

    def __init__(self, episode: Episode) -> None:
        self.questioner = Questioner(episode)
        self.answered: list[AnswerFaults] = []
        self.ranked: list[KindRanking] = []
        self.full = episode.settings.full

    def cell(self, setting: Setting, size: tuple[int, int], policies: Sequence[str]) -> Cell:
        """All windows of a setting."""
        histories, windows = size
        service: list[Window] = []
        beside: dict[str, list[Window]] = {name: [] for name in BESIDE}
        for history in range(histories):
            numbers = range(history * windows, (history + 1) * windows)
            exchange, drawn, given = self.questioner.ask(setting, history, numbers)
            self._keep(setting, exchange)
            for number, tasks, item in zip(numbers, drawn, given, strict=True):
                before, others = self._known(setting, number, tasks, policies)
                service.append(score(number, tasks, item, policies, before))
                for name, other in others.items():
                    beside[name].append(other)
        return Cell(setting, tuple(service), {name: tuple(entry) for name, entry in beside.items()})

    def _known(
        self, setting: Setting, number: int, tasks: Tasks, policies: Sequence[str]
    ) -> tuple[Mapping[str, SizedWindow], Mapping[str, Window]]:
        """A window with what was asked for, and with sizes of others; once in a process."""

        def found() -> tuple[Mapping[str, SizedWindow], Mapping[str, Window]]:
            before = originals(tasks, policies)
            usual = self.full and setting == Setting(setting.mix)
            some = [policy for policy in policies if usual or policy in {FIFO, IN_ORDER}]
            others = {
                name: score(number, tasks, other, policies if name == ONE_RATE else some, before)
                for name, other in _beside(tasks, setting.allowed).items()
            }
            return MappingProxyType(before), MappingProxyType(others)

        key = self.questioner.seed, setting, number, tuple(policies), self.full
        return _KNOWN.of(key, found)

    def _keep(self, setting: Setting, exchange: SizingExchange) -> None:
        label = f"{setting.mix}, over-request {setting.over_request:g}"
        self.answered.append(AnswerFaults.of(label, exchange))
        if not exchange.amiss and setting == Setting(setting.mix):
            self.ranked += ranked(setting.mix, exchange)


def _beside(tasks: Tasks, allowed: float) -> dict[str, Numbers]:
    sizes = (right_sizing.ideal(tasks), right_sizing.tolerant(tasks, allowed), right_sizing.at_one_rate(tasks, allowed))
    return dict(zip(BESIDE, sizes, strict=True))


def judge(o: SizedHistories) -> Iterator[Finding]:
    """Claims about answers and costs, then the figure."""
    yield from dem_sizing_claims.of_answers(o.answered, o.ranked)
    judged = [cell for cell in o.cells if cell.judged]
    costs = {f"{cell.setting.mix}, over-request {cell.setting.over_request:g}": cell.service for cell in judged}
    nothing = [cell for cell in o.cells if (cell.setting.over_request, cell.setting.allowed) == (1.0, 0.0)]
    yield from dem_sizing_claims.of_costs(costs, nothing[0].service if nothing else ())
    pairs = [RatePair(cell.setting.mix, cell.service, cell.beside[ONE_RATE]) for cell in judged]
    ahead = advantage(pairs, JUDGED, FIGURE)
    windows = {mix: sum(len(one.service) for one in pairs if one.mix == mix) for mix in MIXES}
    yield Figure(
        FIGURE,
        ahead.estimate,
        ahead.lower,
        sum(windows.values()),
        "gain over what was asked for with the service's sizes − the same with one rate for the cores of all tasks "
        "that makes them 5 % slower on the mean; a gain is the mean of four (deployed tasks, completion rate, devices "
        "and memory put to use), each the total with these sizes ÷ that with what was asked for − 1; mean over "
        f"over-requests of {', '.join(f'{factor:g}' for factor in CURVE)}, the least of three mixes under FIFO, SRTF "
        "and DRF at 70 tasks an hour; one-sided 95 % bootstrap bound over windows. Not the trace of the source, but a "
        "world drawn from the figures that it prints",
        parts=[
            PartFigure(f"{mix}, {policy}", value, None, windows[mix]) for (mix, policy), value in ahead.parts.items()
        ],
        tables=tables(o.cells, o.ranked),
        plots=plots(o.cells),
        ceiling=ahead.upper,
    )


CHECK = Check("dem_sizing", (FIGURE, SIZES), observe, judge, heavy=True)
