"""Windows in which jobs lose nodes, and all that is known of them beforehand.

1. **Links.** What links carry is told minute by minute, with what is measured of it. Levels are drawn log-uniformly
   from 8 to 25 Gbit/s, leased lines between data centres; what is carried stays within 30 % of them, by a process that
   forgets within 20 s to 10 min, as in the windows of transfers. Both are assumptions.
2. **Faults.** Meta counted 419 unexpected interruptions in 54 days of a training on 16,384 GPUs, 2,048 nodes of eight
   (Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3.4): a node fails once in 264 days. Here single
   nodes fail ``SPED_UP`` times as often, so that hours show what takes months. That racks and domains fail, how often,
   and how long outages and cut-offs last are assumptions; no two domains are away at the same time.
3. **Sizes.** Five domains have two or three jobs each, a store, and links to all others. Sizes are assumptions of ours:
   states of 20 to 100 GB (models of 1.4 to 7 billion parameters with their optimizers, at 14 bytes a parameter), stores
   of 40 to 160 Gbit/s, a replica's nodes at 25 to 100 Gbit/s, 20 to 90 s to start, leases of 30 to 90 s. They are such
   that a copy of a state can be far away and yet no older than some minutes, and that what the fewest spares for a risk
   of ``RISK`` leave free elsewhere mostly has room for the jobs of a domain that is lost: 5 and 10 min are within reach
   of who holds both, and out of reach of who does not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.elementary import exponential

Floats = NDArray[np.float64]
INTERVAL_S = 60
"""Seconds of an interval."""
PAST = 30
"""Intervals that were measured before the beginning, and that are told at any time."""
NOISE = 0.05
"""Standard deviation of the logarithm of what is measured, over what was carried."""
LEVELS = (8e9, 25e9)
"""Bit/s."""
LATENCIES_S = (0.005, 0.04)
NODE, RACK, DOMAIN, CUT_OFF = "node", "rack", "domain", "cut-off"
KINDS = (NODE, RACK, DOMAIN, CUT_OFF)
LLAMA_S = 54 * 86400.0 * 2048 / 419
"""Seconds between failures of one node, as counted."""
SPED_UP = 800.0
NODES_S = LLAMA_S / SPED_UP
"""Seconds between failures of one node alone: 8 hours."""
RACKS_S, DOMAINS_S, CUT_OFFS_S = 24 * 3600.0, 12 * 3600.0, 8 * 3600.0
"""Seconds between failures of one rack, of one domain, and between cut-offs of one."""
RACK_SIZES = (3, 4, 5, 6)
OUTAGES_S = (900.0, 3600.0)
"""How long a domain that failed is away; uniformly between these."""
SHORT, LONG_S = (0.2, 0.9), (60.0, 1800.0)
"""A cut-off lasts such a part of the lease, or so much longer than it; one is as likely as the other."""
APART_S = 1200.0
"""Seconds from the return of a domain until the next may be away."""
DOMAINS = 5
JOBS = (10, 11, 12)
LEAD_S, FAULTS_S, TAIL_S = 4200.0, 4 * 3600.0, 1500.0
"""Seconds before the first fault, in which copies are taken; in which things fail; after that, until the end."""
LAYOUTS = ((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (4, 1), (4, 2), (6, 1))
"""Replicas, and nodes of each."""
STATES = (20e9, 100e9)
STORES = (40e9, 160e9)
NODES, LONGEST_S = (25e9, 100e9), 60.0
"""Of a replica's nodes: whatever it holds, it can give away within a minute."""
STARTS_S, REGROUPS_S, PAUSES_S, LEASES_S = (20.0, 90.0), (2.0, 10.0), (1.0, 10.0), (30.0, 90.0)
REPAIRS_S = (1800.0, 3600.0)
SHARE, RISK = 0.5, 1e-5
FREE, SCARCE, SCARCELY = (16, 22), (8, 12), 0.1
"""Nodes of a domain that no job holds; where they are scarce; how often that is so."""
PRICES = (20.0, 60.0)
ROOMS = (1.5, 4.0)
"""Room of a store, over twice the states of all jobs by the number of domains."""
_MEGABIT = 1e6
_STEEPEST = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Ways between D domains.

    Attributes:
        latency_s: From domain to domain, (D, D).
        carried: Bit/s in each interval, ``PAST`` of them before the beginning, (intervals, D, D).
        measured: What is told of them, whole megabits, likewise.
    """

    latency_s: Floats
    carried: Floats
    measured: Floats


def draw_links(seed: str, domains: int, seconds: float) -> Links:
    """Links for a window of so many seconds."""
    chance = stream(seed, "links")
    shape, rows = (domains, domains), PAST + int(np.ceil(seconds / INTERVAL_S)) + 1
    level = LEVELS[0] * exponential(chance.uniform(0.0, float(np.log(LEVELS[1] / LEVELS[0])), shape))
    latency = np.round(chance.uniform(*LATENCIES_S, shape), 6)
    carried = np.round(level * _varied(chance, rows, shape) / _MEGABIT) * _MEGABIT
    noise = normal(chance, carried.shape).astype(np.float64)
    measured = np.round(carried * exponential(NOISE * noise) / _MEGABIT) * _MEGABIT
    return Links(latency, carried, measured)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that fails.

    Attributes:
        instant: When, seconds from the beginning of the window.
        kind: One of ``KINDS``.
        domain: Where, by number.
        nodes: Those that fail, by number; none where the whole domain is away.
        lasts_s: How long the domain is away; zero for nodes, which are repaired in their time.
    """

    instant: float
    kind: str
    domain: int
    nodes: tuple[int, ...] = ()
    lasts_s: float = 0.0


def draw_faults(
    seed: str, domains: Sequence[Sequence[int]], lease_s: float, begin: float, end: float
) -> tuple[Fault, ...]:
    """Faults between two instants, in the order of time; ``domains`` are the nodes of each."""
    found = [*_node_faults(seed, domains, begin, end), *_rack_faults(seed, domains, begin, end)]
    found += _away(seed, len(domains), lease_s, begin, end)
    return tuple(sorted(found, key=lambda fault: fault.instant))


def time_between_failures() -> float:
    """Seconds between failures of one node, whatever it fails by."""
    return 1.0 / (1.0 / NODES_S + 1.0 / RACKS_S + 1.0 / DOMAINS_S)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is when it is whole; sizes in bytes, bandwidths in bit/s.

    Attributes:
        id: Its name.
        priority: Higher goes first.
        domain: Where it begins, by number.
        replicas: How many it has.
        least_replicas: With how few it can go on.
        nodes_each: Nodes of a replica.
        state_size: Of a replica, and of a checkpoint.
        node_bandwidth: At which one replica gives its state to another.
        start_s: From having the state to making steps.
        regroup_s: Without steps when replicas leave or join.
        pause_s: Without steps when a checkpoint is taken.
    """

    id: str
    priority: int
    domain: int
    replicas: int
    least_replicas: int
    nodes_each: int
    state_size: float
    node_bandwidth: float
    start_s: float
    regroup_s: float
    pause_s: float


@dataclass(frozen=True, slots=True)
class Node:
    """A node: name, domain by number, job and replica that hold it at the beginning, nobody where they are -1."""

    id: str
    domain: int
    job: int = -1
    replica: int = -1


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain: bandwidth of its store in bit/s, room there in bytes, price of a spare node for an hour."""

    id: str
    store_bandwidth: float
    room: float
    price: float


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A window.

    Attributes:
        seed: What all was drawn from.
        domains: By number.
        links: Between them.
        nodes: By number; those of a rack are neighbours.
        jobs: By number.
        faults: In the order of time.
        lease_s: From when a node is not heard of until all that ran on it has stopped.
        repair_s: After which a node that failed is fit again.
        time_between_failures: Of one node on average, s.
        share: Of the bandwidth of stores and links that copies may take.
        risk: That pools are to be held against.
        ends_s: When the window does.
    """

    seed: str
    domains: tuple[Domain, ...]
    links: Links
    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    faults: tuple[Fault, ...]
    lease_s: float
    repair_s: float
    time_between_failures: float
    share: float = SHARE
    risk: float = RISK
    ends_s: float = LEAD_S + FAULTS_S + TAIL_S


def draw(seed: str, naming: str = "") -> World:
    """A window that follows from its seed alone, but for its names where another is given for these."""
    names, chance = Chance(naming or seed, "names"), Chance(seed, "recovery")
    jobs = _jobs(names, chance)
    room = 2.0 * sum(job.state_size for job in jobs) / DOMAINS
    domains = tuple(
        Domain(
            _name(names),
            round(_power(chance, *STORES), -6),
            round(room * chance.between(*ROOMS), -6),
            round(chance.between(*PRICES), 2),
        )
        for _ in range(DOMAINS)
    )
    nodes = _nodes(names, chance, jobs)
    lease = round(chance.between(*LEASES_S), 3)
    held = [[number for number, node in enumerate(nodes) if node.domain == domain] for domain in range(DOMAINS)]
    ends = LEAD_S + FAULTS_S + TAIL_S
    return World(
        seed,
        domains,
        draw_links(seed, DOMAINS, ends),
        nodes,
        jobs,
        draw_faults(seed, held, lease, LEAD_S, LEAD_S + FAULTS_S),
        lease,
        round(chance.between(*REPAIRS_S), 3),
        time_between_failures(),
    )


def _varied(chance: np.random.Generator, rows: int, shape: tuple[int, int]) -> Floats:
    """Shares spread evenly over 0.7 to 1.3, (rows, D, D)."""
    forgets = 20.0 * exponential(float(chance.uniform(0.0, float(np.log(30.0)))))
    decay = exponential(-min(INTERVAL_S / forgets, _STEEPEST))
    gauss = normal(chance, rows * shape[0] * shape[1]).astype(np.float64).reshape(rows, *shape)
    gauss[1:] *= np.sqrt(1.0 - decay**2)
    for row in range(1, rows):
        gauss[row] += decay * gauss[row - 1]
    return 0.7 + 0.6 * _below(gauss)


def _below(gauss: Floats) -> Floats:
    """Share of normal numbers below some, to 2e-4, alike on every processor.

    Source: S. R. Bowling et al., "A logistic approximation to the cumulative normal distribution", JIEM 2 (2009).
    """
    slope = np.clip(1.5976 * gauss + 0.07056 * gauss**3, -_STEEPEST, _STEEPEST)
    return 1.0 / (1.0 + exponential(-slope))


def _node_faults(seed: str, domains: Sequence[Sequence[int]], begin: float, end: float) -> Iterator[Fault]:
    chance = Chance(seed, "nodes fail")
    for domain, nodes in enumerate(domains):
        for instant in _instants(chance, NODES_S / len(nodes), begin, end):
            yield Fault(instant, NODE, domain, (chance.pick(nodes),))


def _rack_faults(seed: str, domains: Sequence[Sequence[int]], begin: float, end: float) -> Iterator[Fault]:
    chance = Chance(seed, "racks fail")
    for domain, nodes in enumerate(domains):
        for rack in _split(chance, nodes):
            for instant in _instants(chance, RACKS_S, begin, end):
                yield Fault(instant, RACK, domain, rack)


def _split(chance: Chance, nodes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Racks of a domain; neighbours by number share one."""
    left = tuple(nodes)
    while left:
        size = chance.pick(RACK_SIZES)
        yield left[:size]
        left = left[size:]


def _away(seed: str, domains: int, lease_s: float, begin: float, end: float) -> Iterator[Fault]:
    """Domains that are away, one after the other."""
    chance = Chance(seed, "domains are away")
    free = begin
    for instant in _instants(chance, 1.0 / (domains / DOMAINS_S + domains / CUT_OFFS_S), begin, end):
        fails = chance.fraction() < CUT_OFFS_S / (DOMAINS_S + CUT_OFFS_S)
        short, share = chance.fraction() < 1 / 2, chance.fraction()
        domain = chance.below(domains)
        low, high = OUTAGES_S if fails else LONG_S
        lasts = low + (high - low) * share + (0.0 if fails else lease_s)
        if short and not fails:
            lasts = lease_s * (SHORT[0] + (SHORT[1] - SHORT[0]) * share)
        if instant >= free:
            yield Fault(instant, DOMAIN if fails else CUT_OFF, domain, lasts_s=round(lasts, 3))
            free = instant + lasts + APART_S


def _instants(chance: Chance, mean_s: float, begin: float, end: float) -> Iterator[float]:
    """Instants of a Poisson process, to the millisecond."""
    instant = begin
    while True:
        instant -= mean_s * float(np.log(1.0 - chance.fraction()))
        if instant >= end:
            return
        yield round(instant, 3)


def _jobs(names: Chance, chance: Chance) -> tuple[Job, ...]:
    where = [number % DOMAINS for number in range(chance.pick(JOBS))]
    return tuple(_job(names, chance, domain) for domain in where)


def _job(names: Chance, chance: Chance, domain: int) -> Job:
    replicas, nodes_each = chance.pick(LAYOUTS)
    size = round(_power(chance, *STATES), -6)
    return Job(
        _name(names),
        chance.below(4) * 10,
        domain,
        replicas,
        1 + chance.below(replicas),
        nodes_each,
        size,
        round(max(_power(chance, *NODES), 8.0 * size / LONGEST_S), -6),
        round(chance.between(*STARTS_S), 3),
        round(chance.between(*REGROUPS_S), 3),
        round(chance.between(*PAUSES_S), 3),
    )


def _nodes(names: Chance, chance: Chance, jobs: tuple[Job, ...]) -> tuple[Node, ...]:
    """Held and free ones of a domain in any order."""
    made: list[Node] = []
    for domain in range(DOMAINS):
        places = [
            (number, replica)
            for number, job in enumerate(jobs)
            if job.domain == domain
            for replica in range(job.replicas)
            for _ in range(job.nodes_each)
        ]
        low, high = SCARCE if chance.fraction() < SCARCELY else FREE
        places += [(-1, -1)] * (low + chance.below(high - low + 1))
        order = chance.order([(place, 1.0) for place in range(len(places))])
        made += [Node(_name(names), domain, *places[place]) for place in order]
    return tuple(made)


def _name(chance: Chance) -> str:
    """A name that tells nothing."""
    return f"{chance.below(1 << 48):012x}"


def _power(chance: Chance, low: float, high: float) -> float:
    """Between two numbers, the logarithm uniform."""
    return low * exponential(chance.fraction() * log(high / low))
