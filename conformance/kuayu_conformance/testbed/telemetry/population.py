"""Who is there: domains of several makes, nodes, families, links, and the bodies that register them.

1. **Kinds.** A kind of domain is an accelerator, and what its exporters show with which resolution. Capacities and
   power limits are published ones (stas00/ml-engineering ``compute/accelerator``; FlagOpen/FlagPerf ``base/benchmarks``
   for Ascend and MetaX; the vendor's announcement for the MLU370-X8). Idle power is that of Acme for the A100 (5th
   percentile). Assumptions of the usual order are: idle power of the others, the limit of the DCU K100 AI, power with
   an open context except on NVIDIA's (see :mod:`kuayu_conformance.testbed.telemetry.jobs`), and the speed of networks.
   Resolutions and missing fields are those of ``spec/indicators.yaml``; nodes report what their device exporter and,
   for flows, node-exporter yield.
2. **Population.** Domains are of nearly the same size; in each, families come first, then single nodes, then servers of
   inference.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.telemetry.values import Scale

if TYPE_CHECKING:
    from kuayu_schemas import documents

MEASURES = (
    "accelerator_utilisation",
    "matrix_pipe_activity",
    "memory_bandwidth_utilisation",
    "power",
    "accelerator_memory_used",
    "scale_out_transmit_flow",
    "scale_out_receive_flow",
    "storage_read_flow",
    "storage_write_flow",
    "faults",
    "allocatable_share",
)
"""Everything that a sample may hold, in the order of a sample's members."""
RATIOS = frozenset(MEASURES[:3])
"""Means over devices; the resolution of a mean is that of a device over their number."""
_GIB = 1 << 30
_NETWORK = {"scale_out_transmit_flow": 4.0, "scale_out_receive_flow": 4.0}
_DISKS = {"storage_read_flow": 512.0, "storage_write_flow": 512.0}
_OTHERS = {"faults": 1.0, "allocatable_share": 0.0}


@dataclass(frozen=True)
class Kind:
    """A kind of domain.

    Attributes:
        name: Short name.
        vendor: Who makes the accelerator.
        model: Name of the product.
        kind: Kind of accelerator.
        memory: Bytes of a device.
        limit: Watts that a device may draw.
        idle: Watts without a context.
        held: Watts with an open context that does nothing.
        devices: Devices of a node.
        network: Bytes a second that a node's network cards carry one way.
        resolutions: Least step of each measure that is reported, of one device; zero is none.
        standing: Whether faults show one while an error code stands, rather than how often an error occurred.
        by_device: Whether each device is reported rather than the node.
    """

    name: str
    vendor: str
    model: str
    kind: "documents.AcceleratorKind"
    memory: int
    limit: float
    idle: float
    held: float
    devices: int
    network: float
    resolutions: dict[str, float]
    standing: bool
    by_device: bool = False

    @property
    def shows_network(self) -> bool:
        """Whether flows between nodes are reported."""
        return "scale_out_transmit_flow" in self.resolutions

    def bodies(self) -> "list[documents.Device]":
        """Devices of a node."""
        return [
            {
                "id": str(number),
                "kind": self.kind,
                "vendor": self.vendor,
                "model": self.model,
                "memory_capacity": self.memory,
                "power_limit": self.limit,
            }
            for number in range(self.devices)
        ]


_MIB = float(1 << 20)
_PERCENT = 0.01


def _dcgm() -> dict[str, float]:
    """dcgm-exporter: profiling fields are ratios, power is in thousandths of a watt."""
    fields = {"matrix_pipe_activity": 1e-6, "memory_bandwidth_utilisation": 1e-6, "power": 0.001}
    return {"accelerator_utilisation": _PERCENT, **fields, "accelerator_memory_used": _MIB}


H100 = Kind(
    "h100", "NVIDIA", "H100 SXM 80 GB", "gpu", 80 * _GIB, 700, 70, 120, 8, 400e9,
    {**_dcgm(), **_NETWORK, **_DISKS, **_OTHERS}, standing=True,
)  # fmt: skip


def _npu() -> dict[str, float]:
    """npu-exporter: percentages throughout, and the flows of each processor's own port."""
    fields = {"matrix_pipe_activity": _PERCENT, "memory_bandwidth_utilisation": _PERCENT, "power": 0.1}
    flows = {"scale_out_transmit_flow": 1e4, "scale_out_receive_flow": 1e4}
    return {"accelerator_utilisation": _PERCENT, **fields, "accelerator_memory_used": _MIB, **flows}


ASCEND_BY_DEVICE = Kind(
    "ascend-by-device", "Huawei", "Ascend 910B", "npu", 64 * _GIB, 350, 90, 116, 2, 50e9,
    {**_npu(), "faults": 1.0}, standing=True, by_device=True,
)  # fmt: skip


def _plain(power: float) -> dict[str, float]:
    """Exporters without matrix units and memory bandwidth."""
    return {"accelerator_utilisation": _PERCENT, "power": power, "accelerator_memory_used": _MIB}


MI300X = Kind(
    "mi300x", "AMD", "Instinct MI300X", "gpu", 192 * _GIB, 750, 138, 168, 8, 400e9,
    {**_plain(1.0), **_NETWORK, **_DISKS, **_OTHERS}, standing=False,
)  # fmt: skip
MLU370 = Kind(
    "mlu370", "Cambricon", "MLU370-X8", "mlu", 48 * _GIB, 250, 45, 65, 8, 100e9,
    {**_plain(1.0), "matrix_pipe_activity": _PERCENT, **_DISKS, **_OTHERS}, standing=True,
)  # fmt: skip
A100 = Kind(
    "a100", "NVIDIA", "A100 SXM 80 GB", "gpu", 80 * _GIB, 400, 62, 94, 8, 200e9,
    {**_dcgm(), **_NETWORK, **_DISKS, **_OTHERS}, standing=True,
)  # fmt: skip
K100 = Kind(
    "k100", "Hygon", "DCU K100 AI", "dcu", 64 * _GIB, 350, 60, 85, 8, 100e9,
    {**_plain(0.01), **_NETWORK, **_DISKS, **_OTHERS}, standing=False,
)  # fmt: skip
C550 = Kind(
    "c550", "MetaX", "C550", "gpu", 64 * _GIB, 450, 75, 105, 8, 200e9,
    {**_plain(0.001), "memory_bandwidth_utilisation": _PERCENT, **_NETWORK, **_DISKS, **_OTHERS}, standing=True,
)  # fmt: skip
ASCEND = Kind(
    "ascend", "Huawei", "Ascend 910B", "npu", 64 * _GIB, 350, 90, 116, 8, 200e9,
    {**_npu(), **_DISKS, **_OTHERS}, standing=True,
)  # fmt: skip
KINDS = (H100, ASCEND_BY_DEVICE, MI300X, MLU370, A100, K100, C550, ASCEND)
"""Kinds in the order in which domains take them; of five domains one, of 64 eight report by device.

Without ``matrix_pipe_activity``: MI300X, K100, C550. Without ``memory_bandwidth_utilisation``: MI300X, MLU370, K100.
Without flows between nodes: MLU370, whose node-exporter runs without the collector for RDMA ports. Without storage
flows and ``allocatable_share``: those that report by device, since nothing but the device exporter runs there.

``allocatable_share`` is that of schedulers that share accelerators in time: a job that runs withholds nothing from
others, a lost device does. So it is one unless a device is lost, busy or not.
"""
NameOf = Callable[[str], str]
UrnOf = Callable[[str, str], str]
FAMILY, SOLO, SERVING = "family", "single", "serving"
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
_FAMILY_SHARE, _SOLO_SHARE = 0.66, 0.18
_SIZES = ((2, 5.0), (3, 4.0), (4, 7.0), (6, 2.0), (8, 3.0), (12, 0.7), (16, 0.8))
_LATE_EVERY = 8.0  # seconds between two nodes that are registered late, at most
_LATE_SHARE = 0.005
_MOST_MESHED = 8
_HUBS = 4


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
        joins: Second at which each row is registered; zero from the beginning.
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
