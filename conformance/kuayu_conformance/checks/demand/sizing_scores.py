"""What sizes come to in a window: gains, deaths, slow-downs; over windows, with bounds by bootstrap.

Bounds: B. Efron, The Annals of Statistics 7 (1979) 1-26; windows are drawn, each mix for itself.

1. A gain of sizes is the mean of four: deployed tasks, completion rate, devices and memory put to use, each the total
   with these sizes ÷ that with what was asked for − 1.
2. What is judged is by how much the gain of the service exceeds that of one rate for the cores of all tasks
   (:mod:`kuayu_conformance.testbed.right_sizing`), along the over-request: see :func:`advantage`.
3. Questions about sizes: tasks that ran before, tasks that are to run, and what came back.
4. What sizes must never be, what they may cost, and which resource a kind must be said to depend on.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, fsum, inf
from typing import TYPE_CHECKING, Any

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode
from kuayu_conformance.findings import Claim, holds
from kuayu_conformance.statistics.bootstrap import RESAMPLES
from kuayu_conformance.statistics.holm import LEVEL
from kuayu_conformance.statistics.proportions import CONFIDENCE
from kuayu_conformance.statistics.quotients import Stratum, quotient
from kuayu_conformance.testbed import right_sizing
from kuayu_conformance.testbed.right_sizing import (
    DEVICES,
    FIFO,
    KINDS,
    MEMORY,
    MIXES,
    OVER_REQUEST,
    RATE,
    RESOURCES,
    Numbers,
    Outcome,
    Tasks,
    World,
)
from kuayu_schemas import schema

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
    return _gains([(window.before[policy].four, window.after[policy].four) for window in windows])


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


def _gains(pairs: Sequence[tuple[Four, Four]]) -> Four:
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
        exchange = replace(self._asked(ran, wanted, setting.allowed), kinds=tuple(names))
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
            ("400 tasks that ran", replace(self._asked(history, tasks), kinds=tuple(names[:-1]))),
            ("no history", self._asked([], tasks)),
        ]

    def _asked(
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
