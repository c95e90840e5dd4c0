"""Questions about sizes: tasks that ran before, tasks that are to run, and what came back."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode
from kuayu_conformance.testbed.tasks import drawing, wire
from kuayu_conformance.testbed.tasks.drawing import Tasks, World
from kuayu_conformance.testbed.tasks.kinds import KINDS, MIXES, OVER_REQUEST, RATE
from kuayu_conformance.testbed.tasks.law import Numbers
from kuayu_schemas import schema

Json = dict[str, Any]

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
class Asked:
    """A question and its answer.

    Attributes:
        tasks: Those whose sizes were asked for.
        kinds: Names of the kinds that ran before, in their order.
        allowed: Slow-down.
        answer: The exchange.
    """

    tasks: Sequence[Json]
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
        told = [row["task"] for row in self.answer.json["tasks"]]
        if told != [task["id"] for task in self.tasks]:
            return f"{len(told)} sizes are not one for each of {len(self.tasks)} tasks in their order"
        return ""

    @property
    def rows(self) -> Sequence[tuple[Json, Json]]:
        """Tasks with their sizes; only of an answer."""
        return list(zip(self.tasks, self.answer.json["tasks"], strict=True))

    @property
    def importance(self) -> Sequence[Json]:
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

    def ask(self, setting: Setting, history: int, windows: Sequence[int]) -> tuple[Asked, list[Tasks], list[Numbers]]:
        """Ask once for the sizes of all tasks of some windows.

        Returns:
            The exchange, the windows, and what the tasks of each are to be given: what they ask for where there is no
            answer, and never more than that.
        """
        world = setting.world if setting.label else setting.world.asking(setting.over_request)
        mix, where = MIXES[setting.mix], f"{self.seed}/{setting.mix}"
        before = drawing.history(f"{where}/history-{history}", mix, world, RECORDS)
        drawn = [drawing.window(f"{where}/window-{number}", mix, world, setting.rate) for number in windows]
        names = [f"kind-{number:04d}" for number in self._episode.naming.sample(range(10_000), len(KINDS))]
        ran = wire.records(before, names, f"{where}/history-{history}")
        wanted = [
            row
            for number, tasks in zip(windows, drawn, strict=True)
            for row in wire.requests(tasks, names, f"t{number}-")
        ]
        asked = replace(self._asked(ran, wanted, setting.allowed), kinds=tuple(names))
        return asked, drawn, _given(asked, drawn)

    def unusual(self) -> list[tuple[str, Asked]]:
        """Questions at the edge: kinds that never ran, tasks without accelerators, no history at all."""
        world, mix = World(), MIXES["25:25:25:25"]
        before = drawing.history(f"{self.seed}/few", mix, world, 400)
        names = [f"kind-{number:04d}" for number in self._episode.naming.sample(range(10_000), len(KINDS) + 1)]
        history = wire.records(before, names, f"{self.seed}/few")
        asks = {"devices": 0.0, "cores": 6.0, "memory": 3e10}
        tasks = [
            {"id": "seen", "kind": names[0], "requested": {**asks, "devices": 1.0}},
            {"id": "without-devices", "kind": names[3], "requested": asks},
            {"id": "never-seen", "kind": names[-1], "requested": {**asks, "devices": 0.5}},
        ]
        return [
            ("400 tasks that ran", replace(self._asked(history, tasks), kinds=tuple(names[:-1]))),
            ("no history", self._asked([], tasks)),
        ]

    def _asked(self, ran: Sequence[Json], wanted: Sequence[Json], allowed: float | None = None) -> Asked:
        number = self._episode.random.randrange(1_000_000)
        revision = {"epoch": self._episode.name_of("tasks"), "number": number}
        body: Json = {"revision": revision, "history": ran, "tasks": wanted}
        if allowed is not None:
            body["slow_down"] = allowed
        answer = self._episode.ask_patiently("POST", PATH, body)
        return Asked(wanted, (), ALLOWED if allowed is None else allowed, answer)


def _given(asked: Asked, drawn: Sequence[Tasks]) -> list[Numbers]:
    """Sizes by window."""
    if asked.amiss:
        return [tasks.requested for tasks in drawn]
    sizes = wire.numbers(asked.answer.json["tasks"])
    starts = np.cumsum([0, *(len(tasks) for tasks in drawn)])
    return [
        np.minimum(sizes[start : start + len(tasks)], tasks.requested)
        for start, tasks in zip(starts, drawn, strict=False)
    ]
