"""The kill matrix: what the suite says of every mutant, beside what each mutant declares.

``python -m mutants.matrix`` holds the suite against the minimal server and every mutant of it (:mod:`mutants.trial`),
and writes ``matrix.json`` and ``matrix.html``. It fails where a verdict differs from a declaration. With ``--cover``
there are rows only for a cover set and for what a change touches (:mod:`mutants.cover`). What is touched is held
against all that it is held against in the whole matrix, each mutant of the cover set against the profiles of what it
breaks, and ``COM-003``.

Figures of profile IDX come from a test double (:mod:`mutants.oracle`) in all of them. What replaces nothing but methods
behind some operations is not held against requirements whose checks never call them; the telemetry of five domains is
played only before the minimal server and those that declare to fail by it or differ in what makes states; sparse
telemetry, and hours of faults and of changes of load and latency, only before the minimal server and those that declare
to fail by them or come near. Requirements for which whole scenarios of scheduling are played are not asked for
(``declaration.JUDGED_BY_THEMSELVES``).
"""

import argparse
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path

from mutants import MUTANTS
from mutants.cover import Selection, select
from mutants.declaration import CHECKED, TIMED, Mutant
from mutants.page import Row, page
from mutants.serve import MINIMAL_SERVER
from mutants.trial import POLITE, Trial, in_process, over_http, processes

PROCESSORS = os.cpu_count() or 1
"""Processors that runs may keep busy together unless it is said otherwise."""

PLAYING = max(2, PROCESSORS)
"""Runs at once in which telemetry is played: what they measure are delays, and all of them burst at times.

Suite and server need two fifths of a processor together, and all others stand back for them: with three of them some
worlds fell behind on two processors, and were played again.
"""

WAITING = 10
"""Runs at once that wait for beats or scrapes, and need a twentieth of a processor when they have begun."""

AGAIN = max(2, PROCESSORS // 2)
"""Runs at once, and nothing beside them, of those that the machine was too busy for."""

NOT_TESTABLE = "not-testable"

BUDGET_SECONDS = 90.0
"""Seconds that mutants may take that a change touches, beside the cover set."""

BUDGET_CORES = 2.0
"""Processors that the budget is for, so that the same mutants are selected on every machine."""


def trials_of(
    mutants: Sequence[Mutant], requirements: Sequence[str] = (), nearest: Collection[Mutant] = ()
) -> list[Trial]:
    """Runs that a matrix consists of: first those of the unchanged minimal server, then those of each mutant.

    What mostly waits is asked for in a run of its own: in one against everything, delays would be measured while the
    suite reckons, and few could wait at once. Whatever is asked is looked at in all of them (``COM-003``). Mutants
    among the ``nearest`` are held against requirements of the profiles of what they break alone.
    """
    wanted = frozenset(requirements or (row.id for row in CHECKED))
    trials = [Trial(MINIMAL_SERVER, wanted)]
    for mutant in mutants:
        against = mutant.nearest if mutant in nearest else mutant.requirements
        trials.append(Trial(mutant.name, against & wanted, mutant.over_http))
    return [part for trial in trials if trial.requirements for part in trial.parts()]


def expected_seconds(trials: Sequence[Trial], cores: float) -> float:
    """How long runs take together, about: as long as the longest one, at least, or as the processors need."""
    longest = max(trial.seconds for trial in trials)
    playing = sum(trial.seconds for trial in trials if trial.plays) / PLAYING
    waiting = sum(trial.seconds for trial in trials if trial.waits and not trial.plays) / WAITING
    return max(longest, playing, waiting, sum(trial.processor_seconds for trial in trials) / cores)


@cache
def cost(mutant: Mutant) -> float:
    """What it costs to hold a mutant against everything: processor seconds, for runs mostly wait, but side by side."""
    return sum(trial.processor_seconds for trial in Trial(mutant.name, mutant.requirements, mutant.over_http).parts())


def selected(budget: float = BUDGET_SECONDS) -> Selection:
    """The cover set, and mutants that the change in this checkout touches, as far as so many seconds are enough."""
    return select(MUTANTS, cost, budget * BUDGET_CORES)


def matrix(trials: Iterable[Trial], cores: int = PROCESSORS) -> Iterator[Row]:
    """Rows of the matrix as they are found; the unchanged minimal server is one of them.

    Runs that mostly wait are made many side by side, all others on so many processors. The longest begin first, so that
    nothing waits for a straggler. Where the suite finds the machine too busy to play telemetry or beats, it says
    nothing of them; they are played again when all others have ended.
    """
    trials = sorted(trials, key=lambda trial: -trial.seconds)
    rows, again = Rows(trials), list[Trial]()
    with (
        ProcessPoolExecutor(cores, mp_context=processes(), initializer=os.nice, initargs=(POLITE,)) as deciding,
        ThreadPoolExecutor(cores + 1) as served,  # each waits for its processes, which wait for each other
        ThreadPoolExecutor(PLAYING) as playing,
        ThreadPoolExecutor(WAITING) as waiting,
    ):
        made: dict[Future[list[Row]], list[Trial]] = {}
        for trial in (trial for trial in trials if trial.over_http):
            pool = playing if trial.plays else waiting if trial.waits else served
            made[pool.submit(over_http, [trial])] = [trial]
        for alike in by_profile(trials):
            made[deciding.submit(in_process, alike)] = alike
        for future in as_completed(made):
            for trial, row in zip(made[future], future.result(), strict=True):
                if repetition := rows.repetition_of(trial, row):
                    again.append(repetition)
                elif complete := rows.add(row):
                    yield complete
    if again:
        print(f"made again, for the machine was too busy for them: {', '.join(trial.name for trial in again)}")
    with ThreadPoolExecutor(AGAIN) as quiet:
        for found in quiet.map(over_http, ([trial] for trial in again)):
            yield from filter(None, map(rows.add, found))


def by_profile(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Runs in this process, those together that ask the same checks, whoever takes longest first."""
    alike: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if not trial.over_http:
            alike[max(trial.requirements).partition("-")[0]].append(trial)
    return sorted(alike.values(), key=lambda several: -sum(trial.seconds for trial in several))


class Rows:
    """Rows that are made of the results of several runs."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        """So many runs are to be made for each."""
        self._missing = Counter(trial.name for trial in trials)
        self._rows: dict[str, Row] = {}

    def repetition_of(self, trial: Trial, row: Row) -> Trial | None:
        """The run that is made for what the machine was too busy for; None where there is nothing, or no time left."""
        names = {name for name in TIMED if row.verdicts.get(name) == NOT_TESTABLE}
        if not names or trial.again:
            return None
        self._rows[row.name] = joined(self._rows.get(row.name), row)
        return Trial(trial.name, frozenset(names), again=True)

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
    again = {name for name in TIMED if earlier.verdicts.get(name) == NOT_TESTABLE}
    final = earlier.broken - again
    verdicts = earlier.verdicts | {name: said for name, said in later.verdicts.items() if name not in final}
    reasons = {**earlier.reasons, **{name: said for name, said in later.reasons.items() if name not in final}}
    seconds = round(earlier.seconds + later.seconds, 1)
    used = round(earlier.processor_seconds + later.processor_seconds, 2)
    return Row(later.name, verdicts, seconds, reasons=reasons, processor_seconds=used)


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
    parser.add_argument("--cores", type=int, default=PROCESSORS, metavar="N", help="processors to keep busy, about")
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


def _listed(trials: Sequence[Trial], selection: Selection | None, cores: int) -> Iterator[str]:
    """What would be run, in lines, the longest first."""
    reasons = {name: reason.words for name, reason in selection.reasons.items()} if selection else {}
    for trial in sorted(trials, key=lambda trial: -trial.seconds):
        where = "over HTTP" if trial.over_http else "in process"
        asked = f"{trial.seconds:6.0f} s  {trial.name:46} {len(trial.requirements):3} requirements {where}"
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
    trials = trials_of(chosen, options.requirement, selection.cover if selection else ())
    if options.list:
        print(*_listed(trials, selection, options.cores), sep="\n")
        return 0
    if selection:
        print(*selection.lines, sep="\n", flush=True)
    declared = {mutant.name: mutant for mutant in chosen}
    total = len({trial.name for trial in trials})
    rows: list[Row] = []
    wrong: list[str] = []
    for row in matrix(trials, options.cores):
        breaks = declared[row.name].breaks if row.name in declared else frozenset()
        if options.requirement:
            breaks &= frozenset(options.requirement)
        found = differences(row, breaks)
        wrong += found
        rows.append(row)
        print(f"{len(rows):3}/{total}  {row.processor_seconds:6.2f} s  {row.name:34} {', '.join(sorted(row.broken))}")
        for line in found:
            print(f"          ! {line}")
        sys.stdout.flush()
    if selection:
        print(*selection.lines, sep="\n")  # once more, for what is not held is overlooked at the beginning
    folder = options.output or Path("build/mutants/cover" if selection else "build/mutants")
    _write(folder, rows, declared)
    verdict = "equals the declarations" if not wrong else f"differs from the declarations in {len(wrong)} places"
    seconds, used = time.monotonic() - begun, sum(row.processor_seconds for row in rows)
    print(f"the matrix of {len(rows)} implementations {verdict}; see {folder / 'matrix.html'}")
    print(f"it took {seconds:.0f} s, and {used:.0f} s of processors:", *_seconds_by_profile(rows, declared))
    return 1 if wrong else 0


def _seconds_by_profile(rows: Iterable[Row], declared: Mapping[str, Mutant]) -> Iterator[str]:
    """Seconds of processors by the profiles of what mutants break; those that break nothing are controls."""
    used = Counter[str]()
    for row in rows:
        mutant = declared.get(row.name)
        names = {name[:3] for name in (*mutant.breaks, mutant.control_for) if name} if mutant else {row.name}
        used[min(names, key=lambda name: (name == "COM", name)) if names else "none"] += row.processor_seconds
    yield ", ".join(f"{name} {seconds:.0f}" for name, seconds in used.most_common())


def _write(folder: Path, rows: list[Row], declared: Mapping[str, Mutant]) -> None:
    """Write rows as ``matrix.json`` and as ``matrix.html``, in the order of the mutants."""
    order = {MINIMAL_SERVER: -1} | {mutant.name: i for i, mutant in enumerate(MUTANTS)}
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
