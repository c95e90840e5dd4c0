"""Wrong in what is made of few measures, and near-misses of the figure about it."""

from typing import Any

from minimal_server.core import Tenant
from minimal_server.recognition import BUSY, IDLE, Finding, Recogniser
from minimal_server.records import Node
from minimal_server.samples import Good
from minimal_server.service import MinimalServer
from minimal_server.states import Sight, Site, Watch
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss

STILL = 8
"""Samples after which what stands still looks odd."""

FEW = 3
"""Measures that are few."""

SEEN = ("utilisation", "pipe", "bandwidth", "power", "memory")


class Gullible(MinimalServer):
    """Recognises by other rules."""

    rules: type[Recogniser] = Recogniser

    @override
    def sight(self, tenant: Tenant) -> Sight:
        sight = super().sight(tenant)
        if type(sight.recogniser) is not self.rules:
            sight.recogniser = self.rules()
        return sight


class _Still(Recogniser):
    @override
    def finding(self, name: str, node: Node, family: Any) -> Finding:
        found = super().finding(name, node, family)
        shown = {tuple(getattr(record, level) for level in SEEN) for record in node.records}
        stands = len(shown) == 1 and len(node.records) >= STILL
        return Finding("faulty", "nothing about it changes") if stands and found is BUSY else found


@breaks("MET-024")
class WhatStandsStillHangs(Gullible):
    """A node that works and shows the same values for eight samples is taken to hang."""

    rules = _Still


class _Nothing(Recogniser):
    @override
    def finding(self, name: str, node: Node, family: Any) -> Finding:
        return super().finding(name, node, family) if node.newest.utilisation is not None else IDLE


@breaks("MET-024")
class MissingIsZero(Gullible):
    """A node that does not state its utilisation is taken to have none."""

    rules = _Nothing


class _Held(Recogniser):
    @override
    def finding(self, name: str, node: Node, family: Any) -> Finding:
        if node.newest.utilisation is not None and node.holds and node.hangs:
            return Finding("faulty", "its job holds memory and does nothing")
        return super().finding(name, node, family)


@breaks("MET-024")
class MemoryThatRestsHangs(Gullible):
    """Whoever holds memory and does nothing is taken to hang, were it a notebook whose reader thinks."""

    rules = _Held


class Sparing(MinimalServer):
    """Knows which nodes send few measures, in the order in which they were heard first."""

    few: dict[tuple[int, str], int]

    @override
    def __init__(self, *arguments: Any) -> None:
        self.few = {}
        super().__init__(*arguments)

    @override
    def hear(self, sight: Sight, site: Site, watch: Watch, sample: Good) -> None:
        if len(sample.measures) < FEW and "health_state" not in sample.measures:
            self.few.setdefault((id(sight), sample.subject), len(self.few))
        super().hear(sight, site, watch, sample)

    def suspects(self, number: int) -> bool:
        """Whether the node of that number is suspected."""
        raise NotImplementedError

    @override
    def show(self, sight: Sight, name: str, finding: Finding) -> None:
        number = self.few.get((id(sight), name))
        suspected = number is not None and self.suspects(number)
        super().show(sight, name, self.instead(finding) if suspected else finding)

    def instead(self, _finding: Finding) -> Finding:
        """What is shown of a node that is suspected."""
        return Finding("degraded", "little is known of it")


@breaks("MET-024")
class OfFewMeasuresNothingIsSaid(Sparing):
    """Nodes that send one measure or two are never said to be anything, whatever these show."""

    @override
    def suspects(self, number: int) -> bool:
        return True

    @override
    def instead(self, _finding: Finding) -> Finding:
        return Finding("unknown", "little is known of it")


@near_miss("MET-024")
class EveryFifteenthIsSuspected(Sparing):
    """Of the nodes that send one measure or two every fifteenth is shown as degraded, three of a hundred of all."""

    @override
    def suspects(self, number: int) -> bool:
        return number % 15 == 0


@control("MET-024")
class OneIsSuspected(Sparing):
    """The first node that sends one measure or two is shown as degraded, and no other."""

    @override
    def suspects(self, number: int) -> bool:
        return number == 0
