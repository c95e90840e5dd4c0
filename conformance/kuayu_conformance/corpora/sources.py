"""Tables made of the public originals in a data folder: each origin of measurements, and what was done to it.

1. **Gavel.** Training steps on three generations of GPUs (Narayanan et al., OSDI 2020).
2. **NeuSight.** Latency of steps of language models (Lee et al., ASPLOS 2025).
3. **Zeus.** Training epochs and power (You et al., NSDI 2023).
4. **MLPerf Training.** What nodes of eight accelerators did in the closed division, rounds v3.0 and v3.1. "MLPerf" is a
   trademark of MLCommons. The tables are derived from published result logs; they are no results of MLPerf.
5. **FlagPerf.** What the vendors' result pages say, and how little of it tells a speed.
6. **Lambda.** Training throughput on workstation and server GPUs. The repository states no licence, so that the table
   does not come with the suite: it is made in memory where the data folder is there.

A function of the name of each origin makes its tables; :func:`shipped_files` writes those that come with the suite.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from statistics import median

from kuayu_conformance.corpora.table import Cell, Device, Origin, Table, Task, assemble, rows

GAVEL_FILE = "gavel_throughputs/isolated.csv"
GAVEL_ORIGIN = Origin(
    "gavel",
    "Gavel: training steps per second on K80, P100 and V100, for one, two, four and eight GPUs of a server",
    "Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads, OSDI 2020; "
    "stanford-futuredata/gavel scheduler/physical_cluster_throughputs.json, commit "
    "c4fa40097339e9608ab71fd64c8bdea96a5e4a4c; GPUs of one server. The forms of the GPUs are not stated there; "
    "they are taken as the cloud's, SXM2 for V100 and PCIe for P100. No reduced precision is set.",
    "MIT",
    one_party=True,
)
GAVEL_STACK = "PyTorch 1.4.0, as scheduler/requirements.txt of the origin asks for"
GAVEL_SHEETS = {"K80": "k80", "P100": "p100-pcie-16gb", "V100": "v100-sxm2-16gb"}
GAVEL_FAMILIES = {"ResNet-18": "resnet", "ResNet-50": "resnet"}


def gavel(data: Path) -> tuple[Table, ...]:
    """The table.

    A row for several GPUs counts the steps of all of them: the origin's scheduler/scripts/profiling/
    measure_throughput.py adds up what each worker reports, and ResNet-18 with 128 samples takes 1.90 steps a second on
    one K80 and 13.66 on eight. Were it the rate of steps in common, eight GPUs would do 57 times the work of one.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    measured = [
        row
        for row in rows(data / GAVEL_FILE)
        if row["source"] == "physical_cluster" and row["consolidated"] == "True" and float(row["steps_per_s"]) > 0
    ]
    return (
        assemble(
            GAVEL_ORIGIN,
            [Device(name, sheet, GAVEL_STACK) for name, sheet in GAVEL_SHEETS.items()],
            [
                Task(
                    row["job_type"], ("fp32",), GAVEL_FAMILIES.get(row["model"], row["model"].lower()), row["job_type"]
                )
                for row in measured
            ],
            [
                Cell(row["gpu_type"], row["job_type"], float(row["steps_per_s"]), int(row["num_gpus"]))
                for row in measured
            ],
        ),
    )


NEUSIGHT_FILE = "accelerator_benchmarks/neusight_llm_step_latency.csv"
NEUSIGHT_ORIGIN = Origin(
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
NEUSIGHT_STACK = "PyTorch 2.1.0, by the origin's README"
NEUSIGHT_SHEETS = {
    "AMD Instinct MI100": "mi100",
    "AMD Instinct MI210": "mi210",
    "AMD Instinct MI250": "mi250-die",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA H100 80GB HBM3": "h100-sxm-80gb",
    "Tesla P4": "p4",
    "Tesla T4": "t4",
    "Tesla V100-PCIE-32GB": "v100-pcie-32gb",
}
NEUSIGHT_ALIKE = (("AMD Instinct MI210", "AMD Instinct MI250"),)
NEUSIGHT_FAMILIES = {
    "bert_large": "bert",
    "gpt2_large": "gpt2",
    "gpt3_xl": "gpt3",
    "gpt3_27": "gpt3",
    "opt_13": "opt",
    "switchxl4": "switch",
}
NEUSIGHT_MODES = {"inf": "inference", "train": "training step"}


def neusight(data: Path) -> tuple[Table, ...]:
    """The table.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    measured = [row for row in rows(data / NEUSIGHT_FILE) if not row["variant"]]
    return (
        assemble(
            NEUSIGHT_ORIGIN,
            [Device(name, sheet, NEUSIGHT_STACK) for name, sheet in NEUSIGHT_SHEETS.items()],
            [
                Task(_neusight_task(row), ("fp32",), NEUSIGHT_FAMILIES[row["model"]], _neusight_label(row))
                for row in measured
            ],
            [Cell(row["device"], _neusight_task(row), 1000 / float(row["e2e_ms"])) for row in measured],
            alike=NEUSIGHT_ALIKE,
        ),
    )


def _neusight_task(row: dict[str, str]) -> str:
    return f"{row['model']}.{row['mode']}.{row['seq_len']}x{row['batch_size']}"


def _neusight_label(row: dict[str, str]) -> str:
    return f"{row['model']}, {NEUSIGHT_MODES[row['mode']]}, sequence {row['seq_len']}, batch {row['batch_size']}"


ZEUS_FILE = "accelerator_benchmarks/zeus_power_limit_profiles.csv"
ZEUS_MIN_KINDS = 3
"""A task is taken if it was measured on so many kinds of devices."""
ZEUS_ORIGIN = Origin(
    "zeus",
    "Zeus: training epochs per second and mean power on P100, V100, Quadro RTX 6000 and A40, by batch size",
    "You et al., Zeus: Understanding and Optimizing GPU Energy Consumption of DNN Training, NSDI 2023; ml-energy/zeus "
    "examples/research_reproducibility/zeus_nsdi23/trace, commit 75a8b9398034eb9baf74ca0a830c2c31bcce52cd; at the "
    "highest power limit, batch sizes that are powers of two, on three kinds of GPUs at least. No number format is "
    "stated; binary32 is assumed, with TF32 where the device has it, as frameworks of the time did by default.",
    "Apache-2.0",
    one_party=True,
)
ZEUS_STACK = "PyTorch; the version is not stated with the measurements"
ZEUS_SHEETS = {"A40": "a40", "P100": "p100-pcie-16gb", "Quadro RTX 6000": "quadro-rtx-6000", "V100": "v100-pcie"}
ZEUS_FAMILIES = {
    "bert_base_uncased": "bert",
    "deepspeech2": "deepspeech",
    "ncf": "ncf",
    "resnet50": "resnet",
    "shufflenetv2": "shufflenet",
}


def zeus(data: Path) -> tuple[Table, ...]:
    """The table.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    unlimited: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows(data / ZEUS_FILE):
        if int(row["batch_size"]).bit_count() != 1:
            continue
        known = unlimited.get((row["gpu_type"], _zeus_task(row)))
        if known is None or float(row["power_limit_w"]) > float(known["power_limit_w"]):
            unlimited[row["gpu_type"], _zeus_task(row)] = row
    devices = defaultdict(set)
    for device, task in unlimited:
        devices[task].add(device)
    measured = [row for (_, task), row in unlimited.items() if len(devices[task]) >= ZEUS_MIN_KINDS]
    return (
        assemble(
            ZEUS_ORIGIN,
            [Device(name, sheet, ZEUS_STACK) for name, sheet in ZEUS_SHEETS.items()],
            [
                Task(_zeus_task(row), ("tf32", "fp32"), ZEUS_FAMILIES[row["network"]], _zeus_label(row))
                for row in measured
            ],
            [
                Cell(
                    row["gpu_type"],
                    _zeus_task(row),
                    1 / float(row["time_per_epoch_s"]),
                    power=float(row["average_power_w"]),
                )
                for row in measured
            ],
        ),
    )


def _zeus_task(row: dict[str, str]) -> str:
    return f"{row['network']}.{row['dataset']}.{row['optimizer']}.{row['batch_size']}"


def _zeus_label(row: dict[str, str]) -> str:
    return f"{row['network']} on {row['dataset']}, {row['optimizer']}, batch {row['batch_size']}"


MLPERF_RUNS = "mlperf_training/runs.csv.gz"
MLPERF_SYSTEMS = "mlperf_training/systems.csv"
MLPERF_SCORES = "mlperf_training/scores.csv"
MLPERF_ROUNDS = ("v3.0", "v3.1")
MLPERF_NODE = "8"
MLPERF_MIN_KINDS = 4
"""A task is taken if it was measured on so many kinds of accelerators."""
TRADEMARK = (
    "MLPerf is a trademark of MLCommons; these figures are derived from published logs and are no results of MLPerf."
)
COMMITS = (
    "mlcommons/training_results_v3.0 commit 63e326c400f5d8bb8c6070a9ab08332d4931152e and training_results_v3.1 commit "
    "d06288b2bd675a9d88e0e6181f5bb5626b71ec19"
)
MLPERF_SHEETS = {
    "A100-PCIe-80GB": "a100-pcie-80gb",
    "A100-SXM-80GB": "a100-sxm-80gb",
    "A30": "a30",
    "A40": "a40",
    "Gaudi2": "gaudi2",
    "H100-PCIe": "h100-pcie-80gb",
    "H100-SXM": "h100-sxm-80gb",
    "L40": "l40",
    "L40S": "l40s",
}
MLPERF_PRECISIONS = ("fp16", "bf16")
"""Half precision with binary32 accumulation, as all of the submissions mix. BERT on H100 also uses fp8 in places, which
is the submitter's choice and is not counted."""


def mlperf(data: Path) -> tuple[Table, ...]:
    """Throughput that submitters logged, and speed to the quality target.

    Raises:
        FileNotFoundError: The data folder does not hold the originals.
    """
    return _mlperf_throughput(data), _mlperf_speed(data)


def mlperf_submissions(
    data: Path, rounds: Collection[str] = MLPERF_ROUNDS
) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Samples a second of eight accelerators in one node: by family and benchmark, then by submitter.

    It is the median over a submitter's successful runs in the rounds; a run that was carried over to the later round
    counts in both.

    Raises:
        FileNotFoundError: The data folder does not hold the originals.
    """
    systems = {(row["round"], row["submitter_dir"], row["system"]): row for row in rows(data / MLPERF_SYSTEMS)}
    logged: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(data / MLPERF_RUNS):
        system = systems.get((row["round"], row["submitter_dir"], row["system"]))
        if (
            system is None
            or row["round"] not in rounds
            or not _of_a_node(system)
            or system["accelerator_family"] not in MLPERF_SHEETS
        ):
            continue
        if row["run_status"] == "success" and float(row["logged_throughput_median"] or 0) > 0:
            key = system["accelerator_family"], row["benchmark"]
            logged[key][row["submitter_dir"]].append(float(row["logged_throughput_median"]))
    return {
        key: {submitter: median(values) for submitter, values in by_submitter.items()}
        for key, by_submitter in logged.items()
    }


def mlperf_spread(results: Mapping[tuple[str, str], Mapping[str, float]]) -> tuple[float, float]:
    """How far a submitter lies from the median of all on the same accelerator and benchmark: median and largest share.

    Only what several submitted counts.
    """
    away = [
        abs(value / median(values.values()) - 1)
        for values in results.values()
        if len(values) > 1
        for value in values.values()
    ]
    return median(away), max(away)


def mlperf_drift(data: Path) -> tuple[float, float]:
    """How much more a submitter logged in the later round than in the earlier one: median, and largest either way.

    Only what was run again counts: the same median in both rounds means that the earlier runs were carried over.
    """
    earlier, later = (
        {
            (*key, submitter): value
            for key, values in mlperf_submissions(data, (one,)).items()
            for submitter, value in values.items()
        }
        for one in MLPERF_ROUNDS
    )
    changes = [later[key] / earlier[key] - 1 for key in earlier.keys() & later.keys() if later[key] != earlier[key]]
    return median(changes), max(changes, key=abs)


def _of_a_node(system: Mapping[str, str]) -> bool:
    return (
        system["round"] in MLPERF_ROUNDS
        and system["division"] == "closed"
        and system["accelerators"] == MLPERF_NODE
        and system["nodes"] == "1"
    )


def _mlperf_throughput(data: Path) -> Table:
    """Throughput of each accelerator in a node of eight.

    It holds the exchange between them, so that the devices tell the bandwidth of it. It counts as of one party: the
    benchmark fixes model, data, quality target and what is logged, and on the same accelerator submitters and rounds
    mostly agree within a per cent. The source tells how far they do, exceptions included.
    """
    results = mlperf_submissions(data)
    kinds: dict[str, set[str]] = defaultdict(set)
    for device, task in results:
        kinds[task].add(device)
    chosen = {key: values for key, values in results.items() if len(kinds[key[1]]) >= MLPERF_MIN_KINDS}
    submitters = sorted({submitter for values in chosen.values() for submitter in values})
    typical, worst = mlperf_spread(chosen)
    typical_change, largest_change = mlperf_drift(data)
    return assemble(
        Origin(
            "mlperf",
            "MLPerf Training: samples per second of one accelerator in a node of eight, an eighth of what the eight "
            "logged together",
            f"MLPerf Training v3.0 and v3.1, closed division; {COMMITS}; submitters {', '.join(submitters)}. Median "
            f"of logged throughput over a submitter's successful runs, then over submitters; tasks on "
            f"{MLPERF_MIN_KINDS} kinds of accelerators or more. Where several submitted, one differs from the median "
            f"by {typical:.1%} in the median and by {worst:.0%} at most; what a submitter ran again for v3.1 differs "
            f"from v3.0 by {typical_change:+.1%} in the median and by {largest_change:+.0%} at most. {TRADEMARK}",
            "Apache-2.0",
            one_party=True,
        ),
        [Device(name, sheet, "Submissions to MLPerf Training v3.0 and v3.1") for name, sheet in MLPERF_SHEETS.items()],
        [Task(task, MLPERF_PRECISIONS, task.split("_")[0], task) for _, task in chosen],
        [Cell(*key, median(values.values()) / int(MLPERF_NODE)) for key, values in chosen.items()],
        scale_out=True,
    )


def _mlperf_speed(data: Path) -> Table:
    """Speed to the quality target of a node of eight; devices by round, since software is another one in each."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    submitters = set()
    for row in rows(data / MLPERF_SCORES):
        known = row["accelerator_family"] in MLPERF_SHEETS
        if known and _of_a_node(row) and row["score_min"] and not row["repeat_of"]:
            scores[f"{row['accelerator_family']}.{row['round']}", row["benchmark"]].append(float(row["score_min"]))
            submitters.add(row["submitter"])
    return assemble(
        Origin(
            "mlperf-time",
            "MLPerf Training: trainings to the quality target per minute on one accelerator of a node of eight, an "
            "eighth of what the eight did together",
            f"MLPerf Training v3.0 and v3.1, closed division; {COMMITS}; submitters {', '.join(sorted(submitters))}. "
            f"One over the median of the scores in minutes. It holds convergence and submitters' choices. {TRADEMARK}",
            "Apache-2.0",
            one_party=False,
        ),
        [
            Device(f"{name}.{version}", sheet, f"Submissions to MLPerf Training {version}", f"{name}, {version}")
            for name, sheet in MLPERF_SHEETS.items()
            for version in MLPERF_ROUNDS
        ],
        [Task(task, MLPERF_PRECISIONS, task.split("_")[0], task) for _, task in scores],
        [Cell(*key, 1 / (int(MLPERF_NODE) * median(minutes))) for key, minutes in scores.items()],
        alike=[[f"{name}.{version}" for version in MLPERF_ROUNDS] for name in MLPERF_SHEETS],
        scale_out=True,
    )


@dataclass(frozen=True)
class Gap:
    """What one vendor's result pages tell.

    Attributes:
        vendor: Its folder in FlagPerf.
        name: Its name.
        cases: Cases with a figure.
        cells: Figures.
        others: Figures that are of another vendor's device.
        speeds: Figures of its own devices that tell a speed.
        utilisations: Figures of its own devices that tell a share of a peak that is not published (MFU).
        cases_with_speed: Cases with a speed of its own devices.
        cases_with_utilisation_only: Cases with such a share, but no speed.
        compared: Speeds for which another vendor's device has one of the same case, layout and batch size.
    """

    vendor: str
    name: str
    cases: int
    cells: int
    others: int
    speeds: int
    utilisations: int
    cases_with_speed: int
    cases_with_utilisation_only: int
    compared: int


@dataclass(frozen=True)
class Maker:
    """Who makes a device, its name, and its data sheet."""

    vendor: str
    device: str
    sheet: str


FLAGPERF_FILE = "accelerator_benchmarks/flagperf_training.csv"
FLAGPERF_ORIGIN = Origin(
    "flagperf",
    "FlagPerf: training throughput of Ascend and Iluvatar accelerators, and of NVIDIA GPUs in the same case",
    "FlagOpen/FlagPerf training/<vendor>/<case>/README.md, commit 1b5a030398ab719e406f77877eb34c9599b17fd2; cases of "
    "the same layout and batch size on two vendors' devices; a number format that one page leaves out does not part "
    "them. Each vendor measured its own. Throughput without data loading, of all devices together.",
    "Apache-2.0",
    one_party=False,
)
FLAGPERF_STACK = "The vendor's, as its FlagPerf page states"
FLAGPERF_VENDORS = {
    "ascend": "Huawei Ascend",
    "cambricon": "Cambricon",
    "dcu": "Hygon",
    "iluvatar": "Iluvatar CoreX",
    "kunlunxin": "Kunlunxin",
    "metax": "MetaX",
    "mthreads": "Moore Threads",
}
FLAGPERF_DEVICES = {
    "A100": Maker("nvidia", "A100", "a100-sxm-40gb"),
    "A800": Maker("nvidia", "A800", "a800-sxm-80gb"),
    "H100": Maker("nvidia", "H100", "h100-sxm-80gb"),
    "BI-V100": Maker("iluvatar", "BI-V100", "bi-v100"),
    "BI150": Maker("iluvatar", "BI-150", "bi-150"),
    "Bi-150": Maker("iluvatar", "BI-150", "bi-150"),
    "Atlas 800T A2": Maker("ascend", "Atlas 800T A2", "ascend-910b"),
}
"""Device by the head of a configuration's name."""
FLAGPERF_SPEEDS = ("p_whole", "p_train", "p_core", "token/p/s", "性能(samples/s)", "性能（ntokens/s）")
FLAGPERF_COMPARED = ("p_core", "token/p/s")
"""Speeds that tell most of the device; the others of a run add evaluation or data loading."""
FLAGPERF_UTILISATION = "MFU"
FLAGPERF_LAYOUT = re.compile(r"[（(](?P<servers>\d+)x(?P<cards>\d+)[）)](?:（(?P<phase>\w+)）)?$")
FLAGPERF_BATCH = re.compile(r"\b(?:bs|mpe)=(\d+)")
FLAGPERF_PRECISIONS = {"fp32": ("fp32",), "bf16": ("bf16",)}
FLAGPERF_DEFAULT_PRECISIONS = ("bf16", "fp16")
"""What is assumed where no page states a number format: language models of 2023 are not trained in binary32."""


@dataclass(frozen=True)
class Speed:
    """A cell with a speed, taken apart."""

    maker: Maker
    case: str
    devices: int
    phase: str
    batch: str
    precision: str
    throughput: float

    @property
    def task(self) -> tuple[str, str, str]:
        """What has to be the same for two speeds to be compared, but for layout and precision."""
        return self.case, self.phase, self.batch


def flagperf(data: Path) -> tuple[Table, ...]:
    """The table of what can be compared.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    speeds = list(_comparable(_speeds(rows(data / FLAGPERF_FILE))))
    precisions: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for speed in speeds:
        precisions[speed.task].add(speed.precision)
    stated = {key: "".join(sorted(names)) for key, names in precisions.items()}
    return (
        assemble(
            FLAGPERF_ORIGIN,
            [Device(maker.device, maker.sheet, FLAGPERF_STACK) for maker in FLAGPERF_DEVICES.values()],
            [
                Task(
                    _flagperf_task(key),
                    FLAGPERF_PRECISIONS.get(precision, FLAGPERF_DEFAULT_PRECISIONS),
                    key[0].split("-")[0],
                    ", ".join(filter(None, key)),
                )
                for key, precision in stated.items()
            ],
            [Cell(speed.maker.device, _flagperf_task(speed.task), speed.throughput, speed.devices) for speed in speeds],
        ),
    )


def count_flagperf_gaps(data: Path) -> tuple[Gap, ...]:
    """What the pages of each Chinese vendor tell.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    cells: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows(data / FLAGPERF_FILE):
        cells[row["vendor"]].append(row)
    compared = Counter(speed.maker.vendor for speed in _comparable(_speeds(rows(data / FLAGPERF_FILE))))
    return tuple(_gap(vendor, cells[vendor], compared[vendor]) for vendor in FLAGPERF_VENDORS)


def _gap(vendor: str, cells: list[dict[str, str]], compared: int) -> Gap:
    own = [row for row in cells if (maker := _maker(row["config"])) is None or maker.vendor == vendor]
    cases_with_speed = {row["case"] for row in own if row["metric"] in FLAGPERF_SPEEDS}
    return Gap(
        vendor=vendor,
        name=FLAGPERF_VENDORS[vendor],
        cases=len({row["case"] for row in cells}),
        cells=len(cells),
        others=len(cells) - len(own),
        speeds=sum(row["metric"] in FLAGPERF_SPEEDS for row in own),
        utilisations=sum(row["metric"] == FLAGPERF_UTILISATION for row in own),
        cases_with_speed=len(cases_with_speed),
        cases_with_utilisation_only=len(
            {row["case"] for row in own if row["metric"] == FLAGPERF_UTILISATION} - cases_with_speed
        ),
        compared=compared,
    )


def _maker(config: str) -> Maker | None:
    return next((maker for head, maker in FLAGPERF_DEVICES.items() if config.startswith(head)), None)


def _speeds(cells: Iterable[Mapping[str, str]]) -> Iterator[Speed]:
    """Speeds of a vendor's own devices; a page's figures of another vendor's device are left out."""
    for row in cells:
        maker, layout = _maker(row["config"]), FLAGPERF_LAYOUT.search(row["config"])
        if row["metric"] not in FLAGPERF_COMPARED or maker is None or layout is None or maker.vendor != row["vendor"]:
            continue
        count = int(layout["servers"]) * int(layout["cards"])
        batch = FLAGPERF_BATCH.search(row["hyperparameters"])
        yield Speed(
            maker,
            row["case"],
            count,
            layout["phase"] or "",
            batch[0] if batch else "",
            row["precision"],
            float(row["value"]) * (count if row["metric"] == "token/p/s" else 1),
        )


def _comparable(speeds: Iterable[Speed]) -> Iterator[Speed]:
    """Speeds for which another vendor's device has one of the same task, layout and number format."""
    known = list(speeds)
    for speed in known:
        if any(
            other.maker.vendor != speed.maker.vendor
            and other.task == speed.task
            and other.devices == speed.devices
            and (other.precision == speed.precision or not (other.precision and speed.precision))
            for other in known
        ):
            yield speed


def _flagperf_task(task: tuple[str, str, str]) -> str:
    return ".".join(filter(None, task))


LAMBDA_FILE = "accelerator_benchmarks/lambda_training_throughput.csv"
LAMBDA_SERIES = "v1"
LAMBDA_MARK = "transformerxl"
"""Hosts with rows of these workloads were measured with the earlier version of the benchmark."""
LAMBDA_MAX_SPEEDUP = 1.25
"""Several devices that do so many times what each alone would are not believed: cache and batch explain less."""
LAMBDA_ORIGIN = Origin(
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
LAMBDA_STACK = "NVIDIA's PyTorch container, 22.09 by the origin's README; the version by host is not stated"
LAMBDA_SHEETS = {
    "A10": "a10",
    "A100-PCIe-40GB": "a100-pcie-40gb",
    "A100-SXM-80GB": "a100-sxm-80gb",
    "H100-PCIe-80GB": "h100-pcie-80gb",
    "H100-SXM-80GB": "h100-sxm-80gb",
    "Quadro RTX 8000": "quadro-rtx-8000",
    "RTX 4090": "rtx-4090",
    "RTX A6000": "rtx-a6000",
}
LAMBDA_PRECISIONS = {"fp16": ("fp16",), "fp32": ("tf32", "fp32")}
LAMBDA_FAMILIES = {
    "bert_base_squad": "bert",
    "bert_large_squad": "bert",
    "resnet50": "resnet",
    "tacotron2": "tacotron",
    "transformerxlbase": "transformerxl",
    "transformerxllarge": "transformerxl",
}


def lambda_labs(data: Path) -> tuple[Table, ...]:
    """The table.

    Raises:
        FileNotFoundError: The data folder does not hold the original.
    """
    measured = [
        row for row in rows(data / LAMBDA_FILE) if row["series"] == LAMBDA_SERIES and float(row["throughput"] or 0) > 0
    ]
    earlier = {row["name_gpu"] for row in measured if row["workload"].startswith(LAMBDA_MARK)}
    hosts: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    tasks = {}
    for row in measured:
        if row["name_gpu"] in earlier:
            task = Task(
                f"{row['workload']}.{row['precision']}",
                LAMBDA_PRECISIONS[row["precision"]],
                LAMBDA_FAMILIES.get(row["workload"], row["workload"]),
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
            LAMBDA_ORIGIN,
            [Device(name, sheet, LAMBDA_STACK) for name, sheet in LAMBDA_SHEETS.items()],
            tasks.values(),
            [Cell(device, task, median(values), count) for (device, task, count), values in believed.items() if values],
        ),
    )


def _most(hosts: Mapping[tuple[str, str, int], list[float]], device: str, task: str, count: int) -> float:
    """Throughput above which a row is not believed."""
    return inf if count == 1 else LAMBDA_MAX_SPEEDUP * count * median(hosts[device, task, 1])


SHIPPED = (gavel, neusight, mlperf, zeus, flagperf)
"""Origins whose licence lets the tables come with the suite."""


def shipped_files(data: Path) -> Mapping[str, str]:
    """What is shipped, as file names in the package and their text.

    Raises:
        FileNotFoundError: The data folder lacks one of the originals.
    """
    all_tables: list[Table] = [table for tables in SHIPPED for table in tables(data)]
    counted = ",\n".join(json.dumps(asdict(gap), ensure_ascii=False) for gap in count_flagperf_gaps(data))
    return {f"tables/{table.name}.json": table.to_json() for table in all_tables} | {
        "flagperf_gaps.json": f"[\n{counted}\n]\n"
    }
