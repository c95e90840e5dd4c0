"""Measured runs of ``llm_training_runs/runs.csv`` (found through KUAYU_DATA) in the law's own terms.

1. A row becomes a run where its layout, batch, model and time can be known; else it is left out, with the reason. FLOPs
   that a source states are turned into a time by the source's own definition.
2. What a source says of all its runs (machine, software, definition of a FLOP) is taken from its pages and papers,
   never from its times.
3. Structures of the models that runs name are those of the papers and of the `config.json` published with the weights.
   Widths that a run states itself are the run's.
"""

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kuayu.demand.flop_counts import hardware_flops, model_flops
from kuayu.demand.hardware import CATALOGUE, Hardware
from kuayu.demand.strategy import Layouts, Recompute, Sharding, Strategy
from kuayu.demand.structure import LatentAttention, ModelStructure, of_parameters

GIGA = 1e9

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

LATENT = LatentAttention(query_rank=1536, value_rank=512, rotary_width=64)
"""DeepSeek-V3 (arXiv:2412.19437) and Kimi K2 (arXiv:2507.20534)."""

LLAMA = {"gated": True, "key_value_heads": 8, "vocabulary": 128256, "tied": False}
QWEN = {
    "gated": True,
    "key_value_heads": 4,
    "head_width": 128,
    "vocabulary": 151936,
    "tied": False,
    "experts": 128,
    "experts_per_token": 8,
}
DEEPSEEK = {
    "latent": LATENT,
    "head_width": 128,
    "gated": True,
    "feed_forward": 18432,
    "expert_feed_forward": 2048,
    "shared_feed_forward": 2048,
    "experts_per_token": 8,
    "tied": False,
}

FAMILIES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "LLAMA3_8B": LLAMA | {"feed_forward": 14336},
        "LLAMA3_70B": LLAMA | {"feed_forward": 28672},
        "LLAMA3.1_405B": LLAMA | {"feed_forward": 53248},
        "Llama-3-405B": LLAMA | {"feed_forward": 53248},
        "Qwen3_30B_a3B": QWEN | {"expert_feed_forward": 768},
        "Qwen3_235B_a22B": QWEN | {"expert_feed_forward": 1536},
        "GPT OSS 120B": {
            "gated": True,
            "key_value_heads": 8,
            "head_width": 64,
            "vocabulary": 201088,
            "tied": False,
            "experts": 128,
            "experts_per_token": 4,
            "expert_feed_forward": 2880,
            "window": 128,
        },
        "DeepSeekV3": DEEPSEEK | {"vocabulary": 129280, "experts": 256, "dense_layers": 3, "ahead": 1},
        "DeepSeekV3 (w/o MTP)": DEEPSEEK | {"vocabulary": 129280, "experts": 256, "dense_layers": 3},
        "Kimi_K2": DEEPSEEK | {"vocabulary": 163840, "experts": 384, "dense_layers": 1},
        "PaLM-540B": {"gated": True, "key_value_heads": 1, "head_width": 256, "vocabulary": 256000},
        "MPT": {"vocabulary": 50368},
        "BLOOM-176B": {"vocabulary": 250880, "dropout": True},
        "GPT-NeoX-20B": {"vocabulary": 50432, "tied": False},
        "GPT": {"vocabulary": 51200, "dropout": True},
    }
)
"""What is added to layers, width, heads and sequence; by the model's name or the beginning of it."""

TABLE = Path("llm_training_runs") / "runs.csv"
NO_MEMORY = "OUT OF MEMORY"

PRECISIONS: Mapping[str, str] = {"bf16": "bf16", "amp_bf16": "bf16", "fp16": "fp16", "nvfp4": "fp4"}
"""Number formats by what sources call them; everything else with fp8 in it is fp8."""

_SESSION = re.compile(r"section '[^']*'(?:; \d\d-\d\d)?|[\d.]+ NeMo Container")


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


def family(model: str) -> Mapping[str, Any]:
    """What is known of a model by its name; a GPT of 2021 where nothing is."""
    plain = model.removesuffix(" (w/ MTP)").removesuffix(" (tokendrop)").removesuffix(" (dropless)")
    if plain in FAMILIES:
        return FAMILIES[plain]
    return FAMILIES["MPT"] if plain.startswith("MPT-") else FAMILIES["GPT"]


@dataclass(frozen=True)
class Run:
    """A measured run.

    Attributes:
        row: Line of the table, counted from 1 without its heading.
        source: Where it is from.
        model: Name of the model.
        structure: The model.
        strategy: Its layout.
        hardware: Its devices.
        seconds: Time of a step; None where only memory is known.
        memory: Bytes of the fullest device as the source reports it, if it does.
        out_of_memory: It did not fit.
        known: The source states layers and width; else they were guessed from the number of parameters.
        session: Section and day of the source's page, or release of its software; only within one are runs alike.
    """

    row: int
    source: str
    model: str
    structure: ModelStructure
    strategy: Strategy
    hardware: Hardware
    seconds: float | None
    memory: float | None
    out_of_memory: bool
    known: bool
    session: str

    @property
    def layouts(self) -> Layouts:
        """The layout as a table of one row."""
        return Layouts.of([self.strategy])

    @property
    def kind(self) -> str:
        """``moe`` or ``dense``."""
        return "moe" if self.structure.experts > 1 else "dense"


class Unusable(Exception):
    """A row that cannot become a run; its text says why."""


def folder() -> Path:
    """Folder of the public originals: KUAYU_DATA, or ../shared/data."""
    return Path(os.environ.get("KUAYU_DATA") or "../shared/data")


def read(data: Path) -> tuple[list[Run], dict[int, str]]:
    """Runs of a data folder, and the reason for each row that is none.

    Raises:
        FileNotFoundError: If there is no such table.
    """
    runs, left = [], {}
    for number, row in enumerate(_rows(data / TABLE), 1):
        try:
            runs.append(run(row, number))
        except Unusable as reason:
            left[number] = str(reason)
    return runs, left


def timed(runs: Sequence[Run]) -> list[Run]:
    """Runs with a time."""
    return [run for run in runs if run.seconds is not None]


def run(row: Mapping[str, str], number: int) -> Run:
    """A row of the table as a run.

    Raises:
        Unusable: If it cannot be one.
    """
    source = SOURCES.get(row["source"])
    if source is None:
        raise Unusable("the source states no layout or no batch")
    options = _options(row["other_parallel"])
    if "Offload" in row["notes"]:
        raise Unusable("parameters are kept outside the device")
    if "inconsistent" in row["notes"]:
        raise Unusable("its layout contradicts its number of devices")
    if row["accelerator"] not in CATALOGUE:
        raise Unusable("its accelerator is not in the catalogue")
    structure, known = _structure(row, source)
    strategy = _strategy(row, options, source, structure)
    hardware = replace(CATALOGUE[row["accelerator"]], devices=strategy.devices, **source.machine)
    if strategy.devices != int(row["n_accel"]):
        raise Unusable("its layout contradicts its number of devices")
    if strategy.precision not in hardware.peak:
        strategy = replace(strategy, precision=hardware.plain)
    failed = NO_MEMORY in row["notes"]
    seconds = None if failed else _seconds(row, structure, strategy, source)
    memory = float(options["mem_gb"]) * 2**30 if options.get("mem_gb") else None
    return Run(
        number,
        row["source"],
        row["model"],
        structure,
        strategy,
        hardware,
        seconds,
        memory,
        failed,
        known,
        "; ".join(_SESSION.findall(row["notes"])),
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _options(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _structure(row: Mapping[str, str], source: Source) -> tuple[ModelStructure, bool]:
    extra = {**family(row["model"]), **source.structure}
    sequence = int(row["seq_len"] or 0)
    if not sequence:
        raise Unusable("its sequence is not stated")
    if row["layers"] and row["hidden"]:
        hidden = int(row["hidden"])
        heads = int(row["heads"] or hidden // 128)
        return ModelStructure(int(row["layers"]), hidden, heads, sequence, **extra), True
    if extra.get("experts", 1) > 1 or not row["params_b"]:
        raise Unusable("its model is not stated")
    if not row["model"].startswith("GPT"):
        raise Unusable("its model is not stated")
    return of_parameters(1e9 * float(row["params_b"]), sequence, extra["vocabulary"]), False


def _strategy(
    row: Mapping[str, str], options: Mapping[str, str], source: Source, structure: ModelStructure
) -> Strategy:
    stated = all(row[name].isdigit() for name in ("tp", "dp", "n_accel"))
    # Tensor and data that make up the machine leave no room for a pipeline.
    if not stated or not (row["pp"].isdigit() or int(row["tp"]) * int(row["dp"]) == int(row["n_accel"])):
        raise Unusable("its layout is not stated")
    if not row["global_batch"]:
        raise Unusable("its batch is not stated")
    data, stages, batch = int(row["dp"]), int(row["pp"] or 1), int(row["global_batch"])
    # A source that does not say it takes one sequence at a time under a pipeline, and all of them without.
    usual = {"micro_batch": 1 if stages > 1 else max(1, batch // data)}
    given: dict[str, Any] = {**usual, **source.strategy, **_given(options)}
    return Strategy(
        data=data,
        tensor=int(row["tp"]),
        pipeline=stages,
        virtual=VIRTUAL.get((row["source"], row["model"]), _whole(options, "vp")),
        context=_whole(options, "cp"),
        expert=_whole(options, "ep") if structure.experts > 1 else 1,
        global_batch=batch,
        **given,
    )


def _given(options: Mapping[str, str]) -> dict[str, Any]:
    """What a row says itself of its strategy."""
    given: dict[str, Any] = {}
    if "recompute" in options:
        given["recompute"] = Recompute[options["recompute"].upper()]
    if "precision" in options:
        given["precision"] = _precision(options["precision"])
    if "zero" in options:
        # DeepSpeed fetches parameters ahead and reduces gradients as they come, whatever the source's habit.
        stage = Sharding(_whole(options, "zero"))
        given |= {"sharding": stage} | ({"overlap_data": True} if stage is Sharding.PARAMETERS else {})
    if options.get("fsdp", "0") not in {"0", ""}:
        partly = options["fsdp"] == "SHARD_GRAD_OP"
        given["sharding"] = Sharding.GRADIENTS if partly else Sharding.PARAMETERS
    if options.get("sp") == "1":
        given["sequence_parallel"] = True
    if options.get("mbs", "").isdigit():
        given["micro_batch"] = int(options["mbs"])
    return given


def _whole(options: Mapping[str, str], name: str) -> int:
    return int(options[name]) if options.get(name, "").isdigit() else 1


def _precision(text: str) -> str:
    return PRECISIONS.get(text.lower(), "fp8" if "fp8" in text.lower() else text.lower())


def _seconds(row: Mapping[str, str], structure: ModelStructure, strategy: Strategy, source: Source) -> float:
    """Time of a step: stated, or from tokens, or from FLOPs by the source's definition."""
    if row["step_time_s"]:
        return float(row["step_time_s"])
    if row["tokens_per_s"]:
        return strategy.global_batch * structure.sequence / float(row["tokens_per_s"])
    if not row["measured_tflops_per_accel"]:
        raise Unusable("its speed is not stated")
    flops = model_flops(structure, strategy.global_batch, causal=not source.hardware_flops)
    if source.hardware_flops:
        flops = float(hardware_flops(structure, Layouts.of([strategy]))[0])
    return flops / (1e12 * float(row["measured_tflops_per_accel"]) * strategy.devices)
