"""Nodes that had beaten before the watch began, and have not been heard since.

They count as heard when the watch began; but how long a silence is too long for them is not known before others of
their domain have shown how often they beat.
"""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np

from kuayu.resilience.detection.values import Instants
from kuayu.resilience.watching.roll import Roll

SHARE, PATIENCE = 0.5, 15.0
"""Share of a domain's living nodes whose periods have to be known before the silence of others is judged, and seconds
after which it is judged by what is usual."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A node that is judged from now on as if it had been heard.

    Attributes:
        node: Its name.
        domain: Its domain.
        heard: When it counts as heard, s.
        period: Seconds between its beats that are taken for usual.
        dead: Whether it was dead.
    """

    node: str
    domain: str
    heard: float
    period: float
    dead: bool


class Awaited:
    """Nodes of which the detector has not been told yet.

    Args:
        period: Seconds between beats that are usual.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._domain_of: dict[str, str] = {}
        self._dead: set[str] = set()
        self._since = 0.0

    @property
    def domain_of(self) -> Mapping[str, str]:
        """Domain of each that is still awaited."""
        return self._domain_of

    def add(self, nodes: Mapping[str, str], dead: Container[str | None], now: float) -> None:
        """Await nodes from an instant on; some were dead."""
        self._domain_of.update(nodes)
        self._dead.update(node for node in nodes if node in dead)
        self._since = now

    def drop(self, node: str) -> None:
        """A node was heard, or is not watched any more."""
        self._domain_of.pop(node, None)
        self._dead.discard(node)

    def due(self, roll: Roll, period: Instants, now: float) -> list[Expected]:
        """Those that are to be judged by now.

        Args:
            roll: Nodes that the detector knows.
            period: Usual seconds between beats of each of them, shape (nodes,); NaN where that is not known yet.
            now: The instant.
        """
        if not self._domain_of:
            return []
        periods = self._periods(roll, period, now)
        return [
            Expected(node, domain, self._since, periods.get(domain, self._period), node in self._dead)
            for node, domain in self._domain_of.items()
            if domain in periods or node in self._dead
        ]

    def _periods(self, roll: Roll, period: Instants, now: float) -> dict[str, float]:
        """Usual period of the slower nodes of each domain of which enough is known."""
        missing = Counter(domain for node, domain in self._domain_of.items() if node not in self._dead)
        found = {}
        for domain, count in missing.items():
            row = roll.domain_row.get(domain)
            of_it = period[roll.watched.domain == row] if row is not None else period[:0]
            known = of_it[~np.isnan(of_it)]
            if len(known) >= SHARE * (count + len(of_it)):
                found[domain] = float(np.quantile(known, 0.9))
            elif now > self._since + PATIENCE:
                found[domain] = self._period
        return found
