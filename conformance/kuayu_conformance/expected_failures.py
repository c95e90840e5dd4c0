"""Failures that a vendor expects for the time being: they do not make a run's exit code 1, as long as they are true.

A file names them, one ``ID  reason`` a line; what follows ``#`` at the beginning of a line or behind white space is a
comment. The report knows nothing of them and says what was found: they are about what a build server is told. A file
that is no longer true is a failure of its own, since it would hide the next one: an entry that passes by now, or that
the run did not test.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kuayu_conformance.run.judgement import EXIT_FAIL, EXIT_HARNESS, EXIT_OPEN, EXIT_PASS
from kuayu_schemas.models import ConformanceReport, RequirementResult, Verdict

_COMMENT = re.compile(r"(?:^|\s)#.*")

NOT_TESTED = frozenset({Verdict.not_applicable, Verdict.not_supported})
"""Verdicts of what a run did not even try to test."""

OPEN = frozenset({Verdict.inconclusive, Verdict.not_testable})


class MalformedListError(Exception):
    """A file of expected failures cannot be read."""


@dataclass(frozen=True)
class Entry:
    """A line of the file: which requirement, and why its failure is expected."""

    line: int
    name: str
    reason: str


def entries_of(path: Path) -> list[Entry]:
    """Entries of a file, in order; whether their requirements exist is not looked at.

    Raises:
        MalformedListError: The file cannot be read, or a line of it has no reason.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise MalformedListError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MalformedListError(f"{path} is not UTF-8 text") from error
    entries: list[Entry] = []
    for number, line in enumerate(lines, 1):
        name, *reason = _COMMENT.sub("", line).split(maxsplit=1)[:2] or [""]
        if not name:
            continue
        if not reason:
            raise MalformedListError(f"{path} line {number}: {name} has no reason")
        entries.append(Entry(number, name, reason[0].strip()))
    return entries


@dataclass(frozen=True)
class Outcome:
    """What a run and the failures that were expected of it come to.

    Attributes:
        expected: Results that fail as expected, each with the reason of the file.
        stale: Sentences on entries that are not true any more.
        exit_code: Exit code of the command.
    """

    expected: Sequence[tuple[RequirementResult, str]]
    stale: Sequence[str]
    exit_code: int


def outcome_of(report: ConformanceReport, expected: Mapping[str, str]) -> Outcome:
    """Hold a report against failures that were expected: identifiers with reasons.

    Only failures are expected. What is inconclusive or not testable stays open, and a fault of the suite stays one.
    """
    results = {result.requirement: result for result in report.results}
    failing = [(results[name], why) for name, why in expected.items() if _verdict(results, name) is Verdict.fail]
    stale = [sentence for name in expected if (sentence := _stale(name, results.get(name)))]
    return Outcome(failing, stale, _exit_code(report, set(expected), stale))


def _verdict(results: Mapping[str, RequirementResult], name: str) -> Verdict | None:
    return results[name].verdict if name in results else None


def _stale(name: str, result: RequirementResult | None) -> str:
    """Why an entry does not belong in the file; empty where it does."""
    if result is None:
        return f"{name} is expected to fail, but the suite has no check for it"
    if result.verdict is Verdict.pass_:
        return f"{name} is expected to fail, but passes"
    if result.verdict in NOT_TESTED:
        return f"{name} is expected to fail, but was not tested ({result.reason or result.verdict.value})"
    return ""


def _exit_code(report: ConformanceReport, expected: set[str], stale: Sequence[str]) -> int:
    if report.exit_code == EXIT_HARNESS:
        return EXIT_HARNESS
    if stale:
        return EXIT_FAIL
    failing = {result.requirement for result in report.results if result.required and result.verdict is Verdict.fail}
    if report.exit_code != EXIT_FAIL or not failing or failing - expected:
        return int(report.exit_code)
    if any(result.required and result.verdict is Verdict.harness_error for result in report.results):
        return EXIT_HARNESS  # which stood beside failures, and stands alone once these are excused
    still_open = any(result.required and result.verdict in OPEN for result in report.results)
    return EXIT_OPEN if still_open else EXIT_PASS
