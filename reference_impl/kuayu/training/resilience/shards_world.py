"""Windows in which shard plans are compared: a domain that computes, sources whose links vary, jobs that share them.

How bandwidths lie over time:

- *±30 %*: a stationary Gaussian process, mapped so that shares of the link's level are uniform from 0.7 to 1.3. Its
  correlation time is drawn from 20 to 600 s, since the measurements that we have are days apart and say nothing of it.
- *×0.3*: the same, with episodes at 0.3 of it; one in 15 minutes on average and link, of 2 minutes on average.
- *outages*: ±30 % with outages; one in 30 minutes on average and link, of a minute on average.
- *measured*: ±30 % around a level that is not the one known beforehand, but off by a ratio as measured between cloud
  regions five days apart (``RATIOS``).
- *calm*: as known beforehand.

Levels are drawn log-uniformly from 2 to 10 Gbit/s: a range of ours inside the one of 0.1 to 33.7 Gbit/s measured there.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from kuayu.resilience.transfers.scene import Flags, Floats

FAMILIES = ("±30 %", "×0.3", "outages", "measured", "calm")

RATIOS = (
    *(0.873, 0.941, 0.974, 0.989, 0.993, 0.996, 0.998, 0.999, 1.001, 1.005),
    *(1.028, 1.071, 1.129, 1.195, 1.268, 1.352, 1.452, 1.583, 1.885),
)
"""Received throughput of the same pair of cloud regions on 2022-01-29 over that on 2022-01-24, quantiles at 5, 10, …
95 % of 3906 pairs; 76 % lie within ±30 %. Skyplane's profiles (github.com/skyplane-project/skyplane, Apache-2.0), by
``shards_measured``."""

HISTORY_S, LEAD_S, WINDOW_S = 1800, 60, 1200
"""Seconds measured beforehand; seconds in which data may be fetched before the first step; seconds of steps."""
STEP_S = 5.0
INTERVAL_S = 5
"""Seconds between measurements."""
NOISE = 0.05
"""Standard deviation of the logarithm of what is measured over what is carried."""
SOURCES, STREAMS = 3, 2
LOCAL = 0.15
"""Share of steps whose data lie in the local cache."""
LOADS = (0.5, 0.95)
"""What steps from afar need, over the most that links could bring by their known levels; uniformly between these."""
ROOMS = (4, 8, 16, 32)
"""Steps of each job that the domain has room for."""
LATENCIES_S = (0.02, 0.3)
"""Of a request; log-uniform. Round trips between cloud regions lie from 15 to 290 ms (5 to 95 %, the same profiles)."""
_BYTES = 1e9 / 8


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One domain over half an hour that was measured and twenty minutes in which it trains.

    Attributes:
        family: How bandwidths lie over time.
        seed: What all was drawn from.
        known: Bytes a second of each link as it is known beforehand, (S,).
        latency_s: Seconds of a request, (S,).
        measured: Bytes a second by interval before the window, with noise, (S, HISTORY_S / INTERVAL_S).
        rates: Bytes a second in each second of the window and long after it, (S, seconds).
        noise: Of each measurement within the window, a factor, (S, intervals).
        step_bytes: Of each job, (J,).
        copies: Whether a job's data lie at a source, (J, S).
        steps: Of each job.
        local: Of these, with data in the local cache.
        room: Bytes.
        correlation_s: Of the process.
        load: What steps from afar need, over the most that links could bring by their known levels.
    """

    family: str
    seed: int
    known: Floats
    latency_s: Floats
    measured: Floats
    rates: Floats
    noise: Floats
    step_bytes: Floats
    copies: Flags
    steps: int
    local: int
    room: float
    correlation_s: float
    load: float


def draw(family: str, seed: int) -> Window:
    """A window; the same jobs, links and noise for all families of a seed."""
    chance = np.random.default_rng([seed, 7])
    known = np.exp(chance.uniform(np.log(2.0), np.log(10.0), SOURCES)) * _BYTES
    latency = np.exp(chance.uniform(np.log(LATENCIES_S[0]), np.log(LATENCIES_S[1]), SOURCES))
    copies = np.array([chance.permutation(SOURCES) < chance.integers(1, SOURCES + 1) for _ in range(STREAMS)])
    load = float(chance.uniform(*LOADS))
    share = chance.uniform(0.35, 0.65)
    shares = np.array([share, 1.0 - share])
    need = load * _most(known, copies, shares) * shares / (1.0 - LOCAL)
    room = int(chance.choice(ROOMS))
    correlation = float(np.exp(chance.uniform(np.log(20.0), np.log(600.0))))
    seconds = HISTORY_S + LEAD_S + 3 * WINDOW_S
    shape = _shape(family, np.random.default_rng([seed, 8]), seconds, correlation)
    level = np.exp(np.interp(chance.uniform(size=SOURCES), np.linspace(0.05, 0.95, 19), np.log(RATIOS)))
    rates = known[:, None] * shape * (level[:, None] if family == "measured" else 1.0)
    before = rates[:, :HISTORY_S].reshape(SOURCES, -1, INTERVAL_S).mean(axis=2)
    noise = np.exp(NOISE * np.random.default_rng([seed, 9]).standard_normal((SOURCES, seconds // INTERVAL_S)))
    steps = int(WINDOW_S / STEP_S)
    return Window(
        family,
        seed,
        known,
        latency,
        before * noise[:, : before.shape[1]],
        rates[:, HISTORY_S:],
        noise[:, before.shape[1] :],
        need * STEP_S,
        copies,
        steps,
        int(LOCAL * steps),
        float(room * need.sum() * STEP_S),
        correlation,
        load,
    )


def _most(known: Floats, copies: Flags, shares: Floats) -> float:
    """The most that links can bring to all jobs together in such shares: the least of what each set of jobs can get."""
    together = float(known[copies.any(axis=0)].sum())
    return min(together, *(float(known[each].sum() / part) for each, part in zip(copies, shares, strict=True)))


def _shape(family: str, chance: np.random.Generator, seconds: int, correlation_s: float) -> Floats:
    """What each link carries over its level, (S, seconds)."""
    decay = np.exp(-1.0 / correlation_s)
    noise = chance.standard_normal((seconds, SOURCES))
    gauss = np.empty((seconds, SOURCES))
    gauss[0] = noise[0]
    for second in range(1, seconds):
        gauss[second] = decay * gauss[second - 1] + np.sqrt(1.0 - decay**2) * noise[second]
    shape = 0.7 + 0.6 * ndtr(gauss.T)
    if family == "calm":
        return np.ones_like(shape)
    if family == "×0.3":
        shape = np.where(_spells(chance, seconds, 900.0, 120.0), 0.3 * shape, shape)
    if family == "outages":
        shape = np.where(_spells(chance, seconds, 1800.0, 60.0), 0.0, shape)
    made: Floats = shape
    return made


def _spells(chance: np.random.Generator, seconds: int, between_s: float, mean_s: float) -> Flags:
    """Whether each link is in a spell, which begin after and last for exponential times, (S, seconds)."""
    made = np.zeros((SOURCES, seconds), dtype=bool)
    for link in range(SOURCES):
        at = chance.exponential(between_s)
        while at < seconds:
            lasts = chance.exponential(mean_s)
            made[link, int(at) : int(np.ceil(at + lasts))] = True
            at += lasts + chance.exponential(between_s)
    return made
