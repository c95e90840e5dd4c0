"""How fast a job is by a policy at some loads and latencies, which policy is best, and what it costs to change it.

The law of the clause: a domain of load ``l`` takes parts · part time / (1 - l) for its parts of a step, the slowest one
counts, and exchanges are those of :mod:`kuayu_conformance.testbed.transfers.collectives`, whose formulas stand here
once more because steps vary over time. More seconds for the parts never make a job faster, whatever the collective, so
that the best division, the best order and the best collective are found one after the other.
"""

from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.adjustment.dividing import divided
from kuayu_conformance.testbed.scheduling.law import PUBLISHED, penalty
from kuayu_conformance.testbed.transfers.collectives import HIERARCHICAL, RING, WAYS, Way, turned

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

ALL_ORDERS = 7
"""Domains up to which all rings are tried; of more, those that go on to the nearest domain that is left."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How a job runs.

    Attributes:
        parts: Parts of a step that each of its domains computes, in the order of its shares.
        way: How replicas agree.
        order: Its domains in the order of the ring, as places among its shares.
    """

    parts: tuple[int, ...]
    way: Way
    order: tuple[int, ...]

    def moved(self, other: "Policy") -> int:
        """Parts that come to another domain on the way to another policy."""
        return sum(max(0, new - old) for old, new in zip(self.parts, other.parts, strict=True))

    def switches(self, other: "Policy") -> bool:
        """Whether that has another collective, period, or order, wherever the ring begins."""
        return self.way != other.way or turned(self.order) != turned(other.order)

    def is_like(self, other: "Policy") -> bool:
        """Whether to change from one to the other changes nothing."""
        return self.parts == other.parts and not self.switches(other)


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What does not change about a job while it runs; ``D`` is the number of its domains.

    Attributes:
        part_times: Seconds that each domain takes for a part while nobody else takes anything of it, ``(D,)``.
        nodes: In each domain.
        node_bandwidth: Bits a second from a node to another of its domain.
        node_latency: Seconds of a message there.
        exchange: Bytes that all replicas sum up.
        bandwidth: Bits a second from domain to domain, ``(D, D)``; the diagonal does not count.
        move_time: Seconds without a step for each part that moves.
        switch_time: Seconds without a step for another collective, period or order.
    """

    part_times: Floats
    nodes: int
    node_bandwidth: float
    node_latency: float
    exchange: float
    bandwidth: Floats
    move_time: float
    switch_time: float

    @property
    def domains(self) -> int:
        """How many it has."""
        return len(self.part_times)

    def pause(self, before: Policy, after: Policy) -> float:
        """Seconds without a step that it takes from one policy to another."""
        return before.moved(after) * self.move_time + before.switches(after) * self.switch_time


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """What is best at each of ``T`` instants.

    Attributes:
        rates: Steps a second, less what rare exchanges cost in steps, ``(T,)``.
        parts: The division, ``(T, D)``.
        ways: Places of ``WAYS``, ``(T,)``.
        orders: Places of domains, ``(T, D)``.
    """

    rates: Floats
    parts: Whole
    ways: Whole
    orders: Whole

    def policy(self, row: int) -> Policy:
        """That of an instant."""
        way, order = WAYS[int(self.ways[row])], tuple(self.orders[row].tolist())
        return Policy(tuple(self.parts[row].tolist()), way, order)


def rate(job: Job, loads: Floats, latency: Floats, policy: Policy) -> Floats:
    """Steps a second by a policy, less what rare exchanges cost in steps.

    Args:
        job: Which runs.
        loads: Share of each domain's compute that others take, ``(T, D)``; of one that takes all, no step is made.
        latency: Seconds of a message from domain to domain, ``(T, D, D)`` or ``(1, D, D)``.
        policy: By which it runs.

    Returns:
        ``(T,)``
    """
    order, next_one = list(policy.order), [*policy.order[1:], policy.order[0]]
    slowest = _messages(job, latency, policy.way)[:, order, next_one].max(axis=1)
    step = (np.array(policy.parts) * _per_part(job, loads)).max(axis=1)
    return _steps(job, policy.way, step, slowest)


def best(job: Job, loads: Floats, latency: Floats, total: int) -> Best:
    """The quickest policy at each instant.

    Among all divisions with a part for every domain at least, ``WAYS``, and rings as ``ALL_ORDERS`` says.

    Args:
        job: Which runs.
        loads: As of ``rate``.
        latency: Likewise.
        total: Parts of a step, no fewer than domains.
    """
    parts, step = divided(_per_part(job, loads), total)
    rings = {
        collective: _quickest_rings(_messages(job, latency, Way(collective))) for collective in (RING, HIERARCHICAL)
    }
    over = [rings[RING if way.collective == RING else HIERARCHICAL] for way in WAYS]
    rates = np.stack([_steps(job, way, step, slowest) for way, (slowest, _) in zip(WAYS, over, strict=True)])
    orders = np.stack([np.broadcast_to(order, parts.shape) for _, order in over])
    ways, rows = rates.argmax(axis=0), np.arange(len(parts))
    return Best(rates[ways, rows], parts, ways, orders[ways, rows])


def _per_part(job: Job, loads: Floats) -> Floats:
    """Seconds of a part in each domain, ``(T, D)``; infinite where others take all."""
    with np.errstate(divide="ignore"):
        seconds: Floats = job.part_times / (1.0 - loads)
    return seconds


def _messages(job: Job, latency: Floats, way: Way) -> Floats:
    """Seconds of a message from domain to domain, ``(T, D, D)``; all ways but a ring send messages of one size."""
    bits = 8.0 * job.exchange / (job.domains * (job.nodes if way.collective == RING else 1))
    seconds: Floats = latency + bits / job.bandwidth
    return seconds


def _steps(job: Job, way: Way, step: Floats, slowest: Floats) -> Floats:
    """Steps a second where the parts take so long, and the slowest message over domains; ``(T,)``."""
    domains, nodes = job.domains, job.nodes
    hidden = PUBLISHED.overlap * step
    over = slowest if domains > 1 else np.zeros_like(slowest)
    with np.errstate(invalid="ignore"):  # of a domain that is taken wholly; its steps never end
        if way.collective == RING:
            together = domains * nodes
            if nodes > 1:
                over = np.maximum(over, job.node_latency + 8.0 * job.exchange / together / job.node_bandwidth)
            lasts = step + np.maximum(0.0, 2 * (together - 1) * over - hidden)
        else:
            inside = 2 * (nodes - 1) * (job.node_latency + 8.0 * job.exchange / nodes / job.node_bandwidth)
            across = 2 * (domains - 1) * over
            if way.collective == HIERARCHICAL:
                lasts = step + np.maximum(0.0, inside + across - hidden)
            else:
                left = np.maximum(0.0, across - np.maximum(0.0, hidden - inside))
                lasts = step + np.maximum(0.0, inside - hidden) + left / way.period
                lasts = lasts * (penalty(domains, way.period) if domains > 1 else 1.0)
    made: Floats = np.where(np.isfinite(step), 1.0 / lasts, 0.0)
    return made


def _quickest_rings(messages: Floats) -> tuple[Floats, Whole]:
    """Seconds of the slowest message in the ring where it is least, and that ring; ``(T,)`` and ``(T, D)``."""
    domains = messages.shape[1]
    if domains <= ALL_ORDERS:
        rings = _orders(domains)
    else:
        rings = np.unique([_nearest(seconds, first) for seconds in messages for first in range(domains)], axis=0)
    rounds = messages[:, rings, np.roll(rings, -1, axis=1)].max(axis=2)
    chosen = rounds.argmin(axis=1)
    return rounds[np.arange(len(rounds)), chosen], rings[chosen]


def _nearest(seconds: Floats, first: int) -> list[int]:
    """The ring that goes on to the nearest domain that is left."""
    ring, left = [first], set(range(len(seconds))) - {first}
    while left:
        ring.append(min(left, key=lambda domain: (float(seconds[ring[-1], domain]), domain)))
        left.remove(ring[-1])
    return ring


@cache
def _orders(count: int) -> Whole:
    """All rings that differ in more than where they begin, ``(orders, D)``."""
    return np.array([(0, *rest) for rest in permutations(range(1, count))], dtype=np.int64)
