"""The one table of results: what committed runs of the suite last found for each requirement.

1. A run lies in ``docs/results/runs/NAME``: its report, and its transcript compressed, from which
   ``kuayu conformance verify`` comes to the same report.
2. For a requirement that run decides which measured most (full before quick before smoke), and of these the last. A
   requirement that a run was not asked for, that does not apply, or whose check it had not ended, is not decided by it.
   One in which it could not be tested measured nothing of it, and decides only where none could test it.
   Where the method of a requirement was revised after the run had ended, its verdict is shown as one by an earlier
   method, stands behind any by the present one, and is not judged again.
3. From that follow ``docs/results/results.json``, the lines of results in README, the badge, the page of results, and
   the verdict on every requirement's page. ``make results`` writes what is committed of these, and a test holds it
   against the reports.

``docs/hooks/results.py keep FOLDER NAME`` puts a report folder there; ``table`` writes what follows, and with
``--check`` says where it differs; ``verify`` judges runs again, of checks whose verdicts stand by
:mod:`pages.verdict_stamps` no more than today's sample; with ``--all`` everything is judged, and with ``--remember``
the stamps are written for what comes to the same.
"""

import argparse
import json
import lzma
import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

from kuayu_conformance import kept_scores
from kuayu_conformance.check import Check
from kuayu_conformance.checks import CHECKS
from kuayu_conformance.folder import REPORT, verify, verify_some
from kuayu_conformance.rendering import badge as drawn_badge
from kuayu_conformance.rendering.figures import Unit
from kuayu_conformance.rendering.words import COMPARISONS, STATES, Language
from kuayu_conformance.run.judgement import NOT_REACHED, exit_code
from kuayu_conformance.run.plan import check_of, testable
from kuayu_conformance.transcript import FILE_NAME, PACKED_NAME
from kuayu_schemas import registers
from kuayu_schemas.models import ConformanceReport, Profile, RequirementResult, RunLevel, Summary, Verdict

from . import verdict_stamps
from .text import phrases
from .verdict_stamps import WHOLE_RUN, JudgingCode

NAME = "runs"

ROOT = Path(__file__).parents[3]
FOLDER = "docs/results/runs"
TABLE, BADGE = "docs/results/results.json", "docs/results/badge.svg"
CONFIRMATORY = "confirmatory"
"""Name of the run of everything at once, by ``make report``."""

LEVELS = (RunLevel.smoke, RunLevel.quick, RunLevel.full)
UNDECIDED = frozenset({Verdict.not_applicable, Verdict.not_supported})

SHOWN = (
    *("MET-003", "MET-006", "IDX-001", "FCT-002", "SCH-002"),
    *("SCH-003", "SCH-004", "SCH-005", "RES-002", "RES-004"),
)
"""Requirements of README's lines: those that the brief asks for first, met or not."""

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
PLACES: Mapping[str, Language] = {"README.md": "en", "docs/en/index.md": "en", "docs/zh/index.md": "zh"}
"""Files with lines of results, and their language."""

NEVER = 3600.0
"""Seconds that stand for what never came, in the 99th percentiles of delays."""


@dataclass(frozen=True, slots=True)
class Run:
    """A committed run.

    Attributes:
        name: Its folder.
        report: What it found.
    """

    name: str
    report: ConformanceReport

    @property
    def file(self) -> str:
        """Path of its report in the site."""
        return f"{FOLDER.removeprefix('docs/')}/{self.name}/{REPORT}"

    @property
    def date(self) -> str:
        """Day on which it ended."""
        return f"{self.report.finished_at:%Y-%m-%d}"

    @property
    def seed(self) -> str:
        """Seed or nonce, as it is given to make the run again."""
        return self.report.nonce.removeprefix("seed-")

    @property
    def command(self) -> str:
        """The command that makes it again."""
        if self.name == CONFIRMATORY:
            return f"make report REPORT_SEED={self.seed}"
        report = self.report
        again = f"--seed {self.seed}" if report.nonce != self.seed else f"--nonce {self.seed}"
        asked = [f"--profile {profile}" for profile in (*report.profiles, *(report.sub_profiles or ()))]
        asked += [f"--requirement {requirement}" for requirement in report.selection]
        data = ["--data DIR"] if report.data else []
        return " ".join(["kuayu check", f"--level {report.run_level}", again, *data, *asked])

    def rank(self, requirement: str = "") -> tuple[bool, bool, int, Any]:
        """Whether it judged a requirement by the present method, could test it, how much it measured, how late."""
        return (
            requirement not in self.outdated,
            requirement not in self.untested,
            LEVELS.index(self.report.run_level),
            self.report.finished_at,
        )

    @property
    def untested(self) -> frozenset[str]:
        """Requirements that it could not test."""
        results = self.report.results
        return frozenset(result.requirement for result in results if result.verdict == Verdict.not_testable)

    @property
    def outdated(self) -> frozenset[str]:
        """Requirements whose method was revised after this run had ended."""
        rows = registers.requirements().requirements
        return frozenset(row.id for row in rows if row.revised and self.report.finished_at < row.revised)


@dataclass(frozen=True, slots=True)
class Row:
    """What was last found for a requirement, and by which run."""

    run: Run
    result: RequirementResult

    @property
    def outdated(self) -> bool:
        """Whether it was judged by an earlier method."""
        return self.result.requirement in self.run.outdated

    def entry(self) -> dict[str, Any]:
        """As ``docs/results/results.json`` says it."""
        result = self.result
        figures = {
            "estimate": result.estimate,
            "bound": result.bound,
            "unit": result.unit if result.estimate is not None else None,
            "required": result.threshold and f"{result.threshold.comparison} {result.threshold.value:g}",
            "aim_met": result.aim_met,
            "n": result.n,
        }
        return {
            "requirement": result.requirement,
            "verdict": result.verdict.value,
            **({"earlier_method": True} if self.outdated else {}),
            **{name: value for name, value in figures.items() if value is not None},
            "level": self.run.report.run_level.value,
            "date": self.run.date,
            "seed": self.run.seed,
            "command": self.run.command,
            "run": self.run.name,
        }


@cache
def runs(root: Path = ROOT) -> tuple[Run, ...]:
    """Committed runs, the one that decides most first."""
    found = [
        Run(folder.name, ConformanceReport.model_validate_json((folder / REPORT).read_bytes()))
        for folder in sorted((root / FOLDER).glob("*"))
        if (folder / REPORT).is_file()
    ]
    return tuple(sorted(found, key=Run.rank, reverse=True))


def decided(result: RequirementResult) -> bool:
    """Whether a run decided on a requirement."""
    return result.verdict not in UNDECIDED and not (result.reason or "").startswith(NOT_REACHED)


@cache
def standing(root: Path = ROOT) -> Mapping[str, Row]:
    """What was last found, by requirement, in the order of the register."""
    found: dict[str, Row] = {}
    for run in runs(root):
        for result in filter(decided, run.report.results):
            name = result.requirement
            if name not in found or run.rank(name) > found[name].run.rank(name):
                found[name] = Row(run, result)
    return {row.id: found[row.id] for row in registers.requirements().requirements if row.id in found}


def deciding(root: Path = ROOT) -> tuple[Run, ...]:
    """Runs that decide on at least one requirement, the one that decides most first; others are only kept."""
    decides = {row.run.name for row in standing(root).values()}
    return tuple(run for run in runs(root) if run.name in decides)


def run_of(requirement: str, root: Path = ROOT) -> Run | None:
    """The run that decides on a requirement."""
    row = standing(root).get(requirement)
    return row.run if row else None


def combined(root: Path = ROOT) -> ConformanceReport:
    """What all runs together come to, in the form of a report, for what draws reports; its facts are the first's."""
    results = [row.result for row in standing(root).values()]
    asked = {row.profile for row in registers.requirements().requirements if row.id in standing(root)}
    counted = {verdict: sum(result.verdict is verdict for result in results) for verdict in Verdict}
    return runs(root)[0].report.model_copy(
        update={
            "results": results,
            "selection": [],
            "profiles": [profile for profile in Profile if profile in asked],
            "summary": [Summary(verdict=verdict, count=count) for verdict, count in counted.items() if count],
            "exit_code": exit_code(results),
        }
    )


def made_of(language: Language, root: Path = ROOT) -> str:
    """Of what runs the results are, in words: of those that decide something, as the drafting report counts them."""
    say = phrases(NAME, language)
    every = deciding(root)
    if len(every) == 1:
        level = every[0].report.run_level
        return str(say["one_run"].format(level=level, date=every[0].date, seed=every[0].seed))
    dates = sorted(run.date for run in every)
    return str(say["runs"].format(count=len(every), first=dates[0], last=dates[-1]))


def headline(language: Language, root: Path = ROOT) -> str:
    """How many requirements were met, and of what runs that is said."""
    say = phrases(NAME, language)
    verdicts = [row.result.verdict for row in standing(root).values()]
    outdated = sum(row.outdated for row in standing(root).values())
    others = [
        say["counted"].format(count=verdicts.count(verdict), state=STATES[verdict].in_(language).lower())
        for verdict in Verdict
        if verdict is not Verdict.pass_ and verdict in verdicts
    ]
    joined = say["comma"].join(others) or say["none_else"]
    passed = verdicts.count(Verdict.pass_)
    joined += say["outdated"].format(outdated) if outdated else ""
    made = made_of(language, root)
    return str(say["headline"].format(passed=passed, judged=len(verdicts), others=joined, runs=made))


def lines(language: Language, root: Path = ROOT) -> str:
    """The lines of README and of the home page, misses as misses, as Markdown."""
    say = phrases(NAME, language)
    titles = {
        row.id: row.title_zh if language == "zh" else row.title_en for row in registers.requirements().requirements
    }
    head = say["columns"]
    rows = [_line(language, f"{name} {titles[name]}", standing(root)[name]) for name in SHOWN if name in standing(root)]
    table = ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *rows)]
    return "\n".join([headline(language, root), "", *table])


def _line(language: Language, title: str, row: Row) -> tuple[str, ...]:
    say = phrases(NAME, language)
    result = row.result
    verdict = STATES[result.verdict].in_(language).lower() + (say["earlier"] if row.outdated else "")
    shown = verdict if result.verdict is Verdict.pass_ else f"**{verdict}**"
    run = f"{row.run.date}, {row.run.report.run_level}"
    if result.threshold is None:
        return title, "–", "–", "–", shown, run
    limit = result.threshold
    unit = Unit(limit.unit, ratio=limit.unit == "1" and 0 < limit.value <= 1)

    def said(figure: float | None) -> str:
        if figure is None:
            return "–"
        if limit.unit == "s" and figure == NEVER:
            return str(say["never"])
        return unit.text(figure, apart_from=[limit.value])

    found, bound = said(result.estimate), said(result.bound)
    return title, found, bound, f"{COMPARISONS[limit.comparison].in_(language)} {unit.text(limit.value)}", shown, run


def committed(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Every committed file that follows from the runs, with the text that it must have."""
    entries = [row.entry() for row in standing(root).values()]
    yield root / TABLE, json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
    if (drawn := drawn_badge(combined(root))) is not None:
        yield root / BADGE, drawn
    for place, language in PLACES.items():
        file = root / place
        text = file.read_text("utf-8")
        made = f"{BEGIN}\n{lines(language, root)}\n{END}"
        yield file, re.sub(f"{BEGIN}.*?{END}", lambda _, made=made: made, text, flags=re.DOTALL)  # type: ignore[misc]


def keep(folder: Path, name: str, root: Path = ROOT) -> Path:
    """Put a report and its transcript, compressed, among the committed runs.

    Raises:
        FileNotFoundError: The folder lacks one of them.
        ValueError: The confirmatory run was called off, so that it is not one of everything.
    """
    why = ConformanceReport.model_validate_json((folder / REPORT).read_bytes()).called_off
    if why and name == CONFIRMATORY:
        raise ValueError(f"the run in {folder} ended early ({why}); make report goes on with it")
    place = root / FOLDER / name
    report, transcript = (folder / REPORT).read_bytes(), (folder / FILE_NAME).read_bytes()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / REPORT).write_bytes(report)
    (place / PACKED_NAME).write_bytes(lzma.compress(transcript, preset=6))
    if (scores := folder / kept_scores.FILE_NAME).is_file():
        (place / kept_scores.PACKED_NAME).write_bytes(lzma.compress(scores.read_bytes(), preset=6))
    return place


def _size(run: Run, root: Path) -> int:
    """Bytes of the transcript that is kept of a run; none where there is none."""
    file = root / FOLDER / run.name / PACKED_NAME
    return file.stat().st_size if file.is_file() else 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of judging a run again.

    Attributes:
        said: What was done, in words.
        differences: What of the report does not follow from the transcript.
        agreeing: Checks that were judged and came to what the report says, and :data:`verdict_stamps.WHOLE_RUN`.
    """

    said: str
    differences: tuple[str, ...] = ()
    agreeing: frozenset[str] = field(default_factory=frozenset)


NAMED = 6
"""Requirements that are named one by one."""


def _named(requirements: Collection[str]) -> str:
    """The requirements in a line of a log, or how many of each profile where they are many."""
    ordered = sorted(requirements)
    if len(ordered) <= NAMED:
        return ", ".join(ordered)
    profiles = Counter(name.partition("-")[0] for name in ordered)
    return ", ".join(f"{count} of {profile}" for profile, count in profiles.items())


def judged_again(run: Run, data: Path | None, standing: frozenset[str] = frozenset(), root: Path = ROOT) -> Outcome:
    """Judge a run again, but for checks whose verdicts are ``standing``.

    Where measurements or traces that it used are not at hand, only the checks that do without are judged again.
    """
    folder = root / FOLDER / run.name
    if not (folder / PACKED_NAME).is_file():
        return Outcome("no transcript was kept")
    missing = bool(run.report.data and data is None)
    outdated = run.outdated.intersection(result.requirement for result in run.report.results if decided(result))
    unjudged = {row.id for row in testable()}.difference(result.requirement for result in run.report.results)
    gone = registers.withdrawn().keys() & {result.requirement for result in run.report.results if decided(result)}
    apart = ""
    if missing:
        apart += " but for checks that use further measurements (name their folder by KUAYU_DATA)"
    if outdated:
        apart += f" but for {_named(outdated)}, whose method was revised since"
    if unjudged:
        apart += f" but for {_named(unjudged)}, which had no check then"
    if gone:
        apart += f" but for {_named(gone)}, which were withdrawn since"
    left_out = outdated | unjudged

    def wanted(check: Check[Any]) -> bool:
        lacking = missing and (check.measurements or check.traces)
        return not lacking and left_out.isdisjoint(check.requirements) and check.name not in standing

    checks = verdict_stamps.concerned(run.report)
    stale = {check.name for check in CHECKS if check.name in checks - standing and wanted(check.load())}
    if WHOLE_RUN in standing and not stale:
        return Outcome(f"{len(checks & standing)} of {len(checks)} checks stand as they were judged{apart}")
    if missing or left_out or WHOLE_RUN in standing:
        verdicts = list(verify_some(folder, wanted, data, processes=os.cpu_count() or 1))
        checked = frozenset(stale | {WHOLE_RUN})
    else:
        verdicts = list(verify(folder, data))
        checked = checks | {WHOLE_RUN}
    differing = [verdict.name for verdict in verdicts if not verdict.agrees]
    of_checks = {row.id: check_of(row) for row in testable()}
    wrong = {of_checks.get(name) for name in differing}
    agreeing = frozenset[str]() if None in wrong else frozenset(checked - wrong)
    said = f"judged again{apart}"
    if stands := checks & standing - checked:
        said = f"{len(stale)} of {len(checks)} checks judged again, {len(stands)} stand as they were judged{apart}"
    differences = (f"{verdict.name} differs: {verdict.why}" for verdict in verdicts if not verdict.agrees)
    return Outcome(said, tuple(differences), agreeing)


def verify_runs(
    data: Path | None,
    names: Collection[str] = (),
    root: Path = ROOT,
    *,
    everything: bool = False,
    remember: bool = False,
) -> int:
    """Judge runs again, and say what came of it; 1 where a report does not follow from its transcript.

    Args:
        data: Folder of measurements and traces that do not come with the suite.
        names: Of the runs; all where there are none.
        root: The checkout.
        everything: Whether checks are judged too whose verdicts stand.
        remember: Whether stamps are written for what was judged and agrees; then no sample is drawn.

    Raises:
        KeyError: There is no run of a name.
    """
    code, stamps = JudgingCode(root), verdict_stamps.read(root)
    day = None if remember else datetime.now(UTC).date()
    by_name = {run.name: run for run in runs(root)}
    # The largest first: what begins last is what the other processors wait for.
    chosen = sorted((by_name[name] for name in names or by_name), key=lambda run: -_size(run, root))
    digests = {run.name: verdict_stamps.current(root / FOLDER / run.name, run.report, code) for run in chosen}
    standing = {
        name: frozenset[str]() if everything else verdict_stamps.standing_verdicts(name, stamps, current, day)
        for name, current in digests.items()
    }
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(judged_again, chosen, repeat(data), standing.values(), repeat(root)))
    for run, outcome in zip(chosen, outcomes, strict=True):
        print("\n  ".join([f"{run.name}: {outcome.said}", *outcome.differences]))
    checks, stood = (sum(len(set(of_run) - {WHOLE_RUN}) for of_run in each.values()) for each in (digests, standing))
    print(f"{checks - stood} of {checks} checks of committed runs were judged again; REMEMBER=1 notes that they agree")
    if remember:
        valid = {name: written for name, written in stamps.items() if name in by_name}
        for run, outcome in zip(chosen, outcomes, strict=True):
            agreeing = (standing[run.name] | outcome.agreeing) & digests[run.name].keys()
            valid[run.name] = {name: digests[run.name][name] for name in agreeing}
        verdict_stamps.write(root, valid)
    return int(any(outcome.differences for outcome in outcomes))


def main() -> int:
    """The command; ends with 1 where something committed does not follow from the runs."""
    parser = argparse.ArgumentParser(prog="results.py", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    kept = commands.add_parser("keep", help="put a report folder among the committed runs")
    kept.add_argument("folder", type=Path)
    kept.add_argument("name")
    table = commands.add_parser("table", help="write what follows from the committed runs")
    table.add_argument("--check", action="store_true", help="write nothing, and say what differs")
    again = commands.add_parser("verify", help="judge committed runs again from their transcripts")
    again.add_argument("names", nargs="*", metavar="NAME", help="these runs only")
    again.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="further measurements")
    again.add_argument("--all", action="store_true", help="judge what stands by its stamps as well")
    again.add_argument("--remember", action="store_true", help=f"write {verdict_stamps.FILE} for what agrees")
    options = parser.parse_args()
    if options.command == "verify":
        data = options.data and Path(options.data)
        return verify_runs(data, options.names, everything=options.all, remember=options.remember)
    if options.command == "keep":
        try:
            print(f"kept in {keep(options.folder, options.name)}")
        except (ValueError, FileNotFoundError) as error:
            print(f"not kept: {error}")
            return 1
        return 0
    differing = [(file, text) for file, text in committed() if not file.is_file() or file.read_text("utf-8") != text]
    said = "does not follow from the runs; make results" if options.check else "written"
    for file, text in differing:
        print(f"{file.relative_to(ROOT)} {said}")
        if not options.check:
            file.write_text(text, "utf-8")
    return int(options.check and bool(differing))
