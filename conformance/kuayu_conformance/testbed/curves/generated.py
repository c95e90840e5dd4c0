"""Training curves that are made up: a scaling law, driven by a learning rate, with noise and what goes wrong.

The loss follows ``L(v) = E + A v^-α (1 + (v/b)^5)^(-c/5)``, a scaling law with one break (J. Kaplan et al., "Scaling
laws for neural language models", arXiv 2001.08361; E. Caballero et al., "Broken neural scaling laws", ICLR 2023). ``v``
is the progress: steps weighted by the learning rate over its highest, behind those that an earlier training has made.
What the learning rate has fallen by lowers the loss further (H. Tissue et al., "Scaling law with learning rate
annealing", arXiv 2408.11029). ``A`` is chosen so that the slope of the law passes that of stable convergence at a drawn
step, which may lie behind the last one that is asked about.

Exponents of steps are 0.28 and more where an irreducible part is set apart (J. Hoffmann et al., "Training
compute-optimal large language models", NeurIPS 2022, approach 3); they are drawn around that.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.curves.labels import SLOW
from kuayu_conformance.testbed.curves.noise import MEASURED, deviations
from kuayu_conformance.testbed.curves.schedules import DECAYS, Schedule
from kuayu_conformance.testbed.curves.values import KNOWN, Curve, Floats, Steps, rounded

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
class Law:
    """A loss by progress.

    Attributes:
        floor: What it never falls below.
        scale: What is above that at a progress of one, before the break.
        exponent: By which power it falls.
        bend: By how much steeper it falls behind the break.
        break_at: Progress at the break.
        done: Progress before the first step.
        annealed: Share by which it is lower where the learning rate has fallen to nought.
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
