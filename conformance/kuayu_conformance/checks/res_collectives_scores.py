"""What became of a window of collectives, and how it compares."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean

from kuayu_conformance.answers import Answer


@dataclass(frozen=True)
class Window:
    """A window under the target and under others; steps a second, interval by interval.

    Attributes:
        family: Which links it has.
        chosen: Under the target, less what switches took.
        fixed: Of each fixed way.
        quickest: Of one who always has the quickest for nothing.
        first: Place of the way that was quickest by the first measurement.
        switches: How often the target switched.
        changes: How often to another collective or period, not only to another order.
        faults: What is wrong with answers.
        shown: The first answer with a fault.
    """

    family: str
    chosen: tuple[float, ...]
    fixed: tuple[tuple[float, ...], ...]
    quickest: tuple[float, ...]
    first: int
    switches: int
    changes: int
    faults: tuple[str, ...] = ()
    shown: Answer | None = None

    @property
    def share(self) -> float:
        """Steps under the target in parts of those of the quickest."""
        return fsum(self.chosen) / fsum(self.quickest)

    @property
    def shares(self) -> tuple[float, ...]:
        """Likewise of the fixed ones."""
        return tuple(fsum(rates) / fsum(self.quickest) for rates in self.fixed)


def best_fixed(windows: Sequence[Window]) -> int:
    """Place of the fixed way that is best over windows together."""
    means = [fmean(column) for column in zip(*(window.shares for window in windows), strict=True)]
    return means.index(max(means))


def leads(windows: Sequence[Window], fixed: int) -> list[float]:
    """By how much the target does better than a fixed way, window by window."""
    return [window.share - window.shares[fixed] for window in windows]


def kept(windows: Sequence[Window]) -> list[float]:
    """By how much it does better than what was quickest by the first measurement, window by window."""
    return [window.share - window.shares[window.first] for window in windows]
