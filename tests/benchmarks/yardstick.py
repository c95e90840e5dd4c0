"""What the yardstick of SCH-003 does: plain policies under method 1 and method 2.0, in windows of the same seeds.

1. Method 1 let a window drain for ten hours. A job that had not ended then counted with what was left of it on the
   ideal pool's devices, whatever the policy had given it; sources counted by the geometric mean of their quotients.
2. Method 2.0 lets a window drain until its whole cohort has ended, imputes what is left after ``--days`` at the pace of
   the policy's own devices, and takes the mean of the sources' gains (decision 29).

``python tests/benchmarks/yardstick.py --windows 48 --days 14 --data DIR`` wrote
``docs/results/scheduling/yardstick.json``: for each source and group of jobs B1's mean period, the part of it that was
imputed, and what B3, B3c and B4 gain over it. The policies are the suite's own, so that no policy of the reference had
a part in the choice between the two. Windows are played side by side in processes; it takes about half an hour on two
cores.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import exp, fsum, log
from pathlib import Path
from typing import Any

from kuayu_conformance.checks.sch_cells import FULL, TRACE, assignment
from kuayu_conformance.checks.sch_scores import LARGE
from kuayu_conformance.testbed.scheduling.scenarios import scenario
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_conformance.testbed.scheduling.windows import BASELINES, cohort, play_window

OUT = Path(__file__).parents[2] / "docs/results/scheduling/yardstick.json"
DAY = 86_400.0
AGAINST, NAMES = "B1", ("B3", "B3c", "B4")
METHODS = ("1", "2.0")
GROUPS = ("all", "large")


@dataclass(frozen=True)
class Sums:
    """Seconds of the jobs of a group that train, in one window: of their periods, and of what is imputed of these."""

    jobs: int
    period: float
    imputed: float


def played(source: str, seed: str, number: int, days: int, data: Path | None) -> dict[str, Sums]:
    """Sums of a window, by method, policy and group."""
    found = {}
    cell = FULL.reference(source)
    whole = replace(FULL.whole, drain=days * DAY)
    for method, timing in zip(METHODS, (FULL.timing, whole), strict=True):
        its = scenario(cell, timing, f"{seed}/{number}", assignment=assignment(number), data=data)
        if not any(timing.begin <= job.submitted < timing.end for job in its.workload.jobs):
            continue
        members = cohort(its)
        for name in (AGAINST, *NAMES):
            score = play_window(its, BASELINES[name](), name, members)
            rows = {group: [0, 0.0, 0.0] for group in GROUPS}
            for job, shortest in zip(score.jobs, members.shortest.tolist(), strict=True):
                if job.kind is JobKind.SERVING:
                    continue
                ended = job.period - job.imputed
                imputed = job.imputed if method != "1" or job.finished else (1.0 - job.done / job.work) * shortest
                for group in GROUPS if job.devices >= LARGE else GROUPS[:1]:
                    rows[group][0] += 1
                    rows[group][1] += ended + imputed
                    rows[group][2] += imputed
            for group, (jobs, period, unseen) in rows.items():
                found[f"{method}/{name}/{group}"] = Sums(int(jobs), period, unseen)
    return found


def compared(windows: list[dict[str, Sums]], method: str, group: str) -> dict[str, Any]:
    """A row of the table: one method and one group of the jobs of a source."""

    def total(name: str, figure: str) -> float:
        key = f"{method}/{name}/{group}"
        return fsum(float(getattr(each[key], figure)) for each in windows if key in each)

    base = total(AGAINST, "period")
    return {
        "jobs": int(total(AGAINST, "jobs")),
        "B1 mean, h": round(base / max(total(AGAINST, "jobs"), 1.0) / 3600.0, 3),
        "imputed under B1": round(total(AGAINST, "imputed") / base, 4) if base else None,
        "gain": {name: round(1.0 - total(name, "period") / base, 4) if base else None for name in NAMES},
    }


def overall(sources: dict[str, Any], method: str) -> dict[str, float]:
    """Gain over all sources, the lesser of both groups, as each method counts it."""
    gains = {}
    for name in NAMES:
        groups = []
        for group in GROUPS:
            each = [its[method][group]["gain"][name] for its in sources.values()]
            mean = exp(fsum(log(1.0 - gain) for gain in each) / len(each)) if method == "1" else None
            groups.append(1.0 - mean if mean is not None else fsum(each) / len(each))
        gains[name] = round(min(groups), 4)
    return gains


def main() -> None:
    """Play, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, default=FULL.windows, help="of each source")
    parser.add_argument("--days", type=int, default=14, help="for which a window of method 2.0 drains at most")
    parser.add_argument("--seed", default="yardstick")
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder with the trace of ITP")
    options = parser.parse_args()
    data = Path(options.data) if options.data else None
    names = (*FULL.sources, TRACE) if data else FULL.sources
    sources: dict[str, Any] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        due = {
            source: [
                pool.submit(played, source, options.seed, number, options.days, data)
                for number in range(options.windows)
            ]
            for source in names
        }
        results: dict[str, list[dict[str, Sums]]] = {}
        for source, futures in due.items():
            results[source] = []
            for future in futures:
                results[source].append(future.result())
                sys.stderr.write(f"\r{source}: {len(results[source])} of {len(futures)} windows ")
        sys.stderr.write("\n")
    for source, its in results.items():
        sources[source] = {method: {group: compared(its, method, group) for group in GROUPS} for method in METHODS}
    made = {
        "command": f"python tests/benchmarks/yardstick.py --windows {options.windows} --days {options.days} "
        f"--seed {options.seed}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "sources": sources,
        "overall": {method: overall(sources, method) for method in METHODS},
    }
    OUT.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
