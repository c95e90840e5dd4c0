"""Parameters of the topology, fitted to public measurements: what ships of them, and how each came about.

``python -m kuayu_conformance.testbed.scheduling.topology.parameters DATA_DIR`` fits them and writes ``fitted.json``.

- *Ratios*: throughput between cloud regions that iperf3 sent on 2022-01-29 over that on 2022-01-24, all pairs of
  regions, machine classes and tiers measured on both days (skyplane-project/skyplane [4f0938f, 55243e1], Apache-2.0).
- *Weights*: a task's time on a device, over that on the A100, is a sum of the inverse ratios of peak and of memory
  bandwidth, and a constant; non-negative least squares of the relative error over eight GPUs (fp16, one GPU;
  lambdal/deeplearning-benchmark [aa5addb]), then the mean over the tasks of a profile.
- *Egress*: list prices (skyplane ``broadcast/profiles/cost.csv``): the 5th percentile within a provider between regions
  of 10 to 50 ms, and the 5th percentile between providers.

Ratios of what was *received* lie closer together: 0.87 to 1.89 from the 5th to the 95th percentile, 1.00 at the median.
What was sent is the figure that the protocol of the testbed names; the assumption ``depth`` of 0.5 is about the other.
"""

import csv
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

FILE = "fitted.json"
LEVELS = (0.01, *(step / 20 for step in range(1, 20)), 0.99)
"""Shares below the quantiles that are kept; what lies beyond is single measurements."""
PEAKS = {
    "A10": (125.0, 600.0),
    "A100-PCIe-40GB": (312.0, 1555.0),
    "A100-SXM-80GB": (312.0, 2039.0),
    "H100-PCIe-80GB": (756.0, 2000.0),
    "H100-SXM-80GB": (989.0, 3350.0),
    "Quadro RTX 8000": (130.5, 672.0),
    "RTX 4090": (165.2, 1008.0),
    "RTX A6000": (154.8, 768.0),
}
"""TFLOP/s in fp16 and GB/s from memory, by device of the benchmark: data sheets of the vendor."""
TASKS = {
    "fine-tuning": ("bert_base_squad", "bert_large_squad"),
    "training": ("resnet50", "ssd", "gnmt", "tacotron2", "transformerxlbase", "transformerxllarge", "waveglow"),
}
"""Tasks of the benchmark by profile; NCF is left out, it is bound by the host."""
_BASE = "A100-SXM-80GB"
_NEAR = (10.0, 50.0)  # milliseconds
_STIFF = 100.0


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters.

    Attributes:
        source: What they were fitted to, and with which command.
        levels: Shares of pairs of regions below each of ``ratios``, rising from the first to the last.
        ratios: Throughput of a pair over that of the same pair five days before.
        weights: Shares of time (compute, memory, rest) by task profile.
        errors: Mean relative error of the law with these weights, by task profile.
        egress: US dollars for a gigabyte: to a near region of the same provider, and to another provider.
    """

    source: Mapping[str, str]
    levels: tuple[float, ...]
    ratios: tuple[float, ...]
    weights: Mapping[str, tuple[float, float, float]]
    errors: Mapping[str, float]
    egress: tuple[float, float]


@cache
def parameters() -> Parameters:
    """The parameters that ship with the suite."""
    return read(json.loads(files(__package__).joinpath(FILE).read_text("utf-8")))


def read(written: Mapping[str, Any]) -> Parameters:
    """Parameters as they are written in the file.

    Raises:
        KeyError: Something is missing.
    """
    return Parameters(
        written["source"],
        tuple(written["levels"]),
        tuple(written["ratios"]),
        {name: (shares[0], shares[1], shares[2]) for name, shares in written["weights"].items()},
        written["errors"],
        (written["egress"][0], written["egress"][1]),
    )


def fit(data: Path) -> dict[str, Any]:
    """The parameters as they are written.

    Raises:
        FileNotFoundError: ``data`` does not hold the public originals.
    """
    ratios = five_days(data)
    shares = {profile: _mean_shares(data, tasks) for profile, tasks in TASKS.items()}
    return {
        "source": {
            "command": "python -m kuayu_conformance.testbed.scheduling.topology.parameters DATA_DIR",
            "ratios": f"{len(ratios)} pairs of data/wan/throughput.csv.gz, sent, 2022-01-29 over 2022-01-24 (skyplane)",
            "weights": "data/accelerator_benchmarks/lambda_training_throughput.csv, series v1, fp16, one GPU",
            "egress": "data/wan/egress_price.csv with data/wan/rtt.csv.gz (skyplane)",
        },
        "levels": list(LEVELS),
        "ratios": [round(float(value), 4) for value in np.quantile(ratios, LEVELS)],
        "weights": {profile: _rounded(weights) for profile, (weights, _) in shares.items()},
        "errors": {profile: round(error, 3) for profile, (_, error) in shares.items()},
        "egress": _egress(data),
    }


def five_days(data: Path, figure: str = "sent_gbps") -> list[float]:
    """Ratios of what the same pair sent, or received, on 2022-01-29 and five days before."""
    days: dict[str, dict[tuple[str, ...], float]] = {"2022-01-24": {}, "2022-01-29": {}}
    names = ("src_region", "src_tier", "src_instance_class", "dst_region", "dst_tier", "dst_instance_class")
    for row in _rows(data / "wan" / "throughput.csv.gz"):
        if row["measured"] in days and float(row[figure] or 0) > 0:
            days[row["measured"]].setdefault(tuple(row[name] for name in names), float(row[figure]))
    before, after = days.values()
    return [after[pair] / before[pair] for pair in sorted(before.keys() & after.keys())]


def _mean_shares(data: Path, tasks: tuple[str, ...]) -> tuple[np.ndarray[Any, np.dtype[np.float64]], float]:
    """Mean weights over tasks, and the mean relative error of the times that they give."""
    measured: dict[str, dict[str, list[float]]] = {task: defaultdict(list) for task in tasks}
    for row in _rows(data / "accelerator_benchmarks" / "lambda_training_throughput.csv"):
        alone = row["series"] == "v1" and row["precision"] == "fp16" and float(row["num_gpu"]) == 1
        if alone and row["workload"] in measured and row["gpu_model"] in PEAKS and float(row["throughput"] or 0) > 0:
            measured[row["workload"]][row["gpu_model"]].append(float(row["throughput"]))
    task_shares, errors = [], []
    for by_device in measured.values():
        speeds = {name: float(np.median(values)) for name, values in by_device.items()}
        task_shares.append(_task_shares(speeds))
    mean = np.mean(task_shares, axis=0)
    for by_device in measured.values():
        speeds = {name: float(np.median(values)) for name, values in by_device.items()}
        terms, times = _equations(speeds)
        errors += np.abs(terms @ mean / times - 1).tolist()
    return mean, float(np.mean(errors))


def _rounded(weights: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    """Weights of three digits that sum to one."""
    compute, memory = (round(float(share), 3) for share in weights[:2])
    return [compute, memory, round(1 - compute - memory, 3)]


def _equations(speeds: Mapping[str, float]) -> tuple[Any, Any]:
    others = sorted(set(speeds) - {_BASE})
    peak, bandwidth = PEAKS[_BASE]
    terms = np.array([[peak / PEAKS[name][0], bandwidth / PEAKS[name][1], 1.0] for name in others])
    return terms, np.array([speeds[_BASE] / speeds[name] for name in others])


def _task_shares(speeds: Mapping[str, float]) -> Any:
    """Weights of a task that sum to one; the sum is an equation of its own, heavier than the others."""
    from scipy.optimize import nnls  # takes long to import, and nothing that judges fits anything

    terms, times = _equations(speeds)
    left = np.vstack([terms / times[:, None], np.full(3, _STIFF)])
    solution, _ = nnls(left, np.append(np.ones(len(times)), _STIFF))
    return solution / solution.sum()


def _egress(data: Path) -> list[float]:
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in _rows(data / "wan" / "rtt.csv.gz"):
        if row["avg_rtt_ms"]:
            times[row["src_region"], row["dst_region"]].append(float(row["avg_rtt_ms"]))
    near, between = [], []
    for row in _rows(data / "wan" / "egress_price.csv"):
        pair = (row["src_region"], row["dst_region"])
        price = float(row["egress_usd_per_gb"])
        if pair[0].split(":")[0] != pair[1].split(":")[0]:
            between.append(price)
        elif pair in times and _NEAR[0] <= np.median(times[pair]) < _NEAR[1]:
            near.append(price)
    return [round(float(np.quantile(prices, 0.05)), 4) for prices in (near, between)]


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def main(arguments: list[str]) -> int:
    """Fit, write, and say what was found."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kuayu_conformance.testbed.scheduling.topology.parameters DATA_DIR\n")
        return 2
    text = json.dumps(fit(Path(arguments[0])), indent=1, ensure_ascii=False) + "\n"
    (Path(__file__).parent / FILE).write_text(text, "utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
