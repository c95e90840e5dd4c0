"""Wrong in what the graph holds, in patches of it, and in links."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from minimal_server.core import Answer, Json, Request, Tenant, instant
from minimal_server.graph import PARTS, Document, Graph, Scope
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks

Vertices = dict[str, dict[str, Json]]


@breaks("MET-017")
class GraphsAreForAllTenants(MinimalServer):
    """A tenant's graph holds the nodes of every other tenant as well."""

    @override
    def vertices(self, tenant: Tenant) -> Vertices:
        own = super().vertices(tenant)
        others = [super(GraphsAreForAllTenants, self).vertices(other) for other in self.tenants.values()]
        return {**own, "nodes": {**{n: v for other in others for n, v in other["nodes"].items()}, **own["nodes"]}}


@breaks("MET-017", "MET-018")
class CountsLagBehind(MinimalServer):
    """A domain counts a node a minute after the graph holds it in its state."""

    @override
    def domain_vertex(self, tenant: Tenant, name: str, nodes: list[Json]) -> Json:
        counted = instant(self.moment - 60_000)
        return super().domain_vertex(tenant, name, [node for node in nodes if node["since"] <= counted])


@breaks("MET-017")
class UnknownNodesAreNotCounted(MinimalServer):
    """Nodes of which nothing is known stand in no count."""

    @override
    def domain_vertex(self, tenant: Tenant, name: str, nodes: list[Json]) -> Json:
        vertex = super().domain_vertex(tenant, name, nodes)
        return {**vertex, "nodes": {**vertex["nodes"], "unknown": 0}}


@breaks("MET-017")
class VerticesStandInOppositeOrder(MinimalServer):
    """Vertices stand in the opposite order of identifier."""

    @override
    def excerpt(self, graph: Graph, scope: Scope) -> Document:
        return {part: vertices[::-1] for part, vertices in super().excerpt(graph, scope).items()}


@breaks("MET-017", "MET-019")
class DigestsAreOfJsonAsItIsWritten(MinimalServer):
    """Digests are of the JSON that is sent and not of its canonical form."""

    @override
    def give(self, graph: Graph, document: Document) -> str:
        name = "sha256:" + hashlib.sha256(json.dumps(document).encode()).hexdigest()
        graph.given[name] = document
        return name


@dataclass(frozen=True)
class Neighbourhood(Scope):
    """A domain and those that links lead to from it."""

    neighbours: frozenset[str] = frozenset()

    @override
    def seen(self, part: str, vertex: Json | None) -> Json | None:
        if part == "domains" and vertex is not None and vertex["id"] in self.neighbours:
            return vertex
        return super().seen(part, vertex)


@breaks("MET-017", "MET-018")
class NeighboursAreShownToo(MinimalServer):
    """The graph of one domain holds the domains that links lead to from it, and its stream those of its begin."""

    @override
    def scope(self, request: Request) -> Scope:
        asked = super().scope(request)
        links = self.held(request.tenant, "links").values()
        neighbours = frozenset(link["destination"] for link in links if link["source"] == asked.domain)
        return Neighbourhood(asked.domains_only, asked.domain, neighbours)


@breaks("MET-019")
class PatchesStateTheDigestOfTheirBase(MinimalServer):
    """A patch says that it leads to where it starts from."""

    @override
    def get_patch(self, request: Request) -> Answer:
        answer = super().get_patch(request)
        return Answer(200, {**answer.body, "result": answer.body["base"]})


@breaks("MET-019")
class PatchesRemoveFromTheFront(MinimalServer):
    """A patch removes from the front, by the places where everything stood before."""

    @override
    def operations(self, before: Document, after: Document) -> Iterator[Json]:
        operations = list(super().operations(before, after))
        removals = [one for one in operations if one["op"] == "remove"]
        yield from sorted(removals, key=lambda one: int(one["path"].rpartition("/")[2]))
        yield from (one for one in operations if one["op"] != "remove")


@breaks("MET-019")
class PatchesForgetStates(MinimalServer):
    """A patch adds and removes, and leaves as it was what stays."""

    @override
    def operations(self, before: Document, after: Document) -> Iterator[Json]:
        return (one for one in super().operations(before, after) if one["op"] != "replace")


@breaks("COM-022")
class UnknownBasesAreTakenForNothing(MinimalServer):
    """A base that is not held is taken for an empty graph, and answered with a patch that adds everything."""

    @override
    def base(self, graph: Graph, name: str) -> Document:
        return super().base(graph, name) if name in graph.given else {part: [] for part in PARTS}


@breaks("MET-023")
class EstimatesPassForMeasurements(MinimalServer):
    """A link that nobody has measured is stated to offer its capacity, and that as measured."""

    @override
    def link_vertex(self, tenant: Tenant, record: Json) -> Json:
        vertex = super().link_vertex(tenant, record)
        if vertex["provenance"] == "measured" or "capacity" not in record:
            return vertex
        return {**vertex, "inter_domain_bandwidth": record["capacity"], "state": "up", "provenance": "measured"}


@breaks("MET-023")
class RoundTripTimesStay(MinimalServer):
    """A link is shown with the round-trip time that was measured of it first."""

    @cached_property
    def original(self) -> dict[tuple[str, str], float]:
        """Round-trip time that was measured first of each tenant's links."""
        return {}

    @override
    def link_vertex(self, tenant: Tenant, record: Json) -> Json:
        vertex = super().link_vertex(tenant, record)
        if "round_trip_time" in vertex:
            first = self.original.setdefault((tenant.name, record["id"]), vertex["round_trip_time"])
            vertex["round_trip_time"] = first
        return vertex


@breaks("MET-005", "MET-023")
class LinksAreNeverDown(MinimalServer):
    """A link that loses everything is shown as degraded."""

    @override
    def link_state(self, tenant: Tenant, record: Json, quality: Mapping[str, float]) -> str:
        state = super().link_state(tenant, record, quality)
        return "degraded" if state == "down" else state


@breaks("MET-023")
class LossIsNotMinded(MinimalServer):
    """A link that loses packets is up as long as it does not lose them all."""

    @override
    def link_state(self, tenant: Tenant, record: Json, quality: Mapping[str, float]) -> str:
        few = {**quality, "packet_loss": float(quality["packet_loss"] == 1)} if "packet_loss" in quality else quality
        return super().link_state(tenant, record, few)
