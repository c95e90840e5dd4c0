"""How many steps a second a job makes by a policy, where its domains are loaded and its links slow."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np

from kuayu.resilience.adjustment.dividing import ENDLESS
from kuayu.resilience.transfers.collectives import (
    LOW,
    NAMELESS,
    Candidate,
    Fabric,
    Work,
    charged,
    exchange_s,
    message,
)
from kuayu.resilience.transfers.rings import rounds
from kuayu.scheduling.throughput import OVERLAP


@dataclass(frozen=True, slots=True)
class Way:
    """How replicas agree.

    Attributes:
        kind: The collective.
        period: Steps from one exchange over domains to the next.
        order: The job's domains in the order of the ring, by number, the first one first; so a ring that begins
            elsewhere is the same one.
    """

    kind: str
    period: int
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """How a job runs.

    Attributes:
        parts: Of a step, in each domain.
        way: By which replicas agree.
    """

    parts: tuple[int, ...]
    way: Way


@dataclass(frozen=True, slots=True)
class Pace:
    """Steps a second of a way, by what the slowest domain takes for a step.

    Attributes:
        way: Which.
        inside_s: Seconds of exchange inside domains, each step.
        across_s: Seconds of exchange over them, each period.
        charge: How many times as many steps the way takes to the same loss.
    """

    way: Way
    inside_s: float
    across_s: float
    charge: float

    def rate(self, step_s: float) -> float:
        """Steps a second; nought where the way has no name, or where a domain never ends its parts."""
        if step_s == inf or self.way.kind == NAMELESS:
            return 0.0
        hidden = OVERLAP * step_s
        if self.way.kind == LOW:
            step = step_s + max(0.0, self.inside_s - hidden)
            lasts = self.way.period * step + max(0.0, self.across_s - max(0.0, hidden - self.inside_s))
            return self.way.period / lasts / self.charge
        return 1.0 / (step_s + max(0.0, self.inside_s + self.across_s - hidden))


class Law:
    """Steps a second of a job at some levels.

    Args:
        loads: Of the job's domains.
        part_s: Seconds of a part in each, while nobody else takes anything.
        fabric: Links among the job's domains, and what lies inside them.
        exchange_bytes: That all replicas sum up.
    """

    def __init__(self, loads: Sequence[float], part_s: Sequence[float], fabric: Fabric, exchange_bytes: float) -> None:
        self.loads, self.part_s = list(loads), list(part_s)
        self.fabric = fabric
        self.work = Work(exchange_bytes, 0.0)
        self.costs = [part / (1.0 - load) if load < 1.0 else inf for part, load in zip(part_s, loads, strict=True)]
        self.finite = [min(cost, ENDLESS) for cost in self.costs]
        self._paces: dict[Way, Pace] = {}

    def at(self, loads: Sequence[float]) -> "Law":
        """The law at other loads."""
        return Law(loads, self.part_s, self.fabric, self.work.gradient_bytes)

    def step_s(self, parts: Sequence[int]) -> float:
        """Seconds of the slowest domain for its parts."""
        return max(number * cost for number, cost in zip(parts, self.costs, strict=True))

    def pace(self, way: Way) -> Pace:
        """Steps a second of a way."""
        if way not in self._paces:
            candidate, domains = Candidate(way.kind, way.period), len(self.costs)
            inside_s = across_s = 0.0
            if way.kind != NAMELESS:
                size = message(candidate, domains, self.fabric.nodes, self.work)
                hop = rounds(way.order, self.fabric.rates, self.fabric.latency_s, size) if domains > 1 else np.zeros(())
                inside_s, across = exchange_s(candidate, self.fabric, self.work, hop)
                across_s = float(across)
            self._paces[way] = Pace(way, inside_s, across_s, _charge(way.kind, way.period, domains))
        return self._paces[way]

    def rate(self, policy: Policy) -> float:
        """Steps a second of a policy, less what rare exchanges cost in steps."""
        return self.pace(policy.way).rate(self.step_s(policy.parts))


@lru_cache(maxsize=4096)
def _charge(kind: str, period: int, domains: int) -> float:
    return charged(Candidate(kind, period), domains)
