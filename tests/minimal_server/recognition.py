"""What goes on at nodes that answer, told by plain rules from their newest samples.

A test double: its rules know nothing of any node, but how far something may stray before it counts was settled on
worlds such as the suite plays. It is no yardstick for anybody.

A job is what holds memory. The members of a family that hold some run one job, in step: what differs while all of them
have become slower is the one that the others wait for. A node that shows work and does none is stuck, unless it waits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minimal_server.families import Family
from minimal_server.records import Make, Node


@dataclass(frozen=True, slots=True)
class Finding:
    """A state, and what it was told from."""

    state: str
    because: str


IDLE = Finding("idle", "no job holds its accelerators")
BUSY = Finding("busy", "its accelerators work")
UNSTATED = Finding("unknown", "its utilisation is not stated")
HUNG = Finding("faulty", "its job holds memory and does nothing any more")
RESTING = Finding("idle", "memory is held, and nothing is done with it")
STUCK = Finding("faulty", "it shows work and does none")
LOST = Finding("degraded", "a part of its accelerators is missing")
FAULTS = Finding("degraded", "faults come again and again")
SLOW = Finding("degraded", "slower than usual")
STRAGGLING = Finding("straggling", "its family has become slower, and it differs from the others")


@dataclass(slots=True)
class Recogniser:
    """Rules for all nodes of a tenant."""

    nodes: dict[str, Node] = field(default_factory=dict)
    families: dict[tuple[str, ...], Family] = field(default_factory=dict)
    rest: dict[Make, float] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    grouped: set[str] = field(default_factory=set)

    def arrange(self, makes: Mapping[str, Make], families: Iterable[Sequence[str]]) -> None:
        """Take note of what is registered."""
        for name in self.nodes.keys() - makes.keys():
            del self.nodes[name]
            self.findings.pop(name, None)
        for name, node in self.nodes.items():
            node.make = makes[name]
            node.parts = {device: part for device, part in node.parts.items() if device in node.make.devices}
        known = self.families
        self.families = {key: known.get(key) or Family(key) for key in map(tuple, families)}
        self.grouped = {name for key in self.families for name in key}

    def hear(self, name: str, make: Make, device: str, moment: int, values: Mapping[str, Any], behind: float) -> None:
        """Take a sample of a node of which samples are late by ``behind`` milliseconds."""
        node = self.nodes.get(name)
        if node is None:
            node = self.nodes[name] = Node(make)
        node.behind = behind
        node.hear(device, moment, values)
        self.fresh.add(name)

    def recognise(self, answering: Iterable[str]) -> dict[str, Finding]:
        """State of each node of which something has come."""
        there = {name for name in answering if name in self.nodes}
        self.findings = {name: finding for name, finding in self.findings.items() if name in there}
        for name in self.fresh & there:
            self._rest(self.nodes[name])
        touched, together = set(self.fresh), {}
        for family in self.families.values():
            if self.fresh.isdisjoint(family.members):
                continue
            touched.update(family.members)
            active = {name: self.nodes[name] for name in family.members if name in there and self.nodes[name].holds}
            family.look(active)
            if len(active) > 1:
                together.update(dict.fromkeys(active, family))
        for name in touched & there:
            node, family_of = self.nodes[name], together.get(name)
            finding = self.findings[name] = self.finding(name, node, family_of)
            node.fine = finding is BUSY and (family_of is None or family_of.fine)
        self.fresh.clear()
        return self.findings

    def _rest(self, node: Node) -> None:
        """Learn the power that devices of a make draw without a job."""
        power = node.newest.power
        if power is not None and not node.holds and not node.lost:
            before = self.rest.get(node.make, power)
            self.rest[node.make] = before + (power - before) / 32
        node.rest = self.rest.get(node.make)

    def finding(self, name: str, node: Node, family: Family | None) -> Finding:
        """State of one node; ``family`` is the one with which it runs a job."""
        if node.newest.utilisation is None:
            return UNSTATED
        if node.holds:
            node.hung = node.hangs and (node.hung or node.stopped or (family is not None and family.waits(name)))
            if node.hung:
                return HUNG
            if node.sticks(alone=name not in self.grouped):
                return STUCK
            if family is not None and family.straggler == name:
                return STRAGGLING
        if node.lost:
            return LOST
        if node.recurring:
            return FAULTS
        if name not in self.grouped and node.holds and not node.hangs and node.slows():
            return SLOW
        if node.rests:
            return RESTING
        return BUSY if node.holds else IDLE
