"""IDX-001 to IDX-004, error, order, intervals and abstentions of the compute index.

Clause idx-02-figures. First devices arrive; they bound IDX-001 and count for nothing else. A fold is what is asked with
one revision: a plan of probes, then indices for each number of probes; four are judged. Measured is the median
throughput of a device on a task, of measurements on one device.

Which device and task the disguised names of a fold stand for is in the line ``truth`` of a run with full requests.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from statistics import median

from second_judge.bounds import mean, mean_lower, mean_upper, printed
from second_judge.reading import Json, Judged, asked, episode, table, told, truth

PROBES, LEAST_LEFT, LEAST_ON_A_TASK = 4, 2, 4
TOLERANCE = 0.4

Cell = tuple[str, str]
"""A device and a task."""

Throughputs = dict[Cell, float]


@dataclass(frozen=True)
class Pair:
    """An index with four probes, and what was measured; a probe is its own index."""

    table: str
    split: str
    device: str
    task: str
    unit: float
    measured: float
    value: float
    low: float
    high: float
    abstained: bool
    probe: bool = False

    @property
    def error(self) -> float:
        """Absolute relative error."""
        return abs(self.value / self.measured - 1.0)

    @property
    def held(self) -> float:
        """Whether the interval holds what was measured."""
        return float(self.low <= self.measured <= self.high)

    @property
    def open(self) -> float:
        """Whether it is abstained from, in words or by an interval that is too wide for the tolerance."""
        return float(self.abstained or self.high > (1.0 + TOLERANCE) ** 2 * self.low)


def measured(of: Json) -> Throughputs:
    """Median throughput of each device on each task, in the order in which they first stand in a table."""
    found: dict[Cell, list[float]] = {}
    for row in of["corpus"]["measurements"]:
        if row.get("devices", 1) == 1:
            found.setdefault((row["device"], row["task"]), []).append(row["throughput"])
    return {cell: median(values) for cell, values in found.items()}


def judge(pairs: Sequence[Pair]) -> dict[str, Judged]:
    """The four figures; errors, intervals and abstentions are of what was inferred, order is of probes as well."""
    inferred = [pair for pair in pairs if not pair.probe and pair.split != "arrival"]
    arrived = _by_device([pair for pair in pairs if pair.split == "arrival"], lambda p: p.error)
    errors, held, abstained = (
        _by_device(inferred, figure) for figure in (lambda p: p.error, lambda p: p.held, lambda p: p.open)
    )
    orders = [[each] for each in _orders([pair for pair in pairs if pair.split == "device"])]
    return {
        "IDX-001": _judged(errors, max(mean_upper(each, "IDX-001") for each in (errors, arrived)), len(inferred)),
        "IDX-002": _judged(orders, mean_lower(orders, "IDX-002"), len(orders)),
        "IDX-003": _judged(held, mean_lower(held, "IDX-003"), len(inferred)),
        "IDX-004": _judged(abstained, mean_upper(abstained, "IDX-004"), len(inferred)),
    }


def _judged(clusters: list[list[float]], bound: float, n: int) -> Judged:
    return Judged(printed(mean(clusters)), printed(bound), n)


def _by_device(pairs: Sequence[Pair], figure: Callable[[Pair], float]) -> list[list[float]]:
    clusters: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        clusters.setdefault((pair.table, pair.device), []).append(figure(pair))
    return list(clusters.values())


def _orders(pairs: Sequence[Pair]) -> Iterator[float]:
    """Kendall's rank correlation of each task with enough devices, in the order in which tasks first come."""
    tasks: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        tasks.setdefault((pair.table, pair.task), []).append(pair)
    for on_it in tasks.values():
        if len(on_it) >= LEAST_ON_A_TASK:
            agreed = [
                _sign(a.value * a.unit, b.value * b.unit) * _sign(a.measured * a.unit, b.measured * b.unit)
                for a, b in combinations(on_it, 2)
            ]
            yield sum(agreed) / len(agreed)


def _sign(one: float, other: float) -> int:
    return (one > other) - (one < other)


def _probe(name: str, cell: Cell, throughput: float) -> Pair:
    return Pair(name, "device", *cell, 1.0, throughput, throughput, throughput, throughput, False, probe=True)


def _pair(name: str, split: str, cell: Cell, reference: str, known: Throughputs, row: Json) -> Pair:
    unit = known[reference, cell[1]]
    said = row["value"], row["low"], row["high"], row["abstained"]
    return Pair(name, split, *cell, unit, known[cell] / unit, *said)


def _folds(events: list[Json]) -> Iterator[list[Json]]:
    """Exchanges of each fold: those whose answers have the same revision."""
    answered = (event for event in events if event["kind"] == "exchange")
    for _, exchanged in groupby(answered, lambda event: sorted(told(event)["revision"].items())):
        yield list(exchanged)


def from_requests(folder: Path) -> list[Pair]:
    """Pairs of a run that keeps its requests and what was played."""
    events = list(episode(folder, "idx_error"))
    folds = {tuple(sorted(each["revision"].items())): each for each in truth(events) if each["judged"]}
    pairs: list[Pair] = []
    for plan, *questions in _folds(events):
        fold = folds.get(tuple(sorted(told(plan)["revision"].items())))
        if fold is not None:
            pairs += _of_fold(fold, plan, questions)
    return pairs


def _of_fold(fold: Json, plan: Json, questions: list[Json]) -> Iterator[Pair]:
    names, known = fold["names"], measured(table(fold["table"]))
    held_back = [_cell(row) for row in asked(plan)["targets"]]
    probes = [_cell(row) for row in told(plan)["probes"]][:PROBES]
    if len(held_back) < PROBES + LEAST_LEFT:
        return
    if fold["split"] == "device":
        yield from (_probe(fold["table"], cell, known[cell]) for cell in _named(probes, names))
    for question in questions:
        request = asked(question)
        given = {_cell(row) for row in request["corpus"]["measurements"]}.intersection(held_back)
        if given != set(probes):
            continue
        rows = {_cell(row): row for row in told(question)["indices"]}
        wanted = [cell for cell in held_back if cell in rows and cell not in given]
        for cell, real in zip(wanted, _named(wanted, names), strict=True):
            reference = names[request["reference"]]
            yield _pair(fold["table"], fold["split"], real, reference, known, rows[cell])


def _cell(row: Json) -> Cell:
    return row["device"], row["task"]


def _named(cells: Sequence[Cell], names: dict[str, str]) -> list[Cell]:
    return [(names[device], names[task]) for device, task in cells]
