"""Training curves that are made up: a scaling law, driven by a learning rate, with noise and what goes wrong.

1. **Law.** The loss follows ``L(v) = E + A v^-α (1 + (v/b)^5)^(-c/5)``, a scaling law with one break (J. Kaplan et
   al., "Scaling laws for neural language models", arXiv 2001.08361; E. Caballero et al., "Broken neural scaling laws",
   ICLR 2023). ``v`` is the progress: steps weighted by the learning rate over its highest, behind those that an
   earlier training has made. ``A`` is chosen so that the slope of the law passes that of stable convergence at a drawn
   step, which may lie behind the last one that is asked about.
2. **Annealing.** What the learning rate has fallen by lowers the loss further (H. Tissue et al., "Scaling law with
   learning rate annealing", arXiv 2408.11029).
3. **Exponents** of steps are 0.28 and more where an irreducible part is set apart (J. Hoffmann et al., "Training
   compute-optimal large language models", NeurIPS 2022, approach 3); they are drawn around that.
4. **Schedules** are learning rates over the steps of a run, as shares of their highest.
5. **Noise** about the trend is as real curves have it. What was measured: the standard deviation of the logarithm of
   the loss about its running mean over a twentieth of the points, in the last 70 % of a run, and how much of it is
   left at the next point. Sources: Megatron-LM's release runs and MLPerf Training (see
   :mod:`kuayu_conformance.testbed.curves.real`, which names the files); medians over the runs of a kind.
   ``tests/conformance/testbed/curves`` measures them anew where the data are at hand.
6. **Seeds.** A curve follows from a seed and its number; how many others there are plays no part.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.curves.phases import KNOWN, SLOW, Curve, Floats, Steps, rounded

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
        kept: Share of a deviation that is left at the next point (correlation of neighbours).
    """

    kind: str
    size: float
    kept: float


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
    fresh = noise.size * float(np.sqrt(1.0 - noise.kept**2))
    found, last = np.empty(len(drawn)), noise.size * drawn[0]
    for place, number in enumerate(drawn):
        last = last if place == 0 else noise.kept * last + fresh * number
        found[place] = last
    return found


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
    kept = np.ones(len(steps), dtype=np.bool_)
    if kind == RESTARTED:
        losses, shares, kept = _restarted(chance, steps, losses, shares)
    rates = _spread(chance, 1e-5, 2e-3) * shares
    return Curve(f"generated {number}", kind, steps[kept], rounded(losses[kept]), rounded(rates[kept]))


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
    until, kept = float(steps[-1]), np.ones(len(steps), dtype=np.bool_)
    losses, shares = losses.copy(), shares.copy()
    for _ in range(chance.pick((1, 2, 3))):
        step = chance.between(0.02, 1.0) * until
        losses *= _jump(steps, step, chance.between(0.0, 0.1), _spread(chance, 2e-3, 2e-2) * until)
        kept &= (steps <= step) | (steps > step + chance.between(0.0, 0.02) * until)
        if chance.fraction() < 0.5:  # noqa: PLR2004 - every other one
            anew = _spread(chance, 2e-3, 1e-2) * until
            shares *= np.where(steps > step, np.minimum(1.0, (steps - step) / anew), 1.0)
    return losses, np.maximum(shares, 1e-6), kept


def _jump(steps: Steps, step: float, height: float, lasts: float) -> Floats:
    """Factors of the loss after a jump."""
    behind = np.maximum(steps - step, 0.0)
    factors: Floats = np.where(steps > step, 1.0 + height * np.exp(-behind / lasts), 1.0)
    return factors
