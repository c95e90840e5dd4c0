"""The plan: which node changes its state when, and by what. Fixed by design before any recogniser was run.

Changes into each of the six states are kept as equal in number as can be: the next one leads into the state that is
short, so that no state is judged by a handful. Straggling stays behind, since families are used up. It takes nodes that
go from one trouble into another, as real ones do: a throttled device fails, a hung node is switched off.

What telemetry cannot decide is left out:

- a single node that hangs without a counted fault: a notebook whose reader thinks, a server that gets no requests, and
  a job that computes on its processors look the same (recorded on an H100, ``tests/perception/recordings``);
- silent slowness of servers of inference: their load changes more than that, and nobody waits for them;
- two slow nodes in a family at a time, and slowness from before the first sample of a job: nothing to compare with;
- a slow node whose job has ended: nothing of it shows (it would be degraded);
- a degraded network card where no flows are reported, and one of a single node;
- a stuck kernel in a family without a counted fault: its node looks as those do that wait for it;
- a device lost in a family: the job could not go on, and the loss would show as a fatal fault;
- steps longer than two seconds, jobs that read nothing, onsets that a checkpoint or an evaluation would hide;
- changes within twelve seconds of a partition of the node's domain.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.telemetry.jobs import Runs
from kuayu_conformance.testbed.telemetry.ledger import Ledger
from kuayu_conformance.testbed.telemetry.mending import Mending
from kuayu_conformance.testbed.telemetry.population import Population
from kuayu_conformance.testbed.telemetry.troubles import Troubles
from kuayu_conformance.testbed.telemetry.values import (
    BUSY,
    DEGRADED,
    DWELL,
    FAULTY,
    IDLE,
    OFFLINE,
    STATES,
    STRAGGLING,
    TICKS,
    Scale,
)
from kuayu_conformance.testbed.telemetry.work import Work

MARGIN = 12
"""Seconds around a partition in which nothing changes in its domain."""
_PARTITION = 27
_BEFORE_PARTITION = 14

Action = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Cut:
    """The partition: number of the domain, seconds."""

    domain: int
    since: int
    until: int


def cut(scale: Scale, seed: str) -> Cut:
    """Which domain is partitioned, and when: soon after the warm-up, so that its return is seen too."""
    since = scale.warm_up + _BEFORE_PARTITION
    return Cut(Chance(seed, "partition").below(scale.domains), since, since + _PARTITION)


class Planner:
    """Makes changes second by second, until every node could still be judged after the last of them."""

    def __init__(self, scale: Scale, seed: str, population: Population) -> None:
        self.cut = cut(scale, seed)
        self._scale = scale
        self._chance = Chance(seed, "plan")
        self._last = (scale.total - DWELL) * TICKS
        self.ledger = Ledger(population, self._chance)
        self.runs = Runs(stream(seed, "runs"))
        self._work = Work(self.ledger, self.runs, self._chance, self._open)
        self._actions = self._weights()

    def plan(self) -> Ledger:
        """The whole plan."""
        self._work.begin()
        owed = 0.0
        for second in range(DWELL, self._scale.total):
            owed += self._scale.churn * self.ledger.population.nodes
            for tick in self._instants(second, owed):
                done = len(self.ledger.changes)
                self._work.give_up(tick)
                if tick < self._last and owed > 0:
                    self._one(tick)
                owed -= len(self.ledger.changes) - done
        return self.ledger

    def _instants(self, second: int, owed: float) -> list[int]:
        """Ticks at which something may change, one for each change owed and one at the end of the second."""
        drawn = [second * TICKS + self._chance.below(TICKS) for _ in range(max(0, round(owed)))]
        return [*sorted(drawn), second * TICKS + TICKS - 1]

    def _one(self, tick: int) -> None:
        """Bring about a change into the state that is shortest, or into the next where there is no way."""
        counts = self.ledger.counts
        short = sorted(range(len(STATES)), key=lambda state: counts[state] + self._chance.fraction())
        for state in short:
            for action in self._chance.order(self._actions[state]):
                if action(tick):
                    return

    def _open(self, domain: int, tick: int) -> bool:
        near = self.cut.since - MARGIN <= tick / TICKS <= self.cut.until + MARGIN
        return tick < self._last and not (near and domain == self.cut.domain)

    def _weights(self) -> dict[int, tuple[tuple[Action, float], ...]]:
        """Ways into each state, with the share of the changes that is tried by each first."""
        work, open_ = self._work, self._open
        troubles = Troubles(self.ledger, work, self._chance, open_)
        mending = Mending(self.ledger, work, self._chance, open_)
        return {
            IDLE: ((mending.to_idle, 6.0), (work.stop_alone, 2.0), (work.stop_family, 0.7)),
            BUSY: ((mending.to_busy, 6.0), (work.start_family, 1.2), (work.start_alone, 1.0)),
            DEGRADED: (
                (troubles.slow_alone, 3.0),
                (troubles.faults_at_work, 2.0),
                (troubles.faults_at_rest, 1.0),
                (troubles.lose_at_work, 2.0),
                (troubles.lose_at_rest, 1.5),
            ),
            STRAGGLING: ((troubles.straggle, 1.0),),
            FAULTY: ((troubles.fail_at_work, 3.0), (troubles.fail_worse, 2.5)),
            OFFLINE: (
                (troubles.vanish_at_rest, 2.0),
                (troubles.vanish_at_work, 2.5),
                (troubles.vanish_worse, 2.5),
            ),
        }
