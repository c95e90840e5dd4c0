"""Real training curves, read from the folder of public originals (``KUAYU_DATA``).

- *megatron*: release runs of NVIDIA/Megatron-LM's functional tests [d98e8a6], ``golden_values_*.json``; the learning
  rate follows from their ``model_config.yaml``.
- *mlperf*: losses of training of MLPerf Training v3.0 to v5.1, Llama 3.1 8B from scratch and 405B from a checkpoint;
  the learning rate follows from the logged parameters, which are in samples.

A run is told at :data:`MAX_POINTS` points or fewer, as if it had been logged at a longer interval. Left out are runs
whose learning rate cannot be known (GPT-3 of MLPerf goes on from a checkpoint, and nothing says where its schedule
begins), runs of fewer than :data:`MIN_POINTS` points, and copies of others.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from kuayu_conformance.corpora import TRAINING_CURVES
from kuayu_conformance.testbed.curves.generated import Schedule
from kuayu_conformance.testbed.curves.phases import Curve, rounded

FILES = TRAINING_CURVES
"""What is read of the folder, by name."""

MIN_POINTS, MAX_POINTS = 100, 1000
RAMPED_BATCH = 384
"""Sequences of a step of Megatron's GPT-3 15B until 97 656 250 are through (``--rampup-batch-size``): to its end."""

SCRATCH, CONTINUED = "llama31_8b", "llama31_405b"

Row = Mapping[str, str]
Points = list[tuple[float, float]]
"""Steps or samples, and the loss at each."""


def curves(data: Path) -> tuple[Curve, ...]:
    """Every run of the folder whose course is known, by source and name.

    Raises:
        OSError: A file of :data:`FILES` cannot be read.
    """
    found = [*_megatron(data), *_mlperf(data)]
    known: set[tuple[float, ...]] = set()
    kept = []
    for curve in found:
        course = tuple(curve.losses.tolist())
        if course not in known:
            known.add(course)
            kept.append(curve)
    return tuple(kept)


def _megatron(data: Path) -> Iterator[Curve]:
    with (data / FILES["megatron_configurations"]).open(encoding="utf-8", newline="") as file:
        configurations = {f"{row['family']}/{row['case']}": row for row in csv.DictReader(file)}
    series: dict[str, Points] = defaultdict(list)
    for row in _rows(data / FILES["megatron_curves"]):
        if row["series"] == "lm_loss":
            series[row["run"]].append((float(row["iteration"]), float(row["value"])))
    for run, points in sorted(series.items()):
        family, case, *_ = run.split("/")
        if stated := configurations.get(f"{family}/{case}"):
            yield from _curve(run, f"megatron {family}", points, _megatron_schedule(stated), float(stated["lr"]))


def _megatron_schedule(row: Row) -> Schedule:
    """``optimizer_param_scheduler.py``: steps of a line, then a decay until ``lr_decay_*``, else until ``train_*``."""
    lowest = float(row["min_lr"]) / float(row["lr"])
    if row["lr_warmup_fraction"]:
        whole = float(row["train_iters"])
        return Schedule(float(row["lr_warmup_fraction"]) * whole, "linear", whole, lowest)
    batch = float(row["global_batch_size"] or RAMPED_BATCH)
    decay, until = float(row["lr_decay_samples"]) / batch, float(row["lr_warmup_samples"]) / batch
    return Schedule(until, "stable" if row["lr_decay_style"] == "WSD" else "cosine", decay, lowest)


def _mlperf(data: Path) -> Iterator[Curve]:
    with (data / FILES["mlperf_runs"]).open(encoding="utf-8", newline="") as file:
        runs = {row["run_id"]: row for row in csv.DictReader(file) if row["benchmark"] in {SCRATCH, CONTINUED}}
    series: dict[str, Points] = defaultdict(list)
    for row in _rows(data / FILES["mlperf_curves"]):
        if row["series"] == "train_loss" and row["run_id"] in runs:
            batch = float(runs[row["run_id"]]["global_batch_size"])
            series[row["run_id"]].append((float(row["samples"]) / batch, float(row["value"])))
    for run, points in sorted(series.items()):
        row = runs[run]
        batch, peak = float(row["global_batch_size"]), float(row["opt_base_learning_rate"])
        warm_up = float(row["opt_learning_rate_warmup_steps"]) / batch
        until = warm_up + float(row["opt_learning_rate_decay_steps"]) / batch
        schedule = Schedule(warm_up, "cosine", until, float(row["opt_end_learning_rate"]) / peak)
        yield from _curve(run, f"mlperf {row['benchmark']}", points, schedule, peak)


def _rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _curve(name: str, source: str, points: Points, schedule: Schedule, peak: float) -> Iterator[Curve]:
    """The run, if it is long enough; a step that stands twice counts once."""
    rows = sorted({max(1, round(step)): loss for step, loss in sorted(points)}.items())
    if len(rows) >= MIN_POINTS:
        steps, losses = zip(*_every(rows), strict=True)
        step_numbers = np.array(steps, dtype=np.int64)
        yield Curve(
            name,
            source,
            step_numbers,
            np.array(losses, dtype=np.float64),
            rounded(peak * schedule.shares(step_numbers)),
        )


def _every(rows: Sequence[tuple[int, float]]) -> Iterable[tuple[int, float]]:
    """Every so manieth, so that no more than :data:`MAX_POINTS` are left."""
    return islice(rows, 0, None, -(-len(rows) // MAX_POINTS))
