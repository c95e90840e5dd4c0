"""Recognition of training phases: ``python -m kuayu_training.forecast.phases [--fit] [--half development|held-out]``.

Plays curves step by step, asks at evenly spaced steps in which phase they are, and compares with the definition, which
looks both ways. Prints accuracy over steps, macro-F1, delay and calibration by source: drawn curves of seeds that
nothing was fitted to, and public ones in the folder that KUAYU_DATA names (default ../shared/data). ``--fit`` first
fits the trees anew, to drawn curves alone.

Drawn curves are power laws with a floor in the progress that the learning rate allows, one or two falls with a plateau
before each, from scratch or from a checkpoint, four schedules, and noise that is independent, correlated, heavy-tailed
or spiky. Public ones are Megatron-LM's long test runs and MLPerf Training logs, with what their configurations say of
the rate (see the README files beside the data).
"""

import argparse
import csv
import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost
from rich.console import Console
from rich.table import Table
from scipy.signal import lfilter

import kuayu.forecast
from kuayu.forecast.phases import NAMES, POINTS, TREES, Floats, boundaries, falls, recognise, risen, signs, slow_so_far

if TYPE_CHECKING:
    from kuayu_schemas import documents

MEGATRON = "training_curves"
MLPERF = "mlperf_curves"
SHORTEST = 100
"""Public curves of fewer points are left out, and none is drawn."""

SHORT, MAX_POINTS = 1000, 8000
"""Points of drawn curves: most are short."""

PHASES = ("warm_up", "fast_convergence", "stable_convergence")

FIT, JUDGE = 1, 2
"""Seeds of the curves that trees are fitted to, and of those that they are judged by."""

DRAWN = {"drawn, short": (SHORTEST, SHORT), "drawn, long": (SHORT, MAX_POINTS)}
"""Drawn curves that are judged, by their points."""

ROUNDS = 190
PARAMETERS = {
    "objective": "binary:logistic",
    "tree_method": "hist",
    "max_depth": 4,
    "eta": 0.07,
    "min_child_weight": 20,
    "subsample": 0.7,
    "colsample_bytree": 0.6,
    "nthread": 1,
    "seed": 0,
}
"""Log loss, so that shares are shares."""


@dataclass(frozen=True)
class Curve:
    """A whole run.

    Attributes:
        name: Of the run.
        source: Where it comes from.
        steps: Rising, N.
        losses: Losses of training, N.
        rates: Learning rates, N.
    """

    name: str
    source: str
    steps: Floats
    losses: Floats
    rates: Floats

    @property
    def held_out(self) -> bool:
        """Whether it is in the half that nothing was developed on: an odd SHA-256 of its name."""
        return sha256(self.name.encode()).digest()[-1] % 2 == 1


def draw(random: np.random.Generator, shortest: int = SHORTEST, longest: int = MAX_POINTS) -> Curve:
    """A curve of one of many kinds, of so many points, logged at every step or at every so many."""
    points = int(np.exp(random.uniform(np.log(shortest), np.log(longest + 1))))
    every = int(random.choice([1, 1, 1, 2, 5, 10, 20, 32, 50]))
    steps = every * np.arange(1, points + 1, dtype=np.float64)
    if every > 1 and random.random() < 0.3:
        steps += 1 - every
    rates = _schedule(random, steps)
    return Curve("drawn", "drawn", steps, _noisy(random, steps, _fall(random, steps, rates)), rates)


def _schedule(random: np.random.Generator, steps: Floats) -> Floats:
    total = float(steps[-1])
    warm = total * float(random.choice([0.0, np.exp(random.uniform(np.log(1e-3), np.log(0.3)))], p=[0.1, 0.9]))
    # A run may be looked at, or be stopped, long before its schedule ends.
    end = max(total * float(random.choice([1.0, np.exp(random.uniform(0, np.log(50)))])), warm + 1)
    part = np.clip((steps - warm) / (end - warm), 0, 1)
    least = float(random.choice([0.0, 0.01, 0.1]))
    kind = random.choice(["linear", "cosine", "constant", "wsd", "root"])
    if kind == "linear":
        down = 1 - part
    elif kind == "cosine":
        down = 0.5 + 0.5 * np.cos(np.pi * part)
    elif kind == "wsd":
        down = np.clip((1 - part) / random.uniform(0.05, 0.3), 0, 1)
    elif kind == "root":
        return np.asarray(1e-3 * np.minimum(steps / max(warm, 1.0), np.sqrt(max(warm, 1.0) / steps)))
    else:
        down = np.ones_like(part)
    up = np.clip(steps / warm, 0, 1) if warm > 0 else np.ones_like(part)
    peak = np.exp(random.uniform(np.log(1e-5), np.log(1e-2)))
    return np.asarray(peak * np.minimum(up, least + (1 - least) * down))


def _fall(random: np.random.Generator, steps: Floats, rates: Floats) -> Floats:
    share = rates / rates.max()
    power = random.uniform(0, 1)
    progress = np.cumsum(np.maximum(share, 1e-3) ** power * np.diff(steps, prepend=0.0)) + 1e-9
    floor = random.uniform(0.2, 4.0)
    whole = random.uniform(1.0, 11.0)
    knee = np.exp(random.uniform(np.log(1), np.log(max(0.6 * progress[-1], 2))))
    slope, sharp = random.uniform(0.15, 1.2), random.uniform(0.7, 4.0)
    height = whole
    if random.random() < 0.25:  # from a checkpoint: most of the way is behind it
        progress += knee * np.exp(random.uniform(0, np.log(300)))
    fall = floor + height * (1 + (progress / knee) ** sharp) ** (-slope / sharp)
    if random.random() < 0.25:  # a second fall, after a plateau
        knee *= np.exp(random.uniform(0.5, 4))
        steep = random.uniform(2, 8)
        fall += random.uniform(0.2, 4) * (1 + (progress / knee) ** steep) ** (-slope / steep)
    # What a high rate keeps the loss up by, and gives back as it falls.
    return np.asarray(fall * (1 + random.choice([0.0, random.uniform(0, 0.06)]) * share))


def _noisy(random: np.random.Generator, steps: Floats, fall: Floats) -> Floats:
    size = np.exp(random.uniform(np.log(0.001), np.log(0.12)))
    kind = random.choice(["plain", "linked", "heavy", "shrinking"])
    noise = random.standard_normal(len(steps))
    if kind == "linked":
        tie = random.uniform(0.3, 0.97)
        noise = lfilter([np.sqrt(1 - tie**2)], [1, -tie], noise)
    elif kind == "heavy":
        noise = random.standard_t(3, len(steps)) / np.sqrt(3)
    elif kind == "shrinking":
        noise *= np.sqrt(fall / fall[0])
    losses = fall * np.exp(size * noise)
    if random.random() < 0.2:
        for _ in range(random.integers(1, 8)):
            place = int(random.integers(len(steps)))
            lasting = np.exp(random.uniform(0, np.log(0.02 * len(steps) + 2)))
            decay = np.exp(-np.arange(len(steps) - place) / lasting)
            losses[place:] *= 1 + random.uniform(0.05, 1.0) * decay
    return np.asarray(losses)


def public(folder: Path) -> Iterator[Curve]:
    """Public curves whose learning rate is told by what was written of their runs.

    Args:
        folder: Holds the folders of both sources; one that is absent yields nothing.
    """
    if (folder / MEGATRON).is_dir():
        yield from _megatron(folder / MEGATRON)
    if (folder / MLPERF).is_dir():
        yield from _mlperf(folder / MLPERF)


def _megatron(folder: Path) -> Iterator[Curve]:
    with (folder / "megatron_release_configs.csv").open(encoding="utf-8") as file:
        configs = {row["case"]: row for row in csv.DictReader(file)}
    by_run: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(folder / "megatron_release_curves.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["series"] == "lm_loss":
                by_run[row["run"]].append((float(row["iteration"]), float(row["value"])))
    for name, points in by_run.items():
        case = name.split("/")[1]
        row = configs.get(case) or configs.get(case.replace("_g200", "_gb200")) or {}
        if not row.get("lr") or len(points) < SHORTEST:
            continue
        steps, losses = np.array(sorted(points)).T
        warm, end = _span(row, float(steps[-1]))
        yield Curve(name, MEGATRON, steps, losses, _rates(steps, warm, end, float(row["lr"]), float(row["min_lr"])))


def _span(row: dict[str, str], last: float) -> tuple[float, float]:
    """Steps of warm-up and of the whole schedule."""
    if row["lr_warmup_fraction"]:
        total = float(row["train_iters"])
        return float(row["lr_warmup_fraction"]) * total, total
    # Where the batch is a variable in the source, the samples of the run over its iterations tell it.
    batch = float(row["global_batch_size"] or 0) or float(row["train_samples"]) / last
    return float(row["lr_warmup_samples"]) / batch, float(row["lr_decay_samples"]) / batch


def _mlperf(folder: Path) -> Iterator[Curve]:
    with (folder / "runs.csv").open(encoding="utf-8") as file:
        configs = {row["run_id"]: row for row in csv.DictReader(file)}
    by_run: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(folder / "curves.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["series"] == "train_loss":
                by_run[row["run_id"]].append((float(row["samples"]), float(row["value"])))
    for name, points in by_run.items():
        row = configs[name]
        if not row["opt_learning_rate_warmup_steps"] or len(points) < SHORTEST:
            continue
        samples, losses = np.array(sorted(dict(points).items())).T
        per_step = float(row["global_batch_size"]) * (2048 if row["benchmark"] == "gpt3" else 1)
        steps = np.round(samples / per_step)
        one = np.flatnonzero(np.diff(steps, prepend=-1.0) > 0)
        unit = float(row["global_batch_size"]) if row["benchmark"].startswith("llama31") else 1.0
        warm = float(row["opt_learning_rate_warmup_steps"]) / unit
        end = warm + float(row["opt_learning_rate_decay_steps"] or 1e9) / unit
        peak, least = float(row["opt_base_learning_rate"]), float(row["opt_end_learning_rate"] or 0)
        yield Curve(name, row["benchmark"], steps[one], losses[one], _rates(steps[one], warm, end, peak, least))


def _rates(steps: Floats, warm: float, end: float, peak: float, least: float) -> Floats:
    """Linear warm-up, then a cosine (a linear decay differs little where curves end)."""
    part = np.clip((steps - warm) / max(end - warm, 1.0), 0, 1)
    down = least + (peak - least) * (0.5 + 0.5 * np.cos(np.pi * part))
    return np.asarray(np.where(steps < warm, peak * steps / max(warm, 1.0), down))


def table(curves: int, moments: int) -> tuple[Floats, Floats]:
    """Signs at moments that the definition does not settle yet, and whether they turned out stable."""
    random = np.random.default_rng(FIT)
    rows, labels = [], []
    for _ in range(curves):
        curve = draw(random)
        begin, stable = boundaries(curve.steps, curve.losses, curve.rates)
        if begin >= len(curve.steps) - 1:
            continue
        # Beyond 1.25² times its begin, and two times ten points, what is stable is settled.
        last = min(stable, len(curve.steps) - 1)
        end = max(int(np.searchsorted(curve.steps, 2 * curve.steps[last], side="right")), last + 3 * POINTS)
        for moment in np.unique(random.integers(begin, min(end, len(curve.steps)), moments)).tolist():
            steps, losses, rates = _until(curve, moment)
            rise, _ = risen(steps, rates)
            if rise is None:
                continue
            slopes = falls(steps, losses)
            if slow_so_far(steps, slopes, rise)[1]:
                continue
            rows.append(signs(steps, losses, rates, slopes, rise))
            labels.append(moment >= stable)
    return np.array(rows), np.array(labels, dtype=np.float64)


def fit(curves: int, moments: int) -> xgboost.Booster:
    """Trees, fitted the same way every time."""
    rows, labels = table(curves, moments)
    with xgboost.config_context(nthread=1):
        data = xgboost.DMatrix(rows, labels, feature_names=list(NAMES), nthread=1)
        model = xgboost.train(PARAMETERS, data, ROUNDS)
    model.feature_names = None
    model.set_attr(seed=str(FIT), curves=str(curves), moments=str(moments), fitted=f"{datetime.now(UTC):%Y-%m-%d}")
    return model


def play(curve: Curve, moments: int) -> dict[str, Any]:
    """Truth and answers at evenly spaced steps of a curve."""
    places = np.unique(np.linspace(0, len(curve.steps) - 1, moments).round().astype(int)).tolist()
    begin, stable = boundaries(curve.steps, curve.losses, curve.rates)
    truth = [int(place >= begin) + int(place >= stable) for place in places]
    recognised = answers(curve, places)
    said = [PHASES.index(phase["phase"]) for phase in recognised]
    late = None
    if stable < len(curve.steps) and 2 in said:
        late = float(np.log(curve.steps[places[said.index(2)]] / curve.steps[stable]))
    return {"truth": truth, "said": said, "confidence": [phase["confidence"] for phase in recognised], "late": late}


def answers(curve: Curve, places: list[int]) -> "list[documents.RecognisedPhase]":
    """What the service says at some points of a curve of which it has seen all until there."""
    columns = (curve.steps.astype(int).tolist(), curve.losses.tolist(), curve.rates.tolist())
    points: list[documents.CurvePoint] = [
        {"step": step, "loss": loss, "learning_rate": rate} for step, loss, rate in zip(*columns, strict=True)
    ]
    curves: list[documents.TrainingCurve] = [{"id": f"at-{place}", "points": points[: place + 1]} for place in places]
    return recognise({"revision": {"epoch": "report", "number": 0}, "curves": curves})["phases"]


def figures(played: list[dict[str, Any]]) -> dict[str, Any]:
    """Accuracy, macro-F1 over the phases that occur, delay of stable convergence (share of its step), calibration."""
    truth, said, confidence = (
        np.concatenate([row[name] for row in played]) for name in ("truth", "said", "confidence")
    )
    scores = []
    for phase in np.unique(truth):
        both = float(((truth == phase) & (said == phase)).sum())
        scores.append(2 * both / float((truth == phase).sum() + (said == phase).sum()))
    late = [row["late"] for row in played if row["late"] is not None]
    # Mostly those that the definition leaves open.
    doubted = confidence < 0.9
    return {
        "curves": len(played),
        "steps": len(truth),
        "accuracy": float((truth == said).mean()),
        "macro_f1": float(np.mean(scores)),
        "delay": float(np.expm1(np.median(late))) if late else None,
        "confidence": float(confidence.mean()),
        "doubted": float(doubted.mean()),
        "doubted_confidence": float(confidence[doubted].mean()) if doubted.any() else None,
        "doubted_accuracy": float((truth == said)[doubted].mean()) if doubted.any() else None,
    }


def _until(curve: Curve, moment: int) -> tuple[Floats, Floats, Floats]:
    return curve.steps[: moment + 1], curve.losses[: moment + 1], curve.rates[: moment + 1]


def main() -> int:
    """Print the table, and write it as JSON where asked to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.forecast.phases", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("KUAYU_DATA", "../shared/data")))
    parser.add_argument("--fit", action="store_true", help="fit the trees anew")
    parser.add_argument("--curves", type=int, default=8000, help="drawn curves to fit to")
    parser.add_argument("--half", choices=["development", "held-out"], default="held-out", help="of the public curves")
    parser.add_argument("--judged", type=int, default=200, help="drawn curves to judge by")
    parser.add_argument("--moments", type=int, default=60, help="steps of a curve at which it is asked")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    given = parser.parse_args()
    if given.fit:
        trees = fit(given.curves, 16)
        trees.save_model(Path(kuayu.forecast.__path__[0]) / TREES)
        Console().print("fitted:", trees.attributes())
    random = np.random.default_rng(JUDGE)
    played: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for source, (shortest, longest) in DRAWN.items():
        for _ in range(given.judged):
            played[source].append(play(draw(random, shortest, longest), given.moments))
    for curve in public(given.data):
        if curve.held_out == (given.half == "held-out"):
            played[curve.source].append(play(curve, given.moments))
    results = {name: figures(rows) for name, rows in played.items()}
    shown = Table(title=f"Phases, asked step by step; public curves: {given.half} half")
    columns = list(next(iter(results.values())))
    for name in ("source", *columns):
        shown.add_column(name)
    for name, row in results.items():
        shown.add_row(name, *("–" if row[column] is None else f"{row[column]:.3g}" for column in columns))
    Console(width=160).print(shown)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
