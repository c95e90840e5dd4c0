"""Carries changes out: which policy a job has when, what is planned for it, and which levels it was chosen for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kuayu_conformance.testbed.adjustment.jobs import Running
from kuayu_conformance.testbed.adjustment.law import Floats, Policy, best
from kuayu_conformance.testbed.adjustment.levels import looked_at
from kuayu_conformance.testbed.adjustment.world import INTERVAL_S, PAST, PATIENCE_S, World


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is planned.

    Attributes:
        not_before: Seconds from the begin of the window.
        policy: That it leads to.
        answer: Number of the answer that planned it.
    """

    not_before: float
    policy: Policy
    answer: int


@dataclass(frozen=True, slots=True)
class Carried:
    """A change that has begun.

    Attributes:
        begins: When; from then on no step is made.
        ends: When the policy is in force.
        policy: That it leads to.
        answer: Number of the answer that planned it.
    """

    begins: float
    ends: float
    policy: Policy
    answer: int


@dataclass(slots=True, eq=False)
class JobState:
    """A job that runs.

    Attributes:
        running: Which.
        first: Its policy at the begin.
        carried: Changes that have begun, in their order.
        planned: Those that have not, in their order.
    """

    running: Running
    first: Policy
    carried: list[Carried] = field(default_factory=list)
    planned: list[Change] = field(default_factory=list)

    @property
    def policy(self) -> Policy:
        """In force, or on its way."""
        return self.carried[-1].policy if self.carried else self.first

    @property
    def ready(self) -> float:
        """From when the next change may begin."""
        return self.carried[-1].ends if self.carried else 0.0

    def go_on(self, now: float) -> None:
        """Begin what is due until then; what changes nothing is passed over."""
        begun = 0
        for change in self.planned:
            begins = max(change.not_before, self.ready)
            if begins > now:
                break
            begun += 1
            if not change.policy.is_like(self.policy):
                ends = begins + self.running.law.pause(self.policy, change.policy)
                self.carried.append(Carried(begins, ends, change.policy, change.answer))
        del self.planned[:begun]

    def plan(self, now: float, changes: Sequence[tuple[float, Policy]], answer: int) -> None:
        """Let changes take the place of those that have not begun; where there are none, these stay."""
        if changes:
            self.planned = [Change(now + after, policy, answer) for after, policy in changes]
            self.go_on(now)


class Plant:
    """Jobs of a window, and levels that are told with them.

    Attributes:
        now: Seconds from the begin.
        jobs: As they stand.
        loads: Levels that the policy in force was chosen for, ``(domains,)``.
        latency: Likewise, ``(domains, domains)``.
    """

    def __init__(self, world: World) -> None:
        """Begin with what is best at the first levels."""
        self._world = world
        self.now = 0.0
        self.loads, self.latency = self.levels()
        self.jobs = [JobState(job, self._first(job)) for job in world.jobs]

    @property
    def row(self) -> int:
        """Intervals that were measured by now."""
        return PAST + int(self.now / INTERVAL_S)

    def levels(self) -> tuple[Floats, Floats]:
        """Levels now, of loads and of latencies."""
        last = slice(self.row - looked_at(INTERVAL_S, PATIENCE_S), self.row)
        world = self._world
        return np.median(world.measured_loads[last], axis=0), np.median(world.measured_latency[last], axis=0)

    def go_on(self, now: float) -> None:
        """Let time pass."""
        self.now = now
        for job in self.jobs:
            job.go_on(now)

    def note_levels(self) -> None:
        """Levels now are from here on those that the policy in force was chosen for."""
        self.loads, self.latency = self.levels()

    def _first(self, running: Running) -> Policy:
        where = list(running.domains)
        loads, latency = self.loads[None, where], self.latency[None][:, where][:, :, where]
        return best(running.law, loads, latency, running.total).policy(0)
