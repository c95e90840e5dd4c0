"""Probe plans: which measurements would make given indices surest."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist, fmean

from minimal_server.core import Answer, Json, Request
from minimal_server.estimation import Calibration, Cell
from minimal_server.groups import Groups
from minimal_server.indices import METHOD

HALF = NormalDist().inv_cdf(0.95)
"""Half of an interval that holds nine tenths, in standard deviations."""


@dataclass
class Prospect:
    """What will be known once the chosen probes are made.

    The variance of a target is expected to be (1 + 1/(1 + n)) / (1/v + Σ 1/u): *n* devices are measured on the task,
    *v* is how far devices differ on it, and *u* how far each task that is measured on the device is from it.
    """

    calibration: Calibration
    targets: list[Cell]
    known: set[Cell]
    precisions: dict[Cell, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with what is measured."""
        self.counts = {task: len(devices) for task, devices in self.calibration.devices_of.items()}
        for device, task in self.targets:
            near = (1 / self.calibration.unlike(task, other) for other in self.calibration.tasks_of[device])
            self.precisions[device, task] = 1 / self.calibration.own(task) + math.fsum(near)

    def width(self, target: Cell, probe: Cell | None = None) -> float:
        """√(high/low) - 1 of a target, once one more probe is made."""
        if target in self.known or target == probe:
            return 0.0
        precision, count = self.precisions[target], self.counts[target[1]]
        if probe is not None:
            precision += 1 / self.calibration.unlike(target[1], probe[1]) if probe[0] == target[0] else 0.0
            count += probe[1] == target[1]
        return math.exp(HALF * math.sqrt((1 + 1 / (1 + count)) / precision)) - 1

    def mean(self, probe: Cell | None = None) -> float:
        """Mean width of the targets, once one more probe is made."""
        return fmean(self.width(target, probe) for target in self.targets)

    def make(self, probe: Cell) -> None:
        """Count a probe as made."""
        for target in self.targets:
            if target[0] == probe[0]:
                self.precisions[target] += 1 / self.calibration.unlike(target[1], probe[1])
        self.counts[probe[1]] += 1
        self.known.add(probe)


class Plans(Groups):
    """Plans that take the most telling candidate, again and again."""

    def plan_probes(self, request: Request) -> Answer:
        """A plan."""
        body = self.body(request, "ProbePlanRequest")
        self.check_names(body["corpus"], (), self.named_cells(body))
        calibration = self.calibrated(body["corpus"], self.best_known(body["corpus"]))
        targets = list(dict.fromkeys((row["device"], row["task"]) for row in body["targets"]))
        prospect = Prospect(calibration, targets, set(calibration.throughputs))
        plan = {"revision": self.echoed(body), "method": METHOD, "without": prospect.mean()}
        return Answer(200, {**plan, "probes": self.probes(prospect, body)})

    def best_known(self, corpus: Json) -> str:
        """Device that was measured on most tasks; weights are shares of time on a reference."""
        counts = Counter(device for device, _ in {(row["device"], row["task"]) for row in corpus["measurements"]})
        name: str = max(corpus["devices"], key=lambda row: counts[row["id"]])["id"]
        return name

    def named_cells(self, body: Json) -> Iterator[tuple[str, str, str]]:
        """Names of candidates and targets: pointer, kind and name."""
        for member in ("candidates", "targets"):
            yield from self.cells(f"/{member}", body[member])

    def probes(self, prospect: Prospect, body: Json) -> list[Json]:
        """Candidates that are not measured, each the one that leaves the targets surest."""
        left = [
            cell
            for cell in dict.fromkeys((row["device"], row["task"]) for row in body["candidates"])
            if cell not in prospect.known
        ]
        chosen: list[Json] = []
        while left and len(chosen) < body["probes"]:
            best = min(left, key=prospect.mean)
            left.remove(best)
            prospect.make(best)
            chosen.append({"device": best[0], "task": best[1], "half_width": prospect.mean()})
        return chosen
