"""The kill matrix: what the suite says of every mutant, beside what each mutant declares.

``python -m mutants.matrix`` serves the miniature and every mutant of it as processes, runs the suite against each over
HTTP, and writes ``matrix.json`` and ``matrix.html``. It fails where a verdict differs from a declaration.

Figures of profile IDX come from a test double (:mod:`mutants.oracle`) in all of them. What replaces nothing but methods
behind some operations is not held against requirements whose checks never call them; the telemetry of five domains is
played only before the miniature and those that declare to fail by it or differ in what makes states, hours of faults
and of changes of load and latency only before the miniature and those that declare to fail by them or come near.
Requirements for which whole scenarios of scheduling are played are not asked for
(``declaration.JUDGED_BY_THEMSELVES``).
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

import kuayu_schemas
from kuayu_schemas.models import Profile
from mutants import MUTANTS, judged
from mutants.declaration import BUSY, CHECKED, HELD, PLAYED, WATCHED, Mutant
from mutants.nursery import Nursery
from mutants.page import Row, page

TESTS = Path(__file__).resolve().parents[1]
PUBLISHED = Path(kuayu_schemas.__file__).parent / "published"
MINIATURE = "miniature"
PROCESSORS = os.cpu_count() or 1
"""Processors that runs may keep busy together unless it is said otherwise."""

PLAYED_SIDE_BY_SIDE = max(3, PROCESSORS)
"""Runs at once in which telemetry is played: what they measure are delays, and all of them burst at times."""

PLAYED_AGAIN = max(2, PROCESSORS // 2)
"""Runs at once, and nothing beside them, of those that the machine was too busy for."""

SETTLED = 2.0
"""Seconds over which it is looked at what processors leave over."""

FIRST = 12.0
"""Seconds in which a run does all that it need not wait for."""

APART = {Profile.COM, Profile.MET}
WARMING = {"COM-003", "COM-028", "COM-029"} | {row.id for row in CHECKED if row.profile not in APART} - BUSY
"""Requirements of a first run, made before all others begin: those on decisions whose checks take little time."""

WORTH_WARMING = 20
"""Runs that a first one is worth making for."""

LONGEST = 900.0
"""Seconds after which a run is taken to hang."""


@dataclass(frozen=True)
class Trial:
    """A run to be made: an implementation, and what it is held against."""

    name: str
    requirements: frozenset[str]

    @property
    def plays(self) -> bool:
        """Whether telemetry is played in it."""
        return bool(self.requirements & PLAYED)

    @property
    def watches(self) -> bool:
        """Whether it waits for more than a minute, in the end for little else than what is to come."""
        return bool(self.requirements & {"MET-002", *WATCHED})

    @property
    def seconds(self) -> float:
        """How long it takes, about."""
        if self.plays:
            return 110.0
        if self.watches:
            return 90.0 if self.requirements & WATCHED else 80.0
        return 60.0 if self.requirements & HELD else 12.0

    def cores(self, age: float) -> float:
        """Processors that it keeps busy when it has run for so many seconds, about."""
        if self.plays:
            return 0.6 if age < FIRST else 0.4
        if self.watches:
            return 0.6 if age < FIRST else 0.1 if self.requirements & WATCHED else 0.03
        return 0.6 if self.requirements & BUSY else 0.4


class Spare:
    """What processors leave over: how much a run is thought to need is too much for those that mostly wait."""

    def __init__(self, cores: float) -> None:
        self._cores, self._since = cores, time.monotonic()
        psutil.cpu_percent()  # what it answers first stands for nothing, all else for the time since the last

    def now(self, running: Collection[tuple[Trial, float]]) -> float:
        """What was left over of late; nothing in between two looks, for new runs take a while to need what they need.

        Nothing is left over while delays are measured.
        """
        if time.monotonic() - self._since < SETTLED:
            return 0.0
        self._since = time.monotonic()
        idle = self._cores * (1 - psutil.cpu_percent() / 100)
        return 0.0 if any(trial.plays for trial, _ in running) else idle


def options_of(name: str) -> list[str]:
    """What :mod:`mutants.serve` is told to serve an implementation."""
    options = ["--port", "0", "--schemas", str(PUBLISHED), "--token", "own=own", "--token", "other=other"]
    return [name, *options, "--scrape-allow", "127.0.0.1"]


@contextlib.contextmanager
def served(name: str) -> Iterator[str]:
    """Serve the miniature or a mutant as a process; yields its base URL."""
    command = [sys.executable, "-m", "mutants.serve", *options_of(name)]
    process = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().rpartition(" ")[2].strip()
    finally:
        process.terminate()
        process.communicate()


def tried(trial: Trial, nursery: Nursery) -> Row:
    """Serve an implementation, run the suite against it, each as a process, and return the verdicts.

    Only measurements that come with the suite are used, so that the matrix is the same everywhere.
    """
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="matrix-"))
        polite = not trial.plays  # delays are measured where telemetry is played, so the others stand back
        server = stack.enter_context(nursery.child("serve", options_of(trial.name), signal.SIGTERM, polite=polite))
        arguments = [server.line().rpartition(" ")[2].strip(), folder, *sorted(trial.requirements)]
        suite = stack.enter_context(nursery.child("suite", arguments, signal.SIGKILL, polite=polite))
        words = suite.rest(LONGEST)
        results = judged.results(Path(folder))
    if results is None:
        return Row(trial.name, {}, time.monotonic() - begun, words[-2000:])
    found = {row["requirement"]: row["verdict"] for row in results if row["verdict"] != "not-applicable"}
    reasons = {row["requirement"]: _reason(row) for row in results if row["verdict"] != "pass"}
    return Row(trial.name, found, round(time.monotonic() - begun, 1), reasons=reasons)


def _reason(result: Mapping[str, Any]) -> str:
    """Why a requirement did not pass, with the first piece of evidence."""
    first = next(iter(result.get("evidence", ())), {})
    found = [f"{name}: {first[name]}" for name in ("expected", "found", "request", "answer") if first.get(name)]
    return "; ".join([str(result.get("reason", "")), *found])[:1000]


def matrix(mutants: Sequence[Mutant], requirements: Sequence[str] = (), cores: float = PROCESSORS) -> Iterator[Row]:
    """Rows of the matrix as they are found; the unchanged miniature is one of them.

    Side by side are as many as are thought to keep ``cores`` busy, and more while processors have nothing to do, for
    many runs mostly wait. The longest begin first, so that nothing waits for a straggler. Where the suite finds the
    machine too busy to play telemetry, it says nothing; that run is made again when all others have ended.
    """
    wanted = frozenset(requirements or (row.id for row in CHECKED))
    trials = [Trial(MINIATURE, wanted), *(Trial(mutant.name, mutant.requirements & wanted) for mutant in mutants)]
    queue = sorted((trial for trial in trials if trial.requirements), key=lambda trial: -trial.seconds)
    running: dict[Future[Row], tuple[Trial, float]] = {}
    again: list[Trial] = []
    spare = Spare(cores)
    warm = sorted(WARMING & wanted) if len(trials) >= WORTH_WARMING else ()
    with Nursery(warm) as nursery, ThreadPoolExecutor(len(trials)) as pool:
        while queue or running:
            idle = spare.now(running.values())
            while (trial := _next(queue, running.values(), cores, idle)) is not None:
                idle -= trial.cores(0)
                queue.remove(trial)
                running[pool.submit(tried, trial, nursery)] = trial, time.monotonic()
            for future in wait(running, timeout=1, return_when=FIRST_COMPLETED).done:
                (trial, _), row = running.pop(future), future.result()
                if any(row.verdicts.get(name) == "not-testable" for name in PLAYED | WATCHED):
                    again.append(trial)
                else:
                    yield row
        if again:
            print(f"made again, for the machine was too busy for them: {', '.join(trial.name for trial in again)}")
        with ThreadPoolExecutor(PLAYED_AGAIN) as quiet:
            yield from quiet.map(partial(tried, nursery=nursery), again)


def _next(queue: Iterable[Trial], running: Collection[tuple[Trial, float]], cores: float, idle: float) -> Trial | None:
    """The first trial that there is room for beside those that run since some time; None where there is none."""
    now = time.monotonic()
    room = max(idle, cores - sum(trial.cores(now - begun) for trial, begun in running))
    playing = sum(trial.plays for trial, _ in running) >= PLAYED_SIDE_BY_SIDE
    fits = (trial for trial in queue if not running or (trial.cores(0) <= room and not (playing and trial.plays)))
    return next(fits, None)


def differences(row: Row, declared: frozenset[str]) -> list[str]:
    """How a row differs from what was declared, in words."""
    if not row.verdicts:
        return [f"{row.name}: the suite wrote no report: {row.words}"]
    missed = [f"{row.name}: {name} passes and should not" for name in sorted(declared - row.broken)]
    blamed = [
        f"{row.name}: {n} is {row.verdicts[n]} and should pass: {row.reasons.get(n, '')}"
        for n in sorted(row.broken - declared)
    ]
    return missed + blamed


def main() -> int:
    """Run the matrix and write it; the exit code is 1 where it differs from the declarations."""
    parser = argparse.ArgumentParser(prog="mutants.matrix", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants only")
    parser.add_argument("--requirement", nargs="+", default=[], metavar="ID", help="these requirements only")
    parser.add_argument("--cores", type=float, default=PROCESSORS, metavar="N", help="processors to keep busy, about")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/mutants"), metavar="DIR")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not options.only or mutant.name in options.only]
    declared = {mutant.name: mutant for mutant in chosen}
    rows: list[Row] = []
    wrong: list[str] = []
    for row in matrix(chosen, options.requirement, options.cores):
        breaks = declared[row.name].breaks if row.name in declared else frozenset()
        if options.requirement:
            breaks &= frozenset(options.requirement)
        found = differences(row, breaks)
        wrong += found
        rows.append(row)
        print(f"{len(rows):3}/{len(chosen) + 1}  {row.seconds:6.1f} s  {row.name:34} {', '.join(sorted(row.broken))}")
        for line in found:
            print(f"          ! {line}")
    order = {MINIATURE: -1} | {mutant.name: i for i, mutant in enumerate(MUTANTS)}
    rows.sort(key=lambda row: order[row.name])
    options.output.mkdir(parents=True, exist_ok=True)
    document = [
        {
            "implementation": row.name,
            "declared": sorted(declared[row.name].breaks if row.name in declared else ()),
            "not_passed": {name: row.verdicts[name] for name in sorted(row.broken)},
            "passed": sum(verdict == "pass" for verdict in row.verdicts.values()),
        }
        for row in rows
    ]
    (options.output / "matrix.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (options.output / "matrix.html").write_text(page(rows, declared), "utf-8")
    verdict = "equals the declarations" if not wrong else f"differs from the declarations in {len(wrong)} places"
    print(f"the matrix of {len(rows)} implementations {verdict}; see {options.output / 'matrix.html'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
