"""Collective synchronisation: rings, how long each collective takes over links as measured, and what it leaves.

1. The order in which domains form a ring, so that its slowest link is as fast as can be.
2. How long candidates for the exchange of gradients take over links as measured, and what throughput they leave.

   A message of ``s`` bytes takes ``α + s / B`` (R. W. Hockney, "The communication challenge for MPP", Parallel
   Computing 20, 1994). ``D`` domains of ``n`` nodes sum up ``G`` bytes:

   - *ring*: all ``P = D · n`` nodes in one ring, domain after domain: ``2 (P - 1)`` rounds of the slowest hop with
     ``G / P`` bytes (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
     JPDC 69, 2009). One flow enters and one leaves each domain.
   - *hierarchical*: a reduce-scatter inside each domain, ``n - 1`` rounds of ``G / n``; then a ring over domains for
     each of the ``n`` parts, all over the same links, ``2 (D - 1)`` rounds of ``G / D``; then an all-gather inside
     (M. Cho et al., "BlueConnect", IBM Journal of Research and Development 63, 2019).
   - *low communication*: inside each domain every step, over domains every ``H`` steps (A. Douillard et al.,
     "DiLoCo", arXiv:2311.08105). Quality is not free: the steps that it takes more to the same loss are charged
     (``kuayu.scheduling.throughput.penalty``, fitted to arXiv:2503.09799 and others).

   An exchange hides behind a share of a step; throughput is steps a second, with what rare reconciliation costs
   charged.
3. Collectives that are looked at, each with the orders of domains that are worth a look, and what they would do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from kuayu.resilience.transfers.network import Floats, Integers
from kuayu.scheduling.throughput import OVERLAP, penalty

if TYPE_CHECKING:
    from kuayu_schemas import documents

MAX_EXACT = 7
"""Domains up to which all orders are looked at."""


def round_s(order: tuple[int, ...], rates: Floats, latency_s: Floats, size: float) -> Floats:
    """Seconds of a round in which every domain sends so many bytes to the next; infinite where a link is out.

    Args:
        order: Domains in the order of the ring, by number.
        rates: Bytes a second from domain to domain, at any number of times, (..., D, D).
        latency_s: Seconds, (D, D).
        size: Bytes.

    Returns:
        Seconds, (...).
    """
    source, target = np.array(order), np.roll(np.array(order), -1)
    with np.errstate(divide="ignore", over="ignore"):
        slowest: Floats = (latency_s[source, target] + size / rates[..., source, target]).max(axis=-1)
    return slowest


def best_ring(rates: Floats, latency_s: Floats, size: float) -> tuple[int, ...]:
    """The order with the quickest round: exact for few domains, else by nearest neighbours and exchanges.

    Args:
        rates: Bytes a second from domain to domain, (D, D).
        latency_s: Seconds, (D, D).
        size: Bytes that a round moves over each link.
    """
    count = len(rates)
    with np.errstate(divide="ignore", over="ignore"):
        cost = latency_s + size / rates
    if count <= MAX_EXACT:
        orders = _orders(count)
        slowest = cost[orders, np.roll(orders, -1, axis=1)].max(axis=1)
        return tuple(orders[int(np.argmin(slowest))].tolist())
    order, left = [0], set(range(1, count))
    while left:
        nearest = min(sorted(left), key=lambda domain: cost[order[-1], domain])
        order.append(nearest)
        left.remove(nearest)
    return _exchanged(order, cost)


@cache
def _orders(count: int) -> Integers:
    """All rings, each once for each direction, (orders, D)."""
    return np.array([(0, *rest) for rest in permutations(range(1, count))], dtype=np.int64)


def _exchanged(order: list[int], cost: Floats) -> tuple[int, ...]:
    """Exchange an end of the slowest hop with another domain, as long as the ring becomes quicker; begins at zero."""
    now, count = np.array(order), len(order)
    most, total = _slowest(now[None], cost)
    while True:
        worst = int(np.argmax(cost[now, np.roll(now, -1)]))
        one, other = np.repeat([worst, (worst + 1) % count], count), np.tile(np.arange(count), 2)
        tried, rows = np.tile(now, (len(one), 1)), np.arange(len(one))
        tried[rows, one], tried[rows, other] = now[other], now[one]
        mosts, totals = _slowest(tried, cost)
        best = int(np.lexsort((totals, mosts))[0])
        if (mosts[best], totals[best]) >= (most[0], total[0]):
            return tuple(np.roll(now, -int(np.argmin(now))).tolist())
        now, most, total = tried[best], mosts[[best]], totals[[best]]


def _slowest(orders: Integers, cost: Floats) -> tuple[Floats, Floats]:
    """The slowest hop of each order, and the sum of those that are not over links that are out, (orders,)."""
    hops = cost[orders, np.roll(orders, -1, axis=1)]
    return hops.max(axis=1), np.where(np.isfinite(hops), hops, 0.0).sum(axis=1)


PERIODS = (5, 15, 50, 150, 500)
"""Steps between reconciliations that are looked at."""
RING: "documents.CollectiveKind" = "ring"
HIERARCHICAL: "documents.CollectiveKind" = "hierarchical"
LOW_COMMUNICATION: "documents.CollectiveKind" = "low_communication"
UNKNOWN_KIND: "documents.CollectiveKind" = "unknown"
"""Of a kind that the standard does not name; nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to exchange gradients.

    Attributes:
        kind: The collective.
        period: Steps between exchanges over domains.
    """

    kind: "documents.CollectiveKind"
    period: int = 1


CANDIDATES = (Candidate(RING), Candidate(HIERARCHICAL), *(Candidate(LOW_COMMUNICATION, period) for period in PERIODS))


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """Links as measured.

    Attributes:
        rates: Bytes a second from domain to domain, (D, D); zero where a link is out. The diagonal does not count.
        latency_s: Seconds of a message from domain to domain, (D, D).
        nodes: In each domain.
        inside: Bytes a second from a node to another of its domain; the least of all domains.
        inside_latency_s: Seconds of a message there.
    """

    rates: Floats
    latency_s: Floats
    nodes: int
    inside: float
    inside_latency_s: float


@dataclass(frozen=True, slots=True)
class Work:
    """What is trained.

    Attributes:
        gradient_bytes: That all replicas sum up.
        step_s: Seconds of a step without any exchange.
        overlap: Share of a step behind which an exchange hides.
    """

    gradient_bytes: float
    step_s: float
    overlap: float = OVERLAP


def message(candidate: Candidate, domains: int, nodes: int, work: Work) -> float:
    """Bytes that each round moves from a domain to the next."""
    return work.gradient_bytes / (domains * nodes if candidate.kind == RING else domains)


def exchange_s(candidate: Candidate, fabric: Fabric, work: Work, hop_s: Floats) -> tuple[float, Floats]:
    """Seconds of exchange inside domains, each step, and over them, each period; for the ring all of it over them.

    Args:
        candidate: Which.
        fabric: For what lies inside domains.
        work: What is exchanged.
        hop_s: Seconds of the slowest message from a domain to the next, of any shape; zero where there is but one.
    """
    domains, nodes, size = len(fabric.rates), fabric.nodes, work.gradient_bytes
    with np.errstate(over="ignore"):
        if candidate.kind == RING:
            together = domains * nodes
            own = fabric.inside_latency_s + np.float64(size / together) / fabric.inside if nodes > 1 else 0.0
            return 0.0, np.maximum(hop_s, own) * (2 * (together - 1)) if together > 1 else np.zeros_like(hop_s)
        inside = 2 * (nodes - 1) * (fabric.inside_latency_s + np.float64(size / nodes) / fabric.inside)
        return float(inside) if nodes > 1 else 0.0, hop_s * (2 * (domains - 1)) if domains > 1 else np.zeros_like(hop_s)


def step_charge(candidate: Candidate, domains: int) -> float:
    """How many times as many steps it takes to the same loss."""
    if candidate.kind != LOW_COMMUNICATION or domains == 1:
        return 1.0
    return float(penalty(np.array(float(domains)), np.array(float(candidate.period))))


def rate(candidate: Candidate, domains: int, work: Work, inside_s: float, across_s: Floats) -> Floats:
    """Steps a second, in the shape of ``across_s``; zero where a link that is needed is out."""
    hidden = work.overlap * work.step_s
    if candidate.kind == LOW_COMMUNICATION:
        step = work.step_s + max(0.0, inside_s - hidden)
        lasts = candidate.period * step + np.maximum(0.0, across_s - max(0.0, hidden - inside_s))
    else:
        lasts = work.step_s + np.maximum(0.0, inside_s + across_s - hidden)
    steps_per_second: Floats = (
        candidate.period / lasts / step_charge(candidate, domains)
    )  # zero where it lasts for ever
    return steps_per_second


@dataclass(frozen=True, slots=True)
class CollectiveOption:
    """A collective as it can be used.

    Attributes:
        candidate: Its kind and period.
        order: Domains in the order of the ring, by number, the first one first.
    """

    candidate: Candidate
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LinkHistory:
    """What links carried, in bytes a second; the diagonal does not count.

    Attributes:
        rates: Oldest first, (T, D, D), at least one.
        now: What they carry now, (D, D); zero where a link is out.
        fabric: Domains as they are now.
        work: What is trained.
    """

    rates: Floats
    now: Floats
    fabric: Fabric
    work: Work


def from_first(order: Sequence[int]) -> tuple[int, ...]:
    """The same ring, beginning at the first domain."""
    first = list(order).index(0)
    return (*order[first:], *order[:first])


def collective_options(past: LinkHistory, used: CollectiveOption | None) -> list[CollectiveOption]:
    """What is in use, if anything that is known; then all candidates, each with all orders that are worth a look."""
    domains = len(past.now)
    known = used if used is not None and used.candidate.kind != UNKNOWN_KIND else None
    candidates = dict.fromkeys([*([known.candidate] if known else []), *CANDIDATES])
    sizes = {message(candidate, domains, past.fabric.nodes, past.work) for candidate in candidates}
    mean = past.rates.mean(axis=0)
    orders = {}
    for size in sizes:
        best = (
            [from_first(best_ring(rates, past.fabric.latency_s, size)) for rates in (past.now, mean)]
            if domains > 1
            else [(0,)]
        )
        orders[size] = dict.fromkeys([*best, *([used.order] if used else [])])
    every = [
        CollectiveOption(candidate, order)
        for candidate in candidates
        for order in orders[message(candidate, domains, past.fabric.nodes, past.work)]
    ]
    return list(dict.fromkeys([*([known] if known else []), *every]))


def option_rates(past: LinkHistory, looked_at: Sequence[CollectiveOption], rates: Floats) -> Floats:
    """Steps a second of each option at each time, (T, options)."""
    domains = len(past.now)
    hops: dict[tuple[tuple[int, ...], float], Floats] = {}
    table = np.empty((len(rates), len(looked_at)))
    for column, option in enumerate(looked_at):
        size = message(option.candidate, domains, past.fabric.nodes, past.work)
        key = option.order, size
        if key not in hops:
            hops[key] = _hops(option, past, rates, size)
        inside, across = exchange_s(option.candidate, past.fabric, past.work, hops[key])
        table[:, column] = rate(option.candidate, domains, past.work, inside, across)
    return table


def _hops(option: CollectiveOption, past: LinkHistory, rates: Floats, size: float) -> Floats:
    return round_s(option.order, rates, past.fabric.latency_s, size) if len(past.now) > 1 else np.zeros(len(rates))
