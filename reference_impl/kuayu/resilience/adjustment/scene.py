"""What a request to adjust jobs says: levels, what has changed, and each job with its policy and its law."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kuayu.resilience.adjustment import levels
from kuayu.resilience.adjustment.law import Law, Policy, Way
from kuayu.resilience.adjustment.trends import ahead, has_moved, is_moving
from kuayu.resilience.transfers.collectives import Fabric
from kuayu.resilience.transfers.options import turned
from kuayu.resilience.transfers.scene import Floats

Plain = Mapping[str, Any]

BITS = 8.0
"""In a byte."""


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
    triggers: list[dict[str, Any]]
    calm: bool


@dataclass(frozen=True, slots=True)
class Running:
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
    now: Law
    soon: Law


def levels_of(request: Plain) -> Levels:
    """Levels now, and which have changed."""
    look = request["patience"], request["interval"]
    loads = [levels.level(each["loads"], *look) for each in request["domains"]]
    latencies = [levels.level(each["latencies"], *look) for each in request["links"]]
    stands = []
    triggers: list[dict[str, Any]] = []
    for domain, now in zip(request["domains"], loads, strict=True):
        stands.append(levels.of_load(domain["level"], now))
        if stands[-1] == levels.CHANGED:
            triggers.append({"kind": levels.LOAD, "domain": domain["id"], "before": domain["level"], "now": now})
    for link, now in zip(request["links"], latencies, strict=True):
        stands.append(levels.of_latency(link["level"], now))
        if stands[-1] == levels.CHANGED:
            ends = {"domain": link["source"], "target": link["target"]}
            triggers.append({"kind": levels.LATENCY, **ends, "before": link["level"], "now": now})
    rows = list(zip(request["domains"], loads, strict=True))
    soon = [ahead(each["loads"], now, *look) for each, now in rows]
    coming = any(
        levels.of_load(row["level"], then) == levels.CHANGED for (row, _), then in zip(rows, soon, strict=True)
    )
    return Levels(
        loads,
        soon,
        latencies,
        [is_moving(each["loads"]) for each in request["domains"]],
        coming,
        _fresh(request, loads, latencies),
        triggers,
        all(stand == levels.CALM for stand in stands),
    )


def _fresh(request: Plain, loads: Sequence[float], latencies: Sequence[float]) -> bool:
    look = request["patience"], request["interval"]
    rows = zip(request["domains"], loads, strict=True)
    if any(has_moved(each["loads"], now, levels.LOAD_CALM / 2, *look) for each, now in rows):
        return True
    ways = zip(request["links"], latencies, strict=True)
    return any(has_moved(each["latencies"], now, levels.LATENCY_CALM / 2, *look) for each, now in ways)


class Network:
    """Links of a request by number of domain."""

    def __init__(self, request: Plain, latencies_s: Sequence[float]) -> None:
        self.number = {each["id"]: at for at, each in enumerate(request["domains"])}
        count = len(self.number)
        self.rates: Floats = np.zeros((count, count))
        self.latency_s: Floats = np.zeros((count, count))
        for link, latency in zip(request["links"], latencies_s, strict=True):
            here = self.number[link["source"]], self.number[link["target"]]
            self.rates[here] = link["bandwidth"] / BITS
            self.latency_s[here] = latency

    def among(self, numbers: Sequence[int]) -> tuple[Floats, Floats]:
        """Bytes a second and seconds of latency from each of some domains to each other."""
        here = np.ix_(numbers, numbers)
        return self.rates[here], self.latency_s[here]


def running(job: Plain, request: Plain, network: Network, found: Levels) -> Running:
    """A job of a checked request."""
    names = tuple(each["domain"] for each in job["shares"])
    numbers = [network.number[name] for name in names]
    fabric = Fabric(*network.among(numbers), job["nodes"], job["node_bandwidth"] / BITS, job["node_latency"])
    part_s = [each["part_time"] for each in job["shares"]]
    now = Law([found.loads[each] for each in numbers], part_s, fabric, job["exchange"])
    ahead_loads = [found.ahead[each] for each in numbers]
    policy = _policy(job, [each["parts"] for each in job["shares"]], names)
    planned = job.get("planned") or ()
    return Running(
        name=job["id"],
        domains=names,
        policy=policy,
        outlook=_policy(planned[-1], planned[-1]["parts"], names) if planned else policy,
        move_s=job["move_time"],
        switch_s=job["switch_time"],
        changed_s=job.get("changed"),
        measured=tuple(request["domains"][each]["loads"] for each in numbers),
        interval_s=request["interval"],
        moving=any(found.moving[each] for each in numbers),
        now=now,
        soon=now if now.loads == ahead_loads else now.at(ahead_loads),
    )


def _policy(told: Plain, parts: Sequence[int], names: Sequence[str]) -> Policy:
    order = turned([names.index(name) for name in told["order"]])
    return Policy(tuple(parts), Way(told["collective"], told["period"], order))
