"""Windows of about ten minutes in which load and latency change while jobs run, and what is measured of them.

Three to five domains have links to each other. Loads wander slowly by 2 % of themselves; what is measured of loads and
latencies is the mean of an interval, off by 1.5 %, and now and then a spike of one interval that nothing stands behind.
As all is drawn, half of the changes of load and a quarter of the rises of latency take more than a tenth of the speed
of some job whose policy was the best before; who agrees but rarely feels little of latency.
"""

from dataclasses import dataclass

import numpy as np

from kuayu_conformance.testbed.adjustment import disturbing, jobs
from kuayu_conformance.testbed.adjustment.disturbing import CELL_S, FALL, QUICK, RISE, SLOW, Event
from kuayu_conformance.testbed.adjustment.jobs import Running, power
from kuayu_conformance.testbed.adjustment.law import Floats
from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.elementary import wave

DOMAINS = (3, 4, 5)
INTERVAL_S, PATIENCE_S = 2.0, 10.0
PAST = 60
"""Intervals that are told of; so many were measured before the begin, too."""
WINDOW_S, ALLOWANCE = 10.0, 0.1
BANDWIDTHS, LATENCIES_S = (1e9, 40e9), (0.002, 0.06)
"""Of links, bit/s and s; the logarithms of both are uniform."""
WANDERS, TURNS_S = (0.012, 0.008), (80.0, 400.0)
"""Waves whose sum a load wanders by, parts of itself; seconds of a turn."""
NOISE = 0.015
SPIKES_APART_S = 200.0
"""Seconds from one spike of a measured load or latency to the next, on average over each kind."""
LOAD_SPIKE, LATENCY_SPIKE = 1.6, 4.0
_CELLS = round(INTERVAL_S / CELL_S)


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A window.

    Attributes:
        seed: What all was drawn from.
        names: Of domains, which tell nothing.
        jobs: That run.
        bandwidth: Bits a second from domain to domain, ``(domains, domains)``.
        events: In the order of time.
        loads: Of domains in each cell from the begin, ``(cells, domains)``.
        latency: Seconds of a message from domain to domain in each, ``(cells, domains, domains)``.
        measured_loads: Of each interval, ``PAST`` of them before the begin, ``(intervals, domains)``.
        measured_latency: Likewise, ``(intervals, domains, domains)``.
    """

    seed: str
    names: tuple[str, ...]
    jobs: tuple[Running, ...]
    bandwidth: Floats
    events: tuple[Event, ...]
    loads: Floats
    latency: Floats
    measured_loads: Floats
    measured_latency: Floats

    @property
    def ends_s(self) -> float:
        """When the window does."""
        return CELL_S * len(self.loads)


def draw(seed: str, naming: str = "") -> World:
    """A window that follows from its seed alone, but for its names where another is given for these."""
    names, chance = Chance(naming or seed, "names"), Chance(seed, "adjustment")
    count = chance.pick(DOMAINS)
    bandwidth = np.array([[round(power(chance, *BANDWIDTHS), -6) for _ in range(count)] for _ in range(count)])
    quiet = np.array([[power(chance, *LATENCIES_S) for _ in range(count)] for _ in range(count)])
    begins = [chance.between(*disturbing.BEGINS) for _ in range(count)]
    running = jobs.draw(names, chance, bandwidth)
    events, ends = disturbing.draw(chance, begins, sorted({domain for job in running for domain in job.domains}))
    cells = _CELLS * int(ends / INTERVAL_S)
    before = PAST * _CELLS
    loads = disturbing.over_time(np.array(begins), events, (RISE, FALL), cells)
    loads = np.concatenate([np.tile(begins, (before, 1)), loads])
    loads *= _wandering(chance, loads.shape)
    slowed = disturbing.over_time(np.ones(count), events, (SLOW, QUICK), cells)
    latency = quiet * slowed[:, :, None] * slowed[:, None, :]
    seen = np.concatenate([np.tile(quiet, (before, 1, 1)), latency])
    measured_loads: Floats = np.minimum(1.0, _measured(seed, "load", loads, LOAD_SPIKE))
    return World(
        seed,
        tuple(f"{names.below(1 << 48):012x}" for _ in range(count)),
        running,
        bandwidth,
        events,
        loads[before:],
        latency,
        np.round(measured_loads, 5),
        np.round(_measured(seed, "latency", seen, LATENCY_SPIKE), 7),
    )


def _wandering(chance: Chance, shape: tuple[int, ...]) -> Floats:
    """What loads are, over their level, ``(cells, domains)``."""
    made = np.ones(shape)
    for domain in range(shape[1]):
        for depth in WANDERS:
            seconds: Floats = CELL_S * np.arange(shape[0], dtype=np.float64)
            turns = seconds / chance.between(*TURNS_S) + chance.fraction()
            made[:, domain] += depth * wave(turns)
    return made


def _measured(seed: str, what: str, true: Floats, spike: float) -> Floats:
    """What is measured of something that is told by cells, by intervals."""
    chance = stream(seed, f"measured {what}")
    means = true.reshape(-1, _CELLS, *true.shape[1:]).mean(axis=1)
    noise = normal(chance, means.shape).astype(np.float64)
    spiked = chance.random(len(means)) < INTERVAL_S / SPIKES_APART_S
    where = chance.integers(means[0].size, size=len(means))
    times = np.ones((len(means), means[0].size))
    times[np.flatnonzero(spiked), where[spiked]] = spike
    found: Floats = means * (1.0 + NOISE * noise) * times.reshape(means.shape)
    return found
