"""Figures of the judgement, as JSON and as tables."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from kuayu.demand.step_time import EFFICIENCY_NAMES, PRIOR
from kuayu.demand.strategy import Floats
from kuayu_training.demand.judgement import (
    CrossValidation,
    RankingScore,
    by_prior,
    errors,
    leave_out,
    ranked,
    remembered,
)
from kuayu_training.demand.runs import Run, timed

CALCULON = {
    "source": "korthikanti-2205.05198-table5",
    "mean": 0.037,
    "runs": 8,
    "by": "Calculon (SC 2023), table 2; its efficiencies were measured on the machine of these runs",
}
"""Published error of the nearest relative."""

TEAMS = {"megatron-sc21": "Megatron, Selene", "korthikanti": "Megatron, Selene", "bigscience-tr11": "BigScience, A100"}
"""Sources of one team on one machine, by how their names begin."""

WAYS: dict[str, Callable[[Run], str]] = {
    "source": lambda run: run.source,
    "team": lambda run: next((team for name, team in TEAMS.items() if run.source.startswith(name)), run.source),
    "model": lambda run: f"{run.kind} {run.model.split(' (')[0]}",
    "accelerator": lambda run: run.hardware.name,
}
"""What is left out at a time."""


def report(runs: Sequence[Run], left: dict[int, str]) -> dict[str, Any]:
    """All figures of runs and of what was left out, ready for JSON."""
    judged = {grouping: leave_out(runs, group) for grouping, group in WAYS.items()}
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
