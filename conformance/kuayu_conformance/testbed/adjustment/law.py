"""How fast a job is by a policy, which policy is best, and what of it a request for adjustments says.

1. **Division.** The parts of a step are divided among domains so that the slowest domain takes least.
2. **Law.** The one of the clause: a domain of load ``l`` takes parts · part time / (1 - l) for its parts of a step, the
   slowest one counts, and exchanges are those of :mod:`kuayu_conformance.testbed.transfers.collectives`, whose formulas
   stand here once more because steps vary over time. More seconds for the parts never make a job faster, whatever the
   collective, so that the best division, the best order and the best collective are found one after the other.
3. **Levels.** The level of a load or a latency now is the median of its last values; :class:`Motion` says whether it
   has changed.
4. **Requests.** :func:`levels` and :func:`jobs` take from a valid request what the law needs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import permutations
from math import ceil
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.scheduling.law import PUBLISHED, penalty
from kuayu_conformance.testbed.transfers.collectives import HIERARCHICAL, RING, WAYS, Way, turned

if TYPE_CHECKING:
    from kuayu_schemas import documents

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
ALL_ORDERS = 7
"""Domains up to which all rings are tried; of more, those that go on to the nearest domain that is left."""
LOAD_CHANGED, LOAD_CALM = 0.2, 0.1
LATENCY_CHANGED, LATENCY_CALM = 0.5, 0.25
"""Of the stated level: from where it counts as a change, and below which it is calm."""
HAIR = 1e-9
"""Of a level: at the very edge, either is right."""


def divided(per_part: Floats, total: int) -> tuple[Whole, Floats]:
    """The division whose slowest domain takes least, and what that takes; ``(T, D)`` and ``(T,)``.

    One part more goes where it ends soonest, again and again; what fits into the time of an undivided optimum is there
    before the rest, so that no more than a part for each domain is left to be given one by one.

    Args:
        per_part: Seconds of a part in each domain, more than zero, ``(T, D)``; infinite where others take all.
        total: Parts, no fewer than domains; each domain gets one at least.
    """
    fastest = np.where(np.isfinite(per_part), 1.0 / per_part, 0.0)
    parts = np.ones(per_part.shape, dtype=np.int64)
    free = np.ones(per_part.shape, dtype=bool)  # domains that get more than the one part that each has to have
    for _ in range(per_part.shape[1]):
        left = total - (~free).sum(axis=1)
        speed = np.where(free, fastest, 0.0).sum(axis=1)
        share = np.divide(left, speed, out=np.zeros(len(left)), where=speed > 0.0)[:, None] * fastest
        free &= share > 1.0
        parts = np.where(free, np.floor(share).astype(np.int64), 1)
    rows = np.arange(len(parts))
    for _ in range(per_part.shape[1]):
        short = parts.sum(axis=1) < total
        soonest = ((parts + 1) * per_part).argmin(axis=1)
        parts[rows, soonest] += short
    parts[:, 0] += total - parts.sum(axis=1)  # where others take all of every domain, and no division is better
    return parts, (parts * per_part).max(axis=1)


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


class Motion(Enum):
    """How the level now stands to the one that the policy was chosen for."""

    CALM = "calm"
    BETWEEN = "between"
    CHANGED = "changed"


@lru_cache(64)
def looked_at(interval: float, patience: float) -> int:
    """How many of the last intervals make a level."""
    return max(1, ceil(patience / interval - HAIR))


def level(values: Sequence[float], interval: float, patience: float) -> float:
    """The level now: the median of the last values, oldest first, or of all where there are fewer."""
    return float(median(values[-looked_at(interval, patience) :]))


def load_motion(before: float, now: float) -> Motion:
    """Of a load, which counts in both directions."""
    return _motion(abs(now - before), abs(now - before), before, now, LOAD_CHANGED, LOAD_CALM)


def latency_motion(before: float, now: float) -> Motion:
    """Of a latency, whose rise alone counts; a fall is calm where it is small, and else between."""
    return _motion(now - before, abs(now - before), before, now, LATENCY_CHANGED, LATENCY_CALM)


@dataclass(frozen=True, slots=True)
class Level:
    """A load or a latency.

    Attributes:
        kind: Which of the two.
        domain: Whose load, or the source of the link.
        target: Of the link; None for a load.
        before: Level that the policy in force was chosen for.
        now: Level now.
        motion: How one stands to the other.
    """

    kind: "documents.TriggerKind"
    domain: str
    target: str | None
    before: float
    now: float
    motion: Motion

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What it is the level of."""
        return self.kind, self.domain, self.target


@dataclass(frozen=True, eq=False)
class AskedJob:
    """A job of a request.

    Attributes:
        id: Its name.
        domains: Names of its domains, in the order of its shares.
        law: What does not change about it.
        in_force: Its policy.
        planned: Policies of the changes that are planned, in their order.
        loads: Levels now of its domains, ``(1, D)``.
        latency: Levels now of its links, ``(1, D, D)``.
    """

    id: str
    domains: tuple[str, ...]
    law: Job
    in_force: Policy
    planned: tuple[Policy, ...]
    loads: Floats
    latency: Floats

    @property
    def total(self) -> int:
        """Parts of a step."""
        return sum(self.in_force.parts)

    @property
    def outlook(self) -> Policy:
        """Policy once all that is planned is in force."""
        return (self.in_force, *self.planned)[-1]

    def rate(self, policy: Policy) -> float:
        """Steps a second by a policy at the levels now."""
        return float(rate(self.law, self.loads, self.latency, policy)[0])

    @property
    def best_rate(self) -> float:
        """Steps a second by the best policy at the levels now."""
        return float(self._best.rates[0])

    @property
    def best(self) -> Policy:
        """The best policy at the levels now."""
        return self._best.policy(0)

    @cached_property
    def _best(self) -> Best:
        return best(self.law, self.loads, self.latency, self.total)


def levels(request: "documents.AdjustmentRequest") -> Iterator[Level]:
    """All loads, then all latencies of a valid request, in its order."""
    over = float(request["interval"]), float(request["patience"])
    for entry in request["domains"]:
        before, now = float(entry["level"]), level(entry["loads"], *over)
        yield Level("load", entry["id"], None, before, now, load_motion(before, now))
    for link in request["links"]:
        before, now = float(link["level"]), level(link["latencies"], *over)
        yield Level("latency", link["source"], link["target"], before, now, latency_motion(before, now))


def jobs(request: "documents.AdjustmentRequest", current: Sequence[Level] | None = None) -> list[AskedJob]:
    """All jobs of a valid request that does not contradict itself, in its order.

    Args:
        request: The request.
        current: Its levels, where they are at hand.
    """
    now = {measured.key: measured.now for measured in (levels(request) if current is None else current)}
    carried = {(link["source"], link["target"]): float(link["bandwidth"]) for link in request["links"]}
    return [_job(job, now, carried) for job in request["jobs"]]


def policy(
    domains: Sequence[str], parts: Sequence[int], body: "documents.AdjustedJob | documents.PolicyChange"
) -> Policy:
    """What a job or a change says of how the job runs.

    Args:
        domains: Of the job, in the order of its shares.
        parts: Of each of them.
        body: The job or the change; its order names domains of the job.
    """
    order = tuple(domains.index(name) for name in body["order"])
    return Policy(tuple(map(int, parts)), Way(body["collective"], int(body["period"])), order)


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


def _motion(counted: float, apart: float, before: float, now: float, changed: float, calm: float) -> Motion:
    hair = HAIR * max(before, now)
    if apart == 0.0 or apart < calm * before - hair:
        return Motion.CALM
    return Motion.CHANGED if counted >= changed * before + hair else Motion.BETWEEN


def _job(
    body: "documents.AdjustedJob",
    now: Mapping[tuple[str, str, str | None], float],
    carried: Mapping[tuple[str, str], float],
) -> AskedJob:
    shares = body["shares"]
    names = tuple(share["domain"] for share in shares)
    latency, bandwidth = np.zeros((1, len(names), len(names))), np.ones((len(names), len(names)))
    for one, source in enumerate(names):
        for other, target in enumerate(names):
            if one != other:
                latency[0, one, other] = now["latency", source, target]
                bandwidth[one, other] = carried[source, target]
    law = Job(
        np.array([float(share["part_time"]) for share in shares]),
        int(body["nodes"]),
        float(body["node_bandwidth"]),
        float(body["node_latency"]),
        float(body["exchange"]),
        bandwidth,
        float(body["move_time"]),
        float(body["switch_time"]),
    )
    return AskedJob(
        body["id"],
        names,
        law,
        policy(names, [share["parts"] for share in shares], body),
        tuple(policy(names, change["parts"], change) for change in body.get("planned", ())),
        np.array([[now["load", name, None] for name in names]]),
        latency,
    )
