"""How tests look at a world: its deliveries in one list, and the signals of some nodes in some seconds."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.telemetry import Incident, World

MOST_LATE = 8
"""Seconds after the end within which everything has been delivered."""


def named(label: str) -> str:
    """Identifier of a run."""
    return f"run-{label}"


class Arrival(NamedTuple):
    """A sample that is delivered."""

    second: int
    domain: str
    observed: float
    sample: Mapping[str, Any]

    @property
    def node(self) -> str:
        """Node that it is about."""
        return str(self.sample["subject"])

    @property
    def key(self) -> tuple[str, str | None, float]:
        """Node, device and instant."""
        return self.node, self.sample.get("device"), self.observed


def arrivals(world: World) -> Iterator[Arrival]:
    """Everything that is delivered, in its order."""
    for second in range(world.scale.total + MOST_LATE):
        for delivery in world.deliveries(second):
            for observed, sample in delivery.samples:
                yield Arrival(second, delivery.domain, observed, sample)


def played(world: World) -> str:
    """Digest of all that a world says."""
    digest = sha256()
    for second in range(world.scale.total + MOST_LATE):
        told = [[delivery.domain, delivery.samples] for delivery in world.deliveries(second)]
        digest.update(json.dumps([told, dict(world.truth(second))]).encode())
    digest.update(repr((world.incidents, world.partitions, world.late_nodes)).encode())
    digest.update(json.dumps([world.domains, world.nodes, world.links, world.families]).encode())
    return digest.hexdigest()


def by_node(world: World) -> dict[str, list[Arrival]]:
    """The same by node."""
    found: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals(world):
        found[arrival.node].append(arrival)
    return found


def families(world: World) -> dict[str, list[str]]:
    """Family of each node that has one, itself included."""
    nodes = {body["compute_identifier"]: str(body["id"]) for body in world.nodes}
    return {
        nodes[urn]: [nodes[other] for other in body["members"]] for body in world.families for urn in body["members"]
    }


def spells(world: World) -> dict[str, list[tuple[float, float, str, Incident | None]]]:
    """Begin, end and state of each stretch of time in which a node keeps its state, and the incident that began it."""
    nodes = [str(body["id"]) for body in world.nodes] + [str(body["id"]) for _, body in world.late_nodes]
    changes: dict[str, list[Incident]] = {node: [] for node in nodes}
    for incident in world.incidents:
        changes[incident.node].append(incident)
    first = world.truth(world.scale.total)  # of those that never change
    found = {}
    for node, its in changes.items():
        begins = [0.0, *(incident.onset for incident in its), float(world.scale.total)]
        states = [its[0].before if its else first[node], *(incident.after for incident in its)]
        found[node] = [
            (begins[place], begins[place + 1], state, its[place - 1] if place else None)
            for place, state in enumerate(states)
        ]
    return found


def mean(world: World, node: str, measure: str, since: float, until: float) -> float:
    """Mean of a signal over the samples whose second lies within a stretch of time."""
    return float(_within(world, node, measure, since, until).mean())


def usual(world: World, node: str, measure: str, since: float, until: float) -> float:
    """The same without seconds of less than half the median, which belong to checkpoints and evaluations."""
    values = _within(world, node, measure, since, until)
    return float(values[values >= np.median(values) / 2].mean())


def _within(world: World, node: str, measure: str, since: float, until: float) -> NDArray[np.float32]:
    instants = world.instants(node)
    return world.signal(node, measure)[(instants - 1 >= since) & (instants <= until)]
