"""A test double that knows the answers: its figures are as wrong as one wants, so that the suite's arithmetic is tried.

It is no compute index. It recognises the tables of measurements that come with the suite, however disguised, and tells
of what is held back: the measured value itself, or what a mutant makes of it. What it does not recognise, such as the
corpora that the suite makes up, the minimal server's own simple method answers. That method is honest and too simple
for the figures of profile IDX, so every implementation of the kill matrix is served with the double beneath it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from statistics import median

from minimal_server.core import Json
from minimal_server.estimation import Calibration, Cell, measured
from minimal_server.indices import Question
from minimal_server.service import MinimalServer
from typing_extensions import override

from kuayu_conformance import corpora

SAME = 1e-9
"""Relative difference of throughputs that are the same but for a unit."""

MARGIN = 1.05
"""Ends of an interval lie so far from the measured value."""

Print = tuple[tuple[str, float], ...]
"""Capabilities of a device, each as a part of the largest among the devices beside it."""


@dataclass(frozen=True)
class Known:
    """A table that is known beforehand.

    Attributes:
        name: Its name.
        corpus: Its corpus.
        truth: Throughput of everything that was measured on one device, in the order of the table.
    """

    name: str
    corpus: Mapping[str, list[Json]]
    truth: dict[Cell, float]

    @cached_property
    def prints(self) -> dict[str, Print]:
        """Fingerprint of each device."""
        return prints(self.corpus["devices"])

    @cached_property
    def numbers(self) -> dict[Cell, int]:
        """Place of each pair in the table, device by device; what is every so often wrong goes by it."""
        return {cell: number for number, cell in enumerate(sorted(self.truth))}


@dataclass(frozen=True)
class Held:
    """A pair that is recognised and was not measured in the request: names in the table, and what is true."""

    table: Known
    device: str
    task: str
    reference: str

    @property
    def truth(self) -> float:
        """The index that was measured."""
        return self.table.truth[self.device, self.task] / self.unit

    @property
    def unit(self) -> float:
        """Throughput of the reference."""
        return self.table.truth[self.reference, self.task]

    @property
    def number(self) -> int:
        """Place of the pair in the table."""
        return self.table.numbers[self.device, self.task]


@cache
def tables() -> tuple[Known, ...]:
    """All tables that come with the suite."""
    found = []
    for table in corpora.shipped():
        rows = [row for row in table.corpus["measurements"] if row.get("devices", 1) == 1]
        truth = {cell: median(values) for cell, values in measured(rows).items()}
        found.append(Known(table.name, dict(table.corpus), truth))
    return tuple(found)


def prints(devices: list[Json]) -> dict[str, Print]:
    """Fingerprint of each device; a factor that all devices share changes none."""
    sheets = {row["id"]: dict(_numbers(row)) for row in devices}
    largest: dict[str, float] = {}
    for sheet in sheets.values():
        for name, value in sheet.items():
            largest[name] = max(value, largest.get(name, 0.0))
    return {
        device: tuple(sorted((name, round(value / largest[name], 6)) for name, value in sheet.items()))
        for device, sheet in sheets.items()
    }


def _numbers(row: Json) -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from value.items()
        elif isinstance(value, int | float):
            yield name, value


class Sight:
    """What is recognised in a request: devices and tasks by their names in a table."""

    def __init__(self, calibration: Calibration) -> None:
        """Look for a table with the same devices, then for tasks with the same ratios between them."""
        self.table: Known | None = None
        self.devices: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        ours = prints(list(calibration.devices.values()))
        for table in tables():
            if sorted(ours.values()) == sorted(table.prints.values()):
                self.table = table
                self._match(calibration, table, ours)

    def _match(self, calibration: Calibration, table: Known, ours: dict[str, Print]) -> None:
        alike = {name: [real for real, seen in table.prints.items() if seen == own] for name, own in ours.items()}
        for task, devices in calibration.devices_of.items():
            rows = {name: calibration.throughputs[name, task] for name in devices}
            if len(rows) < 2:  # one throughput is that of any task in some unit
                continue
            found = [
                (real, pinned)
                for real in table.corpus["tasks"]
                if real["precisions"] == calibration.tasks[task]["precisions"]
                and (pinned := _pinned(rows, alike, table.truth, real["id"]))
            ]
            if len(found) == 1:
                self.tasks[task] = found[0][0]["id"]
                self.devices.update(found[0][1])
        for name, candidates in alike.items():
            left = [real for real in candidates if real not in self.devices.values()]
            if name not in self.devices and left:
                self.devices[name] = left[0]

    def held(self, reference: str, device: str, task: str) -> Held | None:
        """The pair, if it and the reference's are known."""
        names = [self.devices.get(device), self.tasks.get(task), self.devices.get(reference)]
        if self.table is None or None in names:
            return None
        held = Held(self.table, *map(str, (names[0], names[1], names[2])))
        known = {(held.device, held.task), (held.reference, held.task)} <= self.table.truth.keys()
        return held if known else None


def _pinned(
    rows: Mapping[str, float], alike: Mapping[str, list[str]], truth: Mapping[Cell, float], task: str
) -> dict[str, str]:
    """Devices by their names in the table, if the throughputs are those of a task in some unit; else nothing."""
    first, *others = rows
    for start in alike[first]:
        if (start, task) not in truth:
            continue
        unit = rows[first] / truth[start, task]
        pinned = {first: start}
        for name in others:
            for real in alike[name]:
                if math.isclose(truth.get((real, task), 0.0) * unit, rows[name], rel_tol=SAME):
                    pinned[name] = real
        if len(pinned) == len(rows):
            return pinned
    return {}


@dataclass(frozen=True)
class Foreseen(Question):
    """A question, and what is recognised in it."""

    sight: Sight


class Oracle(MinimalServer):
    """The minimal server with the double beneath its figures."""

    @override
    def question(self, body: Json) -> Question:
        asked = super().question(body)
        members = {field.name: getattr(asked, field.name) for field in fields(Question)}
        return Foreseen(**members, sight=Sight(asked.calibration))

    @override
    def estimate(self, question: Question, device: str, task: str) -> tuple[float, float, float]:
        calibration = question.calibration
        if isinstance(question, Foreseen) and not calibration.is_measured(device, task):
            held = question.sight.held(calibration.reference, device, task)
            if held is not None:
                return self.foretold(held)
        return super().estimate(question, device, task)

    def foretold(self, held: Held) -> tuple[float, float, float]:
        """Value and ends of the interval of a pair whose measured value is known."""
        return held.truth, held.truth / MARGIN, held.truth * MARGIN
