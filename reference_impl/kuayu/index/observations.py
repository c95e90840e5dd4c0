"""Devices and tasks of a request as arrays: what data sheets say of their capabilities, and what a corpus measured.

1. A name that is unknown or stands twice is refused, with a pointer to each place (``check_indices``, ``check_plan``).
2. A data sheet is a row of natural logarithms, one column for each of ``SHEET``; NaN is what it does not state.
3. A missing value is drawn from a one-factor model of log capabilities, x_j = μ_j + s + e_j, with s the general size of
   a device: its mean given the values that are there is μ_j + Σ(x − μ) / (n + σ_e²/σ_s²), which never falls when one of
   them rises, so an index stays monotone. Its variance goes into the interval.
4. A term says which capability stands for which part of a task's time. *matrix* is the fastest of the task's number
   formats that the device states. *vector* is binary32; a task whose only format is binary32 has no such term, since
   the two would be one number. A task that may also take binary32 keeps both: its matrix work runs in the fastest
   format and its other work in binary32. *scale_out* counts where several devices work together; *fixed* is one for
   every device.
5. A corpus becomes one row for each measured pair. Devices and tasks are sorted by what they are, never by what they
   are called, so that another order of the same request leads to the same sums in the same order.
6. Measurements with several devices tell a task's exchange: each device spends n/R on one unit of throughput where n of
   them do R together, and what this is longer than with fewer devices is X · 2(n − 1)/n / B, a ring all-reduce of X
   bytes at bandwidth B (Patarasuk and Yuan 2009).
7. An amount beyond what the model can hold is given as the end of its range (``positive``, ``raised``).

Examples: of a device that states fp16 and memory bandwidth alone, the *vector* term is filled in from the other two,
with a variance; the *matrix* term of a task in fp16 is what the sheet says, with none. Where one device does 100
samples in a second and eight do 640, each spends 12.5 ms instead of 10 ms on a sample; the 2.5 ms are the exchange.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from kuayu.refusals import Complaint, RepeatedName, UnknownName, refuse, repeated
from kuayu_schemas.models import (
    Capability,
    Corpus,
    CorpusCell,
    DeviceGroup,
    IndexedDevice,
    IndexedTask,
    IndexRequest,
    Measurement,
    PrecisionThroughput,
    ProbePlanRequest,
)

FORMATS = tuple(PrecisionThroughput.model_fields)
"""Number formats whose peak a data sheet may state."""

MEMORY, SCALE_OUT = len(FORMATS), len(FORMATS) + 1
"""Columns of the bandwidths, after those of the formats."""

SHEET = (*FORMATS, "accelerator_memory_bandwidth", "scale_out_bandwidth")
"""Columns of a sheet."""

VECTOR = FORMATS.index("fp32")

SIZE_VARIANCE, OWN_VARIANCE = 0.8**2, 0.5**2
"""Variance of the general size of a device, and of one value around it; natural logarithms.

About what the data sheets of accelerators between 2014 and 2024 show: they span a factor of ten to a hundred, and a
value strays from the others by one half.
"""

TERMS = (Capability.matrix, Capability.vector, Capability.memory, Capability.fixed, Capability.scale_out)
MATRIX_TERM, VECTOR_TERM, MEMORY_TERM, FIXED_TERM, SCALE_OUT_TERM = range(len(TERMS))
"""Places of the terms. That of *scale_out* is last, since it is cut off where every index is one of single devices."""

OWN_FORMAT = len(FORMATS)
"""Number of the format of a device that states none of the task's formats."""

MIN_AMOUNT, MAX_AMOUNT = 1e-30, 1e30
"""Ends of a positive amount."""

MAX_LOG = 69.0
"""About the logarithm of the largest positive amount; where logarithms are cut before they are raised to e."""

USUAL_SPREAD = 0.02
"""Standard deviation of log throughput between repetitions, where a corpus has none."""

SPREAD_WEIGHT = 4.0
"""How many repetitions the usual spread is worth."""

OTHER_COUNT_VARIANCE = 0.1**2
"""Variance of a log throughput that was measured at another device count than that of the task's index."""

OWN_PART = 0.3
"""Least part of a measured time that is left to the device itself when the exchange is taken off."""


Floats = npt.NDArray[np.float64]


def sheet_of(device: IndexedDevice) -> Floats:
    """Natural logarithms of a device's capabilities, NaN where absent; zero, which has none, counts as one."""
    peaks = device.peak_matrix_throughput
    values = [None if peaks is None else getattr(peaks, name) for name in FORMATS]
    values += [device.accelerator_memory_bandwidth, device.scale_out_bandwidth]
    return np.array([math.nan if value is None else math.log(min(max(value, 1.0), MAX_AMOUNT)) for value in values])


@dataclass(frozen=True)
class Sheets:
    """Sheets without gaps.

    Attributes:
        logs: D × len(SHEET).
        variance: Variance of each value, zero where it is stated; D × len(SHEET).
    """

    logs: Floats
    variance: Floats


def usual_sheet(sheets: Floats) -> Floats:
    """Mean of each column over the sheets that state it, zero where none does; shape (len(SHEET),)."""
    known = np.isfinite(sheets)
    total: Floats = np.where(known, sheets, 0.0).sum(axis=0)
    return np.asarray(total / np.maximum(known.sum(axis=0), 1))


def complete(sheets: Floats, centre: Floats) -> Sheets:
    """Fill the gaps of sheets (… × len(SHEET)) around usual values.

    The bandwidth between devices says nothing of a single device and is drawn from the others, never the other way.
    """
    known = np.isfinite(sheets)
    telling = known & (np.arange(len(SHEET)) != SCALE_OUT)
    number = telling.sum(axis=-1, keepdims=True)
    size = np.where(telling, sheets - centre, 0.0).sum(axis=-1, keepdims=True) / (number + OWN_VARIANCE / SIZE_VARIANCE)
    unsure = OWN_VARIANCE + 1 / (1 / SIZE_VARIANCE + number / OWN_VARIANCE)
    return Sheets(np.where(known, sheets, centre + size), np.where(known, 0.0, unsure))


Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TaskTerms:
    """What the terms of T tasks are.

    Attributes:
        allowed: Formats that each task may take, T × len(FORMATS).
        present: Terms that each task has at the count of its index, T × len(TERMS).
        pool: Number of each task's set of formats; tasks of one set share typical weights.
    """

    allowed: Flags
    present: Flags
    pool: Whole

    def only(self, tasks: Whole) -> "TaskTerms":
        """The same for some of the tasks."""
        return TaskTerms(self.allowed[tasks], self.present[tasks], self.pool[tasks])


@dataclass(frozen=True)
class Levels:
    """Logarithms of capabilities, term by term.

    Attributes:
        logs: Devices × tasks × len(TERMS); zero for *fixed*.
        variance: Variance of what was not stated, same shape.
        chosen: Number format that each device would take for each task; devices × tasks.
    """

    logs: Floats
    variance: Floats
    chosen: Whole


def task_terms(formats: Sequence[frozenset[str]], index_count: Whole) -> TaskTerms:
    """Terms of tasks with these number formats, whose indices are told at these device counts."""
    allowed = np.array([[name in own for name in FORMATS] for own in formats]).reshape(-1, len(FORMATS))
    present = np.ones((len(formats), len(TERMS)), dtype=bool)
    present[:, VECTOR_TERM] = [own != {FORMATS[VECTOR]} for own in formats]
    present[:, SCALE_OUT_TERM] = index_count > 1
    sets = sorted({tuple(sorted(own)) for own in formats})
    pool = np.array([sets.index(tuple(sorted(own))) for own in formats], dtype=np.int64)
    return TaskTerms(allowed, present, pool)


def levels(sheets: Floats, centre: Floats, tasks: TaskTerms) -> Levels:
    """Capabilities of devices (D × len(SHEET), with gaps) for tasks."""
    filled = complete(sheets, centre)
    devices, number = len(sheets), len(tasks.allowed)
    logs = np.zeros((devices, number, len(TERMS)))
    variance = np.zeros_like(logs)
    chosen = np.zeros((devices, number), dtype=np.int64)
    for pool in np.unique(tasks.pool):
        of_pool = tasks.pool == pool
        allowed = tasks.allowed[of_pool][0]
        stated = np.isfinite(sheets[:, : len(FORMATS)]) & allowed
        none = ~stated.any(axis=1)
        guessed = allowed if allowed.any() else np.ones(len(FORMATS), dtype=bool)
        eligible = np.where(none[:, None], guessed, stated)
        peaks = np.where(eligible, filled.logs[:, : len(FORMATS)], -np.inf)
        best = peaks.argmax(axis=1)
        own = np.arange(devices)
        logs[:, of_pool, MATRIX_TERM] = peaks[own, best][:, None]
        variance[:, of_pool, MATRIX_TERM] = np.where(none, filled.variance[own, best], 0.0)[:, None]
        chosen[:, of_pool] = np.where(none, OWN_FORMAT + pool, best)[:, None]
    for term, column in ((VECTOR_TERM, VECTOR), (MEMORY_TERM, MEMORY), (SCALE_OUT_TERM, SCALE_OUT)):
        logs[:, :, term] = filled.logs[:, column][:, None]
        variance[:, :, term] = filled.variance[:, column][:, None]
    return Levels(logs, variance, chosen)


def harmonic(demands: Floats, logs: Floats, present: Flags) -> tuple[Floats, Floats]:
    """Log time log Σ exp(z_k − l_k) and the share of each term; terms on the last axis."""
    exponents = np.where(present, demands - logs, -np.inf)
    highest = exponents.max(axis=-1, keepdims=True)
    parts = np.exp(exponents - highest)
    total = parts.sum(axis=-1, keepdims=True)
    return (highest + np.log(total))[..., 0], parts / total


def positive(value: float) -> float:
    """A value as a positive amount."""
    return min(max(value, MIN_AMOUNT), MAX_AMOUNT)


def raised(logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Positive amounts of these logarithms."""
    return np.asarray(np.clip(np.exp(np.clip(logs, -MAX_LOG - 1, MAX_LOG + 1)), MIN_AMOUNT, MAX_AMOUNT))


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
    by_task: dict[int, list[CountedThroughput]] = defaultdict(list)
    for (device, task, count), readings in sorted(values.items()):
        bandwidth = devices[device].scale_out_bandwidth
        by_task[task].append(CountedThroughput(device, count, float(np.median(readings)), bandwidth))
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
        power={place: float(np.median(readings)) for place, readings in powers.items()},
    )


def contents(corpus: Corpus) -> dict[str, tuple[float, ...]]:
    """What was measured on each device, without names and units: sorted logarithms over the task's geometric mean."""
    logs: dict[str, list[float]] = defaultdict(list)
    for measurement in corpus.measurements:
        logs[measurement.task].append(math.log(measurement.throughput))
    means = {task: math.fsum(values) / len(values) for task, values in logs.items()}
    by_device: dict[str, list[float]] = {device.id: [] for device in corpus.devices}
    for measurement in corpus.measurements:
        by_device[measurement.device].append(round(math.log(measurement.throughput) - means[measurement.task], 9))
    return {device: tuple(sorted(values)) for device, values in by_device.items()}


def check_indices(request: IndexRequest) -> None:
    """Check the names of a request for indices.

    Raises:
        RepeatedName: Devices, tasks or groups share a name.
        UnknownName: A name is not in the corpus, or a group is not earlier in the list.
    """
    groups = request.groups or []
    refuse(RepeatedName, [*_repeated_in_corpus(request.corpus), *repeated("/groups", [group.id for group in groups])])
    devices, tasks = _known_names(request.corpus)
    complaints = [*_unknown_in_measurements(request.corpus), *_unknown([("/reference", request.reference)], devices)]
    complaints += _unknown(_complaints("/devices", request.devices or []), devices)
    complaints += _unknown(_complaints("/tasks", request.tasks or []), tasks)
    refuse(UnknownName, [*complaints, *_unknown_members(groups, devices)])


def check_plan(request: ProbePlanRequest) -> None:
    """Check the names of a request for a probe plan.

    Raises:
        RepeatedName: Devices or tasks share a name.
        UnknownName: A name is not in the corpus.
    """
    refuse(RepeatedName, _repeated_in_corpus(request.corpus))
    complaints = _unknown_in_measurements(request.corpus)
    for place, cells in (("/candidates", request.candidates), ("/targets", request.targets)):
        complaints += _unknown_in_cells(place, cells, *_known_names(request.corpus))
    refuse(UnknownName, complaints)


def exchange_traffic(count: int) -> float:
    """Bytes on the wire of each device for each byte that is exchanged among so many, 2(n − 1)/n."""
    return 2 * (count - 1) / count


@dataclass(frozen=True)
class CountedThroughput:
    """Median throughput of so many devices of one kind on a task, and the bandwidth between them where it is known."""

    device: int
    count: int
    throughput: float
    bandwidth: float | None

    @property
    def time(self) -> float:
        """Time that each device spends on one unit."""
        return self.count / self.throughput


def exchange_of(rows: Sequence[CountedThroughput]) -> float | None:
    """Bytes that a task exchanges for one unit: median over the devices that were measured at several counts."""
    first: dict[int, CountedThroughput] = {}
    bytes_per_unit: list[float] = []
    for row in sorted(rows, key=lambda row: (row.device, row.count)):
        least = first.setdefault(row.device, row)
        if row is not least and row.bandwidth is not None:
            traffic = exchange_traffic(row.count) - exchange_traffic(least.count)
            bytes_per_unit.append((row.time - least.time) * row.bandwidth / traffic)
    return max(median(bytes_per_unit), 0.0) if bytes_per_unit else None


def at_count(row: CountedThroughput, count: int, exchange: float | None) -> float:
    """Logarithm of the throughput that one device would have among ``count``, as far as its exchange is known."""
    own = row.time
    if exchange is not None and row.bandwidth is not None:
        own -= exchange * (exchange_traffic(row.count) - exchange_traffic(count)) / row.bandwidth
    return -math.log(max(own, OWN_PART * row.time))


def least_counts(rows: Mapping[int, Sequence[CountedThroughput]]) -> dict[int, int]:
    """Least device count that each task was measured at."""
    return {task: min(row.count for row in scaled) for task, scaled in rows.items()}


def _at_index_count(
    rows: Mapping[int, Sequence[CountedThroughput]], counts: Mapping[int, int]
) -> dict[tuple[int, int], CountedThroughput]:
    """For each measured pair, by device and then task, the row at the least device count."""
    chosen: dict[tuple[int, int], CountedThroughput] = {}
    for task in sorted(counts):
        for row in sorted(rows[task], key=lambda row: row.count):
            chosen.setdefault((row.device, task), row)
    return dict(sorted(chosen.items()))


def _in_order(corpus: Corpus) -> tuple[tuple[IndexedDevice, ...], tuple[IndexedTask, ...], Floats]:
    """Devices and tasks by content, and the sheets of the devices; those of like content keep the request's order."""
    on_device = Counter(measurement.device for measurement in corpus.measurements)
    sheets = {device.id: sheet_of(device) for device in corpus.devices}
    keys = {name: (-on_device[name], *np.nan_to_num(sheet, nan=-1.0).tolist()) for name, sheet in sheets.items()}
    content_of = contents(corpus)
    places: dict[str, list[tuple[float, ...]]] = {task.id: [] for task in corpus.tasks}
    for measurement in corpus.measurements:
        places[measurement.task].append(keys[measurement.device])

    def of_task(task: IndexedTask) -> tuple[object, ...]:
        known = (task.work or 0.0, task.memory_traffic or 0.0, task.exchange or 0.0)
        return (-len(places[task.id]), sorted(map(str, task.precisions)), known, sorted(places[task.id]))

    devices = tuple(sorted(corpus.devices, key=lambda device: (keys[device.id], content_of[device.id])))
    table = np.array([sheets[device.id] for device in devices]).reshape(-1, len(SHEET))
    return devices, tuple(sorted(corpus.tasks, key=of_task)), table


def _same_family(tasks: Sequence[IndexedTask]) -> Floats:
    families = [task.family for task in tasks]
    numbers = np.array([position if name is None else families.index(name) for position, name in enumerate(families)])
    return np.asarray(numbers[:, None] == numbers[None, :], dtype=float)


def _spread(values: Iterable[Sequence[float]]) -> float:
    """Pooled standard deviation of log throughput within a row, shrunk to the usual one."""
    squares, freedom = [SPREAD_WEIGHT * USUAL_SPREAD**2], SPREAD_WEIGHT
    for pair in values:
        if len(pair) > 1:
            logs = np.log(np.sort(pair))
            squares.append(float(np.sum((logs - logs.mean()) ** 2)))
            freedom += len(pair) - 1
    return float(np.sqrt(sum(sorted(squares)) / freedom))


def _known_names(corpus: Corpus) -> tuple[set[str], set[str]]:
    return {device.id for device in corpus.devices}, {task.id for task in corpus.tasks}


def _complaints(place: str, names: Sequence[str]) -> list[Complaint]:
    return [(f"{place}/{position}", name) for position, name in enumerate(names)]


def _unknown(places: Iterable[Complaint], known: set[str]) -> list[Complaint]:
    return [(pointer, f"{name} is not in the corpus") for pointer, name in places if name not in known]


def _unknown_in_measurements(corpus: Corpus) -> list[Complaint]:
    return _unknown_in_cells("/corpus/measurements", corpus.measurements, *_known_names(corpus))


def _unknown_in_cells(
    place: str, cells: Sequence[CorpusCell | Measurement], devices: set[str], tasks: set[str]
) -> list[Complaint]:
    complaints: list[Complaint] = []
    for position, cell in enumerate(cells):
        if cell.device not in devices:
            complaints.append((f"{place}/{position}/device", f"{cell.device} is not in the corpus"))
        if cell.task not in tasks:
            complaints.append((f"{place}/{position}/task", f"{cell.task} is not in the corpus"))
    return complaints


def _unknown_members(groups: Sequence[DeviceGroup], devices: set[str]) -> list[Complaint]:
    complaints: list[Complaint] = []
    earlier: set[str] = set()
    for position, group in enumerate(groups):
        for place, member in enumerate(group.members):
            pointer = f"/groups/{position}/members/{place}"
            if member.device is not None and member.device not in devices:
                complaints.append((f"{pointer}/device", f"{member.device} is not in the corpus"))
            if member.group is not None and member.group not in earlier:
                complaints.append((f"{pointer}/group", f"{member.group} is no group that stands earlier"))
        earlier.add(group.id)
    return complaints


def _repeated_in_corpus(corpus: Corpus) -> list[Complaint]:
    devices = repeated("/corpus/devices", [device.id for device in corpus.devices])
    return [*devices, *repeated("/corpus/tasks", [task.id for task in corpus.tasks])]
