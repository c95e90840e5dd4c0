"""What disturbances cost: the share of steps lost while jobs are adjusted, and how long they take to recover."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isinf

from kuayu_conformance.testbed.adjustment.courses import Course, Courses, greatest_loss, recovered_at
from kuayu_conformance.testbed.adjustment.disturbing import Event
from kuayu_conformance.testbed.adjustment.run import JobCourse, Outcome
from kuayu_conformance.testbed.adjustment.world import WINDOW_S, World

ENOUGH = 0.9
"""Of the steps of the best policy: who makes so many has recovered."""


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
        """Seconds from the adjustment to the recovery; nought where it had recovered by then or nobody adjusted it."""
        recovered = recovered_at(made, most, begins, until, WINDOW_S, ENOUGH)
        return inf if isinf(recovered) else max(0.0, recovered - adjusted)


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
