"""The resource graph: what is registered, with states, at revisions of its own; snapshots and patches."""

import re
import secrets
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from minimal_server.canonical import digest
from minimal_server.core import IDENTIFIER, Answer, Json, Refusal, Request, Tenant, instant, wrong_parameter
from minimal_server.states import LIVES, STATES, States

BEAT = 0.5
"""Seconds between two looks at what has changed."""

PARTS = {"domains": "domain", "nodes": "node", "links": "link"}
"""Members of the graph, and the kind of vertex that each holds."""

BELONGS = {"domains": ("id",), "nodes": ("domain",), "links": ("source", "destination")}
"""Members by which a vertex belongs to a domain."""

QUALITY = ("inter_domain_bandwidth", "round_trip_time", "packet_loss")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

HELD_CHANGES, HELD_DOCUMENTS = 1000, 100
"""How many of the newest are kept for who resumes a stream, and for who asks for a patch."""

RECENT = 100
"""How many of its newest values tell what a link usually offers."""

Document = dict[str, list[Json]]
"""Vertices of each part in order of identifier: what digests and patches are of."""


@dataclass(frozen=True)
class Step:
    """What became of one vertex: its part and identifier, and what it was and is; None where it is not there."""

    part: str
    name: str
    before: Json | None
    after: Json | None


@dataclass(frozen=True)
class Change:
    """What leads to a revision of the graph."""

    number: int
    moment: int
    steps: tuple[Step, ...]


@dataclass
class Graph:
    """A tenant's graph: its vertices, what led there, and what was given out."""

    number: int = 0
    vertices: dict[str, dict[str, Json]] = field(default_factory=lambda: {part: {} for part in PARTS})
    changes: deque[Change] = field(default_factory=lambda: deque(maxlen=HELD_CHANGES))
    given: dict[str, Document] = field(default_factory=dict)


@dataclass(frozen=True)
class Scope:
    """What is asked for of the graph."""

    domains_only: bool
    domain: str | None

    def seen(self, part: str, vertex: Json | None) -> Json | None:
        """The vertex, where it is part of that."""
        if vertex is None or (self.domains_only and part == "nodes"):
            return None
        is_part = self.domain is None or any(vertex[member] == self.domain for member in BELONGS[part])
        return vertex if is_part else None


class Graphs(States):
    """Vertices follow from what is registered and from what was recognised; the graph follows them beat by beat."""

    def __init__(self, *arguments: Any) -> None:
        """Graphs begin anew with each process, and so does their epoch."""
        super().__init__(*arguments)
        self.graphs: dict[str, Graph] = {}
        self.graph_epoch = secrets.token_hex(8)
        self.changed_graphs = threading.Condition(self.lock)

    def begin(self) -> None:
        """Keep the graphs up to date from now on."""
        super().begin()
        threading.Thread(target=self.beat_forever, daemon=True).start()

    def beat_forever(self) -> None:
        """Look what has changed, again and again."""
        while True:
            with self.lock:
                self.moment = self.read_clock()
                for tenant in list(self.tenants.values()):
                    self.recognise(tenant)
                    self.refresh(tenant)
            time.sleep(BEAT)

    def graph(self, tenant: Tenant) -> Graph:
        """The tenant's graph as it was seen last."""
        return self.graphs.setdefault(tenant.name, Graph())

    def refresh(self, tenant: Tenant) -> Graph:
        """The tenant's graph as it is now; whatever differs from before is one change."""
        graph, now = self.graph(tenant), self.vertices(tenant)
        steps = tuple(
            Step(part, name, graph.vertices[part].get(name), now[part].get(name))
            for part in PARTS
            for name in sorted(graph.vertices[part].keys() | now[part].keys())
            if graph.vertices[part].get(name) != now[part].get(name)
        )
        if steps:
            graph.number += 1
            graph.vertices = now
            graph.changes.append(Change(graph.number, self.moment, steps))
            self.changed_graphs.notify_all()
        return graph

    def vertices(self, tenant: Tenant) -> dict[str, dict[str, Json]]:
        """What the graph consists of now."""
        nodes = {name: self.node_vertex(tenant, record) for name, record in self.held(tenant, "nodes").items()}
        members: dict[str, list[Json]] = {}
        for vertex in nodes.values():
            members.setdefault(vertex["domain"], []).append(vertex)
        return {
            "domains": {
                name: self.domain_vertex(tenant, name, members.get(name, [])) for name in self.held(tenant, "domains")
            },
            "nodes": nodes,
            "links": {name: self.link_vertex(tenant, record) for name, record in self.held(tenant, "links").items()},
        }

    def node_vertex(self, tenant: Tenant, record: Json) -> Json:
        """A node, with what was recognised of it."""
        shown = self.shown_state(self.sight(tenant), record["id"])
        return {
            "id": record["id"],
            "domain": record["domain"],
            "state": shown.state,
            "since": instant(shown.since),
            "because": shown.because,
            "devices": len(record.get("devices", ())),
        }

    def domain_vertex(self, tenant: Tenant, name: str, nodes: list[Json]) -> Json:
        """A domain as the sum of its nodes."""
        counts = dict.fromkeys(STATES, 0)
        for node in nodes:
            counts[node["state"]] += 1
        answering = (node["id"] for node in nodes if node["state"] not in {"offline", "unknown"})
        utilisation = self.utilisation(tenant, answering)
        return {
            "id": name,
            "nodes": counts,
            "devices": sum(node["devices"] for node in nodes),
            "reachable": self.reachable(tenant, name),
            **({} if utilisation is None else {"accelerator_utilisation": round(utilisation, 3)}),
        }

    def link_vertex(self, tenant: Tenant, record: Json) -> Json:
        """A link with what was measured of it and lives; nothing is estimated."""
        quality: dict[str, float] = {}
        for name in QUALITY:
            known = self.newest(tenant, ("link", record["id"], ""), {"name": name, **LIVES}, self.moment)
            if known is not None:
                quality[name] = known.content
        return {
            "id": record["id"],
            "source": record["source"],
            "destination": record["destination"],
            "state": self.link_state(tenant, record, quality),
            "provenance": "measured" if quality else "unknown",
            **quality,
        }

    def link_state(self, tenant: Tenant, record: Json, quality: Mapping[str, float]) -> str:
        """How fit a link is to carry traffic."""
        if not quality:
            return "unknown"
        if quality.get("packet_loss", 0) == 1:
            return "down"
        offered = quality.get("inter_domain_bandwidth")
        expected = max(record.get("capacity", 0), self.usual_bandwidth(tenant, record["id"]))
        scarce = offered is not None and offered < expected / 2
        return "degraded" if scarce or quality.get("packet_loss", 0) >= 0.1 else "up"

    def usual_bandwidth(self, tenant: Tenant, link: str) -> float:
        """What a link usually offers, bit/s: the median of its newest values; nought where there are none."""
        series = tenant.series.get(("link", link, ""))
        instants = series.instants.get("inter_domain_bandwidth", []) if series else []
        until = bisect_right(instants, self.moment)
        recent = instants[max(0, until - RECENT) : until]
        return median(series.records[at]["inter_domain_bandwidth"] for at in recent) if series and recent else 0.0

    def get_graph(self, request: Request) -> Answer:
        """A snapshot."""
        scope = self.scope(request)
        graph = self.refresh(request.tenant)
        document = self.excerpt(graph, scope)
        answer = {
            "digest": self.give(graph, document),
            "revision": self.graph_revision(graph.number),
            "taken_at": instant(self.moment),
            **document,
        }
        return Answer(200, answer)

    def scope(self, request: Request) -> Scope:
        """What the parameters ask for."""
        detail, domain = request.query.get("detail"), request.query.get("domain")
        if detail not in {None, "domains"}:
            raise wrong_parameter("detail", "detail can only be domains")
        if domain is not None:
            if not IDENTIFIER.fullmatch(domain):
                raise wrong_parameter("domain", "domain must be an identifier")
            self.find(request.tenant, "domains", domain)
        return Scope(detail == "domains", domain)

    def excerpt(self, graph: Graph, scope: Scope) -> Document:
        """What is asked for, in order of identifier."""
        return {
            part: [vertex for _, vertex in sorted(graph.vertices[part].items()) if scope.seen(part, vertex)]
            for part in PARTS
        }

    def give(self, graph: Graph, document: Document) -> str:
        """Digest of a document that is given out and kept as a base for patches."""
        name = digest(document)
        graph.given.pop(name, None)
        graph.given[name] = document
        if len(graph.given) > HELD_DOCUMENTS:
            del graph.given[next(iter(graph.given))]
        return name

    def graph_revision(self, number: int) -> Json:
        """Where a graph stands; another count than that of registrations."""
        return {"epoch": self.graph_epoch, "number": number}

    def get_patch(self, request: Request) -> Answer:
        """The patch that leads from a snapshot to the present graph."""
        base = request.query.get("base", "")
        if not DIGEST.fullmatch(base):
            raise wrong_parameter("base", "base must be the digest of a snapshot")
        scope = self.scope(request)
        graph = self.refresh(request.tenant)
        before, after = self.base(graph, base), self.excerpt(graph, scope)
        operations = list(self.operations(before, after))
        return Answer(200, {"base": base, "result": self.give(graph, after), "operations": operations})

    def base(self, graph: Graph, name: str) -> Document:
        """The document that was given out under this digest."""
        if name not in graph.given:
            raise Refusal("unknown-base", "no snapshot of this digest is held; take the whole graph")
        return graph.given[name]

    def operations(self, before: Document, after: Document) -> Iterator[Json]:
        """Remove from behind what is gone, then from the front put everything in its place (RFC 6902)."""
        for part in PARTS:
            old = {vertex["id"]: vertex for vertex in before[part]}
            kept = {vertex["id"] for vertex in after[part]}
            for place, name in reversed([*enumerate(old)]):
                if name not in kept:
                    yield {"op": "remove", "path": f"/{part}/{place}"}
            for place, vertex in enumerate(after[part]):
                if vertex["id"] not in old:
                    yield {"op": "add", "path": f"/{part}/{place}", "value": vertex}
                elif vertex != old[vertex["id"]]:
                    yield {"op": "replace", "path": f"/{part}/{place}", "value": vertex}
