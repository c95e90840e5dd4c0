"""NeuSight: latency of steps of language models (Lee et al., ASPLOS 2025)."""

from pathlib import Path

from kuayu_conformance.corpora.assembly import Cell, Device, Origin, Task, assemble, rows
from kuayu_conformance.corpora.table import Table

FILE = "accelerator_benchmarks/neusight_llm_step_latency.csv"
ORIGIN = Origin(
    "neusight",
    "NeuSight: inference and training steps of language models per second on eight GPUs of NVIDIA and AMD",
    "Lee et al., Forecasting GPU Performance for Deep Learning Training and Inference, ASPLOS 2025; "
    "sitar-lab/NeuSight scripts/asplos/label, commit 6945927d9afcca2b9daf021f8395e53edc5b4eef; rows of one device "
    "without fused kernels, 1000 over the milliseconds of a step; a training step is forward and backward, without "
    "the optimiser. The origin sets no reduced precision and switches TF32 off for convolutions, where PyTorch has it "
    "on, so that matrix work is binary32. MI250 was measured on one of its two dies, which is an MI210's.",
    "MIT",
    one_party=True,
)
STACK = "PyTorch 2.1.0, by the origin's README"
SHEETS = {
    "AMD Instinct MI100": "mi100",
    "AMD Instinct MI210": "mi210",
    "AMD Instinct MI250": "mi250-die",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA H100 80GB HBM3": "h100-sxm-80gb",
    "Tesla P4": "p4",
    "Tesla T4": "t4",
    "Tesla V100-PCIE-32GB": "v100-pcie-32gb",
}
ALIKE = (("AMD Instinct MI210", "AMD Instinct MI250"),)
FAMILIES = {
    "bert_large": "bert",
    "gpt2_large": "gpt2",
    "gpt3_xl": "gpt3",
    "gpt3_27": "gpt3",
    "opt_13": "opt",
    "switchxl4": "switch",
}
MODES = {"inf": "inference", "train": "training step"}


def tables(data: Path) -> tuple[Table, ...]:
    """The table.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    measured = [row for row in rows(data / FILE) if not row["variant"]]
    return (
        assemble(
            ORIGIN,
            [Device(name, sheet, STACK) for name, sheet in SHEETS.items()],
            [Task(_name(row), ("fp32",), FAMILIES[row["model"]], _label(row)) for row in measured],
            [Cell(row["device"], _name(row), 1000 / float(row["e2e_ms"])) for row in measured],
            alike=ALIKE,
        ),
    )


def _name(row: dict[str, str]) -> str:
    return f"{row['model']}.{row['mode']}.{row['seq_len']}x{row['batch_size']}"


def _label(row: dict[str, str]) -> str:
    return f"{row['model']}, {MODES[row['mode']]}, sequence {row['seq_len']}, batch {row['batch_size']}"
