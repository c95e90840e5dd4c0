"""Phases of training: the definition as far as it can be applied to the past, and beyond by a power law."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

from minimal_server.core import Answer, Json, Request
from minimal_server.naming import Wrong
from minimal_server.sizing import Sizing

METHOD_OF_PHASES = {"name": "minimal server: definition, and power law", "version": "1"}
STRETCH, SLOW = 1.25, 0.1
WAITED, POINTS = 0.1, 10
LOOKED_BACK = 2.5
"""Part of the past, in its end over its begin, to which a power law is fitted."""
FADING = 0.25
"""By which power of the steps the slope of a loss falls in its turn."""
ENOUGH = 8
OUTLIER = 4.0


@dataclass(frozen=True)
class Course:
    """A training until now."""

    steps: Sequence[int]
    losses: Sequence[float]
    rates: Sequence[float]


class Phasing(Sizing):
    """In which phases trainings are."""

    def recognise_phases(self, request: Request) -> Answer:
        """A phase for each curve."""
        body = self.body(request, "PhaseRequest")
        self.refuse_if("invalid-body", "names are given twice", self.twice("/curves", body["curves"], "id"))
        self.refuse_if("invalid-body", "steps do not rise", self.falling_steps(body["curves"]))
        told = [self.recognised(curve) for curve in body["curves"]]
        return Answer(200, {"revision": body["revision"], "method": METHOD_OF_PHASES, "phases": told})

    def falling_steps(self, curves: Sequence[Json]) -> Iterator[Wrong]:
        """Steps that are no later than those before them."""
        for number, curve in enumerate(curves):
            for place, (one, other) in enumerate(pairwise(curve["points"])):
                if other["step"] <= one["step"]:
                    yield f"/curves/{number}/points/{place + 1}/step", "steps must rise"

    def recognised(self, curve: Json) -> Json:
        """Phase of a training at its last step."""
        points = curve["points"]
        course = Course(
            [point["step"] for point in points],
            [point["loss"] for point in points],
            [point["learning_rate"] for point in points],
        )
        phase, since, confidence = self.phase_of(course)
        return {"curve": curve["id"], "phase": phase, "since": since, "confidence": confidence}

    def phase_of(self, course: Course) -> tuple[str, int, float]:
        """Phase, the step at which it began, and how sure that is."""
        over = self.end_of_warm_up(course)
        if over is None:
            return "warm_up", course.steps[0], 0.99
        begin = self.seen_stable(course, over)
        if begin is not None:
            return "stable_convergence", course.steps[begin], 0.97
        slope = self.slope_now(course, over)
        if slope is not None and slope < SLOW:
            return "stable_convergence", course.steps[-1], 0.8
        return "fast_convergence", course.steps[over], 0.9

    def end_of_warm_up(self, course: Course) -> int | None:
        """Place behind which the learning rate has not risen; None while it rises."""
        steps, rates = course.steps, course.rates
        for place in range(len(steps) - 1):
            if rates[place + 1] <= rates[place]:
                reach = max(bisect_right(steps, (1 + WAITED) * steps[place]), place + 1 + POINTS)
                if max(rates[place + 1 : reach]) <= rates[place]:
                    return place
        return None

    def seen_stable(self, course: Course, since: int) -> int | None:
        """Place at which stable convergence has begun by the definition, if all that it looks at is past."""
        steps, now = course.steps, len(course.steps) - 1
        losses, counts = (list(accumulate(column, initial=0.0)) for column in (course.losses, steps))
        slow = [self.slope(steps, losses, counts, place) < SLOW for place in range(now)]
        for place in range(since, now):
            last = max(bisect_right(steps, STRETCH * steps[place]), place + POINTS) - 1
            if last + POINTS > now or STRETCH * steps[last] > steps[now]:
                return None
            if all(slow[place : last + 1]):
                return place
        return None

    def slope(self, steps: Sequence[int], losses: Sequence[float], counts: Sequence[float], place: int) -> float:
        """By how much the loss falls from a stretch to the one behind it; infinite where a loss has no logarithm."""
        here = place + 1
        begin = max(0, min(bisect_right(steps, steps[place] / STRETCH), here - POINTS))
        end = min(len(steps), max(bisect_right(steps, STRETCH * steps[place]), here + POINTS))
        before, behind = (
            ((losses[till] - losses[since]) / (till - since), (counts[till] - counts[since]) / (till - since))
            for since, till in ((begin, here), (here, end))
        )
        if not (0 < before[0] < math.inf and 0 < behind[0] < math.inf):
            return math.inf
        return (math.log(before[0]) - math.log(behind[0])) / math.log(behind[1] / before[1])

    def slope_now(self, course: Course, since: int) -> float | None:
        """Slope of the loss at the last step, by a power law through the last points; None where they are too few."""
        begin = max(since, bisect_left(course.steps, course.steps[-1] / LOOKED_BACK))
        points = [
            (math.log(step / course.steps[-1]), math.log(loss))
            for step, loss in zip(course.steps[begin:], course.losses[begin:], strict=True)
            if loss > 0
        ]
        if len(points) < ENOUGH or points[0][0] > -0.05:
            return None
        level, slope = line(points)
        away = [abs(y - level - slope * x) for x, y in points]
        most = OUTLIER * median(away)
        level, slope = line([point for point, off in zip(points, away, strict=True) if off <= most])
        middle = sum(x for x, _ in points) / len(points)
        return -slope * math.exp(FADING * middle)


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Level at nought and slope of the line of least squares."""
    x, y = (sum(column) / len(points) for column in zip(*points, strict=True))
    wide = sum((one - x) ** 2 for one, _ in points)
    slope = sum((one - x) * (other - y) for one, other in points) / wide if wide else 0.0
    return y - slope * x, slope
