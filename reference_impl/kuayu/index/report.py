"""The answer to a request for indices: devices and groups of them, each with an interval and an explanation.

1. The method has a name and a version. A calibration depends on nothing but the corpus and the reference, so keeping
   those that were made lately changes no answer.
2. An explanation is index = residual / Σ_k weight_k / ratio_k. Weights are the shares of the task's time on the
   reference, ratios are calibrated capabilities over the reference's, and the residual is what is left.
3. A lever is the data sheet changed and the harmonic mean taken again, calibration kept: *matrix* stands for all number
   formats that the task may take, *vector* for binary32. For a device without measurements that is what its index
   would be, to the last digit, however the terms overlap and whatever is filled in from the value.
4. For independent jobs a group (node, domain, federation) is worth the sum of its devices. One synchronous
   data-parallel job over all of them shares the work by speed, so that all compute for the same time, and then
   exchanges once at every level. With t the mean time of a device for one unit of throughput, X the bytes exchanged for
   it, m_l the members at level l, B_l their bandwidth,

       efficiency = t / (t + Σ_l X · 2(m_l − 1)/m_l / B_l),

   a ring all-reduce at each level (Patarasuk and Yuan 2009), nothing overlapped. Where a group holds unlike groups, the
   slowest of them counts, since the exchange above waits for all.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from scipy.special import stdtrit

from kuayu.index.calibration import Calibration, calibrate, cells
from kuayu.index.observations import (
    MATRIX_TERM,
    MAX_AMOUNT,
    MAX_LOG,
    MEMORY,
    MEMORY_TERM,
    MIN_AMOUNT,
    SCALE_OUT,
    SCALE_OUT_TERM,
    TERMS,
    VECTOR,
    VECTOR_TERM,
    Flags,
    Floats,
    Whole,
    check_indices,
    exchange_traffic,
    observe,
    positive,
    raised,
)
from kuayu.index.prediction import KERNEL, Indices, Kernel, Process, average, cells_at, indices
from kuayu_schemas.models import (
    ComputeIndex,
    Corpus,
    DeviceGroup,
    GroupIndex,
    IndexBasis,
    IndexMethod,
    IndexReport,
    IndexRequest,
)

USUAL_COVERAGE, USUAL_TOLERANCE = 0.9, 0.4
"""What holds where a request does not say."""

FREEDOM = 4.0
"""Degrees of freedom of intervals beyond the number of well-measured devices, for what is known beforehand."""

_INDICES = TypeAdapter(list[ComputeIndex])
"""Makes indices of plain values, checked, and faster than one by one."""


def compute_indices(request: IndexRequest, kernel: Kernel = KERNEL) -> IndexReport:
    """Compute indices of devices and groups for tasks, each with its interval and, where asked for, its explanation.

    ``kernel`` is other than the usual one only where constants are compared.

    Raises:
        RepeatedName: Devices, tasks or groups share a name.
        UnknownName: The request names what its corpus does not hold.
    """
    check_indices(request)
    if request.tasks == []:
        coverage = USUAL_COVERAGE if request.coverage is None else request.coverage
        return IndexReport(
            revision=request.revision,
            reference=request.reference,
            coverage=coverage,
            method=METHOD,
            indices=[],
            groups=[],
        )
    answer = _Answer.to(request, calibrated(request.corpus, request.reference), kernel)
    return IndexReport.model_construct(
        revision=request.revision,
        reference=request.reference,
        coverage=answer.coverage,
        method=METHOD,
        indices=answer.indices(request),
        groups=answer.groups(request),
    )


def quantile(calibration: Calibration, coverage: float) -> float:
    """Half width of an interval in standard deviations: Student's t, as variances are known from few devices."""
    return float(stdtrit(len(calibration.basis) + FREEDOM, (1 + coverage) / 2))


MAX_GROUP_DEVICES = 2**53 - 1
"""Largest count that the model can hold."""


@dataclass(frozen=True)
class DeviceValue:
    """What a device is worth for a task: index, its interval, and its power in watts where that is known."""

    value: float
    low: float
    high: float
    power: float | None


@dataclass(frozen=True)
class TaskScale:
    """Absolute figures of a task.

    Attributes:
        throughput: Units in a second on the reference; None where the task was measured nowhere.
        exchange: Bytes that each device exchanges for one unit; None where it is not known.
        power: Power of the reference in watts, where it is known.
    """

    throughput: float | None
    exchange: float | None
    power: float | None


def group_indices(
    groups: Sequence[DeviceGroup],
    tasks: Sequence[str],
    index_of: Callable[[str, str], DeviceValue],
    scales: Mapping[str, TaskScale],
) -> list[GroupIndex]:
    """Indices by group, then task; groups stand after those that they consist of."""
    known: dict[tuple[str, str], _GroupTotal] = {}
    rows: list[GroupIndex] = []
    for group in groups:
        for task in tasks:
            whole = known[group.id, task] = _total_of(group, task, index_of, known)
            rows.append(_group_index(group.id, task, whole, scales[task]))
    return rows


LEVER_FACTOR = 2.0
"""Factor of every lever."""


@dataclass(frozen=True)
class Explanation:
    """Explanations of B devices on Q tasks, as arrays.

    Attributes:
        weights: (Q, K).
        ratios: (B, Q, K).
        shares: (B, Q, K).
        residual: (B, Q).
        present: Terms that a task has, (Q, K).
        levers: Indices with a term's capability changed, (B, Q, K); NaN where there is no lever.
    """

    weights: Floats
    ratios: Floats
    shares: Floats
    residual: Floats
    present: Flags
    levers: Floats


def explain(calibration: Calibration, devices: Whole, tasks: Whole, indices: Indices) -> Explanation:
    """Explain the indices of devices for tasks."""
    anchor = indices.reference
    _, weights = anchor.cells.times(calibration.demands, anchor.factors)
    target_cells = cells_at(calibration, devices, tasks)
    factors = indices.factors[devices]
    ratios = raised(target_cells.logs + factors - anchor.cells.logs - anchor.factors)
    parts = weights / ratios
    total = parts.sum(axis=2, keepdims=True)
    value = raised(indices.mean[devices])
    residual = np.clip(value * total[..., 0], MIN_AMOUNT, MAX_AMOUNT)
    present = target_cells.present[0]
    levers = _levers(calibration, devices, tasks, indices)
    return Explanation(weights[0], ratios, parts / total, residual, present, levers)


def written(explained: Explanation, device: int) -> list[dict[str, Any]]:
    """Write the explanations of one device, task by task, as values of the model's classes."""
    weights, ratios = explained.weights.tolist(), explained.ratios[device].tolist()
    shares, levers = explained.shares[device].tolist(), explained.levers[device].tolist()
    residual = explained.residual[device].tolist()
    explanations: list[dict[str, Any]] = []
    for task, present in enumerate(explained.present.tolist()):
        shown = [term for term, is_present in enumerate(present) if is_present]
        share = shares[task]
        terms = [
            {
                "capability": TERMS[term],
                "weight": min(1.0, weights[task][term]),
                "ratio": ratios[task][term],
                "share": min(1.0, share[term]),
            }
            for term in shown
        ]
        pulled = [
            {"capability": TERMS[term], "factor": LEVER_FACTOR, "value": levers[task][term]}
            for term in shown
            if math.isfinite(levers[task][term])
        ]
        dominant = TERMS[max(shown, key=share.__getitem__)]
        explanations.append({"terms": terms, "residual": residual[task], "dominant": dominant, "levers": pulled})
    return explanations


METHOD_NAME = "Harmonic mean of calibrated capabilities, averaged with a Gaussian process"
METHOD_VERSION = "2.0.0"

METHOD = IndexMethod(name=METHOD_NAME, version=METHOD_VERSION)

MAX_CALIBRATIONS = 8
"""How many calibrations are stored."""


@dataclass(frozen=True)
class Estimators:
    """Both estimates of a corpus: the calibrated harmonic mean, and the process, computed when it is needed."""

    calibration: Calibration
    _processes: dict[Kernel, Process | None] = field(default_factory=dict)

    def process(self, kernel: Kernel = KERNEL) -> Process | None:
        """The Gaussian process; None where the reference was not measured or the process has no weight."""
        if kernel.weight and kernel not in self._processes:
            self._processes[kernel] = Process.of(self.calibration, kernel)
        return self._processes.get(kernel)


_calibrations: OrderedDict[tuple[bytes, str], Estimators] = OrderedDict()
_lock = Lock()


def calibrated(corpus: Corpus, reference: str) -> Estimators:
    """Calibrate by a corpus whose names have been checked."""
    key = (sha256(corpus.model_dump_json().encode()).digest(), reference)
    with _lock:
        cached = _calibrations.get(key)
        if cached is not None:
            _calibrations.move_to_end(key)
            return cached
    seen = observe(corpus)
    estimators = Estimators(calibrate(seen, seen.device_at[reference]))
    with _lock:
        _calibrations[key] = estimators
        while len(_calibrations) > MAX_CALIBRATIONS:
            _calibrations.popitem(last=False)
    return estimators


def forget() -> None:
    """Forget the calibrations that are stored, so that the next call is a cold one."""
    with _lock:
        _calibrations.clear()


@dataclass(frozen=True)
class _Answer:
    calibration: Calibration
    tasks: Whole
    estimates: Indices
    value: Floats
    low: Floats
    high: Floats
    coverage: float
    tolerance: float

    @staticmethod
    def to(request: IndexRequest, estimators: Estimators, kernel: Kernel) -> "_Answer":
        calibration = estimators.calibration
        seen = calibration.seen
        coverage = USUAL_COVERAGE if request.coverage is None else request.coverage
        names = _requested(request.tasks, [task.id for task in request.corpus.tasks])
        tasks = np.array([seen.task_at[name] for name in names], dtype=np.int64)
        wanted = set(_requested(request.devices, [device.id for device in request.corpus.devices]))
        wanted |= {member.device for group in request.groups or [] for member in group.members if member.device}
        devices = np.array(sorted(seen.device_at[name] for name in wanted), dtype=np.int64)
        averaged = average(indices(calibration, devices, tasks), estimators.process(kernel), devices, tasks)
        half = np.minimum(quantile(calibration, coverage) * np.sqrt(averaged.variance), 2 * MAX_LOG)
        value = raised(averaged.mean)
        middle = np.log(value)
        ends = value, np.exp(middle - half), np.exp(middle + half)
        return _Answer(
            calibration,
            tasks,
            averaged,
            *ends,
            coverage,
            USUAL_TOLERANCE if request.tolerance is None else request.tolerance,
        )

    def indices(self, request: IndexRequest) -> list[ComputeIndex]:
        seen = self.calibration.seen
        names = _requested(request.devices, [device.id for device in request.corpus.devices])
        tasks = _requested(request.tasks, [task.id for task in request.corpus.tasks])
        places = np.array([seen.device_at[name] for name in names], dtype=np.int64)
        wanted = bool(request.explain and names and tasks)
        explained = explain(self.calibration, places, self.tasks, self.estimates) if wanted else None
        probed = np.bincount(seen.device, minlength=len(seen.devices)) > 0
        rows: list[dict[str, Any]] = []
        for row, place in enumerate(places.tolist()):
            basis = IndexBasis.probed if probed[place] else IndexBasis.specified
            explanations = [None] * len(tasks) if explained is None else written(explained, row)
            rows += self._of_device(place, basis, tasks, explanations)
        return _INDICES.validate_python(rows)

    def _of_device(
        self, place: int, basis: IndexBasis, tasks: Sequence[str], explanations: Sequence[Any]
    ) -> Iterator[dict[str, Any]]:
        device = self.calibration.seen.devices[place]
        values, lows, highs = self.value[place].tolist(), self.low[place].tolist(), self.high[place].tolist()
        measured = self.estimates.measured[place].tolist()
        if place == self.calibration.reference:
            values = lows = highs = [1.0] * len(tasks)
        for position, task in enumerate(self.tasks.tolist()):
            value, low, high = values[position], lows[position], highs[position]
            yield {
                "device": device.id,
                "task": tasks[position],
                "value": value,
                "low": low,
                "high": high,
                "basis": IndexBasis.measured if measured[position] else basis,
                "abstained": math.sqrt(high / low) - 1 > self.tolerance,
                "per_watt": self._per_watt(place, task, value),
                "stack": device.stack,
                "measured_at": device.measured_at,
                "explanation": explanations[position],
            }

    def _per_watt(self, place: int, task: int, value: float) -> float | None:
        own, other = self._power(place, task), self._power(self.calibration.reference, task)
        return None if own is None or other is None else positive(value * other / own)

    def _power(self, place: int, task: int) -> float | None:
        """Power on the task where it was measured, else the device's own."""
        seen = self.calibration.seen
        return seen.power.get((place, task), seen.devices[place].power)

    def groups(self, request: IndexRequest) -> list[GroupIndex]:
        if not request.groups:
            return []
        seen = self.calibration.seen
        names = _requested(request.tasks, [task.id for task in request.corpus.tasks])
        column = {name: position for position, name in enumerate(names)}

        def value_of(device: str, task: str) -> DeviceValue:
            place, task_at = seen.device_at[device], column[task]
            value, low, high = (float(end[place, task_at]) for end in (self.value, self.low, self.high))
            return DeviceValue(value, low, high, self._power(place, seen.task_at[task]))

        scales = {name: self._scale(seen.task_at[name], column[name]) for name in names}
        return group_indices(request.groups, names, value_of, scales)

    def _scale(self, task: int, column: int) -> TaskScale:
        """Absolute figures of a task: throughput of the reference, and exchange as given or as measured."""
        seen = self.calibration.seen
        measured = bool((seen.task == task).any())
        throughput = float(raised(self.estimates.reference.mean[0, column])) if measured else None
        exchange = seen.tasks[task].exchange
        if exchange is None:
            exchange = seen.exchange.get(task)
        return TaskScale(throughput, exchange, self._power(self.calibration.reference, task))


def _requested(names: Sequence[str] | None, everything: list[str]) -> list[str]:
    """What to tell of, in the order of the request."""
    return everything if names is None else list(names)


@dataclass(frozen=True)
class _GroupTotal:
    """A group so far: devices, sums, and seconds of exchange for each byte; None where a bandwidth is missing."""

    devices: int
    value: float
    low: float
    high: float
    power: float | None
    exchange: float | None


def _total_of(
    group: DeviceGroup,
    task: str,
    index_of: Callable[[str, str], DeviceValue],
    known: Mapping[tuple[str, str], _GroupTotal],
) -> _GroupTotal:
    members = [
        (
            member.count,
            known[member.group, task]
            if member.group is not None
            else _single_device(index_of(member.device or "", task)),
        )
        for member in group.members
    ]
    powers = [None if part.power is None else count * part.power for count, part in members]
    exchanges = [part.exchange for _, part in members]
    number = sum(count for count, _ in members)
    below = None if None in exchanges else max(exchange for exchange in exchanges if exchange is not None)
    return _GroupTotal(
        devices=min(sum(count * part.devices for count, part in members), MAX_GROUP_DEVICES),
        value=positive(sum(count * part.value for count, part in members)),
        low=min(sum(count * part.low for count, part in members), MAX_AMOUNT),
        high=min(sum(count * part.high for count, part in members), MAX_AMOUNT),
        power=None if None in powers else positive(sum(power for power in powers if power is not None)),
        exchange=_exchange_factor(number, group.scale_out_bandwidth, below),
    )


def _single_device(device: DeviceValue) -> _GroupTotal:
    return _GroupTotal(1, device.value, device.low, device.high, device.power, 0.0)


def _exchange_factor(members: int, bandwidth: float | None, below: float | None) -> float | None:
    """Seconds for each exchanged byte in a group of ``members``, the levels below included."""
    if below is None or members == 1:
        return below
    return None if bandwidth is None else below + exchange_traffic(members) / bandwidth


def _group_index(group: str, task: str, whole: _GroupTotal, scale: TaskScale) -> GroupIndex:
    efficiency = _efficiency(whole, scale)
    both = scale.power is not None and whole.power is not None
    per_watt = whole.value * scale.power / whole.power if both and scale.power and whole.power else None
    return GroupIndex.model_construct(
        group=group,
        task=task,
        devices=whole.devices,
        independent=whole.value,
        together=None if efficiency is None else positive(whole.value * efficiency),
        efficiency=efficiency,
        low=whole.low,
        high=whole.high,
        per_watt=None if per_watt is None else positive(per_watt),
    )


def _efficiency(whole: _GroupTotal, scale: TaskScale) -> float | None:
    if whole.exchange is None or scale.throughput is None or scale.exchange is None:
        return None
    own = whole.devices / positive(whole.value * scale.throughput)
    return own / (own + scale.exchange * whole.exchange)


def _levers(calibration: Calibration, devices: Whole, tasks: Whole, indices: Indices) -> Floats:
    """Indices with each capability changed by LEVER_FACTOR in the data sheet, (B, Q, K)."""
    sheets = calibration.seen.sheets[devices]
    factors = indices.factors[devices]
    before, _ = cells_at(calibration, devices, tasks).times(calibration.demands, factors)
    levers = np.full((len(devices), len(tasks), calibration.number), np.nan)
    for columns, term, on in _sheet_changes(calibration, tasks):
        stated = np.isfinite(sheets[:, columns]).any(axis=1)
        if not stated.any() or not on.any():
            continue
        changed = sheets.copy()
        changed[:, columns] += np.log(LEVER_FACTOR)
        place = calibration.levels_of(changed)
        tasks_at = np.broadcast_to(tasks[on], (len(devices), int(on.sum())))
        changed_cells = cells(np.arange(len(devices)), tasks_at, place, calibration.terms, calibration.number)
        after, _ = changed_cells.times(calibration.demands, factors[:, on])
        value = raised(indices.mean[devices][:, on] + before[:, on] - after)
        levers[:, on, term] = np.where(stated.reshape(-1, 1), value, np.nan)
    levers[devices == calibration.reference] = np.nan  # its index is one, whatever changes
    return levers


def _sheet_changes(calibration: Calibration, tasks: Whole) -> list[tuple[Whole, int, Flags]]:
    """What levers change: columns of the data sheet, the term, and the tasks for which they do."""
    pools = calibration.terms.pool[tasks]
    present = calibration.terms.present[tasks]
    changes: list[tuple[Whole, int, Flags]] = []
    for pool in np.unique(pools):
        allowed = calibration.terms.allowed[tasks][pools == pool][0]
        changes.append((np.flatnonzero(allowed), MATRIX_TERM, pools == pool))
    for column, term in ((VECTOR, VECTOR_TERM), (MEMORY, MEMORY_TERM), (SCALE_OUT, SCALE_OUT_TERM)):
        if term < calibration.number:
            changes.append((np.array([column], dtype=np.int64), term, present[:, term]))
    return changes
