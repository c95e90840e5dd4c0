"""Three indices that anyone can compute, for comparison: none of them is judged.

They know what the service knows of the same pair, and nothing more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log
from typing import TYPE_CHECKING, cast

from kuayu_conformance.holdout.folds import Cell

if TYPE_CHECKING:
    from kuayu_schemas import documents

PEAK, SCALAR, ROOFLINE = "ratio of peaks", "one scalar for each device", "roofline of the data sheet"


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
