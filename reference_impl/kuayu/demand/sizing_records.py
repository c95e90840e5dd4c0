"""Tasks that ran, by kind, as columns that neither order nor names change."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from kuayu.demand.strategy import Floats

if TYPE_CHECKING:
    from kuayu_schemas import documents

RESOURCES = ("devices", "cores", "memory")
"""Accelerators, processor cores, bytes of the host's memory."""


@dataclass(frozen=True)
class Records:
    """N tasks of one kind in an order of their own; equal if their contents are.

    Attributes:
        digest: Of all columns.
        given: Accelerators, cores, bytes that they were given, N × 3.
        used: The same on average, N × 3.
        peak: The same at most, N × 3; nan where it was not told.
        beside: Bits per second of network and bytes of accelerator memory, N × 2; nan where not told.
        duration: Seconds, N.
    """

    digest: bytes
    given: Floats = field(compare=False, repr=False)
    used: Floats = field(compare=False, repr=False)
    peak: Floats = field(compare=False, repr=False)
    beside: Floats = field(compare=False, repr=False)
    duration: Floats = field(compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.duration)


def by_kind(history: "Sequence[documents.TaskRecord]") -> dict[str, Records]:
    """Records of each kind, kinds in order of name.

    Args:
        history: ``TaskRecord`` as plain JSON.
    """
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for entry in history:
        rows[entry["kind"]].append(_row(entry))
    return {kind: records_of(np.array(rows[kind], dtype=np.float64)) for kind in sorted(rows)}


def records_of(table: Floats) -> Records:
    """Records of a table: given, used, peak (3 columns each), network, accelerator memory, duration; N × 12."""
    # Rows in the order of their contents: sums, folds and shuffles are the same however a history is written down.
    ordered = np.ascontiguousarray(table[np.lexsort(np.nan_to_num(table, nan=-1.0).T)])
    digest = sha256(ordered.tobytes()).digest()
    given, used, peak, beside = np.split(ordered[:, :11], (3, 6, 9), axis=1)
    return Records(digest, given, used, peak, beside, ordered[:, 11])


def amounts(resources: "documents.TaskResources | None") -> tuple[float, float, float]:
    """Columns of a ``TaskResources``; nan where there is none."""
    if resources is None:
        return np.nan, np.nan, np.nan
    return resources["devices"], resources["cores"], resources["memory"]


def _row(entry: "documents.TaskRecord") -> tuple[float, ...]:
    beside = (entry.get("network_flow"), entry.get("accelerator_memory"))
    flow, memory = (np.nan if value is None else value for value in beside)
    return (
        *amounts(entry["requested"]),
        *amounts(entry["used"]),
        *amounts(entry.get("peak")),
        flow,
        memory,
        entry["duration"],
    )
