"""Which workloads a device should run once: sets of probes compared on measured throughputs.

    python tests/benchmarks/probe_sets.py [--table NAME …] [--most N] [--random N] [--seed N] [--json FILE]

One device at a time is left out of a table, with those that are the same silicon. It gets the measurements of a set of
tasks back, as if it had run them, and the indices of its other tasks are compared with what was measured. Sets are

* drawn at random, what taste would do on average;
* fixed, grown task by task by the mean error over *all* devices: the best that this search finds, told in hindsight;
* nested, grown likewise over the *other* devices: what choosing a fixed set is worth on a device that is new;
* planned, by the service for this device from the corpus alone.

Tables are those that come with the suite and those found under KUAYU_DATA.
"""

import argparse
import json
import os
import random
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from kuayu import index
from kuayu_conformance.corpora import Table, available
from kuayu_conformance.holdout import LEAST_TARGETS, Cell, Fold, device_folds
from kuayu_schemas.models import IndexRequest, ProbePlanRequest

SEED = 20261121
COMMON = 0.75
"""Share of devices that a task has to be measured on to be in a set; on the others that probe is not made. The same
share of devices has to have tasks enough for the largest set; the others are left aside."""

REVISION = {"epoch": "probe-sets", "number": 0}

Tasks = frozenset[str]


class LeftOut:
    """A device that was left out, and how far off its indices are for each set of probes; each is computed once."""

    def __init__(self, fold: Fold) -> None:
        """Keep what is known without the device."""
        self.fold = fold
        self.device = fold.cells[0].device
        self.tasks = frozenset(cell.task for cell in fold.cells)
        self._errors: dict[Tasks, float] = {}

    def error(self, probes: Iterable[str]) -> float:
        """Mean absolute relative error over the tasks that are not probed; probes that were never made do not count."""
        made = self.tasks & frozenset(probes)
        if made not in self._errors:
            self._errors[made] = self._measured_error(made)
        return self._errors[made]

    def _measured_error(self, made: Tasks) -> float:
        fold = self.fold
        targets = [cell for cell in fold.cells if cell.task not in made]
        corpus = fold.with_probes(Cell(self.device, task) for task in sorted(made))
        errors = []
        for reference, covered in fold.referred(targets, random.Random(SEED)):
            asked = {"devices": [self.device], "tasks": [cell.task for cell in covered]}
            request = {"revision": REVISION, "corpus": corpus, "reference": reference, **asked}
            for told in index.compute_indices(IndexRequest.model_validate(request)).indices:
                measured = fold.truth[Cell(self.device, told.task)] / fold.truth[Cell(reference, told.task)]
                errors.append(abs(told.value / measured - 1))
        return fmean(errors)

    @cached_property
    def plan(self) -> tuple[str, ...]:
        """Tasks that the service would have this device run, the most telling first."""
        cells = [cell._asdict() for cell in self.fold.cells]
        request = {"revision": REVISION, "corpus": self.fold.corpus, "candidates": cells, "targets": cells}
        plan = index.plan_probes(ProbePlanRequest.model_validate({**request, "probes": len(cells)}))
        return tuple(probe.task for probe in plan.probes)


def grown(tasks: Sequence[str], most: int, error: Callable[[Tasks], float]) -> list[Tasks]:
    """Sets of one, two, … tasks, each the one before with the task that lowers the error most."""
    sets = [frozenset[str]()]
    while len(sets) <= most:
        sets.append(min((sets[-1] | {task} for task in tasks if task not in sets[-1]), key=error))
    return sets[1:]


def compare(table: Table, most: int, drawn: int, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Errors of all kinds of sets on one table, by number of probes."""
    devices = [LeftOut(fold) for fold in device_folds(table)]
    counts = sorted(len(each.tasks) for each in devices)
    most = min(most, counts[int((1 - COMMON) * len(counts))] - LEAST_TARGETS)
    devices = [each for each in devices if len(each.tasks) >= most + LEAST_TARGETS]
    tasks = [row["id"] for row in table.corpus["tasks"] if fmean(row["id"] in each.tasks for each in devices) >= COMMON]
    chance = random.Random(seed)
    say(f"{table.name}: {len(devices)} devices, {len(tasks)} tasks that a set may hold")
    fixed = grown(tasks, most, lambda probes: fmean(each.error(probes) for each in devices))
    nested = [
        grown(tasks, most, lambda probes, new=new: fmean(each.error(probes) for each in devices if each is not new))
        for new in devices
    ]
    rows = [{"probes": 0, "none": fmean(each.error(()) for each in devices)}]
    for probes in range(1, most + 1):
        sets = [frozenset(chance.sample(tasks, probes)) for _ in range(drawn)]
        at_random = sorted(fmean(each.error(probes) for each in devices) for probes in sets)
        tenths = quantiles(at_random, n=10, method="inclusive")
        chosen = [sets[probes - 1] for sets in nested]
        rows.append(
            {
                "probes": probes,
                "random": fmean(at_random),
                "random_tenth": tenths[0],
                "random_ninetieth": tenths[-1],
                "fixed": fmean(each.error(fixed[probes - 1]) for each in devices),
                "fixed_tasks": sorted(fixed[probes - 1]),
                "nested": fmean(each.error(tasks) for each, tasks in zip(devices, chosen, strict=True)),
                "nested_tasks": Counter(task for tasks in chosen for task in sorted(tasks)).most_common(),
                "planned": fmean(each.error(each.plan[:probes]) for each in devices),
            }
        )
        say(row_text(rows[-1]))
    return {
        "table": table.name,
        "title": table.title,
        "digest": table.digest,
        "devices": len(devices),
        "tasks": len(tasks),
        "names": {task: table.task_names[task] for task in tasks},
        "rows": rounded(rows),
    }


def row_text(row: dict[str, Any]) -> str:
    """A line for the terminal."""
    figures = "".join(f"{row[kind]:>9.1%}" for kind in ("random", "fixed", "nested", "planned"))
    return f"{row['probes']:>3}{figures}   {', '.join(row['fixed_tasks'])}"


def rounded(value: Any) -> Any:
    """The value with figures of four digits after the point, which is more than they carry."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", nargs="+", help="names of tables; those that are judged by default")
    parser.add_argument("--most", type=int, default=6, help="probes at most")
    parser.add_argument("--random", type=int, default=30, help="sets drawn for each number of probes")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    folder = os.environ.get("KUAYU_DATA")
    found = available(Path(folder) if folder else None)
    tables = [table for table in found if (table.name in options.table if options.table else table.judged)]
    say(f"{'':3}{'random':>9}{'fixed':>9}{'nested':>9}{'planned':>9}   tasks of the fixed set")
    report = {
        "date": datetime.now(UTC).date().isoformat(),
        "command": shlex.join(["python", "tests/benchmarks/probe_sets.py", *sys.argv[1:]]),
        "seed": options.seed,
        "random_sets": options.random,
        "method": f"{index.METHOD_NAME} {index.METHOD_VERSION}",
        "tables": [compare(table, options.most, options.random, options.seed, say) for table in tables],
    }
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
