"""Windows in which shard plans are compared: a domain that computes, sources whose links vary, jobs that share them.

How bandwidths lie over time:

- *±30 %*: a stationary Gaussian process, mapped so that shares of the link's level are uniform from 0.7 to 1.3. Its
  correlation time is drawn from 20 to 600 s, since the measurements that we have are days apart and say nothing of it.
- *×0.3*: the same, with episodes at 0.3 of it; one in 15 minutes on average and link, of 2 minutes on average.
- *outages*: ±30 % with outages; one in 30 minutes on average and link, of a minute on average.
- *measured*: ±30 % around levels that are not those by which the jobs were sized, but off by a ratio as measured
  between cloud regions five days apart (``RATIOS``).
- *calm*: at its level.

Levels are drawn log-uniformly from 2 to 10 Gbit/s: a range of ours inside the one of 0.1 to 33.7 Gbit/s measured there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.elementary import exponential

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MILD = "±30 %"
FAMILIES = (MILD, "×0.3", "outages", "measured", "calm")

RATIOS = (
    *(0.873, 0.941, 0.974, 0.989, 0.993, 0.996, 0.998, 0.999, 1.001, 1.005),
    *(1.028, 1.071, 1.129, 1.195, 1.268, 1.352, 1.452, 1.583, 1.885),
)
"""Received throughput of the same pair of cloud regions on 2022-01-29 over that on 2022-01-24, quantiles at 5, 10, …
95 % of 3906 pairs; 76 % lie within ±30 %. Skyplane's profiles (github.com/skyplane-project/skyplane, Apache-2.0)."""

HISTORY_S, LEAD_S, WINDOW_S = 1800, 60, 1200
"""Seconds measured beforehand; seconds in which data may be fetched before the first step; seconds of steps."""
MAX_WINDOW_TIMES = 3
"""Times the seconds of its steps that a window lasts at most."""
STEP_S = 5.0
INTERVAL_S = 5
"""Seconds between measurements."""
NOISE = 0.05
"""Standard deviation of the logarithm of what is measured over what is carried."""
SOURCES, STREAMS = 3, 2
LOCAL = 0.15
"""Share of steps whose data lie in the local cache."""
LOADS = (0.5, 0.95)
"""What steps from afar need, over the most that links could bring by their levels; uniformly between these."""
ROOMS = (4, 8, 16, 32)
"""Steps of each job that the domain has room for."""
LATENCIES_S = (0.02, 0.3)
"""Of a request; log-uniform. Round trips between cloud regions lie from 15 to 290 ms (5 to 95 %, the same profiles)."""
_BYTES, _BITS = 1e9 / 8, 8.0
_MEGA = 1e6
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Names:
    """What everything is called in requests; names tell nothing.

    Attributes:
        target: Domain that computes.
        sources: Domains that hold data, one for each link.
        jobs: Streams.
    """

    target: str
    sources: tuple[str, ...]
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One domain over half an hour that was measured and a while in which it trains. Sizes are whole bytes.

    Attributes:
        family: How bandwidths lie over time.
        seed: What all was drawn from.
        names: What everything is called.
        latency_s: Seconds of a request, (S,).
        rates: Bytes a second in each second from the begin of the window to its end at the latest, (S, seconds).
        measured: Bit/s by interval, with noise, ``HISTORY_S`` seconds of them before the window, (S, intervals).
        step_bytes: Of each job, (J,).
        copies: Whether a job's data lie at a source, (J, S).
        steps: Of each job.
        local: Of these, with data in the local cache.
        room: Bytes.
        correlation_s: Of the process.
        load: What steps from afar need, over the most that links could bring by their levels.
    """

    family: str
    seed: str
    names: Names
    latency_s: Floats
    rates: Floats
    measured: Floats
    step_bytes: Floats
    copies: Flags
    steps: int
    local: int
    room: float
    correlation_s: float
    load: float

    @property
    def limit_s(self) -> float:
        """When it ends at the latest, whatever has been done by then."""
        return float(self.rates.shape[1])

    @property
    def before(self) -> Floats:
        """Mean of what was measured before the window, bit/s, (S,)."""
        mean: Floats = self.measured[:, : HISTORY_S // INTERVAL_S].mean(axis=1)
        return mean


def draw(family: str, seed: str, seconds: int = WINDOW_S, naming: str = "") -> Window:
    """A window with so many seconds of steps; the same jobs and links, but for names, for all families of a seed.

    Names follow from ``naming`` where it is given, else from the seed too.
    """
    chance = Chance(seed, "jobs and links")
    known = np.array([2.0 * _BYTES * _power(chance, 5.0) for _ in range(SOURCES)])
    latency = np.array([LATENCIES_S[0] * _power(chance, LATENCIES_S[1] / LATENCIES_S[0]) for _ in range(SOURCES)])
    copies = np.array([_held(chance) for _ in range(STREAMS)])
    load, share = chance.between(*LOADS), chance.between(0.35, 0.65)
    shares = np.array([share, 1.0 - share])
    size = np.round(load * _most(known, copies, shares) * shares / (1.0 - LOCAL) * STEP_S)
    room, correlation = chance.pick(ROOMS), 20.0 * _power(chance, 30.0)
    off = np.array([_ratio(chance.fraction()) for _ in range(SOURCES)])
    span = HISTORY_S + LEAD_S + MAX_WINDOW_TIMES * seconds
    shape = _shape(family, seed, span, correlation)
    level = known * off if family == "measured" else known
    rates = np.round(level[:, None] * shape)
    means = rates.reshape(SOURCES, -1, INTERVAL_S).mean(axis=2)
    noise = exponential(NOISE * normal(stream(seed, "noise"), means.shape).astype(np.float64))
    steps = int(seconds / STEP_S)
    return Window(
        family,
        seed,
        _names(f"{family} {naming or seed}"),
        np.round(latency, _DIGITS),
        rates[:, HISTORY_S:],
        np.round(_BITS * means * noise / _MEGA) * _MEGA,
        size,
        copies,
        steps,
        int(LOCAL * steps),
        float(room * size.sum()),
        correlation,
        load,
    )


def _power(chance: Chance, times: float) -> float:
    """From one to so many, the logarithm uniform."""
    return exponential(chance.fraction() * float(np.log(times)))


def _held(chance: Chance) -> list[bool]:
    """At which sources a job's data lie: at one, two or all."""
    count = 1 + chance.below(SOURCES)
    sources = chance.order([(source, 1.0) for source in range(SOURCES)])[:count]
    return [source in sources for source in range(SOURCES)]


def _ratio(share: float) -> float:
    """A quantile of ``RATIOS``, between them by their logarithms."""
    return float(np.exp(np.interp(share, np.linspace(0.05, 0.95, len(RATIOS)), np.log(RATIOS))).round(_DIGITS))


def _names(seed: str) -> Names:
    chance = Chance(seed, "names")
    drawn = [f"{chance.below(1 << 48):012x}" for _ in range(1 + SOURCES + STREAMS)]
    return Names(drawn[0], tuple(drawn[1 : 1 + SOURCES]), tuple(drawn[1 + SOURCES :]))


def _most(known: Floats, copies: Flags, shares: Floats) -> float:
    """The most that links can bring to all jobs together in such shares: the least of what each set of jobs can get."""
    together = float(known[copies.any(axis=0)].sum())
    return min(together, *(float(known[held].sum() / part) for held, part in zip(copies, shares, strict=True)))


def _shape(family: str, seed: str, seconds: int, correlation_s: float) -> Floats:
    """What each link carries over its level, (S, seconds), to six digits, so that it is the same on every machine."""
    from scipy.special import ndtr

    if family == "calm":
        return np.ones((SOURCES, seconds))
    decay = exponential(-1.0 / correlation_s)
    gauss = normal(stream(seed, "bandwidths"), (seconds, SOURCES)).astype(np.float64)
    gauss[1:] *= np.sqrt(1.0 - decay**2)
    for second in range(1, seconds):
        gauss[second] += decay * gauss[second - 1]
    shape: Floats = np.round(0.7 + 0.6 * ndtr(gauss.T), _DIGITS)
    if family == "×0.3":
        shape = np.where(_spells(seed, seconds, 900.0, 120.0), 0.3 * shape, shape)
    if family == "outages":
        shape = np.where(_spells(seed, seconds, 1800.0, 60.0), 0.0, shape)
    return shape


def _spells(seed: str, seconds: int, between_s: float, mean_s: float) -> Flags:
    """Whether each link is in a spell, which begin after and last for exponential times, (S, seconds)."""
    chance = Chance(seed, "spells")
    made = np.zeros((SOURCES, seconds), dtype=bool)
    for link in range(SOURCES):
        instant = between_s * _exponential(chance)
        while instant < seconds:
            lasts = mean_s * _exponential(chance)
            made[link, int(instant) : int(np.ceil(instant + lasts))] = True
            instant += lasts + between_s * _exponential(chance)
    return made


def _exponential(chance: Chance) -> float:
    return -float(np.log(1.0 - chance.fraction()))
