"""Paths over links whose bandwidth is given out bit by bit: the cheapest or the shortest that still has room."""

import heapq
from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from kuayu.scheduling.scene import Flags, Floats, Links

_LEAST = 1e-12
"""Least weight of a link, in that of the heaviest: sparse graphs take nought for no link, and fewer links are best."""

_TIE = 1e-9
"""Weight of the round-trip time beside that of money, each in the greatest there is: of paths alike the shorter."""

_LEFT = 1e-9
"""Share of a link that is as good as nothing."""

_ROUND = 1e-12
"""Share by which sums of round-trip times may be off."""


class Network:
    """Links, and what is left of them. Of two that join the same places the quicker counts.

    Args:
        links: By number.
    """

    def __init__(self, links: Links) -> None:
        self._places = links.places
        order = np.argsort(links.round_trip, kind="stable")
        key = links.source[order] * links.places + links.target[order]
        _, first = np.unique(key, return_index=True)
        kept = order[first]
        kept = kept[links.source[kept] != links.target[kept]]
        self._source, self._target = links.source[kept], links.target[kept]
        self._left = links.available[kept].copy()
        self._nothing = links.available[kept] * _LEFT
        self._round_trip, self._tariff = links.round_trip[kept], links.tariff[kept]
        dear, long = self._tariff.max(initial=0.0) or 1.0, self._round_trip.max(initial=0.0) or 1.0
        self._dear = self._tariff / dear + _TIE * self._round_trip / long + _LEAST
        self._long = self._round_trip / long + _TIE * self._tariff / dear + _LEAST
        # kept is in the order of source and target, so that a link is found by bisection
        self._key = self._source * self._places + self._target

    def cheapest(
        self, sources: Sequence[int], targets: Sequence[int], longest: float, above: float
    ) -> tuple[int, ...] | None:
        """The cheapest path that offers more than ``above`` bits a second within a round-trip time, if there is one."""
        open_links = (self._left > above) & (self._left > self._nothing)
        found = self._path(sources, targets, self._dear, open_links)
        if found is None or self._round_trip[list(found)].sum() <= longest * (1.0 + _ROUND):
            return found
        return self._constrained(sources, targets, longest * (1.0 + _ROUND), open_links)

    def shortest(self, sources: Sequence[int], targets: Sequence[int], longest: float) -> tuple[int, ...] | None:
        """The path of the shortest round-trip time that has room, if there is one within ``longest`` seconds."""
        found = self._path(sources, targets, self._long, self._left > self._nothing)
        if found is None or self._round_trip[list(found)].sum() > longest * (1.0 + _ROUND):
            return None
        return found

    def offers(self, path: Sequence[int]) -> float:
        """Bits a second that are left on all links of a path."""
        return float(self._left[list(path)].min())

    def tariff(self, path: Sequence[int]) -> float:
        """Money for a bit."""
        return float(self._tariff[list(path)].sum())

    def places(self, path: Sequence[int]) -> tuple[int, ...]:
        """Places from end to end."""
        return (int(self._source[path[0]]), *(int(self._target[link]) for link in path))

    def give(self, path: Sequence[int], bandwidth: float) -> None:
        """Give out bandwidth on all links of a path."""
        links = list(path)
        self._left[links] = np.maximum(self._left[links] - bandwidth, 0.0)

    def _path(
        self, sources: Sequence[int], targets: Sequence[int], weight: Floats, among: Flags
    ) -> tuple[int, ...] | None:
        """The path of least weight (E. W. Dijkstra, 1959, as in scipy); of ends alike the one named first."""
        graph = csr_array(
            (weight[among], (self._source[among], self._target[among])), shape=(self._places, self._places)
        )
        far, before, _ = dijkstra(graph, indices=np.array(sources), return_predecessors=True, min_only=True)
        end = min(targets, key=lambda place: float(far[place]))
        if not np.isfinite(far[end]):
            return None
        places = [end]
        while before[places[-1]] >= 0:
            places.append(int(before[places[-1]]))
        return tuple(self._number(one, other) for one, other in pairwise(places[::-1]))

    def _number(self, source: int, target: int) -> int:
        return int(np.searchsorted(self._key, source * self._places + target))

    def _constrained(
        self, sources: Sequence[int], targets: Sequence[int], longest: float, among: Flags
    ) -> tuple[int, ...] | None:
        """The cheapest path within a round-trip time, by labels of both.

        H. C. Joksch, "The shortest route problem with constraints", Journal of Mathematical Analysis and Applications
        14 (1966). What cannot reach a target in time any more is left out.
        """
        rows = np.flatnonzero(among)
        back = csr_array(
            (np.maximum(self._round_trip[rows], _LEAST), (self._target[rows], self._source[rows])),
            shape=(self._places, self._places),
        )
        least: Floats = dijkstra(back, indices=np.array(targets), min_only=True)
        leaving: dict[int, list[int]] = {}
        for link in rows.tolist():
            leaving.setdefault(int(self._source[link]), []).append(link)
        ends, quickest = set(targets), dict.fromkeys(range(self._places), inf)
        heap: list[tuple[float, float, tuple[int, ...], int]] = [(0.0, 0.0, (), place) for place in sources]
        heapq.heapify(heap)
        while heap:
            money, seconds, path, place = heapq.heappop(heap)
            if seconds >= quickest[place]:  # another came here no dearer and no slower
                continue
            quickest[place] = seconds
            if place in ends:
                return path
            for link in leaving.get(place, ()):
                target, later = int(self._target[link]), seconds + float(self._round_trip[link])
                if later + float(least[target]) <= longest + _LEAST * self._places and later < quickest[target]:
                    heapq.heappush(heap, (money + float(self._dear[link]), later, (*path, link), target))
        return None
