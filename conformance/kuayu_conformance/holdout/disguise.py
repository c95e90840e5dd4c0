"""Names, order and units of a corpus changed, so that nobody can look anything up."""

import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kuayu_conformance.holdout.folds import Cell

if TYPE_CHECKING:
    from kuayu_schemas import documents

RowT = TypeVar("RowT")

_SCALED = ("accelerator_memory_capacity", "accelerator_memory_bandwidth", "scale_out_bandwidth", "power")


class Disguise:
    """New names for devices, tasks and families, a new unit for each task and for each capability.

    All of it is drawn once; entries are put into another order each time.
    """

    def __init__(self, chance: random.Random, corpus: "documents.Corpus") -> None:
        """Draw names and units for a corpus."""
        self._chance = chance
        self._devices = _named(chance, "d", (row["id"] for row in corpus["devices"]))
        self._tasks = _named(chance, "t", (row["id"] for row in corpus["tasks"]))
        self._families = _named(chance, "f", dict.fromkeys(row.get("family", "") for row in corpus["tasks"]))
        self._units = {task: _factor(chance) for task in self._tasks}
        self._scales = {capability: _factor(chance) for capability in ("peak_matrix_throughput", *_SCALED)}
        self._real = {disguised: real for real, disguised in (*self._devices.items(), *self._tasks.items())}

    @property
    def names(self) -> dict[str, str]:
        """Names of the table, of devices and of tasks, by those that are sent."""
        return dict(self._real)

    def corpus(self, corpus: "documents.Corpus") -> "documents.Corpus":
        """The corpus as it is sent."""
        return {
            "devices": self._shuffled([self._device(row) for row in corpus["devices"]]),
            "tasks": self._shuffled([self._task(row) for row in corpus["tasks"]]),
            "measurements": self._shuffled([self._measurement(row) for row in corpus["measurements"]]),
        }

    def device(self, name: str) -> str:
        """Name of a device as it is sent."""
        return self._devices[name]

    def task(self, name: str) -> str:
        """Name of a task as it is sent."""
        return self._tasks[name]

    def cell(self, cell: Cell) -> "documents.CorpusCell":
        """A device and a task as they are sent."""
        return {"device": self._devices[cell.device], "task": self._tasks[cell.task]}

    def revealed(self, named: Mapping[str, Any]) -> Cell | None:
        """The device and the task that an answer speaks of; None where it names none of ours."""
        device, task = self._real.get(named["device"]), self._real.get(named["task"])
        return Cell(device, task) if device and task else None

    def _device(self, row: Mapping[str, Any]) -> "documents.IndexedDevice":
        """Stack and date are left out of what is sent, but that the model asks for a stack."""
        peaks = row.get("peak_matrix_throughput", {})
        scale = self._scales["peak_matrix_throughput"]
        device = {
            "id": self._devices[row["id"]],
            "stack": "as measured",
            "peak_matrix_throughput": {precision: peak * scale for precision, peak in peaks.items()},
            **{name: row[name] * self._scales[name] for name in _SCALED if name in row},
        }
        return cast("documents.IndexedDevice", device)

    def _task(self, row: "documents.IndexedTask") -> "documents.IndexedTask":
        task: documents.IndexedTask = {"id": self._tasks[row["id"]], "precisions": row["precisions"]}
        if "family" in row:
            task["family"] = self._families[row["family"]]
        return task

    def _measurement(self, row: "documents.Measurement") -> "documents.Measurement":
        measurement = {
            "device": self._devices[row["device"]],
            "task": self._tasks[row["task"]],
            **({"devices": row["devices"]} if "devices" in row else {}),
            "throughput": row["throughput"] * self._units[row["task"]],
        }
        return cast("documents.Measurement", measurement)

    def _shuffled(self, rows: list[RowT]) -> list[RowT]:
        return self._chance.sample(rows, len(rows))


def _named(chance: random.Random, kind: str, names: Iterable[str]) -> dict[str, str]:
    listed = list(names)
    numbers = chance.sample(range(100_000, 1_000_000), len(listed))
    return {name: f"{kind}{number}" for name, number in zip(listed, numbers, strict=True)}


def _factor(chance: random.Random) -> float:
    """A factor between a tenth and ten; by division, since powers differ between machines in their last bit."""
    return chance.uniform(1.0, 10.0) / chance.uniform(1.0, 10.0)
