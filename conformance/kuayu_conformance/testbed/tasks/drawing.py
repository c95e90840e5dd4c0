"""Tasks from a seed: those of a window, and those that ran before."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.tasks.kinds import KINDS, MEMORY, NOISE, OVER_REQUEST, RATE, WINDOW
from kuayu_conformance.testbed.tasks.law import Numbers, dies, slowed, used

BURST, PEAK = 1.1, 1.5
USERS = 8
DIGITS = 6
"""Significant digits of what is sent, so that nobody is judged by others."""


@dataclass(frozen=True)
class World:
    """What is assumed about users.

    Attributes:
        over_request: Mean of asked for ÷ needed, for each kind, over those who do not ask for too little; one or more.
        spread: Standard deviation of the logarithm of the excess.
        short: Share of cores and GPU requests, and of memory requests of kinds with a cache, that are too small.
        shortest: Least part of the need that is asked for.
        use_spread: Standard deviation of the logarithm of use within a kind.
        unit: Factor on all durations.
    """

    over_request: tuple[float, ...] = (OVER_REQUEST,) * len(KINDS)
    spread: float = 0.5
    short: float = 0.1
    shortest: float = 0.6
    use_spread: float = 0.5
    unit: float = 1.0

    def asking(self, over_request: float) -> "World":
        """The same with another over-request for all kinds."""
        return replace(self, over_request=(over_request,) * len(KINDS))


@dataclass(frozen=True)
class Tasks:
    """Some tasks, one a row.

    Attributes:
        kind: ``(n,)`` index into the kinds.
        arrival: ``(n,)`` seconds from the begin of the window, rising.
        requested: ``(n, 3)``.
        need: ``(n, 3)``; more than this makes no task quicker.
        use: ``(n, 3)``; mean at full speed.
        peak: ``(n,)`` gigabytes below which it dies.
        duration: ``(n,)`` seconds at full speed.
        declared: ``(n,)`` seconds that a scheduler believes in, wrong by the error of table 3.
        dying: ``(n,)`` part of its run after which it dies where memory runs out.
        user: ``(n,)``.
    """

    kind: NDArray[np.int64]
    arrival: Numbers
    requested: Numbers
    need: Numbers
    use: Numbers
    peak: Numbers
    duration: Numbers
    declared: Numbers
    dying: Numbers
    user: NDArray[np.int64]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.kind)

    @property
    def ideal(self) -> Numbers:
        """What each should be given by somebody who knows: what it needs, as far as it asks for that."""
        return np.minimum(self.requested, self.need)

    def slowed(self, given: Numbers) -> Numbers:
        """Time on what is given ÷ time on what is needed, ``(n,)``; memory below the peak is not looked at."""
        waits = np.array([kind.waits for kind in KINDS])[self.kind]
        return slowed(given, self.need, self.use, waits)

    def dies(self, given: Numbers) -> NDArray[np.bool_]:
        """Which of them run out of memory."""
        return dies(given[:, MEMORY], self.peak)

    def used(self, given: Numbers) -> Numbers:
        """Mean use on that, ``(n, 3)``."""
        return used(self.use, self.slowed(given))


def window(seed: str, mix: tuple[int, ...], world: World, rate: float = RATE) -> Tasks:
    """Tasks that arrive within a window, ``rate`` an hour by a Poisson process."""
    chance = stream(seed, "arrivals")
    most = int(rate * WINDOW / 3600.0 * 2 + 50)
    times = np.cumsum(chance.standard_exponential(most).astype(np.float32).astype(np.float64)) * 3600.0 / rate
    times = np.round(times, 3)
    arrivals = times[times < WINDOW]
    return _drawn(seed, mix, world, arrivals)


def history(seed: str, mix: tuple[int, ...], world: World, records: int) -> Tasks:
    """Tasks that ran before, on what they asked for."""
    return _drawn(f"{seed}/history", mix, world, np.zeros(records))


def _drawn(seed: str, mix: tuple[int, ...], world: World, arrivals: Numbers) -> Tasks:
    n = len(arrivals)
    chance = stream(seed, "tasks")
    shares = np.cumsum(mix) / sum(mix)
    kind = np.searchsorted(shares, chance.random(n), side="right").astype(np.int64)
    size = normal(chance, (n, 3)).astype(np.float64).clip(-3.0, 3.0)
    spread = world.use_spread
    use = np.array([spec.use for spec in KINDS])[kind] * _around(size, spread)
    rules = np.array([spec.rules for spec in KINDS])[kind]
    noise = _around(normal(chance, n).astype(np.float64).clip(-3.0, 3.0), NOISE)
    full = np.array([spec.duration for spec in KINDS])[kind] * world.unit
    duration = full * _around(size[np.arange(n), rules], spread) * noise
    peak = use[:, MEMORY] * (PEAK + 0.2 * (chance.random(n) - 0.5))
    cache = np.array([spec.cache for spec in KINDS])[kind]
    need = use * BURST
    need[:, MEMORY] = peak * cache
    requested = _rounded_up(need * _asked(chance, kind, cache, world))
    return Tasks(
        kind=kind,
        arrival=arrivals,
        requested=requested,
        need=need,
        use=use,
        peak=peak,
        duration=duration,
        declared=duration * _around(normal(chance, n).astype(np.float64).clip(-3.0, 3.0), NOISE),
        dying=chance.random(n),
        user=chance.integers(0, USERS, n),
    )


def _asked(chance: np.random.Generator, kind: NDArray[np.int64], cache: Numbers, world: World) -> Numbers:
    """What is asked for in parts of what is needed, ``(n, 3)``."""
    n = len(kind)
    excess = _around(normal(chance, (n, 3)).astype(np.float64).clip(-3.0, 3.0), world.spread)
    ample = 1.0 + (np.array(world.over_request)[kind] - 1.0)[:, None] * excess
    least = np.full((n, 3), world.shortest)
    least[:, MEMORY] = 1.0 / cache  # nobody keeps asking for less than what lets a task live
    little = least + (1.0 - least) * chance.random((n, 3))
    return np.where((chance.random((n, 3)) < world.short) & (least < 1.0), little, ample)


def _around(score: Numbers, spread: float) -> Numbers:
    """Log-normal factors of mean one."""
    return exponential(score * spread) * exponential(-0.5 * spread * spread)


def _rounded_up(values: Numbers) -> Numbers:
    """To a few significant digits, never down: who asks for just enough has enough."""
    text = np.vectorize(lambda value: float(f"{value * (1.0 + 10.0 ** (1 - DIGITS)):.{DIGITS}g}"), otypes=[float])
    return np.asarray(text(values), np.float64)
