"""Which path each demand takes, and between which of the places that will do.

1. Demands are served in their order, the more urgent first: each takes the path, ends included, on which time and money
   weigh least with what is left of the links by then, and all that this path still has or that it can use. To serve one
   transfer after the other ends them earlier on average than to serve them side by side. No demand is split.
2. For a demand the best path is found exactly: the cheapest one at all, then the cheapest of those that offer more than
   it, and so on until none can be better; one of them is the best, whatever the weights.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from kuayu.refusals import RepeatedName, UnknownName, refuse, repeated
from kuayu.scheduling.parse import links_of
from kuayu.scheduling.state import Flags, Floats, Links

if TYPE_CHECKING:
    from kuayu_schemas import documents

_MIN_LINK_WEIGHT = 1e-12
"""Least weight of a link, in that of the heaviest: sparse graphs take zero for no link, and fewer links are best."""

_TIE = 1e-9
"""Weight of the round-trip time beside that of money, each in the greatest there is: of paths alike the shorter."""

_LEFT = 1e-9
"""Share of a link that is as good as nothing."""

_ROUND = 1e-12
"""Share by which sums of round-trip times may be off."""


class ResidualNetwork:
    """Links, and what is left of them. Of two that join the same places the quicker counts.

    Args:
        links: By number.
    """

    def __init__(self, links: Links) -> None:
        self._places = links.places
        order = np.argsort(links.round_trip, kind="stable")
        key = links.source[order] * links.places + links.target[order]
        _, first = np.unique(key, return_index=True)
        usable = order[first]
        usable = usable[links.source[usable] != links.target[usable]]
        self._source, self._target = links.source[usable], links.target[usable]
        self._left = links.available[usable].copy()
        self._nothing = links.available[usable] * _LEFT
        self._round_trip, self._tariff = links.round_trip[usable], links.tariff[usable]
        dear, long = self._tariff.max(initial=0.0) or 1.0, self._round_trip.max(initial=0.0) or 1.0
        self._dear = self._tariff / dear + _TIE * self._round_trip / long + _MIN_LINK_WEIGHT
        self._long = self._round_trip / long + _TIE * self._tariff / dear + _MIN_LINK_WEIGHT
        # they are in the order of source and target, so that a link is found by bisection
        self._key = self._source * self._places + self._target

    def cheapest(
        self, sources: Sequence[int], targets: Sequence[int], longest: float, above: float
    ) -> tuple[int, ...] | None:
        """The cheapest path that offers more than ``above`` bits a second within a round-trip time, if there is one."""
        open_links = (self._left > above) & (self._left > self._nothing)
        path = self._path(sources, targets, self._dear, open_links)
        if path is None or self._round_trip[list(path)].sum() <= longest * (1.0 + _ROUND):
            return path
        return self._constrained(sources, targets, longest * (1.0 + _ROUND), open_links)

    def shortest(self, sources: Sequence[int], targets: Sequence[int], longest: float) -> tuple[int, ...] | None:
        """The path of the shortest round-trip time that has room, if there is one within ``longest`` seconds."""
        path = self._path(sources, targets, self._long, self._left > self._nothing)
        if path is None or self._round_trip[list(path)].sum() > longest * (1.0 + _ROUND):
            return None
        return path

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
            (np.maximum(self._round_trip[rows], _MIN_LINK_WEIGHT), (self._target[rows], self._source[rows])),
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
                if (
                    later + float(least[target]) <= longest + _MIN_LINK_WEIGHT * self._places
                    and later < quickest[target]
                ):
                    heapq.heappush(heap, (money + float(self._dear[link]), later, (*path, link), target))
        return None


METHOD_NAME = "Cheapest paths at rising bandwidths, the most urgent demand first"
METHOD_VERSION = "1.0.0"

SECOND = 0.2
"""What a second counts where no weights are given, in money: about the price of 64 devices."""

_BITS = 8.0

_MAX_FIGURE = 1e300
"""Larger figures are not stated: JSON knows no infinity."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A path for a demand.

    Attributes:
        links: Numbers of its links; none where nothing need be moved.
        places: Numbers of the places on it.
        bandwidth: Bits a second.
        seconds: For each bit.
        money: For each bit.
    """

    links: tuple[int, ...]
    places: tuple[int, ...]
    bandwidth: float
    seconds: float
    money: float


def route(request: "documents.RouteRequest") -> "documents.RoutePlan":
    """Choose paths and the places at their ends.

    Returns:
        A plan that follows from the request and from nothing else. A route lasts size / bandwidth, and costs size
        times the tariffs of its links.

    Raises:
        RepeatedName: Demands share a name.
        UnknownName: No link begins or ends at a place that a demand names.
    """
    _check(request)
    places: dict[str, int] = {}
    for link in request["links"]:
        places.setdefault(link["source"], len(places))
        places.setdefault(link["target"], len(places))
    names = tuple(places)
    links = links_of(request["links"], places)
    weights: documents.ObjectiveWeights = request.get("weights") or {"period": SECOND, "communication": 1.0}
    period, communication = float(weights.get("period") or 0.0), float(weights.get("communication") or 0.0)
    if period == communication == 0.0:  # nothing that is given counts here, so the quickest will do
        period = 1.0
    plans = [
        _plan(request["demands"], ResidualNetwork(links), places, period, communication, near) for near in (False, True)
    ]
    # who is urgent may take what two others need more: then nearest ends and shortest paths can be better for all
    best = min(plans, key=lambda plan: _counted(request["demands"], plan, period, communication))
    routes: list[documents.Route] = []
    unserved: list[str] = []
    for demand, choice in zip(request["demands"], best, strict=True):
        if choice is None:
            unserved.append(demand["id"])
            continue
        bits = demand["size"] * _BITS
        routes.append(
            {
                "demand": demand["id"],
                "path": [names[place] for place in choice.places],
                "bandwidth": choice.bandwidth,
                "duration": min(bits * choice.seconds, _MAX_FIGURE),
                "communication_cost": min(bits * choice.money, _MAX_FIGURE),
            }
        )
    method: documents.SchedulingMethod = {
        "name": METHOD_NAME,
        "version": METHOD_VERSION,
        "weights": {"period": period, "communication": communication},
    }
    return {"revision": request["revision"], "method": method, "routes": routes, "unserved": unserved}


def _check(request: "documents.RouteRequest") -> None:
    refuse(RepeatedName, repeated("/demands", [demand["id"] for demand in request["demands"]]))
    known = {place for link in request["links"] for place in (link["source"], link["target"])}
    unknown = [
        (f"/demands/{number}/{ends}/{position}", f"no link begins or ends at {name}")
        for number, demand in enumerate(request["demands"])
        for ends, places in (("sources", demand["sources"]), ("targets", demand["targets"]))
        for position, name in enumerate(places)
        if name not in known
    ]
    refuse(UnknownName, unknown)


def _plan(
    demands: "Sequence[documents.RouteDemand]",
    network: ResidualNetwork,
    places: Mapping[str, int],
    period: float,
    communication: float,
    near: bool,  # noqa: FBT001 - one of two plans
) -> list[_Choice | None]:
    """Paths of all demands: the best for each, or the shortest to the nearest end."""
    plan: list[_Choice | None] = []
    for demand in demands:
        sources = [places[name] for name in demand["sources"]]
        targets = [places[name] for name in demand["targets"]]
        common = next((place for place in sources if place in set(targets)), None)
        if common is not None:
            plan.append(_Choice((), (common,), 0.0, 0.0, 0.0))
            continue
        most, longest = demand.get("bandwidth") or inf, demand.get("round_trip_time", inf)
        if near:
            path = network.shortest(sources, targets, longest)
            choice = None if path is None else _choice(network, path, most)
        else:
            choice = _best(network, sources, targets, most, longest, period, communication)
        if choice is not None:
            network.give(choice.links, choice.bandwidth)
        plan.append(choice)
    return plan


def _best(
    network: ResidualNetwork,
    sources: Sequence[int],
    targets: Sequence[int],
    most: float,
    longest: float,
    period: float,
    communication: float,
) -> _Choice | None:
    best: tuple[float, _Choice] | None = None
    above = 0.0
    while above < most:
        path = network.cheapest(sources, targets, longest, above)
        if path is None:
            break
        choice = _choice(network, path, most)
        # whatever offers more is no cheaper, and no quicker than a demand that has all it can use
        if best is not None and communication * choice.money + period / most >= best[0]:
            break
        score = communication * choice.money + period * choice.seconds
        if best is None or score < best[0]:
            best = score, choice
        above = network.offers(path)
    return None if best is None else best[1]


def _choice(network: ResidualNetwork, links: tuple[int, ...], most: float) -> _Choice:
    bandwidth = min(network.offers(links), most)
    return _Choice(
        links, network.places(links), bandwidth, 1.0 / max(bandwidth, 1.0 / _MAX_FIGURE), network.tariff(links)
    )


def _counted(
    demands: "Sequence[documents.RouteDemand]", plan: Sequence[_Choice | None], period: float, communication: float
) -> tuple[int, float]:
    """How many demands are not served, and what time and money of the others weigh."""
    pairs = [(demand["size"] * _BITS, choice) for demand, choice in zip(demands, plan, strict=True) if choice]
    weighed = sum(bits * (period * choice.seconds + communication * choice.money) for bits, choice in pairs)
    return len(demands) - len(pairs), weighed
