"""A topology from the name of a family, a number of domains and a seed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kuayu_conformance.testbed.chance import Chance
from kuayu_conformance.testbed.scheduling.topology.accelerators import REFERENCE, devices
from kuayu_conformance.testbed.scheduling.topology.assumptions import settled
from kuayu_conformance.testbed.scheduling.topology.families import family_of
from kuayu_conformance.testbed.scheduling.topology.places import MAX_DOMAINS, MIN_DOMAINS, PLACES
from kuayu_conformance.testbed.scheduling.topology.sites import Scale, domains, electric
from kuayu_conformance.testbed.scheduling.topology.weather import Weather, rhythm
from kuayu_conformance.testbed.scheduling.topology.wires import links
from kuayu_conformance.testbed.scheduling.values import DeviceType, Site, Wire

ASSIGNMENTS = 8
"""In how many ways accelerators can be dealt to domains."""


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
