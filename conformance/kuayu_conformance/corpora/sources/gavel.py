"""Gavel: training steps on three generations of GPUs (Narayanan et al., OSDI 2020)."""

from pathlib import Path

from kuayu_conformance.corpora.assembly import Cell, Device, Origin, Task, assemble, rows
from kuayu_conformance.corpora.table import Table

FILE = "gavel_throughputs/isolated.csv"
ORIGIN = Origin(
    "gavel",
    "Gavel: training steps per second on K80, P100 and V100, for one, two, four and eight GPUs of a server",
    "Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads, OSDI 2020; "
    "stanford-futuredata/gavel scheduler/physical_cluster_throughputs.json, commit "
    "c4fa40097339e9608ab71fd64c8bdea96a5e4a4c; GPUs of one server. The forms of the GPUs are not stated there; "
    "they are taken as the cloud's, SXM2 for V100 and PCIe for P100. No reduced precision is set.",
    "MIT",
    one_party=True,
)
STACK = "PyTorch 1.4.0, as scheduler/requirements.txt of the origin asks for"
SHEETS = {"K80": "k80", "P100": "p100-pcie-16gb", "V100": "v100-sxm2-16gb"}
FAMILIES = {"ResNet-18": "resnet", "ResNet-50": "resnet"}


def tables(data: Path) -> tuple[Table, ...]:
    """The table.

    A row for several GPUs counts the steps of all of them: the origin's scheduler/scripts/profiling/
    measure_throughput.py adds up what each worker reports, and ResNet-18 with 128 samples takes 1.90 steps a second on
    one K80 and 13.66 on eight. Were it the rate of steps in common, eight GPUs would do 57 times the work of one.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    measured = [
        row
        for row in rows(data / FILE)
        if row["source"] == "physical_cluster" and row["consolidated"] == "True" and float(row["steps_per_s"]) > 0
    ]
    return (
        assemble(
            ORIGIN,
            [Device(name, sheet, STACK) for name, sheet in SHEETS.items()],
            [
                Task(row["job_type"], ("fp32",), FAMILIES.get(row["model"], row["model"].lower()), row["job_type"])
                for row in measured
            ],
            [
                Cell(row["gpu_type"], row["job_type"], float(row["steps_per_s"]), int(row["num_gpus"]))
                for row in measured
            ],
        ),
    )
