"""Heartbeats that were heard before: a network that repeats itself raises nobody, in whatever order and at what pace.

A beat is known by its number and the sender's clock together, since a sender that was started anew uses numbers again.
The last ``KEPT`` beats of each sender are known; what was sent long before them is told by its number and clock alone.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection.values import Beats, Flags, Instants, Places

KEPT = 64
"""Beats of each sender that are known again; a number has its place by its remainder."""


@dataclass(slots=True)
class _Rows:
    number: Annotated[NDArray[np.int64], Column(-1, np.int64, KEPT)]
    sent: Annotated[Instants, Column(np.nan, np.float64, KEPT)]


class Repeats:
    """Knows beats again."""

    def __init__(self, nodes: int) -> None:
        self._rows = blank(_Rows, nodes)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    def new(self, beats: Beats) -> Flags:
        """Which of the beats were not heard before, shape (beats,); from now on they were."""
        rows, at = self._rows, beats.sequence % KEPT
        known = (rows.number[at, beats.node] == beats.sequence) & (rows.sent[at, beats.node] == beats.sent)
        rows.number[at, beats.node], rows.sent[at, beats.node] = beats.sequence, beats.sent
        fresh: Flags = ~known
        return fresh
