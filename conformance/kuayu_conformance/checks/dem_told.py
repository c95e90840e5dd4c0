"""How far off a predicted run was: one run, and many of them summed up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from statistics import fmean, median
from typing import Any

from kuayu_conformance.checks.dem_counting import counted
from kuayu_conformance.corpora.training import Run

Document = Mapping[str, Any]

DENSE, GUESSED, EXPERTS = "dense, structure stated", "dense, structure guessed", "experts"
ALIKE = 0.02
"""Times that differ by less are one time: such is the noise of a single iteration."""
LEAST = 3
"""Layouts that a ranking needs."""


@dataclass(frozen=True)
class Told:
    """What a service said of a run that it did not know, and what was measured.

    Attributes:
        run: The run.
        counts: Whether its source is among those that come with the suite.
        predicted: Seconds of a step, on the clock of the source.
        low: Lower end of its interval.
        high: Upper end of its interval.
        memory: Bytes of the fullest accelerator.
        fits: Whether the service says that it can run.
        yardstick: Seconds of 6 FLOP for each active parameter and token at the constant utilisation of other sources.
    """

    run: Run
    counts: bool
    predicted: float
    low: float
    high: float
    memory: float
    fits: bool
    yardstick: float

    @classmethod
    def of(cls, run: Run, row: Document, pace: float, share: float, machine: Document, *, counts: bool) -> "Told":
        """A row of an answer whose clock ran at a pace; the share is the usual utilisation."""
        time = row["step_time"]
        expected, low, high = (time[name] / pace for name in ("expected", "low", "high"))
        return cls(run, counts, expected, low, high, row["memory"], row["fits"], ideal(run, machine) / share)

    @property
    def measured(self) -> float | None:
        """Seconds of a step; None where the source tells none."""
        return self.run.step_time

    @property
    def stratum(self) -> str:
        """Kind of its model."""
        if self.run.kind == "moe":
            return EXPERTS
        return DENSE if self.run.stated else GUESSED

    @property
    def judged(self) -> bool:
        """Whether the figure rests on it."""
        return self.counts and self.measured is not None and self.stratum == DENSE

    @property
    def error(self) -> float:
        """Absolute relative error of the time; only where one was measured."""
        return abs(self.predicted / (self.measured or 1.0) - 1)

    @property
    def held(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= (self.measured or 0.0) <= self.high


def ideal(run: Run, machine: Document) -> float:
    """Seconds of 6 FLOP for each active parameter and token at the peak of the run's number format."""
    peak = machine["peak_matrix_throughput"][run.strategy.get("precision", "bf16")]
    return float(6.0 * counted(run.model).active * run.tokens / (peak * run.devices))


def usual_shares(runs: Iterable[Run], hardware: Mapping[str, Document]) -> float:
    """Utilisation of some runs: the median over sources of each one's median."""
    shares: dict[str, list[float]] = {}
    for run in runs:
        if run.step_time is not None:
            shares.setdefault(run.source, []).append(ideal(run, hardware[run.hardware]) / run.step_time)
    return median(median(each) for each in shares.values())


def by_source(told: Iterable[Told], figure: Callable[[Told], float]) -> list[list[float]]:
    """A figure of each run, gathered by source; sources are what a bootstrap draws."""
    gathered: dict[str, list[float]] = {}
    for each in told:
        gathered.setdefault(each.run.source, []).append(figure(each))
    return list(gathered.values())


@dataclass(frozen=True)
class Summary:
    """Errors of many runs; each figure as the report prints it."""

    runs: int
    sources: int
    mean: float
    median: float
    ninetieth: float
    bias: float
    held: float
    yardstick: float

    @classmethod
    def of(cls, told: Sequence[Told]) -> "Summary":
        """Figures of at least one run with a time."""
        errors = sorted(each.error for each in told)
        return cls(
            len(told),
            len({each.run.source for each in told}),
            fmean(errors),
            median(errors),
            errors[ceil(0.9 * len(errors)) - 1],
            fmean(each.predicted / (each.measured or 1.0) - 1 for each in told),
            fmean(each.held for each in told),
            fmean(abs(each.yardstick / (each.measured or 1.0) - 1) for each in told),
        )


@dataclass(frozen=True)
class Ranking:
    """How layouts of one model on one machine were ranked: Kendall's τ-a over the pairs that differ clearly."""

    source: str
    model: str
    devices: int
    layouts: int
    tau: float


def rankings(told: Iterable[Told]) -> list[Ranking]:
    """Rankings by time for a token of every model × machine × session with enough layouts.

    A layout that was run several times counts once, with its median. Source: M. G. Kendall, Biometrika 30 (1938) 81-93.
    """
    groups: dict[str, list[Told]] = {}
    for each in told:
        run = each.run
        if run.step_time is not None:
            key = (run.source, run.session, sorted(run.model.items(), key=str), run.hardware, run.devices)
            groups.setdefault(str((*key, run.strategy.get("precision"))), []).append(each)
    found = []
    for its in groups.values():
        layouts: dict[str, list[Told]] = {}
        for each in its:
            layouts.setdefault(str(sorted(each.run.strategy.items())), []).append(each)
        places = [
            (
                median((each.measured or 0.0) / each.run.tokens for each in alike),
                alike[0].predicted / alike[0].run.tokens,
            )
            for alike in layouts.values()
        ]
        signs = [
            _sign(a[0] - b[0]) * _sign(a[1] - b[1]) for a, b in combinations(places, 2) if abs(a[0] / b[0] - 1) > ALIKE
        ]
        if len(places) >= LEAST and signs:
            run = its[0].run
            found.append(Ranking(run.source, run.name, run.devices, len(places), fmean(signs)))
    return found


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
