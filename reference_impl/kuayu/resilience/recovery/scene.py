"""What a failover plan follows from: jobs with broken replicas, what each still has, and which nodes are free.

Bytes, seconds and bytes a second; instants are seconds after the plan is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Plain = Mapping[str, Any]

BITS = 8.0
"""In a byte."""

SHORTEST, LONGEST = 1e-6, 1e12
"""Seconds that estimates reckon with, and bytes or bytes a second too: what lies beyond is as good as the bound."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A job with at least one broken replica.

    Attributes:
        name: Of the job.
        place: In the request, counted from nought.
        priority: Higher goes first.
        domain: Where it runs or ran last.
        replicas: How many it has when it is whole.
        least: With how few it can go on.
        nodes_each: Nodes of a replica.
        state_bytes: Of a replica's state, and of a checkpoint.
        node_rate: Bytes a second at which one replica gives its state to another.
        start_s: Until a replica that has its state can make a step.
        regroup_s: In which no step is made when replicas leave or join.
        copies: Domain and age in seconds of each copy.
        whole: Fit nodes of whole replicas, by number of replica.
        broken: Fit nodes of broken replicas that have nodes, by number of replica; maybe none are fit.
        unheard: How many of its nodes nothing is heard of.
        fenced_s: When all unreachable nodes are known to have stopped; None where that is not known.
    """

    name: str
    place: int
    priority: int
    domain: str
    replicas: int
    least: int
    nodes_each: int
    state_bytes: float
    node_rate: float
    start_s: float
    regroup_s: float
    copies: tuple[tuple[str, float], ...]
    whole: Mapping[int, Sequence[str]]
    broken: Mapping[int, Sequence[str]]
    unheard: int
    fenced_s: float | None

    @property
    def lacking(self) -> int:
        """Replicas that are broken."""
        return self.replicas - len(self.whole)

    @property
    def stands(self) -> bool:
        """Whether too few replicas are whole to make a step."""
        return len(self.whole) < self.least

    @property
    def left_over(self) -> int:
        """Fit nodes of broken replicas."""
        return sum(len(nodes) for nodes in self.broken.values())

    @property
    def fit(self) -> int:
        """Fit nodes that it holds."""
        return self.left_over + len(self.whole) * self.nodes_each


def broken_jobs(request: Plain) -> list[Broken]:
    """Jobs of a checked request that have a broken replica, in its order."""
    jobs = {job["id"]: place for place, job in enumerate(request["jobs"])}
    held: list[dict[int, list[Plain]]] = [{} for _ in jobs]
    for node in request["nodes"]:
        place = jobs.get(node.get("job", ""))
        if place is not None:
            held[place].setdefault(node["replica"], []).append(node)
    found = []
    for place, job in enumerate(request["jobs"]):
        each = _standing(job, place, held[place])
        if each.lacking:
            found.append(each)
    return found


def free_nodes(request: Plain) -> dict[str, list[str]]:
    """Nodes that are fit and that no job holds, by domain."""
    found: dict[str, list[str]] = {}
    for node in request["nodes"]:
        if node["condition"] == "fit" and node.get("job") is None:
            found.setdefault(node["domain"], []).append(node["id"])
    return found


def reckoned(value: float) -> float:
    """A positive figure as estimates take it, so that none of them overflows."""
    return min(max(value, SHORTEST), LONGEST)


def _standing(job: Plain, place: int, held: Mapping[int, Sequence[Plain]]) -> Broken:
    fit = {number: [node["id"] for node in nodes if node["condition"] == "fit"] for number, nodes in held.items()}
    whole = {number: nodes for number, nodes in fit.items() if len(nodes) == job["nodes_each"]}
    unheard = [node for nodes in held.values() for node in nodes if node["condition"] not in {"fit", "failed"}]
    fences = [node.get("fenced_in") for node in unheard]
    known = [fence for fence in fences if fence is not None]
    return Broken(
        name=job["id"],
        place=place,
        priority=job["priority"],
        domain=job["domain"],
        replicas=job["replicas"],
        least=job["least_replicas"],
        nodes_each=job["nodes_each"],
        state_bytes=reckoned(job["state_size"]),
        node_rate=reckoned(job["node_bandwidth"] / BITS),
        start_s=min(job["start_time"], LONGEST),
        regroup_s=min(job["regroup_time"], LONGEST),
        copies=tuple((copy["domain"], min(copy["age"], LONGEST)) for copy in job["copies"]),
        whole=whole,
        broken={number: nodes for number, nodes in fit.items() if number not in whole},
        unheard=len(unheard),
        fenced_s=max(known, default=0.0) if len(known) == len(fences) else None,
    )
