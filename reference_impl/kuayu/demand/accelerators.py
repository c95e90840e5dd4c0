"""Devices of data sheets, in the servers that they are usually sold in.

Peaks and bandwidths are the vendors' (dense, one direction). The share that a multiplication reaches is measured:
stas00/ml-engineering, ``compute/accelerator/README.md``. Ascend 910B: vendor's figures are not public in one place;
those of press reports and one measurement contradict each other, so it is an example rather than a fact.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kuayu.demand.hardware import Hardware

TERA, GIGA = 1e12, 1e9


UNITS = {"V100": 80, "A100": 108, "H100": 132, "H200": 132, "B200": 148, "B300": 148, "GB200": 148, "GB300": 148}
UNITS |= {"TPU": 8, "Ascend": 24}
"""Multiprocessors, matrix units, cube cores."""


def _made(
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
        made.name: made
        for made in (
            _made("V100-SXM2-32GB", 8, {"fp16": 125}, 34.4, (900, 150, 12.5)),
            _made(
                "A100-SXM-40GB", 8, {"bf16": 312, "fp16": 312}, 42.5, (1555, 300, 25), {"bf16": 0.869, "fp16": 0.869}
            ),
            _made(
                "A100-SXM-80GB", 8, {"bf16": 312, "fp16": 312}, 85.1, (2039, 300, 25), {"bf16": 0.869, "fp16": 0.869}
            ),
            _made("H100-SXM-80GB", 8, {"bf16": 989, "fp8": 1979}, 85.1, (3350, 450, 50), {"bf16": 0.803, "fp8": 0.709}),
            _made("H200-SXM-141GB", 8, {"bf16": 989, "fp8": 1979}, 151, (4800, 450, 50), {"bf16": 0.803, "fp8": 0.734}),
            _made(
                "B200",
                8,
                {"bf16": 2250, "fp8": 4500, "fp4": 9000},
                191,
                (8000, 900, 50),
                {"bf16": 0.776, "fp8": 0.763, "fp4": 0.7},
            ),
            _made(
                "B300",
                8,
                {"bf16": 2250, "fp8": 4500, "fp4": 13500},
                288,
                (8000, 900, 100),
                {"bf16": 0.786, "fp8": 0.745, "fp4": 0.7},
            ),
            _made(
                "GB200",
                72,
                {"bf16": 2500, "fp8": 5000, "fp4": 10000},
                191,
                (8000, 900, 50),
                {"bf16": 0.729, "fp8": 0.723, "fp4": 0.7},
            ),
            _made(
                "GB300",
                72,
                {"bf16": 2500, "fp8": 5000, "fp4": 15000},
                288,
                (8000, 900, 100),
                {"bf16": 0.729, "fp8": 0.723, "fp4": 0.7},
            ),
            _made("TPU-v4", 64, {"bf16": 275}, 32, (1228, 150, 25)),
            _made("Ascend-910B", 8, {"bf16": 376, "fp16": 376}, 64, (1600, 196, 25), {"bf16": 0.87, "fp16": 0.87}),
        )
    }
)
"""By name; each with the devices of one node."""
