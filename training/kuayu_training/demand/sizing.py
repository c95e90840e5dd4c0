"""Right-sizing beside the paper: ``python -m kuayu_training.demand.sizing [--json FILE] [--records N] [--seeds N]``.

Prints how well XGBoost and a random forest predict durations by kind of task (the paper's table 3), what permutation
importance says that durations depend on, and what is saved and lost by mix and by how much more is asked for than
needed. The workload is drawn after the paper's published figures; it is not the trace that the paper used: what cannot
be explained of a duration has the size of the paper's own WMAPE of XGBoost, so that being near to it says nothing.

Tasks are drawn after the figures of Yang, Hong and Tang (High Technology Letters 2023, 33(5)), not from the trace that
they used (Alibaba PAI), which is not at hand. From the paper: mean use by kind (table 1), mean duration by kind as MAE
over WMAPE and what cannot be explained of it (table 3), the mixes of experiment 2, and how much of the cores that were
asked for could be saved (28.5 %). Assumed: all distributions (log-normal), the duration of graph learning (table 3
leaves it out), and that accelerators and memory are asked for as generously as cores.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import sem, t

from kuayu.demand.sizing import FOLDS, RESOURCES, SLOW_DOWN, Records, boosted, by_kind, features_of, fit, size
from kuayu.demand.strategy import Floats

if TYPE_CHECKING:
    from kuayu_schemas import documents

HOUR, GB = 3600.0, 1e9

MIXES = {
    "5:15:15:65": {"ResNet": 0.05, "NMT": 0.15, "GraphLearn": 0.15, "CTR": 0.65},
    "40:30:20:10": {"ResNet": 0.40, "NMT": 0.30, "GraphLearn": 0.20, "CTR": 0.10},
}

OVER = 1 / (1 - 0.285)
"""Asked for over needed, median: 28.5 % of the cores could be saved."""

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


@dataclass(frozen=True)
class Kind:
    """Published figures of a kind of task.

    Attributes:
        use: Mean accelerators, cores, bytes of memory (table 1).
        hours: Mean duration, MAE/WMAPE of XGBoost (table 3).
        noise: WMAPE of XGBoost (table 3), taken for what cannot be explained.
        published: MAE and WMAPE of XGBoost and of the random forest; none for graph learning.
    """

    use: tuple[float, float, float]
    hours: float
    noise: float
    published: tuple[float, float, float, float] | None


KINDS = {
    "CTR": Kind((0.068, 3.9, 2.8 * GB), 0.16 / 0.13, 0.13, (0.16, 0.13, 0.17, 0.14)),
    "GraphLearn": Kind((0.008, 11.9, 9.5 * GB), 3.0, 0.13, None),
    "NMT": Kind((0.341, 10.6, 10.0 * GB), 0.75 / 0.11, 0.11, (0.75, 0.11, 1.01, 0.15)),
    "ResNet": Kind((0.302, 2.1, 19.9 * GB), 1.45 / 0.15, 0.15, (1.45, 0.15, 1.46, 0.16)),
}


@dataclass(frozen=True)
class Tasks:
    """N tasks with the truth about them.

    Attributes:
        kind: Names of kinds, N.
        given: What they ask for and get, N × 3.
        used: Mean use, N × 3.
        peak: The most that they use if they can, N × 3.
        duration: Seconds on what they ask for, N.
    """

    kind: list[str]
    given: Floats
    used: Floats
    peak: Floats
    duration: Floats

    def history(self) -> "list[documents.TaskRecord]":
        """As ``TaskRecord``."""
        columns = zip(self.kind, self.given, self.used, self.peak, self.duration, strict=True)
        return [
            {
                "kind": kind,
                "requested": resources(given),
                "used": resources(used),
                "peak": resources(peak),
                "duration": float(duration),
            }
            for kind, given, used, peak, duration in columns
        ]


def resources(values: Floats) -> "documents.TaskResources":
    """As ``TaskResources``."""
    return {"devices": float(values[0]), "cores": float(values[1]), "memory": float(values[2])}


def draw(random: np.random.Generator, count: int, mix: str, over: float = OVER) -> Tasks:
    """Tasks of a mix.

    Args:
        random: Chance.
        count: How many.
        mix: One of MIXES.
        over: Asked for over peak, median; at one, everybody asks for the peak.
    """
    names = random.choice(list(MIXES[mix]), count, p=list(MIXES[mix].values()))
    kinds = [KINDS[name] for name in names]
    size = random.lognormal(-0.125, 0.5, count)
    used = np.array([kind.use for kind in kinds]) * size[:, None] * random.lognormal(-0.02, 0.2, (count, 3))
    peak = used * (1 + random.gamma(2.0, 0.1, (count, 3)))
    # Generosity is a habit of people: the same for all that one asks for, but for a little.
    spread = 0.0 if over <= 1 else 0.15
    habit = np.log(max(over, 1.0)) + spread * random.standard_normal((count, 1))
    given = peak * np.exp(np.maximum(habit + spread / 3 * random.standard_normal((count, 3)), 0.0))
    # A mean absolute deviation of w is a standard deviation of 1.25 w.
    noise = np.array([1.25 * kind.noise for kind in kinds]) * random.standard_normal(count)
    seconds = HOUR * np.array([kind.hours for kind in kinds]) * size * np.exp(noise)
    return Tasks([str(name) for name in names], given, used, peak, seconds)


def predictions(records: int, seeds: int) -> list[dict[str, Any]]:
    """How both models do on records held back, by kind, all kinds equally frequent, and what they find that matters.

    Returns:
        By kind: MAE (hours) and WMAPE of both models, how much greater the forest's MAE is, and the permutation
        importance that the service states for devices, cores and memory, in parts of the error of the mean. Each is a
        mean over seeds and the half-width of its 95 % interval.
    """
    rows = []
    for kind, figures in track(KINDS.items(), "durations by kind", console=Console(stderr=True)):
        scores = np.array([_predicted(kind, records, seed) for seed in range(seeds)])
        means = [_mean(column) for column in scores.T]
        row: dict[str, Any] = {"kind": kind, "records": records, "seeds": seeds, "published": figures.published}
        row |= {
            model: {"mae": means[2 * place], "wmape": means[2 * place + 1]}
            for place, model in enumerate(("xgboost", "forest"))
        }
        row["forest over xgboost"] = means[4]
        row["importance"] = dict(zip(RESOURCES, means[5:], strict=True))
        rows.append(row)
    return rows


def _predicted(kind: str, records: int, seed: int) -> list[float]:
    """MAE and WMAPE of both models, the relative difference of MAE, importance of the three resources."""
    history = _records(kind, records, seed)
    features, hours = features_of(history), history.duration / HOUR
    fold = np.arange(len(hours)) % FOLDS
    scores: list[float] = []
    for fitted in (boosted, _forest):
        guessed = np.empty(len(hours))
        for number in range(FOLDS):
            model = fitted(features[fold != number], np.log(hours[fold != number]))
            guessed[fold == number] = np.exp(model.inplace_predict(features[fold == number]))
        miss = np.abs(guessed - hours)
        scores += [float(miss.mean()), float(miss.sum() / hours.sum())]
    return [*scores, scores[2] / scores[0] - 1, *fit(history).importance]


def _records(kind: str, count: int, seed: int) -> Records:
    """A history of one kind."""
    mix = max(MIXES, key=lambda name: MIXES[name][kind])
    chance = np.random.default_rng([seed, 1, list(KINDS).index(kind)])
    history: list[documents.TaskRecord] = []
    while len(history) < count:
        history += [record for record in draw(chance, count, mix).history() if record["kind"] == kind]
    return by_kind(history[:count])[kind]


def savings(records: int, tasks: int, seeds: int) -> list[dict[str, Any]]:
    """What is saved, and what goes wrong, by mix and over-request; means over seeds and halves of 95 % intervals."""
    rows = []
    cells = [(mix, over) for mix in MIXES for over in SWEEP]
    for mix, over in track(cells, "what is saved", console=Console(stderr=True)):
        samples = np.array([_saved(mix, over, records, tasks, seed) for seed in range(seeds)])
        names = ("devices", "cores", "memory", "out_of_memory", "slow_down", "told", "covered")
        figures = {name: _mean(column) for name, column in zip(names, samples.T, strict=True)}
        rows.append({"mix": mix, "over": over, "seeds": seeds, **figures})
    return rows


def _mean(values: Floats) -> list[float]:
    """Mean and half-width of its 95 % interval after Student; of one value, no width."""
    half = float(t.ppf(0.975, len(values) - 1) * sem(values)) if len(values) > 1 else 0.0
    return [float(values.mean()), half]


def _saved(mix: str, over: float, records: int, tasks: int, seed: int) -> list[float]:
    random = np.random.default_rng([seed, 2])
    past, to_come = draw(random, records, mix, over), draw(random, tasks, mix, over)
    requests: list[documents.TaskRequest] = [
        {"id": f"t{place}", "kind": kind, "requested": resources(given)}
        for place, (kind, given) in enumerate(zip(to_come.kind, to_come.given, strict=True))
    ]
    revision: documents.Revision = {"epoch": "report", "number": 0}
    request: documents.SizingRequest = {"revision": revision, "history": past.history(), "tasks": requests}
    answers = size(request)["tasks"]
    given = np.array([list(answer["recommended"].values()) for answer in answers])
    saved = 1 - given.sum(axis=0) / to_come.given.sum(axis=0)
    slower = slowed(to_come, given)
    seconds = to_come.duration * (1 + slower)
    inside = [
        answer["duration"]["low"] <= s <= answer["duration"]["high"] for answer, s in zip(answers, seconds, strict=True)
    ]
    dead = float((given[:, 2] < to_come.peak[:, 2] * (1 - 1e-9)).mean())
    promised = float(np.mean([answer["slow_down"] for answer in answers]))
    return [*map(float, saved), dead, float(slower.mean()), promised, float(np.mean(inside))]


def slowed(tasks: Tasks, given: Floats) -> Floats:
    """By how much longer tasks run on less: those that idle or run at their peak, u/g − u/P for both resources, N."""
    used, peak, less = tasks.used[:, :2], tasks.peak[:, :2], given[:, :2]
    return np.asarray(np.where(less < peak, used / less - used / peak, 0.0).sum(axis=1))


def _forest(features: Floats, target: Floats) -> xgboost.Booster:
    return xgboost.train(FOREST, xgboost.DMatrix(features, target, nthread=1), 1)


def _tables(results: dict[str, Any]) -> list[Table]:
    seeds = results["predictions"][0]["seeds"]
    first = Table(
        title=f"Duration, held-back records, {seeds} seeds, mean ± half of 95 % interval, beside table 3 of the paper "
        "(its own trace); MAE in hours"
    )
    for name in ("kind", "XGBoost MAE", "WMAPE", "forest MAE", "WMAPE", "forest − XGBoost, % of MAE"):
        first.add_column(name)
    first.add_column("paper: XGBoost")
    first.add_column("paper: forest")
    second = Table(title="Permutation importance: what shuffling costs, in parts of the error of the mean")
    for name in ("kind", *RESOURCES):
        second.add_column(name)
    for row in results["predictions"]:
        published = row["published"]
        paper = (
            ("–", "–")
            if published is None
            else (f"{published[0]} / {published[1]}", f"{published[2]} / {published[3]}")
        )
        mine = [_within(row[model][name], 3) for model in ("xgboost", "forest") for name in ("mae", "wmape")]
        first.add_row(row["kind"], *mine, _percent(row["forest over xgboost"]), *paper)
        second.add_row(row["kind"], *(_within(row["importance"][name], 3) for name in RESOURCES))
    third = Table(
        title=f"Saved of what was asked for, and lost; {SLOW_DOWN:.0%} slower allowed; per cent, {seeds} seeds, "
        "± half of 95 % interval"
    )
    for name in ("mix", "over", "devices", "cores", "memory", "out of memory", "slower", "slower, told", "covered"):
        third.add_column(name)
    for row in results["savings"]:
        third.add_row(row["mix"], f"{row['over']:.2f}", *map(_percent, list(row.values())[3:]))
    return [first, second, third]


def _within(figure: list[float], digits: int) -> str:
    return f"{figure[0]:.{digits}f} ± {figure[1]:.{digits}f}"


def _percent(share: list[float]) -> str:
    return _within([100 * value for value in share], 1)


def main() -> int:
    """Print the tables, and write them as JSON where asked to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.demand.sizing", description=__doc__)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--records", type=int, default=2000, help="records of a history")
    parser.add_argument("--tasks", type=int, default=500, help="tasks that are sized")
    parser.add_argument("--seeds", type=int, default=20, help="worlds")
    given = parser.parse_args()
    results = {
        "workload": "drawn after the paper's tables 1 and 3; not the original trace",
        "predictions": predictions(given.records, given.seeds),
        "savings": savings(given.records, given.tasks, given.seeds),
    }
    console = Console(width=160)
    for table in _tables(results):
        console.print(table)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
