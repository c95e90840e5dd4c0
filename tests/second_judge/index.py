"""IDX-001 to IDX-004, error, order, intervals and abstentions of the compute index.

Clause idx-02-figures. A fold is what is asked with one revision: a plan of probes, then indices for each number of
probes; four are judged. Measured is the median throughput of a device on a task, of measurements on one device. Judged
are the tables ``neusight`` and ``mlperf``, in this order, of each first the folds of devices, then those of tasks.

Which device and task the disguised names of a fold stand for is in the line ``truth`` of a run with full requests
(:func:`from_requests`). Of a run without, it follows from the tables and from the points of the report's picture
(:func:`from_picture`), which has measured and predicted indices in the order in which they were asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from statistics import median

from second_judge.bounds import mean, mean_lower, mean_upper, printed
from second_judge.reading import Json, Judged, asked, episode, report, table, told, truth

TABLES = ("neusight", "mlperf")
PROBES, LEAST_LEFT, LEAST_ON_A_TASK, LEAST_OTHERS = 4, 2, 4, 2
TOLERANCE = 0.4

Cell = tuple[str, str]
"""A device and a task."""

Throughputs = dict[Cell, float]


@dataclass(frozen=True)
class Pair:
    """An index with four probes, and what was measured; a probe is its own index."""

    table: str
    of_device: bool
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
    inferred = [pair for pair in pairs if not pair.probe]
    errors, held, abstained = (
        _by_device(inferred, figure) for figure in (lambda p: p.error, lambda p: p.held, lambda p: p.open)
    )
    orders = [[each] for each in _orders([pair for pair in pairs if pair.of_device])]
    return {
        "IDX-001": _judged(errors, mean_upper(errors, "IDX-001"), len(inferred)),
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
    return Pair(name, True, *cell, 1.0, throughput, throughput, throughput, throughput, False, probe=True)


def _pair(name: str, of_device: bool, cell: Cell, reference: str, known: Throughputs, row: Json) -> Pair:
    unit = known[reference, cell[1]]
    said = row["value"], row["low"], row["high"], row["abstained"]
    return Pair(name, of_device, *cell, unit, known[cell] / unit, *said)


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
    if fold["split"] == "device" and len(held_back) >= PROBES + LEAST_LEFT:
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
            yield _pair(fold["table"], fold["split"] == "device", real, reference, known, rows[cell])


def _cell(row: Json) -> Cell:
    return row["device"], row["task"]


def _named(cells: Sequence[Cell], names: dict[str, str]) -> list[Cell]:
    return [(names[device], names[task]) for device, task in cells]


def from_picture(folder: Path) -> list[Pair]:
    """Pairs of a full run without requests, by the tables and the points of its report's picture.

    Raises:
        ValueError: Some pair could be another one just as well.
    """
    folds = list(_folds(list(episode(folder, "idx_error"))))
    picture = {series["label"]: series for series in report(folder)["IDX-001"].plots[0]["series"]}
    pairs: list[Pair] = []
    for name in TABLES:
        of = table(name)
        known = measured(of)
        devices = list(_device_folds(of, known))
        points = _points(picture[f"{name}, device left out"])
        begin = _begin(folds, [len(cells) for cells in devices], points)
        for cells, fold in zip(devices, folds[begin:], strict=False):
            pairs += _inferred(name, cells, fold, points, known)
        points = _points(picture.get(f"{name}, family of models left out", {"x": [], "y": []}))
        for fold in folds[begin + len(devices) :]:
            if points and _fits(fold, points):
                pairs += _of_family(name, of, fold, points, known)
    return pairs


Points = list[tuple[str, str]]
"""Measured and predicted indices that are left to be found, four digits each."""


def _digits(value: float) -> str:
    return f"{value:.4g}"


def _points(series: Json) -> Points:
    return [(_digits(x), _digits(y)) for x, y in zip(series["x"], series["y"], strict=True)]


def _kinds(of: Json, known: Throughputs) -> list[tuple[str, set[str]]]:
    """Of each kind of device the one that was measured on most tasks, with all that are the same silicon."""
    found: list[tuple[str, set[str]]] = []
    for device in (row["id"] for row in of["corpus"]["devices"]):
        alike = next((set(group) for group in of["alike"] if device in group), {device})
        if alike not in [others for _, others in found]:
            found.append((max(sorted(alike), key=lambda name: sum(d == name for d, _ in known)), alike))
    return found


def _device_folds(of: Json, known: Throughputs) -> Iterator[list[Cell]]:
    """What is held back in each fold of a device: tasks that two others were measured on, three at least."""
    for device, alike in _kinds(of, known):
        cells = [
            (name, task)
            for name, task in known
            if name == device and sum(t == task and d not in alike for d, t in known) >= LEAST_OTHERS
        ]
        if len(cells) > LEAST_LEFT:
            yield cells


def _with_probes(fold: list[Json], probes: int) -> list[list[Json]]:
    """Rows of each question of a fold with so many probes; none where it was not asked with so many.

    Questions with the same number of probes speak of no pair twice, and those with one more of nothing else.
    """
    batches: list[list[list[Json]]] = []
    seen: set[Cell] = set()
    for question in fold[1:]:
        rows = told(question)["indices"]
        cells = {_cell(row) for row in rows}
        if not batches or cells & seen:
            batches.append([])
            seen = set()
        batches[-1].append(rows)
        seen |= cells
    return batches[probes] if probes < len(batches) else []


def _fits(fold: list[Json], points: Points) -> bool:
    """Whether a fold with four probes tells what comes next in the picture."""
    rows = [_digits(row["value"]) for rows in _with_probes(fold, PROBES) for row in rows]
    return bool(rows) and sorted(rows) == sorted(y for _, y in points[: len(rows)])


def _begin(folds: list[list[Json]], sizes: list[int], points: Points) -> int:
    """Number of the first fold of a table: those from there on are as large as its folds, and tell the points."""

    def tells(begin: int) -> bool:
        left = list(points)
        for size, fold in zip(sizes, folds[begin : begin + len(sizes)], strict=True):
            if sum(map(len, _with_probes(fold, 0))) != size:
                return False
            if size >= PROBES + LEAST_LEFT:
                if not _fits(fold, left):
                    return False
                del left[: size - PROBES]
        return not left

    (begin,) = (begin for begin in range(len(folds) - len(sizes) + 1) if tells(begin))
    return begin


def _inferred(name: str, cells: list[Cell], fold: list[Json], points: Points, known: Throughputs) -> list[Pair]:
    """Pairs of a fold of a device, with its probes; takes their points away.

    In which order a fold's own probes were proposed does not show, so they stand in that of the table.
    """
    if len(cells) < PROBES + LEAST_LEFT:
        return []
    found = _solve(cells, _with_probes(fold, PROBES), points, known)
    wanted = [cell for cell, _, _ in found]
    probes = [_probe(name, cell, known[cell]) for cell in cells if cell not in wanted]
    return [*probes, *(_pair(name, True, cell, reference, known, row) for cell, reference, row in found)]


def _of_family(name: str, of: Json, fold: list[Json], points: Points, known: Throughputs) -> list[Pair]:
    """Pairs of a fold of a task; takes their points away.

    Held back is the task of every kind of device but that of the reference, which was measured on most tasks.
    """
    kinds = dict(_kinds(of, known))
    asked_of = _with_probes(fold, PROBES)
    solutions: list[Found] = []
    for reference, task in known:
        told_of = {device for device, alike in kinds.items() if reference not in alike}
        cells = [cell for cell in known if cell[1] == task and cell[0] in told_of]
        if len(cells) == sum(map(len, asked_of)) + PROBES:
            solutions += _solutions(cells, asked_of, points, known, [reference])
    found = _only(solutions)
    del points[: len(found)]
    return [_pair(name, False, cell, reference, known, row) for cell, reference, row in found]


Found = list[tuple[Cell, str, Json]]
"""Pairs with the device that their index refers to, and what was said of them."""


def _solve(cells: list[Cell], asked_of: list[list[Json]], points: Points, known: Throughputs) -> Found:
    references = list(dict.fromkeys(device for device, _ in known))
    found = _only(list(_solutions(cells, asked_of, points, known, references)))
    del points[: len(found)]
    return found


def _only(solutions: list[Found]) -> Found:
    distinct = [found for place, found in enumerate(solutions) if found not in solutions[:place]]
    if len(distinct) != 1:
        raise ValueError(f"{len(distinct)} sets of pairs have just these points")
    return distinct[0]


def _solutions(
    cells: list[Cell], asked_of: list[list[Json]], points: Points, known: Throughputs, references: list[str]
) -> Iterator[Found]:
    """Every way in which the questions are about these cells, in their order, so that the points come out."""
    if not asked_of:
        yield []
        return
    rows, *others = asked_of
    for reference in references:
        for first in _subsequences(cells, reference, [x for x, _ in points[: len(rows)]], known):
            left = [cell for cell in cells if cell not in first]
            for rest in _solutions(left, others, points[len(rows) :], known, references):
                by_value = {_digits(row["value"]): row for row in rows}
                said = [by_value[y] for _, y in points[: len(rows)]]
                yield [*zip(first, [reference] * len(first), said, strict=True), *rest]


def _subsequences(cells: list[Cell], reference: str, wanted: list[str], known: Throughputs) -> Iterator[list[Cell]]:
    if not wanted:
        yield []
        return
    for place, cell in enumerate(cells):
        unit = known.get((reference, cell[1]))
        if unit is not None and _digits(known[cell] / unit) == wanted[0]:
            for rest in _subsequences(cells[place + 1 :], reference, wanted[1:], known):
                yield [cell, *rest]
