"""What is held back from an index, one device or one task of a family of models at a time.

Folds send what other folds hold back, so that whoever remembers requests finds answers in them. In :func:`arrivals`
nothing is asked for that was sent before.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from kuayu_conformance.corpora import Table

if TYPE_CHECKING:
    from kuayu_schemas import documents

Split = Literal["device", "family", "arrival"]

LEAST_TARGETS = 2
"""Pairs that must remain to be inferred when the probes have been made."""
LEAST_OTHERS = 2
"""Other kinds of devices that a task must have been measured on to be told of a new one."""


class Cell(NamedTuple):
    """A device and a task, by the names of their table."""

    device: str
    task: str


@dataclass(frozen=True)
class Fold:
    """A corpus with something held back.

    Attributes:
        table: Name of the table.
        split: Whether a device or a family of models is left out, or a device is the next to arrive.
        corpus: What is left, with the table's own names.
        cells: What was measured and is held back, in the order of the table; probes are taken from it.
        truth: Throughput of everything that was measured on one device, held back or not.
        references: Devices that an index may refer to; they were not held back.
    """

    table: str
    split: Split
    corpus: "documents.Corpus"
    cells: tuple[Cell, ...]
    truth: Mapping[Cell, float]
    references: tuple[str, ...]

    @property
    def room(self) -> int:
        """How many probes can be made so that enough is left to be inferred."""
        return len(self.cells) - LEAST_TARGETS

    def with_probes(self, probes: Iterable[Cell]) -> "documents.Corpus":
        """The corpus with some of what is held back."""
        measured = [_measurement(cell, self.truth[cell]) for cell in probes]
        return {**self.corpus, "measurements": [*self.corpus["measurements"], *measured]}

    def referred(self, targets: Sequence[Cell], chance: random.Random) -> Iterator[tuple[str, tuple[Cell, ...]]]:
        """References with the targets that each was measured on; few references, drawn among equals.

        Targets that no reference was measured on are left out.
        """
        open_targets = list(targets)
        shuffled = chance.sample(self.references, len(self.references))
        while open_targets:
            covered = {
                reference: [cell for cell in open_targets if Cell(reference, cell.task) in self.truth]
                for reference in shuffled
            }
            best = max(shuffled, key=lambda reference: len(covered[reference]))
            if not covered[best]:
                return
            yield best, tuple(covered[best])
            open_targets = [cell for cell in open_targets if cell not in covered[best]]


def measured_alone(corpus: "documents.Corpus") -> dict[Cell, float]:
    """Median throughput of each device and task, of measurements on a single device."""
    by_cell: dict[Cell, list[float]] = {}
    for row in corpus["measurements"]:
        if row.get("devices", 1) == 1:
            by_cell.setdefault(Cell(row["device"], row["task"]), []).append(row["throughput"])
    return {cell: median(values) for cell, values in by_cell.items()}


def folds(table: Table, chance: random.Random) -> Iterator[Fold]:
    """Every fold of a table: each device, then each task of each family of models."""
    yield from device_folds(table)
    yield from family_folds(table, chance)


def device_folds(table: Table) -> Iterator[Fold]:
    """One device left out at a time, and with it those that are the same silicon, which count once."""
    truth = measured_alone(table.corpus)
    every = frozenset(row["id"] for row in table.corpus["devices"])
    for device, twins in _kinds(table, truth):
        yield from _left_out(table, truth, device, every - twins, "device")


def family_folds(table: Table, chance: random.Random) -> Iterator[Fold]:
    """One family of models left out at a time, but for one device; a fold for each of its tasks."""
    truth = measured_alone(table.corpus)
    kinds = {device for device, _ in _kinds(table, truth)}
    families: dict[str, list[str]] = {}
    for entry in table.corpus["tasks"]:
        families.setdefault(entry.get("family", entry["id"]), []).append(entry["id"])
    for tasks in families.values():
        counts = {device: sum(Cell(device, task) in truth for task in tasks) for device, _ in truth}
        most = max(counts.values())
        reference = chance.choice([device for device, count in counts.items() if count == most])
        visible = [row for row in table.corpus["measurements"] if row["task"] not in tasks]
        known = [_measurement(Cell(reference, t), truth[Cell(reference, t)]) for t in tasks if (reference, t) in truth]
        corpus: documents.Corpus = {**table.corpus, "measurements": [*visible, *known]}
        for task in tasks:
            judged_kinds = kinds - _twins(table, reference)
            cells = tuple(cell for cell in truth if cell.task == task and cell.device in judged_kinds)
            if Cell(reference, task) in truth and len(cells) > LEAST_TARGETS:
                yield Fold(table.name, "family", corpus, cells, truth, (reference,))


def arrivals(table: Table, chance: random.Random) -> Iterator[Fold]:
    """One device after another, in random order: all that was measured on those before it is known, and nothing else.

    Each is asked for before any of it is sent, so that no request before holds an answer. Source: A. P. Dawid,
    "Present position and potential developments: some personal views: statistical theory: the prequential approach",
    Journal of the Royal Statistical Society A 147 (1984) 278-292.
    """
    truth = measured_alone(table.corpus)
    kinds = list(_kinds(table, truth))
    arrived: frozenset[str] = frozenset()
    for device, twins in chance.sample(kinds, len(kinds)):
        yield from _left_out(table, truth, device, arrived, "arrival")
        arrived |= twins


def _left_out(
    table: Table, truth: Mapping[Cell, float], device: str, shown: frozenset[str], split: Split
) -> Iterator[Fold]:
    """A device left out beside those that are shown, where enough of it can be inferred."""
    others = [cell for cell in truth if cell.device in shown]
    counts = Counter(other.task for other in others)
    cells = tuple(cell for cell in truth if cell.device == device and counts[cell.task] >= LEAST_OTHERS)
    if len(cells) > LEAST_TARGETS:
        visible = [row for row in table.corpus["measurements"] if row["device"] in shown]
        references = tuple(dict.fromkeys(cell.device for cell in others))
        yield Fold(table.name, split, {**table.corpus, "measurements": visible}, cells, truth, references)


def _kinds(table: Table, truth: Mapping[Cell, float]) -> Iterator[tuple[str, frozenset[str]]]:
    """One device of each kind, that which was measured on most tasks, with all that are the same silicon."""
    for twins in dict.fromkeys(_twins(table, row["id"]) for row in table.corpus["devices"]):
        yield max(sorted(twins), key=lambda device: sum(cell.device == device for cell in truth)), twins


def _twins(table: Table, device: str) -> frozenset[str]:
    return next((twins for twins in table.alike if device in twins), frozenset({device}))


def _measurement(cell: Cell, throughput: float) -> "documents.Measurement":
    return {"device": cell.device, "task": cell.task, "throughput": throughput}
