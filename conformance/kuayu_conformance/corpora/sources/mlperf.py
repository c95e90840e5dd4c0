"""MLPerf Training: what nodes of eight accelerators did in the closed division, rounds v3.0 and v3.1.

"MLPerf" is a trademark of MLCommons. The tables are derived from published result logs; they are no results of MLPerf.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import median

from kuayu_conformance.corpora.assembly import Cell, Device, Origin, Task, assemble, rows
from kuayu_conformance.corpora.table import Table

RUNS = "mlperf_training/runs.csv.gz"
SYSTEMS = "mlperf_training/systems.csv"
SCORES = "mlperf_training/scores.csv"
ROUNDS = ("v3.0", "v3.1")
NODE = "8"
LEAST_DEVICES = 4
"""A task is taken if it was measured on so many kinds of accelerators."""
TRADEMARK = (
    "MLPerf is a trademark of MLCommons; these figures are derived from published logs and are no results of MLPerf."
)
COMMITS = (
    "mlcommons/training_results_v3.0 commit 63e326c400f5d8bb8c6070a9ab08332d4931152e and training_results_v3.1 commit "
    "d06288b2bd675a9d88e0e6181f5bb5626b71ec19"
)
SHEETS = {
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
PRECISIONS = ("fp16", "bf16")
"""Half precision with binary32 accumulation, as all of the submissions mix. BERT on H100 also uses fp8 in places, which
is the submitter's choice and is not counted."""


def tables(data: Path) -> tuple[Table, ...]:
    """Throughput that submitters logged, and speed to the quality target.

    Raises:
        FileNotFoundError: The data folder does not hold the originals.
    """
    return _throughput(data), _time(data)


def submitted(data: Path, rounds: Collection[str] = ROUNDS) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Samples a second of eight accelerators in one node: by family and benchmark, then by submitter.

    It is the median over a submitter's successful runs in the rounds; a run that was carried over to the later round
    counts in both.

    Raises:
        FileNotFoundError: The data folder does not hold the originals.
    """
    systems = {(row["round"], row["submitter_dir"], row["system"]): row for row in rows(data / SYSTEMS)}
    logged: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(data / RUNS):
        system = systems.get((row["round"], row["submitter_dir"], row["system"]))
        if (
            system is None
            or row["round"] not in rounds
            or not _of_a_node(system)
            or system["accelerator_family"] not in SHEETS
        ):
            continue
        if row["run_status"] == "success" and float(row["logged_throughput_median"] or 0) > 0:
            key = system["accelerator_family"], row["benchmark"]
            logged[key][row["submitter_dir"]].append(float(row["logged_throughput_median"]))
    return {
        key: {submitter: median(values) for submitter, values in by_submitter.items()}
        for key, by_submitter in logged.items()
    }


def spread(results: Mapping[tuple[str, str], Mapping[str, float]]) -> tuple[float, float]:
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


def drift(data: Path) -> tuple[float, float]:
    """How much more a submitter logged in the later round than in the earlier one: median, and largest either way.

    Only what was run again counts: the same median in both rounds means that the earlier runs were carried over.
    """
    earlier, later = (
        {
            (*key, submitter): value
            for key, values in submitted(data, (one,)).items()
            for submitter, value in values.items()
        }
        for one in ROUNDS
    )
    changes = [later[key] / earlier[key] - 1 for key in earlier.keys() & later.keys() if later[key] != earlier[key]]
    return median(changes), max(changes, key=abs)


def _of_a_node(system: Mapping[str, str]) -> bool:
    return (
        system["round"] in ROUNDS
        and system["division"] == "closed"
        and system["accelerators"] == NODE
        and system["nodes"] == "1"
    )


def _throughput(data: Path) -> Table:
    """Throughput of each accelerator in a node of eight.

    It holds the exchange between them, so that the devices tell the bandwidth of it. It counts as of one party: the
    benchmark fixes model, data, quality target and what is logged, and on the same accelerator submitters and rounds
    mostly agree within a per cent. The source tells how far they do, exceptions included.
    """
    results = submitted(data)
    kinds: dict[str, set[str]] = defaultdict(set)
    for device, task in results:
        kinds[task].add(device)
    chosen = {key: values for key, values in results.items() if len(kinds[key[1]]) >= LEAST_DEVICES}
    submitters = sorted({submitter for values in chosen.values() for submitter in values})
    typical, worst = spread(chosen)
    typical_change, largest_change = drift(data)
    return assemble(
        Origin(
            "mlperf",
            "MLPerf Training: samples per second of one accelerator in a node of eight, an eighth of what the eight "
            "logged together",
            f"MLPerf Training v3.0 and v3.1, closed division; {COMMITS}; submitters {', '.join(submitters)}. Median "
            f"of logged throughput over a submitter's successful runs, then over submitters; tasks on {LEAST_DEVICES} "
            f"kinds of accelerators or more. Where several submitted, one differs from the median by {typical:.1%} in "
            f"the median and by {worst:.0%} at most; what a submitter ran again for v3.1 differs from v3.0 by "
            f"{typical_change:+.1%} in the median and by {largest_change:+.0%} at most. {TRADEMARK}",
            "Apache-2.0",
            one_party=True,
        ),
        [Device(name, sheet, "Submissions to MLPerf Training v3.0 and v3.1") for name, sheet in SHEETS.items()],
        [Task(task, PRECISIONS, task.split("_")[0], task) for _, task in chosen],
        [Cell(*key, median(values.values()) / int(NODE)) for key, values in chosen.items()],
        scale_out=True,
    )


def _time(data: Path) -> Table:
    """Speed to the quality target of a node of eight; devices by round, since software is another one in each."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    submitters = set()
    for row in rows(data / SCORES):
        known = row["accelerator_family"] in SHEETS
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
            for name, sheet in SHEETS.items()
            for version in ROUNDS
        ],
        [Task(task, PRECISIONS, task.split("_")[0], task) for _, task in scores],
        [Cell(*key, 1 / (int(NODE) * median(minutes))) for key, minutes in scores.items()],
        alike=[[f"{name}.{version}" for version in ROUNDS] for name in SHEETS],
        scale_out=True,
    )
