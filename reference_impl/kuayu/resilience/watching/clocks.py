"""By how much the clocks of nodes are off: nothing is required of them, and yet they tell when a step was not done yet.

Steps are compared to parts of a second, and the way of a beat takes as long: an aggregator gives it on in turns, a path
holds it up. The quickest beat of a node shows its clock and its way together. Where those of nearly all nodes of a
domain are alike, their clocks are set, and the differences are those of ways; where they are not, nobody's is believed.
"""

import numpy as np

from kuayu.resilience.detection import Beats, Watched
from kuayu.resilience.detection.values import Instants, Places

LEAK = 0.01
"""Share by which a node's quickest beat follows a slower one: that was late, or the clock was set."""

ALIKE, NEARLY = 0.2, 0.75
"""Seconds from the median of their domain within which clocks are alike, and share of nodes that are so where clocks
are set."""

SELDOM = 16
"""Batches of beats between two looks at whether clocks are set."""


class Clocks:
    """Clocks of the nodes of a roll."""

    def __init__(self) -> None:
        self._quickest: Instants = np.zeros(0)
        self._offset: Instants = np.zeros(0)
        self._batches = 0

    def rearrange(self, origin: Places) -> None:
        """Take over the rows that stay."""
        self._quickest = np.append(self._quickest, np.nan)[origin]
        self._offset = np.append(self._offset, np.nan)[origin]
        self._batches = 0

    def compare(self, beats: Beats, watched: Watched) -> None:
        """Learn from beats."""
        least = np.full(len(self._quickest), np.nan)
        np.fmin.at(least, beats.node, beats.received - beats.sent)
        longer = np.nan_to_num(least - self._quickest, nan=0.0)
        self._quickest = np.fmin(least, self._quickest + LEAK * longer)
        if self._batches % SELDOM == 0:
            self._offset = self._agreed(watched)
        self._batches += 1

    def ours(self, node: Places, sent: Instants) -> Instants:
        """When beats were sent, by our clock and as if they had taken the quickest way."""
        offset = self._offset[node]
        found: Instants = sent + np.where(np.isnan(offset), self._quickest[node], offset)
        return found

    def _agreed(self, watched: Watched) -> Instants:
        """Offset of each clock: its own, or that of its domain where clocks are set."""
        found = self._quickest.copy()
        for domain in range(watched.domains):
            its = np.flatnonzero((watched.domain == domain) & ~np.isnan(found))
            if len(its):
                middle = float(np.median(found[its]))
                alike = its[np.abs(found[its] - middle) <= ALIKE]
                if len(alike) >= NEARLY * len(its):
                    found[alike] = middle
        return found
