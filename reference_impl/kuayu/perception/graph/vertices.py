"""Vertices of the resource graph as JSON, in the form that digests are made of."""

from collections.abc import Mapping, Sequence
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

_WHOLE = 2.0**53
"""Below it every integer is a double and the other way round."""


def written(vertex: Mapping[str, Any]) -> bytes:
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
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


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
