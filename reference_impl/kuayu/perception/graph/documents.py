"""Snapshots as documents: their canonical form, their digest, and the patch that leads from one to another.

Sources: RFC 6902 (JSON Patch), RFC 8785 (canonical JSON).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import orjson

from kuayu.perception.graph.vertices import DOMAIN, LINK, MEMBERS, NODE


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
