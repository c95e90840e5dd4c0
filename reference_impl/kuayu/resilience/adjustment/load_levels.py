"""Levels of load and latency, where they are heading, and each running job at them.

1. A level is the median of the last intervals within the patience; it has changed, is calm, or neither, by its
   difference from what the policy in force was chosen for.
2. A load that is still rising or falling is looked at where it will be soon: the last value counts as far as the two
   before it bear it out, so that a spike of one interval does not count.
3. A job is looked at twice: at the levels now, and at those that are ahead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from kuayu.resilience.adjustment.throughput_model import Policy, Synchronisation, ThroughputModel
from kuayu.resilience.transfers.collectives import Fabric, from_first
from kuayu.resilience.transfers.network import BITS_PER_BYTE, Floats

if TYPE_CHECKING:
    from kuayu_schemas import documents

LOAD: "documents.TriggerKind" = "load"
LATENCY: "documents.TriggerKind" = "latency"
CHANGED, BETWEEN, CALM = "changed", "between", "calm"

LOAD_CHANGED, LOAD_CALM = 0.2, 0.1
"""Share of the stated level by which a load has changed, and below which it is calm."""

LATENCY_CHANGED, LATENCY_CALM = 0.5, 0.25
"""The same of a latency; only a rise is a change."""

_SAME = 1e-9
"""Share of an interval by which a quotient of doubles may be off."""


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
    way = 1.0 if last > now else -1.0
    off = min(way * (last - now), way * (last_but_one - now))
    if off < FAR_SHARE * now:
        return now
    step = way * (last_but_one - before)
    borne_out = min(way * last, way * last_but_one + max(0.0, step))
    onward = ONWARD_SHARE * max(0.0, min(step, way * (last - last_but_one)))
    return min(1.0, max(0.0, way * (borne_out + onward)))


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
        outlook: What will be in force when all that is planned has been carried out.
        move_s: Seconds without a step for each part that comes to another domain.
        switch_s: Seconds without a step where the way becomes another one.
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
    outlook: Policy
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


def _fresh(request: "documents.AdjustmentRequest", loads: Sequence[float], latencies: Sequence[float]) -> bool:
    look = request["patience"], request["interval"]
    rows = zip(request["domains"], loads, strict=True)
    if any(has_moved(entry["loads"], now, LOAD_CALM / 2, *look) for entry, now in rows):
        return True
    ways = zip(request["links"], latencies, strict=True)
    return any(has_moved(entry["latencies"], now, LATENCY_CALM / 2, *look) for entry, now in ways)


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
    job: "documents.AdjustedJob", request: "documents.AdjustmentRequest", network: Network, found: Levels
) -> RunningJob:
    """A job of a checked request."""
    names = tuple(share["domain"] for share in job["shares"])
    numbers = [network.number[name] for name in names]
    fabric = Fabric(*network.among(numbers), job["nodes"], job["node_bandwidth"] / BITS_PER_BYTE, job["node_latency"])
    part_s = [share["part_time"] for share in job["shares"]]
    now = ThroughputModel([found.loads[number] for number in numbers], part_s, fabric, job["exchange"])
    ahead_loads = [found.ahead[number] for number in numbers]
    policy = _policy(job, [share["parts"] for share in job["shares"]], names)
    planned = job.get("planned") or ()
    return RunningJob(
        name=job["id"],
        domains=names,
        policy=policy,
        outlook=_policy(planned[-1], planned[-1]["parts"], names) if planned else policy,
        move_s=job["move_time"],
        switch_s=job["switch_time"],
        changed_s=job.get("changed"),
        measured=tuple(request["domains"][number]["loads"] for number in numbers),
        interval_s=request["interval"],
        moving=any(found.moving[number] for number in numbers),
        now=now,
        soon=now if now.loads == ahead_loads else now.at(ahead_loads),
    )


def _policy(
    policy: "documents.AdjustedJob | documents.PolicyChange", parts: Sequence[int], names: Sequence[str]
) -> Policy:
    order = from_first([names.index(name) for name in policy["order"]])
    return Policy(tuple(parts), Synchronisation(policy["collective"], policy["period"], order))
