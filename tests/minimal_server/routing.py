"""Routes: path and end are chosen together, the more urgent demand first, and nothing is given twice."""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from minimal_server.buying import Buying
from minimal_server.core import Answer, Json, Request
from minimal_server.weighing import SECONDS_OF_MONEY, Weights

METHOD_OF_ROUTES = {"name": "minimal server: widest and cheapest", "version": "1"}
WIDTHS = 32
"""Bandwidths for which paths are looked for."""
BITS = 8.0


@dataclass(frozen=True)
class Found:
    """A path of a demand: its links by number, and the place that it begins at."""

    source: str
    links: tuple[int, ...]


@dataclass
class Wires:
    """Links, and what may still be given out of each."""

    links: Sequence[Json]
    left: list[float]
    leaving: dict[str, list[int]]


class Routing(Buying):
    """Paths for demands."""

    def plan_routes(self, request: Request) -> Answer:
        """A route for each demand that there is room for."""
        body = self.body(request, "RouteRequest")
        self.refuse_if("invalid-body", "names are given twice", self.twice("/demands", body["demands"], "id"))
        self.refuse_if("unknown-reference", "names are not in the request", self.unknown_places(body))
        wires = self.wires(body["links"])
        routes, unserved = [], []
        for demand in body["demands"]:
            found = min(
                self.candidates(wires, demand),
                key=lambda one: self.toll(wires, demand, one, self.weights(body)),
                default=None,
            )
            if found is None:
                unserved.append(demand["id"])
            else:
                routes.append(self.route(wires, demand, found))
                self.give_out(wires, found, routes[-1]["bandwidth"])
        return Answer(
            200,
            {"revision": self.echoed(body), "method": METHOD_OF_ROUTES, "routes": routes, "unserved": unserved},
        )

    def unknown_places(self, body: Json) -> Iterator[tuple[str, str]]:
        """Places of demands at which no link begins or ends."""
        places = {row[member] for row in body["links"] for member in ("source", "target")}
        for number, demand in enumerate(body["demands"]):
            for member in ("sources", "targets"):
                for position, name in enumerate(demand[member]):
                    yield from self.unknown(f"/demands/{number}/{member}/{position}", name, places)

    def wires(self, links: Sequence[Json]) -> Wires:
        """Links from which nothing was given out."""
        leaving: dict[str, list[int]] = {}
        for number, link in enumerate(links):
            leaving.setdefault(link["source"], []).append(number)
        return Wires(links, [float(link["available"]) for link in links], leaving)

    def candidates(self, wires: Wires, demand: Json) -> Iterator[Found]:
        """Paths that will do: for each width the cheapest, and the one with the shortest round trip."""
        here = [place for place in demand["sources"] if place in set(demand["targets"])]
        if here:
            yield Found(here[0], ())
            return
        for width in self.widths(wires, demand):
            for measure in ("tariff", "round_trip_time"):
                found = self.shortest(wires, demand, width, measure)
                if found and self.is_quick(wires, demand, found):
                    yield found

    def widths(self, wires: Wires, demand: Json) -> list[float]:
        """Bandwidths that a path may have, at most as many as are worth a look."""
        most = demand.get("bandwidth", math.inf)
        widths = sorted({min(left, most) for left in wires.left if left > 0})
        if len(widths) <= WIDTHS:
            return widths
        return [widths[round(number * (len(widths) - 1) / (WIDTHS - 1))] for number in range(WIDTHS)]

    def shortest(self, wires: Wires, demand: Json, width: float, measure: str) -> Found | None:
        """The path of the least sum of a measure over links that have room, from any source to any target."""
        targets, done = set(demand["targets"]), set[str]()
        heap: list[tuple[float, int, str, Found]] = [
            (0.0, number, place, Found(place, ())) for number, place in enumerate(demand["sources"])
        ]
        heapq.heapify(heap)
        count = len(heap)
        while heap:
            length, _, place, found = heapq.heappop(heap)
            if place in targets:
                return found
            if place in done:
                continue
            done.add(place)
            for number in wires.leaving.get(place, ()):
                if wires.left[number] >= width:
                    count += 1
                    link = wires.links[number]
                    longer = Found(found.source, (*found.links, number))
                    heapq.heappush(heap, (length + link[measure], count, link["target"], longer))
        return None

    def is_quick(self, wires: Wires, demand: Json, found: Found) -> bool:
        """Whether a path's round trip is short enough."""
        taken = self.total(wires, found.links, "round_trip_time")
        return taken <= float(demand.get("round_trip_time", math.inf))

    def total(self, wires: Wires, links: Iterable[int], measure: str) -> float:
        """Sum of a measure over links."""
        return math.fsum(wires.links[number][measure] for number in links)

    def bandwidth(self, wires: Wires, demand: Json, found: Found) -> float:
        """What a demand is given: what the narrowest link has left, and no more than is of use."""
        if not found.links:
            return 0.0
        left = min(wires.left[number] for number in found.links)
        return float(min(left, demand.get("bandwidth", left)))

    def route(self, wires: Wires, demand: Json, found: Found) -> Json:
        """A path as it is told."""
        bandwidth = self.bandwidth(wires, demand, found)
        return {
            "demand": demand["id"],
            "path": [found.source, *(wires.links[number]["target"] for number in found.links)],
            "bandwidth": bandwidth,
            "duration": demand["size"] * BITS / bandwidth if found.links else 0.0,
            "communication_cost": demand["size"] * BITS * self.total(wires, found.links, "tariff"),
        }

    def toll(self, wires: Wires, demand: Json, found: Found, weights: Weights) -> float:
        """What a path costs in time and money by weight; what flows on and on is weighed by its round trip."""
        told = self.route(wires, demand, found)
        objectives = {
            "period": told["duration"] + self.total(wires, found.links, "round_trip_time"),
            "communication": SECONDS_OF_MONEY * told["communication_cost"],
        }
        return self.score(weights, objectives)

    def give_out(self, wires: Wires, found: Found, bandwidth: float) -> None:
        """What was given to one is there for nobody else."""
        for number in found.links:
            wires.left[number] -= bandwidth
