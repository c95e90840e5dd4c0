"""Windows in which nodes of jobs fail: what links carry, what fails, what stands when, and what travels.

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
4. **Clock.** What is to happen comes in the order of time; at one instant, in the order in which it was put down.
5. **Flows.** Stores, links and jobs' nodes are shared evenly by what travels at the same time. Copies of checkpoints
   have ``share`` of a store or a link among them, and recoveries the rest while there are any, or all of it. What is
   shared is shared by number, and each goes at the speed of the narrowest that it needs: what that leaves over
   elsewhere is left.
6. **Holdings.** As many spares as a pool shall have, and copies that fit. A pool that is greater than the clause allows
   is held as great as it may be, and copies beyond the room of their store or the share of stores and links, in the
   order of the plan, are not held. Otherwise whoever holds too much would do best.
7. **State.** At the beginning all jobs are whole, there is no copy anywhere, and no free node is shown.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, log
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kuayu_conformance.testbed.chance import Chance, normal, stream
from kuayu_conformance.testbed.elementary import exponential

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
REPLICA_BANDWIDTHS, LONGEST_S = (25e9, 100e9), 60.0
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

Channel = tuple[str, int, int]
"""Store, link or nodes; of which domain or job; to which domain, where it is a link."""
STORE, LINK, NODES = "store", "link", "nodes"
BITS = 8.0
SAME = 1e-6
"""Seconds, and seconds of work, that are none."""
FIT: "documents.NodeCondition" = "fit"
FAILED: "documents.NodeCondition" = "failed"
UNREACHABLE: "documents.NodeCondition" = "unreachable"
_WHOLE = 1e-9
_SLACK = 1.0 + 1e-3
_NEAR = 1.0 - 1e-9
"""A risk so close below what may be run may have come out above it."""


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
    faults = [*_node_faults(seed, domains, begin, end), *_rack_faults(seed, domains, begin, end)]
    faults += _away(seed, len(domains), lease_s, begin, end)
    return tuple(sorted(faults, key=lambda fault: fault.instant))


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
    """A domain: bandwidth of its store in bit/s, capacity of that in bytes, price of a spare node for an hour."""

    id: str
    store_bandwidth: float
    capacity: float
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
    even_share = 2.0 * sum(job.state_size for job in jobs) / DOMAINS
    domains = tuple(
        Domain(
            _name(names),
            round(_power(chance, *STORES), -6),
            round(even_share * chance.between(*ROOMS), -6),
            round(chance.between(*PRICES), 2),
        )
        for _ in range(DOMAINS)
    )
    nodes = _nodes(names, chance, jobs)
    lease = round(chance.between(*LEASES_S), 3)
    by_domain = [[number for number, node in enumerate(nodes) if node.domain == domain] for domain in range(DOMAINS)]
    ends = LEAD_S + FAULTS_S + TAIL_S
    return World(
        seed,
        domains,
        draw_links(seed, DOMAINS, ends),
        nodes,
        jobs,
        draw_faults(seed, by_domain, lease, LEAD_S, LEAD_S + FAULTS_S),
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
        round(max(_power(chance, *REPLICA_BANDWIDTHS), 8.0 * size / LONGEST_S), -6),
        round(chance.between(*STARTS_S), 3),
        round(chance.between(*REGROUPS_S), 3),
        round(chance.between(*PAUSES_S), 3),
    )


def _nodes(names: Chance, chance: Chance, jobs: tuple[Job, ...]) -> tuple[Node, ...]:
    """Held and free ones of a domain in any order."""
    nodes: list[Node] = []
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
        nodes += [Node(_name(names), domain, *places[place]) for place in order]
    return tuple(nodes)


def _name(chance: Chance) -> str:
    """A name that tells nothing."""
    return f"{chance.below(1 << 48):012x}"


def _power(chance: Chance, low: float, high: float) -> float:
    """Between two numbers, the logarithm uniform."""
    return low * exponential(chance.fraction() * log(high / low))


class Clock:
    """Instants with what happens then."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, instant: float, what: Callable[[], None]) -> None:
        """Put something down; nothing that is infinitely far away ever happens."""
        if instant < inf:
            self._count += 1
            heapq.heappush(self._due, (instant, self._count, what))

    @property
    def next(self) -> float:
        """When something happens next; infinite where nothing does."""
        return self._due[0][0] if self._due else inf

    def take(self) -> Callable[[], None]:
        """What happens next."""
        return heapq.heappop(self._due)[2]


@dataclass(slots=True, eq=False)
class Flow:
    """Something that travels.

    Attributes:
        channels: All that it needs.
        size: Bits of each part.
        done: What happens when it is there.
        copy: Whether it is a copy of a checkpoint.
        parts: How many like it travel side by side, each with a share of its own.
        left: Bits of each part that are not there.
        speed: Bit/s of each part.
    """

    channels: tuple[Channel, ...]
    size: float
    done: Callable[[], None]
    copy: bool = False
    parts: int = 1
    left: float = 0.0
    speed: float = 0.0

    def __post_init__(self) -> None:
        """Nothing of it is there."""
        self.left = self.size


class Flows:
    """All that is under way.

    Args:
        world: Where.
        away: Domains to and from which links carry nothing.
    """

    def __init__(self, world: World, away: Container[int]) -> None:
        self._world, self._away = world, away
        self._links = world.links.carried.tolist()
        self.under_way: list[Flow] = []
        self._ends = inf

    def start(self, flow: Flow, now: float) -> None:
        """Let something travel."""
        self.under_way.append(flow)
        self.share(now)

    def stop(self, flow: Flow, now: float) -> None:
        """Give it up."""
        if flow in self.under_way:
            self.under_way.remove(flow)
            self.share(now)

    def next(self, now: float) -> float:
        """When something is there, or bandwidths change."""
        changes = (int(now / INTERVAL_S) + 1) * float(INTERVAL_S) if self.under_way else inf
        return min(self._ends, changes)

    def travel(self, now: float, then: float) -> list[Flow]:
        """Let time pass, no longer than until the next change; what is there then has gone."""
        finished = []
        for flow in self.under_way:
            flow.left -= flow.speed * (then - now)
            if flow.left <= _WHOLE * flow.size:
                finished.append(flow)
        if finished or int(then / INTERVAL_S) != int(now / INTERVAL_S):
            self.under_way = [flow for flow in self.under_way if flow not in finished]
            self.share(then)
        return finished

    def share(self, now: float) -> None:
        """Share all bandwidths anew."""
        copies, others = Counter[Channel](), Counter[Channel]()
        for flow in self.under_way:
            counts = copies if flow.copy else others
            for channel in flow.channels:
                counts[channel] += flow.parts
        share, wholes = (
            self._world.share,
            {channel: self._bandwidth(channel, now) for channel in copies.keys() | others.keys()},
        )
        of_copies = {channel: share * wholes[channel] / count for channel, count in copies.items()}
        of_others = {
            channel: (wholes[channel] * (1.0 - share) if channel in copies else wholes[channel]) / count
            for channel, count in others.items()
        }
        self._ends = inf
        for flow in self.under_way:
            parts = of_copies if flow.copy else of_others
            flow.speed = min(map(parts.__getitem__, flow.channels))
            if flow.speed > 0.0:
                self._ends = min(self._ends, now + flow.left / flow.speed)

    def _bandwidth(self, channel: Channel, now: float) -> float:
        kind, which, other = channel
        if kind == NODES:
            return self._world.jobs[which].node_bandwidth
        if kind == STORE:
            return self._world.domains[which].store_bandwidth
        if which in self._away or other in self._away:
            return 0.0
        row = min(PAST + int(now / INTERVAL_S), len(self._links) - 1)
        return float(self._links[row][which][other])


def channels(store: int, begin: int, end: int) -> tuple[Channel, ...]:
    """What a state needs that goes from or to a store, between two domains or within one."""
    through_store: Channel = (STORE, store, -1)
    return (through_store,) if begin == end else (through_store, (LINK, begin, end))


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a job's checkpoints in a domain, both by number, every so many seconds."""

    job: int
    domain: int
    period_s: float


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is held.

    Attributes:
        spares: By domain.
        copies: In the order of the plan.
        left_out: What of the plan is not, in words.
    """

    spares: tuple[int, ...]
    copies: tuple[Copy, ...]
    left_out: tuple[str, ...] = ()

    def price(self, world: World) -> float:
        """Of all spares, for an hour."""
        return sum(count * domain.price for count, domain in zip(self.spares, world.domains, strict=True))


def hold(world: World, plan: "documents.BackupPlan | None") -> Holdings:
    """What of a valid plan can be held; nothing where there is none."""
    if plan is None:
        return Holdings((0,) * len(world.domains), ())
    left_out: list[str] = []
    numbers = {domain.id: number for number, domain in enumerate(world.domains)}
    spares = [0] * len(world.domains)
    for pool in plan["pools"]:
        number = numbers.get(pool["domain"])
        if number is None:
            left_out.append(f"pool of {pool['domain']}, which is no domain of the request")
            continue
        most = fewest(world, number)
        spares[number] = min(int(pool["spares"]), most)
        if pool["spares"] > most:
            left_out.append(f"{pool['spares']} spares in {pool['domain']}, where a pool has {most}")
    return Holdings(tuple(spares), tuple(_copies(world, plan["copies"], numbers, left_out)), tuple(left_out))


def fewest(world: World, domain: int) -> int:
    """The fewest spares of a domain whose risk is no more than the world's, or all that are free there."""
    from scipy.special import pdtrc

    jobs = sum(node.domain == domain and node.job >= 0 for node in world.nodes)
    free = sum(node.domain == domain and node.job < 0 for node in world.nodes)
    mean = jobs * world.repair_s / world.time_between_failures
    return next((count for count in range(free) if pdtrc(float(count), mean) <= _NEAR * world.risk), free)


@dataclass(slots=True)
class NodeState:
    """A node.

    Attributes:
        job: Who holds it, by number; -1 where nobody does.
        replica: Of that job.
        shown: Whether it is told of; what was free at the beginning and is no spare is not.
        failed: Whether it has failed and is not repaired.
        down: Whether its domain has failed.
    """

    job: int = -1
    replica: int = -1
    shown: bool = True
    failed: bool = False
    down: bool = False


@dataclass(slots=True)
class Away:
    """A domain of which nothing is heard.

    Attributes:
        kind: Whether it failed or is cut off.
        fenced_at: When whatever ran there has stopped for certain.
    """

    kind: str
    fenced_at: float


@dataclass(slots=True)
class Incident:
    """What a fault did to a job; times in seconds, infinite while they are not over.

    Attributes:
        job: By number.
        kind: Of the first fault.
        onset: When it was.
        had: Replicas that made steps then.
        least_s: State over the greatest bandwidth at which it could have come.
        switch_s: Until it made steps with as many again.
        interruption_s: In which it made no step that it had not made before.
        lost_s: Work that was done again.
        strategies: Strategies that were begun.
    """

    job: int
    kind: str
    onset: Annotated[float, Field(alias="at")]  # its name in transcripts
    had: int
    least_s: float
    switch_s: float = inf
    interruption_s: float = 0.0
    lost_s: float = 0.0
    strategies: Annotated[list[str], Field(alias="ways")] = field(default_factory=list)  # likewise


@dataclass(slots=True)
class Recovery:
    """A recovery under way.

    Attributes:
        strategy: One of the model's.
        begins_at: When.
        replicas: Nodes that each replica gets.
        source: Domain whose copy is read; -1 where none is.
        begun: Whether it has begun.
        progress: Of the copy that is read.
        flow: What is read.
    """

    strategy: str
    begins_at: float
    replicas: dict[int, tuple[int, ...]]
    source: int = -1
    begun: bool = False
    progress: float = 0.0
    flow: Flow | None = None

    @property
    def nodes(self) -> set[int]:
        """All that it gives."""
        return {node for replica in self.replicas.values() for node in replica}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a plan said of a job's next new step, and what was: seconds from the plan."""

    strategy: str
    expected_s: float
    happened_s: float


@dataclass(slots=True)
class JobState:
    """A job; work is counted in seconds of the job when it is whole.

    Attributes:
        spec: What it is.
        number: Which.
        domain: Where it runs or ran last, by number.
        replica_nodes: Nodes of each replica.
        active: Replicas that make steps, or would if nothing held them up.
        progress: Work done.
        high: The most that it ever was.
        speed: At which it works now.
        stopped: Whether it waits for a plan, or for what is under way.
        fenced: Whether it was stopped for want of a lease.
        regroups_until: Instant before which no step is made.
        pauses_until: Likewise, for a checkpoint.
        copies: Progress that the copy in a domain holds.
        travelling: Copies under way, by domain.
        paused_s: Time that checkpoints took.
        recovery: What is under way.
        incident: What is not over.
        said: Strategy, instant of the plan, and what it expected, until a new step is made.
        pausing: Whether nothing but a checkpoint holds it up.
    """

    spec: Job
    number: int
    domain: int
    replica_nodes: list[tuple[int, ...]]
    active: int
    progress: float = 0.0
    high: float = 0.0
    speed: float = 1.0
    stopped: bool = False
    fenced: bool = False
    regroups_until: float = 0.0
    pauses_until: float = 0.0
    copies: dict[int, float] = field(default_factory=dict)
    travelling: dict[int, Flow] = field(default_factory=dict)
    paused_s: float = 0.0
    recovery: Recovery | None = None
    incident: Incident | None = None
    said: tuple[str, float, float] | None = None
    pausing: bool = False
    _since: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether it makes steps, but for regrouping and checkpoints."""
        return not (self.stopped or self.fenced)

    @property
    def behind(self) -> float:
        """Work that it has to do again; zero where that is next to none."""
        gap = self.high - self.progress
        return gap if gap > SAME else 0.0

    def settle(self, now: float) -> None:
        """Count what was done since the last time."""
        lasted, self._since = now - self._since, now
        if lasted <= 0.0:
            return
        self.paused_s += lasted * self.pausing
        if self.incident is not None:
            self.incident.interruption_s += self._without(lasted)
        self.progress += self.speed * lasted
        self.high = max(self.high, self.progress)

    def _without(self, lasted: float) -> float:
        """How much of a time no new step was made in; a checkpoint is no interruption where one would be made."""
        if self.speed > 0.0:
            return min(lasted, self.behind / self.speed)
        return lasted if self.behind or not self.pausing else 0.0

    def go(self, now: float) -> None:
        """Work on at the speed that it has from now."""
        regroups = now < self.regroups_until - SAME
        pauses = now < self.pauses_until - SAME
        self.pausing = self.runs and pauses and not regroups
        self.speed = self.active / self.spec.replicas if self.runs and not (regroups or pauses) else 0.0


@dataclass(slots=True)
class State:
    """All of a window at an instant.

    Attributes:
        world: Which.
        now: Seconds from its beginning.
        nodes: By number.
        jobs: By number.
        away: Domains that nothing is heard of, by number.
    """

    world: World
    now: float
    nodes: list[NodeState]
    jobs: list[JobState]
    away: dict[int, Away]

    def condition(self, node: int) -> "documents.NodeCondition":
        """What is known of a node."""
        if self.world.nodes[node].domain in self.away:
            return UNREACHABLE
        return FAILED if self.nodes[node].failed else FIT

    def is_whole(self, job: JobState, replica: int) -> bool:
        """Whether so many fit nodes hold a replica, as far as is known."""
        nodes = job.replica_nodes[replica]
        if len(nodes) != job.spec.nodes_each or (nodes and self.world.nodes[nodes[0]].domain in self.away):
            return False
        return not any(self.nodes[node].failed for node in nodes)

    def broken(self, job: JobState) -> list[int]:
        """Replicas of a job that are not whole."""
        return [replica for replica in range(job.spec.replicas) if not self.is_whole(job, replica)]


def begin(world: World) -> State:
    """All jobs whole, no copy anywhere, and no free node shown."""
    nodes = [NodeState(node.job, node.replica, shown=node.job >= 0) for node in world.nodes]
    jobs = []
    for number, spec in enumerate(world.jobs):
        replica_nodes: list[list[int]] = [[] for _ in range(spec.replicas)]
        for index, node in enumerate(world.nodes):
            if node.job == number:
                replica_nodes[node.replica].append(index)
        jobs.append(JobState(spec, number, spec.domain, [tuple(replica) for replica in replica_nodes], spec.replicas))
    return State(world, 0.0, nodes, jobs, {})


def _copies(
    world: World, bodies: "list[documents.PlannedCopy]", numbers: dict[str, int], left_out: list[str]
) -> list[Copy]:
    jobs = {job.id: number for number, job in enumerate(world.jobs)}
    known = world.links.measured[:PAST]
    written_bytes, written, sent = (
        defaultdict[int, float](float),
        defaultdict[int, float](float),
        defaultdict[Any, float](float),
    )
    copies: dict[tuple[int, int], Copy] = {}
    for body in bodies:
        job, domain = jobs.get(body["job"], -1), numbers.get(body["domain"], -1)
        if job < 0 or domain < 0 or (job, domain) in copies:
            left_out.append(f"copy of {body['job']} in {body['domain']}, which are unknown or stand twice")
            continue
        spec, rate = world.jobs[job], 8.0 * world.jobs[job].state_size / max(float(body["period"]), 1e-9)
        channel = (spec.domain, domain)
        fits = written_bytes[domain] + 2.0 * spec.state_size <= world.domains[domain].capacity * _SLACK
        fits &= written[domain] + rate <= world.share * world.domains[domain].store_bandwidth * _SLACK
        if spec.domain != domain:
            fits &= sent[channel] + rate <= world.share * fmean(known[:, spec.domain, domain].tolist()) * _SLACK
        if not fits:
            left_out.append(f"copy of {body['job']} in {body['domain']}, for which there is too little left")
            continue
        written_bytes[domain] += 2.0 * spec.state_size
        written[domain] += rate
        sent[channel] += rate
        copies[job, domain] = Copy(job, domain, float(body["period"]))
    return list(copies.values())
