"""How a choice about the compute index is made and judged: ``python -m kuayu_training.index.protocol [--outer FILE]``.

1. Four probes, planned by the service for a device or task that is left out, as the suite has it (IDX-001). Three
   splits leave out: a *device* with all that is the same silicon (unseen devices), a *family* of models, and a whole
   *generation* of devices, of which one has its probes. *All tables* is devices and families.
   A generation of one device in its table is that device.
2. Inner loop: of all tables but one, and of all generations but one, the candidates below are compared by their mean
   error over tables and splits; the best one answers for the table or generation that was left out. What is printed as
   *nested* is these errors. A generation that is left out may still stand in the corpora of other devices. All
   candidates with a process get the probes that the shipped one plans, since a plan costs more than an answer.
3. Outer loop: tables by which no constant was chosen (``kuayu_training.index.strangers``). It is looked at once a
   release, with ``--outer``, which adds date, command and figures to a file that is kept
   (``docs/results/index/outer.json``). Without ``--outer`` the last look of that file is printed beside the inner loop.
   What was looked at is known and belongs to the inner loop of the next release.
4. All tables of the inner loop are known to the developers.

Figures: mean absolute percentage error over pairs; share of pairs in their interval of 90 %; share abstained from at a
tolerance of 0.4. *Mean alone*: the harmonic mean without the process, as in 1.0.0 of the method. *One scalar*: the mean
ratio over the probes (``kuayu_conformance.holdout``), on the pairs that have one. Nothing is written but FILE.
"""

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table as Printed

from kuayu.index import compute_indices, plan_probes
from kuayu.index.prediction import KERNEL, Kernel
from kuayu_conformance.corpora import Table, available
from kuayu_conformance.holdout import LEAST_OTHERS, Cell, Fold, Simple, folds, measured_alone
from kuayu_schemas.models import IndexRequest, ProbePlanRequest
from kuayu_training.index.strangers import strangers

SEED, PROBES, TOLERANCE = 20261127, 4, 0.4
LOG = Path("docs/results/index/outer.json")
REVISION = {"epoch": "protocol", "number": 0}
SHIPPED, ALONE = "as shipped", "mean alone"

CANDIDATES: Mapping[str, Kernel] = {
    ALONE: replace(KERNEL, weight=0.0),
    SHIPPED: KERNEL,
    "light process": replace(KERNEL, weight=0.3),
    "process alone": replace(KERNEL, weight=1.0),
    "no capacity": replace(KERNEL, capacity=0.0),
    "narrow tasks": replace(KERNEL, task_reach=0.08),
    "wide tasks": replace(KERNEL, task_reach=0.2),
    "no families": replace(KERNEL, family=0.0),
    "calm devices": replace(KERNEL, device_task=0.03),
    "steep tasks": replace(KERNEL, task_slope=0.02),
}
"""Constants and forms that are compared."""

GENERATIONS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("Iluvatar", ("BI-",)),
    ("Ascend", ("Atlas",)),
    ("Gaudi 2", ("Gaudi2",)),
    ("CDNA, 2020", ("MI100", "MI210", "MI250")),
    ("Kepler, 2014", ("K80",)),
    ("Pascal, 2016", ("P100", "Tesla-P4")),
    ("Volta, 2017", ("V100",)),
    ("Turing, 2018", ("T4", "Quadro", "RTX-2080")),
    ("Hopper, 2022", ("H100", "H200", "GH200")),
    ("Ada, 2022", ("L40", "RTX-4090")),
    ("Ampere, 2020", ("A100", "A800", "A30", "A40", "A10", "A6000")),
)
"""Generations by parts of the names of their devices; the first that fits counts."""


@dataclass(frozen=True)
class PairOutcome:
    """One pair: where it is from, its generation, relative error, whether its interval holds it, abstention, scalar."""

    table: str
    split: str
    generation: str
    judged: bool
    error: float
    inside: bool
    abstained: bool
    scalar: float | None


def generation_of(device: str) -> str:
    """Generation of a device by its name in a table."""
    return next(name for name, parts in GENERATIONS if any(part in device for part in parts))


def cases(table: Table) -> Iterator[tuple[str, Fold]]:
    """Folds of a table with room for the probes, and the split by which each leaves out."""
    chance = random.Random(SEED)  # noqa: S311 - no secret
    for fold in (*folds(table, chance), *_by_generation(table)):
        if fold.max_probes >= PROBES:
            yield fold.split, fold


def _by_generation(table: Table) -> Iterator[Fold]:
    """One device at a time, all of its generation left out."""
    truth = measured_alone(table.corpus)
    for device in dict.fromkeys(cell.device for cell in truth):
        hidden = {cell.device for cell in truth if generation_of(cell.device) == generation_of(device)}
        others = [cell for cell in truth if cell.device not in hidden]
        counts = Counter(cell.task for cell in others)
        cells = tuple(cell for cell in truth if cell.device == device and counts[cell.task] >= LEAST_OTHERS)
        rows = [row for row in table.corpus["measurements"] if row["device"] not in hidden]
        references = tuple(dict.fromkeys(cell.device for cell in others))
        corpus = {**table.corpus, "measurements": rows}
        yield Fold(table.name, "generation", corpus, cells, truth, references)  # type: ignore[arg-type]


def answers(tables: Iterable[Table], candidates: Mapping[str, Kernel]) -> dict[str, list[PairOutcome]]:
    """What each candidate says of everything that is left out of tables."""
    outcomes: dict[str, list[PairOutcome]] = {name: [] for name in candidates}
    for table in tables:
        for split, fold in cases(table):
            with_process, without = _probes(fold, KERNEL), _probes(fold, CANDIDATES[ALONE])
            for name, kernel in candidates.items():
                outcomes[name] += _answered(table, split, fold, with_process if kernel.weight else without, kernel)
    return outcomes


def _probes(fold: Fold, kernel: Kernel) -> list[Cell]:
    cells = [cell._asdict() for cell in fold.cells]
    body = {"revision": REVISION, "corpus": fold.corpus, "candidates": cells, "targets": cells, "probes": PROBES}
    plan = plan_probes(ProbePlanRequest.model_validate(body), kernel)
    return sorted(Cell(probe.device, probe.task) for probe in plan.probes)


def _answered(table: Table, split: str, fold: Fold, probes: Sequence[Cell], kernel: Kernel) -> Iterator[PairOutcome]:
    corpus = fold.with_probes(probes)
    alone = measured_alone(corpus)
    targets = [cell for cell in fold.cells if cell not in probes]
    chance = random.Random(SEED)  # noqa: S311 - no secret
    for reference, cells in fold.referred(targets, chance):
        request = {
            "revision": REVISION,
            "corpus": corpus,
            "reference": reference,
            "devices": list(dict.fromkeys(cell.device for cell in cells)),
            "tasks": list(dict.fromkeys(cell.task for cell in cells)),
            "tolerance": TOLERANCE,
        }
        report = compute_indices(IndexRequest.model_validate(request), kernel)
        by_cell = {Cell(index.device, index.task): index for index in report.indices}
        for cell in cells:
            index, truth = by_cell[cell], fold.truth[cell] / fold.truth[Cell(reference, cell.task)]
            scalar = Simple.of(corpus, alone, cell, reference).scalar
            yield PairOutcome(
                table.name,
                split,
                generation_of(cell.device),
                table.judged,
                abs(index.value / truth - 1),
                index.low <= truth <= index.high,
                index.abstained,
                None if scalar is None else abs(scalar / truth - 1),
            )


def loss(pairs: Iterable[PairOutcome]) -> float:
    """Mean error over tables and splits, each counting once."""
    groups: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        groups.setdefault((pair.table, pair.split), []).append(pair.error)
    return fmean(fmean(errors) for errors in groups.values())


def nested(
    outcomes: Mapping[str, Sequence[PairOutcome]], unit: Callable[[PairOutcome], str]
) -> tuple[list[PairOutcome], Counter[str]]:
    """Each unit answered by the candidate that is best on the others, and how often each candidate was."""
    chosen: list[PairOutcome] = []
    picked: Counter[str] = Counter()
    for left in dict.fromkeys(map(unit, outcomes[SHIPPED])):
        best = min(outcomes, key=lambda name: loss(pair for pair in outcomes[name] if unit(pair) != left))
        picked[best] += 1
        chosen += [pair for pair in outcomes[best] if unit(pair) == left]
    return chosen, picked


GROUPS: Sequence[tuple[str, Callable[[PairOutcome], bool]]] = (
    ("all tables", lambda pair: pair.split != "generation"),
    ("all tables, judged by the suite", lambda pair: pair.split != "generation" and pair.judged),
    ("unseen devices", lambda pair: pair.split == "device"),
    ("unseen devices, judged by the suite", lambda pair: pair.split == "device" and pair.judged),
    ("unseen generations", lambda pair: pair.split == "generation"),
)


def _belonging(split: str, **fields: str) -> Callable[[PairOutcome], bool]:
    """Whether a pair was left out by a split, and has these values."""
    return lambda pair: pair.split == split and all(getattr(pair, name) == value for name, value in fields.items())


def figures(outcomes: Mapping[str, Sequence[PairOutcome]]) -> list[dict[str, Any]]:
    """Figures by group, table and generation; those of candidates under their names."""
    shipped = outcomes[SHIPPED]
    groups = list(GROUPS)
    for table in dict.fromkeys(pair.table for pair in shipped):
        groups += [(f"{table}, {split}", _belonging(split, table=table)) for split in ("device", "family")]
    for split in ("device", "generation"):
        groups += [(f"{name}: {split} left out", _belonging(split, generation=name)) for name, _ in GENERATIONS]
    rows = []
    for title, belongs in groups:
        row: dict[str, Any] = {"group": title}
        for name, pairs in outcomes.items():
            mine = [pair for pair in pairs if belongs(pair)]
            if mine:
                scalars = [pair.scalar for pair in mine if pair.scalar is not None]
                row[name] = {
                    "pairs": len(mine),
                    "error": round(fmean(pair.error for pair in mine), 4),
                    "inside": round(fmean(pair.inside for pair in mine), 4),
                    "abstained": round(fmean(pair.abstained for pair in mine), 4),
                    "scalar": round(fmean(scalars), 4) if scalars else None,
                }
        if len(row) > 1:
            rows.append(row)
    return rows


def printed(title: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Printed:
    """Figures as a table, in per cent."""
    columns = [f"{name} {what}" for name in names for what in ("error", "in 90 %")]
    shown = Printed("group", "pairs", *columns, "abstained", "one scalar", title=title)
    for row in rows:
        cells = [f"{100 * row[name][what]:.1f}" for name in names for what in ("error", "inside")]
        last = row[SHIPPED]
        scalar = "–" if last["scalar"] is None else f"{100 * last['scalar']:.1f}"
        shown.add_row(row["group"], str(last["pairs"]), *cells, f"{100 * last['abstained']:.1f}", scalar)
    return shown


def main() -> int:
    """Print the inner loop and the last look at the outer one, or look at the outer one; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.index.protocol", description=__doc__)
    folder = os.environ.get("KUAYU_DATA")
    parser.add_argument(
        "--data", type=Path, default=Path(folder) if folder else None, help="folder of public originals"
    )
    parser.add_argument("--json", type=Path, help="file to write the inner figures to")
    parser.add_argument("--outer", type=Path, metavar="FILE", help="look at the outer loop, and add it to this log")
    arguments = parser.parse_args()
    if arguments.outer and arguments.data is None:
        parser.error("--outer needs the folder of public originals: --data, or KUAYU_DATA")
    console = Console(width=170)
    tables = available(arguments.data)
    if arguments.outer:
        console.print(_looked(arguments.data, arguments.outer, console))
        return 0
    outcomes = answers(tables, CANDIDATES)
    losses = {name: round(loss(pairs), 4) for name, pairs in outcomes.items()}
    by_table, picked_tables = nested(outcomes, lambda pair: pair.table)
    by_generation, picked_generations = nested(outcomes, lambda pair: pair.generation)
    shown: dict[str, Sequence[PairOutcome]] = {
        SHIPPED: outcomes[SHIPPED],
        ALONE: outcomes[ALONE],
        "nested": by_table,
        "nested (g)": by_generation,
    }
    rows = figures(shown)
    console.print(printed("Inner loop (known to the developers)", rows, list(shown)))
    console.print("mean error over tables and splits:", losses)
    console.print("chosen without a table:", dict(picked_tables), "without a generation:", dict(picked_generations))
    if arguments.json:
        chosen = {"losses": losses, "chosen": {"tables": picked_tables, "generations": picked_generations}}
        text = json.dumps({"known to the developers": True, "seed": SEED, **chosen, "figures": rows}, indent=1)
        arguments.json.write_text(text + "\n", "utf-8")
    if LOG.is_file():
        last = json.loads(LOG.read_text("utf-8"))[-1]
        console.print(printed(f"Outer loop, as looked at on {last['date']}", last["figures"], [SHIPPED, ALONE]))
    return 0


def _looked(data: Path, log: Path, console: Console) -> str:
    """Answer for the tables of the outer loop by what is shipped, and log it."""
    tables = strangers(data)
    outcomes = answers(tables, {name: CANDIDATES[name] for name in (SHIPPED, ALONE)})
    rows = figures(outcomes)
    console.print(printed("Outer loop (first seen when this ran)", rows, [SHIPPED, ALONE]))
    entry = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": "python -m kuayu_training.index.protocol --outer docs/results/index/outer.json",
        "seed": SEED,
        "tables": [table.name for table in tables],
        "figures": rows,
    }
    entries = json.loads(log.read_text("utf-8")) if log.is_file() else []
    log.write_text(json.dumps([*entries, entry], indent=1) + "\n", "utf-8")
    return f"look {len(entries) + 1} was logged in {log}"


if __name__ == "__main__":
    sys.exit(main())
