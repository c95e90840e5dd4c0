"""What a world of telemetry consists of: its scale, who is there, of which make, and what jobs are like.

Times are seconds since the beginning of the warm-up.

1. **Facts.** Numbers fitted to public measurements; ``tests/conformance/testbed/test_facts.py`` fits them again.

   Sources, by the name used below (commits of the originals in brackets):

   - *Acme*: utilisation, power and memory of the A100 clusters Kalos and Seren, InternLM/AcmeTrace ``data/utilization``
     [6d6ac9c]; Q. Hu et al., "Characterization of large language model development in the datacenter", NSDI 2024.
   - *Zeus*: time and power of training under power limits on A40, V100 and RTX 6000, ml-energy/zeus
     ``examples/research_reproducibility/zeus_nsdi23/trace`` [75a8b93].
   - *Steps*: step times by rank of three jobs, ByteDance-Seed/StragglerAnalysis ``data/trace-{AR,SE,ST}.parquet``
     [8efcd7f].
   - *Workers*: mini-batch times by worker, alibaba/clusterdata ``cluster-trace-gpu-v2020/mini-batch-time`` [7a6c496].
   - *Series*: power of servers once a second, mlcommons/training_results_v4.1 ``*/power`` [b87b9e3] and v5.0 [0fdc28f].
   - *Context*: an open context raises the power of an idle GPU with HBM by 26–50 W, however much memory it holds, S. S.
     Vadari, arXiv:2605.23918.
   - *Waiting*: who waits in a collective operation shows full utilisation at a power little above idle; the one that
     hangs shows none (NVIDIA/nccl issue 968, cupy/cupy issue 3557, Theano/libgpuarray issue 387). A device may stop
     without any error counted (NVIDIA/nccl issue 1063).
   - *Interruptions*: 419 in 54 days on 16 384 GPUs, Llama Team, "The Llama 3 herd of models", arXiv:2407.21783, table
     5.
   - *Retransmission*: a network card that recovers by go-back-N sends again all that follows a lost packet, R. Mittal
     et al., "Revisiting network support for RDMA", SIGCOMM 2018.
2. **Runs.** Lengths of steps and starts, reading, network shares and gaps are assumptions; bounds cut off what could
   not be decided. Time runs faster than in reality, so that something happens within minutes: a checkpoint comes every
   30–60 s rather than every half hour, a start takes seconds, and those who wait for the dead give up within half a
   minute.
3. **Kinds.** A kind of domain is an accelerator, and what its exporters show with which resolution. Capacities and
   power limits are published ones (stas00/ml-engineering ``compute/accelerator``; FlagOpen/FlagPerf ``base/benchmarks``
   for Ascend and MetaX; the vendor's announcement for the MLU370-X8). Idle power is that of Acme for the A100 (5th
   percentile). Assumptions of the usual order are: idle power of the others, the limit of the DCU K100 AI, power with
   an open context except on NVIDIA's (*Context* above), and the speed of networks.
   Resolutions and missing fields are those of ``spec/indicators.yaml``; nodes report what their device exporter and,
   for flows, node-exporter yield.
4. **Population.** Domains are of nearly the same size; in each, families come first, then single nodes, then servers of
   inference.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kuayu_conformance.testbed.chance import Chance, stream
from kuayu_conformance.testbed.duty import DUTY_MEDIAN, DUTY_SIGMA
from kuayu_conformance.testbed.elementary import exponential

if TYPE_CHECKING:
    from kuayu_schemas import documents

STATES = ("idle", "busy", "degraded", "straggling", "faulty", "offline")
"""States that are brought about (clause met-06-graph), in the order of their numbers here."""
IDLE, BUSY, DEGRADED, STRAGGLING, FAULTY, OFFLINE = range(len(STATES))
UNKNOWN = "unknown"
TICKS = 20
"""Ticks of the simulation in a second."""
DWELL = 16
"""Seconds that a node keeps a state at least: a recogniser has ten, and has to go on showing the state for five."""
LEAST_DOMAINS, LEAST_SECONDS = 2, 60

SPEED_UNDER_LIMIT = (0.45, 0.55, 0.65, 0.75, 0.85, 1.0)
POWER_UNDER_LIMIT = (0.44, 0.47, 0.52, 0.59, 0.69, 1.0)
"""Zeus: power over that without a limit, by speed over that without: means of medians of three GPUs, in bins of 0.1."""
MEMORY_QUANTILES = ((0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0), (0.15, 0.20, 0.50, 0.63, 0.74, 0.97, 0.98))
"""Acme: share of the memory that a job holds; mean of both clusters over samples above 1 %, ends shortened."""
STEP_VARIATION = (0.0045, 0.023, 0.071)
"""Steps: coefficient of variation of the step time of a whole job, in three jobs."""
EXPOSED_COMMUNICATION = (0.08, 0.12)
"""Steps: share of a step that the last pipeline stage, which waits for nobody, spends in communication (AR, SE)."""
WORKER_SPREAD = 0.01
"""Workers: distance of the step times of healthy workers from their median (0.98–1.00 of it in jobs 1 and 3)."""
NOISE_OF_POWER = 0.0065
"""Series: standard deviation of the power of a server under even load, from differences of successive samples."""
LAG_OF_POWER = 0.8
"""Series: seconds; servers go from 3.1 to 7.9 kW within two to three samples of a second each."""
CONTEXT_POWER = (26.0, 50.0)
"""Context: watts between an idle GPU and one with an open context."""
WAITING_POWER = 0.15
"""Share of the way from idle to full power at which a device waits. Waiting: 70 W; and Acme: half of all samples draw
at most 97–101 W on an A100 (idle 62 W, limit 400 W), although two thirds show a utilisation of more than zero."""
SILENT_FATAL_SHARE = 0.5
"""Share of fatal faults that no counter shows, fixed by design. Interruptions: 268 of 419 are of the GPU, and not all
of these are counted; the others (software, network, host) show on no counter of a GPU."""
_DRAWN_AT_ONCE = 4096

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


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a world is.

    Raises:
        ValueError: Too few domains, of which one has to stay whole, or too few seconds for a partition and its end.

    Attributes:
        domains: How many domains, one of them partitioned for a while.
        nodes: How many nodes, those that are registered late included.
        warm_up: Seconds before anything is judged.
        seconds: Seconds played after it.
        churn: Share of the nodes that change their state in a second.
    """

    domains: int
    nodes: int
    warm_up: int
    seconds: int
    churn: float = 0.01

    def __post_init__(self) -> None:
        if self.domains < LEAST_DOMAINS or self.seconds < LEAST_SECONDS:
            raise ValueError(f"a world has {LEAST_DOMAINS} domains and {LEAST_SECONDS} s at least")

    @property
    def total(self) -> int:
        """Seconds from the beginning of the warm-up to the end."""
        return self.warm_up + self.seconds


QUICK = Scale(domains=5, nodes=1000, warm_up=30, seconds=60)
FULL = Scale(domains=64, nodes=10_000, warm_up=30, seconds=120)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the aggregator of a domain sends in one second.

    Attributes:
        domain: Its identifier.
        samples: Instant of observation and sample (class Sample, without ``observed_at``), oldest first.
    """

    domain: str
    samples: tuple[tuple[float, Mapping[str, Any]], ...]


@dataclass(frozen=True, slots=True)
class Incident:
    """A change of the truth about one node.

    Attributes:
        node: Its identifier.
        onset: Instant from which the telemetry differs.
        before: State until then.
        after: State from then on, for :data:`DWELL` seconds or more.
        cause: What happened.
        stratum: Kind of node, cause and new state, as one name; incidents of a stratum show in the same way.
    """

    node: str
    onset: float
    before: str
    after: str
    cause: str
    stratum: str


@dataclass(frozen=True, slots=True)
class Partition:
    """The path of a domain to the service is broken: nothing is delivered from ``since`` until ``until``."""

    domain: str
    since: int
    until: int


def power_at_speed(speed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Power over that at full clock, for speeds over that at full clock; below the fit it goes on straight to 0.42."""
    return np.interp(speed, (0.4, *SPEED_UNDER_LIMIT), (0.42, *POWER_UNDER_LIMIT)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Run:
    """A job from its start to its end.

    Attributes:
        compute: Seconds that kernels of a step take on a healthy node.
        gap: Seconds of a step in which no kernel runs, since the host prepares the next batch.
        exposed: Seconds of communication that no computation hides; zero for a single node.
        load: Seconds of the start, in which memory is filled from the store.
        common: Coefficient of variation of the step time of the whole job.
        own: Coefficient of variation of a node's own share of each step.
        checkpoint: Seconds between two checkpoints.
        saving: Seconds that a checkpoint takes.
        evaluation: Seconds between two evaluations.
        evaluating: Seconds that an evaluation takes.
        pipe: Matrix pipe activity while kernels compute.
        bandwidth: Memory bandwidth utilisation meanwhile.
        intensity: Where power stands meanwhile between that of an open context (0) and the limit (1).
        memory: Share of the devices' memory that is held.
        bus: Share of the network's speed that exposed communication reaches.
        overlapped: Share of the network's speed that is used while kernels compute.
        reading: Bytes a second that are read from the store while kernels compute.
        duty: Usual share of the time in which a server of inference works.
        burst: Factor of its bursts of load.
        phase: Where in its cycles a job is that runs from the beginning, as a share of them.
    """

    compute: float
    gap: float
    exposed: float
    load: float
    common: float
    own: float
    checkpoint: float
    saving: float
    evaluation: float
    evaluating: float
    pipe: float
    bandwidth: float
    intensity: float
    memory: float
    bus: float
    overlapped: float
    reading: float
    duty: float
    burst: float
    phase: float

    @property
    def step(self) -> float:
        """Seconds of a step of which nothing is slow."""
        return self.compute + self.gap + self.exposed


FIELDS = tuple(Run.__dataclass_fields__)


class Runs:
    """Runs in the order in which they start; each draws as many numbers as any other."""

    def __init__(self, chance: np.random.Generator) -> None:
        self._chance = chance
        self._uniform: list[list[float]] = []
        self._normal: list[list[float]] = []
        self.drawn: list[Run] = []

    def new(self, *, alone: bool) -> int:
        """Number of a new run, of a single node or of several."""
        if not self._uniform:
            self._uniform = self._chance.random((_DRAWN_AT_ONCE, 16)).tolist()
            self._normal = self._chance.standard_normal((_DRAWN_AT_ONCE, 6)).tolist()
        uniform, normal = iter(self._uniform.pop()), iter(self._normal.pop())
        compute = _within(0.55 * exponential(0.35 * next(normal)), 0.3, 1.1)
        share = _between(0.75 * EXPOSED_COMMUNICATION[0], 1.5 * EXPOSED_COMMUNICATION[1], next(uniform))
        run = Run(
            compute=compute,
            gap=compute * _between(0.0, 0.04, next(uniform)),
            exposed=0.0 if alone else compute * share / (1 - share),
            load=_between(1.5, 3.5, next(uniform)),
            common=float(np.interp(next(uniform), (0.0, 0.5, 1.0), STEP_VARIATION)),
            own=_between(0.003, 0.015, next(uniform)),
            checkpoint=_between(30.0, 60.0, next(uniform)),
            saving=_between(1.0, 2.5, next(uniform)),
            evaluation=_between(50.0, 110.0, next(uniform)),
            evaluating=_between(2.0, 4.0, next(uniform)),
            pipe=_within(0.26 * exponential(0.35 * next(normal)), 0.12, 0.65),
            bandwidth=_within(0.35 * exponential(0.35 * next(normal)), 0.12, 0.8),
            intensity=_between(0.78, 1.03, next(uniform)),
            memory=float(np.interp(next(uniform), *MEMORY_QUANTILES)),
            bus=_between(0.35, 0.7, next(uniform)),
            overlapped=_between(0.03, 0.12, next(uniform)),
            reading=_within(60e6 * exponential(1.0 * next(normal)), 5e6, 800e6),
            duty=_within(DUTY_MEDIAN * exponential(DUTY_SIGMA * next(normal)), 0.1, 0.6),
            burst=_between(1.5, 3.0, next(uniform)),
            phase=next(uniform),
        )
        self.drawn.append(run)
        return len(self.drawn) - 1

    def table(self) -> dict[str, NDArray[np.float32]]:
        """Parameters by run, with noughts behind the last for nodes without one (number -1)."""
        rows = [[getattr(run, name) for name in FIELDS] for run in self.drawn]
        columns = np.array([*rows, [0.0] * len(FIELDS)], dtype=np.float32).T
        return dict(zip(FIELDS, np.ascontiguousarray(columns), strict=True))


def _between(low: float, high: float, share: float) -> float:
    return low + (high - low) * share


def _within(figure: float, low: float, high: float) -> float:
    return min(max(float(figure), low), high)


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
        context: Watts with an open context that does nothing.
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
    context: float
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
    groups: list[tuple[str, int]] = []
    left = round(size * _FAMILY_SHARE)
    while left > 1:
        members = min(chance.weighted(_SIZES), left)
        if left - members == 1:  # nobody is a family alone
            members += 1 if members < _SIZES[-1][0] else -1
        groups.append((FAMILY, members))
        left -= members
    alone = size - sum(members for _, members in groups)
    solo = round(alone * _SOLO_SHARE / (1 - _FAMILY_SHARE))
    return groups + [(SOLO, 1)] * solo + [(SERVING, 1)] * (alone - solo)
