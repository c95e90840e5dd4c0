"""A corpus as arrays: one row for each measured pair, in an order that depends on content alone.

Devices and tasks are sorted by what they are, never by what they are called, so that another order of the same request
leads to the same sums in the same order.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kuayu.index.device_scale import Scaled, at_count, exchange_of, least_counts
from kuayu.index.sheets import SHEET, sheet_of
from kuayu_schemas.models import Corpus, IndexedDevice, IndexedTask

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

USUAL_SPREAD = 0.02
"""Standard deviation of log throughput between repetitions, where a corpus has none."""

SPREAD_WEIGHT = 4.0
"""How many repetitions the usual spread is worth."""

OTHER_COUNT_VARIANCE = 0.1**2
"""Variance of a log throughput that was measured at another device count than that of the task's index."""


@dataclass(frozen=True)
class Observations:
    """What a corpus holds, as arrays of D devices, T tasks and N rows.

    Attributes:
        devices: Devices in order of content.
        tasks: Tasks in order of content.
        device_at: Position of each device, by its name.
        task_at: Position of each task, by its name.
        sheets: Natural logarithms of data-sheet values, D × len(SHEET), NaN where absent.
        alike: One where two tasks are of one family, T × T.
        formats: Number formats of each task.
        device: Device of each row.
        task: Task of each row.
        log_throughput: Log of the median throughput of one device, at the device count of the task's index.
        noise: Variance of ``log_throughput`` by repetition, and by another device count.
        measured: ``log_throughput`` of pairs that were measured at that count, D × T, NaN elsewhere.
        repeats: How often they were measured, D × T.
        spread: Standard deviation of log throughput between repetitions.
        index_count: Device count at which each task's index is told, (T,): one where any single device was measured
            or nothing was, else the least that was.
        exchange: Bytes that each task exchanges by its measurements at several counts, in the unit of its throughput.
        power: Median power in watts by device and task, where it was measured.
    """

    devices: tuple[IndexedDevice, ...]
    tasks: tuple[IndexedTask, ...]
    device_at: dict[str, int]
    task_at: dict[str, int]
    sheets: Floats
    alike: Floats
    formats: tuple[frozenset[str], ...]
    device: Whole
    task: Whole
    log_throughput: Floats
    noise: Floats
    measured: Floats
    repeats: Floats
    spread: float
    index_count: Whole
    exchange: dict[int, float]
    power: dict[tuple[int, int], float]


def observe(corpus: Corpus) -> Observations:
    """Put a corpus, whose names have been checked, into arrays."""
    devices, tasks, sheets = _in_order(corpus)
    device_at = {device.id: position for position, device in enumerate(devices)}
    task_at = {task.id: position for position, task in enumerate(tasks)}
    values: dict[tuple[int, int, int], list[float]] = defaultdict(list)
    powers: dict[tuple[int, int], list[float]] = defaultdict(list)
    for measurement in corpus.measurements:
        place = (device_at[measurement.device], task_at[measurement.task])
        values[*place, measurement.devices or 1].append(measurement.throughput)
        if measurement.power is not None:
            powers[place].append(measurement.power)
    by_task: dict[int, list[Scaled]] = defaultdict(list)
    for (device, task, count), found in sorted(values.items()):
        bandwidth = devices[device].scale_out_bandwidth
        by_task[task].append(Scaled(device, count, float(np.median(found)), bandwidth))
    counts = least_counts(by_task)
    exchange = {task: learnt for task, rows in by_task.items() if (learnt := exchange_of(rows)) is not None}
    chosen = _at_index_count(by_task, counts)
    measured = np.full((len(devices), len(tasks)), np.nan)
    repeats = np.zeros(measured.shape)
    logs, noise = [], []
    spread = _spread(values.values())
    for (device, task), row in chosen.items():
        logs.append(at_count(row, counts[task], exchange.get(task)))
        noise.append(spread**2 / len(values[device, task, row.count]))
        if row.count == counts[task]:
            measured[device, task] = logs[-1]
            repeats[device, task] = len(values[device, task, row.count])
        else:
            noise[-1] += OTHER_COUNT_VARIANCE
    places = np.array(list(chosen), dtype=np.int64).reshape(-1, 2)
    return Observations(
        devices=devices,
        tasks=tasks,
        device_at=device_at,
        task_at=task_at,
        sheets=sheets,
        alike=_same_family(tasks),
        formats=tuple(frozenset(str(precision) for precision in task.precisions) for task in tasks),
        device=places[:, 0],
        task=places[:, 1],
        log_throughput=np.array(logs),
        noise=np.array(noise),
        measured=measured,
        repeats=repeats,
        spread=spread,
        index_count=np.array([counts.get(task, 1) for task in range(len(tasks))], dtype=np.int64),
        exchange=exchange,
        power={place: float(np.median(found)) for place, found in powers.items()},
    )


def _at_index_count(rows: Mapping[int, Sequence[Scaled]], counts: Mapping[int, int]) -> dict[tuple[int, int], Scaled]:
    """For each measured pair, by device and then task, the row at the least device count."""
    chosen: dict[tuple[int, int], Scaled] = {}
    for task in sorted(counts):
        for row in sorted(rows[task], key=lambda row: row.count):
            chosen.setdefault((row.device, task), row)
    return dict(sorted(chosen.items()))


def _in_order(corpus: Corpus) -> tuple[tuple[IndexedDevice, ...], tuple[IndexedTask, ...], Floats]:
    """Devices and tasks by content, and the sheets of the devices; those of like content keep the request's order."""
    on_device = Counter(measurement.device for measurement in corpus.measurements)
    sheets = {device.id: sheet_of(device) for device in corpus.devices}
    keys = {name: (-on_device[name], *np.nan_to_num(sheet, nan=-1.0).tolist()) for name, sheet in sheets.items()}
    found = contents(corpus)
    places: dict[str, list[tuple[float, ...]]] = {task.id: [] for task in corpus.tasks}
    for measurement in corpus.measurements:
        places[measurement.task].append(keys[measurement.device])

    def of_task(task: IndexedTask) -> tuple[object, ...]:
        known = (task.work or 0.0, task.memory_traffic or 0.0, task.exchange or 0.0)
        return (-len(places[task.id]), sorted(map(str, task.precisions)), known, sorted(places[task.id]))

    devices = tuple(sorted(corpus.devices, key=lambda device: (keys[device.id], found[device.id])))
    table = np.array([sheets[device.id] for device in devices]).reshape(-1, len(SHEET))
    return devices, tuple(sorted(corpus.tasks, key=of_task)), table


def contents(corpus: Corpus) -> dict[str, tuple[float, ...]]:
    """What was measured on each device, without names and units: sorted logarithms over the task's geometric mean."""
    logs: dict[str, list[float]] = defaultdict(list)
    for measurement in corpus.measurements:
        logs[measurement.task].append(math.log(measurement.throughput))
    means = {task: math.fsum(values) / len(values) for task, values in logs.items()}
    found: dict[str, list[float]] = {device.id: [] for device in corpus.devices}
    for measurement in corpus.measurements:
        found[measurement.device].append(round(math.log(measurement.throughput) - means[measurement.task], 9))
    return {device: tuple(sorted(values)) for device, values in found.items()}


def _same_family(tasks: Sequence[IndexedTask]) -> Floats:
    families = [task.family for task in tasks]
    numbers = np.array([position if name is None else families.index(name) for position, name in enumerate(families)])
    return np.asarray(numbers[:, None] == numbers[None, :], dtype=float)


def _spread(values: Iterable[Sequence[float]]) -> float:
    """Pooled standard deviation of log throughput within a row, shrunk to the usual one."""
    squares, freedom = [SPREAD_WEIGHT * USUAL_SPREAD**2], SPREAD_WEIGHT
    for repeated in values:
        if len(repeated) > 1:
            logs = np.log(np.sort(repeated))
            squares.append(float(np.sum((logs - logs.mean()) ** 2)))
            freedom += len(repeated) - 1
    return float(np.sqrt(sum(sorted(squares)) / freedom))
