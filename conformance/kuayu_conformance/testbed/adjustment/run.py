"""Plays a window under an adjuster: asks every few seconds, and carries out what it answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuayu_conformance.testbed.adjustment.law import Policy
from kuayu_conformance.testbed.adjustment.plant import Carried, JobState, Plant
from kuayu_conformance.testbed.adjustment.reading import policy
from kuayu_conformance.testbed.adjustment.wire import Wire
from kuayu_conformance.testbed.adjustment.world import World

if TYPE_CHECKING:
    from kuayu_schemas import documents

ASKED_S = 4.0
"""Seconds from one question to the next."""

Adjuster = Callable[["documents.AdjustmentRequest"], "documents.Adjustment | None"]
"""Who is asked: the answer is valid, and its changes can all be carried out, or None where there is none."""


@dataclass(frozen=True, slots=True)
class JobCourse:
    """What became of a job's policy.

    Attributes:
        first: At the begin.
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
