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

``python tests/benchmarks/yardstick.py --costs 2`` says instead what a full run of method 2.0 costs the suite in
processor seconds, part by part: the median over so many windows of each source, times the windows of the plan, and the
judge's own side of a question without the network, where B3 answers in the place of a service. Its own time counts, so
that other work beside it changes little; what was compiled before is loaded first.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import exp, fsum, log
from pathlib import Path
from statistics import median
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.scheduling import scores
from kuayu_conformance.checks.scheduling.cells import ALL, FULL, TRACE, assignment
from kuayu_conformance.checks.scheduling.scores import LARGE, RequestMode, ServicePolicy
from kuayu_conformance.episode import Episode, Request, Settings, describe
from kuayu_conformance.testbed.scheduling.baselines import EarliestCompletion
from kuayu_conformance.testbed.scheduling.codec import StateCodec, placement_of
from kuayu_conformance.testbed.scheduling.engine.orders import Order, Start
from kuayu_conformance.testbed.scheduling.engine.view import View
from kuayu_conformance.testbed.scheduling.scenarios import Scenario, scenario, submitted
from kuayu_conformance.testbed.scheduling.values import JobKind
from kuayu_conformance.testbed.scheduling.windows import BASELINES, Cohort, cohort, play_window

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


class Answering:
    """B3 as a service without a network: what it takes to decide and to write the answer is counted apart.

    Attributes:
        spent: Processor seconds.
        asked: How often it was asked.
    """

    def __init__(self, codec: StateCodec) -> None:
        self._policy, self._codec = EarliestCompletion(), codec
        self.spent, self.asked = 0.0, 0
        self.view: View

    def exchange(self, request: Request) -> Answer:
        """A report of what B3 starts."""
        began = time.process_time()
        self.asked += 1
        decisions = [
            {
                "job": self._codec.names.of("job", order.job),
                "verb": "start",
                "placement": placement_of(order.placement, self._codec.names),
            }
            for order in self._policy.decide(self.view)
            if isinstance(order, Start)
        ]
        revision = {"epoch": self._codec.names.epoch, "number": self.asked}
        report = {"revision": revision, "method": {"name": "B3", "version": "1"}, "decisions": decisions}
        body = json.dumps(report, separators=(",", ":")).encode()
        self.spent += time.process_time() - began
        head = {"content-type": "application/json"}
        return Answer(self.asked - 1, describe(request), 200, head, body, "", 0.0, 0.0)


class Shown(ServicePolicy):
    """The service as the suite asks it; who answers looks at the view itself."""

    def __init__(self, source: Answering, *parts: Any) -> None:
        super().__init__(*parts)
        self._source = source

    def decide(self, view: View) -> Sequence[Order]:
        """Ask."""
        self._source.view = view
        return super().decide(view)


def asked(its: Scenario, members: Cohort) -> tuple[float, int]:
    """Processor seconds of the judge's side of a window, and how many questions there were."""
    codec = StateCodec("costs")
    source, counts = Answering(codec), RequestMode()
    settings = Settings("costs", "costs", full=True, features=frozenset(), limits={}, other_tenant=False)
    episode: Any = Episode("costs", settings, source)  # type: ignore[arg-type]  # as much of one as is asked
    began = time.process_time()
    with episode.segment("window"):
        play_window(its, Shown(source, episode, counts, codec), "service", members)
    assert counts.bad_answers == 0
    return time.process_time() - began - source.spent, source.asked


def costs_of(source: str, seed: str, number: int, data: Path | None) -> dict[str, float]:
    """Processor seconds of each part of a window."""
    cell = FULL.reference(source)
    whole, dealt = FULL.drained(cell), {"assignment": assignment(number), "data": data}
    found: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        made = work()
        found[name] = time.process_time() - began
        return made

    timed("choice of windows", lambda: submitted(cell, whole, f"{seed}/{number}", **dealt))  # type: ignore[arg-type]
    its = timed("scenario", lambda: scenario(cell, whole, f"{seed}/{number}", **dealt))  # type: ignore[arg-type]
    members = timed("cohort", lambda: cohort(its))
    timed("bounds", lambda: scores.bounds_of(its, members))
    for name in ALL:
        timed(name, lambda name=name: scores.score_of(its, members, name))  # type: ignore[misc]
    seconds, questions = asked(its, members)
    return found | {"a question": seconds / questions, "questions": questions}


def costs(windows: int, seed: str, names: Sequence[str], data: Path | None) -> None:
    """Print what a full run costs the suite."""
    costs_of(names[0], f"{seed} before", 0, data)  # loads what was compiled
    rows = [costs_of(source, seed, number, data) for source in names for number in range(windows)]
    questions = median(row["questions"] for row in rows)
    reference, families = FULL.windows * len(names), len(FULL.families) * FULL.family_windows
    curves = sum(len(curve.points) for curve in FULL.curves) * FULL.curve_windows
    every = (
        reference
        + (len(FULL.loads) - 1) * FULL.load_windows
        + families
        + curves
        + len(FULL.swings) * FULL.swing_windows
    )
    times: dict[str, float] = {
        "choice of windows": reference * FULL.candidates,
        "scenario": 2 * every,
        "cohort": 2 * every,
        "bounds": every,
    }
    times |= {name: every if name in FULL.beside else reference for name in ALL} | {"B4": reference + families}
    times["a question"] = every * questions
    total = 0.0
    for name, count in times.items():
        each = median(row[name] for row in rows)
        total += each * count
        print(f"{name:>18} {each:9.4f} s × {count:7.0f} = {each * count:7.0f} s")
    print(f"{'all':>18} {total:29.0f} s for {every} windows, {questions:.0f} questions in each")


def main() -> None:
    """Play, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, default=FULL.windows, help="of each source")
    parser.add_argument("--days", type=int, default=14, help="for which a window of method 2.0 drains at most")
    parser.add_argument("--seed", default="yardstick")
    parser.add_argument("--costs", type=int, metavar="WINDOWS", help="say what a full run costs, by so many windows")
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder with the trace of ITP")
    options = parser.parse_args()
    data = Path(options.data) if options.data else None
    names = (*FULL.sources, TRACE) if data else FULL.sources
    if options.costs:
        costs(options.costs, options.seed, names, data)
        return
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
