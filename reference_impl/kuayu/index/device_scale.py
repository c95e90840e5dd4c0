"""Several devices at once: what measurements with different device counts say of a task's exchange.

Each device spends n/R on one unit of throughput where n of them do R together. What this is longer than with fewer
devices is the exchange, X · 2(n − 1)/n / B: a ring all-reduce of X bytes at bandwidth B (Patarasuk and Yuan 2009).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

OWN_PART = 0.3
"""Least part of a measured time that is left to the device itself when the exchange is taken off."""


def exchange_traffic(count: int) -> float:
    """Bytes on the wire of each device for each byte that is exchanged among so many, 2(n − 1)/n."""
    return 2 * (count - 1) / count


@dataclass(frozen=True)
class Scaled:
    """Median throughput of so many devices of one kind on a task, and the bandwidth between them where it is known."""

    device: int
    count: int
    throughput: float
    bandwidth: float | None

    @property
    def time(self) -> float:
        """Time that each device spends on one unit."""
        return self.count / self.throughput


def exchange_of(rows: Sequence[Scaled]) -> float | None:
    """Bytes that a task exchanges for one unit: median over the devices that were measured at several counts."""
    first: dict[int, Scaled] = {}
    found: list[float] = []
    for row in sorted(rows, key=lambda row: (row.device, row.count)):
        least = first.setdefault(row.device, row)
        if row is not least and row.bandwidth is not None:
            traffic = exchange_traffic(row.count) - exchange_traffic(least.count)
            found.append((row.time - least.time) * row.bandwidth / traffic)
    return max(median(found), 0.0) if found else None


def at_count(row: Scaled, count: int, exchange: float | None) -> float:
    """Logarithm of the throughput that one device would have among ``count``, as far as its exchange is known."""
    own = row.time
    if exchange is not None and row.bandwidth is not None:
        own -= exchange * (exchange_traffic(row.count) - exchange_traffic(count)) / row.bandwidth
    return -math.log(max(own, OWN_PART * row.time))


def least_counts(rows: Mapping[int, Sequence[Scaled]]) -> dict[int, int]:
    """Least device count that each task was measured at."""
    return {task: min(row.count for row in found) for task, found in rows.items()}
