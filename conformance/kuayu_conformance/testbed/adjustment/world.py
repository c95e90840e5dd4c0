"""Windows of about ten minutes in which load and latency change while jobs run, and what is measured of them.

1. **Events.** Loads rise and fall, latencies rise and fall back. Events are ``APART_S`` apart: long enough that a
   service which stages its changes over some windows is through with one before the next begins, and irregular, so that
   nobody can foresee them. What they change by is what the sentence names, and more: a load by 25 to 80 % of itself, a
   latency to 1.6 to 10 times of what it was. Loads stay within ``BOUNDS``: above 0.65, a load that is off by the tenth
   that counts as calm takes a tenth of the speed of a job of two domains, and more of one of several, and nobody may do
   anything about it then. An adjuster that divides parts by what was measured last, and not by a level that is still on
   its way, is not off by so much.
2. **Jobs.** They run over two domains or more, and load or latency is what counts for them. Sizes are assumptions of
   ours. Half of the jobs are anything: steps of 0.5 to 4 s, 1 to 8 nodes in each domain, and 0.2 to 20 GB to exchange,
   0.1 to 10 billion parameters at two bytes each. The other half exchange little over many nodes and make short steps,
   so that latency decides by which collective they are quick. A step has 64 to 256 parts, so that a division can be as
   fine as some per cent. That a part takes 20 to 80 ms to move and a switch 0.1 to 0.8 s makes all changes at once more
   than a tenth of a window now and then, and no single switch as much as that: whoever spreads them can keep the
   allowance.
3. **Windows.** Three to five domains have links to each other. Loads wander slowly by 2 % of themselves; what is
   measured of loads and latencies is the mean of an interval, off by 1.5 %, and now and then a spike of one interval
   that nothing stands behind. As all is drawn, half of the changes of load and a quarter of the rises of latency take
   more than a tenth of the speed of some job whose policy was the best before; who agrees but rarely feels little of
   latency.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from kuayu_conformance.testbed.adjustment.law import Floats, Job
from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.elementary import exponential, wave

CELL_S = 0.5
"""Seconds for which load and latency stay as they are; everything that happens does so at the begin of such a cell."""
RISE, FALL, SLOW, QUICK = "load rises", "load falls", "latency rises", "latency falls back"
KINDS = (RISE, FALL, SLOW)
"""Those that are judged."""
JUDGED = 5
"""Judged events of a window."""
APART_S = (60.0, 120.0)
BEGINS, BOUNDS = (0.25, 0.6), (0.15, 0.65)
"""Loads at the beginning, and at any time."""
BY, RAMP_S = (0.25, 0.8), 10.0
"""Part of itself by which a load changes; the longest that takes, half of the time; else it takes none."""
SLOWED = (1.6, 10.0)
"""Times a latency, of the links from and to a domain."""
JOBS = (1, 2, 3, 4)
STEPS_S, SHORT_S = (0.5, 4.0), (0.5, 1.5)
"""Of a step without load, had all domains as many parts; of jobs for which latency counts."""
EXCHANGES, SMALL, SMALL_SHARE = (0.2e9, 20e9), (0.2e9, 1e9), 0.5
NODES, MANY = (1, 8), (4, 8)
PARTS = (64, 256)
NODE_BANDWIDTHS, NODE_LATENCY_S = (25e9, 100e9, 200e9), 1e-5
UNEVEN = 1.5
"""Times the time of a part in the quickest domain, in the slowest."""
MOVES_S, SWITCHES_S = (0.02, 0.08), (0.1, 0.8)
DOMAINS = (3, 4, 5)
INTERVAL_S, PATIENCE_S = 2.0, 10.0
PAST = 60
"""Intervals that are told of; so many were measured before the beginning, too."""
WINDOW_S, ALLOWANCE = 10.0, 0.1
BANDWIDTHS, LATENCIES_S = (1e9, 40e9), (0.002, 0.06)
"""Of links, bit/s and s; the logarithms of both are uniform."""
WANDERS, TURNS_S = (0.012, 0.008), (80.0, 400.0)
"""Waves whose sum a load wanders by, parts of itself; seconds of a turn."""
NOISE = 0.015
SPIKES_APART_S = 200.0
"""Seconds from one spike of a measured load or latency to the next, on average over each kind."""
LOAD_SPIKE, LATENCY_SPIKE = 1.6, 4.0
_LATENCY_SHARE, _BACK_SHARE, _RAMP_SHARE = 0.4, 0.5, 0.5
_CELLS = round(INTERVAL_S / CELL_S)


@dataclass(frozen=True, slots=True)
class Event:
    """Something changes.

    Attributes:
        instant: Seconds from the beginning of the window.
        kind: ``RISE``, ``FALL``, ``SLOW`` or ``QUICK``.
        domain: Whose load, or whose links, by number.
        times: What it is afterwards, over what it was.
        lasts_s: Seconds over which it changes.
    """

    instant: float
    kind: str
    domain: int
    times: float
    lasts_s: float = 0.0

    @property
    def judged(self) -> bool:
        """Whether the sentence names it; that latencies fall back is none of its matters."""
        return self.kind in KINDS


def draw_events(chance: Chance, loads: Sequence[float], domains: Sequence[int]) -> tuple[tuple[Event, ...], float]:
    """Events in the order of time, and when the window ends.

    Args:
        chance: What is drawn from.
        loads: At the beginning, by domain.
        domains: Those that may be disturbed.
    """
    now, slowed, found = list(loads), {}, []  # type: list[float], dict[int, float], list[Event]
    instant = _on_a_cell(chance.between(0.5 * APART_S[0], APART_S[0]))
    while sum(event.judged for event in found) < JUDGED:
        if slowed and chance.fraction() < _BACK_SHARE:
            domain, times = slowed.popitem()
            event = Event(instant, QUICK, domain, 1.0 / times)
        elif not slowed and chance.fraction() < _LATENCY_SHARE:
            domain, times = chance.pick(domains), chance.between(*SLOWED)
            slowed[domain] = times
            event = Event(instant, SLOW, domain, times)
        else:
            event = _of_load(chance, instant, chance.pick(domains), now)
        found.append(event)
        instant += _on_a_cell(chance.between(*APART_S))
    return tuple(found), instant


def over_time(begins: Floats, events: Sequence[Event], kinds: Sequence[str], cells: int) -> Floats:
    """What events of some kinds make of levels that stand by domain, ``(cells, domains)``."""
    made: Floats = np.tile(begins, (cells, 1))
    for event in events:
        if event.kind in kinds:
            first, lasts = round(event.instant / CELL_S), round(event.lasts_s / CELL_S)
            grown = np.minimum(1.0, np.arange(1, cells - first + 1) / max(1, lasts))
            made[first:, event.domain] *= 1.0 + (event.times - 1.0) * grown
    return made


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A job of a window.

    Attributes:
        id: Its name.
        domains: Where it runs, by number.
        law: What does not change about it.
        total: Parts of a step.
    """

    id: str
    domains: tuple[int, ...]
    law: Job
    total: int


def draw_jobs(names: Chance, chance: Chance, bandwidth: Floats) -> tuple[Running, ...]:
    """Jobs over some of the domains.

    Args:
        names: What names are drawn from.
        chance: What all else is drawn from.
        bandwidth: Bits a second from domain to domain, ``(domains, domains)``.
    """
    return tuple(_drawn_job(names, chance, bandwidth) for _ in range(chance.pick(JOBS)))


def power(chance: Chance, low: float, high: float) -> float:
    """Between two numbers, the logarithm uniform."""
    return low * exponential(chance.fraction() * log(high / low))


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A window.

    Attributes:
        seed: What all was drawn from.
        names: Of domains, which tell nothing.
        jobs: That run.
        bandwidth: Bits a second from domain to domain, ``(domains, domains)``.
        events: In the order of time.
        loads: Of domains in each cell from the beginning, ``(cells, domains)``.
        latency: Seconds of a message from domain to domain in each, ``(cells, domains, domains)``.
        measured_loads: Of each interval, ``PAST`` of them before the beginning, ``(intervals, domains)``.
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
    begins = [chance.between(*BEGINS) for _ in range(count)]
    running = draw_jobs(names, chance, bandwidth)
    events, ends = draw_events(chance, begins, sorted({domain for job in running for domain in job.domains}))
    cells = _CELLS * int(ends / INTERVAL_S)
    before = PAST * _CELLS
    loads = over_time(np.array(begins), events, (RISE, FALL), cells)
    loads = np.concatenate([np.tile(begins, (before, 1)), loads])
    loads *= _wandering(chance, loads.shape)
    slowed = over_time(np.ones(count), events, (SLOW, QUICK), cells)
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


def _of_load(chance: Chance, instant: float, domain: int, now: list[float]) -> Event:
    """A load rises or falls, whichever its bounds allow."""
    room = {RISE: BOUNDS[1] / now[domain] - 1.0, FALL: 1.0 - BOUNDS[0] / now[domain]}
    kind = chance.pick([kind for kind, most in room.items() if most > BY[0]])
    by = chance.between(BY[0], min(BY[1], room[kind]))
    times = 1.0 + by if kind == RISE else 1.0 - by
    now[domain] *= times
    lasts = _on_a_cell(chance.between(0.0, RAMP_S)) if chance.fraction() < _RAMP_SHARE else 0.0
    return Event(instant, kind, domain, times, lasts)


def _on_a_cell(seconds: float) -> float:
    return CELL_S * int(seconds / CELL_S)


def _drawn_job(names: Chance, chance: Chance, bandwidth: Floats) -> Running:
    all_of_them = range(len(bandwidth))
    count = 2 + chance.below(len(all_of_them) - 1)
    domains = tuple(chance.order([(domain, 1.0) for domain in all_of_them])[:count])
    small = chance.fraction() < SMALL_SHARE
    nodes = MANY if small else NODES
    total = PARTS[0] + chance.below(PARTS[1] - PARTS[0] + 1)
    step = chance.between(*(SHORT_S if small else STEPS_S))
    part_times = [round(step * count / total * chance.between(1.0, UNEVEN), 6) for _ in domains]
    law = Job(
        np.array(part_times),
        nodes[0] + chance.below(nodes[1] - nodes[0] + 1),
        chance.pick(NODE_BANDWIDTHS),
        NODE_LATENCY_S,
        round(power(chance, *(SMALL if small else EXCHANGES)), -6),
        bandwidth[np.ix_(domains, domains)],
        round(chance.between(*MOVES_S), 6),
        round(chance.between(*SWITCHES_S), 3),
    )
    return Running(f"{names.below(1 << 48):012x}", domains, law, total)


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
