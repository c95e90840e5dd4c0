"""The throughput model: how many steps a second a job makes, how parts are divided, and how replicas agree best.

1. The slowest domain gives the time of a step: its parts, times the seconds of a part, over the share of it that its
   load leaves.
2. An exchange hides behind a share of a step; what is left of it is added (``kuayu.resilience.transfers.collectives``).
3. Exchanges that are rarer cost less time and more steps to the same loss, which are charged.
4. A division is best when no domain could give a part away and the slowest be done sooner; it is found by the level of
   time that takes all parts, and then part by part.
5. A faster division is better with any collective, so the division is found first, and the collective, its period and
   the order of domains for it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from kuayu.resilience.transfers.collectives import (
    HIERARCHICAL,
    LOW_COMMUNICATION,
    RING,
    UNKNOWN_KIND,
    Candidate,
    Fabric,
    Work,
    best_ring,
    exchange_s,
    from_first,
    message,
    round_s,
    step_charge,
)
from kuayu.resilience.transfers.network import Floats
from kuayu.scheduling.throughput import OVERLAP, penalty

if TYPE_CHECKING:
    from kuayu_schemas import documents

ENDLESS_S = 1e200
"""Seconds of a part in a domain of which nothing is left, as a number that can still be reckoned with."""

_SAME = 1e-9
"""Parts by which a quotient of doubles may be off."""


def divided(total: int, costs: Sequence[float], least: Sequence[int], most: Sequence[int]) -> list[int]:
    """The division of parts whose slowest domain is quickest; it is exact.

    The level of time that takes all parts, were they as fine as sand, is no later than any division of whole ones. What
    each domain can do by then is given to it; the few parts that are left go one by one to whoever is done with them
    first.

    Args:
        total: Parts of a step; no fewer than all of ``least``, no more than all of ``most``.
        costs: Seconds of a part in each domain.
        least: Parts that each computes at least.
        most: Parts that each computes at most.

    Returns:
        Parts of each.
    """
    level = _level(total, costs, least, most)
    parts = [max(low, min(high, int(level / cost + _SAME))) for cost, low, high in zip(costs, least, most, strict=True)]
    left = total - sum(parts)
    if left > 0:
        _given(left, parts, costs, most)
    elif left < 0:
        _taken(-left, parts, costs, least)
    return parts


def _level(total: int, costs: Sequence[float], least: Sequence[int], most: Sequence[int]) -> float:
    """Seconds after which domains would have done so many parts, were they as fine as sand."""
    rows = list(zip(costs, least, most, strict=True))
    turns = sorted({number * cost for cost, low, high in rows for number in (low, high)})

    def done(seconds: float) -> float:
        return sum(min(float(high), max(float(low), seconds / cost)) for cost, low, high in rows)

    turn = min(bisect_left(turns, float(total), key=done), len(turns) - 1)
    if turn == 0:
        return turns[0]
    before = turns[turn - 1]
    middle = before + (turns[turn] - before) / 2.0  # no domain begins or ends between two turns
    speed = sum(1.0 / cost for cost, low, high in rows if low * cost < middle < high * cost)
    return before + (total - done(before)) / speed if speed > 0.0 else before


def _given(left: int, parts: list[int], costs: Sequence[float], most: Sequence[int]) -> None:
    ready = [(float(number + 1) * cost, index) for index, (number, cost) in enumerate(zip(parts, costs, strict=True))]
    ready = [pair for pair in ready if parts[pair[1]] < most[pair[1]]]
    heapify(ready)
    for _ in range(left):
        _, index = ready[0]
        parts[index] += 1
        if parts[index] < most[index]:
            heapreplace(ready, ((parts[index] + 1) * costs[index], index))
        else:
            heappop(ready)


def _taken(left: int, parts: list[int], costs: Sequence[float], least: Sequence[int]) -> None:
    slow = [(-number * cost, index) for index, (number, cost) in enumerate(zip(parts, costs, strict=True))]
    slow = [pair for pair in slow if parts[pair[1]] > least[pair[1]]]
    heapify(slow)
    for _ in range(left):
        _, index = slow[0]
        parts[index] -= 1
        if parts[index] > least[index]:
            heapreplace(slow, (-parts[index] * costs[index], index))
        else:
            heappop(slow)


def best_division(costs: Sequence[float], total: int) -> list[int]:
    """The division that is quickest of all, one part at least to each."""
    return divided(total, costs, [1] * len(costs), [total] * len(costs))


def near_division(parts: Sequence[int], costs: Sequence[float], within_s: float) -> list[int]:
    """The division that moves fewest parts and takes no longer than this; of those, the quickest.

    Args:
        parts: Of each domain now.
        costs: Seconds of a part in each domain.
        within_s: No less than what the best division takes.
    """
    total = sum(parts)
    can = [max(1, int(min(within_s / cost + _SAME, float(total)))) for cost in costs]
    keep = [min(now, high) for now, high in zip(parts, can, strict=True)]
    most = [max(high, low) for high, low in zip(can, keep, strict=True)]
    return divided(total, costs, keep, most) if sum(most) >= total else best_division(costs, total)


def partial_division(parts: Sequence[int], target: Sequence[int], costs: Sequence[float], moved: int) -> list[int]:
    """Move so many parts on the way from one division to another, those first that make the slowest quicker.

    Args:
        parts: Of each domain now.
        target: Of each at last; as many in all.
        costs: Seconds of a part in each domain.
        moved: No more than have to be moved in all.
    """
    made = list(parts)
    for gives in (True, False):
        rows = [index for index, (now, then) in enumerate(zip(parts, target, strict=True)) if (now > then) == gives]
        total = sum(parts[row] for row in rows) + (-moved if gives else moved)
        low, high = (target, parts) if gives else (parts, target)
        some = divided(total, [costs[row] for row in rows], [low[row] for row in rows], [high[row] for row in rows])
        for row, number in zip(rows, some, strict=True):
            made[row] = number
    return made


def moved_parts(parts: Sequence[int], other: Sequence[int]) -> int:
    """Parts that come to another domain."""
    return sum(max(0, then - now) for now, then in zip(parts, other, strict=True))


@dataclass(frozen=True, slots=True)
class Synchronisation:
    """How replicas agree.

    Attributes:
        kind: The collective.
        period: Steps from one exchange over domains to the next.
        order: The job's domains in the order of the ring, by number, the first one first; so a ring that begins
            elsewhere is the same one.
    """

    kind: "documents.CollectiveKind"
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
    way: Synchronisation


@dataclass(frozen=True, slots=True)
class Pace:
    """Steps a second of a way, by what the slowest domain takes for a step.

    Attributes:
        way: Which.
        inside_s: Seconds of exchange inside domains, each step.
        across_s: Seconds of exchange over them, each period.
        charge: How many times as many steps the way takes to the same loss.
    """

    way: Synchronisation
    inside_s: float
    across_s: float
    charge: float

    def rate(self, step_s: float) -> float:
        """Steps a second; zero where the way has no name, or where a domain never ends its parts."""
        if step_s == inf or self.way.kind == UNKNOWN_KIND:
            return 0.0
        hidden = OVERLAP * step_s
        if self.way.kind == LOW_COMMUNICATION:
            step = step_s + max(0.0, self.inside_s - hidden)
            lasts = self.way.period * step + max(0.0, self.across_s - max(0.0, hidden - self.inside_s))
            return self.way.period / lasts / self.charge
        return 1.0 / (step_s + max(0.0, self.inside_s + self.across_s - hidden))


class ThroughputModel:
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
        self.finite = [min(cost, ENDLESS_S) for cost in self.costs]
        self._paces: dict[Synchronisation, Pace] = {}

    def at(self, loads: Sequence[float]) -> "ThroughputModel":
        """The law at other loads."""
        return ThroughputModel(loads, self.part_s, self.fabric, self.work.gradient_bytes)

    def step_s(self, parts: Sequence[int]) -> float:
        """Seconds of the slowest domain for its parts."""
        return max(number * cost for number, cost in zip(parts, self.costs, strict=True))

    def pace(self, way: Synchronisation) -> Pace:
        """Steps a second of a way."""
        if way not in self._paces:
            candidate, domains = Candidate(way.kind, way.period), len(self.costs)
            inside_s = across_s = 0.0
            if way.kind != UNKNOWN_KIND:
                size = message(candidate, domains, self.fabric.nodes, self.work)
                hop = (
                    round_s(way.order, self.fabric.rates, self.fabric.latency_s, size) if domains > 1 else np.zeros(())
                )
                inside_s, across = exchange_s(candidate, self.fabric, self.work, hop)
                across_s = float(across)
            self._paces[way] = Pace(way, inside_s, across_s, _charge(way.kind, way.period, domains))
        return self._paces[way]

    def rate(self, policy: Policy) -> float:
        """Steps a second of a policy, less what rare exchanges cost in steps."""
        return self.pace(policy.way).rate(self.step_s(policy.parts))


@lru_cache(maxsize=4096)
def _charge(kind: "documents.CollectiveKind", period: int, domains: int) -> float:
    return step_charge(Candidate(kind, period), domains)


MAX_PERIOD = 100_000
"""Steps; the standard names none that is longer."""

_ALL_UP_TO, _PERIOD_RATIO = 64, 1.04
"""Periods up to which all are looked at, and by which factor they lie apart beyond."""


def best_pace(law: ThroughputModel, step_s: float) -> Pace:
    """The way of most steps a second, by what the slowest domain takes for a step.

    A faster division of parts is better by any way, so the division is found first and the way for it.
    """
    domains = len(law.costs)
    orders = {kind: _order(law, kind) for kind in (RING, HIERARCHICAL)}
    paces = [law.pace(Synchronisation(kind, 1, order)) for kind, order in orders.items()]
    if domains > 1:
        paces.append(
            law.pace(Synchronisation(LOW_COMMUNICATION, _period(paces[1], step_s, domains), orders[HIERARCHICAL]))
        )
    return max(paces, key=lambda pace: pace.rate(step_s))


def _order(law: ThroughputModel, kind: "documents.CollectiveKind") -> tuple[int, ...]:
    domains = len(law.costs)
    if domains == 1:
        return (0,)
    size = message(Candidate(kind), domains, law.fabric.nodes, law.work)
    return from_first(best_ring(law.fabric.rates, law.fabric.latency_s, size))


def _period(pace: Pace, step_s: float, domains: int) -> int:
    """The period of most steps a second: exchanges that are rarer cost less time and more steps."""
    periods, charges = _periods(domains)
    hidden = OVERLAP * step_s
    step = step_s + max(0.0, pace.inside_s - hidden)
    left = max(0.0, pace.across_s - max(0.0, hidden - pace.inside_s))
    return int(periods[np.argmin(charges * (step + left / periods))])


@lru_cache(maxsize=64)
def _periods(domains: int) -> tuple[Floats, Floats]:
    """Periods that are looked at, and how many times as many steps each takes to the same loss."""
    wider = np.geomspace(_ALL_UP_TO, MAX_PERIOD, int(np.log(MAX_PERIOD / _ALL_UP_TO) / np.log(_PERIOD_RATIO)))
    periods = np.unique(np.concatenate([np.arange(1.0, _ALL_UP_TO), np.rint(wider)]))
    return periods, penalty(np.array(float(domains)), periods)
