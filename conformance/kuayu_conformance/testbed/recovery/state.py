"""What stands when in a window: nodes, jobs, what is under way, what is to happen, and what became of faults.

1. **Clock.** What is to happen comes in the order of time; at one instant, in the order in which it was put down.
2. **Flows.** Stores, links and jobs' nodes are shared evenly by what travels at the same time. Copies of checkpoints
   have ``share`` of a store or a link among them, and recoveries the rest while there are any, or all of it. What is
   shared is shared by number, and each goes at the speed of the narrowest that it needs: what that leaves over
   elsewhere is left.
3. **Holdings.** As many spares as a pool shall have, and copies that fit. A pool that is greater than the clause allows
   is held as great as it may be, and copies beyond the room of their store or the share of stores and links, in the
   order of the plan, are not held. Otherwise whoever holds too much would do best.
4. **State.** At the beginning all jobs are whole, there is no copy anywhere, and no free node is shown.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from kuayu_conformance.testbed.recovery.world import INTERVAL_S, PAST, Job, World

if TYPE_CHECKING:
    from kuayu_schemas import documents

Way = tuple[str, int, int]
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
        ways: All that it needs.
        size: Bits of each part.
        done: What happens when it is there.
        copy: Whether it is a copy of a checkpoint.
        parts: How many like it travel side by side, each with a share of its own.
        left: Bits of each part that are not there.
        speed: Bit/s of each part.
    """

    ways: tuple[Way, ...]
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
        copies, others = Counter[Way](), Counter[Way]()
        for flow in self.under_way:
            counts = copies if flow.copy else others
            for way in flow.ways:
                counts[way] += flow.parts
        share, wholes = self._world.share, {way: self._bandwidth(way, now) for way in copies.keys() | others.keys()}
        of_copies = {way: share * wholes[way] / count for way, count in copies.items()}
        of_others = {
            way: (wholes[way] * (1.0 - share) if way in copies else wholes[way]) / count
            for way, count in others.items()
        }
        self._ends = inf
        for flow in self.under_way:
            parts = of_copies if flow.copy else of_others
            flow.speed = min(map(parts.__getitem__, flow.ways))
            if flow.speed > 0.0:
                self._ends = min(self._ends, now + flow.left / flow.speed)

    def _bandwidth(self, way: Way, now: float) -> float:
        kind, which, other = way
        if kind == NODES:
            return self._world.jobs[which].node_bandwidth
        if kind == STORE:
            return self._world.domains[which].store_bandwidth
        if which in self._away or other in self._away:
            return 0.0
        row = min(PAST + int(now / INTERVAL_S), len(self._links) - 1)
        return float(self._links[row][which][other])


def ways(store: int, begin: int, end: int) -> tuple[Way, ...]:
    """What a state needs that goes from or to a store, between two domains or within one."""
    store_way: Way = (STORE, store, -1)
    return (store_way,) if begin == end else (store_way, (LINK, begin, end))


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


def held(world: World, plan: "documents.BackupPlan | None") -> Holdings:
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
        ways: Strategies that were begun.
    """

    job: int
    kind: str
    onset: Annotated[float, Field(alias="at")]  # its name in transcripts
    had: int
    least_s: float
    switch_s: float = inf
    interruption_s: float = 0.0
    lost_s: float = 0.0
    ways: list[str] = field(default_factory=list)


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
        held: Nodes of each replica.
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
    held: list[tuple[int, ...]]
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
        held = job.held[replica]
        if len(held) != job.spec.nodes_each or (held and self.world.nodes[held[0]].domain in self.away):
            return False
        return not any(self.nodes[node].failed for node in held)

    def broken(self, job: JobState) -> list[int]:
        """Replicas of a job that are not whole."""
        return [replica for replica in range(job.spec.replicas) if not self.is_whole(job, replica)]


def begin(world: World) -> State:
    """All jobs whole, no copy anywhere, and no free node shown."""
    nodes = [NodeState(node.job, node.replica, shown=node.job >= 0) for node in world.nodes]
    jobs = []
    for number, spec in enumerate(world.jobs):
        held: list[list[int]] = [[] for _ in range(spec.replicas)]
        for index, node in enumerate(world.nodes):
            if node.job == number:
                held[node.replica].append(index)
        jobs.append(JobState(spec, number, spec.domain, [tuple(replica) for replica in held], spec.replicas))
    return State(world, 0.0, nodes, jobs, {})


def _copies(
    world: World, bodies: "list[documents.PlannedCopy]", numbers: dict[str, int], left_out: list[str]
) -> list[Copy]:
    jobs = {job.id: number for number, job in enumerate(world.jobs)}
    known = world.links.measured[:PAST]
    room, written, sent = defaultdict[int, float](float), defaultdict[int, float](float), defaultdict[Any, float](float)
    made: dict[tuple[int, int], Copy] = {}
    for body in bodies:
        job, domain = jobs.get(body["job"], -1), numbers.get(body["domain"], -1)
        if job < 0 or domain < 0 or (job, domain) in made:
            left_out.append(f"copy of {body['job']} in {body['domain']}, which are unknown or stand twice")
            continue
        spec, rate = world.jobs[job], 8.0 * world.jobs[job].state_size / max(float(body["period"]), 1e-9)
        way = (spec.domain, domain)
        fits = room[domain] + 2.0 * spec.state_size <= world.domains[domain].room * _SLACK
        fits &= written[domain] + rate <= world.share * world.domains[domain].store_bandwidth * _SLACK
        if spec.domain != domain:
            fits &= sent[way] + rate <= world.share * fmean(known[:, spec.domain, domain].tolist()) * _SLACK
        if not fits:
            left_out.append(f"copy of {body['job']} in {body['domain']}, for which there is too little left")
            continue
        room[domain] += 2.0 * spec.state_size
        written[domain] += rate
        sent[way] += rate
        made[job, domain] = Copy(job, domain, float(body["period"]))
    return list(made.values())
