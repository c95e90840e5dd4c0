"""How far the law is from what was measured where it has never seen the source, as JSON and as tables."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from scipy.stats import kendalltau

from kuayu.demand.experience import learn
from kuayu.demand.memory import memory
from kuayu.demand.parse import Training
from kuayu.demand.step_time import EFFICIENCY_NAMES, PRIOR, Efficiency, Terms, concatenated, selected, terms, times
from kuayu.demand.strategy import Floats, Whole
from kuayu_training.demand.runs import Run, timed

ALIKE = 0.02
"""Times that differ by less are one time: such is the noise of a single iteration."""

CALCULON = {
    "source": "korthikanti-2205.05198-table5",
    "mean": 0.037,
    "runs": 8,
    "by": "Calculon (SC 2023), table 2; its efficiencies were measured on the machine of these runs",
}
"""Published error of the nearest relative."""

TEAMS = {"megatron-sc21": "Megatron, Selene", "korthikanti": "Megatron, Selene", "bigscience-tr11": "BigScience, A100"}
"""Sources of one team on one machine, by how their names begin."""

GROUPINGS: dict[str, Callable[[Run], str]] = {
    "source": lambda run: run.source,
    "team": lambda run: next((team for name, team in TEAMS.items() if run.source.startswith(name)), run.source),
    "model": lambda run: f"{run.kind} {run.model.split(' (')[0]}",
    "accelerator": lambda run: run.hardware.name,
}
"""What is left out at a time."""


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


def report(runs: Sequence[Run], left: dict[int, str]) -> dict[str, Any]:
    """All figures of runs and of what was left out, ready for JSON."""
    judged = {grouping: leave_out(runs, group) for grouping, group in GROUPINGS.items()}
    main = judged["source"]
    prior = by_prior(runs)
    return {
        "rows": {"used": len(runs), "timed": len(timed(runs)), "left out": dict(Counter(left.values()).most_common())},
        "time": {grouping: _kinds(judgement) for grouping, judgement in judged.items()},
        "sources": _sources(main, prior),
        "yardstick": _by_kind(main, main.baseline),
        "prior": _by_kind(main, prior),
        "calculon": CALCULON | {"ours": _mean(main, main.predicted, lambda run: run.source == CALCULON["source"])},
        "ranking": _ranking(ranked(main.runs, main.predicted)),
        "ranking of the yardstick": _ranking(ranked(main.runs, main.baseline), detailed=False),
        "memory": _memory(runs),
        "efficiency": {name: getattr(PRIOR, name) for name in EFFICIENCY_NAMES},
    }


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """The figures as tables."""
    rows = results["rows"]
    title = f"Step time, left out by source; {rows['timed']} timed runs, {sum(rows['left out'].values())} rows unusable"
    sources = Table(
        "source", "kind", "structure", "runs", "MAPE %", "median %", "bias %", "prior %", "6PD %", title=title
    )
    for source in results["sources"]:
        figures = (source[name] for name in ("mean", "median", "bias", "prior", "yardstick"))
        sources.add_row(
            source["source"], source["kind"], source["structure"], str(source["runs"]), *map(_percent, figures)
        )
    yield sources
    whole = Table(
        "left out", "kind", "runs", "MAPE %", "median %", "p90 %", "within 10 %", "mean of groups %", title="All"
    )
    named = {**{f"by {grouping}": kinds for grouping, kinds in results["time"].items()}}
    named |= {"prior only": results["prior"], "6·P·tokens, constant MFU": results["yardstick"]}
    for grouping, kinds in named.items():
        for kind, row in kinds.items():
            figures = (row[name] for name in ("mean", "median", "p90", "within", "groups"))
            whole.add_row(grouping, kind, str(row["runs"]), *map(_percent, figures))
    yield whole
    other = Table("figure", "law", "beside", title="Ranking, memory, Calculon")
    mine, theirs = results["ranking"], results["ranking of the yardstick"]
    for name in ("tau", "right", "regret"):
        other.add_row(
            f"layouts: {name} ({mine['groups']} groups, {mine['pairs']} pairs)", _two(mine[name]), _two(theirs[name])
        )
    memory, calculon = results["memory"], results["calculon"]
    other.add_row(f"memory MAPE %, {memory['reported']} rows", _percent(memory["mean"]), "aim 10")
    other.add_row("out of memory foreseen", f"{memory['foreseen']} of {memory['failures']}", "")
    other.add_row("runs that ran admitted", f"{memory['admitted']} of {memory['fits']}", "")
    other.add_row(
        "MAPE % on the 8 runs of arXiv:2205.05198", _percent(calculon["ours"]), f"Calculon {_percent(calculon['mean'])}"
    )
    yield other


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _two(value: float) -> str:
    return f"{value:.2f}"


def _figures(judged: CrossValidation, predicted: Floats, rows: Floats) -> dict[str, Any]:
    misses = errors(predicted, judged.measured)[rows]
    groups = [judged.runs[row].source for row in np.flatnonzero(rows).tolist()]
    means = [float(misses[[group == name for group in groups]].mean()) for name in dict.fromkeys(groups)]
    return {
        "runs": int(rows.sum()),
        "mean": round(float(misses.mean()), 4),
        "median": round(float(np.median(misses)), 4),
        "p90": round(float(np.quantile(misses, 0.9)), 4),
        "within": round(float((misses <= 0.1).mean()), 4),
        "groups": round(float(np.mean(means)), 4),
    }


def _by_kind(judged: CrossValidation, predicted: Floats) -> dict[str, Any]:
    kinds = {
        "dense, structure stated": [run.kind == "dense" and run.known for run in judged.runs],
        "dense, structure guessed": [run.kind == "dense" and not run.known for run in judged.runs],
        "moe": [run.kind == "moe" for run in judged.runs],
    }
    masks = {name: np.array(mask) for name, mask in kinds.items()}
    return {name: _figures(judged, predicted, mask) for name, mask in masks.items() if mask.any()}


def _kinds(judged: CrossValidation) -> dict[str, Any]:
    return _by_kind(judged, judged.predicted)


def _sources(judged: CrossValidation, prior: Floats) -> list[dict[str, Any]]:
    keys = [(run.source, run.kind, "stated" if run.known else "guessed") for run in judged.runs]
    sources = []
    for key in dict.fromkeys(keys):
        rows = np.array([other == key for other in keys])
        figures = _figures(judged, judged.predicted, rows)
        ratio = (judged.predicted / judged.measured)[rows]
        sources.append(
            dict(zip(("source", "kind", "structure"), key, strict=True))
            | {name: figures[name] for name in ("runs", "mean", "median", "p90", "within")}
            | {
                "bias": round(float(np.exp(np.log(ratio).mean()) - 1), 4),
                "prior": round(float(errors(prior, judged.measured)[rows].mean()), 4),
                "yardstick": round(float(errors(judged.baseline, judged.measured)[rows].mean()), 4),
                "points": [
                    [run.row, float(f"{run.seconds:.4g}"), float(f"{seconds:.4g}")]
                    for run, seconds, mine in zip(judged.runs, judged.predicted, rows, strict=True)
                    if mine
                ],
            }
        )
    return sources


def _mean(judged: CrossValidation, predicted: Floats, wanted: Callable[[Run], bool]) -> float:
    rows = np.array([wanted(run) for run in judged.runs])
    return round(float(errors(predicted, judged.measured)[rows].mean()), 4) if rows.any() else float("nan")


def _ranking(groups: Sequence[RankingScore], *, detailed: bool = True) -> dict[str, Any]:
    """Mean τ over groups of three layouts or more; pairs over all groups."""
    larger = [group for group in groups if group.layouts > 2]  # two have one pair only
    pairs = sum(group.pairs for group in groups)
    figures: dict[str, Any] = {
        "groups": len(groups),
        "of three or more": len(larger),
        "tau": round(float(np.mean([group.tau for group in larger])), 4) if larger else float("nan"),
        "pairs": pairs,
        "right": round(sum(group.right for group in groups) / max(1, pairs), 4),
        "regret": round(float(np.mean([group.regret for group in groups])), 4) if groups else float("nan"),
    }
    if detailed:
        figures["by group"] = [vars(group) for group in sorted(groups, key=lambda group: -group.layouts)]
    return figures


def _memory(runs: Sequence[Run]) -> dict[str, Any]:
    seen = remembered(runs)
    misses = errors(seen.predicted, seen.reported)
    return {
        "reported": len(misses),
        "mean": round(float(misses.mean()), 4) if len(misses) else float("nan"),
        "median": round(float(np.median(misses)), 4) if len(misses) else float("nan"),
        "bias": round(float(np.exp(np.log(seen.predicted / seen.reported).mean()) - 1), 4) if len(misses) else 0.0,
        "failures": seen.failures,
        "foreseen": seen.foreseen,
        "fits": seen.fits,
        "admitted": seen.admitted,
        "fits and admitted by source": seen.by_source,
        "points": [
            [int(row), round(float(real) / 1e9, 2), round(float(predicted) / 1e9, 2)]
            for row, real, predicted in zip(seen.rows, seen.reported, seen.predicted, strict=True)
        ],
    }
