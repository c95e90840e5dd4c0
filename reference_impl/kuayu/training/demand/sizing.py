"""Right-sizing beside the paper: ``python -m kuayu.training.demand.sizing [--json FILE] [--records N] [--seeds N]``.

Prints how well XGBoost and a random forest predict durations by kind of task (the paper's table 3), and what is saved
and lost by mix and by how much more is asked for than needed. The workload is drawn after the paper's published
figures; it is not the trace that the paper used.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from rich.console import Console
from rich.table import Table

from kuayu.demand.sizing import SLOW_DOWN, size
from kuayu.demand.sizing_records import by_kind
from kuayu.demand.sizing_times import FOLDS, boosted, features_of
from kuayu.demand.strategy import Floats
from kuayu.training.demand.sizing_world import HOUR, KINDS, MIXES, OVER, Tasks, draw, resources

SWEEP = (1.0, 1.1, 1.25, OVER, 2.0)
"""Asked for over needed, medians."""

FOREST = {
    "objective": "reg:squarederror",
    "num_parallel_tree": 200,
    "subsample": 0.8,
    "colsample_bynode": 0.8,
    "max_depth": 12,
    "eta": 1.0,
    "lambda": 0.0,
    "nthread": 1,
    "seed": 0,
}
"""A random forest, in XGBoost's own words."""


def predictions(records: int, seed: int) -> list[dict[str, Any]]:
    """MAE (hours) and WMAPE of both models on records held back, by kind, all kinds equally frequent."""
    rows = []
    for kind, figures in KINDS.items():
        tasks = draw(np.random.default_rng([seed, 1]), 20 * records, next(iter(MIXES)))
        mine = [place for place, name in enumerate(tasks.kind) if name == kind][:records]
        history = tasks.history()
        told = by_kind([history[place] for place in mine])[kind]
        features, hours = features_of(told), told.duration / HOUR
        fold = np.arange(len(hours)) % FOLDS
        row: dict[str, Any] = {"kind": kind, "records": len(hours), "published": figures.published}
        for name, fitted in (("xgboost", boosted), ("forest", _forest)):
            guessed = np.empty(len(hours))
            for each in range(FOLDS):
                model = fitted(features[fold != each], np.log(hours[fold != each]))
                guessed[fold == each] = np.exp(model.inplace_predict(features[fold == each]))
            miss = np.abs(guessed - hours)
            row[name] = {"mae": float(miss.mean()), "wmape": float(miss.sum() / hours.sum())}
        rows.append(row)
    return rows


def savings(records: int, tasks: int, seeds: int) -> list[dict[str, Any]]:
    """What is saved, and what goes wrong, by mix and over-request; mean over seeds with its standard error."""
    rows = []
    for mix in MIXES:
        for over in SWEEP:
            found = np.array([_saved(mix, over, records, tasks, seed) for seed in range(seeds)])
            names = ("devices", "cores", "memory", "out_of_memory", "slow_down", "told", "covered")
            error = found.std(axis=0, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.full(len(names), np.nan)
            figures = {name: [float(m), float(e)] for name, m, e in zip(names, found.mean(axis=0), error, strict=True)}
            rows.append({"mix": mix, "over": over, **figures})
    return rows


def _saved(mix: str, over: float, records: int, tasks: int, seed: int) -> list[float]:
    random = np.random.default_rng([seed, 2])
    past, to_come = draw(random, records, mix, over), draw(random, tasks, mix, over)
    asked = [
        {"id": f"t{place}", "kind": kind, "requested": resources(given)}
        for place, (kind, given) in enumerate(zip(to_come.kind, to_come.given, strict=True))
    ]
    request = {"revision": {"epoch": "report", "number": 0}, "history": past.history(), "tasks": asked}
    answers = size(request)["tasks"]
    given = np.array([list(each["recommended"].values()) for each in answers])
    saved = 1 - given.sum(axis=0) / to_come.given.sum(axis=0)
    slower = slowed(to_come, given)
    seconds = to_come.duration * (1 + slower)
    inside = [
        each["duration"]["low"] <= s <= each["duration"]["high"] for each, s in zip(answers, seconds, strict=True)
    ]
    dead = float((given[:, 2] < to_come.peak[:, 2] * (1 - 1e-9)).mean())
    told = float(np.mean([each["slow_down"] for each in answers]))
    return [*map(float, saved), dead, float(slower.mean()), told, float(np.mean(inside))]


def slowed(tasks: Tasks, given: Floats) -> Floats:
    """By how much longer tasks run on less: those that idle or run at their peak, u/g − u/P for both resources, N."""
    used, peak, less = tasks.used[:, :2], tasks.peak[:, :2], given[:, :2]
    return np.asarray(np.where(less < peak, used / less - used / peak, 0.0).sum(axis=1))


def _forest(features: Floats, target: Floats) -> xgboost.Booster:
    return xgboost.train(FOREST, xgboost.DMatrix(features, target, nthread=1), 1)


def _tables(made: dict[str, Any]) -> list[Table]:
    first = Table(title="Duration, held-back records, beside table 3 of the paper (its own trace); MAE in hours")
    for name in ("kind", "records", "XGBoost MAE", "WMAPE", "forest MAE", "WMAPE", "paper: XGBoost", "paper: forest"):
        first.add_column(name)
    for row in made["predictions"]:
        told = row["published"]
        paper = ("–", "–") if told is None else (f"{told[0]} / {told[1]}", f"{told[2]} / {told[3]}")
        mine = [f"{row[model][name]:.2f}" for model in ("xgboost", "forest") for name in ("mae", "wmape")]
        first.add_row(row["kind"], str(row["records"]), *mine, *paper)
    second = Table(title=f"Saved of what was asked for, and lost; {SLOW_DOWN:.0%} slower allowed; percent ± s.e.")
    for name in ("mix", "over", "devices", "cores", "memory", "out of memory", "slower", "slower, told", "covered"):
        second.add_column(name)
    for row in made["savings"]:
        figures = [f"{100 * mean:.1f} ± {100 * error:.1f}" for mean, error in list(row.values())[2:]]
        second.add_row(row["mix"], f"{row['over']:.2f}", *figures)
    return [first, second]


def main() -> int:
    """Print the tables, and write them as JSON where asked to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu.training.demand.sizing", description=__doc__)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--records", type=int, default=2000, help="records of a history")
    parser.add_argument("--tasks", type=int, default=500, help="tasks that are sized")
    parser.add_argument("--seeds", type=int, default=5, help="worlds")
    given = parser.parse_args()
    made = {
        "workload": "drawn after the paper's tables 1 to 3; not the original trace",
        "predictions": predictions(given.records, 0),
        "savings": savings(given.records, given.tasks, given.seeds),
    }
    console = Console(width=160)
    for table in _tables(made):
        console.print(table)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
