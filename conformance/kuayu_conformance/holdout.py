"""Measured throughputs, part of them held back, to see what an index makes of the rest.

1. **Folds.** One device or one task of a family of models is held back at a time. Folds send what other folds hold
   back, so that whoever remembers requests finds answers in them; in :func:`arrivals` nothing is asked for that was
   sent before.
2. **Disguise.** Names, order and units of a corpus are changed, so that nobody can look anything up.
3. **Simple indices.** Three that anyone can compute, for comparison: none of them is judged. They know what the service
   knows of the same pair, and nothing more.
4. **Errors.** How far off an index was: one pair, and many of them summed up.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, exp, fsum, log
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from kuayu_conformance.corpora import Table

if TYPE_CHECKING:
    from kuayu_schemas import documents


Split = Literal["device", "family", "arrival"]
LEAST_TARGETS = 2
"""Pairs that must remain to be inferred when the probes have been made."""
LEAST_OTHERS = 2
"""Other kinds of devices that a task must have been measured on to be told of a new one."""
PEAK, SCALAR, ROOFLINE = "ratio of peaks", "one scalar for each device", "roofline of the data sheet"
NEAR = 0.1
"""Relative error up to which an index counts as near."""
RowT = TypeVar("RowT")
_SCALED = ("accelerator_memory_capacity", "accelerator_memory_bandwidth", "scale_out_bandwidth", "power")


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
    def max_probes(self) -> int:
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


@dataclass(frozen=True)
class Simple:
    """The simple indices of one pair; None where there is nothing to compute it from.

    Attributes:
        peak: Ratio of the peak matrix throughputs in the fastest precision that the task may take.
        scalar: Geometric mean of the ratios of throughput over all tasks that device and reference were measured on.
        roofline: The smaller of ``peak`` and the ratio of memory bandwidths: whatever is scarcer limits every task.
    """

    peak: float | None
    scalar: float | None
    roofline: float | None

    @classmethod
    def of(cls, corpus: "documents.Corpus", measured: Mapping[Cell, float], pair: Cell, reference: str) -> "Simple":
        """The simple indices of a pair from the corpus and its measurements on single devices."""
        sheets = {row["id"]: row for row in corpus["devices"]}
        precisions = next(row["precisions"] for row in corpus["tasks"] if row["id"] == pair.task)
        peak = _quotient(_peak(sheets[pair.device], precisions), _peak(sheets[reference], precisions))
        memory = _quotient(*(sheets[name].get("accelerator_memory_bandwidth") for name in (pair.device, reference)))
        ratios = [
            throughput / measured[Cell(reference, task)]
            for (device, task), throughput in measured.items()
            if device == pair.device and Cell(reference, task) in measured
        ]
        scalar = exp(fsum(map(log, ratios)) / len(ratios)) if ratios else None
        return cls(peak, scalar, min(peak, memory) if peak and memory else None)


def _peak(sheet: "documents.IndexedDevice", precisions: Iterable[str]) -> float | None:
    peaks = cast("Mapping[str, float]", sheet.get("peak_matrix_throughput", {}))
    return max((peaks[precision] for precision in precisions if precision in peaks), default=None)


def _quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


@dataclass(frozen=True)
class Pair:
    """What an index said of a device and a task, and what was measured.

    Attributes:
        table: Table that the measurement is from.
        counts: Whether the table is judged or only printed.
        split: Whether the device or the family of models was left out.
        probes: Probes that were allowed.
        last: Whether as many were allowed as the requirement grants.
        device: Name of the device in the table.
        task: Name of the task in the table.
        measured: Ratio of the measured throughputs of device and reference.
        unit: Measured throughput of the reference, in the table's unit.
        value: The index.
        low: Lower end of its interval.
        high: Upper end of its interval.
        abstained: Whether the service abstained.
        simple: What the simple indices say.
        probed: Whether the pair was a probe, so that the index is what was measured; it counts for order alone.
    """

    table: str
    counts: bool
    split: Split
    probes: int
    last: bool
    device: str
    task: str
    measured: float
    unit: float
    value: float
    low: float
    high: float
    abstained: bool
    simple: Simple
    probed: bool = False

    @classmethod
    def of_probe(cls, fold: Fold, cell: Cell, *, counts: bool) -> "Pair":
        """A probe, in the unit of throughput."""
        truth, nothing = fold.truth[cell], Simple(None, None, None)
        return cls(
            fold.table,
            counts,
            fold.split,
            fold.max_probes,
            True,
            cell.device,
            cell.task,
            truth,
            1.0,
            truth,
            truth,
            truth,
            False,
            nothing,
            probed=True,
        )

    @property
    def error(self) -> float:
        """Absolute relative error."""
        return abs(self.value / self.measured - 1)

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measured value."""
        return self.low <= self.measured <= self.high


def by_device(pairs: Iterable[Pair], figure: Callable[[Pair], float]) -> list[list[float]]:
    """A figure of each pair, gathered by device; devices are what a bootstrap draws."""
    gathered: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        gathered.setdefault((pair.table, pair.device), []).append(figure(pair))
    return list(gathered.values())


def rank_correlations(pairs: Iterable[Pair], least: int = 4) -> list[float]:
    """Kendall's rank correlation of each task that at least so many devices were told of.

    Values are brought to the unit of throughput first, since pairs of one task may refer to different devices. Source:
    M. G. Kendall, "A new measure of rank correlation", Biometrika 30 (1938) 81-93.
    """
    tasks: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        tasks.setdefault((pair.table, pair.task), []).append(pair)
    return [_kendall(entry) for entry in tasks.values() if len(entry) >= least]


def _kendall(pairs: Sequence[Pair]) -> float:
    signs = [
        _sign(a.value * a.unit - b.value * b.unit) * _sign(a.measured * a.unit - b.measured * b.unit)
        for a, b in combinations(pairs, 2)
    ]
    return fmean(signs)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


@dataclass(frozen=True)
class Summary:
    """Errors of many pairs; each figure as the report prints it."""

    pairs: int
    mean: float
    median: float
    ninetieth: float
    near: float
    covered: float
    abstained: int
    correlation: float | None

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Summary":
        """Figures of at least one pair."""
        errors = sorted(pair.error for pair in pairs)
        correlations = rank_correlations(pair for pair in pairs if pair.split == "device")
        return cls(
            len(pairs),
            fmean(errors),
            median(errors),
            errors[ceil(0.9 * len(errors)) - 1],
            fmean(error <= NEAR for error in errors),
            fmean(pair.covered for pair in pairs),
            sum(pair.abstained for pair in pairs),
            fmean(correlations) if correlations else None,
        )
