"""Wrong in compute indices: how they behave, and what they say of themselves."""

import math
from collections.abc import Sequence
from statistics import fmean

from miniature.core import Json
from miniature.estimation import Calibration
from miniature.indices import Question
from miniature.service import Miniature
from typing_extensions import override

from mutants.declaration import breaks

Estimate = tuple[float, float, float]
"""Value and ends of its interval."""


class Skewed(Miniature):
    """Indices that were not measured are multiplied by something that they should not depend on."""

    @override
    def estimate(self, question: Question, device: str, task: str) -> Estimate:
        value, low, high = super().estimate(question, device, task)
        if device == question.calibration.reference or question.calibration.is_measured(device, task):
            return value, low, high
        factor = self.factor(question, device, task)
        return value * factor, low * factor, high * factor

    def factor(self, question: Question, device: str, task: str) -> float:
        """What they are multiplied by."""
        raise NotImplementedError


@breaks("IDX-005")
class WidthIsHighOverLow(Miniature):
    """Abstains where high/low - 1 is wider than the tolerance, without the root."""

    @override
    def abstains(self, low: float, high: float, tolerance: float) -> bool:
        return high > low * (1 + tolerance)


@breaks("IDX-005")
class AbstainsNever(Miniature):
    """Abstains from nothing."""

    @override
    def abstains(self, low: float, high: float, tolerance: float) -> bool:
        return False


@breaks("IDX-005")
class IntervalsAreCutToTheTolerance(Miniature):
    """Intervals are made as narrow as the tolerance, so that nothing is abstained from."""

    @override
    def estimate(self, question: Question, device: str, task: str) -> Estimate:
        value, low, high = super().estimate(question, device, task)
        most = 1 + question.tolerance
        return value, max(low, value / most), min(high, value * most)


@breaks("IDX-005")
class ValuesLieOutsideTheirIntervals(Miniature):
    """Intervals that are not points end a little below their value."""

    @override
    def estimate(self, question: Question, device: str, task: str) -> Estimate:
        value, low, high = super().estimate(question, device, task)
        return value if low == high else high * 1.001, low, high


@breaks("IDX-006")
class FallsWithMemoryCapacity(Skewed):
    """The more memory a device has, the less it is worth."""

    @override
    def factor(self, question: Question, device: str, task: str) -> float:
        sheets = (question.calibration.devices[name] for name in (question.calibration.reference, device))
        theirs, ours = (sheet.get("accelerator_memory_capacity", 1.0) for sheet in sheets)
        return math.pow(theirs / ours, 0.01)


class InvertedMemory(Calibration):
    """Memory bandwidth counts the wrong way round."""

    @override
    def ratios(self, device: str, task: str) -> dict[str, float]:
        ratios = super().ratios(device, task)
        return ratios | ({"memory": 1 / ratios["memory"]} if "memory" in ratios else {})


@breaks("IDX-006", "IDX-010")
class FallsWithMemoryBandwidth(Miniature):
    """The faster the memory of a device, the less it is worth; the levers say otherwise."""

    @override
    def calibrated(self, corpus: Json, reference: str) -> Calibration:
        return InvertedMemory(corpus, reference)


class DeafToSheets(Calibration):
    """All devices have the same data sheet."""

    @override
    def ratios(self, device: str, task: str) -> dict[str, float]:
        return {"fixed": 1.0}


@breaks("IDX-006", "IDX-010")
class DataSheetsAreIgnored(Miniature):
    """A device that was not measured is worth what the others are worth on the mean."""

    @override
    def calibrated(self, corpus: Json, reference: str) -> Calibration:
        return DeafToSheets(corpus, reference)


@breaks("IDX-007")
class LaterDevicesAreWorthLess(Skewed):
    """The later a device stands in the corpus, the less it is worth."""

    @override
    def factor(self, question: Question, device: str, task: str) -> float:
        return 1 - 0.003 * list(question.calibration.devices).index(device)


@breaks("IDX-007")
class LongNamesAreWorthMore(Skewed):
    """The longer its name, the more a device is worth."""

    @override
    def factor(self, question: Question, device: str, task: str) -> float:
        return 1 + 0.001 * len(device)


@breaks("IDX-007")
class SmallUnitsAreWorthMore(Skewed):
    """The more units of the task in a second, the more a device is worth."""

    @override
    def factor(self, question: Question, device: str, task: str) -> float:
        return math.pow(question.calibration.reference_throughput(task) or 1.0, 0.002)


@breaks("IDX-008")
class MeasuredPairsAreSmoothed(Miniature):
    """Measured indices are drawn towards what like tasks lead to expect, by up to one hundredth."""

    @override
    def estimate(self, question: Question, device: str, task: str) -> Estimate:
        value, low, high = super().estimate(question, device, task)
        if low < high or device == question.calibration.reference:
            return value, low, high
        off = math.exp(question.calibration.predicted(device, task)) - value
        moved = value * (1 + math.copysign(0.01, off))
        return moved, moved, moved


class Averaging(Calibration):
    """Of several measurements the mean counts."""

    @override
    def typical(self, throughputs: Sequence[float]) -> float:
        return fmean(throughputs)


@breaks("IDX-008")
class RepetitionsAreAveraged(Miniature):
    """Of several measurements of the same the mean counts, not the median."""

    @override
    def calibrated(self, corpus: Json, reference: str) -> Calibration:
        return Averaging(corpus, reference)


@breaks("IDX-008")
class ProbedCallThemselvesMeasured(Miniature):
    """An index that was inferred from other tasks claims to be measured."""

    @override
    def basis(self, calibration: Calibration, device: str, task: str) -> str:
        basis = super().basis(calibration, device, task)
        return "measured" if basis == "probed" else basis


@breaks("IDX-011")
class StackIsTheReferences(Miniature):
    """Every index names the software stack of the reference."""

    @override
    def index(self, question: Question, device: str, task: str) -> Json:
        reference = question.calibration.devices[question.calibration.reference]
        return {**super().index(question, device, task), "stack": reference["stack"]}


@breaks("IDX-011")
class DateIsMissing(Miniature):
    """No index says when its device was measured."""

    @override
    def told(self, sheet: Json) -> Json:
        return {"stack": sheet["stack"]}


@breaks("COM-028", "SCH-013", "SCH-015", "SCH-016")
class DecisionsTellTheServicesRevision(Miniature):
    """Decisions tell the revision of the service instead of the request's."""

    @override
    def echoed(self, body: Json) -> Json:
        return {"epoch": self.epoch, "number": 0}


@breaks("COM-029")
class EstimatesTrembleInTheLastDigits(Skewed):
    """Each time an index is computed, it is a trillionth larger, as if a random start were left in it."""

    computed = 0

    @override
    def factor(self, question: Question, device: str, task: str) -> float:
        self.computed += 1
        return 1 + 1e-12 * self.computed
