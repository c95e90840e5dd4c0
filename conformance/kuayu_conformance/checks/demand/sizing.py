"""Right-sizing of requests: what it gains in a cluster, what it costs, and what it may say (DEM-003, DEM-007).

Tasks of a simulated window (:mod:`kuayu_conformance.testbed.right_sizing`), and thousands that ran before, go to the
service under names that tell nothing; the window is then played with what was asked for and with what the
service would give.

1. A gain of sizes is the mean of four: deployed tasks, completion rate, devices and memory put to use, each the total
   with these sizes ÷ that with what was asked for − 1.
2. Judged is by how much the gain of the service exceeds that of one rate for the cores of all tasks, which knows
   afterwards how far it may go, along the over-request (:func:`advantage`); and that nothing is gained where nothing
   was asked for in excess.
3. Sizes have a least, a cost, and a resource that a kind must be said to depend on: see :class:`AnswerFaults`.
4. Tables and plots beside: gains by mix and policy, the source's figures with the set-up that comes nearest to each,
   what sizes cost, and how all of it varies with what had to be assumed.

Bounds: B. Efron, The Annals of Statistics 7 (1979) 1-26; windows are drawn, each mix for itself.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, fsum, inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.caching import Memory
from kuayu_conformance.check import Check
from kuayu_conformance.checks.kit.decisions import percent, table
from kuayu_conformance.episode import Episode, Settings
from kuayu_conformance.findings import Claim, Figure, Finding, PartFigure, holds
from kuayu_conformance.statistics import CONFIDENCE, LEVEL, RESAMPLES
from kuayu_conformance.statistics.quotients import Stratum, quotient
from kuayu_conformance.testbed import right_sizing
from kuayu_conformance.testbed.right_sizing import (
    DEVICES,
    DRF,
    FIFO,
    IN_ORDER,
    KINDS,
    MEMORY,
    MIXES,
    OVER_REQUEST,
    POLICIES,
    RATE,
    RESOURCES,
    SRTF,
    Numbers,
    Outcome,
    Tasks,
    World,
)
from kuayu_schemas import schema
from kuayu_schemas.models import PlotKind, PlotSeries, ReportPlot, ReportTable

if TYPE_CHECKING:
    from kuayu_schemas import documents

STATED = (0.253, 0.152, 0.072, 0.08)
"""Gains that the source states, each relative to the original requests; printed beside, not required."""
QUANTITIES = ("deployed", "completed", "devices", "memory")

Four = tuple[float, float, float, float]


@dataclass(frozen=True)
class SizedWindow:
    """A window under a policy with some sizes.

    Attributes:
        four: Deployed tasks, completion rate, mean shares of devices and memory that were put to use.
        holdings: Mean shares of devices, cores and memory that were given away.
        arrived: Tasks that came.
        died: Runs that memory ended.
        lost: Seconds of them.
    """

    four: Four
    holdings: tuple[float, ...]
    arrived: int
    died: int
    lost: float


@dataclass(frozen=True)
class Window:
    """A window with the original sizes and with others.

    Attributes:
        number: Which.
        before, after: What came of it, by policy.
        dying: Share of the tasks that would run out of memory.
        slower: Mean over tasks of the time on what they are given ÷ that on what they ask for - 1; lost runs are not in
            it.
        cut: Part of the cores that were asked for that is not given.
    """

    number: int
    before: Mapping[str, SizedWindow]
    after: Mapping[str, SizedWindow]
    dying: float
    slower: float
    cut: float


def score(
    number: int, tasks: Tasks, given: Numbers, policies: Iterable[str], before: Mapping[str, SizedWindow]
) -> Window:
    """Play a window with sizes; ``before`` is the same with what was asked for."""
    after = {policy: played(right_sizing.play(tasks, given, policy)) for policy in policies}
    slower = tasks.slowed(given) / tasks.slowed(tasks.requested) - 1.0
    return Window(
        number,
        before,
        after,
        float(tasks.dies(given).mean()),
        float(slower.mean()),
        1.0 - float(given[:, 1].sum() / tasks.requested[:, 1].sum()),
    )


def originals(tasks: Tasks, policies: Iterable[str]) -> dict[str, SizedWindow]:
    """A window with what was asked for."""
    return {policy: played(right_sizing.play(tasks, tasks.requested, policy)) for policy in policies}


def played(outcome: Outcome) -> SizedWindow:
    """The figures of an outcome that are judged and printed."""
    four = (float(outcome.deployed), outcome.completion, outcome.used[DEVICES], outcome.used[MEMORY])
    return SizedWindow(four, outcome.occupied, outcome.arrived, outcome.died, outcome.lost)


def gains(windows: Sequence[Window], policy: str) -> Four:
    """Total after ÷ total before - 1 of the four, over windows."""
    return _relative_gains([(window.before[policy].four, window.after[policy].four) for window in windows])


def points(windows: Sequence[Window], policy: str) -> Four:
    """The same as differences: of tasks relative to those that came, of shares in parts of one."""
    came = fsum(window.before[policy].arrived for window in windows) / len(windows) or 1.0
    entry = [
        fsum(w.after[policy].four[k] - w.before[policy].four[k] for w in windows) / len(windows)
        for k in range(len(STATED))
    ]
    return entry[0] / came, entry[1], entry[2], entry[3]


def mean_gain(four: Four) -> float:
    """The mean of the four."""
    return fsum(four) / len(four)


@dataclass(frozen=True)
class RatePair:
    """Windows of a mix at an over-request, with the service's sizes and with one rate for cores.

    Attributes:
        mix: Which.
        service: With the sizes of the service.
        rate: The same windows with one rate.
    """

    mix: str
    service: Sequence[Window]
    rate: Sequence[Window]


@dataclass(frozen=True)
class Advantage:
    """By how much the gain of the service exceeds that of one rate.

    Attributes:
        estimate: In the mix and under the policy where it does least.
        lower, upper: One-sided bounds of that.
        parts: Of each mix and policy.
    """

    estimate: float
    lower: float
    upper: float
    parts: Mapping[tuple[str, str], float]


def advantage(pairs: Sequence[RatePair], policies: Sequence[str], seed: str) -> Advantage:
    """The mean over over-requests of the gain of the service less that of one rate, by mix and policy; and the least.

    Args:
        pairs: All mixes, each at the same number of over-requests.
        policies: Under which all windows were played.
        seed: Of what is drawn for the bounds, by Python's own generator: no version changes its fractions.
    """
    chance = random.Random(seed)  # noqa: S311 - reproducible by design, not secret
    mixes = list(dict.fromkeys(entry.mix for entry in pairs))
    by_mix: dict[str, list[Numbers]] = {mix: [] for mix in mixes}
    for entry in pairs:
        n = len(entry.service)
        drawn = np.array([[int(chance.random() * n) for _ in range(n)] for _ in range(RESAMPLES)])
        times = np.vstack([np.ones(n), *(np.bincount(row, minlength=n)[None] for row in drawn)])
        by_mix[entry.mix].append(_ahead(entry, policies, times))
    ahead = np.array([np.mean(by_mix[mix], axis=0) for mix in mixes])
    worst = ahead.min(axis=(0, 2))
    resampled, rank = np.sort(worst[1:]), ceil(CONFIDENCE * RESAMPLES)
    parts = {(mix, policy): float(ahead[m, 0, p]) for m, mix in enumerate(mixes) for p, policy in enumerate(policies)}
    return Advantage(float(worst[0]), float(resampled[RESAMPLES - rank]), float(resampled[rank - 1]), parts)


def _ahead(entry: RatePair, policies: Sequence[str], times: Numbers) -> Numbers:
    """Gain of the service less that of one rate where each window counts so many times, draws × policies."""
    columns = []
    for policy in policies:
        before, after, rated = (
            times @ np.array([getattr(window, side)[policy].four for window in windows], np.float64)
            for side, windows in (("before", entry.service), ("after", entry.service), ("after", entry.rate))
        )
        gained = np.divide(after - rated, before, out=np.zeros_like(before), where=before > 0.0)
        columns.append(gained.mean(axis=1))
    return np.column_stack(columns)


def _relative_gains(pairs: Sequence[tuple[Four, Four]]) -> Four:
    before, after = [0.0] * len(STATED), [0.0] * len(STATED)
    for was, became in pairs:
        for k in range(len(STATED)):
            before[k] += was[k]
            after[k] += became[k]
    entry = [(b / a - 1.0) if a else (inf if b else 0.0) for a, b in zip(before, after, strict=True)]
    return entry[0], entry[1], entry[2], entry[3]


PATH = "/v1/task-sizes"
ALLOWED = 0.05
"""Slow-down that a question allows; the default of the standard."""
RECORDS = 4000
"""Tasks of a history."""


@dataclass(frozen=True)
class Setting:
    """What a question is about.

    Attributes:
        mix: Name of the mix.
        over_request: Mean of asked for ÷ needed.
        rate: Tasks an hour.
        allowed: Slow-down.
        label: Assumption that is other than usual; empty where none is.
        world: Assumptions.
    """

    mix: str
    over_request: float = OVER_REQUEST
    rate: float = RATE
    allowed: float = ALLOWED
    label: str = ""
    world: World = field(default_factory=World)


@dataclass(frozen=True)
class SizingExchange:
    """A question and its answer.

    Attributes:
        tasks: Those whose sizes were asked for.
        kinds: Names of the kinds that ran before, in their order.
        allowed: Slow-down.
        answer: The exchange.
    """

    tasks: "Sequence[documents.TaskRequest]"
    kinds: tuple[str, ...]
    allowed: float
    answer: Answer

    @cached_property
    def amiss(self) -> str:
        """Why it is no answer at all, empty where it is one."""
        if self.answer.status != 200:
            return self.answer.brief
        if not schema.is_valid("SizingReport", self.answer.json, reader=True):
            return "not a valid sizing report"
        names = [row["task"] for row in self.answer.json["tasks"]]
        if names != [task["id"] for task in self.tasks]:
            return f"{len(names)} sizes are not one for each of {len(self.tasks)} tasks in their order"
        return ""

    @property
    def rows(self) -> "Sequence[tuple[documents.TaskRequest, documents.SizedTask]]":
        """Tasks with their sizes; only of an answer."""
        return list(zip(self.tasks, self.answer.json["tasks"], strict=True))

    @property
    def importance(self) -> "Sequence[documents.ResourceImportance]":
        """Rows on kinds; only of an answer."""
        return list(self.answer.json["importance"])


class Questioner:
    """Draws worlds of an episode and asks about them.

    Attributes:
        seed: What worlds are drawn from.
    """

    def __init__(self, episode: Episode) -> None:
        """Names of kinds are drawn anew for each question."""
        self._episode = episode
        self.seed = f"{episode.settings.nonce}/tasks"

    def ask(
        self, setting: Setting, history: int, windows: Sequence[int]
    ) -> tuple[SizingExchange, list[Tasks], list[Numbers]]:
        """Ask once for the sizes of all tasks of some windows.

        Returns:
            The exchange, the windows, and what the tasks of each are to be given: what they ask for where there is no
            answer, and never more than that.
        """
        world = setting.world if setting.label else setting.world.asking(setting.over_request)
        mix, where = MIXES[setting.mix], f"{self.seed}/{setting.mix}"
        before = right_sizing.history(f"{where}/history-{history}", mix, world, RECORDS)
        drawn = [right_sizing.window(f"{where}/window-{number}", mix, world, setting.rate) for number in windows]
        names = [f"kind-{number:04d}" for number in self._episode.naming.sample(range(10_000), len(KINDS))]
        ran = right_sizing.records(before, names, f"{where}/history-{history}")
        wanted = [
            row
            for number, tasks in zip(windows, drawn, strict=True)
            for row in right_sizing.requests(tasks, names, f"t{number}-")
        ]
        exchange = replace(self._ask(ran, wanted, setting.allowed), kinds=tuple(names))
        return exchange, drawn, _given(exchange, drawn)

    def unusual(self) -> list[tuple[str, SizingExchange]]:
        """Questions at the edge: kinds that never ran, tasks without accelerators, no history at all."""
        world, mix = World(), MIXES["25:25:25:25"]
        before = right_sizing.history(f"{self.seed}/few", mix, world, 400)
        names = [f"kind-{number:04d}" for number in self._episode.naming.sample(range(10_000), len(KINDS) + 1)]
        history = right_sizing.records(before, names, f"{self.seed}/few")
        asks: documents.TaskResources = {"devices": 0.0, "cores": 6.0, "memory": 3e10}
        tasks: list[documents.TaskRequest] = [
            {"id": "seen", "kind": names[0], "requested": {**asks, "devices": 1.0}},
            {"id": "without-devices", "kind": names[3], "requested": asks},
            {"id": "never-seen", "kind": names[-1], "requested": {**asks, "devices": 0.5}},
        ]
        return [
            ("400 tasks that ran", replace(self._ask(history, tasks), kinds=tuple(names[:-1]))),
            ("no history", self._ask([], tasks)),
        ]

    def _ask(
        self,
        ran: "list[documents.TaskRecord]",
        wanted: "list[documents.TaskRequest]",
        allowed: float | None = None,
    ) -> SizingExchange:
        number = self._episode.random.randrange(1_000_000)
        revision: documents.Revision = {"epoch": self._episode.name_of("tasks"), "number": number}
        body: documents.SizingRequest = {"revision": revision, "history": ran, "tasks": wanted}
        if allowed is not None:
            body["slow_down"] = allowed
        answer = self._episode.ask_patiently("POST", PATH, body)
        return SizingExchange(wanted, (), ALLOWED if allowed is None else allowed, answer)


def _given(exchange: SizingExchange, drawn: Sequence[Tasks]) -> list[Numbers]:
    """Sizes by window."""
    if exchange.amiss:
        return [tasks.requested for tasks in drawn]
    sizes = right_sizing.numbers(exchange.answer.json["tasks"])
    starts = np.cumsum([0, *(len(tasks) for tasks in drawn)])
    return [
        np.minimum(sizes[start : start + len(tasks)], tasks.requested)
        for start, tasks in zip(starts, drawn, strict=False)
    ]


FIGURE, SIZES = "DEM-003", "DEM-007"

MOST_DYING = 0.01
"""Share of the tasks of a mix that may run out of memory."""
MARGIN = 0.01
"""By how much tasks may be slower on the mean than was allowed, as windows differ: one rate takes no more either."""
VANISHED = 0.03
"""Gain, or loss, in deployed tasks that is as good as none."""
ENOUGH_RECORDS = 300
"""From so many records of a kind on it must be said what it depends on."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class AnswerFaults:
    """What is wrong with an answer.

    Attributes:
        label: Of the question.
        amiss: Why it is no answer; empty where it is one.
        faults: Wrong sizes, slow-downs and lists of kinds, a handful at most.
        answer: The exchange.
    """

    label: str
    amiss: str
    faults: tuple[str, ...]
    answer: Answer

    @classmethod
    def of(cls, label: str, exchange: SizingExchange) -> "AnswerFaults":
        """Look at an exchange."""
        faults = () if exchange.amiss else tuple(_faults(exchange))[:3]
        return cls(label, exchange.amiss, faults, exchange.answer)


@dataclass(frozen=True)
class KindRanking:
    """What was said of a kind.

    Attributes:
        mix: Of the history.
        kind: Index of the kind.
        importance: Of devices, cores and memory.
        error: Stated error.
        records: Stated number of records.
        answer: The exchange.
    """

    mix: str
    kind: int
    importance: tuple[float, ...]
    error: float
    records: int
    answer: Answer

    @property
    def right(self) -> bool:
        """Whether the resource that matters stands before the others."""
        first = KINDS[self.kind].rules
        return all(self.importance[first] > value for k, value in enumerate(self.importance) if k != first)


def ranked(mix: str, exchange: SizingExchange) -> list[KindRanking]:
    """What an answer says of the kinds that are told of in it."""
    return [
        KindRanking(
            mix,
            exchange.kinds.index(row["kind"]),
            (float(row["devices"]), float(row["cores"]), float(row["memory"])),
            float(row["error"]),
            int(row["records"]),
            exchange.answer,
        )
        for row in exchange.importance
        if row["kind"] in exchange.kinds
    ]


def _faults(exchange: SizingExchange) -> Iterator[str]:
    for task, size in exchange.rows:
        asks: Mapping[str, Any] = task["requested"]
        gets: Mapping[str, Any] = size["recommended"]
        for name in RESOURCES:
            wanted, given = asks[name], gets[name]
            if given > wanted * (1.0 + _ROUNDING):
                yield f"{task['id']}: {given:g} of {name}, which is more than the {wanted:g} asked for"
            if wanted > 0.0 and given <= 0.0:
                yield f"{task['id']}: nothing of {name}, of which it asks for {wanted:g}"
        if size["slow_down"] > exchange.allowed + _ROUNDING:
            yield f"{task['id']}: slower by {size['slow_down']:g}, where {exchange.allowed:g} is allowed"
    kinds = [row["kind"] for row in exchange.importance]
    if kinds != sorted(exchange.kinds):
        yield f"importance is told of {kinds}, the kinds that ran are {sorted(exchange.kinds)}"


def of_answers(answered: Sequence[AnswerFaults], ranks: Sequence[KindRanking]) -> Iterator[Claim]:
    """Every question is answered, and rightly."""
    for entry in answered:
        for requirement in (FIGURE, SIZES):
            expected = f"{entry.label}: a size for every task, in their order"
            if entry.amiss or requirement == SIZES:
                yield holds(requirement, not entry.amiss, expected, entry.amiss or "told", entry.answer)
        if not entry.amiss:
            yield holds(
                SIZES,
                not entry.faults,
                f"{entry.label}: no size exceeds what is asked for, none becomes nothing, no slow-down exceeds what is "
                "allowed, and importance is told of every kind that ran, in order of name",
                list(entry.faults) or "so it is",
                entry.answer,
            )
    for rank in ranks:
        kind = KINDS[rank.kind]
        if kind.strong and rank.records >= ENOUGH_RECORDS:
            yield holds(
                SIZES,
                rank.right,
                f"{rank.mix}: {RESOURCES[kind.rules]} matter most to tasks like {kind.name}",
                dict(zip(RESOURCES, rank.importance, strict=True)),
                rank.answer,
            )


def of_costs(mixes: Mapping[str, Sequence[Window]], nothing: Sequence[Window]) -> Iterator[Claim]:
    """Tasks do not die, are not slowed more than was allowed, and nothing is gained where nothing is to be had."""
    cells = [*((label, entry, ALLOWED) for label, entry in mixes.items())]
    if nothing:
        cells.append(("nothing asked for in excess", nothing, 0.0))
    for label, item, allowed in cells:
        dying = sum(window.dying for window in item) / len(item)
        slower = sum(window.slower for window in item) / len(item)
        expected = f"{label}: at most {MOST_DYING:.0%} of the tasks run out of memory"
        yield holds(FIGURE, dying <= MOST_DYING, expected, f"{dying:.2%} do")
        expected = f"{label}: tasks are slower by at most {allowed + MARGIN:.0%} on the mean"
        yield holds(FIGURE, slower <= allowed + MARGIN, expected, f"{slower:.1%}")
    if nothing:
        yield _vanished(nothing)


def _vanished(windows: Sequence[Window]) -> Claim:
    """The least change of sizes makes another schedule, with some per cent more or fewer tasks: chance is left out."""
    before, after = ([entry[FIFO].four[0] for entry in side] for side in _sides(windows))
    change = quotient([Stratum((after,), (before,))])
    low, high = change.lower(LEVEL / 2.0) - 1.0, change.upper(LEVEL / 2.0) - 1.0
    return holds(
        FIGURE,
        low <= VANISHED and high >= -VANISHED,
        f"the gain in deployed tasks is not shown to exceed {VANISHED:.0%} where nothing is asked for in excess and no "
        "slow-down is allowed, nor the loss",
        f"{change.estimate - 1.0:+.1%}, between {low:+.1%} and {high:+.1%} over {change.n} windows",
    )


def _sides(windows: Sequence[Window]) -> tuple[list[Mapping[str, SizedWindow]], list[Mapping[str, SizedWindow]]]:
    return [window.before for window in windows], [window.after for window in windows]


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

        def score_windows() -> tuple[Mapping[str, SizedWindow], Mapping[str, Window]]:
            before = originals(tasks, policies)
            usual = self.full and setting == Setting(setting.mix)
            some = [policy for policy in policies if usual or policy in {FIFO, IN_ORDER}]
            others = {
                name: score(number, tasks, other, policies if name == ONE_RATE else some, before)
                for name, other in _beside(tasks, setting.allowed).items()
            }
            return MappingProxyType(before), MappingProxyType(others)

        key = self.questioner.seed, setting, number, tuple(policies), self.full
        return _KNOWN.of(key, score_windows)

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
    yield from of_answers(o.answered, o.ranked)
    judged = [cell for cell in o.cells if cell.judged]
    costs = {f"{cell.setting.mix}, over-request {cell.setting.over_request:g}": cell.service for cell in judged}
    nothing = [cell for cell in o.cells if (cell.setting.over_request, cell.setting.allowed) == (1.0, 0.0)]
    yield from of_costs(costs, nothing[0].service if nothing else ())
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
