"""What a world of heartbeats consists of: who is there, what may go wrong, and which domain can be reached when.

1. **Values.** Times are seconds since the beginning of the warm-up. Numbers that decide what can be told from what
   stand here.
2. **Places.** Domains, nodes, and the ranks of jobs on them are named and placed by chance.
3. **Turns.** Domains send their batches one after the other; in some turns one of them cannot be reached.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from kuayu_conformance.testbed.chance import Chance

if TYPE_CHECKING:
    from kuayu_schemas import documents

PERIOD = 0.5
"""Seconds between two beats of a node."""
TURN = 0.25
"""Seconds between two batches of a domain's aggregator."""
MOST_TURNS = 7
"""Turns of its domain for which a live node is silent at most: 1.75 s, and 1.9 s with what a path adds."""
TOLD = 10.0
"""Seconds in which a fault is told; what is over sooner need not be."""
NODE_DEAD, NODE_FAILING, DOMAIN_UNREACHABLE, JOB_HUNG, RANK_STRAGGLING = KINDS = (
    "node_dead",
    "node_failing",
    "domain_unreachable",
    "job_hung",
    "rank_straggling",
)
"""Kinds of faults, in the order of the clause."""
SINGLE, RACK, FLAPPING, AMID, BLOCKING, LOGGED, CUT, HANG, SLOW = CAUSES = (
    "node dies",
    "rack dies",
    "node comes and goes",
    "node dies amid a partition",
    "node of a job dies",
    "log line",
    "partition",
    "job hangs",
    "rank straggles",
)
"""What happens, in the order of tables."""
RESET = "node is reset"
"""What happens and is too short to be asked for: a node that failed is started anew."""
NameOf = Callable[[str], str]
DEVICES = 4
"""Devices of a node."""
BLOCKED = 2
"""Jobs of which a node dies for good."""
_ABOUT = {
    NODE_DEAD: ("node",),
    NODE_FAILING: ("node",),
    DOMAIN_UNREACHABLE: ("domain",),
    JOB_HUNG: ("job",),
    RANK_STRAGGLING: ("job", "rank"),
}
_LEAST_RANKS, _MOST_RANKS = 4, 16
_TWO_DOMAINS = 0.25  # share of jobs with ranks in two domains
_MIN_PARTITION_S, _MAX_PARTITION_S = 12.0, 15.0  # seconds of a partition
_BEFORE, _AFTER = 6.0, 8.0  # seconds around a partition in which nothing else happens to a domain
_REST = 34.0  # seconds between two partitions of a domain: by then it has been told that the first is over


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a world is.

    Attributes:
        domains: How many domains.
        nodes: Nodes of each.
        warm_up: Seconds before anything happens.
        seconds: Seconds in which faults begin.
        settle: Seconds after them.
        incidents: Faults in all.
        jobs: Jobs to which something may happen; two more are blocked, and as many as there are domains are bystanders.
        cuts: Partitions, spread over ``exposed`` domains.
        exposed: Domains that cannot be reached at times.
        amid: Nodes that die amid each partition.
        racks: Racks that die.
        flapping: Nodes that come and go.
        logged: Nodes that fail as their logs tell.
    """

    domains: int = 5
    nodes: int = 200
    warm_up: float = 20.0
    seconds: float = 90.0
    settle: float = 12.0
    incidents: int = 498
    jobs: int = 22
    cuts: int = 3
    exposed: int = 3
    amid: int = 2
    racks: int = 6
    flapping: int = 12
    logged: int = 36

    @property
    def end(self) -> float:
        """Second after which nothing begins."""
        return self.warm_up + self.seconds

    @property
    def total(self) -> float:
        """Seconds that are played."""
        return self.end + self.settle

    @property
    def turns(self) -> int:
        """Batches of each domain."""
        return int(self.total / TURN)


SMOKE = Scale(seconds=70.0, incidents=492, jobs=26, racks=5, flapping=10, logged=30)
"""As many incidents as let one be missed or be late: of 473 that are to be responded to the bound is not the worst."""
FULL = Scale(seconds=620.0, incidents=3020, cuts=18, racks=36, flapping=80, logged=220)
QUICK = Scale()


@dataclass(frozen=True, slots=True)
class Incident:
    """A fault, as it is in truth.

    Attributes:
        kind: One of ``KINDS``.
        cause: One of ``CAUSES``, or ``RESET``.
        since: From when on telling it is no error; before ``onset`` where it only comes to be so.
        onset: When it begins.
        until: When it is over; infinite where it lasts.
        domain: The domain that it is about, or that the node is of.
        node: The node that it is about, or on which the rank runs.
        job: The job that it is about, or that the rank is of.
        rank: The rank that straggles.
        queried_domains: Domains that are to be asked for something because of it.
        demanded: Whether it has to be told.
    """

    kind: str
    cause: str
    since: float
    onset: float
    until: float = inf
    domain: str | None = None
    node: str | None = None
    job: str | None = None
    rank: int | None = None
    queried_domains: tuple[str, ...] = ()
    demanded: bool = True

    @property
    def subject(self) -> tuple[str, ...]:
        """Kind and what it is about: what makes two faults the same."""
        return subject_of(self.kind, {"domain": self.domain, "node": self.node, "job": self.job, "rank": self.rank})

    @property
    def deadline(self) -> float:
        """Until when it may be told."""
        return max(self.until, self.onset + TOLD)


def subject_of(kind: str, members: Mapping[str, Any]) -> tuple[str, ...]:
    """Kind and what a fault is about, by the members of its class."""
    return (kind, *(str(members.get(name)) for name in _ABOUT.get(kind, ())))


@dataclass(frozen=True, slots=True)
class Cut:
    """The path of a domain is broken: nothing of it is sent in turns ``since`` … ``until`` - 1."""

    domain: int
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Absence:
    """A node does not beat from ``since`` until ``until``; ``anew`` where its numbers begin anew then."""

    since: float
    until: float
    anew: bool


@dataclass(frozen=True, slots=True)
class Beat:
    """A beat: when it was sent, by how much the clock of its node is ahead, s, and its body without ``sent_at``."""

    sent: float
    ahead: float
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log: when it was logged, and its body without ``logged_at``."""

    logged: float
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the aggregator of a domain sends in one turn.

    Attributes:
        instant: When.
        domain: Its identifier.
        beats: In any order.
        lines: Those of each node in their order.
    """

    instant: float
    domain: str
    beats: tuple[Beat, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    Attributes:
        name: Its identifier.
        nodes: Row of the node of each rank.
        blocked: Whether a node of it dies for good.
        calm: Whether something may happen to it; bystanders have nodes in domains that cannot be reached at times.
    """

    name: str
    nodes: tuple[int, ...]
    blocked: bool
    calm: bool


@dataclass(frozen=True, slots=True)
class Places:
    """Names of domains and nodes; row ``i`` is of domain ``i // scale.nodes``.

    Attributes:
        domains: Names.
        nodes: Names, by row.
        exposed: Domains that cannot be reached at times.
        jobs: Those that can hang or straggle, those that are blocked, and bystanders.
    """

    domains: tuple[str, ...]
    nodes: tuple[str, ...]
    exposed: tuple[int, ...]
    jobs: tuple[Job, ...]


def placed(scale: Scale, seed: str, name_of: NameOf) -> Places:
    """Name everything, and give each job nodes of its own."""
    chance = Chance(seed, "places")
    order = chance.order([(domain, 1.0) for domain in range(scale.domains)])
    exposed, calm = order[: scale.exposed], order[scale.exposed :]
    free = {domain: chance.order([(domain * scale.nodes + row, 1.0) for row in range(scale.nodes)]) for domain in order}
    jobs = []
    for number in range(scale.jobs + BLOCKED + scale.domains):
        bystander = number >= scale.jobs + BLOCKED
        home = chance.pick(exposed if bystander else calm)
        other = chance.pick([domain for domain in calm if domain != home] or calm)
        two = chance.fraction() < (2 * _TWO_DOMAINS if bystander else _TWO_DOMAINS)
        rows = _rows(chance, [home, other] if two else [home], free)
        blocked = scale.jobs <= number < scale.jobs + BLOCKED
        jobs.append(Job(name_of(f"job{number}"), rows, blocked, calm=number < scale.jobs))
    return Places(
        tuple(name_of(f"site{domain}") for domain in range(scale.domains)),
        tuple(name_of(f"n{row}") for row in range(scale.domains * scale.nodes)),
        tuple(sorted(exposed)),
        tuple(jobs),
    )


def domain_bodies(places: Places) -> "tuple[documents.Domain, ...]":
    """Domains as they are registered."""
    return tuple({"id": name} for name in places.domains)


def node_bodies(places: Places, scale: Scale) -> "tuple[documents.Node, ...]":
    """Nodes as they are registered."""
    devices: list[documents.Device] = [
        {"id": str(i), "kind": "gpu", "vendor": "conformance", "model": "probe"} for i in range(DEVICES)
    ]
    return tuple(
        {"id": name, "domain": places.domains[row // scale.nodes], "devices": devices}
        for row, name in enumerate(places.nodes)
    )


class Turns:
    """Domains send one after the other, each once in a turn.

    Args:
        domains: How many there are.
    """

    def __init__(self, domains: int) -> None:
        self._domains = domains

    def at(self, domain: int, turn: int) -> float:
        """When a domain sends its batch of a turn."""
        return (turn + domain / self._domains) * TURN

    def first(self, domain: int, second: float) -> int:
        """The first turn of a domain at or after a second."""
        return ceil(second / TURN - domain / self._domains - 1e-9)


def cuts_of(scale: Scale, seed: str, exposed: tuple[int, ...]) -> tuple[Cut, ...]:
    """Partitions, in the order of domain and time."""
    chance, turns, cuts = Chance(seed, "partitions"), Turns(scale.domains), []
    for place, domain in enumerate(exposed):
        count = len(range(place, scale.cuts, len(exposed)))
        for number in range(count):
            stretch = scale.seconds / count
            begin = scale.warm_up + number * stretch
            rest = _REST if number + 1 < count else _AFTER
            since = chance.between(begin + 2.0, begin + max(2.5, stretch - _MAX_PARTITION_S - rest))
            lasts = chance.between(_MIN_PARTITION_S + TURN, _MAX_PARTITION_S)
            cuts.append(Cut(domain, turns.first(domain, since), turns.first(domain, since + lasts)))
    return tuple(cuts)


class Reach:
    """Which domain cannot be reached when."""

    def __init__(self, cuts: tuple[Cut, ...], turns: Turns) -> None:
        self._spans: dict[int, list[tuple[float, float]]] = {}
        for cut in cuts:
            span = turns.at(cut.domain, cut.since), turns.at(cut.domain, cut.until)
            self._spans.setdefault(cut.domain, []).append(span)

    def clear(self, domain: int, since: float, until: float) -> bool:
        """Whether no partition of a domain is near to any second of a stretch."""
        spans = self._spans.get(domain, ())
        return all(until < begin - _BEFORE or since > end + _AFTER for begin, end in spans)

    def open(self, domain: int, second: float) -> float:
        """The second itself, or one after the partition that it falls into."""
        for begin, end in self._spans.get(domain, ()):
            if begin - _BEFORE <= second <= end + _AFTER:
                return end + _AFTER
        return second


def _rows(chance: Chance, domains: list[int], free: dict[int, list[int]]) -> tuple[int, ...]:
    """Rows of the nodes of a job's ranks, as many in each domain, one or two ranks on a node."""
    ranks_per_node = 1 + chance.below(2)
    ranks = _LEAST_RANKS + chance.below(_MOST_RANKS - _LEAST_RANKS + 1)
    rows: list[int] = []
    held: dict[int, int] = defaultdict(int)
    for rank in range(ranks):
        domain = domains[rank * len(domains) // ranks]
        if held[domain] % ranks_per_node == 0:
            rows.append(free[domain].pop())
        else:
            rows.append(rows[-1])
        held[domain] += 1
    return tuple(rows)
