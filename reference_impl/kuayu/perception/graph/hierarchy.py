"""Nodes with their states, summed up by domain."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kuayu.perception.graph.changes import Name, Vertex
from kuayu.perception.graph.vertices import DOMAIN, NODE, STATES, UNKNOWN, domain_vertex, node_vertex, written

UTILISATION_STEP = 0.05
"""By how much the utilisation of a domain has to move to be shown at once."""

PATIENCE = 10.0
"""Seconds after which smaller moves are shown too."""


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
        moved = _apart(domain.shown, domain.utilisation)
        if domain.reachable != reachable or moved >= UTILISATION_STEP or (moved and now >= domain.shown_at + PATIENCE):
            domain.reachable = reachable
            self._touched[DOMAIN, name] = None
        if (DOMAIN, name) in self._touched:
            domain.shown_at = now

    def changed(self) -> tuple[dict[Name, Vertex], list[Name]]:
        """What has been touched since the last call: vertices as they stand now, and names of those that are gone."""
        touched, self._touched = self._touched, {}
        come = dict(self._vertices(touched))
        return come, [name for name in touched if name not in come]

    def _vertices(self, touched: dict[Name, None]) -> Iterator[tuple[Name, Vertex]]:
        for kind, name in touched:
            if kind == DOMAIN and (domain := self._domains.get(name)):
                domain.shown = domain.utilisation
                shown = domain_vertex(
                    name, domain.counts, domain.devices, reachable=domain.reachable, utilisation=domain.shown
                )
                yield (kind, name), Vertex(written(shown), (name,))
            elif kind == NODE and (node := self._nodes.get(name)):
                seen = node.seen
                vertex = node_vertex(
                    name, node.domain, seen.state, node.since, node.devices, seen.confidence, seen.because
                )
                yield (kind, name), Vertex(written(vertex), (node.domain,))

    def _add(self, domain: str, state: int, nodes: int, devices: int) -> None:
        totals = self._domains[domain]
        totals.counts[state] += nodes
        totals.devices += devices
        self._touched[DOMAIN, domain] = None


def _apart(shown: float | None, present: float | None) -> float:
    """How far the present utilisation is from the one shown; infinitely where only one of them is there."""
    if shown is None or present is None:
        return 0.0 if shown is present else float("inf")
    return round(abs(present - shown), 2)
