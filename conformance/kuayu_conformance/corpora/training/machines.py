"""Accelerators of published runs, in the servers that they ran in.

Dense peaks, memory and bandwidth are the vendors' (data sheets of V100, A100, H100 and H200; pages of DGX B200, DGX
B300, GB200 NVL72 and GB300 NVL72); memory of V100 to H200 is what the driver reports, some gigabytes more than the
printed figure. Links count one direction; those between nodes are an accelerator's share of its server's adapters,
by the source of the runs. The most that a matrix multiplication reached is single figures of the table MAMF of
stas00/ml-engineering, ``compute/accelerator/README.md``; it is absent where nobody measured it. The peak of the
Ascend 910B is the one that its runs' utilisation counts in (versions of this device differ); bandwidths are those of
press reports.
"""

from collections.abc import Mapping
from typing import Any

TERA, GIGA = 1e12, 1e9

NODE_OF_8, RACK_OF_72 = 8, 72


def _made(
    peaks: Mapping[str, float],
    memory: float,
    bandwidths: tuple[float, float, float],
    *,
    reached: Mapping[str, float] | None = None,
    units: int | None = None,
    per_node: int = NODE_OF_8,
) -> dict[str, Any]:
    """Throughput in TFLOP/s, memory in GB (10⁹), bandwidth of memory, of links in a node and between in GB/s."""
    local, inside, between = (bandwidth * GIGA for bandwidth in bandwidths)
    sustained = {precision: value * TERA for precision, value in (reached or {}).items()}
    return {
        "peak_matrix_throughput": {precision: value * TERA for precision, value in peaks.items()},
        **({"sustained_matrix_throughput": sustained} if sustained else {}),
        "accelerator_memory_capacity": memory * GIGA,
        "accelerator_memory_bandwidth": local,
        **({"multiprocessors": units} if units else {}),
        "devices_per_node": per_node,
        "node_bandwidth": inside,
        "domain_bandwidth": between,
    }


_HOPPER = {"bf16": 989.0, "fp8": 1979.0}
_B200 = {"bf16": 2250.0, "fp8": 4500.0, "fp4": 9000.0}
_GB200 = {"bf16": 2500.0, "fp8": 5000.0, "fp4": 10000.0}
_A100, _A100_REACHED = {"bf16": 312.0, "fp16": 312.0}, {"bf16": 271.2, "fp16": 271.2}

MACHINES: Mapping[str, Mapping[str, Any]] = {
    "V100-SXM2-32GB": _made({"fp16": 125.0}, 34.4, (900, 150, 12.5), units=80),
    "A100-SXM-40GB": _made(_A100, 42.5, (1555, 300, 25), reached=_A100_REACHED, units=108),
    "A100-SXM-80GB": _made(_A100, 85.1, (2039, 300, 25), reached=_A100_REACHED, units=108),
    "H100-SXM-80GB": _made(_HOPPER, 85.1, (3350, 450, 50), reached={"bf16": 794.5, "fp8": 1402.6}, units=132),
    "B200": _made(_B200, 180.0, (8000, 900, 50), reached={"bf16": 1745.0, "fp8": 3432.5}, units=148),
    "B300": _made({**_B200, "fp4": 13500.0}, 288.0, (8000, 900, 100), reached={"bf16": 1769.0, "fp8": 3353.3}),
    "GB200": _made(
        _GB200, 186.0, (8000, 900, 50), reached={"bf16": 1822.0, "fp8": 3615.6}, units=148, per_node=RACK_OF_72
    ),
    "GB300": _made({**_GB200, "fp4": 15000.0}, 288.0, (8000, 900, 100), per_node=RACK_OF_72),
    "Ascend-910B-64GB": _made({"bf16": 256.0}, 64.0, (1600, 196, 25), units=24),
}
"""Hardware without its name, by the accelerator's name in the public table."""
