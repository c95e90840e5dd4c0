"""What a source says of all its runs: machine, software, definition of a FLOP.

Taken from its pages and papers, never from its times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kuayu.demand.strategy import Recompute, Sharding

GIGA = 1e9


@dataclass(frozen=True)
class Source:
    """Habits of a source.

    Attributes:
        machine: Deviations from the catalogue's hardware; keys of Hardware.
        strategy: What runs do not say themselves; keys of Strategy.
        structure: Likewise of the model; keys of ModelStructure.
        hardware_flops: Stated TFLOP/s count what is computed once more.
    """

    machine: Mapping[str, Any] = field(default_factory=dict)
    strategy: Mapping[str, Any] = field(default_factory=dict)
    structure: Mapping[str, Any] = field(default_factory=dict)
    hardware_flops: bool = False


MEGATRON = {
    "fused_attention": False,
    "overlap_data": False,
    "precision": "fp16",
    "exchanged_bytes": 2.0,
    "recompute": Recompute.FULL,
}
"""Megatron-LM of 2021 and 2022: softmax a kernel of its own; gradients exchanged after the backward pass, 16 bits."""

DEEPSPEED = MEGATRON | {"scattered": False}
"""Megatron-DeepSpeed: stages pass whole messages on."""

MODERN = {"sequence_parallel": True, "overlap_tensor": True, "sharding": Sharding.OPTIMIZER, "exchanged_bytes": 4.0}
"""Megatron-Core as Megatron-Bridge sets it up: sequence parallelism, overlapped exchanges, distributed optimizer."""

VIRTUAL: Mapping[tuple[str, str], int] = MappingProxyType(
    {
        ("megatron-sc21-table1", "GPT-76B"): 3,
        ("megatron-sc21-table1", "GPT-145B"): 2,
        ("megatron-sc21-table1", "GPT-310B"): 2,
        ("megatron-sc21-table1", "GPT-530B"): 3,
        ("korthikanti-2205.05198-table5", "gpt3-175B"): 3,
        ("korthikanti-2205.05198-table5", "turing-530B"): 3,
    }
)
"""Virtual stages that the table does not have: ``examples/sc21/run_table_1.sh`` of NVIDIA/Megatron-LM, and
``validation/seqsel/tab5`` of calculon-ai/calculon."""

SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "megatron-sc21-table1": Source(strategy=MEGATRON, hardware_flops=True),
        "megatron-sc21-table2": Source(strategy=MEGATRON, hardware_flops=True),
        "korthikanti-2205.05198-table5": Source(strategy=MEGATRON),
        # Jean Zay: four 100 Gbit/s Omni-Path adapters for the eight devices of a node.
        "bigscience-tr11-prequel": Source(
            machine={"between": 6.25 * GIGA},
            strategy=DEEPSPEED | {"sharding": Sharding.OPTIMIZER},
            structure={"vocabulary": 250880, "dropout": True},
            hardware_flops=True,
        ),
        "bigscience-tr11-final": Source(
            machine={"between": 6.25 * GIGA}, strategy=DEEPSPEED | {"exchanged_bytes": 4.0}, hardware_flops=True
        ),
        # Four V100 and four adapters in a node.
        "bigscience-gpt2-v100": Source(
            machine={"per_node": 4}, strategy=DEEPSPEED, structure={"dropout": True}, hardware_flops=True
        ),
        # FSDP, mixed precision "DEFAULT": gradients reduced in 32 bits. FlashAttention of the first generation, half as
        # fast as the second (abstract of arXiv:2307.08691).
        "llm-foundry-bench": Source(strategy={"attention_speed": 0.5}),
        "megatron-bridge-perf": Source(strategy=MODERN),
        # Section 3.3.2: parameters are gathered once and not divided again after the forward pass. With a pipeline,
        # gradients are exchanged once a step, so that the traffic is that of a divided optimizer.
        "llama3-2407.21783-table4": Source(strategy=MODERN),
        "palm-2204.02311": Source(
            machine={"per_node": 3072, "between": 6.25 * GIGA},
            strategy={"sharding": Sharding.PARAMETERS, "recompute": Recompute.FULL, "fused_attention": False},
        ),
        "opt-2205.01068": Source(
            strategy=MEGATRON | {"sharding": Sharding.PARAMETERS, "overlap_data": True}, hardware_flops=True
        ),
        # Micro-batch: section 3.2 of arXiv:2204.06745.
        "gpt-neox-2204.06745": Source(strategy=DEEPSPEED | {"micro_batch": 4}, hardware_flops=True),
    }
)
"""Sources whose runs state a layout. Those of the others (no layout, no batch) cannot be predicted."""
