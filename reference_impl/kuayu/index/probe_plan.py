"""Probe plans: which measurements would make given indices surest.

Greedy, one measurement after the other. The posterior covariance of Gaussian variables does not depend on what will be
found (Rasmussen and Williams 2006, equation 2.26), so the width that is expected is known beforehand, and so is the
candidate after which the standard deviations of the targets are least in sum.

A request for a plan names no reference. The device with the most measurements stands for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kuayu.index.calibration import Calibration
from kuayu.index.observations import MAX_LOG, Flags, Floats, Whole, check_plan, contents
from kuayu.index.prediction import KERNEL, Kernel, predict
from kuayu.index.report import METHOD, USUAL_COVERAGE, Estimators, calibrated, quantile
from kuayu_schemas.models import CorpusCell, PlannedProbe, ProbePlan, ProbePlanRequest

Cell = tuple[int, int]
"""Positions of a device and of a task."""

ALIKE = 1e-9
"""Relative difference below which two scores are the same; the first by content is then taken."""


def plan_probes(request: ProbePlanRequest, kernel: Kernel = KERNEL) -> ProbePlan:
    """Plan measurements; the plan for fewer probes is the beginning of the plan for more.

    ``kernel`` is other than the usual one only where constants are compared.

    Raises:
        RepeatedName: Devices or tasks share a name.
        UnknownName: The request names what its corpus does not hold.
    """
    check_plan(request)
    reference = _most_measured(request)
    estimators = calibrated(request.corpus, reference)
    seen = estimators.calibration.seen

    def cells_of(named: Sequence[CorpusCell]) -> list[Cell]:
        return [(seen.device_at[cell.device], seen.task_at[cell.task]) for cell in named]

    candidates, targets = sorted(set(cells_of(request.candidates))), sorted(set(cells_of(request.targets)))
    search = _Search.over(estimators, kernel, candidates, targets, lend=True)
    # What likeness and the process lend to a device counts from its first probe on.
    without = _Search.over(estimators, kernel, candidates, targets, lend=False).width()
    probes = []
    for _ in range(min(request.probes, len(candidates))):
        device, task = search.take()
        probes.append(PlannedProbe(device=seen.devices[device].id, task=seen.tasks[task].id, half_width=search.width()))
    without = max([without, *(probe.half_width for probe in probes[:1])])
    return ProbePlan(revision=request.revision, method=METHOD, without=without, probes=probes)


def _most_measured(request: ProbePlanRequest) -> str:
    """The device that was measured on most tasks; where several were, the first by content."""
    tasks: dict[str, set[str]] = {device.id: set() for device in request.corpus.devices}
    for measurement in request.corpus.measurements:
        tasks[measurement.device].add(measurement.task)
    most = max(map(len, tasks.values()))
    sheets = {device.id: device.model_dump_json(exclude={"id", "stack"}) for device in request.corpus.devices}
    content_of = contents(request.corpus)
    most_measured = (name for name in tasks if len(tasks[name]) == most)
    return min(most_measured, key=lambda name: (sheets[name], content_of[name]))


@dataclass
class _Posterior:
    """Covariances of one of the two estimates, and its weight in the average.

    Attributes:
        weight: Weight for each target, (M,).
        cross: Covariance of the targets' log indices with the candidates' log throughputs, (M, N).
        among: Covariance of the candidates, (N, N).
        variance: Variances of the targets, (M,).
        noise: Variance of a measurement.
    """

    weight: Floats
    cross: Floats
    among: Floats
    variance: Floats
    noise: float

    @staticmethod
    def of(weight: Floats, joint: Floats, places: tuple[Whole, Whole, Whole], noise: float) -> "_Posterior":
        """From the covariance of all cells and the places of targets, of their references, and of candidates."""
        own, anchor, column = places
        away = joint[own] - joint[anchor]
        variance = away[np.arange(len(own)), own] - away[np.arange(len(own)), anchor]
        return _Posterior(weight, away[:, column], joint[np.ix_(column, column)], np.maximum(variance, 0.0), noise)

    def gain(self, candidate: int) -> float:
        """Variance of a measurement of a candidate."""
        return float(max(self.among[candidate, candidate], 0.0)) + self.noise

    def after(self, candidate: int) -> Floats:
        """Variances of the targets once a candidate is measured."""
        return np.maximum(self.variance - self.cross[:, candidate] ** 2 / self.gain(candidate), 0.0)

    def take(self, candidate: int) -> None:
        """Measure a candidate."""
        self.variance, gain = self.after(candidate), self.gain(candidate)
        self.cross = self.cross - np.outer(self.cross[:, candidate], self.among[candidate]) / gain
        self.among = self.among - np.outer(self.among[:, candidate], self.among[candidate]) / gain


@dataclass
class _Search:
    """State of a greedy search over N candidates and M targets.

    Attributes:
        calibration: What is known.
        candidates: Cells that may be measured.
        targets: Cells whose index is to become surer.
        estimates: The harmonic mean, and the process where it says something.
        sure: Targets that are measured.
        open: Candidates that are left.
    """

    calibration: Calibration
    candidates: list[Cell]
    targets: list[Cell]
    estimates: list[_Posterior]
    sure: Flags
    open: list[int]

    @staticmethod
    def over(
        estimators: Estimators, kernel: Kernel, candidates: list[Cell], targets: list[Cell], *, lend: bool
    ) -> "_Search":
        calibration, process = estimators.calibration, estimators.process(kernel)
        reference, noise = calibration.reference, calibration.seen.spread**2
        anchors = sorted({(reference, task) for _, task in targets})
        everything = sorted({*candidates, *targets, *anchors})
        place = {cell: position for position, cell in enumerate(everything)}
        joint, known = _joint(calibration, everything, lend=lend)
        own = np.array([place[cell] for cell in targets])
        anchor = np.array([place[reference, task] for _, task in targets])
        positions = np.array([place[cell] for cell in candidates], dtype=np.int64)
        sure = (known[own] & known[anchor]) | (own == anchor)
        measured = np.isin([device for device, _ in targets], calibration.seen.device)
        weight: Floats = np.zeros(len(targets))
        if process is not None:
            weight[measured | lend] = process.kernel.weight
        estimates = [_Posterior.of(1 - weight, joint, (own, anchor, positions), noise)]
        if process is not None:
            second = process.joint(*np.array(everything, dtype=np.int64).T)
            second[known], second[:, known] = 0.0, 0.0
            estimates.append(_Posterior.of(weight, second, (own, anchor, positions), noise))
        return _Search(calibration, candidates, targets, estimates, sure, list(range(len(candidates))))

    def width(self) -> float:
        """Mean of √(high/low) − 1 over the targets that is expected."""
        noise = 2 * self.calibration.seen.spread**2
        variance = sum((part.weight * part.variance for part in self.estimates), np.zeros(len(self.targets)))
        deviation = np.where(self.sure, 0.0, np.sqrt(variance + noise))
        half = np.minimum(quantile(self.calibration, USUAL_COVERAGE) * deviation, 2 * MAX_LOG)
        return float(np.mean(np.expm1(half)))

    def take(self) -> Cell:
        """Take the best candidate."""
        scores = [self._score(candidate) for candidate in self.open]
        least = min(scores)
        position = next(place for place, score in enumerate(scores) if score <= least + ALIKE * abs(least))
        taken = self.open.pop(position)
        for part in self.estimates:
            part.take(taken)
        self.sure |= self._same(taken)
        return self.candidates[taken]

    def _same(self, candidate: int) -> Flags:
        """Targets that are the candidate itself."""
        return np.array([target == self.candidates[candidate] for target in self.targets])

    def _score(self, candidate: int) -> float:
        """Mean standard deviation of the targets once a candidate is measured."""
        left = np.sqrt(
            sum((part.weight * part.after(candidate) for part in self.estimates), np.zeros(len(self.targets)))
        )
        return float(np.mean(np.where(self.sure | self._same(candidate), 0.0, left)))


def _joint(calibration: Calibration, everything: list[Cell], *, lend: bool) -> tuple[Floats, Flags]:
    """Covariance of the log throughputs of cells, and which of them are known."""
    devices = np.array(sorted({device for device, _ in everything}), dtype=np.int64)
    tasks = np.array(sorted({task for _, task in everything}), dtype=np.int64)
    column = {int(task): position for position, task in enumerate(tasks)}
    slopes = np.zeros((len(everything), len(calibration.solved.covariance)))
    known = np.zeros(len(everything), dtype=bool)
    on_device: dict[int, list[int]] = {}
    for position, (device, _) in enumerate(everything):
        on_device.setdefault(device, []).append(position)
    joint = np.zeros((len(everything), len(everything)))
    for predicted in predict(calibration, devices, tasks, lend=lend):
        for row, device in enumerate(predicted.device.tolist()):
            places = on_device.get(device, [])
            columns = [column[everything[place][1]] for place in places]
            slopes[places] = predicted.slopes[row, columns]
            joint[np.ix_(places, places)] = predicted.own_covariance(calibration, row, columns, lend=lend)
            known[places] = predicted.known[row, columns]
    return joint + slopes @ calibration.solved.covariance @ slopes.T, known
