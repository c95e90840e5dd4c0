"""What disturbances cost, of a service and of baselines: the share of steps lost, and how long jobs take to recover.

1. **Courses.** Steps that a job makes over time are exact integrals of rates that stay the same for a while. All
   instants and seconds are from the beginning of the window.
2. **Scores.** :class:`Yardstick` measures a window against one who always has the best policy for nothing.
3. **Baselines.** One keeps every policy, the other changes all at once: it names what the clause calls changes, and
   gives every job that would make less than nine tenths the best policy of the levels now in one change, whatever it
   costs.
4. **Beside a service.** What baselines make of a window follows from its seed alone; it is worked out once in a
   process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isinf
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.caching import Memory
from kuayu_conformance.testbed.adjustment.law import AskedJob, Floats, Level, Motion, Policy, best, jobs, levels, rate
from kuayu_conformance.testbed.adjustment.run import Adjuster, Carried, JobCourse, Outcome, play
from kuayu_conformance.testbed.adjustment.world import CELL_S, WINDOW_S, Event, Running, World

if TYPE_CHECKING:
    from kuayu_schemas import documents

ENOUGH = 0.9
"""Of the steps of the best policy: who makes so many has recovered."""
KEPT, AT_ONCE = "every policy kept", "all changes at once"
_EDGE = 1e-9
_METHOD: "documents.AdjustmentMethod" = {"name": "opponent", "version": "1"}


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Steps that are made until each of some instants; in between, at one rate.

    Attributes:
        instants: Instants that rise, from zero to the end of the window, ``(N,)``.
        made: Steps until then, ``(N,)``.
    """

    instants: Floats
    made: Floats

    def steps(self, begin: Floats, end: Floats) -> Floats:
        """Steps from some instants to others."""
        made: Floats = np.interp(end, self.instants, self.made) - np.interp(begin, self.instants, self.made)
        return made

    @property
    def total(self) -> float:
        """Steps of the whole window."""
        return float(self.made[-1])


class Courses:
    """What a job makes of a window by one policy or another."""

    def __init__(self, world: World, running: Running) -> None:
        where = list(running.domains)
        self._running = running
        self._loads, self._latency = world.loads[:, where], world.latency[:, where][:, :, where]
        self._edges: Floats = CELL_S * np.arange(len(world.loads) + 1, dtype=np.float64)
        self.rate = cache(self._rate)

    def _rate(self, policy: Policy) -> Floats:
        """Steps a second by a policy in each cell, ``(cells,)``."""
        return rate(self._running.law, self._loads, self._latency, policy)

    def best(self) -> Course:
        """Of one who always has the best policy, for nothing."""
        return self._course(best(self._running.law, self._loads, self._latency, self._running.total).rates)

    def kept(self, policy: Policy) -> Course:
        """By one policy."""
        return self._course(self.rate(policy))

    def carried(self, first: Policy, changes: Sequence[Carried]) -> Course:
        """By what is in force when, without a step while a change is on its way."""
        ends = self._edges[-1]
        turns = [instant for change in changes for instant in (change.begins, change.ends) if instant < ends]
        instants = np.unique(np.concatenate([self._edges, turns]))
        middle = 0.5 * (instants[1:] + instants[:-1])
        cell = np.minimum((middle / CELL_S).astype(int), len(self._edges) - 2)
        rates = self.rate(first)[cell]
        for change in changes:
            later = middle > change.begins
            rates[later] = self.rate(change.policy)[cell[later]]
            rates[later & (middle < change.ends)] = 0.0
        return Course(instants, np.concatenate([[0.0], np.cumsum(rates * np.diff(instants))]))

    def _course(self, rates: Floats) -> Course:
        return Course(self._edges, np.concatenate([[0.0], np.cumsum(rates * CELL_S)]))


def greatest_loss(made: Course, kept: Course, begins: float, ends: float, window: float) -> float:
    """Greatest share of a window's steps that is lost, of all windows that overlap a time; zero where none is.

    Between two instants at which a rate changes, at either end of the window, the share rises or falls and does nothing
    else, so that the windows that begin or end at these are all that count.
    """
    first = _beginnings(made, kept, max(0.0, begins - window), min(ends, kept.instants[-1] - window), window)
    would = kept.steps(first, first + window)
    lost = 1.0 - made.steps(first, first + window)[would > 0.0] / would[would > 0.0]
    return max(0.0, float(lost.max(initial=0.0)))


def recovered_at(made: Course, most: Course, begins: float, ends: float, window: float, share: float) -> float:
    """When a job has recovered: it makes a share of the most steps, and every window from then on has it, too.

    Windows lie between the two instants. Between the instants at which a rate changes, what is too much or too little
    is linear, so that it is zero where a line says. Infinite where the last window has too little.
    """
    first = _beginnings(made, most, begins, ends - window, window)
    due = share * most.steps(first, first + window)
    spare = made.steps(first, first + window) - due + _EDGE * due
    short = np.flatnonzero(spare < 0.0)
    if not len(short):
        return _goes(made, most, begins, share)
    last = short[-1]
    if last == len(first) - 1:
        return inf
    part = -spare[last] / (spare[last + 1] - spare[last])
    return _goes(made, most, float(first[last] + part * (first[last + 1] - first[last])), share)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A judged event, and what came of it.

    Attributes:
        event: What happened.
        until: When the next event did, or the window ended, s.
        loss: Of the job that lost most while it was adjusted, share of a window's steps.
        recovery_s: Of the slowest job; infinite where one never made enough.
        changes: That were begun in this time, of all jobs.
    """

    event: Event
    until: float
    loss: float
    recovery_s: float
    changes: int


@dataclass(frozen=True, slots=True)
class Score:
    """What a window comes to.

    Attributes:
        disturbances: Judged events in the order of time.
        share: Steps in parts of those of one who always has the best policy for nothing, the mean of jobs.
    """

    disturbances: tuple[Disturbance, ...]
    share: float


class Yardstick:
    """Measures what comes of a window; the best of it is found once.

    Args:
        world: The window.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._courses = [Courses(world, job) for job in world.jobs]
        self.most: list[Course] = [courses.best() for courses in self._courses]

    def made(self, outcome: Outcome, number: int) -> Course:
        """Steps of a job."""
        job = outcome.jobs[number]
        return self._courses[number].carried(job.first, job.carried)

    def score(self, outcome: Outcome) -> Score:
        """What an outcome comes to."""
        made = [self.made(outcome, number) for number in range(len(outcome.jobs))]
        events = self._world.events
        ends = [*(event.instant for event in events[1:]), self._world.ends_s]
        found = [
            self._disturbance(outcome, made, event, until)
            for event, until in zip(events, ends, strict=True)
            if event.judged
        ]
        shares = [course.total / most.total for course, most in zip(made, self.most, strict=True)]
        return Score(tuple(found), sum(shares) / len(shares))

    def _disturbance(self, outcome: Outcome, made: Sequence[Course], event: Event, until: float) -> Disturbance:
        losses, changes = [0.0], 0
        for number, job in enumerate(outcome.jobs):
            begun = [change for change in job.carried if event.instant <= change.begins < until]
            if begun:
                changes += len(begun)
                kept = self._courses[number].kept(job.at(begun[0].begins))
                losses.append(greatest_loss(made[number], kept, begun[0].begins, begun[-1].ends, WINDOW_S))
        adjusted = _adjusted(outcome, event.instant, until)
        seconds = [
            self._recovery(made[number], self.most[number], adjusted[number], event.instant, until)
            for number in range(len(made))
        ]
        return Disturbance(event, until, max(losses), max(seconds), changes)

    def _recovery(self, made: Course, most: Course, adjusted: float, begins: float, until: float) -> float:
        """Seconds from the adjustment to the recovery; zero where it had recovered by then or nobody adjusted it."""
        recovered = recovered_at(made, most, begins, until, WINDOW_S, ENOUGH)
        return inf if isinf(recovered) else max(0.0, recovered - adjusted)


def at_once(request: "documents.AdjustmentRequest") -> "documents.Adjustment | None":
    """What is best at the levels now, at once; no answer where nothing has changed."""
    current = list(levels(request))
    changed = [level for level in current if level.motion is Motion.CHANGED]
    if not changed:
        return None
    return {
        "revision": request["revision"],
        "method": _METHOD,
        "triggers": [_trigger(level) for level in changed],
        "jobs": [_job(job) for job in jobs(request, current)],
    }


ADJUSTERS: Mapping[str, Adjuster | None] = {KEPT: None, AT_ONCE: at_once}
"""Who adjusts; None where nobody does."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What a baseline did in a window, and what that comes to."""

    outcome: Outcome
    score: Score


_KNOWN: Memory[Mapping[str, Beside]] = Memory(100)
"""By the seed of the window; those of a full run, some tens of kB each."""


def beside(world: World, yardstick: Yardstick) -> Mapping[str, Beside]:
    """All baselines in a window, by name.

    Args:
        world: The window, as it was drawn.
        yardstick: Of the same window.
    """

    def found() -> Mapping[str, Beside]:
        outcomes = {name: play(world, adjuster) for name, adjuster in ADJUSTERS.items()}
        return MappingProxyType({name: Beside(outcome, yardstick.score(outcome)) for name, outcome in outcomes.items()})

    return _KNOWN.of(world.seed, found)


def _goes(made: Course, most: Course, begins: float, share: float) -> float:
    """The first instant from some one on at which a job makes a share of the most steps; there is one."""
    turns = np.union1d(made.instants, most.instants)
    instants = np.concatenate([[begins], turns[turns > begins]])
    enough = made.steps(instants[:-1], instants[1:]) >= (share - _EDGE) * most.steps(instants[:-1], instants[1:])
    return float(instants[int(enough.argmax())])


def _beginnings(one: Course, other: Course, least: float, most: float, window: float) -> Floats:
    """Where windows may begin, between two instants, so that a rate changes at either end; these themselves, too."""
    turns = np.concatenate([one.instants, other.instants])
    found = np.concatenate([turns, turns - window])
    kept = found[(found > least) & (found < most)]
    made: Floats = np.unique(np.concatenate([[least], kept, [max(least, most)]]))
    return made


def _adjusted(outcome: Outcome, begins: float, until: float) -> list[float]:
    """When the first answer that has changes is in force, by job; infinitely late where there is no such answer.

    For a job that it has no changes for, it is so when it is for the last of the others. What a later answer took the
    place of before it began does not count.
    """
    within = [
        number
        for number, instant in enumerate(outcome.request_times)
        if begins <= instant < until and outcome.planned[number]
    ]
    if not within:
        return [inf] * len(outcome.jobs)
    first = within[0]
    own = [_in_force(job, first) for job in outcome.jobs]
    last = max((instant for instant in own if instant is not None), default=outcome.request_times[first])
    return [
        last if number not in outcome.planned[first] else outcome.request_times[first] if instant is None else instant
        for number, instant in enumerate(own)
    ]


def _in_force(job: JobCourse, answer: int) -> float | None:
    """When the last change of an answer is; None where none of them began."""
    return max((change.ends for change in job.carried if change.answer == answer), default=None)


def _trigger(level: Level) -> "documents.AdjustmentTrigger":
    trigger: documents.AdjustmentTrigger
    trigger = {"kind": level.kind, "domain": level.domain, "before": level.before, "now": level.now}
    return trigger if level.target is None else {**trigger, "target": level.target}


def _job(job: AskedJob) -> "documents.JobAdjustment":
    stays, goes = job.rate(job.outlook), job.best_rate
    change = stays < ENOUGH * goes
    return {
        "job": job.id,
        "rate": job.rate(job.in_force),
        "expected_rate": goes if change else stays,
        "changes": [_change(job)] if change else [],
    }


def _change(job: AskedJob) -> "documents.PolicyChange":
    policy = job.best
    order = [job.domains[place] for place in policy.order]
    return {
        "after": 0.0,
        "parts": list(policy.parts),
        "collective": policy.way.collective,
        "period": policy.way.period,
        "order": order,
    }
