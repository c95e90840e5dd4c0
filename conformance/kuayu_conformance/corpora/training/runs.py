"""A measured training run as a value, the JSON that runs are kept in, and what sources say once for all their runs.

A source's conventions are its machine, its software and what it counts as FLOP: taken from its pages, scripts and
papers, never from its times.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kuayu_schemas.schema import digest

if TYPE_CHECKING:
    from kuayu_schemas import documents


GIGA = 1e9


@dataclass(frozen=True)
class Source:
    """Where runs are from.

    Attributes:
        name: Its name in the public table.
        origin: Who published it, where, in which version.
        licence: SPDX name of the licence of the origin, or that there is none.
        conventions: What all its runs share, in words.
        team: Who ran it on which machine, where several sources have that in common; else empty.
    """

    name: str
    origin: str
    licence: str
    conventions: str
    team: str = ""


@dataclass(frozen=True)
class Run:
    """A measured run.

    Attributes:
        row: Line of the public table, counted from 1 without its heading.
        source: Name of the source.
        name: Name of the model in the source.
        session: Section and day of the source's page, or release of its software; only within one are times alike.
        stated: Whether the source states layers and width; else they were guessed from the number of parameters.
        model: Its structure.
        strategy: How it was spread.
        hardware: Name of the hardware.
        step_time: Seconds of a step; None where only memory is known.
        memory: Bytes of the fullest accelerator, as the source reports it; None where it does not.
        failed: Whether it ran out of memory.
    """

    row: int
    source: str
    name: str
    session: str
    stated: bool
    model: "documents.ModelStructure"
    strategy: "documents.ParallelStrategy"
    hardware: str
    step_time: float | None
    memory: float | None
    failed: bool

    @property
    def kind(self) -> str:
        """``moe`` or ``dense``."""
        return "moe" if self.model.get("experts", 1) > 1 else "dense"

    @property
    def devices(self) -> int:
        """Accelerators."""
        given: Mapping[str, Any] = self.strategy
        sizes = (given.get(name, 1) for name in ("data", "tensor", "pipeline", "context"))
        product = 1
        for size in sizes:
            product *= size
        return product

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return int(self.strategy["global_batch"] * self.model["sequence"])


@dataclass(frozen=True)
class Corpus:
    """Runs of several sources.

    Attributes:
        sources: By name.
        hardware: By name, which is its ``id``.
        runs: In the order of the public table.
    """

    sources: Mapping[str, Source]
    hardware: "Mapping[str, documents.TrainingHardware]"
    runs: tuple[Run, ...]

    @cached_property
    def digest(self) -> str:
        """Digest of all that verdicts depend on."""
        return digest({"hardware": dict(self.hardware), "runs": [asdict(run) for run in self.runs]})

    def to_json(self) -> str:
        """The runs as they are kept: one line for each source, hardware, model and run; equal models stand once."""
        models: dict[str, str] = {}
        lines = []
        for run in self.runs:
            text = json.dumps(run.model)
            models.setdefault(text, f"{run.name}#{len(models)}")
            members = {name: value for name, value in asdict(run).items() if value is not None}
            lines.append(json.dumps({**members, "model": models[text]}, ensure_ascii=False))
        parts = {
            "sources": [json.dumps(asdict(source), ensure_ascii=False) for source in self.sources.values()],
            "hardware": [json.dumps(entry) for entry in self.hardware.values()],
            "models": [f'{{"name": {json.dumps(name)}, "structure": {text}}}' for text, name in models.items()],
            "runs": lines,
        }
        return (
            "{\n"
            + ",\n".join(f' "{part}": [\n  ' + ",\n  ".join(item) + "\n ]" for part, item in parts.items())
            + "\n}\n"
        )

    @classmethod
    def from_json(cls, text: str) -> "Corpus":
        """The runs of a text that :meth:`to_json` made."""
        parts = json.loads(text)
        models = {model["name"]: model["structure"] for model in parts["models"]}
        optional = {"step_time": None, "memory": None}
        return cls(
            {source["name"]: Source(**source) for source in parts["sources"]},
            {entry["id"]: entry for entry in parts["hardware"]},
            tuple(Run(**{**optional, **run, "model": models[run["model"]]}) for run in parts["runs"]),
        )


@dataclass(frozen=True)
class SourceConventions:
    """What runs of a source share.

    Attributes:
        source: Origin and licence, and the same in words.
        machine: Members of the hardware that are not the catalogue's.
        strategy: Members of the strategy that runs do not say themselves.
        model: Likewise of the model.
        counted: What TFLOP/s of the source count where it states no time: ``executed`` (what is computed anew too) or
            ``model``.
    """

    source: Source
    machine: Mapping[str, Any] = field(default_factory=dict)
    strategy: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    counted: str = "model"


_MEGATRON_2021: Mapping[str, Any] = {
    "recomputation": "full",
    "precision": "fp16",
    "fused_attention": False,
    "overlap_data": False,
    "exchanged_size": 2.0,
}
_MEGATRON_DEEPSPEED = {**_MEGATRON_2021, "scattered": False}
_MEGATRON_CORE = {"sequence_parallel": True, "overlap_tensor": True, "sharding": 1, "exchanged_size": 4.0}
_SAID_2021 = (
    "Megatron-LM of 2021: scores of attention in memory, all activations computed anew, gradients exchanged in 16 bits "
    "after the backward pass"
)
_SAID_DEEPSPEED = _SAID_2021 + "; Megatron-DeepSpeed, whose stages pass whole messages on"
_JEAN_ZAY = {"domain_bandwidth": 6.25 * GIGA}
_SELENE, _BIGSCIENCE = "NVIDIA, Selene", "BigScience, Jean Zay"
_NEMO, _AUTOMODEL = "NVIDIA, NeMo 24", "NVIDIA, Automodel"
_PAPER = "facts of a paper, not read again in an origin"
STAGES: Mapping[tuple[str, str], int] = {
    ("megatron-sc21-table1", "GPT-76B"): 3,
    ("megatron-sc21-table1", "GPT-145B"): 2,
    ("megatron-sc21-table1", "GPT-310B"): 2,
    ("megatron-sc21-table1", "GPT-530B"): 3,
    ("korthikanti-2205.05198-table5", "gpt3-175B"): 3,
    ("korthikanti-2205.05198-table5", "turing-530B"): 3,
}
"""Virtual stages that the public table does not have: the script of table 1 in NVIDIA/Megatron-LM, and table 3 of
arXiv:2205.05198."""
CONVENTIONS: Mapping[str, SourceConventions] = {
    conventions.source.name: conventions
    for conventions in (
        SourceConventions(
            Source(
                "megatron-sc21-table1",
                "Narayanan et al., arXiv:2104.04473, table 1; NVIDIA/Megatron-LM images/cases_april2021.png and "
                "examples/academic_paper_scripts/sc21, commit d98e8a64",
                "BSD-3-Clause",
                _SAID_2021 + "; TFLOP/s count what is computed anew, by equation 3 of the paper",
                _SELENE,
            ),
            strategy=_MEGATRON_2021,
            counted="executed",
        ),
        SourceConventions(
            Source(
                "megatron-sc21-table2",
                "Narayanan et al., arXiv:2104.04473, table 2; cli99/llm-analysis figures/megatron-lm-2nd-table-2.png, "
                "commit d841e40",
                "Apache-2.0",
                _SAID_2021 + "; rows of ZeRO-3 are DeepSpeed's, which fetches weights ahead",
                _SELENE,
            ),
            strategy=_MEGATRON_2021,
            counted="executed",
        ),
        SourceConventions(
            Source(
                "korthikanti-2205.05198-table5",
                "Korthikanti et al., arXiv:2205.05198, table 5; calculon-ai/calculon calculon/llm/validation.py, "
                "commit caa4b11",
                "Apache-2.0",
                _SAID_2021 + " unless a row says otherwise",
                _SELENE,
            ),
            strategy=_MEGATRON_2021,
        ),
        SourceConventions(
            Source(
                "bigscience-tr11-prequel",
                "bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md, commit 9e64ede",
                "Apache-2.0",
                _SAID_DEEPSPEED + ", optimiser shared out; four adapters of 100 Gbit/s for eight accelerators; single "
                "iterations",
                _BIGSCIENCE,
            ),
            machine=_JEAN_ZAY,
            strategy={**_MEGATRON_DEEPSPEED, "sharding": 1},
            model={"vocabulary": 250880, "dropout": True},
            counted="executed",
        ),
        SourceConventions(
            Source(
                "bigscience-tr11-final",
                "bigscience-workshop/bigscience train/tr11-176B-ml/README.md and chronicles.md, commit 9e64ede",
                "Apache-2.0",
                _SAID_DEEPSPEED + "; gradients exchanged in 32 bits, as its BF16 optimiser does; adapters as before",
                _BIGSCIENCE,
            ),
            machine=_JEAN_ZAY,
            strategy={**_MEGATRON_DEEPSPEED, "exchanged_size": 4.0},
            counted="executed",
        ),
        SourceConventions(
            Source(
                "bigscience-gpt2-v100",
                "bigscience-workshop/bigscience experiments/gpt2.md, commit 9e64ede",
                "Apache-2.0",
                _SAID_DEEPSPEED + "; four accelerators and four adapters in a node; parameters are stated, layers and "
                "width are not",
                _BIGSCIENCE,
            ),
            machine={"devices_per_node": 4},
            strategy=_MEGATRON_DEEPSPEED,
            model={"vocabulary": 51200, "dropout": True},
            counted="executed",
        ),
        SourceConventions(
            Source(
                "llm-foundry-bench",
                "mosaicml/llm-foundry scripts/train/benchmarking/README.md, commit 8c8dd48f",
                "Apache-2.0",
                "FSDP, gradients reduced in 32 bits; FlashAttention of the first version, half as fast as the second "
                "by the abstract of arXiv:2307.08691",
            ),
            strategy={"attention_speed": 0.5},
        ),
        SourceConventions(
            Source(
                "megatron-bridge-perf",
                "NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md and performance-summary-archive.md, commit "
                "067f987d",
                "Apache-2.0",
                "Megatron-Core as Megatron-Bridge sets it up: sequence parallelism, overlapped exchanges, optimiser "
                "shared out",
            ),
            strategy=_MEGATRON_CORE,
        ),
        SourceConventions(
            Source(
                "llama3-2407.21783-table4",
                "Llama team, arXiv:2407.21783, table 4",
                _PAPER,
                "weights are gathered once and kept (section 3.3.2), so that the traffic is that of a shared optimiser",
            ),
            strategy=_MEGATRON_CORE,
        ),
        SourceConventions(
            Source("opt-2205.01068", "Zhang et al., arXiv:2205.01068", _PAPER, _SAID_2021 + "; FSDP"),
            strategy={**_MEGATRON_2021, "sharding": 3, "overlap_data": True},
            counted="executed",
        ),
        SourceConventions(
            Source(
                "gpt-neox-2204.06745",
                "Black et al., arXiv:2204.06745, section 3",
                _PAPER,
                _SAID_DEEPSPEED + "; micro-batches of four (section 3.2)",
            ),
            strategy={**_MEGATRON_DEEPSPEED, "micro_batch": 4},
            counted="executed",
        ),
        SourceConventions(
            Source(
                "nemo-24.07-performance",
                "NVIDIA/NeMo docs/source/performance/performance_summary.md, commit 070a0bb1, table Pretraining",
                "Apache-2.0",
                "Megatron-Core of container 24.07 in FP8; inferred: sequence parallelism, overlapped exchanges, "
                "optimiser shared out, as its performance recipes have them. Fine-tuning is left out, whose packing is "
                "not stated",
                _NEMO,
            ),
            strategy=_MEGATRON_CORE,
        ),
        SourceConventions(
            Source(
                "automodel-2025-10",
                "NVIDIA-NeMo/Automodel docs/performance-summary.md, commit 01926a5c, and the recipes that it names in "
                "examples/benchmark/configs",
                "Apache-2.0",
                "PyTorch FSDP2, Transformer Engine, DeepEP; routing is forced to be even. With a pipeline weights stay "
                "gathered, so that the traffic is that of a shared optimiser. Fine-tuning is left out: its recipe was "
                "not read",
                _AUTOMODEL,
            ),
            strategy={"sharding": 1},
        ),
        SourceConventions(
            Source(
                "automodel-dispatchers-2026-07",
                "NVIDIA-NeMo/Automodel docs/deepep_vs_hybridep_benchmark.md, commit 18007663, section 4",
                "Apache-2.0",
                "PyTorch FSDP2, Transformer Engine; routing is forced to be even",
                _AUTOMODEL,
            ),
        ),
        SourceConventions(
            Source(
                "megatron-core-moe-0.9",
                "NVIDIA/Megatron-LM megatron/core/transformer/moe/README.md, commit 022bcb5a",
                "BSD-3-Clause",
                "Megatron-Core 0.9; inferred: sequence parallelism, overlapped exchanges, optimiser shared out",
            ),
            strategy=_MEGATRON_CORE,
        ),
        SourceConventions(
            Source(
                "fms-fsdp",
                "foundation-model-stack/fms-fsdp README.md, commit 0d319983",
                "Apache-2.0",
                "PyTorch FSDP with scaled-dot-product attention (FlashAttention-2)",
            ),
        ),
        SourceConventions(
            Source(
                "scaletorch-910b",
                "jianzhnie/ScaleTorch README.md and scripts/benchmark_comprehensive.py, commit 2887ef76",
                "Apache-2.0",
                "a framework for teaching, ten steps a run, whose mean may include the first; plain data parallelism. "
                "Memory is left out, a mean and not a peak; so are its mixtures of experts, whose layout the wire "
                "cannot state",
            ),
        ),
    )
}
"""Sources whose runs state a layout and a batch; those of others cannot be asked for. PaLM's machine is a torus, which
the wire cannot state."""
ADDED = frozenset(
    {
        "nemo-24.07-performance",
        "automodel-2025-10",
        "automodel-dispatchers-2026-07",
        "megatron-core-moe-0.9",
        "fms-fsdp",
        "scaletorch-910b",
    }
)
"""Sources that were entered on 2026-11-27, before the law had predicted any of them (``added.csv``)."""
RECALLED = frozenset(name for name, conventions in CONVENTIONS.items() if conventions.source.licence == _PAPER)
SHIPPED = frozenset(CONVENTIONS) - RECALLED - ADDED
