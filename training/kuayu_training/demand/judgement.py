"""How far the law is from what was measured, when it has never seen the source that is judged."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from kuayu.demand.experience import learn
from kuayu.demand.memory import memory
from kuayu.demand.parse import Training
from kuayu.demand.step_time import PRIOR, Efficiency, Terms, concatenated, selected, terms, times
from kuayu.demand.strategy import Floats, Whole
from kuayu_training.demand.runs import Run, timed

ALIKE = 0.02
"""Times that differ by less are one time: such is the noise of a single iteration."""


@dataclass(frozen=True)
class CrossValidation:
    """Runs whose times were predicted by a law that had not seen their group.

    Attributes:
        runs: The runs.
        predicted: Seconds of a step, N.
        baseline: 6·P·tokens at the constant utilisation of the other groups, N.
    """

    runs: Sequence[Run]
    predicted: Floats
    baseline: Floats

    @property
    def measured(self) -> Floats:
        """Seconds of a step, N."""
        return np.array([run.seconds for run in self.runs], dtype=float)


def table(runs: Sequence[Run]) -> Terms:
    """Terms of runs."""
    return concatenated([terms(run.structure, run.layouts, run.hardware) for run in runs])


def leave_out(runs: Sequence[Run], group: Callable[[Run], str]) -> CrossValidation:
    """Predict every group of runs by the law and what the runs of all others teach."""
    usable = timed(runs)
    needed, names = table(usable), np.array([group(run) for run in usable])
    sources = np.array([run.source for run in usable])
    measured = np.array([run.seconds for run in usable], dtype=float)
    ideal = np.array([_flops_at_peak(run) for run in usable])
    predicted, baseline = np.zeros(len(usable)), np.zeros(len(usable))
    trainings = [Training(run.structure, run.strategy, run.hardware) for run in usable]
    for name in dict.fromkeys(names.tolist()):
        out, rest = np.flatnonzero(names == name), np.flatnonzero(names != name)
        model = learn([trainings[row] for row in rest], selected(needed, rest), measured[rest], sources[rest].tolist())
        slower = model.slower([trainings[row] for row in out])
        predicted[out] = times(selected(needed, out), PRIOR).step * slower
        baseline[out] = ideal[out] / _usual((ideal / measured)[rest], sources[rest])
    return CrossValidation(usable, predicted, baseline)


def by_prior(runs: Sequence[Run], efficiency: Efficiency = PRIOR) -> Floats:
    """Seconds of a step by published numbers alone."""
    return times(table(timed(runs)), efficiency).step


def errors(predicted: Floats, measured: Floats) -> Floats:
    """Relative errors, without sign."""
    return np.abs(predicted / measured - 1)


def layout_key(run: Run) -> Hashable:
    """Model × machine × session within which layouts are ranked."""
    return run.source, run.session, run.structure, run.hardware.name, run.strategy.devices, run.strategy.precision


@dataclass(frozen=True)
class RankingScore:
    """How well layouts of one model on one machine were ranked.

    Attributes:
        name: Source, model and devices.
        layouts: Different layouts.
        tau: Kendall's τ-b of time per token, predicted against measured; zero where all are predicted alike.
        right: Pairs in the right order, among those that differ by more than ALIKE; predicted alike, half a pair.
        pairs: Such pairs.
        regret: Time of the layout predicted fastest over that of the fastest, less one.
    """

    name: str
    layouts: int
    tau: float
    right: float
    pairs: int
    regret: float


def ranked(runs: Sequence[Run], predicted: Floats, least: int = 2) -> list[RankingScore]:
    """Rankings of all groups with at least so many different layouts; equal layouts count once, by their median."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        groups[layout_key(run)].append(place)
    rankings = []
    for places in groups.values():
        alike: dict[Hashable, list[int]] = defaultdict(list)
        for place in places:
            alike[runs[place].strategy].append(place)
        if len(alike) < least:
            continue
        batches = [runs[some[0]].strategy.global_batch for some in alike.values()]
        seconds = np.array([np.median([runs[place].seconds for place in some]) for some in alike.values()]) / batches
        guessed = np.array([np.median(predicted[some]) for some in alike.values()]) / batches
        rankings.append(_ranked(runs[places[0]], seconds, guessed))
    return rankings


@dataclass(frozen=True)
class MemoryScore:
    """Memory, predicted against reported.

    Attributes:
        rows: Lines of runs with a reported figure.
        predicted: Bytes, N.
        reported: Bytes, N.
        failures: Runs that did not fit.
        foreseen: Those of them that are predicted not to fit.
        fits: Runs that did run.
        admitted: Those of them that are predicted to fit.
        by_source: Both, by source.
    """

    rows: Whole
    predicted: Floats
    reported: Floats
    failures: int
    foreseen: int
    fits: int
    admitted: int
    by_source: dict[str, tuple[int, int]]


def remembered(runs: Sequence[Run]) -> MemoryScore:
    """Memory of runs. Nothing of the law of memory is fitted."""
    bytes_of = np.array([float(memory(run.structure, run.layouts).total[0]) for run in runs])
    capacity = np.array([run.hardware.memory for run in runs])
    reported = [place for place, run in enumerate(runs) if run.memory is not None]
    failed = np.array([run.out_of_memory for run in runs])
    fits: dict[str, tuple[int, int]] = {}
    for run, needed in zip(runs, bytes_of, strict=True):
        ran, admitted = fits.get(run.source, (0, 0))
        if not run.out_of_memory:
            fits[run.source] = ran + 1, admitted + int(needed <= run.hardware.memory)
    return MemoryScore(
        rows=np.array([runs[place].row for place in reported]),
        predicted=bytes_of[reported],
        reported=np.array([runs[place].memory for place in reported], dtype=float),
        failures=int(failed.sum()),
        foreseen=int((failed & (bytes_of > capacity)).sum()),
        fits=int((~failed).sum()),
        admitted=int((~failed & (bytes_of <= capacity)).sum()),
        by_source=fits,
    )


def _ranked(run: Run, seconds: Floats, guessed: Floats) -> RankingScore:
    first, second = np.triu_indices(len(seconds), 1)
    real, predicted = np.log(seconds[first] / seconds[second]), np.log(guessed[first] / guessed[second])
    clear = np.abs(real) > np.log1p(ALIKE)
    what = f"{run.strategy.devices} × {run.hardware.name}, {run.strategy.precision}"
    name = f"{run.source} {run.session}: {run.model}, {what}"
    return RankingScore(
        name=f"{name}, sequence {run.structure.sequence}",
        layouts=len(seconds),
        tau=float(np.nan_to_num(kendalltau(guessed, seconds).statistic)),
        right=float((clear * (0.5 + 0.5 * np.sign(real * predicted))).sum()),
        pairs=int(clear.sum()),
        regret=float(seconds[np.argmin(guessed)] / seconds.min() - 1),
    )


def _flops_at_peak(run: Run) -> float:
    """Seconds of 6·P·tokens at the peak of the run's number format."""
    tokens = run.strategy.global_batch * run.structure.sequence
    peak = run.hardware.peak[run.strategy.precision] * run.strategy.devices
    return 6 * run.structure.active_parameters * tokens / peak


def _usual(utilization: Floats, sources: np.ndarray) -> float:
    """Median utilisation, every source counting once."""
    return float(np.median([np.median(utilization[sources == name]) for name in dict.fromkeys(sources.tolist())]))
