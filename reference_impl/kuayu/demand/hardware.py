"""Devices and the links between them, as data sheets and measurements of others give them.

1. Peaks and bandwidths are the vendors' (dense, one direction), of devices in the servers that they are usually sold
   in.
2. The share of a peak that a multiplication reaches is measured.
3. Ascend 910B: vendor's figures are not public in one place; those of press reports and one measurement contradict each
   other, so it is an example rather than a fact.

Source: stas00/ml-engineering, ``compute/accelerator/README.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kuayu.demand.strategy import Whole

LATENCY_NODE, LATENCY_DOMAIN, LATENCY_ACROSS = 5e-6, 15e-6, 10e-3
"""Seconds that a message takes at least: inside a node, between nodes of a domain, between domains."""

TILE = 128 * 256
"""Numbers of a tile: the usual one of large multiplications (CUTLASS)."""

USUAL_SHARE = 0.8
"""Share of the peak that matrix multiplications reach where nobody has published it: the median of those who have
(stas00/ml-engineering, ``compute/accelerator/README.md``)."""

TERA, GIGA = 1e12, 1e9

UNITS = {"V100": 80, "A100": 108, "H100": 132, "H200": 132, "B200": 148, "B300": 148, "GB200": 148, "GB300": 148}


@dataclass(frozen=True)
class Hardware:
    """Devices of one kind.

    Attributes:
        name: What it is called.
        devices: How many there are.
        per_node: Devices that fast links join: a server, or a rack that is one switch.
        peak: FLOP/s of a device by number format, dense.
        reached: The largest share of it that any matrix multiplication reached, by number format; 0.8 where unknown.
        memory: Bytes of a device.
        memory_bandwidth: Bytes a second.
        inside: Bytes a second that a device sends to its node.
        between: Bytes a second that a device sends to other nodes: its share of the node's adapters.
        across: Bytes a second that a domain sends to others; 0 with one domain.
        per_domain: Devices of a domain; all of them where 0.
        units: Multiprocessors; each multiplies a tile of its own at a time.
        latencies: Seconds of a message: inside a node, between nodes, between domains.
    """

    name: str
    devices: int
    per_node: int
    peak: Mapping[str, float]
    memory: float
    memory_bandwidth: float
    inside: float
    between: float
    reached: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    across: float = 0.0
    per_domain: int = 0
    units: int = 108
    latencies: tuple[float, float, float] = (LATENCY_NODE, LATENCY_DOMAIN, LATENCY_ACROSS)

    def rate(self, precision: str) -> float:
        """FLOP/s that a matrix multiplication reaches at best.

        Raises:
            KeyError: If devices do not have that number format.
        """
        return self.peak[precision] * self.reached.get(precision, USUAL_SHARE)

    @property
    def wave(self) -> int:
        """Numbers of a product's result that all units work on at once."""
        return self.units * TILE

    @property
    def plain(self) -> str:
        """The 16-bit number format of what stays in 16 bits when layers take fewer."""
        return "bf16" if "bf16" in self.peak else "fp16"

    def of(self, devices: int | Whole) -> "Hardware":
        """The same with another number of devices, or with one for each of N layouts."""
        return replace(self, devices=devices)  # type: ignore[arg-type]


UNITS |= {"TPU": 8, "Ascend": 24}
"""Multiprocessors, matrix units, cube cores."""


def _server(
    name: str,
    per_node: int,
    peaks: Mapping[str, float],
    memory: float,
    speeds: tuple[float, float, float],
    reached: Mapping[str, float] | None = None,
) -> Hardware:
    """Peaks in TFLOP/s, memory in GB (10⁹), speeds of memory, node links and adapter in GB/s."""
    bandwidth, inside, between = (speed * GIGA for speed in speeds)
    peak = MappingProxyType({precision: value * TERA for precision, value in peaks.items()})
    shares = MappingProxyType(dict(reached or {}))
    units = UNITS[name.split("-", maxsplit=1)[0]]
    return Hardware(name, per_node, per_node, peak, memory * GIGA, bandwidth, inside, between, shares, units=units)


CATALOGUE: Mapping[str, Hardware] = MappingProxyType(
    {
        server.name: server
        for server in (
            _server("V100-SXM2-32GB", 8, {"fp16": 125}, 34.4, (900, 150, 12.5)),
            _server(
                "A100-SXM-40GB", 8, {"bf16": 312, "fp16": 312}, 42.5, (1555, 300, 25), {"bf16": 0.869, "fp16": 0.869}
            ),
            _server(
                "A100-SXM-80GB", 8, {"bf16": 312, "fp16": 312}, 85.1, (2039, 300, 25), {"bf16": 0.869, "fp16": 0.869}
            ),
            _server(
                "H100-SXM-80GB", 8, {"bf16": 989, "fp8": 1979}, 85.1, (3350, 450, 50), {"bf16": 0.803, "fp8": 0.709}
            ),
            _server(
                "H200-SXM-141GB", 8, {"bf16": 989, "fp8": 1979}, 151, (4800, 450, 50), {"bf16": 0.803, "fp8": 0.734}
            ),
            _server(
                "B200",
                8,
                {"bf16": 2250, "fp8": 4500, "fp4": 9000},
                191,
                (8000, 900, 50),
                {"bf16": 0.776, "fp8": 0.763, "fp4": 0.7},
            ),
            _server(
                "B300",
                8,
                {"bf16": 2250, "fp8": 4500, "fp4": 13500},
                288,
                (8000, 900, 100),
                {"bf16": 0.786, "fp8": 0.745, "fp4": 0.7},
            ),
            _server(
                "GB200",
                72,
                {"bf16": 2500, "fp8": 5000, "fp4": 10000},
                191,
                (8000, 900, 50),
                {"bf16": 0.729, "fp8": 0.723, "fp4": 0.7},
            ),
            _server(
                "GB300",
                72,
                {"bf16": 2500, "fp8": 5000, "fp4": 15000},
                288,
                (8000, 900, 100),
                {"bf16": 0.729, "fp8": 0.723, "fp4": 0.7},
            ),
            _server("TPU-v4", 64, {"bf16": 275}, 32, (1228, 150, 25)),
            _server("Ascend-910B", 8, {"bf16": 376, "fp16": 376}, 64, (1600, 196, 25), {"bf16": 0.87, "fp16": 0.87}),
        )
    }
)
"""By name; each with the devices of one node."""
