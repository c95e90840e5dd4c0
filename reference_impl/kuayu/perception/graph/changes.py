"""The graph as it stands, the steps by which it changes, their log, and what of it a narrower view shows."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import orjson

from kuayu.perception.graph.documents import Document, Part
from kuayu.perception.graph.vertices import DOMAIN, LINK, MEMBERS, NODE

OVERHEAD = 200
"""Bytes that a step takes in memory beside its vertex, about."""

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
        self._held: dict[str, dict[str, Vertex]] = {DOMAIN: {}, NODE: {}, LINK: {}}
        self._order: dict[str, list[str]] = {}

    def holds(self, kind: str, name: str) -> bool:
        """Whether there is such a vertex."""
        return name in self._held[kind]

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
            vertex = self._held[kind].pop(name, None)
            if vertex is not None:
                self._order.pop(kind, None)
                yield Step(kind, name, vertex.domains, None)

    def _put_in(self, come: Mapping[Name, Vertex]) -> Iterator[Step]:
        for (kind, name), vertex in come.items():
            present = self._held[kind].get(name)
            if present == vertex:
                continue
            if present is None:
                self._order.pop(kind, None)
            self._held[kind][name] = vertex
            yield Step(kind, name, present.domains if present else (), vertex)

    def _part(self, kind: str, narrowing: Narrowing) -> Part:
        if kind == NODE and not narrowing.nodes:
            return Part((), ())
        vertices = self._held[kind]
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
