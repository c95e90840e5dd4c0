"""What a run costs, and a reward that sums up to the gain over a yardstick on the same scenario.

The yardstick's cost in the same span of time is taken off each reward. What is submitted differs from scenario to
scenario by far more than what a policy can change, and hits both alike: H. Mao et al., "Variance reduction for
reinforcement learning in input-driven environments", ICLR 2019.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from kuayu.scheduling.scene import Floats
from kuayu.training.scheduling.scenarios import taken_over
from kuayu_conformance.testbed.scheduling.baselines import WeighedCompletion
from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.engine.world import World
from kuayu_conformance.testbed.scheduling.scenarios import Scenario

MONEY = 0.1
"""What all of the yardstick's money counts beside all of its time: it is time that users wait for."""
LEAST_MONEY = 3e-5
"""Money for a second of work below which a yardstick's counts as that much: with next to none all would be lost."""
UNIT = 10.0
"""Rewards sum up to the gain times that, so that they are neither large nor small for the critic."""


@dataclass(frozen=True, slots=True)
class Yardstick:
    """How a policy did that others are measured by.

    Attributes:
        at: Instants, ascending.
        spent: Seconds that jobs had been there by then, summed up over jobs.
        active: Jobs that were there at each.
        period: Seconds that jobs were there until the end, in all.
        money: For bandwidth, in all; not below ``LEAST_MONEY`` for the work.
    """

    at: Floats
    spent: Floats
    active: Floats
    period: float
    money: float

    def by(self, instant: float) -> float:
        """Seconds that jobs had been there by an instant."""
        return float(np.interp(instant, self.at, self.spent))

    def there(self, instant: float) -> float:
        """Jobs that were there at an instant."""
        return float(np.interp(instant, self.at, self.active))


class Ledger:
    """Keeps the account of a run.

    Args:
        world: As it was taken over.
        yardstick: What it is measured by, or none if this is to become one.

    Attributes:
        rows: Instant, seconds that jobs have been there since it was taken over, and how many are there.
    """

    def __init__(self, world: World, yardstick: Yardstick | None = None) -> None:
        outcome = world.outcome()
        self._yardstick, self._began, self._money = yardstick, world.now, float(outcome.money.sum())
        self._now, self._spent, self._rewarded = world.now, 0.0, 0.0
        self._active = sum(record.finished == inf for record in outcome.jobs)
        self.rows: list[tuple[float, float, float]] = [(self._now, 0.0, float(self._active))]

    def pass_to(self, view: View) -> float:
        """Time has passed; the reward for it, as a part of the yardstick's time."""
        return self._pass(view.now, len(view.pending) + len(view.running))

    def close(self, world: World, until: float) -> float:
        """The scenario has ended; what is still to be rewarded, so that all rewards sum up to the gain."""
        if self._yardstick is None:
            self._pass(until, sum(record.finished == inf for record in world.outcome().jobs))
            return 0.0
        period, money = self.totals(world, until)
        return UNIT * float(gain(period / self._yardstick.period, money / self._yardstick.money)) - self._rewarded

    def totals(self, world: World, until: float) -> tuple[float, float]:
        """Seconds that jobs were there, and money for bandwidth; over all jobs, since it was taken over."""
        outcome, began = world.outcome(), self._began
        there = sum(max(min(record.finished, until) - max(record.submitted, began), 0.0) for record in outcome.jobs)
        return there, float(outcome.money.sum()) - self._money

    def lead(self) -> float:
        """Jobs that are there beyond those that the yardstick had at this instant."""
        return self._active - (self._yardstick.there(self._now) if self._yardstick else 0.0)

    def _pass(self, now: float, active: int) -> float:
        before = self._now
        spent = 0.5 * (self._active + active) * (now - before)
        self._now, self._active = now, active
        self._spent += spent
        self.rows.append((now, self._spent, float(active)))
        if self._yardstick is None:
            return 0.0
        reward = UNIT * (self._yardstick.by(now) - self._yardstick.by(before) - spent) / self._yardstick.period
        self._rewarded += reward
        return reward


def gain(period: Floats | float, money: Floats | float) -> Floats:
    """By how much less both are than the yardstick's, the money weighed; nought for what is as good.

    Args:
        period: Time that jobs were there, over that under the yardstick.
        money: Money for bandwidth likewise.
    """
    found: Floats = 1.0 - np.asarray(period) + MONEY * (1.0 - np.asarray(money))
    return found


def yardstick(its: Scenario, policy: Policy | None = None) -> Yardstick:
    """What a policy does in a scenario once it has taken over, B3c unless another is given."""
    judge, until = policy or WeighedCompletion(), its.timing.horizon
    world = taken_over(its)
    ledger, before = Ledger(world), float(world.outcome().work.sum())
    while (view := world.advance(until)) is not None:
        ledger.pass_to(view)
        world.obey(judge.decide(view))
    ledger.close(world, until)
    period, money = ledger.totals(world, until)
    at, spent, active = np.array(ledger.rows).T
    return Yardstick(at, spent, active, period, max(money, LEAST_MONEY * (float(world.outcome().work.sum()) - before)))
