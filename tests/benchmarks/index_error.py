"""How far compute indices are off on measured throughputs, by table, split and number of probes.

    python tests/benchmarks/index_error.py [--data FOLDER] [--table NAME …] [--probes N …] [--random N] [--json FILE]

Two splits. Device out: all measurements of one device, and of those that are the same silicon, are taken away but for
the probes that the algorithm plans itself. Family out: the tasks of one family of models are measured on the reference
and on so many devices for each task, again as planned. The algorithm is called directly. Judged are pairs that were
neither measured nor probed, abstentions included. With --random, sets of probes are drawn as well, to tell the part of
the plan from that of the model.
"""

import argparse
import json
import os
import random
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kuayu.index import compute_indices, plan_probes
from kuayu_conformance import corpora
from kuayu_schemas.models import IndexRequest, ProbePlanRequest

Cell = tuple[str, str]

SEED = 20261121
TOLERANCE = 0.1
"""Error up to which a pair counts as right in the column `in 10 %`."""


@dataclass(frozen=True)
class Judged:
    """A pair that was neither measured nor probed."""

    split: str
    probes: int
    planned: bool
    device: str
    task: str
    truth: float
    value: float
    low: float
    high: float
    abstained: bool

    @property
    def error(self) -> float:
        """Relative error."""
        return abs(self.value / self.truth - 1)


@dataclass(frozen=True)
class Trial:
    """A table without something, and what is asked of it then.

    Attributes:
        split: Name of the split.
        corpus: What is left.
        reference: Device whose index is one.
        plans: Cells that may be probed, one list for each plan.
        truth: Indices by measurement.
        taken: Measurements of single devices that were taken away, by cell.
    """

    split: str
    corpus: dict[str, Any]
    reference: str
    plans: list[list[Cell]]
    truth: dict[Cell, float]
    taken: dict[Cell, list[dict[str, Any]]]


def judge(table: corpora.Table, numbers: list[int], draws: int) -> Iterator[Judged]:
    """Judge one table in both splits."""
    chance = random.Random(SEED)
    for trial in [*without_devices(table), *without_families(table)]:
        longest = max(numbers)
        plans = [planned(trial, cells, longest) for cells in trial.plans]
        for number in numbers:
            # A plan that leaves nothing to judge says nothing.
            if any(len(cells) <= number + 1 for cells in trial.plans):
                continue
            yield from measure(trial, number, [plan[:number] for plan in plans], planned=True)
            for _ in range(draws if number else 0):
                drawn = [chance.sample(cells, number) for cells in trial.plans]
                yield from measure(trial, number, drawn, planned=False)


def without_devices(table: corpora.Table) -> Iterator[Trial]:
    """One device out at a time."""
    single = singles(table.corpus)
    for device in table.device_names:
        alike = next((group for group in table.alike if device in group), frozenset({device}))
        reference = most_measured(single, alike)
        truth = truths(single, reference, [cell for cell in single if cell[0] == device])
        known = {task for other, task in single if other not in alike}
        cells = sorted(cell for cell in truth if cell[1] in known)
        if len(cells) > 1:
            kept = [m for m in table.corpus["measurements"] if m["device"] not in alike]
            yield Trial(
                "device", {**table.corpus, "measurements": kept}, reference, [cells], truth, taken(single, cells)
            )


def without_families(table: corpora.Table) -> Iterator[Trial]:
    """One family of models out at a time."""
    single = singles(table.corpus)
    reference = most_measured(single, frozenset())
    families: dict[str, list[str]] = {}
    for task in table.corpus["tasks"]:
        families.setdefault(task.get("family", task["id"]), []).append(task["id"])
    for family in families.values():
        cells = [[cell for cell in sorted(single) if cell[1] == task and cell[0] != reference] for task in family]
        plans = [
            plan for task, plan in zip(family, cells, strict=True) if len(plan) > 1 and (reference, task) in single
        ]
        if not plans or len(families) == 1:
            continue
        kept = [m for m in table.corpus["measurements"] if m["task"] not in family or m["device"] == reference]
        everything = [cell for plan in plans for cell in plan]
        truth = truths(single, reference, everything)
        yield Trial(
            "family", {**table.corpus, "measurements": kept}, reference, plans, truth, taken(single, everything)
        )


def singles(corpus: dict[str, Any]) -> dict[Cell, list[dict[str, Any]]]:
    """Measurements of single devices, by cell."""
    found: dict[Cell, list[dict[str, Any]]] = {}
    for measurement in corpus["measurements"]:
        if measurement.get("devices", 1) == 1:
            found.setdefault((measurement["device"], measurement["task"]), []).append(measurement)
    return found


def taken(single: dict[Cell, list[dict[str, Any]]], cells: Iterable[Cell]) -> dict[Cell, list[dict[str, Any]]]:
    """Measurements of these cells."""
    return {cell: single[cell] for cell in cells}


def most_measured(single: dict[Cell, list[dict[str, Any]]], without: frozenset[str]) -> str:
    """Device that most tasks were measured on."""
    devices = sorted({device for device, _ in single} - without)
    return max(devices, key=lambda device: sum(cell[0] == device for cell in single))


def truths(single: dict[Cell, list[dict[str, Any]]], reference: str, cells: Iterable[Cell]) -> dict[Cell, float]:
    """Ratios of median throughputs where the reference was measured too."""

    def median(cell: Cell) -> float:
        return statistics.median(measurement["throughput"] for measurement in single[cell])

    return {cell: median(cell) / median((reference, cell[1])) for cell in cells if (reference, cell[1]) in single}


def planned(trial: Trial, cells: list[Cell], number: int) -> list[Cell]:
    """The plan that the algorithm makes."""
    named = [{"device": device, "task": task} for device, task in cells]
    body = {
        "revision": REVISION,
        "corpus": trial.corpus,
        "candidates": named,
        "targets": named,
        "probes": max(number, 1),
    }
    return [(probe.device, probe.task) for probe in plan_probes(ProbePlanRequest.model_validate(body)).probes]


def measure(trial: Trial, number: int, plans: list[list[Cell]], *, planned: bool) -> Iterator[Judged]:
    """Ask for the indices of what was neither measured nor probed."""
    probes = {cell for plan in plans for cell in plan}
    added = [measurement for cell in sorted(probes) for measurement in trial.taken[cell]]
    corpus = {**trial.corpus, "measurements": trial.corpus["measurements"] + added}
    left = {cell for plan in trial.plans for cell in plan} - probes
    devices, tasks = (sorted({cell[side] for cell in left}) for side in (0, 1))
    body = {"revision": REVISION, "corpus": corpus, "reference": trial.reference, "devices": devices, "tasks": tasks}
    for index in compute_indices(IndexRequest.model_validate(body)).indices:
        cell = (index.device, index.task)
        if cell in left:
            yield Judged(
                trial.split,
                number,
                planned,
                *cell,
                trial.truth[cell],
                index.value,
                index.low,
                index.high,
                index.abstained,
            )


REVISION = {"epoch": "benchmark", "number": 1}


def show(name: str, judged: list[Judged], by_device: bool) -> list[dict[str, Any]]:
    """Print the figures of a table, and return them."""
    rows: list[dict[str, Any]] = []
    for split, chosen in (("device", True), ("device", False), ("family", True), ("family", False)):
        for number in sorted({pair.probes for pair in judged}):
            pairs = [p for p in judged if (p.split, p.planned, p.probes) == (split, chosen, number)]
            if pairs:
                rows.append({"table": name, "split": split, "planned": chosen, "probes": number, **figures(pairs)})
                shown = "  ".join(f"{value:.3f}" for value in list(rows[-1].values())[4:9])
                print(f"{name:12} {split:7} {'plan' if chosen else 'draw':5} {number:2}   {shown}  {len(pairs):6}")
                if by_device and split == "device" and chosen:
                    print("   " + ", ".join(f"{d} {e:.3f}" for d, e in per_device(pairs).items()))
    return rows


def figures(pairs: list[Judged]) -> dict[str, float]:
    """Mean, median and 90th percentile of the error, coverage, abstentions."""
    errors = sorted(pair.error for pair in pairs)
    return {
        "mape": statistics.fmean(errors),
        "median": statistics.median(errors),
        "p90": errors[min(len(errors) - 1, int(0.9 * len(errors)))],
        "coverage": statistics.fmean(pair.low <= pair.truth <= pair.high for pair in pairs),
        "abstained": statistics.fmean(pair.abstained for pair in pairs),
        "within": statistics.fmean(error <= TOLERANCE for error in errors),
        "pairs": len(pairs),
    }


def per_device(pairs: list[Judged]) -> dict[str, float]:
    """Mean error of each device."""
    devices = sorted({pair.device for pair in pairs})
    return {device: statistics.fmean(pair.error for pair in pairs if pair.device == device) for device in devices}


def main() -> None:
    """Run the experiment as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("KUAYU_DATA")
    parser.add_argument("--data", type=Path, default=Path(data) if data else None, help="folder of public originals")
    parser.add_argument("--table", action="append", help="only this one; may be given several times")
    parser.add_argument("--probes", type=int, nargs="+", default=[0, 1, 2, 3, 4, 6])
    parser.add_argument("--random", type=int, default=0, help="sets of probes to draw beside each plan")
    parser.add_argument("--by-device", action="store_true", help="print the error of each device")
    parser.add_argument("--json", type=Path, help="write figures and pairs there")
    asked = parser.parse_args()
    print(f"{'table':12} {'split':7} {'by':5} {'k':>2}   mape   median p90    cover  abstain  pairs")
    rows: list[dict[str, Any]] = []
    pairs: dict[str, list[Judged]] = {}
    for table in corpora.available(asked.data):
        if asked.table and table.name not in asked.table:
            continue
        pairs[table.name] = list(judge(table, sorted(asked.probes), asked.random))
        rows += show(table.name, pairs[table.name], asked.by_device)
    if asked.json:
        kept = {name: [asdict(pair) for pair in found] for name, found in pairs.items()}
        asked.json.write_text(json.dumps({"figures": rows, "pairs": kept}, indent=1))


if __name__ == "__main__":
    main()
