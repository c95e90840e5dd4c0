"""Right-sizing of requests: what it gains in a cluster, what it costs, and what it may say (DEM-003, DEM-007).

Tasks of a simulated window (:mod:`kuayu_conformance.testbed.tasks`), and thousands that ran before, go to the service
under names that tell nothing; the window is then played with what was asked for and with what the service would give.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kuayu_conformance.check import Check
from kuayu_conformance.checks import dem_sizing_claims, dem_sizing_report
from kuayu_conformance.checks.dem_sizing_claims import FIGURE, SIZES, Answered, Ranked, ranked
from kuayu_conformance.checks.dem_sizing_questions import Asked, Questioner, Setting
from kuayu_conformance.checks.dem_sizing_report import BESIDE, Cell
from kuayu_conformance.checks.dem_sizing_scores import Played, Window, gains, least, originals, score, worst
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Figure, Finding, PartFigure
from kuayu_conformance.memory import Memory
from kuayu_conformance.testbed.tasks import sizes
from kuayu_conformance.testbed.tasks.cluster import FIFO, IN_ORDER, POLICIES
from kuayu_conformance.testbed.tasks.drawing import Tasks, World
from kuayu_conformance.testbed.tasks.kinds import MIXES, OVER_REQUEST
from kuayu_conformance.testbed.tasks.law import Numbers

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

_KNOWN: Memory[tuple[Mapping[str, Played], Mapping[str, Window]]] = Memory(200)
"""Windows by what they are drawn from and how they are played, some kB each."""


@dataclass(frozen=True)
class Observation:
    """What was asked and played.

    Attributes:
        cells: The mixes first, as they are judged; then the one where nothing is asked for in excess; then others.
        answered: What is said of every answer.
        ranked: What was said of the importance of resources.
    """

    cells: tuple[Cell, ...]
    answered: tuple[Answered, ...]
    ranked: tuple[Ranked, ...]


def observe(episode: Episode) -> Observation:
    """Ask for the sizes of all windows and play them."""
    player = _Player(episode)
    plan = list(_plan(full=episode.settings.full))
    cells = []
    for setting, size, policies in plan:
        cells.append(player.cell(setting, size, policies))
        episode.passed(len(cells), len(plan))
    for label, asked in player.questioner.unusual():
        player.answered.append(Answered.of(label, asked))
    return Observation(tuple(cells), tuple(player.answered), tuple(player.ranked))


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
        self.answered: list[Answered] = []
        self.ranked: list[Ranked] = []
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
            for number, tasks, its in zip(numbers, drawn, given, strict=True):
                before, others = self._known(setting, number, tasks, policies)
                service.append(score(number, tasks, its, policies, before))
                for name, other in others.items():
                    beside[name].append(other)
        return Cell(setting, tuple(service), {name: tuple(its) for name, its in beside.items()})

    def _known(
        self, setting: Setting, number: int, tasks: Tasks, policies: Sequence[str]
    ) -> tuple[Mapping[str, Played], Mapping[str, Window]]:
        """A window with what was asked for, and with sizes of others; once in a process."""

        def found() -> tuple[Mapping[str, Played], Mapping[str, Window]]:
            before = originals(tasks, policies)
            some = [policy for policy in policies if policy in self.beside]
            others = {
                name: score(number, tasks, other, some, before)
                for name, other in _beside(tasks, setting.allowed).items()
            }
            return MappingProxyType(before), MappingProxyType(others)

        key = self.questioner.seed, setting, number, tuple(policies), frozenset(self.beside)
        return _KNOWN.of(key, found)

    def _keep(self, setting: Setting, asked: Asked) -> None:
        label = f"{setting.mix}, over-request {setting.over_request:g}"
        self.answered.append(Answered.of(label, asked))
        if not asked.amiss and setting == Setting(setting.mix):
            self.ranked += ranked(setting.mix, asked)


def _beside(tasks: Tasks, allowed: float) -> dict[str, Numbers]:
    made = (sizes.ideal(tasks), sizes.tolerant(tasks, allowed), sizes.at_one_rate(tasks, allowed))
    return dict(zip(BESIDE, made, strict=True))


def judge(o: Observation) -> Iterator[Finding]:
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
            PartFigure(f"{mix}, {policy}", least(gains(its, policy)), None, len(its))
            for mix, its in mixes.items()
            for policy in POLICIES
            if policy in its[0].before
        ],
        tables=dem_sizing_report.tables(o.cells, o.ranked),
        plots=dem_sizing_report.plots(o.cells),
        ceiling=upper,
    )


CHECK = Check("dem_sizing", (FIGURE, SIZES), observe, judge, heavy=True)
