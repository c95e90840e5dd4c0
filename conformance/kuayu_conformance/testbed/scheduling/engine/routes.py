"""Which wires traffic takes from one domain to another."""

from collections.abc import Sequence

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.engine.paths import Path, shortest_paths
from kuayu_conformance.testbed.scheduling.values import Wire


class Routes:
    """Routes between all pairs of domains: the paths of least round-trip time.

    Attributes:
        paths: Numbers of the wires by source and target, numbers of domains; none where there is no way.
        round_trips: Seconds, (domains, domains); zero at home, infinite where there is no way.
    """

    def __init__(self, sites: Sequence[str], wires: Sequence[Wire]) -> None:
        self._sites = len(sites)
        self.paths: dict[tuple[int, int], Path] = {}
        self.round_trips = np.full((len(sites), len(sites)), np.inf)
        for ends, (seconds, path) in shortest_paths(sites, wires).items():
            self.round_trips[ends] = seconds
            if path:
                self.paths[ends] = path
        self._pairs = np.array(list(self.paths), dtype=np.intp).reshape(-1, 2)
        self._wires = np.array([wire for path in self.paths.values() for wire in path], dtype=np.intp)
        lengths = [len(path) for path in self.paths.values()]
        self._begins = np.cumsum([0, *lengths[:-1]]) if lengths else np.zeros(0, dtype=np.intp)

    def narrowest(self, by_wire: Floats) -> Floats:
        """Least of a figure of wires along each route, (domains, domains); infinite at home, zero without a way."""
        least = np.zeros((self._sites, self._sites))
        np.fill_diagonal(least, np.inf)
        if len(self._wires):
            least[self._pairs[:, 0], self._pairs[:, 1]] = np.minimum.reduceat(by_wire[self._wires], self._begins)
        return least

    def total(self, by_wire: Floats) -> Floats:
        """Sum of a figure of wires along each route, (domains, domains); zero at home, infinite without a way."""
        total = np.full((self._sites, self._sites), np.inf)
        np.fill_diagonal(total, 0.0)
        if len(self._wires):
            total[self._pairs[:, 0], self._pairs[:, 1]] = np.add.reduceat(by_wire[self._wires], self._begins)
        return total
