"""Training curves with the phases that they go through: made-up ones, and real ones where their folder is at hand.

**Phases** are those of the standard. The definition looks at what came after each step, which a service does not know;
:class:`DelayedRecogniser` does without.

1. *Warm-up* lasts until the learning rate stops rising for the first time: until the first step behind which no higher
   one comes within a tenth of the steps so far, or within ten points where these reach further. Where nothing comes
   behind a step there is nothing to tell by, so a rate that rises to the end of the run is warm-up throughout.
2. *Slope.* ``g(s)`` is by how much the loss falls from one window of steps to the next, on logarithmic scales: the
   logarithm of its mean over (s/1.25, s] over its mean over (s, 1.25 s], over the logarithm of how many times as large
   the mean step of the points in the latter is. A window holds ten points at least, the nearest ones, or as many as
   there are until the run ends. Where ten per cent more steps lower the loss by less than about one per cent, ``g`` is
   below 0.1; at the last point, behind which there is none, it is not.
3. *Stable convergence* begins at the first point ``s`` from which ``g`` is below 0.1 at every point of [s, 1.25 s], and
   at ten points at least, and lasts for ever.
4. *A recogniser to hold others against* applies the definition to the past alone: it says that warm-up is over once the
   learning rate does not rise, and that convergence is stable once everything lies behind that the definition looks at:
   after 1.25² times as many steps, or twenty points where these reach further.

**Made-up curves** follow a scaling law, driven by a learning rate, with noise and what goes wrong.

1. *Law.* The loss follows ``L(v) = E + A v^-α (1 + (v/b)^5)^(-c/5)``, a scaling law with one break (J. Kaplan et al.,
   "Scaling laws for neural language models", arXiv 2001.08361; E. Caballero et al., "Broken neural scaling laws", ICLR
   2023). ``v`` is the progress: steps weighted by the learning rate over its highest, behind those that an earlier
   training has made. ``A`` is chosen so that the slope of the law passes that of stable convergence at a drawn step,
   which may lie behind the last one that is asked about.
2. *Annealing.* What the learning rate has fallen by lowers the loss further (H. Tissue et al., "Scaling law with
   learning rate annealing", arXiv 2408.11029).
3. *Exponents* of steps are 0.28 and more where an irreducible part is set apart (J. Hoffmann et al., "Training
   compute-optimal large language models", NeurIPS 2022, approach 3); they are drawn around that.
4. *Schedules* are learning rates over the steps of a run, as shares of their highest.
5. *Noise* about the trend is as real curves have it. What was measured: the standard deviation of the logarithm of the
   loss about its running mean over a twentieth of the points, in the last 70 % of a run, and how much of it is left at
   the next point. Sources: Megatron-LM's release runs and MLPerf Training (below); medians over the runs of a kind.
   ``tests/conformance/testbed/curves`` measures them anew where the data are at hand.
6. *Seeds.* A curve follows from a seed and its number; how many others there are plays no part.

**Real curves** are read from the folder of public originals (``KUAYU_DATA``):

- *megatron*: release runs of NVIDIA/Megatron-LM's functional tests [d98e8a6], ``golden_values_*.json``; the learning
  rate follows from their ``model_config.yaml``.
- *mlperf*: losses of training of MLPerf Training v3.0 to v5.1, Llama 3.1 8B from scratch and 405B from a checkpoint;
  the learning rate follows from the logged parameters, which are in samples.

A run is told at :data:`MAX_POINTS` points or fewer, as if it had been logged at a longer interval. Left out are runs
whose learning rate cannot be known (GPT-3 of MLPerf goes on from a checkpoint, and nothing says where its schedule
begins), runs of fewer than :data:`MIN_POINTS` points, and copies of others.

``python -m kuayu_conformance.testbed.curves OUT.svg`` draws some.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.corpora import TRAINING_CURVES
from kuayu_conformance.testbed.chance import Chance, stream

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]
WARM_UP, FAST, STABLE = "warm_up", "fast_convergence", "stable_convergence"
PHASES = (WARM_UP, FAST, STABLE)
"""In the order in which a training goes through them; each may be missing."""
STRETCH = 1.25
"""How many times as many steps a window reaches over, where it holds points enough."""
KNOWN = STRETCH**2
"""How many times as many steps as a step has a run must have so that no end of it plays a part in the step's label.

That is where windows hold points enough; what is exact is :func:`known_at`.
"""
SLOW = 0.1
"""Slope of the loss below which convergence is stable, on logarithmic scales."""
SHARE = 0.1
"""How far behind a step a higher learning rate is looked for, in parts of the steps so far."""
POINTS = 10
"""Points at least that anything is looked for in: a higher learning rate, means of the loss, and a small slope."""
NEVER = int(np.iinfo(np.intp).max)
"""Place behind every other."""
_DIGITS = 5

Decay = Literal["constant", "linear", "cosine", "stable"]
DECAYS: tuple[Decay, ...] = ("constant", "linear", "cosine", "stable")
SCRATCH, RESUMED, RESTARTED = "generated from scratch", "generated, resumed", "generated, restarted"
_KINDS = ((SCRATCH, 0.55), (RESUMED, 0.15), (RESTARTED, 0.30))
_STEPS = (2e3, 1e6)
_POINTS = (100.0, 1000.0)
_EXPONENT = (0.2, 0.6)
_IRREDUCIBLE = (1.2, 2.4)
_AT_FIRST = (9.5, 12.5)
"""Loss before the first step: the logarithm of vocabularies of 13 000 to 270 000 tokens."""
_BREAK, _BEND, _SHARPNESS = (0.02, 0.5), (-0.06, 0.12), 5.0
_SWITCH = (0.003, 2.5)
"""Where the slope passes that of stable convergence, in parts of the steps that are asked about.

By the law of Hoffmann et al. that is after 1.4 to 2.3 billion tokens for models of 1 to 70 billion parameters: 0.3 % of
the longest of their runs (500 billion tokens), a third of the shortest (5). Some of Megatron's tests end before it.
"""
_SOONEST = 350.0
"""Steps before which it is not: so many tokens in batches of four million."""
_WARM_UPS = (((0.0, 0.0), 0.07), ((0.0005, 0.05), 0.5), ((0.05, 0.4), 0.3), ((0.4, 2.0), 0.13))
"""Steps of the warm-up in parts of those that are asked about, and how often it is so long."""
_ANNEALED = (0.0, 0.05)

REAL_FILES = TRAINING_CURVES
"""What is read of the folder, by name."""
MIN_POINTS, MAX_POINTS = 100, 1000
RAMPED_BATCH = 384
"""Sequences of a step of Megatron's GPT-3 15B until 97 656 250 are through (``--rampup-batch-size``): to its end."""
LLAMA_8B, LLAMA_405B = "llama31_8b", "llama31_405b"
Row = Mapping[str, str]
Points = list[tuple[float, float]]
"""Steps or samples, and the loss at each."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Course of a training.

    Attributes:
        name: Which training.
        source: Where it comes from: ``generated``, or a data set with the kind of model.
        steps: Steps at which something is known, rising, counted from one; of shape (points,).
        losses: Loss of training at each of them, more than zero.
        rates: Learning rate at each of them.
    """

    name: str
    source: str
    steps: Steps
    losses: Floats
    rates: Floats

    def __post_init__(self) -> None:
        """Check what everything else relies on.

        Raises:
            ValueError: Steps do not rise from one, a loss is not positive, or lengths differ.
        """
        length = len(self.steps)
        if not length or len(self.losses) != length or len(self.rates) != length:
            raise ValueError(f"{self.name}: steps, losses and learning rates must be as many")
        if self.steps[0] < 1 or not all(later > earlier for earlier, later in pairwise(self.steps.tolist())):
            raise ValueError(f"{self.name}: steps must rise from one")
        if not bool(np.all(self.losses > 0.0) and np.all(np.isfinite(self.losses))):
            raise ValueError(f"{self.name}: a loss must be more than nought")


def rounded(values: Floats) -> Floats:
    """Five digits of each, as logs have them; whatever the last ones of a processor are, these are the same."""
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values.tolist()])


@dataclass(frozen=True, slots=True)
class Switches:
    """Points at which phases begin.

    Attributes:
        fast: Place of the first point after warm-up among all points; None where there is none.
        stable: Place of the first point of stable convergence; None where there is none.
    """

    fast: int | None
    stable: int | None

    def phase(self, place: int) -> str:
        """Phase at a point."""
        if self.stable is not None and place >= self.stable:
            return STABLE
        return WARM_UP if self.fast is None or place < self.fast else FAST

    def since(self, place: int) -> int:
        """Place at which the phase of a point began."""
        return next((begin for begin in (self.stable, self.fast) if begin is not None and place >= begin), 0)


def switches(curve: Curve) -> Switches:
    """Where phases of a training begin."""
    fast = end_of_warm_up(curve.steps, curve.rates)
    return Switches(fast, None if fast is None else begin_of_stability(curve.steps, curve.losses, fast))


def end_of_warm_up(steps: Steps, rates: Floats) -> int | None:
    """Place of the first point behind which the learning rate does not rise further; None where it goes on to."""
    at_top = np.flatnonzero(next_higher(rates) >= reach_of_rates(steps))
    return int(at_top[0]) if len(at_top) and at_top[0] < len(steps) - 1 else None


def reach_of_rates(steps: Steps) -> NDArray[np.intp]:
    """For each point the place behind the last one at which a higher learning rate would make it warm-up."""
    return np.maximum(_reach(steps, 1.0 + SHARE), np.arange(len(steps)) + POINTS + 1)


def next_higher(rates: Floats) -> NDArray[np.intp]:
    """For each point the place of the next one with a higher learning rate; beyond all reach where there is none."""
    places = np.full(len(rates), NEVER)
    waiting: list[int] = []
    for place, rate in enumerate(rates.tolist()):
        while waiting and rates[waiting[-1]] < rate:
            places[waiting.pop()] = place
        waiting.append(place)
    return places


def begin_of_stability(steps: Steps, losses: Floats, since: int) -> int | None:
    """Place of the first point, ``since`` or later, from which the loss falls slowly; None where it never does."""
    quick = np.flatnonzero(~(slopes_of(steps, losses) < SLOW))
    next_quick = np.append(quick, NEVER)[np.searchsorted(quick, np.arange(len(steps)))]
    slow = np.flatnonzero(next_quick >= end_of_stretch(steps))
    slow = slow[slow >= since]
    return int(slow[0]) if len(slow) else None


def end_of_stretch(steps: Steps) -> NDArray[np.intp]:
    """For each point the place behind the last one at which the loss must fall slowly if it does from here."""
    return np.maximum(_reach(steps, STRETCH), np.arange(len(steps)) + POINTS)


def slopes_of(steps: Steps, losses: Floats) -> Floats:
    """``g`` at each point, of shape (points,); not a number at the last one, behind which there is nothing."""
    points = np.arange(1, len(steps) + 1)
    begin = np.searchsorted(steps * STRETCH, steps, side="right")  # the first with step · 1.25 > s
    begin = np.maximum(np.minimum(begin, points - POINTS), 0)
    end = np.minimum(np.maximum(_reach(steps, STRETCH), points + POINTS), len(steps))
    slopes: Floats = -_rises(losses, begin, points, end) / _rises(steps.astype(np.float64), begin, points, end)
    return slopes


def known_at(steps: Steps) -> NDArray[np.intp]:
    """For each point the place of the first one at which everything is past that its label depends on.

    :data:`NEVER` where the run ends before, so that the end of the run may play a part in the label.
    """
    last = end_of_stretch(steps) - 1
    window_ends = np.append(steps * STRETCH, np.inf)[np.minimum(last, len(steps))]  # where the last window of all ends
    known = np.maximum(np.searchsorted(steps, window_ends), last + POINTS)
    return np.where(known < len(steps), known, NEVER)


def settled(steps: Steps) -> int:
    """How many points there are, from the first, in whose labels the end of the run plays no part."""
    return int(np.count_nonzero(known_at(steps) < NEVER))


@dataclass(frozen=True)
class DelayedRecogniser:
    """The definition applied to the past alone.

    Attributes:
        curve: The training.
        higher: For each point the place of the next higher learning rate.
        reach: For each point the place behind the last one that is looked at for it.
        shown: Place at which it shows that convergence is stable; beyond all others where it does not.
    """

    curve: Curve
    higher: NDArray[np.intp]
    reach: NDArray[np.intp]
    shown: int

    @classmethod
    def of(cls, curve: Curve, truth: Switches) -> "DelayedRecogniser":
        """The recogniser of a curve. Whatever it is told here, it says nothing of a step before that has passed."""
        begin = None if truth.fast is None else begin_of_stability(curve.steps, curve.losses, truth.fast)
        shown = NEVER if begin is None else int(known_at(curve.steps)[begin])
        return cls(curve, next_higher(curve.rates), reach_of_rates(curve.steps), shown)

    def phase(self, place: int) -> str:
        """Phase at a point, by the points until there."""
        over = (self.higher > place) | (self.higher >= self.reach)
        if not over[:place].any():
            return WARM_UP
        return STABLE if place >= self.shown else FAST


def _rises(values: Floats, begin: NDArray[np.intp], points: NDArray[np.intp], end: NDArray[np.intp]) -> Floats:
    """Logarithm of the mean over [here, end) over the mean over [begin, here), of shape (points,)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    before = (sums[points] - sums[begin]) / (points - begin)
    behind = np.divide(sums[end] - sums[points], end - points, out=np.full(len(points), np.nan), where=end > points)
    rises: Floats = np.log(behind / before)
    return rises


def _reach(steps: Steps, factor: float) -> NDArray[np.intp]:
    """For each point the place behind the last one with at most ``factor`` times as many steps."""
    return np.searchsorted(steps, steps * factor, side="right")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A learning rate that rises in a line, and then falls.

    Attributes:
        warm_up: Steps in which it rises; zero where it begins at its highest.
        decay: How it falls: not at all, in a line, as half a cosine (I. Loshchilov and F. Hutter, "SGDR", ICLR 2017),
            or in a line over the last part after having been constant (WSD: S. Hu et al., "MiniCPM", COLM 2024).
        until: Step at which it is lowest.
        lowest: What it falls to, as a share of the highest.
        falls_from: Share of the steps until then after which a stable one begins to fall.
    """

    warm_up: float
    decay: Decay
    until: float
    lowest: float = 0.1
    falls_from: float = 0.8

    def shares(self, steps: Steps) -> Floats:
        """Learning rate at each step over the highest, of shape (points,)."""
        rising = np.minimum(1.0, steps / self.warm_up) if self.warm_up > 0 else np.ones(len(steps))
        begin = self.falls_from * self.until if self.decay == "stable" else self.warm_up
        through = np.clip((steps - begin) / max(self.until - begin, 1.0), 0.0, 1.0)
        if self.decay == "constant":
            left = np.ones(len(steps))
        elif self.decay == "cosine":
            left = 0.5 * (1.0 + np.cos(np.pi * through))
        else:
            left = 1.0 - through
        shares: Floats = np.where(steps < self.warm_up, rising, self.lowest + (1.0 - self.lowest) * left)
        return shares


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of a kind of training.

    Attributes:
        kind: Which.
        size: Standard deviation of the logarithm of the loss from point to point.
        correlation: Share of a deviation that is left at the next point (correlation of neighbours).
    """

    kind: str
    size: float
    correlation: float


MEASURED = (
    Noise("megatron bert", 0.0308, -0.02),
    Noise("megatron gpt", 0.0104, -0.15),
    Noise("megatron mixtral", 0.0078, -0.03),
    Noise("megatron nemotron", 0.0043, -0.06),
    Noise("megatron t5", 0.0176, 0.0),
    Noise("mlperf llama31_405b", 0.0024, -0.06),
    Noise("mlperf llama31_8b", 0.0183, -0.07),
)


def measure(losses: Floats) -> Noise:
    """Noise of a curve.

    Args:
        losses: Of shape (points,), a hundred or more of them.
    """
    logs = np.log(losses)
    width = max(5, len(logs) // 20)
    trend = np.convolve(logs, np.full(width, 1.0 / width), "valid")
    left = (logs[width // 2 :][: len(trend)] - trend)[int(0.3 * len(trend)) :]
    return Noise("measured", float(left.std()), float(np.corrcoef(left[:-1], left[1:])[0, 1]))


def deviations(drawn: Floats, noise: Noise) -> Floats:
    """Deviations of the logarithm of the loss, each of which keeps a share of the one before.

    Args:
        drawn: Independent normal numbers, of shape (points,).
        noise: Of which size, and how much is kept.
    """
    fresh = noise.size * float(np.sqrt(1.0 - noise.correlation**2))
    walk, last = np.empty(len(drawn)), noise.size * drawn[0]
    for place, number in enumerate(drawn):
        last = last if place == 0 else noise.correlation * last + fresh * number
        walk[place] = last
    return walk


@dataclass(frozen=True, slots=True)
class Law:
    """A loss by progress.

    Attributes:
        floor: What it never falls below.
        scale: What is above that at a progress of one, before the break.
        exponent: By which power it falls.
        bend: By how much steeper it falls behind the break.
        break_at: Progress at the break.
        done: Progress before the first step.
        annealed: Share by which it is lower where the learning rate has fallen to zero.
    """

    floor: float
    scale: float
    exponent: float
    bend: float
    break_at: float
    done: float
    annealed: float

    def losses(self, shares: Floats, steps: Steps) -> Floats:
        """Loss at each step without noise; ``shares`` are learning rates over the highest, of shape (points,)."""
        progress = self.done + np.cumsum(shares * np.diff(steps, prepend=0))
        shape = progress**-self.exponent * (1.0 + (progress / self.break_at) ** _SHARPNESS) ** (-self.bend / _SHARPNESS)
        fallen = np.maximum.accumulate(shares) - shares
        losses: Floats = (self.floor + self.scale * shape) * (1.0 - self.annealed * fallen)
        return losses


def curve(seed: str, number: int) -> Curve:
    """The curve of a number that follows from a seed; how many others there are plays no part."""
    chance = Chance(seed, f"curve {number}")
    kind = chance.weighted(_KINDS)
    horizon = _spread(chance, *_STEPS)
    steps = _logged(horizon * KNOWN, round(_spread(chance, *_POINTS)))
    schedule = _schedule(chance, horizon, resumed=kind == RESUMED)
    shares = schedule.shares(steps)
    law = _law(chance, horizon, resumed=kind == RESUMED)
    noise = chance.pick(MEASURED)
    drawn = stream(seed, f"noise {number}").standard_normal(len(steps))
    losses = law.losses(shares, steps) * np.exp(deviations(drawn, noise))
    losses *= _spikes(chance, steps)
    logged = np.ones(len(steps), dtype=np.bool_)
    if kind == RESTARTED:
        losses, shares, logged = _restarted(chance, steps, losses, shares)
    rates = _spread(chance, 1e-5, 2e-3) * shares
    return Curve(f"generated {number}", kind, steps[logged], rounded(losses[logged]), rounded(rates[logged]))


def _spread(chance: Chance, low: float, high: float) -> float:
    """A number between two, of which all sizes are equally likely."""
    return float(low * (high / low) ** chance.fraction())


def _logged(until: float, points: int) -> Steps:
    """Steps of so many points at equal intervals; the first one is told too."""
    interval = max(1, round(until / points))
    return np.array([1, *range(max(2, interval), round(until) + 1, interval)], dtype=np.int64)


def _schedule(chance: Chance, horizon: float, *, resumed: bool) -> Schedule:
    (low, high), _ = chance.weighted([((width, weight), weight) for width, weight in _WARM_UPS])
    long = _spread(chance, low, high) if low > 0 else 0.0
    if resumed:
        long = chance.pick((0.0, min(long, 0.02)))
    ends = chance.pick((KNOWN, _spread(chance, KNOWN, 20.0)))
    warm_up = long * horizon
    until = max(ends * horizon, 2.0 * warm_up)
    return Schedule(warm_up, chance.pick(DECAYS), until, chance.pick((0.0, 0.01, 0.1)), chance.between(0.5, 0.9))


def _law(chance: Chance, horizon: float, *, resumed: bool) -> Law:
    exponent, floor = chance.between(*_EXPONENT), chance.between(*_IRREDUCIBLE)
    switch = max(_SOONEST, _spread(chance, *_SWITCH) * horizon)
    above = floor * SLOW / (exponent - SLOW)  # where the slope of the law is that of stable convergence
    scale = above * switch**exponent
    first = chance.between(*_AT_FIRST)
    done = (scale / (first - floor)) ** (1.0 / exponent)
    if resumed:
        done += _spread(chance, 0.1, 20.0) * horizon
    bend, break_at = chance.between(*_BEND), _spread(chance, *_BREAK) * horizon
    return Law(floor, scale, exponent, bend, break_at, done, chance.between(*_ANNEALED))


def _spikes(chance: Chance, steps: Steps) -> Floats:
    """Factors of the loss where it jumps up and comes down again, of shape (points,)."""
    factors = np.ones(len(steps))
    until = float(steps[-1])
    for _ in range(chance.weighted(((0, 0.7), (1, 0.15), (2, 0.1), (4, 0.05)))):
        factors *= _jump(
            steps, chance.fraction() * until, chance.between(0.05, 0.8), _spread(chance, 5e-4, 1e-2) * until
        )
    return factors


def _restarted(
    chance: Chance, steps: Steps, losses: Floats, shares: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Losses, learning rates and what is told where a training broke off and went on from a checkpoint.

    Steps that were made twice are told once; a few are missing where the log was lost; the loss is a little higher
    afterwards, and at times the learning rate rises anew.
    """
    until, logged = float(steps[-1]), np.ones(len(steps), dtype=np.bool_)
    losses, shares = losses.copy(), shares.copy()
    for _ in range(chance.pick((1, 2, 3))):
        step = chance.between(0.02, 1.0) * until
        losses *= _jump(steps, step, chance.between(0.0, 0.1), _spread(chance, 2e-3, 2e-2) * until)
        logged &= (steps <= step) | (steps > step + chance.between(0.0, 0.02) * until)
        if chance.fraction() < 0.5:  # noqa: PLR2004 - every other one
            anew = _spread(chance, 2e-3, 1e-2) * until
            shares *= np.where(steps > step, np.minimum(1.0, (steps - step) / anew), 1.0)
    return losses, np.maximum(shares, 1e-6), logged


def _jump(steps: Steps, step: float, height: float, lasts: float) -> Floats:
    """Factors of the loss after a jump."""
    behind = np.maximum(steps - step, 0.0)
    factors: Floats = np.where(steps > step, 1.0 + height * np.exp(-behind / lasts), 1.0)
    return factors


def real_curves(data: Path) -> tuple[Curve, ...]:
    """Every run of the folder whose course is known, by source and name.

    Raises:
        OSError: A file of :data:`REAL_FILES` cannot be read.
    """
    runs = [*_megatron(data), *_mlperf(data)]
    known: set[tuple[float, ...]] = set()
    curves = []
    for curve in runs:
        course = tuple(curve.losses.tolist())
        if course not in known:
            known.add(course)
            curves.append(curve)
    return tuple(curves)


def _megatron(data: Path) -> Iterator[Curve]:
    with (data / REAL_FILES["megatron_configurations"]).open(encoding="utf-8", newline="") as file:
        configurations = {f"{row['family']}/{row['case']}": row for row in csv.DictReader(file)}
    series: dict[str, Points] = defaultdict(list)
    for row in _rows(data / REAL_FILES["megatron_curves"]):
        if row["series"] == "lm_loss":
            series[row["run"]].append((float(row["iteration"]), float(row["value"])))
    for run, points in sorted(series.items()):
        family, case, *_ = run.split("/")
        if stated := configurations.get(f"{family}/{case}"):
            yield from _real_curve(run, f"megatron {family}", points, _megatron_schedule(stated), float(stated["lr"]))


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
    with (data / REAL_FILES["mlperf_runs"]).open(encoding="utf-8", newline="") as file:
        runs = {row["run_id"]: row for row in csv.DictReader(file) if row["benchmark"] in {LLAMA_8B, LLAMA_405B}}
    series: dict[str, Points] = defaultdict(list)
    for row in _rows(data / REAL_FILES["mlperf_curves"]):
        if row["series"] == "train_loss" and row["run_id"] in runs:
            batch = float(runs[row["run_id"]]["global_batch_size"])
            series[row["run_id"]].append((float(row["samples"]) / batch, float(row["value"])))
    for run, points in sorted(series.items()):
        row = runs[run]
        batch, peak = float(row["global_batch_size"]), float(row["opt_base_learning_rate"])
        warm_up = float(row["opt_learning_rate_warmup_steps"]) / batch
        until = warm_up + float(row["opt_learning_rate_decay_steps"]) / batch
        schedule = Schedule(warm_up, "cosine", until, float(row["opt_end_learning_rate"]) / peak)
        yield from _real_curve(run, f"mlperf {row['benchmark']}", points, schedule, peak)


def _rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _real_curve(name: str, source: str, points: Points, schedule: Schedule, peak: float) -> Iterator[Curve]:
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
