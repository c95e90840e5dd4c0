"""Lambda's training throughput on workstation and server GPUs, as its repository has it.

The repository states no licence, so that the table does not come with the suite: it is made in memory where the data
folder is there.
"""

from collections import defaultdict
from collections.abc import Mapping
from math import inf
from pathlib import Path
from statistics import median

from kuayu_conformance.corpora.assembly import Cell, Device, Origin, Task, assemble, rows
from kuayu_conformance.corpora.table import Table

FILE = "accelerator_benchmarks/lambda_training_throughput.csv"
SERIES = "v1"
MARK = "transformerxl"
"""Hosts with rows of these workloads were measured with the earlier version of the benchmark."""
MORE_THAN_ALL = 1.25
"""Several devices that do so many times what each alone would are not believed: cache and batch explain less."""
ORIGIN = Origin(
    "lambda",
    "Lambda: training throughput in binary16 and binary32 on eight kinds of GPUs",
    "lambdal/deeplearning-benchmark pytorch/pytorch-train-throughput, commit "
    "aa5addb6a53675a649a80036dad548f1c27cbcc4; series of 2020 to 2023, only hosts that have Transformer-XL rows, since "
    "later hosts were measured with a later version, which runs some tasks 1.2 to 1.3 times as fast; median over hosts "
    "of the same model of GPU. Rows of several GPUs that tell more than 1.25 times what as many alone would do are "
    "left out. Batch sizes fill each GPU's memory. TF32 is on where binary32 is named, as in the containers that were "
    "used.",
    "none stated",
    one_party=True,
)
STACK = "NVIDIA's PyTorch container, 22.09 by the origin's README; the version by host is not stated"
SHEETS = {
    "A10": "a10",
    "A100-PCIe-40GB": "a100-pcie-40gb",
    "A100-SXM-80GB": "a100-sxm-80gb",
    "H100-PCIe-80GB": "h100-pcie-80gb",
    "H100-SXM-80GB": "h100-sxm-80gb",
    "Quadro RTX 8000": "quadro-rtx-8000",
    "RTX 4090": "rtx-4090",
    "RTX A6000": "rtx-a6000",
}
PRECISIONS = {"fp16": ("fp16",), "fp32": ("tf32", "fp32")}
FAMILIES = {
    "bert_base_squad": "bert",
    "bert_large_squad": "bert",
    "resnet50": "resnet",
    "tacotron2": "tacotron",
    "transformerxlbase": "transformerxl",
    "transformerxllarge": "transformerxl",
}


def tables(data: Path) -> tuple[Table, ...]:
    """The table.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    measured = [row for row in rows(data / FILE) if row["series"] == SERIES and float(row["throughput"] or 0) > 0]
    earlier = {row["name_gpu"] for row in measured if row["workload"].startswith(MARK)}
    hosts: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    tasks = {}
    for row in measured:
        if row["name_gpu"] in earlier:
            task = Task(
                f"{row['workload']}.{row['precision']}",
                PRECISIONS[row["precision"]],
                FAMILIES.get(row["workload"], row["workload"]),
                f"{row['workload']}, {row['precision']}",
            )
            tasks[task.name] = task
            hosts[row["gpu_model"], task.name, int(float(row["num_gpu"]))].append(float(row["throughput"]))
    believed = {
        (device, task, count): [value for value in values if value <= _most(hosts, device, task, count)]
        for (device, task, count), values in hosts.items()
    }
    return (
        assemble(
            ORIGIN,
            [Device(name, sheet, STACK) for name, sheet in SHEETS.items()],
            tasks.values(),
            [Cell(device, task, median(values), count) for (device, task, count), values in believed.items() if values],
        ),
    )


def _most(hosts: Mapping[tuple[str, str, int], list[float]], device: str, task: str, count: int) -> float:
    """Throughput above which a row is not believed."""
    return inf if count == 1 else MORE_THAN_ALL * count * median(hosts[device, task, 1])
