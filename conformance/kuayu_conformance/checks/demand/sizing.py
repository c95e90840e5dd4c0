"""Right-sizing of requests: what it gains in a cluster, what it costs, and what it may say (DEM-003, DEM-007).

Tasks of a simulated window (:mod:`kuayu_conformance.testbed.right_sizing`), and thousands that ran before, go to the service
under names that tell nothing; the window is then played with what was asked for and with what the service would give.

1. Tables and plots beside the gains of right-sizing: by mix and policy, beside the source, as assumptions vary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.check import Check
from kuayu_conformance.checks.demand import sizing_scores as dem_sizing_claims
from kuayu_conformance.checks.demand.sizing_scores import (
    FIGURE,
    REQUIRED,
    SIZES,
    AnswerFaults,
    KindRanking,
    Questioner,
    Setting,
    SizedWindow,
    SizingExchange,
    Window,
    gains,
    least,
    originals,
    points,
    ranked,
    score,
    worst,
)
from kuayu_conformance.checks.kit.tables import percent, table
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure
from kuayu_conformance.memory import Memory
from kuayu_conformance.testbed import right_sizing
from kuayu_conformance.testbed.right_sizing import (
    FIFO,
    IN_ORDER,
    KINDS,
    MIXES,
    OVER_REQUEST,
    POLICIES,
    RATE,
    RESOURCES,
    Numbers,
    Tasks,
    World,
)
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

BESIDE = ("what is needed", "as much slower as allowed", "one rate for cores")
"""Sizes that know the truth: see :mod:`kuayu_conformance.testbed.right_sizing`."""

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


def tables(cells: Sequence[Cell], ranks: Sequence[KindRanking]) -> list[ReportTable]:
    """All tables."""
    usual = [cell for cell in cells if cell.usual]
    made = [_gains(usual), _points(usual), _costs(usual), _varied([cell for cell in cells if not cell.usual])]
    return [*made, _importance(ranks)] if ranks else made


def _gains(cells: Sequence[Cell]) -> ReportTable:
    rows = [["not named", SOURCE, FIFO, *map(percent, REQUIRED), "1.00"]]
    for cell in cells:
        for who, entry in cell.all.items():
            for policy in (name for name in entry[0].before if name in entry[0].after):
                found = gains(entry, policy)
                rows.append([cell.setting.mix, who, policy, *map(percent, found), f"{least(found):.2f}"])
    return table(
        "Gains over what was asked for, relative; the last three of each mix know what every task needs: what is "
        "needed, as little as makes each task 5 % slower, one part of their cores for all that makes them 5 % slower "
        "on the mean (what the source's algorithm 1 comes to)",
        "mix (ResNet:NMT:GraphLearn:CTR)|sizes|policy|deployed|completed|devices|memory|least ÷ required",
        rows,
    )


def _points(cells: Sequence[Cell]) -> ReportTable:
    rows = []
    for cell in cells:
        for who, entry in cell.all.items():
            for policy in (name for name in entry[0].before if name in entry[0].after):
                was = [sum(w.before[policy].four[k] for w in entry) / len(entry) for k in range(len(REQUIRED))]
                held = [
                    sum(w.after[policy].held[k] - w.before[policy].held[k] for w in entry) / len(entry)
                    for k in range(len(RESOURCES))
                ]
                before = [f"{was[0]:.0f}", *(f"{100 * value:.1f}" for value in was[1:])]
                after = [_signed(value) for value in (*points(entry, policy)[1:], *held)]
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
            found = gains(entry, FIFO)
            its_costs = [
                percent(_mean(w.slower for w in entry)),
                f"{_mean(w.dying for w in entry):.1%}".replace("%", " %"),
            ]
            rows.append([_named(cell.setting), who, *map(percent, found), f"{least(found):.2f}", *its_costs])
    return table(
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


def _importance(ranks: Sequence[KindRanking]) -> ReportTable:
    rows = []
    for mix in MIXES:
        for k, kind in enumerate(KINDS):
            selected = [rank for rank in ranks if (rank.mix, rank.kind) == (mix, k)]
            if not selected:
                continue
            told = [f"{_mean(rank.importance[r] for rank in selected):.2f}" for r in range(len(RESOURCES))]
            known = percent(_ERRORS[kind.name]) if kind.name in _ERRORS else "–"
            matters = RESOURCES[kind.rules] if kind.strong else "–"
            records = f"{_mean(rank.records for rank in selected):.0f}"
            rows.append([mix, kind.name, records, *told, matters, percent(_mean(r.error for r in selected)), known])
    return table(
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
    selected = list(values)
    return sum(selected) / len(selected)


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−")


QUICK, FULL = (1, 4), (8, 3)
"""Histories of each mix, and windows that are asked for with each."""
NOTHING_QUICK, NOTHING_FULL = (1, 8), (4, 6)
"""The same where nothing is asked for in excess."""
FEW = (2, 3)
"""The same where loads and assumptions vary."""
REAL_MIX = next(iter(MIXES))
RATES = (10.0, 30.0, 50.0, 90.0)
FACTORS = (1.2, 1.6, 2.0)
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
        cells: The mixes first, as they are judged; then the one where nothing is asked for in excess; then others.
        answered: What is said of every answer.
        ranked: What was said of the importance of resources.
    """

    cells: tuple[Cell, ...]
    answered: tuple[AnswerFaults, ...]
    ranked: tuple[KindRanking, ...]


def observe(episode: Episode) -> SizedHistories:
    """Ask for the sizes of all windows and play them."""
    player = _Player(episode)
    plan = list(_plan(full=episode.settings.full))
    cells = []
    for setting, size, policies in plan:
        cells.append(player.cell(setting, size, policies))
        episode.passed(len(cells), len(plan))
    for label, asked in player.questioner.unusual():
        player.answered.append(AnswerFaults.of(label, asked))
    return SizedHistories(tuple(cells), tuple(player.answered), tuple(player.ranked))


def _plan(*, full: bool) -> Iterator[tuple[Setting, tuple[int, int], Sequence[str]]]:
    """Settings, each with its histories and windows of each, and the policies that are played."""
    for mix in MIXES:
        yield Setting(mix), FULL if full else QUICK, POLICIES
    yield Setting(REAL_MIX, over_request=1.0, allowed=0.0), NOTHING_FULL if full else NOTHING_QUICK, (FIFO,)
    if full:
        others = [
            *(Setting(REAL_MIX, over_request=factor) for factor in (1.0, *FACTORS)),
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
        self.beside = set(POLICIES) if episode.settings.full else {FIFO, IN_ORDER}

    def cell(self, setting: Setting, size: tuple[int, int], policies: Sequence[str]) -> Cell:
        """All windows of a setting."""
        histories, windows = size
        service: list[Window] = []
        beside: dict[str, list[Window]] = {name: [] for name in BESIDE}
        for history in range(histories):
            numbers = range(history * windows, (history + 1) * windows)
            asked, drawn, given = self.questioner.ask(setting, history, numbers)
            self._keep(setting, asked)
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
            some = [policy for policy in policies if policy in self.beside]
            others = {
                name: score(number, tasks, other, some, before)
                for name, other in _beside(tasks, setting.allowed).items()
            }
            return MappingProxyType(before), MappingProxyType(others)

        key = self.questioner.seed, setting, number, tuple(policies), frozenset(self.beside)
        return _KNOWN.of(key, found)

    def _keep(self, setting: Setting, asked: SizingExchange) -> None:
        label = f"{setting.mix}, over-request {setting.over_request:g}"
        self.answered.append(AnswerFaults.of(label, asked))
        if not asked.amiss and setting == Setting(setting.mix):
            self.ranked += ranked(setting.mix, asked)


def _beside(tasks: Tasks, allowed: float) -> dict[str, Numbers]:
    made = (right_sizing.ideal(tasks), right_sizing.tolerant(tasks, allowed), right_sizing.at_one_rate(tasks, allowed))
    return dict(zip(BESIDE, made, strict=True))


def judge(o: SizedHistories) -> Iterator[Finding]:
    """Claims about answers and costs, then the figure."""
    yield from dem_sizing_claims.of_answers(o.answered, o.ranked)
    mixes = {cell.setting.mix: cell.service for cell in o.cells if cell.usual}
    nothing = [cell for cell in o.cells if (cell.setting.over_request, cell.setting.allowed) == (1.0, 0.0)]
    yield from dem_sizing_claims.of_costs(mixes, nothing[0].service if nothing else ())
    estimate, lower, upper = worst(mixes, FIFO, FIGURE)
    yield Figure(
        FIGURE,
        estimate,
        lower,
        sum(map(len, mixes.values())),
        "gain reached ÷ gain required, each the total with the service's sizes ÷ that with what was asked for − 1, of "
        "deployed tasks, completion rate, devices and memory put to use; the least of the four in the worst of three "
        f"mixes under FIFO at 70 tasks an hour and a mean over-request of {OVER_REQUEST:g}; one-sided 95 % bootstrap "
        "bound over windows. Not the trace of the source, but a world drawn from the figures that it prints",
        parts=[
            PartFigure(f"{mix}, {policy}", least(gains(entry, policy)), None, len(entry))
            for mix, entry in mixes.items()
            for policy in POLICIES
            if policy in entry[0].before
        ],
        tables=tables(o.cells, o.ranked),
        plots=plots(o.cells),
        ceiling=upper,
    )


CHECK = Check("dem_sizing", (FIGURE, SIZES), observe, judge, heavy=True)
