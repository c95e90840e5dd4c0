"""Links between domains: hubs are all joined to each other, a place near a hub is joined to it alone.

So wires are shared by what passes through a hub, and their number grows with that of domains: 56 at 8, 168 at 64.
"""

from collections.abc import Mapping, Sequence

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.topology.distance import kilometres, round_trip
from kuayu_conformance.testbed.scheduling.topology.families import Family
from kuayu_conformance.testbed.scheduling.topology.fitted import fitted
from kuayu_conformance.testbed.scheduling.topology.places import Place
from kuayu_conformance.testbed.scheduling.values import Wire

_BITS_OF_A_GIGABYTE = 8e9


def links(places: Sequence[Place], family: Family, assumed: Mapping[str, float], seed: str) -> tuple[Wire, ...]:
    """All wires, both directions of a line one after the other; the narrower of two domains' lines bounds it."""
    leased = {
        place.name: assumed["access"] * Chance(seed, f"line of {place.name}").weighted(family.leased)
        for place in places
    }
    made = []
    for one, other in lines(places):
        straight = kilometres(one, other)
        capacity = min(leased[one.name], leased[other.name])
        cost = tariff(straight, assumed)
        made += [
            Wire(source.name, target.name, capacity, round_trip(straight), cost)
            for source, target in ((one, other), (other, one))
        ]
    return tuple(made)


def lines(places: Sequence[Place]) -> list[tuple[Place, Place]]:
    """Pairs of places that a line joins."""
    hubs: dict[str, Place] = {}
    joined: list[tuple[Place, Place]] = []
    for place in places:
        hub = hubs.get(place.hub)
        if hub is None:
            joined += [(other, place) for other in hubs.values()]
            hubs[place.hub] = place
        else:
            joined.append((hub, place))
    return joined


def tariff(straight: float, assumed: Mapping[str, float]) -> float:
    """Yuan for a bit a second that is held for a second, between places so many kilometres apart.

    Between the ends of listed prices (``fitting``: for a gigabyte 0.01 US dollars to a near region, 0.0875 to another
    provider) it grows with distance: an assumption. Between hubs it is 0.4 yuan a gigabyte on average, where a large
    Chinese cloud lists 0.50 for replication to any other region (``clock``). A line that is full for a second carries
    as many bits, so that a price for bits is one for bandwidth that is held.
    """
    near, far = fitted().egress
    reached = min(straight / assumed["reach"], 1.0)
    dollars = near + (far - near) * reached
    return assumed["tariff"] * assumed["yuan"] * dollars / _BITS_OF_A_GIGABYTE
