"""FCT-003, phases of trainings, of a run with full requests.

Clause fct-02-phases: the definition of the phases, which steps count, and the bound. A step that counts is asked about
with just the points up to it, so the number of points in a request tells which it is.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from math import log
from pathlib import Path

from second_judge.bounds import mean, mean_lower, printed
from second_judge.reading import Json, Judged, asked, episode, exchanges, told, truth

REQUIREMENT = "FCT-003"
STRETCH, SLOW, POINTS, SHARE = 1.25, 0.1, 10, 0.1
SPREAD = 25
"""Steps of a training that count, of a run that is not full."""


@dataclass(frozen=True)
class Course:
    """A training with its future."""

    steps: list[int]
    losses: list[float]
    rates: list[float]

    def beyond(self, place: int, factor: float) -> int:
        """Place behind the last point with at most so many times as many steps as a point."""
        return bisect_right(self.steps, self.steps[place] * factor)

    def fast(self) -> int | None:
        """Place of the first point that is not warm-up."""
        for place in range(len(self.steps) - 1):
            reach = max(self.beyond(place, 1.0 + SHARE), place + POINTS + 1)
            if max(self.rates[place:reach]) <= self.rates[place]:
                return place
        return None

    def slow_at(self) -> list[bool]:
        """Whether the loss falls slowly at each point: ``g`` below 0.1."""
        of_losses, of_steps = ([0.0, *accumulate(values)] for values in (self.losses, map(float, self.steps)))
        count, stretched = len(self.steps), [step * STRETCH for step in self.steps]
        slow = []
        for place in range(count):
            here = place + 1
            begin = max(0, min(bisect_right(stretched, self.steps[place]), here - POINTS))
            end = min(count, max(self.beyond(place, STRETCH), here + POINTS))
            if end == here:
                slow.append(False)
                continue
            fall, further = (
                log(((of[end] - of[here]) / (end - here)) / ((of[here] - of[begin]) / (here - begin)))
                for of in (of_losses, of_steps)
            )
            slow.append(-fall / further < SLOW)
        return slow

    def stable(self, since: int) -> int | None:
        """Place of the first point of stable convergence, at ``since`` or behind it."""
        slow = self.slow_at()
        for place in range(since, len(self.steps)):
            if all(slow[place : max(self.beyond(place, STRETCH), place + POINTS)]):
                return place
        return None

    def labels(self) -> list[str]:
        """Phase at each point."""
        fast = self.fast()
        stable = None if fast is None else self.stable(fast)
        return [
            "warm_up"
            if fast is None or place < fast
            else "fast_convergence"
            if stable is None or place < stable
            else "stable_convergence"
            for place in range(len(self.steps))
        ]

    def settled(self) -> int:
        """How many points have a label in which the end of the run plays no part."""
        settled = 0
        for place in range(len(self.steps)):
            last = max(self.beyond(place, STRETCH), place + POINTS) - 1
            if last >= len(self.steps):
                continue
            known = max(bisect_left(self.steps, self.steps[last] * STRETCH), last + POINTS)
            settled += known < len(self.steps)
        return settled

    def counted(self) -> set[int]:
        """Places of the points that count."""
        told_of = self.settled()
        if not told_of:
            return set()
        until = float(self.steps[told_of - 1])
        spread = (until * (number + 0.5) / SPREAD for number in range(SPREAD))
        return {max(0, bisect_right(self.steps, step) - 1) for step in spread}


def judge(folder: Path) -> Judged:
    """Share of the steps that count at which the phase is the right one."""
    events = list(episode(folder, "fct_phases"))
    (played,) = truth(events)
    courses = [Course(each["steps"], each["losses"], each["rates"]) for each in played["trainings"]]
    labels, counted = [each.labels() for each in courses], [each.counted() for each in courses]
    right = defaultdict[int, list[float]](list)
    for event in exchanges(events, "/v1/training-phases"):
        said: dict[str, Json] = {row["curve"]: row for row in told(event)["phases"]}
        for curve in asked(event)["curves"]:
            number, place = played["asked"][curve["id"]], len(curve["points"]) - 1
            if place in counted[number]:
                right[number].append(float(said[curve["id"]]["phase"] == labels[number][place]))
    clusters = [right[number] for number in sorted(right)]
    return Judged(printed(mean(clusters)), printed(mean_lower(clusters, REQUIREMENT)), sum(map(len, clusters)))
