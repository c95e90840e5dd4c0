"""A topology from the name of a family, a number of domains and a seed.

1. **Wires.** Hubs are all joined to each other, a place near a hub is joined to it alone. So wires are shared by what
   passes through a hub, and their number grows with that of domains: 56 at 8, 168 at 64.
2. **Topology.** :func:`build` puts sites, wires and their variation together; the same arguments give the same
   topology.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.topology.accelerators import REFERENCE, Scale, devices, domains, electric
from kuayu_conformance.testbed.scheduling.topology.families import Family, family_of, settled
from kuayu_conformance.testbed.scheduling.topology.fitted import fitted
from kuayu_conformance.testbed.scheduling.topology.link_variation import Weather, rhythm
from kuayu_conformance.testbed.scheduling.topology.places import (
    MAX_DOMAINS,
    MIN_DOMAINS,
    PLACES,
    Place,
    kilometres,
    round_trip,
)
from kuayu_conformance.testbed.scheduling.values import DeviceType, Site, Wire

ASSIGNMENTS = 8
"""In how many ways accelerators can be dealt to domains."""
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
    Chinese cloud lists 0.50 for replication to any other region (``TARIFF`` in ``link_variation``). A line that is full
    for a second carries as many bits, so that a price for bits is one for bandwidth that is held.
    """
    near, far = fitted().egress
    reached = min(straight / assumed["reach"], 1.0)
    dollars = near + (far - near) * reached
    return assumed["tariff"] * assumed["yuan"] * dollars / _BITS_OF_A_GIGABYTE


@dataclass(frozen=True, slots=True)
class Topology:
    """Where jobs can run.

    Attributes:
        sites: Domains.
        wires: Links, one for each direction.
        devices: Accelerators by name: those of the pools, and the reference device.
        weather: What varies with time.
    """

    sites: tuple[Site, ...]
    wires: tuple[Wire, ...]
    devices: Mapping[str, DeviceType]
    weather: Weather


def build(
    family: str,
    sites: int,
    seed: str,
    demand: Mapping[str, float] | None = None,
    *,
    nodes: int = 64,
    assignment: int | None = None,
    assumed: Mapping[str, float] | None = None,
) -> Topology:
    """A topology; the same arguments give the same one.

    Args:
        family: Name of a family.
        sites: How many domains, 5 to 64.
        seed: What is drawn follows from it.
        demand: Reference devices by domain that its own jobs need at the 95th percentile; sizes are these. Otherwise
            they follow from the family.
        nodes: Nodes of a domain on average, were they all of the reference device; of no effect with ``demand``.
        assignment: Which of ``ASSIGNMENTS`` ways accelerators are dealt; drawn unless it is given, so that a set of
            runs can go through all of them.
        assumed: Values of assumptions other than those that are taken.

    Raises:
        ValueError: There is no such family, number of domains, assignment or assumption, or the demand is of others.
    """
    chosen = family_of(family)
    if not MIN_DOMAINS <= sites <= MAX_DOMAINS:
        raise ValueError(f"there are topologies of {MIN_DOMAINS} to {MAX_DOMAINS} domains, not of {sites}")
    if assignment is not None and not 0 <= assignment < ASSIGNMENTS:
        raise ValueError(f"accelerators are dealt in {ASSIGNMENTS} ways, 0 to {ASSIGNMENTS - 1}")
    settings = settled(assumed)
    places = PLACES[:sites]
    turn = Chance(seed, "assignment").below(ASSIGNMENTS) if assignment is None else assignment
    made = domains(places, chosen, Scale(nodes, demand), turn, settings)
    joined = links(places, chosen, settings, seed)
    numbers = {place.name: number for number, place in enumerate(places)}
    ends = [(numbers[wire.source], numbers[wire.target]) for wire in joined]
    troubles = [replace(one, chance=min(one.chance * settings["trouble"], 1.0)) for one in chosen.troubles]
    weather = Weather(ends, rhythm(settings), troubles, electric(made, places, settings), seed)
    names = frozenset(pool.device for site in made for pool in site.pools) | {REFERENCE}
    return Topology(made, joined, devices(names, settings["noise"], seed), weather)
