"""Zeus: training epochs and power (You et al., NSDI 2023)."""

from collections import defaultdict
from pathlib import Path

from kuayu_conformance.corpora.assembly import Cell, Device, Origin, Task, assemble, rows
from kuayu_conformance.corpora.table import Table

FILE = "accelerator_benchmarks/zeus_power_limit_profiles.csv"
LEAST_DEVICES = 3
"""A task is taken if it was measured on so many kinds of devices."""
ORIGIN = Origin(
    "zeus",
    "Zeus: training epochs per second and mean power on P100, V100, Quadro RTX 6000 and A40, by batch size",
    "You et al., Zeus: Understanding and Optimizing GPU Energy Consumption of DNN Training, NSDI 2023; ml-energy/zeus "
    "examples/research_reproducibility/zeus_nsdi23/trace, commit 75a8b9398034eb9baf74ca0a830c2c31bcce52cd; at the "
    "highest power limit, batch sizes that are powers of two, on three kinds of GPUs at least. No number format is "
    "stated; binary32 is assumed, with TF32 where the device has it, as frameworks of the time did by default.",
    "Apache-2.0",
    one_party=True,
)
STACK = "PyTorch; the version is not stated with the measurements"
SHEETS = {"A40": "a40", "P100": "p100-pcie-16gb", "Quadro RTX 6000": "quadro-rtx-6000", "V100": "v100-pcie"}
FAMILIES = {
    "bert_base_uncased": "bert",
    "deepspeech2": "deepspeech",
    "ncf": "ncf",
    "resnet50": "resnet",
    "shufflenetv2": "shufflenet",
}


def tables(data: Path) -> tuple[Table, ...]:
    """The table.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    unlimited: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows(data / FILE):
        if int(row["batch_size"]).bit_count() != 1:
            continue
        known = unlimited.get((row["gpu_type"], _name(row)))
        if known is None or float(row["power_limit_w"]) > float(known["power_limit_w"]):
            unlimited[row["gpu_type"], _name(row)] = row
    devices = defaultdict(set)
    for device, task in unlimited:
        devices[task].add(device)
    measured = [row for (_, task), row in unlimited.items() if len(devices[task]) >= LEAST_DEVICES]
    return (
        assemble(
            ORIGIN,
            [Device(name, sheet, STACK) for name, sheet in SHEETS.items()],
            [Task(_name(row), ("tf32", "fp32"), FAMILIES[row["network"]], _label(row)) for row in measured],
            [
                Cell(
                    row["gpu_type"],
                    _name(row),
                    1 / float(row["time_per_epoch_s"]),
                    power=float(row["average_power_w"]),
                )
                for row in measured
            ],
        ),
    )


def _name(row: dict[str, str]) -> str:
    return f"{row['network']}.{row['dataset']}.{row['optimizer']}.{row['batch_size']}"


def _label(row: dict[str, str]) -> str:
    return f"{row['network']} on {row['dataset']}, {row['optimizer']}, batch {row['batch_size']}"
