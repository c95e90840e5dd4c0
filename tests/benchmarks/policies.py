"""What policies reach in the windows of SCH-003: baselines, the literature's, the reference's rule, and the bound.

``python tests/benchmarks/policies.py --windows 12 --data DIR`` writes ``docs/results/scheduling/policies.json``. It
plays the reference cell of each source and the cell of each family of a full run (``sch_cells.FULL``), with windows
that drain until their cohort has ended. For each cell:

1. *Periods* are means over the jobs that train, and over the large ones of them (``LARGE`` devices or more), of all
   windows together, so that a window counts by its jobs; hours. Seconds that nobody has seen, since a job had not ended
   within the scenario, are imputed as for SCH-003, and their share is shown.
2. *Gain* is one less the mean period over that of B1.
3. *Money* is for bandwidth in the window, for a million device seconds of the reference device that were done in it.
4. *Bound* is what no policy falls below (``bounds.periods``): a job ends no sooner than alone, and all jobs no sooner
   than on one machine of the speed that all devices are worth to them, the shortest remaining time first. Its gain is
   the most that anybody could show.

The reference's rule is played compiled, which gives the same orders (decision 35). Windows are those of a seed of their
own, which no run of the suite draws. They are played side by side in processes, a minute or less each on one core; the
file is written anew whenever a cell is through, so that a run that is broken off leaves what it had.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Any

from kuayu_conformance.checks.sch_cells import AGAINST, FULL, TRACE, assignment
from kuayu_conformance.checks.sch_scores import LARGE, Group
from kuayu_conformance.testbed.scheduling.bounds import needs, periods
from kuayu_conformance.testbed.scheduling.engine.policy import Policy
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, scenario
from kuayu_conformance.testbed.scheduling.values import Job, JobKind
from kuayu_conformance.testbed.scheduling.windows import BASELINES, LITERATURE, Cohort, cohort, play_window
from kuayu_training.scheduling.core.player import CompiledRule

OUT = Path(__file__).parents[2] / "docs/results/scheduling/policies.json"
HOUR, MILLION = 3_600.0, 1e6
REFERENCE = "reference"
POLICIES: Mapping[str, Callable[[], Policy]] = {**BASELINES, **LITERATURE, REFERENCE: CompiledRule}
GROUPS = ("all", "large")


@dataclass(frozen=True)
class Sums:
    """What a policy reached in a window.

    Attributes:
        groups: Jobs that train, and the large ones of them.
        money: For bandwidth.
        work: Device seconds of the reference device that were done.
        unfinished: Jobs that had not ended within the scenario.
        stops: How often a job was preempted.
        moves: How often a job was moved.
    """

    groups: Mapping[str, Group]
    money: float
    work: float
    unfinished: int
    stops: int
    moves: int


@dataclass(frozen=True)
class Window:
    """A window that was played.

    Attributes:
        bounds: Least sum of the periods of each group, seconds.
        policies: What each policy reached.
    """

    bounds: Mapping[str, float]
    policies: Mapping[str, Sums]


def played(cell: Cell, seed: str, number: int, names: Sequence[str], data: Path | None) -> Window | None:
    """Play a window under each policy; None if no job that trains is submitted in it."""
    timing = FULL.drained(cell)
    its = scenario(cell, timing, f"{seed}/{number}", assignment=assignment(number), data=data)
    if not any(timing.begin <= job.submitted < timing.end for job in its.workload.jobs):
        return None
    members = cohort(its)
    training = [job for job in its.workload.jobs[slice(*members.jobs)] if job.kind is not JobKind.SERVING]
    large = [job for job in training if job.requested >= LARGE]
    bounds = {"all": least(its, training), "large": least(its, large)}
    return Window(bounds, {name: sums(its, name, members) for name in names}) if training else None


def sums(its: Scenario, name: str, members: Cohort) -> Sums:
    """Play a window under a policy."""
    score = play_window(its, POLICIES[name](), name, members)
    training = [job for job in score.jobs if job.kind is not JobKind.SERVING]
    groups = {"all": Group.of(training), "large": Group.of(job for job in training if job.devices >= LARGE)}
    return Sums(groups, score.money, score.work, score.unfinished, score.forced_stops, score.migrations)


def least(its: Scenario, jobs: Sequence[Job]) -> float:
    """Seconds below which no policy brings the sum of the periods of some jobs."""
    return periods(needs(its.topology, its.workload, its.law, jobs)).least * len(jobs) if jobs else 0.0


def row(windows: Sequence[Window], cell: Cell, names: Sequence[str]) -> dict[str, Any]:
    """What policies reached in the windows of a cell."""
    base = {group: total(windows, AGAINST, group, "period") for group in GROUPS}
    jobs = {group: int(total(windows, AGAINST, group, "jobs")) for group in GROUPS}
    bounds = {group: fsum(window.bounds[group] for window in windows) for group in GROUPS}
    return {
        "family": cell.family,
        "source": cell.source,
        "load": cell.load,
        "windows": len(windows),
        "jobs": jobs,
        "bound": {
            "mean period, h": {group: hours(bounds[group], jobs[group]) for group in GROUPS},
            f"gain over {AGAINST}": {group: gain(bounds[group], base[group]) for group in GROUPS},
        },
        "policies": {name: reached(windows, name, jobs, base) for name in names},
    }


def reached(windows: Sequence[Window], name: str, jobs: Mapping[str, int], base: Mapping[str, float]) -> dict[str, Any]:
    """What one policy reached, as it is written down."""
    period = {group: total(windows, name, group, "period") for group in GROUPS}
    imputed = total(windows, name, "all", "imputed")
    its = [window.policies[name] for window in windows]
    work = fsum(each.work for each in its)
    return {
        "mean period, h": {group: hours(period[group], jobs[group]) for group in GROUPS},
        f"gain over {AGAINST}": {group: gain(period[group], base[group]) for group in GROUPS},
        "imputed": round(imputed / period["all"], 4) if period["all"] else None,
        "money": round(MILLION * fsum(each.money for each in its) / work, 3) if work else None,
        "unfinished": sum(each.unfinished for each in its),
        "stops": sum(each.stops for each in its),
        "moves": sum(each.moves for each in its),
    }


def total(windows: Sequence[Window], name: str, group: str, figure: str) -> float:
    """Sum of a figure of a group under a policy."""
    return fsum(float(getattr(window.policies[name].groups[group], figure)) for window in windows)


def hours(seconds: float, jobs: int) -> float | None:
    """Mean hours; None where there are no jobs."""
    return round(seconds / jobs / HOUR, 3) if jobs else None


def gain(seconds: float, base: float) -> float | None:
    """By what share it is less; None where there is nothing to compare."""
    return round(1.0 - seconds / base, 4) if base else None


def cells(families: Sequence[str] | None, sources: Sequence[str]) -> Iterator[Cell]:
    """The reference cell of each source, and the cell of each family; a choice of families leaves out the others."""
    if families is None or "reference" in families:
        yield from map(FULL.reference, sources)
    yield from (FULL.of_family(family) for family in FULL.families if families is None or family in families)


def main() -> None:
    """Play, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, default=12, help="of each cell")
    parser.add_argument("--seed", default="policies")
    parser.add_argument("--policy", nargs="+", choices=POLICIES, default=list(POLICIES), help=f"besides {AGAINST}")
    parser.add_argument("--family", nargs="+", choices=("reference", *FULL.families), help="all by default")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder with the trace of ITP")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    data = Path(options.data) if options.data else None
    names = [name for name in POLICIES if name in {AGAINST, *options.policy}]
    families = f" --family {' '.join(options.family)}" if options.family else ""
    command = f"python tests/benchmarks/policies.py --windows {options.windows} --seed {options.seed}{families}"
    due = list(cells(options.family, (*FULL.sources, TRACE) if data else FULL.sources))
    with ProcessPoolExecutor(options.processes) as pool:
        futures: dict[Cell, list[Future[Window | None]]] = {
            cell: [pool.submit(played, cell, options.seed, number, names, data) for number in range(options.windows)]
            for cell in due
        }
        rows = []
        for cell, its in futures.items():
            windows = []
            for number, future in enumerate(its, start=1):
                windows.append(future.result())
                sys.stderr.write(f"\r{cell.family} {cell.source}: {number} of {len(its)} windows ")
            sys.stderr.write("\n")
            rows.append(row([each for each in windows if each], cell, names))
            made = {
                "command": command,
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "cells": rows,
            }
            options.out.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
