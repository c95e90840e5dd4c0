"""The answer to a request for indices."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from scipy.special import stdtrit

from kuayu.index.calibration import Calibration
from kuayu.index.explanation import explain, written
from kuayu.index.gaussian_process import KERNEL, Kernel, average
from kuayu.index.groups import DeviceWorth, TaskScale, group_indices
from kuayu.index.method import METHOD, Estimators, calibrated
from kuayu.index.names import check_indices
from kuayu.index.observations import Floats, Whole
from kuayu.index.prediction import Indices, indices
from kuayu.index.ranges import MAX_LOG, positive, raised
from kuayu_schemas.models import ComputeIndex, GroupIndex, IndexBasis, IndexReport, IndexRequest

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


@dataclass(frozen=True)
class _Answer:
    calibration: Calibration
    tasks: Whole
    found: Indices
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
        names = _asked(request.tasks, [task.id for task in request.corpus.tasks])
        tasks = np.array([seen.task_at[name] for name in names], dtype=np.int64)
        wanted = set(_asked(request.devices, [device.id for device in request.corpus.devices]))
        wanted |= {member.device for group in request.groups or [] for member in group.members if member.device}
        devices = np.array(sorted(seen.device_at[name] for name in wanted), dtype=np.int64)
        found = average(indices(calibration, devices, tasks), estimators.process(kernel), devices, tasks)
        half = np.minimum(quantile(calibration, coverage) * np.sqrt(found.variance), 2 * MAX_LOG)
        value = raised(found.mean)
        middle = np.log(value)
        ends = value, np.exp(middle - half), np.exp(middle + half)
        return _Answer(
            calibration,
            tasks,
            found,
            *ends,
            coverage,
            USUAL_TOLERANCE if request.tolerance is None else request.tolerance,
        )

    def indices(self, request: IndexRequest) -> list[ComputeIndex]:
        seen = self.calibration.seen
        names = _asked(request.devices, [device.id for device in request.corpus.devices])
        tasks = _asked(request.tasks, [task.id for task in request.corpus.tasks])
        places = np.array([seen.device_at[name] for name in names], dtype=np.int64)
        wanted = bool(request.explain and names and tasks)
        explained = explain(self.calibration, places, self.tasks, self.found) if wanted else None
        probed = np.bincount(seen.device, minlength=len(seen.devices)) > 0
        found: list[dict[str, Any]] = []
        for row, place in enumerate(places.tolist()):
            basis = IndexBasis.probed if probed[place] else IndexBasis.specified
            explanations = [None] * len(tasks) if explained is None else written(explained, row)
            found += self._of_device(place, basis, tasks, explanations)
        return _INDICES.validate_python(found)

    def _of_device(
        self, place: int, basis: IndexBasis, tasks: Sequence[str], explanations: Sequence[Any]
    ) -> Iterator[dict[str, Any]]:
        device = self.calibration.seen.devices[place]
        values, lows, highs = self.value[place].tolist(), self.low[place].tolist(), self.high[place].tolist()
        measured = self.found.measured[place].tolist()
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
        names = _asked(request.tasks, [task.id for task in request.corpus.tasks])
        column = {name: position for position, name in enumerate(names)}

        def worth(device: str, task: str) -> DeviceWorth:
            place, task_at = seen.device_at[device], column[task]
            value, low, high = (float(end[place, task_at]) for end in (self.value, self.low, self.high))
            return DeviceWorth(value, low, high, self._power(place, seen.task_at[task]))

        scales = {name: self._scale(seen.task_at[name], column[name]) for name in names}
        return group_indices(request.groups, names, worth, scales)

    def _scale(self, task: int, column: int) -> TaskScale:
        """Absolute figures of a task: throughput of the reference, and exchange as given or as measured."""
        seen = self.calibration.seen
        measured = bool((seen.task == task).any())
        throughput = float(raised(self.found.reference.mean[0, column])) if measured else None
        exchange = seen.tasks[task].exchange
        if exchange is None:
            exchange = seen.exchange.get(task)
        return TaskScale(throughput, exchange, self._power(self.calibration.reference, task))


def _asked(names: Sequence[str] | None, everything: list[str]) -> list[str]:
    """What to tell of, in the order of the request."""
    return everything if names is None else list(names)
