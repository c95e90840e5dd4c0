"""Tables of the outer loop: measured throughput that no constant of the index was chosen by.

All are made of public originals in the data folder (``KUAYU_DATA``). What an origin does not state is said with the
table. Data sheets are those of the suite; those that it lacks stand in SHEETS with their source.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from kuayu_conformance.corpora.table import Table, identifier, rows, sheets

if TYPE_CHECKING:
    from kuayu_schemas import documents

LAMBDA = "accelerator_benchmarks/lambda_training_throughput.csv"
SIA = "scaling_profiles/sia_step_times.csv.gz"
SCORES = "mlperf_training/scores.csv"

_HOPPER = {"fp32": 67e12, "tf32": 494.5e12, "bf16": 989e12, "fp16": 989e12, "fp8": 1979e12, "int8": 1979e12}

SHEETS: Mapping[str, dict[str, Any]] = {
    # NVIDIA H200 data sheet
    "h200": {
        "peak_matrix_throughput": _HOPPER,
        "accelerator_memory_capacity": 141e9,
        "accelerator_memory_bandwidth": 4.8e12,
        "power": 700.0,
    },
    # NVIDIA GH200 data sheet, 96 GB HBM3; the origin calls some of its hosts 80 GB, which was never sold
    "gh200": {
        "peak_matrix_throughput": _HOPPER,
        "accelerator_memory_capacity": 96e9,
        "accelerator_memory_bandwidth": 4e12,
        "power": 900.0,
    },
    # NVIDIA Turing white paper: binary32 accumulation
    "rtx-2080-ti": {
        "peak_matrix_throughput": {"fp32": 13.4e12, "fp16": 53.8e12},
        "accelerator_memory_capacity": 11e9,
        "accelerator_memory_bandwidth": 616e9,
        "power": 250.0,
    },
}


def strangers(data: Path) -> tuple[Table, ...]:
    """Tables of the outer loop.

    Raises:
        FileNotFoundError: The data folder does not hold the originals.
    """
    return _lambda_v2(data), _sia(data), _mlperf_earlier(data)


def _lambda_v2(data: Path) -> Table:
    """Lambda's later series: one accelerator, median over hosts of a kind; TF32 where binary32 is named, as in v1."""
    kinds = {"H100-SXM-80GB": "h100-sxm-80gb", "H100-PCIe-80GB": "h100-pcie-80gb", "H200": "h200", "GH200": "gh200"}
    throughputs: dict[tuple[str, str], list[float]] = defaultdict(list)
    precisions = {}
    for row in rows(data / LAMBDA):
        if row["series"] == "v2" and float(row["num_gpu"]) == 1 and float(row["throughput"] or 0) > 0:
            task = f"{row['workload']}.{row['precision']}"
            precisions[task] = ["fp16"] if row["precision"] == "fp16" else ["tf32", "fp32"]
            throughputs[row["gpu_model"], task].append(float(row["throughput"]))
    families = {task: task.split(".")[0].split("_")[0] for task in precisions}
    return _table("lambda-v2", kinds, precisions, families, throughputs)


def _sia(data: Path) -> Table:
    """Step times of Sia on one accelerator by batch size, without the modelled rows of gpt_pmp.

    The number format is not stated: binary32 is assumed, TF32 where there is one.
    """
    kinds = {
        ("T4", "aws"): "t4",
        ("V100", "azure"): "v100-sxm2-32gb",
        ("A100", "dgx-ext"): "a100-sxm-40gb",
        ("Quadro RTX 6000", "quad"): "quadro-rtx-6000",
        ("RTX 2080 Ti", "rtx"): "rtx-2080-ti",
    }
    names = {cluster: (name, sheet) for (name, cluster), sheet in kinds.items()}
    throughputs: dict[tuple[str, str], list[float]] = defaultdict(list)
    families = {}
    for row in rows(data / SIA):
        alone = row["table"] == "placements" and int(row["num_gpus"]) == 1
        if alone and row["cluster"] in names and row["app"] != "gpt_pmp" and not row["same_values_as"]:
            task = f"{row['app']}.{float(row['batch_per_gpu']):g}"
            families[task] = row["app"]
            throughputs[names[row["cluster"]][0], task].append(float(row["samples_per_s"]))
    precisions = {task: ["tf32", "fp32"] for task in families}
    return _table("sia", dict(names.values()), precisions, families, throughputs, least=3)


def _mlperf_earlier(data: Path) -> Table:
    """Speed to the quality target of nodes of eight in MLPerf Training v0.7 to v2.1, closed division.

    Devices by round, since software is another one in each; it holds convergence and submitters' choices.
    """
    kinds = {
        "V100-SXM-16GB": "v100-sxm2-16gb",
        "V100-SXM-32GB": "v100-sxm2-32gb",
        "A100-SXM-40GB": "a100-sxm-40gb",
        "A100-SXM-80GB": "a100-sxm-80gb",
        "A100-PCIe-40GB": "a100-pcie-40gb",
        "A100-PCIe-80GB": "a100-pcie-80gb",
        "A30": "a30",
        "Gaudi2": "gaudi2",
        "H100-SXM": "h100-sxm-80gb",
    }
    throughputs: dict[tuple[str, str], list[float]] = defaultdict(list)
    devices, families = {}, {}
    for row in rows(data / SCORES):
        node = row["division"] == "closed" and row["accelerators"] == "8" and row["nodes"] == "1"
        earlier = row["round"] in {"v0.7", "v1.0", "v1.1", "v2.0", "v2.1"}
        if node and earlier and row["accelerator_family"] in kinds and row["score_min"] and not row["repeat_of"]:
            device = f"{row['accelerator_family']}.{row['round']}"
            devices[device] = kinds[row["accelerator_family"]]
            families[row["benchmark"]] = row["benchmark"].split("_")[0]
            throughputs[device, row["benchmark"]].append(1 / (8 * float(row["score_min"])))
    precisions = {task: ["fp16", "bf16"] for task in families}
    alike = [[name for name in devices if name.rpartition(".")[0] == kind] for kind in kinds]
    return _table("mlperf-time-v0.7-v2.1", devices, precisions, families, throughputs, alike=alike, least=3)


def _sheet(key: str) -> dict[str, Any]:
    if key == "v100-sxm2-32gb":
        return {**sheets()["v100-sxm2-16gb"].members(scale_out=False), "accelerator_memory_capacity": 32e9}
    return SHEETS[key] if key in SHEETS else sheets()[key].members(scale_out=False)


def _table(
    name: str,
    devices: Mapping[str, str],
    precisions: Mapping[str, list[str]],
    families: Mapping[str, str],
    throughputs: Mapping[tuple[str, str], list[float]],
    *,
    alike: Iterable[Iterable[str]] = (),
    least: int = 1,
) -> Table:
    """A table of medians; tasks that were measured on fewer than ``least`` devices are left out."""
    counts: dict[str, int] = defaultdict(int)
    for _, task in throughputs:
        counts[task] += 1
    medians = {key: median(values) for key, values in sorted(throughputs.items()) if counts[key[1]] >= least}
    measured_devices, measured_tasks = (sorted({key[place] for key in medians}) for place in (0, 1))
    corpus = {
        "devices": [{"id": identifier(device), "stack": name} | _sheet(devices[device]) for device in measured_devices],
        "tasks": [
            {"id": identifier(task), "precisions": precisions[task], "family": identifier(families[task])}
            for task in measured_tasks
        ],
        "measurements": [
            {"device": identifier(device), "task": identifier(task), "throughput": value}
            for (device, task), value in medians.items()
        ],
    }
    groups = [
        frozenset(identifier(device) for device in group) & set(map(identifier, measured_devices)) for group in alike
    ]
    return Table(
        name,
        name,
        __name__,
        "see the data folder",
        False,
        cast("documents.Corpus", corpus),
        {identifier(device): device for device in measured_devices},
        {identifier(task): task for task in measured_tasks},
        tuple(group for group in groups if len(group) > 1),
    )
