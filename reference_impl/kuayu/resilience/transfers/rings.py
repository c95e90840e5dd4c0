"""The order in which domains form a ring, so that its slowest link is as fast as can be."""

from functools import cache
from itertools import permutations

import numpy as np

from kuayu.resilience.transfers.scene import Floats, Whole

EXACT = 7
"""Domains up to which all orders are looked at."""


def rounds(order: tuple[int, ...], rates: Floats, latency_s: Floats, size: float) -> Floats:
    """Seconds of a round in which every domain sends so many bytes to the next; infinite where a link is out.

    Args:
        order: Domains in the order of the ring, by number.
        rates: Bytes a second from domain to domain, at any number of times, (..., D, D).
        latency_s: Seconds, (D, D).
        size: Bytes.

    Returns:
        Seconds, (...).
    """
    here, there = np.array(order), np.roll(np.array(order), -1)
    with np.errstate(divide="ignore", over="ignore"):
        slowest: Floats = (latency_s[here, there] + size / rates[..., here, there]).max(axis=-1)
    return slowest


def ring(rates: Floats, latency_s: Floats, size: float) -> tuple[int, ...]:
    """The order with the quickest round: exact for few domains, else by nearest neighbours and exchanges.

    Args:
        rates: Bytes a second from domain to domain, (D, D).
        latency_s: Seconds, (D, D).
        size: Bytes that a round moves over each link.
    """
    count = len(rates)
    with np.errstate(divide="ignore", over="ignore"):
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
    """Exchange an end of the slowest hop with another domain, as long as the ring becomes quicker; begins at nought."""
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


def _slowest(orders: Whole, cost: Floats) -> tuple[Floats, Floats]:
    """The slowest hop of each order, and the sum of those that are not over links that are out, (orders,)."""
    hops = cost[orders, np.roll(orders, -1, axis=1)]
    return hops.max(axis=1), np.where(np.isfinite(hops), hops, 0.0).sum(axis=1)
