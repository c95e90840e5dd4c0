"""Who is there: domains, nodes, families, links, and the bodies that register them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.telemetry.accelerators import KINDS, Kind
from kuayu_conformance.testbed.telemetry.values import Scale

if TYPE_CHECKING:
    from kuayu_schemas import documents

NameOf = Callable[[str], str]
UrnOf = Callable[[str, str], str]

FAMILY, SOLO, SERVING = "family", "single", "serving"

_FAMILY_SHARE, _SOLO_SHARE = 0.66, 0.18
_SIZES = ((2, 5.0), (3, 4.0), (4, 7.0), (6, 2.0), (8, 3.0), (12, 0.7), (16, 0.8))
_LATE_EVERY = 8.0  # seconds between two nodes that are registered late, at most
_LATE_SHARE = 0.005
_MOST_MESHED = 8
_HUBS = 4

HUBS = (
    ("Beijing-Tianjin-Hebei", 40.77, 114.89),
    ("Yangtze Delta", 31.35, 118.43),
    ("Greater Bay", 24.81, 113.60),
    ("Chengdu-Chongqing", 30.57, 104.07),
    ("Inner Mongolia", 40.38, 111.82),
    ("Guizhou", 26.45, 106.60),
    ("Gansu", 35.71, 107.64),
    ("Ningxia", 37.50, 105.20),
)
"""The eight national hub nodes, at the towns of their data centres: latitude and longitude in degrees."""


@dataclass(slots=True)
class Group:
    """Nodes that work on one job together, or one node that works alone; rows ``first`` … ``last`` - 1."""

    number: int
    kind: str
    domain: int
    first: int
    last: int


@dataclass(slots=True)
class Population:
    """Rows of nodes, in the order of domain and group.

    Attributes:
        kinds: Kind of each domain.
        domain: Domain of each row.
        group: Group of each row.
        groups: Groups, in the order of rows.
        joins: Second at which each row is registered; nought from the begin.
        number: Number of each row in its label: those of a domain follow each other, in an order that tells nothing.
    """

    kinds: tuple[Kind, ...]
    domain: NDArray[np.int64]
    group: NDArray[np.int64]
    groups: tuple[Group, ...]
    joins: NDArray[np.int64]
    number: NDArray[np.int64]
    labels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.labels = tuple(f"node-{number:05d}" for number in self.number.tolist())

    @property
    def nodes(self) -> int:
        """How many rows."""
        return len(self.labels)

    def kind(self, row: int) -> Kind:
        """What the domain of a row consists of."""
        return self.kinds[int(self.domain[row])]


def populate(scale: Scale, seed: str) -> Population:
    """Domains of nearly the same size; in each, families first, then single nodes, then servers of inference."""
    chance = Chance(seed, "population")
    domains: list[int] = []
    groups: list[Group] = []
    for domain in range(scale.domains):
        size = scale.nodes * (domain + 1) // scale.domains - scale.nodes * domain // scale.domains
        for kind, members in _divided(size, chance):
            groups.append(Group(len(groups), kind, domain, len(domains), len(domains) + members))
            domains += [domain] * members
    group_of = np.repeat(np.arange(len(groups)), [group.last - group.first for group in groups])
    joins = np.zeros(len(domains), dtype=np.int64)
    late = max(int(np.ceil(scale.seconds / _LATE_EVERY)), round(scale.nodes * _LATE_SHARE))
    alone = [row for _, row in sorted((chance.fraction(), group.first) for group in groups if group.kind == SOLO)]
    late = min(late, len(alone))
    for number, row in enumerate(alone[:late]):
        joins[row] = scale.warm_up + int(number * (scale.seconds - 1) / late)
    kinds = tuple(KINDS[domain % len(KINDS)] for domain in range(scale.domains))
    domain_of = np.array(domains)
    numbers = np.empty(len(domains), dtype=np.int64)
    numbers[np.lexsort((stream(seed, "labels").random(len(domains)), domain_of))] = np.arange(len(domains))
    return Population(kinds, domain_of, group_of, tuple(groups), joins, numbers)


def _divided(size: int, chance: Chance) -> list[tuple[str, int]]:
    """Kinds and sizes of the groups of a domain."""
    found: list[tuple[str, int]] = []
    left = round(size * _FAMILY_SHARE)
    while left > 1:
        members = min(chance.weighted(_SIZES), left)
        if left - members == 1:  # nobody is a family alone
            members += 1 if members < _SIZES[-1][0] else -1
        found.append((FAMILY, members))
        left -= members
    alone = size - sum(members for _, members in found)
    solo = round(alone * _SOLO_SHARE / (1 - _FAMILY_SHARE))
    return found + [(SOLO, 1)] * solo + [(SERVING, 1)] * (alone - solo)


def domain_bodies(population: Population, name_of: NameOf) -> "tuple[documents.Domain, ...]":
    """Domains, the first eight at the hubs and further ones beside them."""
    bodies: list[documents.Domain] = []
    for number in range(len(population.kinds)):
        region, latitude, longitude = HUBS[number % len(HUBS)]
        aside = number // len(HUBS)
        location: documents.Location = {
            "latitude": round(latitude + 0.1 * aside, 2),
            "longitude": longitude,
            "region": region,
        }
        bodies.append({"id": name_of(f"domain-{number:02d}"), "location": location, "operator": "conformance"})
    return tuple(bodies)


def node_bodies(population: Population, name_of: NameOf, urn_of: UrnOf) -> "tuple[documents.Node, ...]":
    """Nodes by row; devices of a kind are shared between bodies."""
    domains = [name_of(f"domain-{number:02d}") for number in range(len(population.kinds))]
    devices = [kind.bodies() for kind in population.kinds]
    return tuple(
        {
            "id": name_of(label),
            "domain": domains[domain],
            "devices": devices[domain],
            "compute_identifier": urn_of("node", label),
        }
        for label, domain in zip(population.labels, population.domain.tolist(), strict=True)
    )


def family_bodies(population: Population, urn_of: UrnOf) -> "tuple[documents.ComputeIdentifier, ...]":
    """Families; single nodes and servers of inference have none."""
    return tuple(
        {
            "urn": urn_of("family", f"family-{group.number:05d}"),
            "members": [urn_of("node", label) for label in sorted(population.labels[group.first : group.last])],
        }
        for group in population.groups
        if group.kind == FAMILY
    )


def link_bodies(population: Population, name_of: NameOf) -> "tuple[documents.Link, ...]":
    """Links: all ordered pairs of few domains; of many a ring, and both ways between all and hubs."""
    many = len(population.kinds)
    if many <= _MOST_MESHED:
        pairs = [(a, b) for a in range(many) for b in range(many) if a != b]
    else:
        ring = {(a, (a + step) % many) for a in range(many) for step in (1, many - 1)}
        spokes = {(a, b) for a in range(many) for b in range(_HUBS)}
        pairs = sorted({pair for a, b in ring | spokes for pair in ((a, b), (b, a)) if a != b})
    return tuple(
        {
            "id": name_of(f"link-{a:02d}-{b:02d}"),
            "source": name_of(f"domain-{a:02d}"),
            "destination": name_of(f"domain-{b:02d}"),
            "capacity": 100e9,
            "medium": "leased",
        }
        for a, b in pairs
    )
