"""Kinds of domains: accelerators, and what their exporters show with which resolution.

Capacities and power limits are published ones (stas00/ml-engineering ``compute/accelerator``; FlagOpen/FlagPerf
``base/benchmarks`` for Ascend and MetaX; the vendor's announcement for the MLU370-X8). Idle power is that of Acme for
the A100 (5th percentile). Assumptions of the usual order are: idle power of the others, the limit of the DCU K100 AI,
power with an open context except on NVIDIA's (see ``facts``), and the speed of networks. Resolutions and missing fields
are those of ``spec/indicators.yaml``; nodes report what their device exporter and, for flows, node-exporter yield.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kuayu_schemas import documents


_GIB = 1 << 30
_MIB = float(1 << 20)

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

_PERCENT = 0.01
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
        resolutions: Least step of each measure that is reported, of one device; nought is none.
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


def _dcgm() -> dict[str, float]:
    """dcgm-exporter: profiling fields are ratios, power is in thousandths of a watt."""
    fields = {"matrix_pipe_activity": 1e-6, "memory_bandwidth_utilisation": 1e-6, "power": 0.001}
    return {"accelerator_utilisation": _PERCENT, **fields, "accelerator_memory_used": _MIB}


def _npu() -> dict[str, float]:
    """npu-exporter: percentages throughout, and the flows of each processor's own port."""
    fields = {"matrix_pipe_activity": _PERCENT, "memory_bandwidth_utilisation": _PERCENT, "power": 0.1}
    flows = {"scale_out_transmit_flow": 1e4, "scale_out_receive_flow": 1e4}
    return {"accelerator_utilisation": _PERCENT, **fields, "accelerator_memory_used": _MIB, **flows}


def _plain(power: float) -> dict[str, float]:
    """Exporters without matrix units and memory bandwidth."""
    return {"accelerator_utilisation": _PERCENT, "power": power, "accelerator_memory_used": _MIB}


H100 = Kind(
    "h100", "NVIDIA", "H100 SXM 80 GB", "gpu", 80 * _GIB, 700, 70, 120, 8, 400e9,
    {**_dcgm(), **_NETWORK, **_DISKS, **_OTHERS}, standing=True,
)  # fmt: skip
ASCEND_BY_DEVICE = Kind(
    "ascend-by-device", "Huawei", "Ascend 910B", "npu", 64 * _GIB, 350, 90, 116, 2, 50e9,
    {**_npu(), "faults": 1.0}, standing=True, by_device=True,
)  # fmt: skip
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
