"""What a run costs, and a reward that sums up to the gain over a baseline on the same scenario.

Time is counted twice, that of all jobs and that of large ones among them, and both count alike, as SCH-003 judges the
lesser of both gains.

The baseline's cost in the same span of time is taken off each reward. What is submitted differs from scenario to
scenario by far more than what a policy can change, and hits both alike: H. Mao et al., "Variance reduction for
reinforcement learning in input-driven environments", ICLR 2019.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from kuayu.scheduling.state import Floats
from kuayu_conformance.testbed.scheduling.baselines import WeighedCompletion
from kuayu_conformance.testbed.scheduling.engine.view import Policy, View
from kuayu_conformance.testbed.scheduling.engine.world import AnyWorld, play
from kuayu_conformance.testbed.scheduling.scenarios import Scenario

MONEY = 0.1
"""What all of the baseline's money counts beside all of its time: it is time that users wait for."""
LARGE = 8
"""Devices from which on a job is large (SCH-003)."""
MIN_MONEY = 3e-5
"""Money for a second of work below which a baseline's counts as that much: with next to none all would be lost."""
UNIT = 10.0
"""Rewards sum up to the gain times that, so that they are neither large nor small for the critic."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """How a policy did that others are measured by.

    Attributes:
        instants: Ascending.
        spent: Seconds that jobs had been there by then, summed up over all jobs and over large ones, (instants, 2).
        active: Jobs that were there at each.
        periods: Seconds that jobs were there until the end, in all: of all jobs, and of large ones, (2,); those of all
            twice where none is large.
        money: For bandwidth, in all; not below ``MIN_MONEY`` for the work.
    """

    instants: Floats
    spent: Floats
    active: Floats
    periods: Floats
    money: float

    def by(self, instant: float) -> Floats:
        """Seconds that jobs had been there by an instant: all of them, and large ones, (2,)."""
        return np.array([np.interp(instant, self.instants, self.spent[:, column]) for column in range(2)])

    def present(self, instant: float) -> float:
        """Jobs that were there at an instant."""
        return float(np.interp(instant, self.instants, self.active))


class Ledger:
    """Keeps the account of a run.

    Args:
        scenario: The scenario, from its beginning.
        baseline: What it is measured by, or none if this is to become one.

    Attributes:
        rows: Instant, seconds that all jobs and that large ones have been there, and how many jobs are there.
    """

    def __init__(self, scenario: Scenario, baseline: Baseline | None = None) -> None:
        jobs = scenario.workload.jobs
        self._baseline, self._until = baseline, scenario.timing.horizon
        self._submitted = np.array([job.submitted for job in jobs])
        self._large = np.array([job.requested >= LARGE for job in jobs])
        self._now, self._present, self._spent, self._rewarded = 0.0, np.zeros(2), np.zeros(2), 0.0
        self.rows: list[tuple[float, ...]] = [(0.0, 0.0, 0.0, 0.0)]

    def pass_to(self, view: View) -> float:
        """Time has passed; the reward for it, as a part of the baseline's time."""
        numbers = np.concatenate([view.pending, view.running]).astype(np.intp)
        return self._pass(view.now, np.array([len(numbers), self._large[numbers].sum()], dtype=np.float64))

    def close(self, world: AnyWorld) -> float:
        """The scenario has ended; what is still to be rewarded, so that all rewards sum up to the gain."""
        if self._baseline is None:
            left = np.array([record.finished == inf for record in world.outcome().jobs])
            self._pass(self._until, np.array([left.sum(), left[self._large[: len(left)]].sum()], dtype=np.float64))
            return 0.0
        periods, money = self.totals(world)
        return UNIT * float(gain(periods / self._baseline.periods, money / self._baseline.money)) - self._rewarded

    def totals(self, world: AnyWorld) -> tuple[Floats, float]:
        """Seconds that all jobs and that large ones were there, (2,), and money for bandwidth."""
        outcome = world.outcome()
        ended = np.minimum([record.finished for record in outcome.jobs], self._until)
        present = np.maximum(ended - [record.submitted for record in outcome.jobs], 0.0)
        return self._both(present, self._large[: len(present)]), float(outcome.money.sum())

    def lead(self) -> float:
        """Jobs that are there beyond those that the baseline had at this instant."""
        return float(self._present[0]) - (self._baseline.present(self._now) if self._baseline else 0.0)

    @staticmethod
    def _both(present: Floats, large: NDArray[np.bool_]) -> Floats:
        of_all = float(present.sum())
        return np.array([of_all, float(present[large].sum()) if large.any() else of_all])

    def _pass(self, now: float, present: Floats) -> float:
        before = self._now
        spent = 0.5 * (self._present + present) * (now - before)
        self._now, self._present = now, present
        self._spent = self._spent + spent
        self.rows.append((now, *self._spent.tolist(), float(present[0])))
        if self._baseline is None:
            return 0.0
        saved = (self._baseline.by(now) - self._baseline.by(before) - spent) / self._baseline.periods
        reward = UNIT * float(saved.mean())
        self._rewarded += reward
        return reward


def gain(periods: Floats, money: Floats | float) -> Floats:
    """By how much less both are than the baseline's, the money weighed; zero for what is as good.

    Args:
        periods: Time that all jobs and that large ones were there, over that under the baseline, (..., 2).
        money: Money for bandwidth likewise, (...).
    """
    value: Floats = 1.0 - periods.mean(axis=-1) + MONEY * (1.0 - np.asarray(money))
    return value


def play_baseline(scenario: Scenario, policy: Policy | None = None) -> Baseline:
    """What a policy does in a scenario, B3c unless another is given."""
    scoring, world, ledger = policy or WeighedCompletion(), scenario.world(), Ledger(scenario)
    while (view := world.advance(scenario.timing.horizon)) is not None:
        ledger.pass_to(view)
        world.obey(scoring.decide(view))
    ledger.close(world)
    periods, money = ledger.totals(world)
    rows = np.array(ledger.rows)
    least = MIN_MONEY * float(world.outcome().work.sum())
    return Baseline(rows[:, 0], rows[:, 1:3], rows[:, 3], periods, max(money, least))


def beside(scenario: Scenario, other: Baseline, policy: Policy) -> tuple[float, float, float]:
    """Time that all jobs and that large ones are there under a policy, and money, over those of the baseline."""
    world = scenario.world()
    play(world, policy, scenario.timing.horizon)
    periods, money = Ledger(scenario).totals(world)
    every, large = (periods / other.periods).tolist()
    return every, large, max(money, 1e-9) / other.money
