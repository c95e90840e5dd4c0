"""What a recogniser is given, what it says, and how it remembers nodes: arrays with one row or column for each node.

1. States are those of clause *Resource graph*. Signals are measures of the indicator register in their units; shares of
   devices and the code of the health state are made by whoever keeps the newest samples.
2. A memory is a dataclass of arrays, each annotated with the column that it begins as. It keeps what it holds when
   nodes come and go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline", "unknown")
"""Names of the states; arrays hold positions in it."""

IDLE, BUSY, DEGRADED, STRAGGLING, FAULTY, OFFLINE, UNKNOWN = range(len(STATES))

WORKING = 5
"""States that are told from signals: those before ``offline``."""

SIGNALS = (
    "accelerator_utilisation",
    "matrix_pipe_activity",
    "power",
    "accelerator_memory_used",
    "memory_bandwidth_utilisation",
    "scale_out_transmit_flow",
    "scale_out_receive_flow",
    "storage_read_flow",
    "faults",
    "allocatable_share",
    "health_state",
    "device_share",
)
"""Columns of the values of a node. ``health_state`` is coded 0 healthy, 1 degraded, 2 unknown, 3 faulty, 4 offline."""

REASONS = (
    "no sample yet",
    "nothing arrives from its domain",
    "nothing is known of its accelerators",
    "its power alone, at one level, does not tell work from rest",
    "its power alone, above that at rest, does not tell little work from none",
    "several samples missed while others of its domain arrive",
    "no accelerator works",
    "accelerators work as usual",
    "waits for another node of its family",
    "slower than usual",
    "faults that are mended come again",
    "a part of its accelerators is missing",
    "others of its family wait while it works",
    "does not go on, with faults",
    "does not go on, with memory held",
    "utilised, but gets nothing done",
    "does not go on, and its family waits or works without it",
    "reported as degraded",
    "reported as faulty",
    "reported as offline",
)
"""What a state was told from, for people."""


Floats = NDArray[np.float32]
Instants = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Population:
    """Nodes that are watched, and what ties them together.

    Attributes:
        domain: Index of the domain of each node, shape (nodes,).
        domains: How many domains there are.
        member: Node rows of the pairs of node and family, shape (pairs,).
        family: Family indices of the same pairs; a node may be in several families.
        families: How many families there are.
        devices: Registered accelerators of each node, shape (nodes,).
    """

    domain: Places
    domains: int
    member: Places
    family: Places
    families: int
    devices: Places


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What is known of the nodes at an instant.

    Attributes:
        now: The instant, in seconds.
        values: Newest value of each signal, shape (nodes, signals); NaN where never stated or no longer alive.
        observed: Instant of the newest sample of each node, in seconds; NaN where there was none.
        arrived: Instant at which a sample of the node last arrived, however old it was; NaN where none has.
        fresh: Whether a newer sample has come since the previous call.
    """

    now: float
    values: Instants
    observed: Instants
    arrived: Instants
    fresh: Flags


@dataclass(frozen=True, slots=True)
class Recognition:
    """States of the nodes, shape (nodes,), and reachability of the domains.

    Attributes:
        state: Positions in ``STATES``.
        confidence: Probability that the state is right, as calibrated on the training generator.
        reason: Positions in ``REASONS``.
        reachable: Of each domain, shape (domains,).
    """

    state: NDArray[np.int8]
    confidence: Floats
    reason: NDArray[np.int8]
    reachable: Flags


Rows = TypeVar("Rows")


@dataclass(frozen=True, slots=True)
class Column:
    """An array of shape (nodes,), or (height, nodes), that begins as ``fill``."""

    fill: float
    dtype: type = np.float32
    height: int = 0

    def empty(self, nodes: int) -> Any:
        """The array for so many nodes."""
        shape = (self.height, nodes) if self.height else (nodes,)
        return np.full(shape, self.fill, self.dtype)


def blank(kind: type[Rows], nodes: int) -> Rows:
    """A memory of so many nodes of which nothing is known."""
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{name: hint.__metadata__[0].empty(nodes) for name, hint in hints.items()})


def rearranged(rows: Rows, origin: Places) -> Rows:
    """The memory of new rows; row i was row ``origin[i]`` before, or is new where that is −1."""
    new_rows = blank(type(rows), len(origin))
    old = origin >= 0
    for name in get_type_hints(type(rows)):
        getattr(new_rows, name)[..., old] = getattr(rows, name)[..., origin[old]]
    return new_rows


def stacked(out: Floats, rows: Sequence[NDArray[Any]]) -> Floats:
    """Put rows and blocks of rows one below the other; memory that is used again costs far less than new one."""
    return np.concatenate([np.atleast_2d(row) for row in rows], out=out)
