"""Windows over links between domains that change, one value for each minute.

Families:

- *metro*: 100 to 400 Gbit/s and 1 to 3 ms between domains, ±30 %;
- *national*: 2 to 10 Gbit/s, 10 to 40 ms, ±30 %;
- *busy*: leased lines of 10 to 100 Gbit/s that are left to others for hours of the day: all links together move between
  all, 0.3 and 0.05 of it, for 20 minutes on average each;
- *×0.3*: national, with episodes of each link, one in 15 minutes of 2 minutes on average.
"""

from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.chance import normal, stream
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.transfers.collectives import Floats, Setting, Whole

FAMILIES = ("metro", "national", "busy", "×0.3")
INTERVAL, SWITCH = 60.0, 10.0
"""Seconds of an interval, and of a switch."""
PAST, COUNT = 30, 120
"""Intervals that were measured before the begin, and those of a window of two hours."""
NOISE = 0.05
"""Standard deviation of the logarithm of what is measured, over what was carried."""
GIGABIT = 1e9
_RATES = {"metro": (100.0, 4.0), "national": (2.0, 5.0), "busy": (10.0, 10.0), "×0.3": (2.0, 5.0)}
"""Least of a family, and how many times as much the most is."""
_LATENCY = {"metro": (1e-3, 3e-3), "national": (10e-3, 40e-3), "busy": (5e-3, 20e-3), "×0.3": (10e-3, 40e-3)}
_BUSY = np.array((1.0, 0.3, 0.05))
_BUSY_STAYS = 1200.0
_SLOW, _SLOW_AFTER, _SLOW_STAYS = 0.3, 900.0, 120.0
_MEGABIT = 1e6
_STEEPEST = 8.0


@dataclass(frozen=True, eq=False)
class World:
    """A window.

    Attributes:
        family: Which links it has.
        setting: What is trained.
        domains: Names, which tell nothing.
        carried: Bits a second from domain to domain in each interval, ``(PAST + count, D, D)``; nought from a domain
            to itself.
        measured: What is told of them, whole megabits, likewise.
    """

    family: str
    setting: Setting
    domains: tuple[str, ...]
    carried: Floats
    measured: Floats

    @property
    def window(self) -> Floats:
        """What is carried in the window, ``(count, D, D)``."""
        return self.carried[PAST:]

    @property
    def count(self) -> int:
        """Intervals of the window."""
        return len(self.carried) - PAST

    def seen(self, row: int) -> Floats:
        """What was measured before an interval of the window, ``(PAST, D, D)``."""
        return self.measured[row : row + PAST]


def draw(family: str, seed: str, count: int = COUNT, naming: str = "") -> World:
    """A window of a family, of so many intervals; its names follow from ``naming`` where it is given."""
    chance = stream(seed, f"collectives {family}")
    domains, nodes = int(chance.integers(2, 7)), int(chance.choice([1, 2, 4, 8, 16, 32]))
    least, times = _RATES[family]
    shape = (domains, domains)
    level = GIGABIT * least * _powers(chance, times, shape)
    setting = Setting(
        latency=np.round(chance.uniform(*_LATENCY[family], shape), 6),
        nodes=nodes,
        node_bandwidth=GIGABIT * float(chance.choice([25.0, 100.0, 400.0])),
        node_latency=1e-5,
        exchange=float(np.round(0.2e9 * _powers(chance, 100.0, (1,))[0], -6)),
        step_time=round(float(chance.uniform(1.0, 20.0)), 3),
    )
    carried = level * _shares(family, chance, domains, PAST + count) * (1.0 - np.eye(domains))
    noise = normal(chance, carried.shape).astype(np.float64)
    measured = np.round(carried * exponential(NOISE * noise) / _MEGABIT) * _MEGABIT
    named = stream(naming, "names") if naming else chance
    names = tuple(f"{int(named.integers(1 << 56)):014x}" for _ in range(domains))
    return World(family, setting, names, carried, measured)


def _powers(chance: np.random.Generator, times: float, shape: tuple[int, ...]) -> Floats:
    """Numbers from one to so many, whose logarithms are spread evenly."""
    return exponential(chance.uniform(0.0, float(np.log(times)), shape))


def _shares(family: str, chance: np.random.Generator, domains: int, rows: int) -> Floats:
    """What links carry in parts of their level, ``(rows, D, D)``."""
    shares = _varied(chance, (rows, domains * domains))
    if family == "busy":
        first = int(chance.integers(len(_BUSY)))
        shares *= _BUSY[_regimes(chance, (rows, 1), (_BUSY_STAYS,) * len(_BUSY), first)]
    if family == "×0.3":
        slow = _regimes(chance, shares.shape, (_SLOW_AFTER, _SLOW_STAYS), 0) == 1
        shares = np.where(slow, _SLOW * shares, shares)
    return shares.reshape(-1, domains, domains)


def _varied(chance: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Shares spread evenly over 0.7 to 1.3 that forget within 20 s to 10 min, ``(rows, links)``."""
    forgets = 20.0 * float(_powers(chance, 30.0, (1,))[0])
    decay = exponential(-INTERVAL / forgets)
    gauss = normal(chance, shape).astype(np.float64)
    gauss[1:] *= np.sqrt(1.0 - decay**2)
    for row in range(1, len(gauss)):
        gauss[row] += decay * gauss[row - 1]
    return 0.7 + 0.6 * _below(gauss)


def _below(gauss: Floats) -> Floats:
    """Share of normal numbers below some, to 2e-4, alike on every processor.

    Source: S. R. Bowling et al., "A logistic approximation to the cumulative normal distribution", JIEM 2 (2009).
    """
    slope = np.clip(1.5976 * gauss + 0.07056 * gauss**3, -_STEEPEST, _STEEPEST)
    return 1.0 / (1.0 + exponential(-slope))


def _regimes(chance: np.random.Generator, shape: tuple[int, ...], stays: tuple[float, ...], first: int) -> Whole:
    """Chains that stay in each regime for so many seconds on average, then go to another, ``(rows, chains)``.

    Times to stay are exponential, and all other regimes as likely.
    """
    leaves = np.array([1.0 - exponential(-INTERVAL / stay) for stay in stays])
    draws, moves = chance.random(shape), chance.integers(1, len(stays), shape)
    made = np.empty(shape, dtype=np.int64)
    now = np.full(shape[1:], first)
    for row in range(len(made)):
        made[row] = now
        now = np.where(draws[row] < leaves[now], (now + moves[row]) % len(stays), now)
    return made
