"""What the judge's telemetry consists of. Times are seconds since the beginning of the warm-up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline")
"""States that are brought about (clause met-06-graph), in the order of their numbers here."""
IDLE, BUSY, DEGRADED, STRAGGLING, FAULTY, OFFLINE = range(len(STATES))
UNKNOWN = "unknown"

TICKS = 20
"""Ticks of the simulation in a second."""
DWELL = 16
"""Seconds that a node keeps a state at least: a recogniser has ten, and has to go on showing the state for five."""

LEAST_DOMAINS, LEAST_SECONDS = 2, 60


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a world is.

    Raises:
        ValueError: Too few domains, of which one has to stay whole, or too few seconds for a partition and its end.

    Attributes:
        domains: How many domains, one of them partitioned for a while.
        nodes: How many nodes, those that are registered late included.
        warm_up: Seconds before anything is judged.
        seconds: Seconds played after it.
        churn: Share of the nodes that change their state in a second.
    """

    domains: int
    nodes: int
    warm_up: int
    seconds: int
    churn: float = 0.01

    def __post_init__(self) -> None:
        if self.domains < LEAST_DOMAINS or self.seconds < LEAST_SECONDS:
            raise ValueError(f"a world has {LEAST_DOMAINS} domains and {LEAST_SECONDS} s at least")

    @property
    def total(self) -> int:
        """Seconds from the beginning of the warm-up to the end."""
        return self.warm_up + self.seconds


QUICK = Scale(domains=5, nodes=1000, warm_up=30, seconds=60)
FULL = Scale(domains=64, nodes=10_000, warm_up=30, seconds=120)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the aggregator of a domain sends in one second.

    Attributes:
        domain: Its identifier.
        samples: Instant of observation and sample (class Sample, without ``observed_at``), oldest first.
    """

    domain: str
    samples: tuple[tuple[float, Mapping[str, Any]], ...]


@dataclass(frozen=True, slots=True)
class Incident:
    """A change of the truth about one node.

    Attributes:
        node: Its identifier.
        onset: Instant from which the telemetry differs.
        before: State until then.
        after: State from then on, for :data:`DWELL` seconds or more.
        cause: What happened.
        stratum: Kind of node, cause and new state, as one name; incidents of a stratum show in the same way.
    """

    node: str
    onset: float
    before: str
    after: str
    cause: str
    stratum: str


@dataclass(frozen=True, slots=True)
class Partition:
    """The path of a domain to the service is broken: nothing is delivered from ``since`` until ``until``."""

    domain: str
    since: int
    until: int
