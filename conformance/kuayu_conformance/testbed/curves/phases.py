"""Courses of trainings, and the phases that they go through as the standard defines them.

The definition looks at what came after each step, which a service does not know; :class:`Delayed` does without.

1. **Warm-up** lasts until the learning rate stops rising for the first time: until the first step behind which no
   higher one comes within a tenth of the steps so far, or within ten points where these reach further. Where nothing
   comes behind a step there is nothing to tell by, so a rate that rises to the end of the run is warm-up throughout.
2. **Slope.** ``g(s)`` is by how much the loss falls from one stretch of steps to the next, on logarithmic scales: the
   logarithm of its mean over (s/1.25, s] over its mean over (s, 1.25 s], over the logarithm of how many times as large
   the mean step of the points in the latter is. A stretch holds ten points at least, the nearest ones, or as many as
   there are until the run ends. Where ten per cent more steps lower the loss by less than about one per cent, ``g`` is
   below 0.1; at the last point, behind which there is none, it is not.
3. **Stable convergence** begins at the first point ``s`` from which ``g`` is below 0.1 at every point of [s, 1.25 s],
   and at ten points at least, and lasts for ever.
4. **A recogniser to hold others against** applies the definition to the past alone: it says that warm-up is over once
   the learning rate does not rise, and that convergence is stable once everything lies behind that the definition
   looks at: after 1.25² times as many steps, or twenty points where these reach further.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Steps = NDArray[np.int64]
WARM_UP, FAST, STABLE = "warm_up", "fast_convergence", "stable_convergence"
PHASES = (WARM_UP, FAST, STABLE)
"""In the order in which a training goes through them; each may be missing."""
STRETCH = 1.25
"""How many times as many steps a window reaches over, where it holds points enough."""
KNOWN = STRETCH**2
"""How many times as many steps as a step has a run must have so that no end of it plays a part in the step's label.

That is where windows hold points enough; what is exact is :func:`kuayu_conformance.testbed.curves.labels.known_at`.
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
    found = np.full(len(rates), NEVER)
    waiting: list[int] = []
    for place, rate in enumerate(rates.tolist()):
        while waiting and rates[waiting[-1]] < rate:
            found[waiting.pop()] = place
        waiting.append(place)
    return found


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
class Delayed:
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
    def of(cls, curve: Curve, truth: Switches) -> "Delayed":
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
