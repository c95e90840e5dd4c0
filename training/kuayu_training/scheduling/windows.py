"""Whole windows as SCH-003 plays them, in worlds that no run of the suite draws: to tune, to look and to compare in.

1. Jobs that are submitted in the window are its cohort. The world goes on, with new jobs, until all of them have ended,
   or for 28 days; what is then left of a job is imputed at its own pace (``testbed.scheduling.windows``).
2. Policies of the suite and of the reference play it, compiled where they are compiled: half a second a window.
3. Figures are sums over the cohort's jobs that train and over the large ones of them (``LARGE`` devices or more), so
   that means over windows count jobs, and money for bandwidth in the window beside the work that was done in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Self

import numpy as np

from kuayu_conformance.testbed.scheduling.bounds import needs, periods
from kuayu_conformance.testbed.scheduling.core.world import CompiledWorld
from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.engine.world import play
from kuayu_conformance.testbed.scheduling.scenarios import Scenario, Timing
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_training.scheduling.ledger import LARGE
from kuayu_training.scheduling.scenarios import HOUR, Kind, drawn

DAY = 24 * HOUR
WHOLE = Timing(6 * HOUR, 8 * HOUR, 28 * DAY, DAY)
"""Parts of a window of SCH-003."""
DRAIN_OF_TRACE = 14 * DAY
"""A trace has no more days to give."""
STEP = HOUR
"""Seconds after which it is seen whether the cohort has ended."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a policy reached in windows; sums, so that windows add up.

    Attributes:
        jobs: Jobs that train, and the large ones of them, (2,).
        seconds: Sums of their periods, (2,).
        imputed: Seconds of these that nobody has seen, (2,).
        money: For bandwidth that the cohort occupied, jobs that serve included.
        work: Done for it, device seconds of the reference device.
    """

    jobs: Floats
    seconds: Floats
    imputed: Floats
    money: float
    work: float

    @classmethod
    def total(cls, windows: "Sequence[Figures]") -> Self:
        """Of all windows together."""
        return cls(
            np.sum([figures.jobs for figures in windows], axis=0),
            np.sum([figures.seconds for figures in windows], axis=0),
            np.sum([figures.imputed for figures in windows], axis=0),
            float(np.sum([figures.money for figures in windows])),
            float(np.sum([figures.work for figures in windows])),
        )

    def over(self, other: "Figures") -> Floats:
        """Mean period of all and of large jobs, and money for work, over those of another policy, (3,).

        One where neither has any: no large jobs, or no money.
        """
        costs = np.array([self.money / max(self.work, 1.0), other.money / max(other.work, 1.0)])
        mine, theirs = np.append(self.seconds, costs[0]), np.append(other.seconds, costs[1])
        return np.where(theirs > 0.0, mine / np.where(theirs > 0.0, theirs, 1.0), 1.0)


class Window:
    """A window, at its beginning.

    Attributes:
        scenario: What is played.

    Raises:
        TypeError: Its link variation or law is another than the suite's, so that it is not compiled.
    """

    def __init__(self, scenario: Scenario) -> None:
        world = scenario.world()
        if not isinstance(world, CompiledWorld):
            raise TypeError("the scenario has a link variation or a law of its own, and is not compiled")
        timing, jobs = scenario.timing, scenario.workload.jobs
        self.scenario, self._world = scenario, world
        submitted = np.array([job.submitted for job in jobs])
        self._first, self._beyond = (int(np.searchsorted(submitted, when)) for when in (timing.begin, timing.end))
        members = jobs[self._first : self._beyond]
        training = np.array([job.kind is not JobKind.SERVING for job in members], dtype=np.bool_)
        large = training & np.array([job.requested >= LARGE for job in members], dtype=np.bool_)
        self._groups = np.stack([training, large])
        self._submitted = submitted[self._first : self._beyond]

    @property
    def training(self) -> int:
        """Jobs of the cohort that train."""
        return int(self._groups[0].sum())

    @property
    def least(self) -> Floats:
        """Seconds below which no policy brings the sums of periods of all and of large jobs, (2,)."""
        parts = (self.scenario.topology, self.scenario.workload, self.scenario.law)
        members = self.scenario.workload.jobs[self._first : self._beyond]
        seconds = []
        for group in self._groups:
            jobs = [members[number] for number in np.flatnonzero(group)]
            seconds.append(periods(needs(*parts, jobs)).least * len(jobs) if jobs else 0.0)
        return np.array(seconds)

    def play(self, policy: Policy) -> Figures:
        """Let a policy, a new one, play it to the end."""
        world, timing = self._world.copy(), self.scenario.timing
        play(world, policy, timing.begin)
        play(world, policy, timing.end)
        while not world.finished(self._first, self._beyond) and world.now < timing.horizon:
            first = timing.counted if world.now < timing.counted else timing.horizon
            play(world, policy, min(world.now + STEP, first), timing.epoch(world.now))
        return self._figures(world)

    def _figures(self, world: CompiledWorld) -> Figures:
        rows = world.state.jobs[self._first : self._beyond]
        done, imputed = rows["work"].copy(), np.zeros(len(rows))
        for place in np.flatnonzero(rows["finished"] == inf).tolist():
            number, whole = self._first + place, float(rows["work"][place])
            done[place] = world.progress.at(np.array([number]), world.now)[0]
            left, pace = whole - done[place], world.pace(number)
            imputed[place] = left / pace if pace > 0.0 else left / whole * self._shortest(number)
        lasted = np.where(rows["finished"] == inf, world.now + imputed, rows["finished"]) - self._submitted
        return Figures(
            self._groups.sum(axis=1).astype(np.float64),
            self._groups @ lasted,
            self._groups @ imputed,
            float(rows["money"].sum()),
            float(done.sum()),
        )

    def _shortest(self, number: int) -> float:
        """Least seconds of a job that never ran."""
        scenario = self.scenario
        return float(
            needs(scenario.topology, scenario.workload, scenario.law, [scenario.workload.jobs[number]]).shortest[0]
        )


def window(purpose: str, number: int, kind: Kind, timing: Timing = WHOLE, data: Path | None = None) -> Window:
    """The window of a number; each purpose has windows of its own.

    Args:
        purpose: As for :func:`kuayu_training.scheduling.scenarios.drawn`.
        number: Any.
        kind: What it may be like.
        timing: Its parts; in a trace it drains for 14 days at most.
        data: Folder of public originals, else that of ``KUAYU_DATA``; only traces need it.

    Raises:
        MissingTraces: The kind takes jobs from a trace, and its folder is not known or does not hold it.
        ValueError: There are twenty numbers on end in whose windows no job that trains is submitted.
    """
    if kind.source == "itp":
        timing = replace(timing, drain=min(timing.drain, DRAIN_OF_TRACE))
    for again in range(20):
        candidate = Window(drawn(purpose, number + 1_000_000 * again, timing, kind, data))
        if candidate.training:
            return candidate
    raise ValueError(f"no job that trains is submitted in window {number} of {purpose}, nor in twenty others")
