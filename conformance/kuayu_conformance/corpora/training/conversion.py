"""Makes runs of the public table ``llm_training_runs/runs.csv``: what its columns and the sources' conventions say.

1. **Machines.** Accelerators of published runs, in the servers that they ran in. Dense peaks, memory and bandwidth are
   the vendors' (data sheets of V100, A100, H100 and H200; pages of DGX B200, DGX B300, GB200 NVL72 and GB300 NVL72);
   memory of V100 to H200 is what the driver reports, some gigabytes more than the printed figure. Links count one
   direction; those between nodes are an accelerator's share of its server's adapters, by the source of the runs. The
   most that a matrix multiplication reached is single figures of the table MAMF of stas00/ml-engineering,
   ``compute/accelerator/README.md``; it is absent where nobody measured it. The peak of the Ascend 910B is the one that
   its runs' utilisation counts in (versions of this device differ); bandwidths are those of press reports.
2. **Models.** Structures of the models that runs name, where a run itself does not state them. From the papers and the
   ``config.json`` that were published with the weights: Llama 3 (arXiv:2407.21783), Qwen3 (arXiv:2505.09388), gpt-oss
   (arXiv:2508.10925), DeepSeek-V3 (arXiv:2412.19437), Kimi K2 (arXiv:2507.20534), MPT (mosaicml/llm-foundry,
   ``scripts/train/yamls/pretrain``), BLOOM (arXiv:2211.05100), GPT-NeoX (arXiv:2204.06745), Llama 2 (arXiv:2307.09288),
   Code Llama (arXiv:2308.12950), Nemotron-4 (arXiv:2406.11704), Mixtral (arXiv:2401.04088).
3. **Rows.** A row becomes a run where layout, batch, model and time can be known; else it is left out, and the reason
   is told.
"""

import csv
import re
from collections.abc import Collection, Iterator, Mapping
from math import log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.corpora.training.runs import (
    CONVENTIONS,
    RECALLED,
    STAGES,
    Corpus,
    Run,
    SourceConventions,
)

if TYPE_CHECKING:
    from kuayu_schemas import documents

TERA, GIGA = 1e12, 1e9
NODE_OF_8, RACK_OF_72 = 8, 72


def _machine(
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
    "V100-SXM2-32GB": _machine({"fp16": 125.0}, 34.4, (900, 150, 12.5), units=80),
    "A100-SXM-40GB": _machine(_A100, 42.5, (1555, 300, 25), reached=_A100_REACHED, units=108),
    "A100-SXM-80GB": _machine(_A100, 85.1, (2039, 300, 25), reached=_A100_REACHED, units=108),
    "H100-SXM-80GB": _machine(_HOPPER, 85.1, (3350, 450, 50), reached={"bf16": 794.5, "fp8": 1402.6}, units=132),
    "B200": _machine(_B200, 180.0, (8000, 900, 50), reached={"bf16": 1745.0, "fp8": 3432.5}, units=148),
    "B300": _machine({**_B200, "fp4": 13500.0}, 288.0, (8000, 900, 100), reached={"bf16": 1769.0, "fp8": 3353.3}),
    "GB200": _machine(
        _GB200, 186.0, (8000, 900, 50), reached={"bf16": 1822.0, "fp8": 3615.6}, units=148, per_node=RACK_OF_72
    ),
    "GB300": _machine({**_GB200, "fp4": 15000.0}, 288.0, (8000, 900, 100), per_node=RACK_OF_72),
    "Ascend-910B-64GB": _machine({"bf16": 256.0}, 64.0, (1600, 196, 25), units=24),
}
"""Hardware without its name, by the accelerator's name in the public table."""
Members = Mapping[str, Any]
"""Some members of class ModelStructure; what it has to have besides, runs say or :func:`guessed` does."""
_LATENT = {"query_rank": 1536, "value_rank": 512, "rotary_width": 64}
_LLAMA3: Members = {"gated": True, "key_value_heads": 8, "vocabulary": 128256, "tied": False}
_QWEN3: Members = {
    "gated": True,
    "key_value_heads": 4,
    "head_width": 128,
    "vocabulary": 151936,
    "tied": False,
    "experts": 128,
    "experts_per_token": 8,
}
_DEEPSEEK3: Members = {
    "latent": _LATENT,
    "head_width": 128,
    "gated": True,
    "feed_forward": 18432,
    "expert_feed_forward": 2048,
    "shared_feed_forward": 2048,
    "experts": 256,
    "experts_per_token": 8,
    "dense_layers": 3,
    "vocabulary": 129280,
    "tied": False,
}
_LLAMA2: Members = {"gated": True, "vocabulary": 32000, "tied": False}
_QWEN3_DENSE: Members = {"gated": True, "key_value_heads": 8, "head_width": 128, "vocabulary": 151936}
_NEMOTRON: Members = {"vocabulary": 256000, "tied": False}
_GPT: Members = {"vocabulary": 51200, "dropout": True}
_MPT: Members = {"vocabulary": 50368}
BY_NAME: Mapping[str, Members] = {
    "LLAMA3_8B": {**_LLAMA3, "feed_forward": 14336},
    "LLAMA3_70B": {**_LLAMA3, "feed_forward": 28672},
    "LLAMA3.1_405B": {**_LLAMA3, "feed_forward": 53248},
    "Llama-3-405B": {**_LLAMA3, "feed_forward": 53248},
    "Qwen3_30B_a3B": {**_QWEN3, "expert_feed_forward": 768},
    "Qwen3_235B_a22B": {**_QWEN3, "expert_feed_forward": 1536},
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
        "window_frequency": 2,
    },
    "GPT OSS 20B": {
        "gated": True,
        "key_value_heads": 8,
        "head_width": 64,
        "vocabulary": 201088,
        "tied": False,
        "experts": 32,
        "experts_per_token": 4,
        "expert_feed_forward": 2880,
        "window": 128,
        "window_frequency": 2,
    },
    "Mixtral 8x7B": {
        **_LLAMA2,
        "key_value_heads": 8,
        "experts": 8,
        "experts_per_token": 2,
        "expert_feed_forward": 14336,
    },
    **{f"{name}-7B": {**_LLAMA2, "feed_forward": 11008} for name in ("LLAMA2", "Llama-2")},
    **{f"{name}-13B": {**_LLAMA2, "feed_forward": 13824} for name in ("LLAMA2", "Llama-2")},
    **{f"{name}-70B": {**_LLAMA2, "feed_forward": 28672, "key_value_heads": 8} for name in ("LLAMA2", "Llama-2")},
    "CodeLlama-34B": {**_LLAMA2, "feed_forward": 22016, "key_value_heads": 8},
    "Nemotron-8B": _NEMOTRON,
    "Nemotron-22B": _NEMOTRON,
    "Nemotron-340B": {**_NEMOTRON, "key_value_heads": 8},
    "Qwen3-0.6B": {**_QWEN3_DENSE, "feed_forward": 3072},
    "Qwen3-1.7B": {**_QWEN3_DENSE, "feed_forward": 6144},
    "Qwen3-4B": {**_QWEN3_DENSE, "feed_forward": 9728},
    "Qwen3-8B": {**_QWEN3_DENSE, "feed_forward": 12288, "tied": False},
    "Qwen3-14B": {**_QWEN3_DENSE, "feed_forward": 17408, "tied": False},
    "Qwen3-32B": {**_QWEN3_DENSE, "feed_forward": 25600, "tied": False},
    "DeepSeekV3": {**_DEEPSEEK3, "further_tokens": 1},
    "DeepSeekV3 (w/o MTP)": _DEEPSEEK3,
    "Kimi_K2": {**_DEEPSEEK3, "experts": 384, "dense_layers": 1, "vocabulary": 163840},
    "BLOOM-176B": {"vocabulary": 250880, "dropout": True},
    "GPT-NeoX-20B": {"vocabulary": 50432, "tied": False},
}
_SUFFIXES = (" (w/ MTP)", " (tokendrop)", " (dropless)")


def members(model: str) -> Members:
    """What is known of a model by its name; where nothing is, a GPT as Megatron-LM trained it in 2021."""
    for suffix in _SUFFIXES:
        model = model.removesuffix(suffix)
    if model in BY_NAME:
        return BY_NAME[model]
    return _MPT if model.startswith("MPT-") else _GPT


_DEPTHS = ((1.25e8, 12), (7.6e8, 24), (2.7e9, 32), (6.7e9, 32), (1.3e10, 40), (1.75e11, 96), (1.008e12, 128))
"""Parameters and layers of GPT-3 (arXiv:2005.14165, table 2.1) and of 1 T (arXiv:2104.04473, table 1)."""
_WIDTH_STEP = 512
_WAYS_SPLIT = 8


def guessed(parameters: float, vocabulary: int) -> dict[str, int]:
    """Layers, width and heads of a GPT of about so many parameters.

    Layers lie between those of the next sizes by the logarithm; the width solves 12·L·h² + V·h = P. It is rounded so
    that heads of 128, else of 64, can be split over eight accelerators, as the runs split them.
    """
    size = min(max(parameters, _DEPTHS[0][0]), _DEPTHS[-1][0])
    above = next(number for number, (limit, _) in enumerate(_DEPTHS) if number and size <= limit)
    (low, few), (high, many) = _DEPTHS[above - 1 : above + 1]
    layers = round(few + (many - few) * log(size / low) / log(high / low))
    width = (sqrt(vocabulary**2 + 48 * layers * parameters) - vocabulary) / (24 * layers)
    hidden = max(1, round(width / _WIDTH_STEP)) * _WIDTH_STEP
    heads = hidden // 128 if hidden % (128 * _WAYS_SPLIT) == 0 else hidden // 64
    return {"layers": layers, "hidden": hidden, "heads": heads}


TABLE = "llm_training_runs/runs.csv"
GIBI = 2**30
WEIGHTS_TOO = 3
_HEAD = 128
_FAILED = "OUT OF MEMORY"
_SESSION = re.compile(r"section '[^']*'(?:; \d\d-\d\d)?|[\d.]+ NeMo Container")
_SIXTEEN = ("bf16", "fp16")
_FORMATS = {"bf16": "bf16", "amp_bf16": "bf16", "fp16": "fp16", "nvfp4": "fp4"}
Row = Mapping[str, str]


class Unusable(Exception):
    """A row cannot become a run; the message says why."""


def converted(data: Path, sources: Collection[str], table: str = TABLE) -> tuple[Corpus, dict[int, str]]:
    """Runs of some sources in a table of a data folder, and why each other row is left out.

    Raises:
        FileNotFoundError: There is no such table in the folder.
    """
    hardware: dict[str, documents.TrainingHardware] = {}
    runs, left = [], {}
    for number, row in enumerate(_rows(data / table), 1):
        try:
            run, machine = _run(row, number, sources)
        except Unusable as reason:
            left[number] = str(reason)
            continue
        entry = {"id": run.hardware, **machine}
        hardware.setdefault(run.hardware, cast("documents.TrainingHardware", entry))
        runs.append(run)
    used = {run.source for run in runs}
    source_of = {name: conventions.source for name, conventions in CONVENTIONS.items() if name in used}
    return Corpus(source_of, dict(sorted(hardware.items())), tuple(runs)), left


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _run(row: Row, number: int, sources: Collection[str]) -> tuple[Run, dict[str, Any]]:
    conventions = CONVENTIONS.get(row["source"])
    if conventions is None:
        raise Unusable("its source states no layout, no batch, or a machine that the wire cannot state")
    if row["source"] not in sources:
        raise Unusable("its source is known from a paper alone" if row["source"] in RECALLED else "not asked for")
    if "Offload" in row["notes"]:
        raise Unusable("weights are kept outside the accelerator")
    if "inconsistent" in row["notes"]:
        raise Unusable("its layout contradicts its number of accelerators")
    if row["accelerator"] not in MACHINES:
        raise Unusable("there is no data sheet of its accelerator")
    options = dict(_option(part) for part in row["other_parallel"].split(";"))
    model, stated = _model(row, conventions)
    machine = {**MACHINES[row["accelerator"]], **conventions.machine}
    strategy = _strategy(row, options, conventions, model, machine["peak_matrix_throughput"])
    name = row["accelerator"] + (f".{conventions.source.name}" if conventions.machine else "")
    failed = _FAILED in row["notes"]
    memory = float(options["mem_gb"]) * GIBI if options.get("mem_gb") else None
    run = Run(
        number,
        row["source"],
        row["model"],
        "; ".join(_SESSION.findall(row["notes"])),
        stated,
        model,
        strategy,
        name,
        None if failed else float(f"{_seconds(row, model, strategy, conventions):.6g}"),
        memory,
        failed,
    )
    if run.devices != int(row["n_accel"]):
        raise Unusable("its layout contradicts its number of accelerators")
    return run, machine


def _option(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return name.strip(), value.strip()


def _model(row: Row, conventions: SourceConventions) -> "tuple[documents.ModelStructure, bool]":
    known = {**members(row["model"]), **conventions.model}
    if not row["seq_len"]:
        raise Unusable("its sequence is not stated")
    shape = {name: int(row[name]) for name in ("layers", "hidden") if row[name]}
    if shape.keys() == {"layers", "hidden"}:
        shape["heads"] = int(row["heads"] or shape["hidden"] // _HEAD)
        return cast("documents.ModelStructure", {**shape, "sequence": int(row["seq_len"]), **known}), True
    if not row["params_b"] or not row["model"].startswith("GPT") or "experts" in known:
        raise Unusable("its model is not stated")
    shape = guessed(1e9 * float(row["params_b"]), known["vocabulary"])
    return cast("documents.ModelStructure", {**shape, "sequence": int(row["seq_len"]), **known}), False


def _strategy(
    row: Row,
    options: Mapping[str, str],
    conventions: SourceConventions,
    model: "documents.ModelStructure",
    peaks: Mapping[str, float],
) -> "documents.ParallelStrategy":
    tensor, data, devices = row["tp"], row["dp"], row["n_accel"]
    # Where the pipeline is not told, there is none only if tensor and data make up the machine.
    whole = all(entry.isdigit() for entry in (tensor, data, devices))
    if not whole or not (row["pp"].isdigit() or int(tensor) * int(data) == int(devices)):
        raise Unusable("its layout is not stated")
    if not row["global_batch"]:
        raise Unusable("its batch is not stated")
    stages, batch = int(row["pp"] or 1), int(row["global_batch"])
    strategy: dict[str, Any] = {
        "data": int(data),
        "tensor": int(tensor),
        "pipeline": stages,
        # A source that does not say it takes one sequence at a time under a pipeline, and all of them without.
        "micro_batch": 1 if stages > 1 else max(1, batch // int(data)),
        "global_batch": batch,
        **conventions.strategy,
        **_given(options),
    }
    pieces = {
        "virtual_stages": STAGES.get((row["source"], row["model"]), _whole(options, "vp")),
        "context": _whole(options, "cp"),
        "expert": _whole(options, "ep") if model.get("experts", 1) > 1 else 1,
    }
    strategy |= {name: size for name, size in pieces.items() if size > 1}
    if strategy.get("precision", "bf16") not in peaks:
        strategy["precision"] = next(name for name in _SIXTEEN if name in peaks)
    return cast("documents.ParallelStrategy", strategy)


def _given(options: Mapping[str, str]) -> dict[str, Any]:
    """What a row says itself of its strategy."""
    stated: dict[str, Any] = {}
    if options.get("recompute"):
        stated["recomputation"] = options["recompute"].lower()
    if options.get("precision"):
        text = options["precision"].lower()
        stated["precision"] = _FORMATS.get(text, "fp8" if "fp8" in text else text)
    if "zero" in options:
        stated["sharding"] = _whole(options, "zero")
        if stated["sharding"] == WEIGHTS_TOO:  # which DeepSpeed fetches ahead
            stated["overlap_data"] = True
    if options.get("fsdp", "0") not in {"", "0"}:
        stated["sharding"] = 2 if options["fsdp"] == "SHARD_GRAD_OP" else WEIGHTS_TOO
    if options.get("sp") == "1":
        stated["sequence_parallel"] = True
    if options.get("mbs", "").isdigit():
        stated["micro_batch"] = int(options["mbs"])
    return stated


def _whole(options: Mapping[str, str], name: str) -> int:
    return int(options[name]) if options.get(name, "").isdigit() else 1


def _seconds(
    row: Row, model: "documents.ModelStructure", strategy: "documents.ParallelStrategy", conventions: SourceConventions
) -> float:
    """Time of a step: stated, or from tokens, or from FLOP by the source's own count."""
    tokens: int = strategy["global_batch"] * model["sequence"]
    if row["step_time_s"]:
        return float(row["step_time_s"])
    if row["tokens_per_s"]:
        return tokens / float(row["tokens_per_s"])
    if not row["measured_tflops_per_accel"]:
        raise Unusable("its speed is not stated")
    count = _executed if conventions.counted == "executed" else _of_model
    rate = TERA * float(row["measured_tflops_per_accel"]) * int(row["n_accel"])
    return tokens * count(row, model) / rate


def _executed(row: Row, model: "documents.ModelStructure") -> float:
    """FLOP of a token of a GPT with everything computed anew: arXiv:2104.04473, equation 3, over the tokens."""
    del row
    layers, hidden, sequence = model["layers"], model["hidden"], model["sequence"]
    outer = model["vocabulary"] / (16 * layers * hidden)
    return float(96 * layers * hidden**2 * (1 + sequence / (6 * hidden) + outer))


def _of_model(row: Row, model: "documents.ModelStructure") -> float:
    """FLOP of a token: six of each parameter, and scores of attention as a causal mask leaves them."""
    scores: float = 6.0 * model["layers"] * model["hidden"] * model["sequence"]
    return 6e9 * float(row["params_b"]) + scores
