"""Flapping: who comes and goes is charged a penalty that decays (C. Villamizar et al., RFC 2439, 1998).

A node that was taken for dead and is heard again, without having begun anew or after having done so, is charged. Above
``SUPPRESS`` it flaps until the penalty has decayed below ``REUSE``. While it flaps it is suspected at best, so that
nobody relies on it, and it is dead only when it is silent for clearly longer than it has been and come back from: one
death is announced, not one for each turn.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection.values import Flags, Instants, Places

RETURN = 1000.0
"""Penalty of a return from the dead."""

SUPPRESS, REUSE, CEILING = 2000.0, 750.0, 6000.0
"""Penalties above which a node flaps, below which it does no longer, and which is the greatest (RFC 2439 §4.2)."""

LONGER = 1.5
"""How many times its longest recent absence a flapping node has to be silent to be dead."""


@dataclass(slots=True)
class _Rows:
    penalty: Annotated[Instants, Column(0.0, np.float64)]
    absence: Annotated[Instants, Column(0.0, np.float64)]
    flapping: Annotated[Flags, Column(0, np.bool_)]


class Flapping:
    """Penalties of nodes."""

    def __init__(self, nodes: int, half_life: float, patience: float) -> None:
        self._rows = blank(_Rows, nodes)
        self._half_life, self._patience = half_life, patience
        self._now = np.nan

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    def charge(self, nodes: Places, absence: Instants) -> None:
        """Charge nodes for their return from an absence of so many seconds; a node may occur once only."""
        rows = self._rows
        rows.penalty[nodes] = np.minimum(rows.penalty[nodes] + RETURN, CEILING)
        rows.absence[nodes] = np.maximum(rows.absence[nodes], absence)
        rows.flapping[nodes] |= rows.penalty[nodes] >= SUPPRESS

    def at(self, now: float) -> Flags:
        """Who flaps at an instant, shape (nodes,)."""
        rows = self._rows
        passed = 0.0 if np.isnan(self._now) else max(0.0, now - self._now)
        self._now = now
        rows.penalty *= 0.5 ** (passed / self._half_life)
        rows.flapping &= rows.penalty >= REUSE
        rows.absence[rows.penalty < REUSE / 2] = 0.0
        return rows.flapping.copy()

    def patience(self) -> Instants:
        """Seconds of silence before which a node cannot be dead; nought for those that do not flap, shape (nodes,)."""
        rows = self._rows
        return np.where(rows.flapping, np.minimum(LONGER * rows.absence, self._patience), 0.0)

    def penalty(self, node: int) -> float:
        """Penalty of a node at the last instant asked."""
        return float(self._rows.penalty[node])
