"""The resource graph: what is registered with its states, as it stands at a revision, and what leads on from there.

1. A vertex is held as its canonical JSON, written once when it changes. Snapshots, changes and patches are put together
   from these pieces, so that they agree byte for byte, and a digest costs no more than hashing.
2. Changes are numbered without gaps. A vertex that has gone over to another domain is gone from its former one: who
   follows that domain alone sees it go.
3. Nodes are summed up by domain. What matters is shown at once; small moves of the utilisation of a domain, and of what
   is measured of a link, wait for company or for some seconds.
4. A link is degraded where it loses much, or offers less than half of its capacity or of what it usually offers.

Sources: the clauses on the resource graph and on the quality of links; RFC 6902 (JSON Patch), RFC 8785 (canonical
JSON).
"""

import hashlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import orjson

from kuayu_schemas import schema

if TYPE_CHECKING:
    from kuayu_schemas import documents

DOMAIN, NODE, LINK = "domain", "node", "link"
"""Kinds of vertices; the values of class VertexKind."""

MEMBERS = {DOMAIN: "domains", NODE: "nodes", LINK: "links"}
"""Member of a graph and of a change that holds the vertices of each kind."""

STATES: "tuple[documents.OperatingState, ...]" = (
    "idle",
    "busy",
    "degraded",
    "straggling",
    "faulty",
    "offline",
    "unknown",
)
"""States of nodes in the order of the clause; a state is known by its place here."""

UNKNOWN = STATES.index("unknown")

_MIN_PLAIN, _MAX_PLAIN = 1e-4, 1e15
"""Between these orjson and RFC 8785 write a number that is no integer in the same way: all digits, no exponent."""

_EXACT_INTEGERS = 2.0**53
"""Below it every integer is a double and the other way round."""

OVERHEAD = 200
"""Bytes that a step takes in memory beside its vertex, about."""

UTILISATION_STEP = 0.05
"""By how much the utilisation of a domain has to move to be shown at once."""

DOMAIN_PATIENCE = 10.0
"""Seconds after which smaller moves are shown too."""

MEASURES = ("inter_domain_bandwidth", "round_trip_time", "packet_loss")
"""Measures of a link that the graph shows; bit/s, s, share."""

LOST_ALL, LOST_MUCH = 1.0, 0.1
"""Packet loss from which on a link is down, and degraded."""

LOW_SHARE = 0.5
"""Share of its capacity, or of what it usually offers, below which a link offers little."""

USUAL_SECONDS = 3600.0
"""How long a link has to offer little until that is what it usually offers."""

USUAL_FROM = 3
"""Measurements from which on there is something usual."""

NOTICEABLE = 0.05
"""By which share a value has to move to be shown at once."""

LINK_PATIENCE = 5.0
"""Seconds after which smaller moves are shown too."""


def canonical_vertex(vertex: Mapping[str, Any]) -> bytes:
    """Canonical JSON (RFC 8785) of a vertex.

    Args:
        vertex: Members of a vertex class; floating-point numbers stand only at the top level, as :func:`number` gives
            them.
    """
    if all(type(value) is not float or _MIN_PLAIN <= abs(value) < _MAX_PLAIN for value in vertex.values()):
        return orjson.dumps(vertex, option=orjson.OPT_SORT_KEYS)
    return schema.canonical(vertex)


def number(value: float) -> float:
    """A finite number as it is written: an integer where it is one and can be written as one."""
    return int(value) if value.is_integer() and abs(value) < _EXACT_INTEGERS else value


def domain_vertex(
    name: str, counts: Sequence[int], devices: int, *, reachable: bool, utilisation: float | None
) -> "documents.DomainVertex":
    """A domain as it is shown.

    Args:
        name: Identifier.
        counts: Nodes in each of :data:`STATES`.
        devices: Accelerators that are registered.
        reachable: Whether anything arrives from it.
        utilisation: Mean over the nodes that answer, 0 … 1; None where none states it.
    """
    vertex: documents.DomainVertex = {
        "devices": devices,
        "id": name,
        "nodes": cast("documents.StateCounts", dict(zip(STATES, counts, strict=True))),
        "reachable": reachable,
    }
    return vertex if utilisation is None else {"accelerator_utilisation": number(utilisation), **vertex}


def node_vertex(
    name: str, domain: str, state: int, since: str, devices: int, confidence: float | None, because: str | None
) -> "documents.NodeVertex":
    """A node as it is shown; the state by its place in :data:`STATES`, the instant as text, the confidence 0 … 1."""
    vertex: documents.NodeVertex = {
        "devices": devices,
        "domain": domain,
        "id": name,
        "since": since,
        "state": STATES[state],
    }
    if confidence is not None:
        vertex["confidence"] = number(confidence)
    if because is not None:
        vertex["because"] = because
    return vertex


@dataclass(frozen=True, slots=True)
class Part:
    """Vertices of one kind in order of identifier: their identifiers and, beside, their canonical JSON."""

    names: tuple[str, ...]
    written: tuple[bytes, ...]


@dataclass(frozen=True)
class Document:
    """A snapshot: domains, nodes and links."""

    domains: Part
    nodes: Part
    links: Part

    def parts(self) -> Iterator[tuple[str, Part]]:
        """Each part with the member that it is."""
        yield from ((MEMBERS[DOMAIN], self.domains), (MEMBERS[NODE], self.nodes), (MEMBERS[LINK], self.links))

    def __len__(self) -> int:
        return sum(len(part.names) for _, part in self.parts())

    def body(self) -> bytes:
        """Canonical JSON of an object of the three members."""
        return b'{"domains":[%s],"links":[%s],"nodes":[%s]}' % tuple(
            b",".join(part.written) for part in (self.domains, self.links, self.nodes)
        )

    @cached_property
    def digest(self) -> str:
        """Its digest: ``sha256:`` and the hexadecimal SHA-256 of :meth:`body`."""
        return "sha256:" + hashlib.sha256(self.body()).hexdigest()


def patch(base: Document, target: Document) -> bytes:
    """A patch from one document to another, class Patch.

    Where most of a member differs the member is replaced as a whole, so that no patch is much longer than its target.
    """
    operations = [
        operation
        for (member, before), (_, after) in zip(base.parts(), target.parts(), strict=True)
        for operation in _operations(f"/{member}", before, after)
    ]
    head = orjson.dumps({"base": base.digest, "result": target.digest})
    return b'%s,"operations":[%s]}' % (head[:-1], b",".join(operations))


def _operations(path: str, before: Part, after: Part) -> list[bytes]:
    """Operations on one array.

    First what is gone is removed, from the end, so that no index moves before its turn; what is left then grows into
    its new form from the beginning.
    """
    written_before = dict(zip(before.names, before.written, strict=True))
    wanted = set(after.names)
    operations = [
        b'{"op":"remove","path":"%s/%d"}' % (path.encode(), index)
        for index in range(len(before.names) - 1, -1, -1)
        if before.names[index] not in wanted
    ]
    for index, (name, vertex) in enumerate(zip(after.names, after.written, strict=True)):
        if written_before.get(name) == vertex:
            continue
        verb = b"replace" if name in written_before else b"add"
        operations.append(b'{"op":"%s","path":"%s/%d","value":%s}' % (verb, path.encode(), index, vertex))
    if len(operations) > len(after.names):
        return [b'{"op":"replace","path":"%s","value":[%s]}' % (path.encode(), b",".join(after.written))]
    return operations


Name = tuple[str, str]
"""Kind and identifier of a vertex."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex as it stands.

    Attributes:
        written: Its canonical JSON.
        domains: Domains that it is part of: its own, that of a node, both ends of a link.
    """

    written: bytes
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one vertex in a change.

    Attributes:
        kind: Its kind.
        id: Its identifier.
        before: Domains that it was part of; none where it is new.
        after: The vertex from now on; None where it is gone.
    """

    kind: str
    id: str
    before: tuple[str, ...]
    after: Vertex | None


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Which part of the graph is asked for.

    Attributes:
        nodes: Whether nodes are.
        domain: The one domain that is; None for all.
    """

    nodes: bool = True
    domain: str | None = None

    def shows(self, kind: str, domains: tuple[str, ...]) -> bool:
        """Whether a vertex that is part of these domains belongs to it."""
        return (self.nodes or kind != NODE) and (self.domain is None or self.domain in domains)

    def taken(self, step: Step) -> tuple[bytes | None, bool]:
        """What a step is in this part: the vertex that it shows from now on, and whether one is gone.

        A vertex that has gone over to another domain is gone from its former one.
        """
        if step.after is not None and self.shows(step.kind, step.after.domains):
            return step.after.written, False
        return None, bool(step.before) and self.shows(step.kind, step.before)


WHOLE = Narrowing()
"""All of the graph."""


@dataclass(frozen=True, slots=True)
class Change:
    """A published change.

    Attributes:
        number: Number of the revision that it leads to.
        changed_at: When, as text.
        steps: One for each vertex that changed.
    """

    number: int
    changed_at: str
    steps: tuple[Step, ...]

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, about."""
        return sum(OVERHEAD + (len(step.after.written) if step.after else 0) for step in self.steps)

    def data(self, epoch: str, narrowing: Narrowing = WHOLE) -> bytes | None:
        """The part of the change that was asked for, class GraphChange; None where there is none."""
        come: dict[str, list[bytes]] = {DOMAIN: [], NODE: [], LINK: []}
        gone: list[dict[str, str]] = []
        for step in self.steps:
            vertex, went = narrowing.taken(step)
            if vertex is not None:
                come[step.kind].append(vertex)
            elif went:
                gone.append({"kind": step.kind, "id": step.id})
        if not gone and not any(come.values()):
            return None
        members = [b'"%s":[%s]' % (MEMBERS[kind].encode(), b",".join(vertices)) for kind, vertices in come.items()]
        head = orjson.dumps({"revision": {"epoch": epoch, "number": self.number}, "changed_at": self.changed_at})
        return b"%s,%s}" % (head[:-1], b",".join([*members, b'"gone":' + orjson.dumps(gone)]))


class Graph:
    """All vertices as they stand."""

    def __init__(self) -> None:
        self._vertices: dict[str, dict[str, Vertex]] = {DOMAIN: {}, NODE: {}, LINK: {}}
        self._order: dict[str, list[str]] = {}

    def holds(self, kind: str, name: str) -> bool:
        """Whether there is such a vertex."""
        return name in self._vertices[kind]

    def apply(self, come: Mapping[Name, Vertex], gone: Iterable[Name] = ()) -> tuple[Step, ...]:
        """Put vertices in and take others out.

        Returns:
            What has changed by that; nothing for a vertex that stands as it stood.
        """
        return (*self._take_out(gone), *self._put_in(come))

    def view(self, narrowing: Narrowing = WHOLE) -> Document:
        """What is asked for of the graph as it stands."""
        return Document(*(self._part(kind, narrowing) for kind in (DOMAIN, NODE, LINK)))

    def _take_out(self, gone: Iterable[Name]) -> Iterator[Step]:
        for kind, name in gone:
            vertex = self._vertices[kind].pop(name, None)
            if vertex is not None:
                self._order.pop(kind, None)
                yield Step(kind, name, vertex.domains, None)

    def _put_in(self, come: Mapping[Name, Vertex]) -> Iterator[Step]:
        for (kind, name), vertex in come.items():
            present = self._vertices[kind].get(name)
            if present == vertex:
                continue
            if present is None:
                self._order.pop(kind, None)
            self._vertices[kind][name] = vertex
            yield Step(kind, name, present.domains if present else (), vertex)

    def _part(self, kind: str, narrowing: Narrowing) -> Part:
        if kind == NODE and not narrowing.nodes:
            return Part((), ())
        vertices = self._vertices[kind]
        if kind not in self._order:
            self._order[kind] = sorted(vertices)
        names = self._order[kind]
        if narrowing.domain is not None:
            names = [name for name in names if narrowing.domain in vertices[name].domains]
        return Part(tuple(names), tuple([vertices[name].written for name in names]))


class ChangeLog:
    """Changes in order, the numbers of which follow on each other; the oldest go first.

    Args:
        max_changes: How many are held at most.
        max_bytes: How many bytes they may take together, about. The newest is held in any case.
    """

    def __init__(self, max_changes: int, max_bytes: int) -> None:
        self._max_changes = max_changes
        self._max_bytes = max_bytes
        self._changes: deque[tuple[Change, int]] = deque()
        self._bytes = 0
        self.number = 0
        """Number of the newest change; zero before the first."""

    def append(self, change: Change) -> None:
        """Add the next change."""
        assert change.number == self.number + 1
        size = change.size
        self._changes.append((change, size))
        self._bytes += size
        self.number = change.number
        while len(self._changes) > self._max_changes or (self._bytes > self._max_bytes and len(self._changes) > 1):
            self._bytes -= self._changes.popleft()[1]

    def since(self, number: int) -> list[Change] | None:
        """Changes after a revision; None where it lies in the future or further back than is held."""
        first = self.number - len(self._changes)
        if not first <= number <= self.number:
            return None
        return [change for change, _ in islice(self._changes, number - first, None)]


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """What is told of a node.

    Attributes:
        state: Place in STATES.
        confidence: 0 … 1 in hundredths; None where nothing was recognised.
        because: From what, for people.
    """

    state: int
    confidence: float | None = None
    because: str | None = None


UNSEEN = NodeVerdict(UNKNOWN)


@dataclass(slots=True)
class _Node:
    domain: str
    devices: int
    seen: NodeVerdict
    since: str


@dataclass(slots=True)
class _Domain:
    counts: list[int] = field(default_factory=lambda: [0] * len(STATES))
    devices: int = 0
    reachable: bool = True
    utilisation: float | None = None
    shown: float | None = None
    shown_at: float = float("-inf")


class Hierarchy:
    """Domains and their nodes. Whatever changes is noted until :meth:`changed` asks for it."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._domains: dict[str, _Domain] = {}
        self._touched: dict[Name, None] = {}

    def put_domain(self, name: str) -> None:
        """A domain is registered; nothing is changed where it is there."""
        if name not in self._domains:
            self._domains[name] = _Domain()
            self._touched[DOMAIN, name] = None

    def drop_domain(self, name: str) -> None:
        """A domain, which has no nodes any more, is gone."""
        self._domains.pop(name, None)
        self._touched[DOMAIN, name] = None

    def put_node(self, name: str, domain: str, devices: int, instant: str) -> None:
        """A node is registered, or its registration has changed; its state stays.

        Args:
            name: Identifier.
            domain: A domain that is registered.
            devices: Number of its accelerators.
            instant: The instant as text, from which a new node is unknown.
        """
        node = self._nodes.get(name)
        seen, since = (node.seen, node.since) if node else (UNSEEN, instant)
        self.drop_node(name)
        self._nodes[name] = _Node(domain, devices, seen, since)
        self._add(domain, seen.state, 1, devices)
        self._touched[NODE, name] = None

    def drop_node(self, name: str) -> None:
        """A node is gone; nothing where it was not there."""
        node = self._nodes.pop(name, None)
        if node is not None:
            self._add(node.domain, node.seen.state, -1, -node.devices)
            self._touched[NODE, name] = None

    def see(self, name: str, seen: NodeVerdict, instant: str) -> None:
        """Something is told of a registered node at an instant, given as text."""
        node = self._nodes[name]
        if seen.state != node.seen.state:
            self._add(node.domain, node.seen.state, -1, 0)
            self._add(node.domain, seen.state, 1, 0)
            node.since = instant
        node.seen = seen
        self._touched[NODE, name] = None

    def summarise(self, name: str, *, reachable: bool, utilisation: float | None, now: float) -> None:
        """What is told of a domain as a whole; small moves of the utilisation wait for company or :data:`PATIENCE`.

        Args:
            name: A registered domain.
            reachable: Whether anything arrives from it.
            utilisation: Mean over the nodes that answer, or None.
            now: Seconds, on any clock that does not go back.
        """
        domain = self._domains[name]
        domain.utilisation = None if utilisation is None else round(utilisation, 2)
        moved = _utilisation_gap(domain.shown, domain.utilisation)
        if (
            domain.reachable != reachable
            or moved >= UTILISATION_STEP
            or (moved and now >= domain.shown_at + DOMAIN_PATIENCE)
        ):
            domain.reachable = reachable
            self._touched[DOMAIN, name] = None
        if (DOMAIN, name) in self._touched:
            domain.shown_at = now

    def changed(self) -> tuple[dict[Name, Vertex], list[Name]]:
        """What has been touched since the last call: vertices as they stand now, and names of those that are gone."""
        touched, self._touched = self._touched, {}
        come = dict(self._vertices_of(touched))
        return come, [name for name in touched if name not in come]

    def _vertices_of(self, touched: dict[Name, None]) -> Iterator[tuple[Name, Vertex]]:
        for kind, name in touched:
            if kind == DOMAIN and (domain := self._domains.get(name)):
                domain.shown = domain.utilisation
                shown = domain_vertex(
                    name, domain.counts, domain.devices, reachable=domain.reachable, utilisation=domain.shown
                )
                yield (kind, name), Vertex(canonical_vertex(shown), (name,))
            elif kind == NODE and (node := self._nodes.get(name)):
                seen = node.seen
                vertex = node_vertex(
                    name, node.domain, seen.state, node.since, node.devices, seen.confidence, seen.because
                )
                yield (kind, name), Vertex(canonical_vertex(vertex), (node.domain,))

    def _add(self, domain: str, state: int, nodes: int, devices: int) -> None:
        totals = self._domains[domain]
        totals.counts[state] += nodes
        totals.devices += devices
        self._touched[DOMAIN, domain] = None


def _utilisation_gap(shown: float | None, present: float | None) -> float:
    """How far the present utilisation is from the one shown; infinitely where only one of them is there."""
    if shown is None or present is None:
        return 0.0 if shown is present else float("inf")
    return round(abs(present - shown), 2)


Quality = tuple[float | None, float | None, float | None]
"""A value or None for each of MEASURES."""

NOTHING: Quality = (None, None, None)


@dataclass(slots=True)
class _Link:
    source: str
    destination: str
    capacity: float | None
    measured: Quality = NOTHING
    estimated: Quality = NOTHING
    usual: float = 0.0
    count: int = 0
    observed: float = float("-inf")
    shown: Mapping[str, Any] = field(default_factory=dict)
    shown_at: float = float("-inf")


class LinkTracker:
    """Links with what is known of their quality. Whatever changes is noted until :meth:`changed` asks for it."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._touched: dict[str, None] = {}
        self._waiting: set[str] = set()

    def put(self, name: str, source: str, destination: str, capacity: float | None) -> None:
        """A link is registered, or its registration has changed; its capacity in bit/s."""
        link = self._links.get(name)
        if link is None:
            self._links[name] = _Link(source, destination, capacity)
        else:
            link.source, link.destination, link.capacity = source, destination, capacity
        self._touched[name] = None

    def drop(self, name: str) -> None:
        """A link is gone."""
        self._links.pop(name, None)
        self._waiting.discard(name)
        self._touched[name] = None

    def measure(self, name: str, measured: Quality, observed: float, now: float) -> None:
        """The newest values of a registered link that live.

        Args:
            name: The link.
            measured: The values.
            observed: When the newest bandwidth was observed, in seconds since 1970.
            now: Seconds, on any clock that does not go back.
        """
        link = self._links[name]
        if measured[0] is not None and observed > link.observed:
            _learn_usual(link, measured[0], observed)
        link.measured = measured
        self._look(name, link, now)

    def estimate(self, name: str, bandwidth: float | None, round_trip: float | None, now: float) -> None:
        """What a registered link is thought to offer where nothing is measured; None where nothing can be said."""
        link = self._links[name]
        link.estimated = (bandwidth, round_trip, None)
        self._look(name, link, now)

    def measured(self) -> dict[str, Quality]:
        """Links of which something is measured."""
        return {name: link.measured for name, link in self._links.items() if link.measured != NOTHING}

    def changed(self, now: float) -> tuple[dict[Name, Vertex], list[Name]]:
        """What has changed since the last call: vertices as they stand now, and names of those that are gone."""
        for name in [name for name in self._waiting if now >= self._links[name].shown_at + LINK_PATIENCE]:
            self._touched[name] = None
        touched, self._touched = self._touched, {}
        come: dict[Name, Vertex] = {}
        for name in touched:
            link = self._links.get(name)
            if link is not None:
                link.shown, link.shown_at = _link_vertex(name, link), now
                self._waiting.discard(name)
                come[LINK, name] = Vertex(canonical_vertex(link.shown), (link.source, link.destination))
        return come, [(LINK, name) for name in touched if name not in self._links]

    def _look(self, name: str, link: _Link, now: float) -> None:
        """Note what has to be shown: what matters at once, small moves in time."""
        present = _link_vertex(name, link)
        if present == link.shown:
            self._waiting.discard(name)
        elif _moved_noticeably(present, link.shown) or now >= link.shown_at + LINK_PATIENCE:
            self._touched[name] = None
        else:
            self._waiting.add(name)


def _learn_usual(link: _Link, bandwidth: float, observed: float) -> None:
    """Follow what a link usually offers. Little counts slowly, so that a slump does not soon look usual."""
    slow = 1.0 - math.exp(-(observed - link.observed) / USUAL_SECONDS) if link.count else 1.0
    quick = 1.0 / (link.count + 1)
    low = link.count >= USUAL_FROM and bandwidth < LOW_SHARE * link.usual
    link.usual += (slow if low else max(slow, quick)) * (bandwidth - link.usual)
    link.count += 1
    link.observed = observed


def _link_state(link: _Link) -> "documents.LinkState":
    bandwidth, _, loss = link.measured
    if link.measured == NOTHING:
        return "unknown"
    if loss is not None and loss >= LOST_ALL:
        return "down"
    if loss is not None and loss >= LOST_MUCH:
        return "degraded"
    usual = [LOW_SHARE * link.usual] if link.count > USUAL_FROM else []
    least = max([*usual, LOW_SHARE * (link.capacity or 0.0)])
    return "degraded" if bandwidth is not None and bandwidth < least else "up"


def _link_vertex(name: str, link: _Link) -> "documents.LinkVertex":
    """A link as it is shown."""
    quality = link.measured
    provenance: documents.Provenance = "measured"
    if quality == NOTHING:
        quality, provenance = link.estimated, "estimated" if link.estimated != NOTHING else "unknown"
    vertex: documents.LinkVertex = {
        "destination": link.destination,
        "id": name,
        "provenance": provenance,
        "source": link.source,
        "state": _link_state(link),
    }
    bandwidth, round_trip, loss = quality
    if bandwidth is not None:
        vertex["inter_domain_bandwidth"] = number(bandwidth)
    if round_trip is not None:
        vertex["round_trip_time"] = number(round_trip)
    if loss is not None:
        vertex["packet_loss"] = number(loss)
    return vertex


def _moved_noticeably(present: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    """Whether two vertices of a link differ by more than small moves of their values."""
    if present.keys() != shown.keys():
        return True
    return any(
        abs(value - shown[name]) > NOTICEABLE * abs(shown[name]) if name in MEASURES else value != shown[name]
        for name, value in present.items()
    )
