"""Models and machines that tests of the demand law use."""

from dataclasses import replace

from kuayu.demand.hardware import CATALOGUE, Hardware
from kuayu.demand.strategy import Recompute, Strategy
from kuayu.demand.structure import ModelStructure

GPT3 = ModelStructure(96, 12288, 96, 2048, 51200, dropout=True)
"""175 B parameters, as in arXiv:2205.05198."""

SMALL = ModelStructure(8, 1024, 16, 512, 4096)

EXPERTS = ModelStructure(
    8, 1024, 16, 512, 4096, gated=True, tied=False, experts=16, experts_per_token=2, expert_feed_forward=512
)

KORTHIKANTI = Strategy(
    tensor=8,
    pipeline=8,
    virtual=3,
    recompute=Recompute.FULL,
    global_batch=64,
    precision="fp16",
    fused_attention=False,
    overlap_data=False,
)
"""Layout of GPT-3 on 64 devices in table 5 of arXiv:2205.05198."""


def a100(devices: int, **changes: object) -> Hardware:
    """So many A100 in servers of eight."""
    return replace(CATALOGUE["A100-SXM-80GB"], devices=devices, **changes)  # type: ignore[arg-type]
