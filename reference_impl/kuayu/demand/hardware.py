"""Devices and the links between them, as data sheets and measurements of others give them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kuayu.demand.strategy import Whole

LATENCY_NODE, LATENCY_DOMAIN, LATENCY_ACROSS = 5e-6, 15e-6, 10e-3
"""Seconds that a message takes at least: inside a node, between nodes of a domain, between domains."""


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


TILE = 128 * 256
"""Numbers of a tile: the usual one of large multiplications (CUTLASS)."""

USUAL_SHARE = 0.8
"""Share of the peak that matrix multiplications reach where nobody has published it: the median of those who have
(stas00/ml-engineering, ``compute/accelerator/README.md``)."""
