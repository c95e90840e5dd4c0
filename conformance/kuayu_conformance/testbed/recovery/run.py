"""Plays a window: holds what a backup plan says, and carries failover plans out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import Field

from kuayu_conformance.testbed.recovery.clock import Clock
from kuayu_conformance.testbed.recovery.copying import Copying
from kuayu_conformance.testbed.recovery.failing import Failing
from kuayu_conformance.testbed.recovery.flows import Flows
from kuayu_conformance.testbed.recovery.holding import Holdings, held
from kuayu_conformance.testbed.recovery.recovering import Recovering
from kuayu_conformance.testbed.recovery.state import Incident, JobState, Prediction, begin
from kuayu_conformance.testbed.recovery.wire import Wire
from kuayu_conformance.testbed.recovery.working import Working
from kuayu_conformance.testbed.recovery.world import World

if TYPE_CHECKING:
    from kuayu_schemas import documents

_HOUR_S = 3600.0
SOON_S, AGAIN_S, LATER_S = 3.0, 10.0, 60.0
"""Seconds after a fault or a change of what can be reached until a plan is asked for; until one is asked again; and the
same once nothing has happened for ``STALE_S``."""
STALE_S = 300.0


class Planner(Protocol):
    """Who is asked; None where there is no plan."""

    def backup(self, request: "documents.BackupRequest") -> "documents.BackupPlan | None":
        """A valid backup plan."""

    def failover(self, request: "documents.FailoverRequest") -> "documents.FailoverPlan | None":
        """A valid failover plan whose recoveries are all sound; a job that has none waits."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a window.

    Attributes:
        incidents: In the order of their faults.
        predictions: Of plans that were carried out until a new step was made.
        held: What was held of the backup plan.
        price: Of spares, over the whole window.
        hours: Of the window.
        paused: Share of the time of all jobs that checkpoints took.
        copies: Copies that were taken.
        skipped: Copies that were due and not taken.
        failover_requests: How often a failover plan was asked for.
    """

    incidents: tuple[Incident, ...]
    predictions: tuple[Prediction, ...]
    held: Holdings
    price: float
    hours: float
    paused: float
    copies: int
    skipped: int
    failover_requests: Annotated[int, Field(alias="asked")]  # its name in transcripts


class Run:
    """A window under a planner.

    Attributes:
        state: How things stand.
        failover_requests: How often a failover plan was asked for.
    """

    def __init__(self, world: World, planner: Planner) -> None:
        self._world, self._planner = world, planner
        self.state = begin(world)
        self._wire, self._clock = Wire(world), Clock()
        self._flows = Flows(world, self.state.away)
        self._working = Working(self.state, self._clock)
        self._copying = Copying(self.state, self._clock, self._flows, self._working.refresh)
        parts = (self.state, self._clock, self._flows, self._working, self._copying)
        self._recovering = Recovering(*parts, self._over)
        self._failing = Failing(*parts, self._recovering, self._changed)
        self._tick, self._news = inf, 0.0
        self.failover_requests = 0

    def play(self) -> Outcome:
        """From the begin to the end."""
        kept = held(self._world, self._planner.backup(self._wire.backup()))
        self._show(kept)
        self._copying.plan(list(kept.copies))
        self._failing.plan(self._world.faults)
        self._go_on()
        self._working.end()
        jobs, ends = self.state.jobs, self._world.ends_s
        return Outcome(
            tuple(self._working.incidents),
            tuple(self._working.predictions),
            kept,
            kept.price(self._world) * ends / _HOUR_S,
            ends / _HOUR_S,
            sum(job.paused_s for job in jobs) / (len(jobs) * ends),
            self._copying.taken,
            self._copying.skipped,
            self.failover_requests,
        )

    def _show(self, kept: Holdings) -> None:
        left = list(kept.spares)
        for node, spec in zip(self.state.nodes, self._world.nodes, strict=True):
            if node.job < 0 and left[spec.domain]:
                left[spec.domain] -= 1
                node.shown = True

    def _go_on(self) -> None:
        state, ends = self.state, self._world.ends_s
        for job in state.jobs:
            self._working.refresh(job)
        while state.now < ends:
            then = min(self._clock.next, self._flows.next(state.now), ends)
            finished = self._flows.travel(state.now, then)
            state.now = then
            for flow in finished:
                flow.done()
            while self._clock.next <= state.now:
                self._clock.take()()

    def _changed(self) -> None:
        """Ask when what has changed is known, and not before."""
        self._tick, self._news = inf, self.state.now
        self._clock.at(self.state.now + SOON_S, self._ask)

    def _again(self) -> None:
        tick = self.state.now + (AGAIN_S if self.state.now < self._news + STALE_S else LATER_S)
        if tick < self._tick:
            self._tick = tick
            self._clock.at(tick, partial(self._ticks, tick))

    def _ticks(self, tick: float) -> None:
        if tick == self._tick:
            self._ask()

    def _ask(self) -> None:
        self._tick = inf
        numbers = {job.spec.id: job for job in self._open()}
        if not numbers:
            return
        self.failover_requests += 1
        answer = self._planner.failover(self._wire.failover(self.state))
        for recovery in answer["recoveries"] if answer is not None else ():
            job = numbers.pop(recovery["job"], None)
            if job is not None:
                self._recovering.carry_out(job, recovery)
        if self._open():
            self._again()

    def _open(self) -> list[JobState]:
        """Jobs that are not whole and have no recovery under way."""
        return [job for job in self.state.jobs if job.recovery is None and self.state.broken(job)]

    def _over(self, job: JobState) -> None:
        self._news = self.state.now
        if self.state.broken(job):
            self._again()


def play(world: World, planner: Planner) -> Outcome:
    """What comes of a window under a planner."""
    return Run(world, planner).play()


@dataclass(frozen=True, slots=True)
class Two:
    """A planner made of two functions."""

    backups: "Callable[[documents.BackupRequest], documents.BackupPlan | None]"
    failovers: "Callable[[documents.FailoverRequest], documents.FailoverPlan | None]"

    def backup(self, request: "documents.BackupRequest") -> "documents.BackupPlan | None":
        """A backup plan."""
        return self.backups(request)

    def failover(self, request: "documents.FailoverRequest") -> "documents.FailoverPlan | None":
        """A failover plan."""
        return self.failovers(request)
