"""Training curves: drawn ones of many kinds, and those of public runs with what their configurations say of the rate.

Drawn: power laws with a floor in the progress that the learning rate allows, one or two falls with a plateau before
each, from scratch or from a checkpoint, four schedules, and noise that is independent, correlated, heavy-tailed or
spiky. Public: Megatron-LM's long test runs and MLPerf Training logs (see the README files beside the data).
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from kuayu.forecast.phases import Floats

MEGATRON = "training_curves"
MLPERF = "mlperf_curves"
SHORTEST = 100
"""Public curves of fewer points are left out, and none is drawn."""

SHORT, MAX_POINTS = 1000, 8000
"""Points of drawn curves: most are short."""


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
