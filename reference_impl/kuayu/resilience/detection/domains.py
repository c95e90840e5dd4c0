"""Silence that is shared: a partition, a broken path or a stalled aggregator silences a domain, and kills nobody.

Of the beats that are due from a domain, a share is late. Where that is more than half, the path is taken to be at
fault: first nobody of the domain dies, then the domain is unreachable and its silent nodes are unknown. Where it is
less, but more than the domain's usual losses explain, a node's silence is that much less surprising: if a share f of
the others is late, k beats in a row are missing by weather alone with a chance of f^k. So a rack that fails is
recognised, later than a node.

Where others of the domain go on being heard, silence ends to be the path's: a path loses beats of one node and then of
another, and who is dead is silent for good.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kuayu.perception.recognition.rows import Column, blank, rearranged
from kuayu.resilience.detection.values import REACHABLE, UNREACHABLE, Flags, Floats, Instants, Places, States

MOST, HEALED = 0.5, 0.4
"""Share of due beats above which a domain is silent, and below which it is heard again."""

PATIENCE = 1.0
"""Usual periods for which a domain is silent before it is unreachable."""

ODD, FEW = 3.0, 2.0
"""Standard deviations, and nodes, that may be late beyond what is expected before silence counts as shared."""


@dataclass(slots=True)
class _Rows:
    silent: Annotated[Flags, Column(0, np.bool_)]
    begun: Annotated[Instants, Column(np.nan, np.float64)]
    heard: Annotated[Instants, Column(np.nan, np.float64)]
    state: Annotated[States, Column(REACHABLE, np.int8)]
    since: Annotated[Instants, Column(np.nan, np.float64)]


@dataclass(frozen=True, slots=True)
class Shared:
    """What silence is shared, shape (domains,) each.

    Attributes:
        silent: Whether most of the domain is silent, so that nobody of it may die.
        healed: Whether it is heard again since this look.
        excess: Share of nodes that are late beyond what is expected.
        share: Share of due beats that are late.
        heard: Since when some node of the domain or other was never late, s; NaN while all are.
    """

    silent: Flags
    healed: Flags
    excess: Floats
    share: Floats
    heard: Instants


class Domains:
    """States of domains."""

    def __init__(self, domains: int) -> None:
        self._rows = blank(_Rows, domains)

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._rows = rearranged(self._rows, origin)

    @property
    def state(self) -> States:
        """State of each domain at the last look."""
        return self._rows.state

    @property
    def since(self) -> Instants:
        """Since when each is in it, s."""
        return self._rows.since

    def look(
        self, now: float, domain: Places, late: Flags, counted: Flags, period: Instants, usual: Instants
    ) -> Shared:
        """Who is late together.

        Args:
            now: The instant.
            domain: Of each node, shape (nodes,).
            late: Whether it is late.
            counted: Whether it is waited for at all: the dead are not.
            period: Its usual period, s.
            usual: Share of gaps that are late in usual weather, of each domain.
        """
        rows, size = self._rows, len(self._rows.silent)
        nodes = np.bincount(domain, counted, size)
        number = np.bincount(domain, late, size)
        due = np.bincount(domain, counted / period, size)
        missing = np.bincount(domain, late / period, size)
        share = missing / np.maximum(due, 1e-12)
        expected = nodes * usual
        odd = np.maximum(0.0, number - expected - ODD * np.sqrt(expected) - FEW)
        silent = (share > np.where(rows.silent, HEALED, MOST)) & (number > np.where(rows.silent, HEALED, MOST) * nodes)
        rows.heard = np.where(number < nodes, np.fmin(rows.heard, now), np.nan)
        begins, healed = silent & ~rows.silent, rows.silent & ~silent
        rows.begun[begins] = now
        lasted = now - rows.begun
        rows.silent = silent
        pace = nodes / np.maximum(due, 1e-12)
        unreachable = silent & ((rows.state == UNREACHABLE) | (lasted >= PATIENCE * pace))
        state = np.where(unreachable, UNREACHABLE, REACHABLE).astype(np.int8)
        rows.since[(state != rows.state) | np.isnan(rows.since)] = now
        rows.state = state
        excess = odd / np.maximum(nodes, 1.0)
        return Shared(silent, healed, excess.astype(np.float32), share.astype(np.float32), rows.heard.copy())
