"""How long replicas exchange by each collective, and how many steps a second that leaves; the law of the clause.

A message of ``m`` bits takes latency + ``m`` / bandwidth, a round as long as its slowest message. What rare exchanges
over domains cost in steps is the penalty of :mod:`kuayu_conformance.testbed.scheduling.law`.
"""

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.law import PUBLISHED, penalty

if TYPE_CHECKING:
    from kuayu_schemas import documents

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

RING: "documents.CollectiveKind" = "ring"
HIERARCHICAL: "documents.CollectiveKind" = "hierarchical"
LOW: "documents.CollectiveKind" = "low_communication"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to exchange: the collective, and the steps from one exchange over domains to the next."""

    collective: "documents.CollectiveKind"
    period: int = 1

    @property
    def name(self) -> str:
        """In words."""
        return self.collective.replace("_", " ") + (f", {self.period}" if self.period > 1 else "")


WAYS = (Way(RING), Way(HIERARCHICAL), *(Way(LOW, period) for period in (5, 15, 50, 150, 500)))
"""Those that stand for all; services may choose others."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What is trained, and what does not change about where.

    Attributes:
        latency: Seconds of a message from domain to domain, ``(D, D)``; the diagonal does not count.
        nodes: In each domain.
        node_bandwidth: Bits a second from a node to another of its domain.
        node_latency: Seconds of a message there.
        exchange: Bytes that all replicas sum up.
        step_time: Seconds of a step without any exchange.
    """

    latency: Floats
    nodes: int
    node_bandwidth: float
    node_latency: float
    exchange: float
    step_time: float

    @property
    def domains(self) -> int:
        """How many there are."""
        return len(self.latency)

    def message(self, way: Way) -> float:
        """Bits that a domain sends to the next one in a round."""
        return 8.0 * self.exchange / (self.domains * (self.nodes if way.collective == RING else 1))


def rate(setting: Setting, bandwidth: Floats, way: Way, order: tuple[int, ...]) -> Floats:
    """Steps a second, less what rare exchanges cost in steps; nought where a link that is needed is out.

    Args:
        setting: What is trained.
        bandwidth: Bits a second from domain to domain, ``(T, D, D)``.
        way: How replicas exchange.
        order: Domains in the order of the ring.

    Returns:
        ``(T,)``
    """
    ring = np.array(order)
    slowest = _messages(setting, bandwidth, way)[:, ring, np.roll(ring, -1)].max(axis=1)
    return _steps(setting, way, slowest)


def best(setting: Setting, bandwidth: Floats, way: Way) -> tuple[Floats, Whole]:
    """Steps a second in the order that is quickest at each time, and that order; ``(T,)`` and ``(T, D)``."""
    orders = _orders(setting.domains)
    rounds = _messages(setting, bandwidth, way)[:, orders, np.roll(orders, -1, axis=1)].max(axis=2)
    chosen = rounds.argmin(axis=1)
    return _steps(setting, way, rounds[np.arange(len(rounds)), chosen]), orders[chosen]


def _messages(setting: Setting, bandwidth: Floats, way: Way) -> Floats:
    """Seconds of a message from domain to domain, ``(T, D, D)``; infinite where the link is out."""
    with np.errstate(divide="ignore"):
        seconds: Floats = setting.latency + setting.message(way) / bandwidth
    return seconds


def _steps(setting: Setting, way: Way, slowest: Floats) -> Floats:
    """Steps a second where the slowest message over domains takes so long, ``(T,)``."""
    domains, nodes, step = setting.domains, setting.nodes, setting.step_time
    hidden = PUBLISHED.overlap * step
    within = setting.node_latency + 8.0 * setting.exchange / nodes / setting.node_bandwidth
    over = slowest if domains > 1 else np.zeros_like(slowest)
    if way.collective == RING:
        together = domains * nodes
        if nodes > 1:
            over = np.maximum(over, setting.node_latency + 8.0 * setting.exchange / together / setting.node_bandwidth)
        return 1.0 / (step + np.maximum(0.0, 2 * (together - 1) * over - hidden))
    inside, across = 2 * (nodes - 1) * within, 2 * (domains - 1) * over
    if way.collective == HIERARCHICAL:
        return 1.0 / (step + np.maximum(0.0, inside + across - hidden))
    left = np.maximum(0.0, across - max(0.0, hidden - inside))
    lasts = way.period * (step + max(0.0, inside - hidden)) + left
    charged = penalty(domains, way.period) if domains > 1 else 1.0
    return way.period / (charged * lasts)


@cache
def _orders(count: int) -> Whole:
    """All rings that differ in more than where they begin, ``(orders, D)``."""
    return np.array([(0, *rest) for rest in permutations(range(1, count))], dtype=np.int64)
