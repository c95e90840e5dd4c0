"""The kill matrix: what the suite says of every mutant, beside what each mutant declares.

``python -m mutants.matrix`` serves the miniature and every mutant of it as processes, runs the suite against each over
HTTP, and writes ``matrix.json`` and ``matrix.html``. It fails where a verdict differs from a declaration. With
``--cover`` there are rows only for a cover set and for what a change touches (:mod:`mutants.cover`); each of them is
held against all that it is held against in the whole matrix.

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
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil

import kuayu_schemas
from kuayu_schemas.models import Profile
from mutants import MUTANTS, judged
from mutants.cover import Selection, select
from mutants.declaration import BUSY, CHECKED, DISTURBED, FAILED_OVER, HELD, PLAYED, WATCHED, Mutant
from mutants.nursery import Nursery
from mutants.page import Row, page

TESTS = Path(__file__).resolve().parents[1]
PUBLISHED = Path(kuayu_schemas.__file__).parent / "published"
MINIATURE = "miniature"
PROCESSORS = os.cpu_count() or 1
"""Processors that runs may keep busy together unless it is said otherwise."""

PLAYED_SIDE_BY_SIDE = max(5, PROCESSORS)
"""Runs at once in which telemetry is played: what they measure are delays, and all of them burst at times.

So many as a cover set has, with the unchanged miniature, so that it takes no longer than one of them. Each needs a
seventh of a processor on average, and all others stand back for it.
"""

PLAYED_AGAIN = max(2, PROCESSORS // 2)
"""Runs at once, and nothing beside them, of those that the machine was too busy for."""

SETTLED = 2.0
"""Seconds over which it is looked at what processors leave over."""

RESERVED = 0.25
"""Processors that are left idle while delays are measured, where more runs begin than are thought to fit."""

FIRST = 8.0
"""Seconds in which a run does all that it need not wait for."""

HOURS = FAILED_OVER | DISTURBED
"""Requirements whose checks play hours of a simulated world."""

APART = {Profile.COM, Profile.MET}
WARMING = {"COM-003", "COM-028", "COM-029"} | {row.id for row in CHECKED if row.profile not in APART} - BUSY
"""Requirements of a first run, made before all others begin: those on decisions whose checks take little time."""

WORTH_WARMING = 20
"""Runs that a first one is worth making for."""

NOT_TESTABLE = "not-testable"
SECOND = 2
"""Attempt that is made beside other runs still; the next one is the last, and is made when these have ended."""

LONGEST = 900.0
"""Seconds after which a run is taken to hang."""

BUDGET_SECONDS = 180.0
"""Seconds that mutants may take that a change touches, beside the cover set."""

BUDGET_CORES = 2.0
"""Processors that the budget is for, so that the same mutants are selected on every machine."""


@dataclass(frozen=True)
class Trial:
    """A run to be made: an implementation, and what it is held against."""

    name: str
    requirements: frozenset[str]
    attempt: int = 1

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
        if self.requirements & (HELD | HOURS):
            return 60.0 if self.requirements & HELD else 25.0
        return 12.0 if self.requirements & BUSY else 4.0

    @property
    def processor_seconds(self) -> float:
        """How much of a processor's time it takes, about."""
        early = min(FIRST, self.seconds)
        return early * self.cores(0) + (self.seconds - early) * self.cores(FIRST)

    def cores(self, age: float) -> float:
        """Processors that it keeps busy when it has run for so many seconds, about."""
        if self.plays:
            return 0.6 if age < FIRST else 0.15
        if self.requirements & HOURS:
            return 0.6
        if self.watches:
            return 0.02 if age >= FIRST else 0.3 if self.requirements & WATCHED else 0.5
        if self.requirements & HELD:
            return 0.5 if age < FIRST else 0.1
        return 0.6 if self.requirements & BUSY else 0.5


class Spare:
    """What processors leave over: how much a run is thought to need is too much for those that mostly wait."""

    def __init__(self, cores: float) -> None:
        self._cores, self._since = cores, time.monotonic()
        psutil.cpu_percent()  # what it answers first stands for nothing, all else for the time since the last

    def now(self, running: Collection[tuple[Trial, float]]) -> float:
        """What was left over of late; nothing in between two looks, for new runs take a while to need what they need.

        While delays are measured, less is left over.
        """
        if time.monotonic() - self._since < SETTLED:
            return 0.0
        self._since = time.monotonic()
        idle = self._cores * (1 - psutil.cpu_percent() / 100)
        return max(0.0, idle - RESERVED) if any(trial.plays for trial, _ in running) else idle


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
    first: Mapping[str, Any] = next(iter(result.get("evidence", ())), {})
    found = [f"{name}: {first[name]}" for name in ("expected", "found", "request", "answer") if first.get(name)]
    return "; ".join([str(result.get("reason", "")), *found])[:1000]


def trials_of(mutants: Sequence[Mutant], requirements: Sequence[str] = ()) -> list[Trial]:
    """Runs that a matrix consists of: first those of the unchanged miniature, then one for each mutant.

    Telemetry is played before the miniature in a run of its own: in one against everything, delays would be measured
    while the suite reckons. Whatever is asked is looked at in both (``COM-003``).
    """
    wanted = frozenset(requirements or (row.id for row in CHECKED))
    unchanged = [Trial(MINIATURE, wanted & (PLAYED | {"COM-003"})), Trial(MINIATURE, wanted - PLAYED)]
    if not (wanted & PLAYED and wanted - PLAYED):
        unchanged = [Trial(MINIATURE, wanted)]
    trials = [Trial(mutant.name, mutant.requirements & wanted) for mutant in mutants]
    return [*unchanged, *(trial for trial in trials if trial.requirements)]


def expected_seconds(trials: Sequence[Trial], cores: float) -> float:
    """How long runs take together, about: as long as the longest one, at least, or as the processors need."""
    longest = max(trial.seconds for trial in trials)
    played = longest * math.ceil(sum(trial.plays for trial in trials) / PLAYED_SIDE_BY_SIDE)
    return max(longest, played, sum(trial.processor_seconds for trial in trials) / cores)


@cache
def cost(mutant: Mutant) -> float:
    """What it costs to hold a mutant against everything: processor seconds, for runs mostly wait, but side by side."""
    return Trial(mutant.name, mutant.requirements).processor_seconds


def selected(budget: float = BUDGET_SECONDS) -> Selection:
    """The cover set, and mutants that the change in this checkout touches, as far as so many seconds are enough."""
    return select(MUTANTS, cost, budget * BUDGET_CORES)


def matrix(mutants: Sequence[Mutant], requirements: Sequence[str] = (), cores: float = PROCESSORS) -> Iterator[Row]:
    """Rows of the matrix as they are found; the unchanged miniature is one of them.

    Side by side are as many as are thought to keep ``cores`` busy, and more while processors have nothing to do, for
    many runs mostly wait. The longest begin first, so that nothing waits for a straggler. Where the suite finds the
    machine too busy to play telemetry or beats, it says nothing of them; they are played again beside what is left to
    run, and if that is in vain, when all others have ended.
    """
    trials = trials_of(mutants, requirements)
    queue = sorted(trials, key=lambda trial: -trial.seconds)
    running: dict[Future[Row], tuple[Trial, float]] = {}
    rows, again = Rows(trials), list[Trial]()
    spare = Spare(cores)
    warm = sorted(WARMING & frozenset[str]().union(*(trial.requirements for trial in trials)))
    with Nursery(warm if len(trials) >= WORTH_WARMING else ()) as nursery, ThreadPoolExecutor(len(trials)) as pool:
        while queue or running:
            idle = spare.now(running.values())
            while (trial := _next(queue, running.values(), cores, idle)) is not None:
                idle -= trial.cores(0)
                queue.remove(trial)
                running[pool.submit(tried, trial, nursery)] = trial, time.monotonic()
            for future in wait(running, timeout=1, return_when=FIRST_COMPLETED).done:
                (trial, _), row = running.pop(future), future.result()
                if repetition := rows.repetition_of(trial, row):
                    (queue if repetition.attempt == SECOND else again).insert(0, repetition)
                elif complete := rows.add(row):
                    yield complete
        if again:
            print(f"made again, for the machine was too busy for them: {', '.join(trial.name for trial in again)}")
        with ThreadPoolExecutor(PLAYED_AGAIN) as quiet:
            yield from filter(None, map(rows.add, quiet.map(partial(tried, nursery=nursery), again)))


class Rows:
    """Rows that are made of the results of several runs."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        """So many runs are to be made for each."""
        self._missing = Counter(trial.name for trial in trials)
        self._rows: dict[str, Row] = {}

    def repetition_of(self, trial: Trial, row: Row) -> Trial | None:
        """The run that is made for what the machine was too busy for; None where there is nothing, or no time left."""
        names = {name for name in PLAYED | WATCHED if row.verdicts.get(name) == NOT_TESTABLE}
        if not names or trial.attempt > SECOND:
            return None
        self._rows[row.name] = joined(self._rows.get(row.name), row)
        return Trial(trial.name, frozenset(names), trial.attempt + 1)

    def add(self, row: Row) -> Row | None:
        """Add the results of a run; the row, where all of it is there."""
        self._rows[row.name] = joined(self._rows.get(row.name), row)
        self._missing[row.name] -= 1
        return None if self._missing[row.name] else self._rows[row.name]


def joined(earlier: Row | None, later: Row) -> Row:
    """One row of the results of two runs: what passes in both passes; what was played again counts as it was then."""
    if earlier is None or not later.verdicts:
        return later
    if not earlier.verdicts:
        return earlier
    again = {name for name in PLAYED | WATCHED if earlier.verdicts.get(name) == NOT_TESTABLE}
    final = earlier.broken - again
    verdicts = earlier.verdicts | {name: said for name, said in later.verdicts.items() if name not in final}
    reasons = {**earlier.reasons, **{name: said for name, said in later.reasons.items() if name not in final}}
    return Row(later.name, verdicts, round(earlier.seconds + later.seconds, 1), reasons=reasons)


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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants.matrix", description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", metavar="NAME", help="these mutants only")
    which.add_argument("--cover", action="store_true", help="a cover set, and mutants that the change touches, only")
    parser.add_argument("--requirement", nargs="+", default=[], metavar="ID", help="these requirements only")
    parser.add_argument("--cores", type=float, default=PROCESSORS, metavar="N", help="processors to keep busy, about")
    parser.add_argument(
        "--budget",
        type=float,
        default=BUDGET_SECONDS,
        metavar="SECONDS",
        help=f"with --cover, seconds that what the change touches may take on {BUDGET_CORES:g} processors",
    )
    parser.add_argument("--list", action="store_true", help="print what would be run, and run nothing")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="build/mutants, or with --cover build/mutants/cover"
    )
    return parser.parse_args()


def _listed(trials: Sequence[Trial], selection: Selection | None, cores: float) -> Iterator[str]:
    """What would be run, in lines, the longest first."""
    reasons = {name: reason.words for name, reason in selection.reasons.items()} if selection else {}
    for trial in sorted(trials, key=lambda trial: -trial.seconds):
        asked = f"{trial.seconds:6.0f} s  {trial.name:46} {len(trial.requirements):3} requirements"
        yield f"{asked}  {reasons.get(trial.name, '')}".rstrip()
    yield from selection.lines if selection else ()
    yield f"about {expected_seconds(trials, cores):.0f} s on {cores:g} processors"


def main() -> int:
    """Run the matrix and write it; the exit code is 1 where it differs from the declarations."""
    options, begun = _options(), time.monotonic()
    chosen = [mutant for mutant in MUTANTS if not options.only or mutant.name in options.only]
    selection = selected(options.budget) if options.cover else None
    if selection:
        chosen = selection.mutants(MUTANTS)
    trials = trials_of(chosen, options.requirement)
    if options.list:
        print(*_listed(trials, selection, options.cores), sep="\n")
        return 0
    if selection:
        print(*selection.lines, sep="\n", flush=True)
    declared = {mutant.name: mutant for mutant in chosen}
    total = len({trial.name for trial in trials})
    rows: list[Row] = []
    wrong: list[str] = []
    for row in matrix(chosen, options.requirement, options.cores):
        breaks = declared[row.name].breaks if row.name in declared else frozenset()
        if options.requirement:
            breaks &= frozenset(options.requirement)
        found = differences(row, breaks)
        wrong += found
        rows.append(row)
        print(f"{len(rows):3}/{total}  {row.seconds:6.1f} s  {row.name:34} {', '.join(sorted(row.broken))}")
        for line in found:
            print(f"          ! {line}")
        sys.stdout.flush()
    if selection:
        print(*selection.lines, sep="\n")  # once more, for what is not held is overlooked at the beginning
    folder = options.output or Path("build/mutants/cover" if selection else "build/mutants")
    _write(folder, rows, declared)
    verdict = "equals the declarations" if not wrong else f"differs from the declarations in {len(wrong)} places"
    seconds = time.monotonic() - begun
    print(f"the matrix of {len(rows)} implementations {verdict} ({seconds:.0f} s); see {folder / 'matrix.html'}")
    return 1 if wrong else 0


def _write(folder: Path, rows: list[Row], declared: Mapping[str, Mutant]) -> None:
    """Write rows as ``matrix.json`` and as ``matrix.html``, in the order of the mutants."""
    order = {MINIATURE: -1} | {mutant.name: i for i, mutant in enumerate(MUTANTS)}
    rows.sort(key=lambda row: order[row.name])
    folder.mkdir(parents=True, exist_ok=True)
    document = [
        {
            "implementation": row.name,
            "declared": sorted(declared[row.name].breaks if row.name in declared else ()),
            "not_passed": {name: row.verdicts[name] for name in sorted(row.broken)},
            "passed": sum(verdict == "pass" for verdict in row.verdicts.values()),
        }
        for row in rows
    ]
    (folder / "matrix.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (folder / "matrix.html").write_text(page(rows, declared), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
