"""Paths between domains: the shortest by round-trip time, what they offer, and what they cost.

E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1 (1959), as in scipy.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

_MIN_LINK_SECONDS = 1e-9
"""Seconds that a link takes at least: sparse graphs take zero for no link."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths between domains, all (domains, domains), from row to column.

    Attributes:
        available: Bits a second that one more flow may hope for; infinite at home, zero where nothing leads.
        round_trip: Seconds; zero at home, infinite where nothing leads.
        tariff: Money for a bit; zero at home, infinite where nothing leads.
    """

    available: Floats
    round_trip: Floats
    tariff: Floats

    @classmethod
    def over(
        cls,
        domains: int,
        places: int,
        source: Numbers,
        target: Numbers,
        available: Floats,
        round_trip: Floats,
        tariff: Floats,
    ) -> "Paths":
        """Paths over links; figures are by link, and the first places are the domains.

        Of two links that join the same places the quicker counts.
        """
        ends = source.tobytes(), target.tobytes()
        rows, columns, links, begins = _routes(domains, places, *ends, round_trip.tobytes())
        wide, long = np.zeros((domains, domains)), np.full((domains, domains), inf)
        dear = long.copy()
        home = np.arange(domains)
        wide[home, home], long[home, home], dear[home, home] = inf, 0.0, 0.0
        if len(links):
            wide[rows, columns] = np.minimum.reduceat(available[links], begins)
            long[rows, columns] = np.add.reduceat(round_trip[links], begins)
            dear[rows, columns] = np.add.reduceat(tariff[links], begins)
        return cls(wide, long, dear)

    def best_copy(self, holders: Numbers) -> Numbers:
        """Which of the domains that hold a copy is the source for each domain: whose path offers most.

        A negative number where no path leads from any of them.
        """
        if len(holders) == 0:
            return np.full(len(self.available), -1, dtype=np.intp)
        offered = self.available[holders]
        best = holders[offered.argmax(axis=0)]
        return np.where(np.isfinite(self.round_trip[best, np.arange(len(best))]), best, -1)

    def seconds(self, bits: Floats, source: Numbers) -> Floats:
        """How long so many bits take from each source to every domain, (sources, domains); ``bits`` is a column."""
        offered = self.available[source]
        with np.errstate(divide="ignore", invalid="ignore"):
            took = np.where(offered > 0.0, bits / offered, inf)
        return np.where((bits == 0.0) & np.isfinite(self.round_trip[source]), 0.0, took)

    def money(self, bits: Floats, source: Numbers) -> Floats:
        """What that costs, (sources, domains)."""
        tariff = self.tariff[source]
        with np.errstate(invalid="ignore"):
            return np.where((bits == 0.0) & np.isfinite(tariff), 0.0, bits * tariff)


@lru_cache(maxsize=32)
def _routes(
    domains: int, places: int, source: bytes, target: bytes, round_trip: bytes
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Pairs of domains that a path joins, the links of all paths, and where those of each pair begin.

    It depends on the links and their round-trip times alone, which hardly ever change, and is kept for that reason.
    """
    sources, targets = np.frombuffer(source, dtype=np.intp), np.frombuffer(target, dtype=np.intp)
    seconds = np.frombuffer(round_trip, dtype=np.float64)
    link = np.full((places, places), -1, dtype=np.intp)
    for number in np.argsort(-seconds, kind="stable").tolist():
        link[sources[number], targets[number]] = number
    np.fill_diagonal(link, -1)
    rows, columns = np.nonzero(link >= 0)
    weights = np.maximum(seconds[link[rows, columns]], _MIN_LINK_SECONDS)
    graph = csr_matrix((weights, (rows, columns)), shape=(places, places))
    _, before = dijkstra(graph, indices=np.arange(domains), return_predecessors=True)
    before = before.reshape(domains, places)
    pairs: list[tuple[int, int]] = []
    paths: list[list[int]] = []
    for start in range(domains):
        for end in range(domains):
            if start != end and before[start, end] >= 0:
                pairs.append((start, end))
                paths.append(_links(link, before[start], start, end))
    lengths = [len(path) for path in paths]
    ends = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    begins = np.cumsum([0, *lengths[:-1]], dtype=np.intp)
    return ends[:, 0], ends[:, 1], np.array([number for path in paths for number in path], dtype=np.intp), begins


def _links(link: Numbers, before: NDArray[np.int32], start: int, end: int) -> list[int]:
    """Numbers of the links of a path that there is."""
    links: list[int] = []
    while end != start:
        links.append(int(link[before[end], end]))
        end = int(before[end])
    return links[::-1]
