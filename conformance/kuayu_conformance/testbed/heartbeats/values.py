"""What a world of heartbeats consists of. Times are seconds since the begin of the warm-up."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

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
QUICK = Scale()
FULL = Scale(seconds=620.0, incidents=3020, cuts=18, racks=36, flapping=80, logged=220)


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


_ABOUT = {
    NODE_DEAD: ("node",),
    NODE_FAILING: ("node",),
    DOMAIN_UNREACHABLE: ("domain",),
    JOB_HUNG: ("job",),
    RANK_STRAGGLING: ("job", "rank"),
}


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
