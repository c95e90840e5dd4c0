"""What policies reach in the windows of SCH-003: baselines, the literature's, the reference's rule, and the bound.

``python tests/benchmarks/policies.py --windows 8 --data DIR`` writes
``docs/results/scheduling/policies.json``. It plays the reference cell of each source and the cell of each family of a
full run (``checks.scheduling.cells.FULL``), with windows that drain until their cohort has ended. For each cell:

1. *Periods* are means over the jobs that train, and over the large ones of them (``LARGE`` devices or more), of all
   windows together, so that a window counts by its jobs; hours. Seconds that nobody has seen, since a job had not ended
   within the scenario, are imputed as for SCH-003, and their share is shown.
2. *Gain* is one less the mean period over that of B1.
3. *Money* is for bandwidth in the window, for a million device seconds of the reference device that were done in it.
4. *Off* is by how much gain and money may be off, two-sided at 95 %, by the jackknife over windows, since both are
   ratios of sums (R. G. Miller, "The jackknife – a review", Biometrika 61, 1974).
5. *Bound* is what no policy falls below (``bounds.periods``): a job ends no sooner than alone, and all jobs no sooner
   than on one machine of the speed that all devices are worth to them, the shortest remaining time first. Its gain is
   the most that anybody could show.

The reference's rule is played compiled, which gives the same orders (decision 35), three times: with the constants that
ship; with those that the search found and that shipped as method 1.4.0 (decisions 41 and 43); and as it ships with the
network of PPO, which was trained over it. Windows are those of a seed of their own, which no run of the suite draws.
They are played side by side by workers (``kuayu_training.workers``), the first
window of all cells before the second of any; the file is written anew after every such round, so that a run that is
broken off leaves what it had.
"""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from kuayu.scheduling import policy_network
from kuayu.scheduling.place import METHOD_VERSION
from kuayu_conformance.checks.scheduling.cells import AGAINST, FULL, POOL, TRACE, assignment
from kuayu_conformance.checks.scheduling.scores import LARGE, Group
from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion
from kuayu_conformance.testbed.scheduling.bounds import needs, periods
from kuayu_conformance.testbed.scheduling.engine.view import Policy
from kuayu_conformance.testbed.scheduling.scenarios import Cell, Scenario, ideal, scenario
from kuayu_conformance.testbed.scheduling.values import Job, JobKind
from kuayu_conformance.testbed.scheduling.windows import BASELINES, LITERATURE, Cohort, cohort, play_window
from kuayu_training.scheduling.core.network import flat
from kuayu_training.scheduling.core.player import CompiledRule, constants
from kuayu_training.workers import USAGE, WorkersError, executor

OUT = Path(__file__).parents[2] / "docs/results/scheduling/policies.json"
HOUR, MILLION = 3_600.0, 1e6
REFERENCE, SEARCHED, NETWORK = "reference", "searched", "network"
GROUPS = ("all", "large")
CONFIDENCE = 0.95

SEARCHED_CONSTANTS: Mapping[str, float] = {
    "max_pause_share": 0.05,
    "min_remaining_ratio": 1.0,
    "interruption_seconds": 150.0,
    "max_migration_pause_share": 9e-3,
    "min_gain_share": 0.06,
    "min_gain_per_pause": 4.5,
}
"""Constants of method 1.4.0 that method 1.5.0 took back (decision 43): what CMA-ES found, rounded (decision 41)."""


def _network() -> Policy:
    """The rule as it ships with the network that sets five of its constants, as it was trained (decision 43)."""
    with np.load(Path(policy_network.__file__).with_name(policy_network.FILE)) as stored:
        weights = {name: stored[name] for name in stored.files}
    return CompiledRule(network=flat(weights))


POLICIES: Mapping[str, Callable[[], Policy]] = {
    **BASELINES,
    POOL: EarliestCompletion,
    **LITERATURE,
    SEARCHED: lambda: CompiledRule(constants(SEARCHED_CONSTANTS)),
    NETWORK: _network,
    REFERENCE: CompiledRule,
}
"""Policies by name; B5 decides in another scenario, that of the ideal pool."""


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
    world = scenario(cell, timing, f"{seed}/{number}", assignment=assignment(number), data=data)
    if not any(timing.begin <= job.submitted < timing.end for job in world.workload.jobs):
        return None
    members = cohort(world)
    training = [job for job in world.workload.jobs[slice(*members.jobs)] if job.kind is not JobKind.SERVING]
    large = [job for job in training if job.requested >= LARGE]
    bounds = {"all": least(world, training), "large": least(world, large)}
    return Window(bounds, {name: sums(world, name, members) for name in names}) if training else None


def sums(world: Scenario, name: str, members: Cohort) -> Sums:
    """Play a window under a policy."""
    policy = POLICIES[name]()
    place, scored = (ideal(world), None) if name == POOL else (world, members)
    score = play_window(place, policy, name, scored)
    training = [job for job in score.jobs if job.kind is not JobKind.SERVING]
    groups = {"all": Group.of(training), "large": Group.of(job for job in training if job.devices >= LARGE)}
    return Sums(groups, score.money, score.work, score.unfinished, score.forced_stops, score.migrations)


def least(world: Scenario, jobs: Sequence[Job]) -> float:
    """Seconds below which no policy brings the sum of the periods of some jobs."""
    return periods(needs(world.topology, world.workload, world.law, jobs)).least * len(jobs) if jobs else 0.0


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
    rows = [window.policies[name] for window in windows]
    return {
        "mean period, h": {group: hours(period[group], jobs[group]) for group in GROUPS},
        f"gain over {AGAINST}": {group: gain(period[group], base[group]) for group in GROUPS},
        "gain off": {group: off(windows, gain_of(name, group)) for group in GROUPS},
        "imputed": round(imputed / period["all"], 4) if period["all"] else None,
        "money": rounded(money(name)(windows), 3),
        "money off": off(windows, money(name), digits=3),
        "unfinished": sum(sums.unfinished for sums in rows),
        "stops": sum(sums.stops for sums in rows),
        "moves": sum(sums.moves for sums in rows),
    }


Figure = Callable[[Sequence[Window]], float | None]


def gain_of(name: str, group: str) -> Figure:
    """The gain of a policy over B1; None where there is nothing to compare."""
    return lambda windows: gain(total(windows, name, group, "period"), total(windows, AGAINST, group, "period"))


def money(name: str) -> Figure:
    """What bandwidth costs under a policy for a million device seconds; None where no work was done."""

    def spent(windows: Sequence[Window]) -> float | None:
        work = fsum(window.policies[name].work for window in windows)
        return MILLION * fsum(window.policies[name].money for window in windows) / work if work else None

    return spent


def off(windows: Sequence[Window], figure: Figure, digits: int = 4) -> float | None:
    """By how much a figure of all windows together may be off at 95 %; None where too few windows have it."""
    count = len(windows)
    without = (
        [figure([*windows[:left_out], *windows[left_out + 1 :]]) for left_out in range(count)] if count > 1 else []
    )
    known = np.array([value for value in without if value is not None])
    if not len(known) or len(known) < count:
        return None
    error = np.sqrt((count - 1) / count * ((known - known.mean()) ** 2).sum())
    return round(float(student.ppf((1.0 + CONFIDENCE) / 2.0, count - 1) * error), digits)


def total(windows: Sequence[Window], name: str, group: str, figure: str) -> float:
    """Sum of a figure of a group under a policy."""
    return fsum(float(getattr(window.policies[name].groups[group], figure)) for window in windows)


def hours(seconds: float, jobs: int) -> float | None:
    """Mean hours; None where there are no jobs."""
    return round(seconds / jobs / HOUR, 3) if jobs else None


def gain(seconds: float, base: float) -> float | None:
    """By what share it is less; None where there is nothing to compare."""
    return round(1.0 - seconds / base, 4) if base else None


def rounded(figure: float | None, digits: int) -> float | None:
    """A figure as it is written down, if there is one."""
    return None if figure is None else round(figure, digits)


def cells(families: Sequence[str] | None, sources: Sequence[str]) -> Iterator[Cell]:
    """The reference cell of each source, and the cell of each family; a choice of families leaves out the others."""
    if families is None or "reference" in families:
        yield from map(FULL.reference, sources)
    yield from (FULL.of_family(family) for family in FULL.families if families is None or family in families)


def main() -> None:
    """Play, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, default=8, help="of each cell")
    parser.add_argument("--seed", default="policies")
    parser.add_argument("--policy", nargs="+", choices=POLICIES, default=list(POLICIES), help=f"besides {AGAINST}")
    parser.add_argument("--family", nargs="+", choices=("reference", *FULL.families), help="all by default")
    parser.add_argument("--workers", default=str(os.cpu_count()), help=USAGE)
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder with the trace of ITP")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    data = Path(options.data) if options.data else None
    names = [name for name in POLICIES if name in {AGAINST, *options.policy}]
    chosen = f" --family {' '.join(options.family)}" if options.family else ""
    if set(options.policy) != set(POLICIES):
        chosen += f" --policy {shlex.join(options.policy)}"
    due = list(cells(options.family, (*FULL.sources, TRACE) if data else FULL.sources))
    windows: dict[Cell, list[Window]] = {cell: [] for cell in due}
    try:
        workers = executor(options.workers)
    except WorkersError as error:
        sys.exit(str(error))
    with workers as pool:
        rounds: list[dict[Cell, Future[Window | None]]] = [
            {cell: pool.submit(played, cell, options.seed, number, names, data) for cell in due}
            for number in range(options.windows)
        ]
        for number, futures in enumerate(rounds, start=1):
            for place, (cell, future) in enumerate(futures.items(), start=1):
                window = future.result()
                if window is not None:
                    windows[cell].append(window)
                sys.stderr.write(f"\rround {number} of {len(rounds)}: {place} of {len(due)} cells ")
            made = {
                "command": f"python tests/benchmarks/policies.py --windows {number} --seed {options.seed}{chosen}",
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "method": METHOD_VERSION,
                "cells": [row(played_out, cell, names) for cell, played_out in windows.items() if played_out],
            }
            options.out.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    sys.stderr.write("\n")


if __name__ == "__main__":
    main()
