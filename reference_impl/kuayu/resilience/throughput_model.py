"""The throughput model: load and latency, where they are heading, and how many steps a second a job makes at them.

1. A level is the median of the last intervals within the patience; it has changed, is calm, or neither, by its
   difference from what the policy in force was chosen for.
2. A load that is still rising or falling is looked at where it will be soon: the last value counts as far as the two
   before it bear it out, so that a spike of one interval does not count. A job is looked at twice: at the levels now,
   and at those that are ahead.
3. The slowest domain gives the time of a step: its parts, times the seconds of a part, over the share of it that its
   load leaves.
4. An exchange hides behind a share of a step; what is left of it is added (``kuayu.resilience.collectives``).
   Exchanges that are rarer cost less time and more steps to the same loss, which are charged.
5. A division is best when no domain could give a part away and the slowest be done sooner; it is found by the level of
   time that takes all parts, and then part by part.
6. A faster division is better with any collective, so the division is found first, and the collective, its period and
   the order of domains for it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import ceil, inf
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from kuayu.resilience.collectives import (
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
from kuayu.resilience.network import BITS_PER_BYTE, Floats
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
    parts_then = list(parts)
    for gives in (True, False):
        rows = [index for index, (now, then) in enumerate(zip(parts, target, strict=True)) if (now > then) == gives]
        total = sum(parts[row] for row in rows) + (-moved if gives else moved)
        low, high = (target, parts) if gives else (parts, target)
        some = divided(total, [costs[row] for row in rows], [low[row] for row in rows], [high[row] for row in rows])
        for row, number in zip(rows, some, strict=True):
            parts_then[row] = number
    return parts_then


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
        synchronisation: By which replicas agree.
    """

    parts: tuple[int, ...]
    synchronisation: Synchronisation


@dataclass(frozen=True, slots=True)
class Pace:
    """Steps a second of a synchronisation, by what the slowest domain takes for a step.

    Attributes:
        synchronisation: Which.
        inside_s: Seconds of exchange inside domains, each step.
        across_s: Seconds of exchange over them, each period.
        charge: How many times as many steps the synchronisation takes to the same loss.
    """

    synchronisation: Synchronisation
    inside_s: float
    across_s: float
    charge: float

    def rate(self, step_s: float) -> float:
        """Steps a second; zero where the synchronisation has no name, or where a domain never ends its parts."""
        if step_s == inf or self.synchronisation.kind == UNKNOWN_KIND:
            return 0.0
        hidden = OVERLAP * step_s
        if self.synchronisation.kind == LOW_COMMUNICATION:
            step = step_s + max(0.0, self.inside_s - hidden)
            lasts = self.synchronisation.period * step + max(0.0, self.across_s - max(0.0, hidden - self.inside_s))
            return self.synchronisation.period / lasts / self.charge
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

    def pace(self, synchronisation: Synchronisation) -> Pace:
        """Steps a second of a way."""
        if synchronisation not in self._paces:
            candidate, domains = Candidate(synchronisation.kind, synchronisation.period), len(self.costs)
            inside_s = across_s = 0.0
            if synchronisation.kind != UNKNOWN_KIND:
                size = message(candidate, domains, self.fabric.nodes, self.work)
                hop = (
                    round_s(synchronisation.order, self.fabric.rates, self.fabric.latency_s, size)
                    if domains > 1
                    else np.zeros(())
                )
                inside_s, across = exchange_s(candidate, self.fabric, self.work, hop)
                across_s = float(across)
            self._paces[synchronisation] = Pace(
                synchronisation, inside_s, across_s, _charge(synchronisation.kind, synchronisation.period, domains)
            )
        return self._paces[synchronisation]

    def rate(self, policy: Policy) -> float:
        """Steps a second of a policy, less what rare exchanges cost in steps."""
        return self.pace(policy.synchronisation).rate(self.step_s(policy.parts))


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


LOAD: "documents.TriggerKind" = "load"
LATENCY: "documents.TriggerKind" = "latency"
CHANGED, BETWEEN, CALM = "changed", "between", "calm"

LOAD_CHANGED, LOAD_CALM = 0.2, 0.1
"""Share of the stated level by which a load has changed, and below which it is calm."""

LATENCY_CHANGED, LATENCY_CALM = 0.5, 0.25
"""The same of a latency; only a rise is a change."""


def looked_at(patience_s: float, interval_s: float, measured: int) -> int:
    """How many of the last intervals the level now is the median of, one at least."""
    return max(1, ceil(min(patience_s / interval_s - _SAME, float(measured))))


def level(values: Sequence[float], patience_s: float, interval_s: float) -> float:
    """The level now.

    Args:
        values: The mean of each interval, oldest first, one at least.
        patience_s: Seconds that are looked at.
        interval_s: Seconds of an interval.
    """
    return float(median(values[-looked_at(patience_s, interval_s, len(values)) :]))


def of_load(before: float, now: float) -> str:
    """Whether a load has changed, is calm, or neither."""
    off = abs(now - before)
    if now == before or off < LOAD_CALM * before:
        return CALM
    return CHANGED if off >= LOAD_CHANGED * before else BETWEEN


def of_latency(before: float, now: float) -> str:
    """Whether a latency has changed, is calm, or neither."""
    if now == before or abs(now - before) < LATENCY_CALM * before:
        return CALM
    return CHANGED if now >= (1 + LATENCY_CHANGED) * before else BETWEEN


FAR_SHARE = 0.025
"""Share of a level that the last values have to lie off it, on one side, before they count for more than it."""

ONWARD_SHARE = 0.5
"""Share of the last step that a load which moves steadily is taken to move on by."""

UNSETTLED_SHARE = 0.06
"""Share of a load by which it differs from the interval before while it is still on its way."""

RECENT_PATIENCES = 2
"""Times the patience within which a movement is fresh."""

_MIN_VALUES = 3
"""Values that tell a movement from a spike."""


def ahead(values: Sequence[float], now: float, patience_s: float, interval_s: float) -> float:
    """What a load will be soon: the level now, or nearer to the last values where both lie off it on one side.

    The last value counts as far as the two before it bear it out, so that a spike of one interval does not count; and
    where all three lie on the way, the load is taken to go on a little.

    Args:
        values: The mean of each interval, oldest first.
        now: The level now.
        patience_s: Seconds that are looked at.
        interval_s: Seconds of an interval.
    """
    if looked_at(patience_s, interval_s, len(values)) < _MIN_VALUES:
        return now
    before, last_but_one, last = values[-_MIN_VALUES:]
    direction = 1.0 if last > now else -1.0
    off = min(direction * (last - now), direction * (last_but_one - now))
    if off < FAR_SHARE * now:
        return now
    step = direction * (last_but_one - before)
    borne_out = min(direction * last, direction * last_but_one + max(0.0, step))
    onward = ONWARD_SHARE * max(0.0, min(step, direction * (last - last_but_one)))
    return min(1.0, max(0.0, direction * (borne_out + onward)))


def is_moving(values: Sequence[float]) -> bool:
    """Whether a load is still on its way, by its last two intervals."""
    return len(values) > 1 and abs(values[-1] - values[-2]) > UNSETTLED_SHARE * max(values[-2:])


def has_moved(values: Sequence[float], now: float, share: float, patience_s: float, interval_s: float) -> bool:
    """Whether a load or a latency was another one a short while ago, by more than a share of itself."""
    many = looked_at(patience_s, interval_s, len(values))
    before = values[-(RECENT_PATIENCES + 1) * many : -RECENT_PATIENCES * many]
    return bool(before) and abs(now - median(before)) > share * median(before)


@dataclass(frozen=True, slots=True)
class Levels:
    """Loads and latencies now, and how they stand to those that policies in force were chosen for.

    Attributes:
        loads: Level now of each domain, in the order of the request.
        ahead: What each will be soon, as far as the last values tell.
        latencies_s: Level now of each link.
        moving: Whether each load is still on its way.
        coming: Whether a load is on its way to count as changed.
        fresh: Whether any load or latency was another one a short while ago.
        triggers: What has changed, as the answer says it.
        calm: Whether all is.
    """

    loads: list[float]
    ahead: list[float]
    latencies_s: list[float]
    moving: list[bool]
    coming: bool
    fresh: bool
    triggers: "list[documents.AdjustmentTrigger]"
    calm: bool


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job.

    Attributes:
        name: Of the job.
        domains: Names of those that it runs in.
        policy: In force.
        planned_policy: What will be in force when all that is planned has been carried out.
        move_s: Seconds without a step for each part that comes to another domain.
        switch_s: Seconds without a step where the synchronisation becomes another one.
        changed_s: Seconds since a change came into force; none ever did where it is None.
        measured: Loads of its domains, oldest first.
        interval_s: Seconds of each.
        moving: Whether the load of one of its domains is still on its way.
        now: Its law at the levels now.
        soon: Its law at the levels that are ahead.
    """

    name: str
    domains: tuple[str, ...]
    policy: Policy
    planned_policy: Policy
    move_s: float
    switch_s: float
    changed_s: float | None
    measured: tuple[Sequence[float], ...]
    interval_s: float
    moving: bool
    now: ThroughputModel
    soon: ThroughputModel


def levels_of(request: "documents.AdjustmentRequest") -> Levels:
    """Levels now, and which have changed."""
    look = request["patience"], request["interval"]
    loads = [level(domain["loads"], *look) for domain in request["domains"]]
    latencies = [level(domain["latencies"], *look) for domain in request["links"]]
    stands = []
    triggers: list[documents.AdjustmentTrigger] = []
    for domain, now in zip(request["domains"], loads, strict=True):
        stands.append(of_load(domain["level"], now))
        if stands[-1] == CHANGED:
            triggers.append({"kind": LOAD, "domain": domain["id"], "before": domain["level"], "now": now})
    for link, now in zip(request["links"], latencies, strict=True):
        stands.append(of_latency(link["level"], now))
        if stands[-1] == CHANGED:
            source, target = link["source"], link["target"]
            triggers.append({"kind": LATENCY, "domain": source, "target": target, "before": link["level"], "now": now})
    rows = list(zip(request["domains"], loads, strict=True))
    soon = [ahead(domain["loads"], now, *look) for domain, now in rows]
    coming = any(of_load(row["level"], then) == CHANGED for (row, _), then in zip(rows, soon, strict=True))
    return Levels(
        loads,
        soon,
        latencies,
        [is_moving(domain["loads"]) for domain in request["domains"]],
        coming,
        _fresh(request, loads, latencies),
        triggers,
        all(stand == CALM for stand in stands),
    )


class Network:
    """Links of a request by number of domain."""

    def __init__(self, request: "documents.AdjustmentRequest", latencies_s: Sequence[float]) -> None:
        self.number = {domain["id"]: index for index, domain in enumerate(request["domains"])}
        count = len(self.number)
        self.rates: Floats = np.zeros((count, count))
        self.latency_s: Floats = np.zeros((count, count))
        for link, latency in zip(request["links"], latencies_s, strict=True):
            pair = self.number[link["source"]], self.number[link["target"]]
            self.rates[pair] = link["bandwidth"] / BITS_PER_BYTE
            self.latency_s[pair] = latency

    def among(self, numbers: Sequence[int]) -> tuple[Floats, Floats]:
        """Bytes a second and seconds of latency from each of some domains to each other."""
        cells = np.ix_(numbers, numbers)
        return self.rates[cells], self.latency_s[cells]


def running_job(
    job: "documents.AdjustedJob", request: "documents.AdjustmentRequest", network: Network, levels: Levels
) -> RunningJob:
    """A job of a checked request."""
    names = tuple(share["domain"] for share in job["shares"])
    numbers = [network.number[name] for name in names]
    fabric = Fabric(*network.among(numbers), job["nodes"], job["node_bandwidth"] / BITS_PER_BYTE, job["node_latency"])
    part_s = [share["part_time"] for share in job["shares"]]
    now = ThroughputModel([levels.loads[number] for number in numbers], part_s, fabric, job["exchange"])
    ahead_loads = [levels.ahead[number] for number in numbers]
    policy = _policy_in_force(job, [share["parts"] for share in job["shares"]], names)
    planned = job.get("planned") or ()
    return RunningJob(
        name=job["id"],
        domains=names,
        policy=policy,
        planned_policy=_policy_in_force(planned[-1], planned[-1]["parts"], names) if planned else policy,
        move_s=job["move_time"],
        switch_s=job["switch_time"],
        changed_s=job.get("changed"),
        measured=tuple(request["domains"][number]["loads"] for number in numbers),
        interval_s=request["interval"],
        moving=any(levels.moving[number] for number in numbers),
        now=now,
        soon=now if now.loads == ahead_loads else now.at(ahead_loads),
    )


def _level(total: int, costs: Sequence[float], least: Sequence[int], most: Sequence[int]) -> float:
    """Seconds after which domains would have done so many parts, were they as fine as sand."""
    rows = list(zip(costs, least, most, strict=True))
    knees = sorted({number * cost for cost, low, high in rows for number in (low, high)})

    def done(seconds: float) -> float:
        return sum(min(float(high), max(float(low), seconds / cost)) for cost, low, high in rows)

    knee = min(bisect_left(knees, float(total), key=done), len(knees) - 1)
    if knee == 0:
        return knees[0]
    before = knees[knee - 1]
    middle = before + (knees[knee] - before) / 2.0  # no domain begins or ends between two turns
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


@lru_cache(maxsize=4096)
def _charge(kind: "documents.CollectiveKind", period: int, domains: int) -> float:
    return step_charge(Candidate(kind, period), domains)


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


def _fresh(request: "documents.AdjustmentRequest", loads: Sequence[float], latencies: Sequence[float]) -> bool:
    look = request["patience"], request["interval"]
    rows = zip(request["domains"], loads, strict=True)
    if any(has_moved(entry["loads"], now, LOAD_CALM / 2, *look) for entry, now in rows):
        return True
    links = zip(request["links"], latencies, strict=True)
    return any(has_moved(entry["latencies"], now, LATENCY_CALM / 2, *look) for entry, now in links)


def _policy_in_force(
    policy: "documents.AdjustedJob | documents.PolicyChange", parts: Sequence[int], names: Sequence[str]
) -> Policy:
    order = from_first([names.index(name) for name in policy["order"]])
    return Policy(tuple(parts), Synchronisation(policy["collective"], policy["period"], order))
