"""A simple compute index: a weighted harmonic mean of data sheets, put right by how like tasks went on the device.

The time of a task is a sum of three parts, shortened by matrix throughput, by memory bandwidth and by nothing. The
shares are a mean over a few mixtures, each weighted by how well it explains the task's measurements. What they leave
unexplained is the *residual* of a device on a task, a logarithm; that of a task that was not measured is expected to be
the mean of those of the device's other tasks, weighted by how alike the two tasks were on other devices. How wide an
interval is follows from how far off that would have been on them. Everything is made of ratios and of sums over
devices and tasks, so no name, order or unit plays a part.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, median
from typing import Any

Json = dict[str, Any]
Cell = tuple[str, str]
"""A device and a task."""

Term = tuple[str, float, float]
"""A capability, its weight, and how many times as much of it as the reference has."""

MIXTURES = tuple(
    {"matrix": share * (1 - fixed), "memory": (1 - share) * (1 - fixed), "fixed": fixed}
    for fixed in (0.0, 0.1, 0.3)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0)
)
"""Shares of a task's time on the reference that are thought possible."""

UNKNOWN = 0.25**2
"""Variance of a residual of which nothing is known; it counts as one observation where something is."""

NOISE = 0.02**2
"""Variance between two measurements of the same."""


def amount(value: float) -> float:
    """The value, within the bounds of what the schema calls a positive amount."""
    return min(max(value, 1e-30), 1e30)


def measured(rows: Sequence[Json]) -> dict[Cell, list[float]]:
    """Throughputs of one device for each combination, of measurements on the fewest devices that the task has."""
    fewest: dict[str, int] = {}
    for row in rows:
        fewest[row["task"]] = min(row.get("devices", 1), fewest.get(row["task"], row.get("devices", 1)))
    found: dict[Cell, list[float]] = {}
    for row in rows:
        count = row.get("devices", 1)
        if count == fewest[row["task"]]:
            found.setdefault((row["device"], row["task"]), []).append(row["throughput"] / count)
    return found


def peak(device: Json, task: Json) -> float:
    """Throughput in the fastest number format that both have; nought where they share none."""
    sheet = device.get("peak_matrix_throughput", {})
    return max((sheet.get(precision, 0.0) for precision in task["precisions"]), default=0.0)


def shared(weights: Mapping[str, float], ratios: Mapping[str, float]) -> list[Term]:
    """What an index consists of; the weights of what is known sum to one."""
    whole = math.fsum(weights[name] for name in ratios)
    if not whole:
        return [("fixed", 1.0, 1.0)]
    return [(name, weights[name] / whole, ratio) for name, ratio in ratios.items()]


def predicted(weights: Mapping[str, float], ratios: Mapping[str, float]) -> float:
    """Logarithm of an index by data sheets alone."""
    return -math.log(math.fsum(weight / ratio for _, weight, ratio in shared(weights, ratios)))


class Calibration:
    """What a corpus says of indices over one reference."""

    def __init__(self, corpus: Json, reference: str) -> None:
        """Take a corpus in which every name is known."""
        self.devices: dict[str, Json] = {row["id"]: row for row in corpus["devices"]}
        self.tasks: dict[str, Json] = {row["id"]: row for row in corpus["tasks"]}
        self.reference = reference
        self.throughputs = {cell: self.typical(values) for cell, values in measured(corpus["measurements"]).items()}
        self.tasks_of: dict[str, list[str]] = {name: [] for name in self.devices}
        self.devices_of: dict[str, list[str]] = {name: [] for name in self.tasks}
        for device, task in self.throughputs:
            self.tasks_of[device].append(task)
            self.devices_of[task].append(device)
        self.weights = {task: self._fitted(task) for task in self.tasks}
        self.unexplained = {
            (device, task): math.log(throughput) - self.predicted(device, task)
            for (device, task), throughput in self.throughputs.items()
        }
        self.means = {
            task: fmean(self.unexplained[device, task] for device in devices)
            for task, devices in self.devices_of.items()
            if devices
        }
        self._unlike: dict[Cell, float] = {}

    def typical(self, throughputs: Sequence[float]) -> float:
        """The one that counts of several measurements of the same."""
        return median(throughputs)

    def ratios(self, device: str, task: str) -> dict[str, float]:
        """Each capability of the device over that of the reference, where both are known."""
        ours, theirs, work = self.devices[device], self.devices[self.reference], self.tasks[task]
        pairs = {"matrix": (peak(ours, work), peak(theirs, work))}
        pairs["memory"] = tuple(sheet.get("accelerator_memory_bandwidth", 0.0) for sheet in (ours, theirs))
        return {name: amount(one / other) for name, (one, other) in pairs.items() if one and other} | {"fixed": 1.0}

    def terms(self, device: str, task: str) -> list[Term]:
        """What the index consists of; the weights of what is known sum to one."""
        return shared(self.weights[task], self.ratios(device, task))

    def predicted(self, device: str, task: str) -> float:
        """Logarithm of the index by the data sheets alone."""
        return predicted(self.weights[task], self.ratios(device, task))

    def _fitted(self, task: str) -> dict[str, float]:
        logs = {device: math.log(self.throughputs[device, task]) for device in self.devices_of[task]}
        ratios = {device: self.ratios(device, task) for device in logs}
        losses = []
        for mixture in MIXTURES:
            left = [log - predicted(mixture, ratios[device]) for device, log in logs.items()]
            mean = fmean(left) if left else 0.0
            losses.append(math.fsum((one - mean) ** 2 for one in left) / max(len(left), 1) + NOISE)
        best = min(losses)
        chances = [(best / loss) ** (max(len(logs) - 1, 0) / 2) for loss in losses]
        return {
            name: math.fsum(chance * mixture[name] for chance, mixture in zip(chances, MIXTURES, strict=True))
            / math.fsum(chances)
            for name in MIXTURES[0]
        }

    def residual(self, device: str, task: str) -> float:
        """Residual of a measured pair against the task's other devices; nought where there are none."""
        others = len(self.devices_of[task]) - 1
        return (self.unexplained[device, task] - self.means[task]) * (others + 1) / others if others else 0.0

    def own(self, task: str) -> float:
        """Variance of a device's residual on a task where no other task of it was measured."""
        devices = self.devices_of[task]
        squares = math.fsum((self.unexplained[device, task] - self.means[task]) ** 2 for device in devices)
        return (squares + UNKNOWN) / max(len(devices), 1)

    def unlike(self, task: str, other: str) -> float:
        """Variance of the difference that two tasks make to a device's residual."""
        key = (task, other) if task < other else (other, task)
        if key not in self._unlike:
            common = set(self.devices_of[other]).intersection(self.devices_of[task])
            apart = [self.unexplained[name, task] - self.unexplained[name, other] for name in sorted(common)]
            mean = fmean(apart) if apart else 0.0
            squares = math.fsum((one - mean) ** 2 for one in apart)
            self._unlike[key] = (squares + UNKNOWN) / max(len(apart), 1) + NOISE
        return self._unlike[key]

    def expected(self, device: str, task: str, known: Collection[str]) -> float:
        """Residual that a device's tasks ``known`` let expect on another one."""
        weights = {other: 1 / self.unlike(task, other) for other in known}
        whole = math.fsum(weights.values()) + 1 / self.own(task)
        return math.fsum(weight * self.residual(device, other) for other, weight in weights.items()) / whole

    def level(self, device: str, task: str) -> float:
        """Residual that counts: the measured one, else the expected one."""
        if (device, task) in self.throughputs:
            return self.unexplained[device, task] - self.means[task]
        return self.expected(device, task, self.tasks_of[device])

    def variance(self, device: str, task: str) -> float:
        """Of the residual that counts; from how far off other devices would have been, given the same tasks.

        One part in the number of devices more is for the mean over them, which is no surer than they are many.
        """
        if (device, task) in self.throughputs:
            return 0.0
        known = set(self.tasks_of[device])
        squares, seen = UNKNOWN, 1
        for other in self.devices_of[task]:
            given = [name for name in self.tasks_of[other] if name in known]
            if given or not known:
                squares += (self.residual(other, task) - self.expected(other, task, given)) ** 2
                seen += 1
        return squares / seen * (1 + 1 / seen)

    def logarithm(self, device: str, task: str) -> float:
        """Logarithm of the index."""
        return self.predicted(device, task) + self.level(device, task) - self.level(self.reference, task)

    def spread(self, device: str, task: str) -> float:
        """Standard deviation of the logarithm of the index."""
        if device == self.reference:
            return 0.0
        return math.sqrt(self.variance(device, task) + self.variance(self.reference, task))

    def is_measured(self, device: str, task: str) -> bool:
        """Whether device and reference were both measured on the task; the reference always is what it is."""
        return {(device, task), (self.reference, task)} <= self.throughputs.keys()

    def reference_throughput(self, task: str) -> float | None:
        """Units of the task in a second on the reference; None where nothing was measured on the task."""
        return math.exp(self.means[task] + self.level(self.reference, task)) if task in self.means else None
