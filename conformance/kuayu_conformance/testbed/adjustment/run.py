"""A window under an adjuster: it is asked every few seconds, what it answers is carried out, and what that costs.

1. **Plant.** It carries changes out: which policy a job has when, what is planned for it, and which levels it was
   chosen for.
2. **Codec.** A request tells of the window as the standard's model does.
3. **Play.** Where there is no adjuster, every policy is kept; a job that is named again, or that there is not, is
   passed over.
4. **Courses.** Steps that a job makes over time are exact integrals of rates that stay the same for a while. All
   instants and seconds are from the beginning of the window.
5. **Scores.** :class:`Scorer` measures a window against one who always has the best policy for nothing.
6. **Baselines.** One keeps every policy, the other changes all at once: it names what the clause calls changes, and
   gives every job that would make less than nine tenths the best policy of the levels now in one change, whatever it
   costs.
7. **Beside a service.** What baselines make of a window follows from its seed alone; it is worked out once in a
   process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf, isinf
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.caching import Memory
from kuayu_conformance.testbed.adjustment.world import (
    ALLOWANCE,
    CELL_S,
    INTERVAL_S,
    PAST,
    PATIENCE_S,
    WINDOW_S,
    Event,
    Floats,
    Level,
    Motion,
    Policy,
    RequestedJob,
    Running,
    World,
    best,
    jobs,
    levels,
    looked_at,
    policy,
    rate,
)
from kuayu_conformance.testbed.chance import Chance

if TYPE_CHECKING:
    from kuayu_schemas import documents

ASKED_S = 4.0
"""Seconds from one question to the next."""
Adjuster = Callable[["documents.AdjustmentRequest"], "documents.Adjustment | None"]
"""Who is asked: the answer is valid, and its changes can all be carried out, or None where there is none."""

ENOUGH = 0.9
"""Of the steps of the best policy: who makes so many has recovered."""
KEPT, AT_ONCE = "every policy kept", "all changes at once"
_EDGE = 1e-9
_METHOD: "documents.AdjustmentMethod" = {"name": "opponent", "version": "1"}


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is planned.

    Attributes:
        not_before: Seconds from the beginning of the window.
        policy: That it leads to.
        answer: Number of the answer that planned it.
    """

    not_before: float
    policy: Policy
    answer: int


@dataclass(frozen=True, slots=True)
class ChangeInForce:
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
        first: Its policy at the beginning.
        carried: Changes that have begun, in their order.
        planned: Those that have not, in their order.
    """

    running: Running
    first: Policy
    carried: list[ChangeInForce] = field(default_factory=list)
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
                self.carried.append(ChangeInForce(begins, ends, change.policy, change.answer))
        del self.planned[:begun]

    def plan(self, now: float, changes: Sequence[tuple[float, Policy]], answer: int) -> None:
        """Let changes take the place of those that have not begun; where there are none, these stay."""
        if changes:
            self.planned = [Change(now + after, policy, answer) for after, policy in changes]
            self.go_on(now)


class Plant:
    """Jobs of a window, and levels that are told with them.

    Attributes:
        now: Seconds from the beginning.
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


class Codec:
    """Tells of a window."""

    def __init__(self, world: World) -> None:
        chance = Chance(world.seed, "wire")
        self._world = world
        self._epoch, self._asked = f"{chance.below(1 << 48):012x}", 0
        count = len(world.names)
        self._pairs = [(one, other) for one in range(count) for other in range(count) if one != other]

    def request(self, plant: Plant) -> "documents.AdjustmentRequest":
        """A valid request about all jobs as they stand."""
        self._asked += 1
        world, past = self._world, slice(plant.row - PAST, plant.row)
        loads, latency = world.measured_loads[past].T, world.measured_latency[past].transpose(1, 2, 0)
        return {
            "revision": {"epoch": self._epoch, "number": self._asked},
            "interval": INTERVAL_S,
            "patience": PATIENCE_S,
            "window": WINDOW_S,
            "allowance": ALLOWANCE,
            "domains": [
                {"id": name, "level": float(plant.loads[domain]), "loads": loads[domain].tolist()}
                for domain, name in enumerate(world.names)
            ],
            "links": [
                {
                    "source": world.names[one],
                    "target": world.names[other],
                    "bandwidth": float(world.bandwidth[one, other]),
                    "level": float(plant.latency[one, other]),
                    "latencies": latency[one, other].tolist(),
                }
                for one, other in self._pairs
            ],
            "jobs": [self._job(job, plant.now) for job in plant.jobs],
        }

    def _job(self, job: JobState, now: float) -> "documents.AdjustedJob":
        law = job.running.law
        body: documents.AdjustedJob = {
            "id": job.running.id,
            "shares": [
                {"domain": self._world.names[domain], "parts": parts, "part_time": float(part_time)}
                for domain, parts, part_time in zip(job.running.domains, job.policy.parts, law.part_times, strict=True)
            ],
            "nodes": law.nodes,
            "node_bandwidth": law.node_bandwidth,
            "node_latency": law.node_latency,
            "exchange": law.exchange,
            "collective": job.policy.method.collective,
            "period": job.policy.method.period,
            "order": self._order(job, job.policy),
            "move_time": law.move_time,
            "switch_time": law.switch_time,
        }
        if job.carried:
            body["changed"] = max(0.0, round(now - job.ready, 6))
        if job.planned:
            body["planned"] = [
                {
                    "after": max(0.0, round(change.not_before - now, 6)),
                    "parts": list(change.policy.parts),
                    "collective": change.policy.method.collective,
                    "period": change.policy.method.period,
                    "order": self._order(job, change.policy),
                }
                for change in job.planned
            ]
        return body

    def _order(self, job: JobState, policy: Policy) -> list[str]:
        names = [self._world.names[domain] for domain in job.running.domains]
        return [names[place] for place in policy.order]


@dataclass(frozen=True, slots=True)
class JobCourse:
    """What became of a job's policy.

    Attributes:
        first: At the beginning.
        carried: Changes, in their order; the last may end after the window.
    """

    first: Policy
    carried: tuple[ChangeInForce, ...]

    def at(self, instant: float) -> Policy:
        """In force or on its way just before an instant."""
        begun = [change.policy for change in self.carried if change.begins < instant]
        return begun[-1] if begun else self.first


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a window.

    Attributes:
        request_times: When questions were asked.
        planned: Jobs that each answer has changes for, by number.
        jobs: In the order of the world's.
    """

    request_times: tuple[float, ...]
    planned: tuple[tuple[int, ...], ...]
    jobs: tuple[JobCourse, ...]


def play(world: World, adjuster: Adjuster | None) -> Outcome:
    """What comes of a window; where there is no adjuster, every policy is kept."""
    plant, codec = Plant(world), Codec(world)
    request_times: list[float] = []
    planned: list[tuple[int, ...]] = []
    while (now := ASKED_S * len(request_times)) < world.ends_s:
        plant.go_on(now)
        answer = adjuster(codec.request(plant)) if adjuster else None
        planned.append(() if answer is None else _carry_out(plant, world, answer, len(request_times)))
        request_times.append(now)
    plant.go_on(world.ends_s)
    return Outcome(
        tuple(request_times), tuple(planned), tuple(JobCourse(job.first, tuple(job.carried)) for job in plant.jobs)
    )


def _carry_out(plant: Plant, world: World, body: "documents.Adjustment", answer: int) -> tuple[int, ...]:
    """Plan what an answer says; the jobs that it has changes for."""
    if body["triggers"] or any(job["changes"] for job in body["jobs"]):
        plant.note_levels()
    numbers = {job.running.id: number for number, job in enumerate(plant.jobs)}
    changed = []
    for entry in body["jobs"]:
        number = numbers.pop(entry["job"], None)  # a job that is named again, or that there is not, is passed over
        if number is not None and entry["changes"]:
            job = plant.jobs[number]
            job.plan(plant.now, _read(world, job, entry["changes"]), answer)
            changed.append(number)
    return tuple(changed)


def _read(world: World, job: JobState, changes: "Sequence[documents.PolicyChange]") -> list[tuple[float, Policy]]:
    names = [world.names[domain] for domain in job.running.domains]
    return [(float(change["after"]), policy(names, change["parts"], change)) for change in changes]


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Steps that are made until each of some instants; in between, at one rate.

    Attributes:
        instants: Instants that rise, from zero to the end of the window, ``(N,)``.
        steps_done: Steps until then, ``(N,)``.
    """

    instants: Floats
    steps_done: Floats

    def steps(self, begin: Floats, end: Floats) -> Floats:
        """Steps from some instants to others."""
        steps_done: Floats = np.interp(end, self.instants, self.steps_done) - np.interp(
            begin, self.instants, self.steps_done
        )
        return steps_done

    @property
    def total(self) -> float:
        """Steps of the whole window."""
        return float(self.steps_done[-1])


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

    def with_policy(self, policy: Policy) -> Course:
        """By one policy."""
        return self._course(self.rate(policy))

    def carried(self, first: Policy, changes: Sequence[ChangeInForce]) -> Course:
        """By what is in force when, without a step while a change is on its way."""
        ends = self._edges[-1]
        moments = [instant for change in changes for instant in (change.begins, change.ends) if instant < ends]
        instants = np.unique(np.concatenate([self._edges, moments]))
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


def greatest_loss(course: Course, unchanged: Course, begins: float, ends: float, window: float) -> float:
    """Greatest share of a window's steps that is lost, of all windows that overlap a time; zero where none is.

    Between two instants at which a rate changes, at either end of the window, the share rises or falls and does nothing
    else, so that the windows that begin or end at these are all that count.
    """
    first = _beginnings(
        course, unchanged, max(0.0, begins - window), min(ends, unchanged.instants[-1] - window), window
    )
    would = unchanged.steps(first, first + window)
    lost = 1.0 - course.steps(first, first + window)[would > 0.0] / would[would > 0.0]
    return max(0.0, float(lost.max(initial=0.0)))


def recovered_at(course: Course, most: Course, begins: float, ends: float, window: float, share: float) -> float:
    """When a job has recovered: it makes a share of the most steps, and every window from then on has it, too.

    Windows lie between the two instants. Between the instants at which a rate changes, what is too much or too little
    is linear, so that it is zero where a line says. Infinite where the last window has too little.
    """
    first = _beginnings(course, most, begins, ends - window, window)
    due = share * most.steps(first, first + window)
    spare = course.steps(first, first + window) - due + _EDGE * due
    short = np.flatnonzero(spare < 0.0)
    if not len(short):
        return _goes(course, most, begins, share)
    last = short[-1]
    if last == len(first) - 1:
        return inf
    part = -spare[last] / (spare[last + 1] - spare[last])
    return _goes(course, most, float(first[last] + part * (first[last + 1] - first[last])), share)


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


class Scorer:
    """Measures what comes of a window; the best of it is found once.

    Args:
        world: The window.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._courses = [Courses(world, job) for job in world.jobs]
        self.most: list[Course] = [courses.best() for courses in self._courses]

    def course(self, outcome: Outcome, number: int) -> Course:
        """Steps of a job."""
        job = outcome.jobs[number]
        return self._courses[number].carried(job.first, job.carried)

    def score(self, outcome: Outcome) -> Score:
        """What an outcome comes to."""
        courses = [self.course(outcome, number) for number in range(len(outcome.jobs))]
        events = self._world.events
        ends = [*(event.instant for event in events[1:]), self._world.ends_s]
        disturbances = [
            self._disturbance(outcome, courses, event, until)
            for event, until in zip(events, ends, strict=True)
            if event.judged
        ]
        shares = [course.total / most.total for course, most in zip(courses, self.most, strict=True)]
        return Score(tuple(disturbances), sum(shares) / len(shares))

    def _disturbance(self, outcome: Outcome, courses: Sequence[Course], event: Event, until: float) -> Disturbance:
        losses, changes = [0.0], 0
        for number, job in enumerate(outcome.jobs):
            begun = [change for change in job.carried if event.instant <= change.begins < until]
            if begun:
                changes += len(begun)
                unchanged = self._courses[number].with_policy(job.at(begun[0].begins))
                losses.append(greatest_loss(courses[number], unchanged, begun[0].begins, begun[-1].ends, WINDOW_S))
        adjusted = _adjusted(outcome, event.instant, until)
        seconds = [
            self._recovery(courses[number], self.most[number], adjusted[number], event.instant, until)
            for number in range(len(courses))
        ]
        return Disturbance(event, until, max(losses), max(seconds), changes)

    def _recovery(self, course: Course, most: Course, adjusted: float, begins: float, until: float) -> float:
        """Seconds from the adjustment to the recovery; zero where it had recovered by then or nobody adjusted it."""
        recovered = recovered_at(course, most, begins, until, WINDOW_S, ENOUGH)
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


def beside(world: World, scorer: Scorer) -> Mapping[str, Beside]:
    """All baselines in a window, by name.

    Args:
        world: The window, as it was drawn.
        scorer: Of the same window.
    """

    def compute() -> Mapping[str, Beside]:
        outcomes = {name: play(world, adjuster) for name, adjuster in ADJUSTERS.items()}
        return MappingProxyType({name: Beside(outcome, scorer.score(outcome)) for name, outcome in outcomes.items()})

    return _KNOWN.of(world.seed, compute)


def _goes(course: Course, most: Course, begins: float, share: float) -> float:
    """The first instant from some one on at which a job makes a share of the most steps; there is one."""
    moments = np.union1d(course.instants, most.instants)
    instants = np.concatenate([[begins], moments[moments > begins]])
    enough = course.steps(instants[:-1], instants[1:]) >= (share - _EDGE) * most.steps(instants[:-1], instants[1:])
    return float(instants[int(enough.argmax())])


def _beginnings(one: Course, other: Course, least: float, most: float, window: float) -> Floats:
    """Where windows may begin, between two instants, so that a rate changes at either end; these themselves, too."""
    moments = np.concatenate([one.instants, other.instants])
    candidates = np.concatenate([moments, moments - window])
    inside = candidates[(candidates > least) & (candidates < most)]
    instants: Floats = np.unique(np.concatenate([[least], inside, [max(least, most)]]))
    return instants


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


def _job(job: RequestedJob) -> "documents.JobAdjustment":
    stays, goes = job.rate(job.final_policy), job.best_rate
    change = stays < ENOUGH * goes
    return {
        "job": job.id,
        "rate": job.rate(job.in_force),
        "expected_rate": goes if change else stays,
        "changes": [_change(job)] if change else [],
    }


def _change(job: RequestedJob) -> "documents.PolicyChange":
    policy = job.best
    order = [job.domains[place] for place in policy.order]
    return {
        "after": 0.0,
        "parts": list(policy.parts),
        "collective": policy.method.collective,
        "period": policy.method.period,
        "order": order,
    }
