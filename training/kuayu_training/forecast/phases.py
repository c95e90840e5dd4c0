"""Recognition of training phases: ``python -m kuayu_training.forecast.phases [--fit] [--half development|held-out]``.

Plays curves step by step, asks at evenly spaced steps in which phase they are, and compares with the definition, which
looks both ways. Prints accuracy over steps, macro-F1, delay and calibration by source: drawn curves of seeds that
nothing was fitted to, and public ones in the folder that KUAYU_DATA names (default ../shared/data). ``--fit`` first
fits the trees anew, to drawn curves alone.
"""

import argparse
import json
import os
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost
from rich.console import Console
from rich.table import Table

import kuayu.forecast
from kuayu.forecast.phases import NAMES, POINTS, TREES, Floats, boundaries, falls, recognise, risen, signs, slow_so_far
from kuayu_training.forecast.phases_curves import MAX_POINTS, SHORT, SHORTEST, Curve, draw, public

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
