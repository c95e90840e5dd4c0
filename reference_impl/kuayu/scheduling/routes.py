"""Which path each demand takes, and between which of the places that will do.

Demands are served in their order, the more urgent first: each takes the path, ends included, on which time and money
weigh least with what is left of the links by then, and all that this path still has or that it can use. To serve one
transfer after the other ends them earlier on average than to serve them side by side. No demand is split.

For a demand the best path is found exactly: the cheapest one at all, then the cheapest of those that offer more than
it, and so on until none can be better; one of them is the best, whatever the weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from kuayu.refusals import RepeatedName, UnknownName, refuse, repeated
from kuayu.scheduling.network_paths import Network
from kuayu.scheduling.reading import links_of

Plain = Mapping[str, Any]

METHOD_NAME = "Cheapest paths at rising bandwidths, the most urgent demand first"
METHOD_VERSION = "1.0.0"

SECOND = 0.2
"""What a second counts where no weights are given, in money: about the price of 64 devices."""

_BITS = 8.0

_MOST = 1e300
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


def route(request: dict[str, Any]) -> dict[str, Any]:
    """Choose paths and the places at their ends.

    Args:
        request: A valid ``RouteRequest``.

    Returns:
        A ``RoutePlan``. A route lasts size / bandwidth, and costs size times the tariffs of its links.

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
    weights = request.get("weights") or {"period": SECOND, "communication": 1.0}
    period, communication = float(weights.get("period") or 0.0), float(weights.get("communication") or 0.0)
    if period == communication == 0.0:  # nothing that is given counts here, so the quickest will do
        period = 1.0
    plans = [_plan(request["demands"], Network(links), places, period, communication, near) for near in (False, True)]
    # who is urgent may take what two others need more: then nearest ends and shortest paths can be better for all
    best = min(plans, key=lambda plan: _counted(request["demands"], plan, period, communication))
    routes, unserved = [], []
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
                "duration": min(bits * choice.seconds, _MOST),
                "communication_cost": min(bits * choice.money, _MOST),
            }
        )
    method = {
        "name": METHOD_NAME,
        "version": METHOD_VERSION,
        "weights": {"period": period, "communication": communication},
    }
    return {"revision": request["revision"], "method": method, "routes": routes, "unserved": unserved}


def _check(request: Plain) -> None:
    refuse(RepeatedName, repeated("/demands", [demand["id"] for demand in request["demands"]]))
    known = {link[end] for link in request["links"] for end in ("source", "target")}
    unknown = [
        (f"/demands/{number}/{ends}/{position}", f"no link begins or ends at {name}")
        for number, demand in enumerate(request["demands"])
        for ends in ("sources", "targets")
        for position, name in enumerate(demand[ends])
        if name not in known
    ]
    refuse(UnknownName, unknown)


def _plan(
    demands: Sequence[Plain],
    network: Network,
    places: Mapping[str, int],
    period: float,
    communication: float,
    near: bool,  # noqa: FBT001 - one of two plans
) -> list[_Choice | None]:
    """Paths of all demands: the best for each, or the shortest to the nearest end."""
    plan: list[_Choice | None] = []
    for demand in demands:
        sources, targets = ([places[name] for name in demand[ends]] for ends in ("sources", "targets"))
        here = next((place for place in sources if place in set(targets)), None)
        if here is not None:
            plan.append(_Choice((), (here,), 0.0, 0.0, 0.0))
            continue
        most, longest = demand.get("bandwidth") or inf, demand.get("round_trip_time", inf)
        if near:
            found = network.shortest(sources, targets, longest)
            choice = None if found is None else _choice(network, found, most)
        else:
            choice = _best(network, sources, targets, most, longest, period, communication)
        if choice is not None:
            network.give(choice.links, choice.bandwidth)
        plan.append(choice)
    return plan


def _best(
    network: Network,
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
        found = network.cheapest(sources, targets, longest, above)
        if found is None:
            break
        choice = _choice(network, found, most)
        # whatever offers more is no cheaper, and no quicker than a demand that has all it can use
        if best is not None and communication * choice.money + period / most >= best[0]:
            break
        score = communication * choice.money + period * choice.seconds
        if best is None or score < best[0]:
            best = score, choice
        above = network.offers(found)
    return None if best is None else best[1]


def _choice(network: Network, links: tuple[int, ...], most: float) -> _Choice:
    bandwidth = min(network.offers(links), most)
    return _Choice(links, network.places(links), bandwidth, 1.0 / max(bandwidth, 1.0 / _MOST), network.tariff(links))


def _counted(
    demands: Sequence[Plain], plan: Sequence[_Choice | None], period: float, communication: float
) -> tuple[int, float]:
    """How many demands are not served, and what time and money of the others weigh."""
    pairs = [(demand["size"] * _BITS, choice) for demand, choice in zip(demands, plan, strict=True) if choice]
    weighed = sum(bits * (period * choice.seconds + communication * choice.money) for bits, choice in pairs)
    return len(demands) - len(pairs), weighed
