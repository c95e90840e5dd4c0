"""The nodes of a tenant as they are arranged in arrays, and what is shown of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition import STATES, Population, Recognition
from kuayu.service.graph.live import Floats, Integers

PATIENCE = 10.0
"""Seconds for which a node's confidence and reason stand before they are shown anew where its state has not changed."""

SURER = 0.25
"""By how much the confidence has to move for that."""

UNKNOWN, OFFLINE = STATES.index("unknown"), STATES.index("offline")
"""Nodes of the states before these answer."""


@dataclass(frozen=True, slots=True)
class RegisteredNode:
    """A registered node.

    Attributes:
        domain: Its domain.
        urn: Its compute identifier.
        number: Its number in the catalogue.
        devices: Numbers of its devices.
        born: Tells it from a former node of the same name.
    """

    domain: str
    urn: str | None
    number: int
    devices: tuple[int, ...]
    born: int


@dataclass(frozen=True, slots=True)
class RegisteredLink:
    """A registered link, and its number in the catalogue."""

    source: str
    destination: str
    capacity: float | None
    number: int


@dataclass(slots=True)
class Rows:
    """Nodes in rows.

    Attributes:
        names: Identifier of each.
        born: What tells each from a former one of the same name.
        domains: All domains, in the order of their indices.
        domain: int64[n], index of each node's domain.
        state: int8[n], state that is shown.
        confidence: float32[n], confidence that is shown.
        reason: int8[n], index of the reason that is shown, -1 before there is one.
        told_at: float64[n], when they were last shown, in seconds on a clock that does not go back.
    """

    names: list[str] = field(default_factory=list)
    born: list[int] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    domain: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    state: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    confidence: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    reason: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    told_at: Floats = field(default_factory=lambda: np.empty(0, np.float64))

    def arranged(self, nodes: Mapping[str, RegisteredNode], domains: list[str]) -> tuple["Rows", Integers]:
        """Rows for the nodes and domains that are registered now.

        Returns:
            The rows, and for each the row that it was before, -1 where it is new.
        """
        row_of = {each: row for row, each in enumerate(zip(self.names, self.born, strict=True))}
        origin = np.array([row_of.get((name, node.born), -1) for name, node in nodes.items()], dtype=np.int64)
        place = {name: index for index, name in enumerate(domains)}
        rows = Rows(
            names=list(nodes),
            born=[node.born for node in nodes.values()],
            domains=domains,
            domain=np.array([place[node.domain] for node in nodes.values()], dtype=np.int64),
            state=_carried(self.state, origin, UNKNOWN),
            confidence=_carried(self.confidence, origin, 0),
            reason=_carried(self.reason, origin, -1),
            told_at=_carried(self.told_at, origin, float("-inf")),
        )
        return rows, origin

    def population(self, nodes: Iterable[RegisteredNode], families: Mapping[str, Sequence[str]]) -> Population:
        """The same nodes for the recogniser.

        Args:
            nodes: In the order of the rows.
            families: Members of each family, compute identifiers of nodes.
        """
        held = list(nodes)
        bearers: dict[str, list[int]] = {}
        for row, node in enumerate(held):
            if node.urn is not None:
                bearers.setdefault(node.urn, []).append(row)
        pairs = [
            (row, family)
            for family, members in enumerate(families.values())
            for urn in members
            for row in bearers.get(urn, ())
        ]
        member = np.array([row for row, _ in pairs], dtype=np.int64)
        family = np.array([index for _, index in pairs], dtype=np.int64)
        devices = np.array([len(node.devices) for node in held], dtype=np.int64)
        return Population(self.domain, len(self.domains), member, family, len(families), devices)

    def tell(self, found: Recognition, clock: float) -> list[int]:
        """Rows of which something is to be shown that was not before; from now on it counts as shown.

        A new state is shown at once; that the same state is surer, or has another reason, after a while.
        """
        moved = (found.reason != self.reason) | (np.abs(found.confidence - self.confidence) >= SURER)
        again = moved & (found.state != UNKNOWN) & (clock >= self.told_at + PATIENCE)
        told = np.flatnonzero((found.state != self.state) | again)
        self.state[told] = found.state[told]
        self.confidence[told] = found.confidence[told]
        self.reason[told] = found.reason[told]
        self.told_at[told] = clock
        rows: list[int] = told.tolist()
        return rows

    def utilisation(self, found: Recognition, stated: Floats) -> list[float | None]:
        """Mean utilisation of each domain over the nodes that answer and state it; None where none does."""
        counted = (found.state < OFFLINE) & ~np.isnan(stated)
        number = np.bincount(self.domain[counted], minlength=len(self.domains))
        total = np.bincount(self.domain[counted], weights=stated[counted], minlength=len(self.domains))
        return [each / many if many else None for each, many in zip(total.tolist(), number.tolist(), strict=True)]


def _carried(values: Any, origin: Integers, new: float) -> Any:
    """What was known of each row, from where it was before; ``new`` for rows that are new."""
    carried = np.full(len(origin), new, dtype=values.dtype)
    carried[origin >= 0] = values[origin[origin >= 0]]
    return carried
