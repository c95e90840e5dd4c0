"""A window under an adjuster: it is asked every few seconds, and what it answers is carried out.

1. **Plant.** It carries changes out: which policy a job has when, what is planned for it, and which levels it was
   chosen for.
2. **Codec.** A request tells of the window as the standard's model does.
3. **Play.** Where there is no adjuster, every policy is kept; a job that is named again, or that there is not, is
   passed over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kuayu_conformance.testbed.adjustment.law import Floats, Policy, best, looked_at, policy
from kuayu_conformance.testbed.adjustment.world import ALLOWANCE, INTERVAL_S, PAST, PATIENCE_S, WINDOW_S, Running, World
from kuayu_conformance.testbed.chance import Chance

if TYPE_CHECKING:
    from kuayu_schemas import documents

ASKED_S = 4.0
"""Seconds from one question to the next."""
Adjuster = Callable[["documents.AdjustmentRequest"], "documents.Adjustment | None"]
"""Who is asked: the answer is valid, and its changes can all be carried out, or None where there is none."""


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
        first: Its policy at the beginning.
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


class Wire:
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
            "collective": job.policy.way.collective,
            "period": job.policy.way.period,
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
                    "collective": change.policy.way.collective,
                    "period": change.policy.way.period,
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
    carried: tuple[Carried, ...]

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
    plant, wire = Plant(world), Wire(world)
    request_times: list[float] = []
    planned: list[tuple[int, ...]] = []
    while (now := ASKED_S * len(request_times)) < world.ends_s:
        plant.go_on(now)
        answer = adjuster(wire.request(plant)) if adjuster else None
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
    found = []
    for entry in body["jobs"]:
        number = numbers.pop(entry["job"], None)  # a job that is named again, or that there is not, is passed over
        if number is not None and entry["changes"]:
            job = plant.jobs[number]
            job.plan(plant.now, _read(world, job, entry["changes"]), answer)
            found.append(number)
    return tuple(found)


def _read(world: World, job: JobState, changes: "Sequence[documents.PolicyChange]") -> list[tuple[float, Policy]]:
    names = [world.names[domain] for domain in job.running.domains]
    return [(float(change["after"]), policy(names, change["parts"], change)) for change in changes]
