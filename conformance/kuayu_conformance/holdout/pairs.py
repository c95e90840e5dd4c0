"""How far off an index was: one pair, and many of them summed up."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from statistics import fmean, median

from kuayu_conformance.holdout.folds import Cell, Fold, Split
from kuayu_conformance.holdout.simple import Simple

NEAR = 0.1
"""Relative error up to which an index counts as near."""


@dataclass(frozen=True)
class Pair:
    """What an index said of a device and a task, and what was measured.

    Attributes:
        table: Table that the measurement is from.
        counts: Whether the table is judged or only printed.
        split: Whether the device or the family of models was left out.
        probes: Probes that were allowed.
        last: Whether as many were allowed as the requirement grants.
        device: Name of the device in the table.
        task: Name of the task in the table.
        measured: Ratio of the measured throughputs of device and reference.
        unit: Measured throughput of the reference, in the table's unit.
        value: The index.
        low: Lower end of its interval.
        high: Upper end of its interval.
        abstained: Whether the service abstained.
        simple: What the simple indices say.
        probed: Whether the pair was a probe, so that the index is what was measured; it counts for order alone.
    """

    table: str
    counts: bool
    split: Split
    probes: int
    last: bool
    device: str
    task: str
    measured: float
    unit: float
    value: float
    low: float
    high: float
    abstained: bool
    simple: Simple
    probed: bool = False

    @classmethod
    def of_probe(cls, fold: Fold, cell: Cell, *, counts: bool) -> "Pair":
        """A probe, in the unit of throughput."""
        truth, nothing = fold.truth[cell], Simple(None, None, None)
        return cls(
            fold.table,
            counts,
            fold.split,
            fold.room,
            True,
            cell.device,
            cell.task,
            truth,
            1.0,
            truth,
            truth,
            truth,
            False,
            nothing,
            probed=True,
        )

    @property
    def error(self) -> float:
        """Absolute relative error."""
        return abs(self.value / self.measured - 1)

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measured value."""
        return self.low <= self.measured <= self.high


def by_device(pairs: Iterable[Pair], figure: Callable[[Pair], float]) -> list[list[float]]:
    """A figure of each pair, gathered by device; devices are what a bootstrap draws."""
    gathered: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        gathered.setdefault((pair.table, pair.device), []).append(figure(pair))
    return list(gathered.values())


def rank_correlations(pairs: Iterable[Pair], least: int = 4) -> list[float]:
    """Kendall's rank correlation of each task that at least so many devices were told of.

    Values are brought to the unit of throughput first, since pairs of one task may refer to different devices. Source:
    M. G. Kendall, "A new measure of rank correlation", Biometrika 30 (1938) 81-93.
    """
    tasks: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        tasks.setdefault((pair.table, pair.task), []).append(pair)
    return [_kendall(entry) for entry in tasks.values() if len(entry) >= least]


def _kendall(pairs: Sequence[Pair]) -> float:
    signs = [
        _sign(a.value * a.unit - b.value * b.unit) * _sign(a.measured * a.unit - b.measured * b.unit)
        for a, b in combinations(pairs, 2)
    ]
    return fmean(signs)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


@dataclass(frozen=True)
class Summary:
    """Errors of many pairs; each figure as the report prints it."""

    pairs: int
    mean: float
    median: float
    ninetieth: float
    near: float
    covered: float
    abstained: int
    correlation: float | None

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Summary":
        """Figures of at least one pair."""
        errors = sorted(pair.error for pair in pairs)
        correlations = rank_correlations(pair for pair in pairs if pair.split == "device")
        return cls(
            len(pairs),
            fmean(errors),
            median(errors),
            errors[ceil(0.9 * len(errors)) - 1],
            fmean(error <= NEAR for error in errors),
            fmean(pair.covered for pair in pairs),
            sum(pair.abstained for pair in pairs),
            fmean(correlations) if correlations else None,
        )
