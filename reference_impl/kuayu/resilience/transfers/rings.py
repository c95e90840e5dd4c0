"""The order in which domains form a ring, so that its slowest link is as fast as can be."""

from functools import cache
from itertools import permutations

import numpy as np

from kuayu.resilience.transfers.scene import Floats, Whole

EXACT = 7
"""Domains up to which all orders are looked at."""


def hop_seconds(order: tuple[int, ...], rates: Floats, latency_s: Floats, size: float) -> float:
    """Seconds of a round in which every domain sends so many bytes to the next; infinite where a link is out."""
    here, there = np.array(order), np.roll(np.array(order), -1)
    with np.errstate(divide="ignore"):
        return float((latency_s[here, there] + size / rates[here, there]).max())


def ring(rates: Floats, latency_s: Floats, size: float) -> tuple[int, ...]:
    """The order with the quickest round: exact for few domains, else by nearest neighbours and exchanges of two.

    Args:
        rates: Bytes a second from domain to domain, (D, D).
        latency_s: Seconds, (D, D).
        size: Bytes that a round moves over each link.
    """
    count = len(rates)
    with np.errstate(divide="ignore"):
        cost = latency_s + size / rates
    if count <= EXACT:
        orders = _orders(count)
        slowest = cost[orders, np.roll(orders, -1, axis=1)].max(axis=1)
        return tuple(orders[int(np.argmin(slowest))].tolist())
    order, left = [0], set(range(1, count))
    while left:
        nearest = min(sorted(left), key=lambda each: cost[order[-1], each])
        order.append(nearest)
        left.remove(nearest)
    return _exchanged(order, cost)


@cache
def _orders(count: int) -> Whole:
    """All rings, each once for each direction, (orders, D)."""
    return np.array([(0, *rest) for rest in permutations(range(1, count))], dtype=np.int64)


def _exchanged(order: list[int], cost: Floats) -> tuple[int, ...]:
    """Exchange two domains as long as the slowest hop becomes quicker."""

    def slowest(each: list[int]) -> tuple[float, float]:
        hops = cost[each, np.roll(each, -1)]
        return float(hops.max()), float(hops[np.isfinite(hops)].sum())

    best, improved = slowest(order), True
    while improved:
        improved = False
        for first in range(1, len(order)):
            for second in range(first + 1, len(order)):
                tried = order.copy()
                tried[first], tried[second] = tried[second], tried[first]
                if slowest(tried) < best:
                    order, best, improved = tried, slowest(tried), True
    return tuple(order)
