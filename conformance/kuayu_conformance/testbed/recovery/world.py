"""Windows in which jobs lose nodes, and all that is known of them beforehand.

Five domains have two or three jobs each, a store, and links to all others. Sizes are assumptions of ours: states of 20
to 100 GB (models of 1.4 to 7 billion parameters with their optimizers, at 14 bytes a parameter), stores of 40 to 160
Gbit/s, a replica's nodes at 25 to 100 Gbit/s, 20 to 90 s to start, leases of 30 to 90 s. They are such that a copy of a
state can be far away and yet no older than some minutes, and that what the fewest spares for a risk of ``RISK`` leave
free elsewhere mostly has room for the jobs of a domain that is lost: 5 and 10 min are within reach of who holds both,
and out of reach of who does not. Faults and links have modules of their own.
"""

from dataclasses import dataclass
from math import log

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.elementary import exponential
from kuayu_conformance.testbed.recovery import faults, links
from kuayu_conformance.testbed.recovery.faults import Fault
from kuayu_conformance.testbed.recovery.links import Links

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
    """A node: name, domain by number, job and replica that hold it at the begin, nobody where they are -1."""

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
        links.draw(seed, DOMAINS, ends),
        nodes,
        jobs,
        faults.draw(seed, held, lease, LEAD_S, LEAD_S + FAULTS_S),
        lease,
        round(chance.between(*REPAIRS_S), 3),
        faults.time_between_failures(),
    )


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
