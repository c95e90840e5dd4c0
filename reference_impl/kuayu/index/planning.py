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
from kuayu.index.method import METHOD, calibrated
from kuayu.index.names import check_plan
from kuayu.index.observations import Flags, Floats, contents
from kuayu.index.prediction import predict
from kuayu.index.ranges import WIDEST
from kuayu.index.report import USUAL_COVERAGE, quantile
from kuayu_schemas.models import CorpusCell, PlannedProbe, ProbePlan, ProbePlanRequest

Cell = tuple[int, int]
"""Positions of a device and of a task."""

ALIKE = 1e-9
"""Relative difference below which two scores are the same; the first by content is then taken."""


def plan_probes(request: ProbePlanRequest) -> ProbePlan:
    """Plan measurements; the plan for fewer probes is the beginning of the plan for more.

    Raises:
        RepeatedName: Devices or tasks share a name.
        UnknownName: The request names what its corpus does not hold.
    """
    check_plan(request)
    reference = _most_measured(request)
    calibration = calibrated(request.corpus, reference)
    seen = calibration.seen

    def cells_of(named: Sequence[CorpusCell]) -> list[Cell]:
        return [(seen.device_at[cell.device], seen.task_at[cell.task]) for cell in named]

    candidates, targets = sorted(set(cells_of(request.candidates))), sorted(set(cells_of(request.targets)))
    search = _Search.over(calibration, candidates, targets, lend=True)
    # What likeness lends to a device counts from its first probe on.
    without = max(search.width(), _Search.over(calibration, candidates, targets, lend=False).width())
    probes = []
    for _ in range(min(request.probes, len(candidates))):
        device, task = search.take()
        probes.append(PlannedProbe(device=seen.devices[device].id, task=seen.tasks[task].id, half_width=search.width()))
    return ProbePlan(revision=request.revision, method=METHOD, without=without, probes=probes)


def _most_measured(request: ProbePlanRequest) -> str:
    """The device that was measured on most tasks; where several were, the first by content."""
    tasks: dict[str, set[str]] = {device.id: set() for device in request.corpus.devices}
    for measurement in request.corpus.measurements:
        tasks[measurement.device].add(measurement.task)
    most = max(map(len, tasks.values()))
    sheets = {device.id: device.model_dump_json(exclude={"id", "stack"}) for device in request.corpus.devices}
    found = contents(request.corpus)
    most_measured = (name for name in tasks if len(tasks[name]) == most)
    return min(most_measured, key=lambda name: (sheets[name], found[name]))


@dataclass
class _Search:
    """State of a greedy search over N candidates and M targets.

    Attributes:
        calibration: What is known.
        candidates: Cells that may be measured.
        targets: Cells whose index is to become surer.
        cross: Covariance of the targets' log indices with the candidates' log throughputs, (M, N).
        among: Covariance of the candidates, (N, N).
        variance: Variances of the targets, (M,).
        sure: Targets that are measured.
        open: Candidates that are left.
    """

    calibration: Calibration
    candidates: list[Cell]
    targets: list[Cell]
    cross: Floats
    among: Floats
    variance: Floats
    sure: Flags
    open: list[int]

    @staticmethod
    def over(calibration: Calibration, candidates: list[Cell], targets: list[Cell], *, lend: bool) -> "_Search":
        reference = calibration.reference
        anchors = sorted({(reference, task) for _, task in targets})
        everything = sorted({*candidates, *targets, *anchors})
        place = {cell: position for position, cell in enumerate(everything)}
        joint, known = _joint(calibration, everything, lend=lend)
        own = np.array([place[cell] for cell in targets])
        anchor = np.array([place[reference, task] for _, task in targets])
        at = np.array([place[cell] for cell in candidates])
        away = joint[own] - joint[anchor]
        variance = away[np.arange(len(own)), own] - away[np.arange(len(own)), anchor]
        sure = (known[own] & known[anchor]) | (own == anchor)
        return _Search(
            calibration=calibration,
            candidates=candidates,
            targets=targets,
            cross=away[:, at],
            among=joint[np.ix_(at, at)],
            variance=np.maximum(variance, 0.0),
            sure=sure,
            open=list(range(len(candidates))),
        )

    def width(self) -> float:
        """Mean of √(high/low) − 1 over the targets that is expected."""
        noise = 2 * self.calibration.seen.spread**2
        deviation = np.where(self.sure, 0.0, np.sqrt(self.variance + noise))
        half = np.minimum(quantile(self.calibration, USUAL_COVERAGE) * deviation, 2 * WIDEST)
        return float(np.mean(np.expm1(half)))

    def take(self) -> Cell:
        """Take the best candidate."""
        scores = [self._score(candidate) for candidate in self.open]
        least = min(scores)
        position = next(place for place, score in enumerate(scores) if score <= least + ALIKE * abs(least))
        taken = self.open.pop(position)
        self.variance = self._after(taken)
        gain = self._gain(taken)
        self.cross = self.cross - np.outer(self.cross[:, taken], self.among[taken]) / gain
        self.among = self.among - np.outer(self.among[:, taken], self.among[taken]) / gain
        self.sure |= self._same(taken)
        return self.candidates[taken]

    def _same(self, candidate: int) -> Flags:
        """Targets that are the candidate itself."""
        return np.array([target == self.candidates[candidate] for target in self.targets])

    def _gain(self, candidate: int) -> float:
        return float(max(self.among[candidate, candidate], 0.0)) + self.calibration.seen.spread**2

    def _after(self, candidate: int) -> Floats:
        """Variances of the targets once a candidate is measured."""
        return np.maximum(self.variance - self.cross[:, candidate] ** 2 / self._gain(candidate), 0.0)

    def _score(self, candidate: int) -> float:
        """Mean standard deviation of the targets once a candidate is measured."""
        left = np.sqrt(self._after(candidate))
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
    for found in predict(calibration, devices, tasks, lend=lend):
        for row, device in enumerate(found.device.tolist()):
            places = on_device.get(device, [])
            at = [column[everything[place][1]] for place in places]
            slopes[places] = found.slopes[row, at]
            joint[np.ix_(places, places)] = found.own_covariance(calibration, row, at, lend=lend)
            known[places] = found.known[row, at]
    return joint + slopes @ calibration.solved.covariance @ slopes.T, known
