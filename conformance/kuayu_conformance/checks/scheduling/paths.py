"""Links that demands are routed over, and the suite's own paths over them."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, permutations
from math import inf
from typing import TYPE_CHECKING

from kuayu_conformance.checks.scheduling.placement_requests import GIGABIT, GIGABYTE, StateBuilder

if TYPE_CHECKING:
    from kuayu_schemas import documents

BITS = 8.0
HAIR = 1e-6
"""Share of a figure that rounding may take."""


def grid(builder: StateBuilder, demands: int, *, domains: int = 6, limits: bool = True) -> "documents.RouteRequest":
    """A request for routes: domains hang on exchanges, two each, and exchanges on each other."""
    chance = builder.chance
    names, exchanges = builder.names(domains), builder.names(4)
    position = {place: (chance.uniform(0.05, 1.0), chance.uniform(0.05, 1.0)) for place in (*names, *exchanges)}
    pairs = [pair for name in names for exchange in chance.sample(exchanges, 2)
             for pair in ((name, exchange), (exchange, name))]  # fmt: skip
    links = [builder.link(one, other, position[one], position[other], (2.0, 40.0)) for one, other in pairs]
    links += [
        builder.link(one, other, position[one], position[other], (10.0, 100.0))
        for one, other in permutations(exchanges, 2)
    ]
    return {
        "revision": {"epoch": builder.epoch, "number": chance.randrange(1_000_000)},
        "links": links,
        "demands": [_demand(builder, names, limits=limits) for _ in range(demands)],
    }


def _demand(builder: StateBuilder, names: Sequence[str], *, limits: bool) -> "documents.RouteDemand":
    """From one or two domains to one to three others; now and then one of them has it already."""
    chance = builder.chance
    drawn = chance.sample(names, 5)
    sources, targets = drawn[: chance.choice((1, 1, 2))], drawn[2 : 2 + chance.choice((1, 2, 3))]
    demand: documents.RouteDemand = {
        "id": builder.name(),
        "sources": sources,
        "targets": targets,
        "size": chance.uniform(10.0, 5000.0) * GIGABYTE,
    }
    if limits:
        if chance.random() < 0.1:
            targets.append(sources[0])
        if chance.random() < 0.4:
            demand["bandwidth"] = chance.uniform(0.2, 4.0) * GIGABIT
        if chance.random() < 0.3:
            demand["round_trip_time"] = chance.uniform(0.02, 0.1)
    return demand


def congested(links: "Iterable[documents.PathLink]", routes: "Iterable[documents.Route]") -> Iterator[str]:
    """Links of which routes are given more than is available."""
    given: dict[tuple[str, str], float] = {}
    for route in routes:
        for ends in pairwise(route["path"]):
            given[ends] = given.get(ends, 0.0) + route["bandwidth"]
    available = {(link["source"], link["target"]): link["available"] for link in links}
    for ends, bits in given.items():
        if bits > available.get(ends, 0.0) * (1 + HAIR):
            yield f"{bits:.6g} of {available.get(ends, 0.0):.6g} bit/s from {ends[0]} to {ends[1]}"


class Roads:
    """Links with what is left of them.

    Args:
        links: No two from one place to the same other.
        routes: Which have taken their part already.
    """

    def __init__(self, links: "Iterable[documents.PathLink]", routes: "Iterable[documents.Route]" = ()) -> None:
        self._links = {(link["source"], link["target"]): link for link in links}
        self._left = {ends: float(link["available"]) for ends, link in self._links.items()}
        for route in routes:
            for ends in pairwise(route["path"]):
                if ends in self._left:
                    self._left[ends] = max(0.0, self._left[ends] - route["bandwidth"])
        self._leaving: dict[str, list[str]] = {}
        for source, target in self._links:
            self._leaving.setdefault(source, []).append(target)

    def joined(self, path: Sequence[str]) -> bool:
        """Whether links lead along a path."""
        return all(ends in self._links for ends in pairwise(path))

    def seconds(self, path: Sequence[str]) -> float:
        """Round trip along a path."""
        return float(sum(self._links[ends]["round_trip_time"] for ends in pairwise(path)))

    def tariff(self, path: Sequence[str]) -> float:
        """Money for a bit along a path."""
        return float(sum(self._links[ends]["tariff"] for ends in pairwise(path)))

    def room(self, path: Sequence[str]) -> float:
        """Bits a second that are left along a path; infinite along one of a single place."""
        return min((self._left[ends] for ends in pairwise(path)), default=inf)

    def nearest(self, demand: "documents.RouteDemand") -> list[str]:
        """The path of the shortest round trip to the nearest end; nothing where there is none."""
        return self._best(demand, lambda total, ends: total + self._links[ends]["round_trip_time"])

    def cheapest(self, demand: "documents.RouteDemand") -> list[str]:
        """The path of the lowest tariff."""
        return self._best(demand, lambda total, ends: total + self._links[ends]["tariff"])

    def widest(self, demand: "documents.RouteDemand") -> list[str]:
        """The path with the most room."""
        return self._best(demand, lambda worst, ends: max(worst, -self._left[ends]), -inf)

    def _best(
        self, demand: "documents.RouteDemand", grown: Callable[[float, tuple[str, str]], float], least: float = 0.0
    ) -> list[str]:  # fmt: skip
        """The path on which a figure that never falls is least (Dijkstra 1959)."""
        ahead = [(least, [source]) for source in sorted(demand["sources"])]
        heapq.heapify(ahead)
        done = set()
        while ahead:
            figure, path = heapq.heappop(ahead)
            place = path[-1]
            if place in demand["targets"]:
                return path
            if place in done:
                continue
            done.add(place)
            for target in self._leaving.get(place, ()):
                if target not in done:
                    heapq.heappush(ahead, (grown(figure, (place, target)), [*path, target]))
        return []
