"""Which wires traffic takes from one domain to another."""

import heapq
from collections.abc import Sequence

import numpy as np

from kuayu_conformance.testbed.scheduling.engine.interfaces import Floats
from kuayu_conformance.testbed.scheduling.values import Wire

Path = tuple[int, ...]


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
        leaving: dict[str, list[int]] = {}
        for number, wire in enumerate(wires):
            leaving.setdefault(wire.source, []).append(number)
        for source, name in enumerate(sites):
            found = _shortest(name, leaving, wires)
            for target, other in enumerate(sites):
                seconds, path = (0.0, ()) if target == source else found.get(other, (np.inf, ()))
                self.round_trips[source, target] = seconds
                if path:
                    self.paths[source, target] = path
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


def _shortest(source: str, leaving: dict[str, list[int]], wires: Sequence[Wire]) -> dict[str, tuple[float, Path]]:
    """Paths of least round-trip time from one place to all others (Dijkstra 1959); ties by the numbers of wires."""
    found: dict[str, tuple[float, Path]] = {}
    open_ends: list[tuple[float, Path, str]] = [(0.0, (), source)]
    while open_ends:
        seconds, path, place = heapq.heappop(open_ends)
        if place in found:
            continue
        found[place] = (seconds, path)
        for number in leaving.get(place, ()):
            wire = wires[number]
            if wire.target not in found:
                heapq.heappush(open_ends, (seconds + wire.round_trip, (*path, number), wire.target))
    return found
