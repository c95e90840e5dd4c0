"""Whether submissions are right. Nothing in one is relied on.

1. Every file is listed, is there, and has its digest; where one does not, nothing else is looked at.
2. Claims, declaration and commands are worked out of the report again, and must be the same.
3. The transcript is judged again, and must lead to the report. Requirements whose method was revised since the run, or
   that had no check then, are left out of that, and so are those that were withdrawn; the line says so.
4. Names are small letters, digits and hyphens, and unique among all that are checked together; the reference has one.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kuayu_conformance.folder import RECORDS, REPORT, verify, verify_some
from kuayu_conformance.run.judgement import plan_of
from kuayu_conformance.run.plan import testable
from kuayu_conformance.submissions import (
    DECLARATION,
    OWN,
    README,
    REFERENCE,
    SUBMISSION,
    NotSubmittable,
    Passed,
    digest_of,
    hold_claiming,
    is_name,
    report_of,
    submission_of,
    text_of,
)
from kuayu_conformance.transcript import PACKED_NAME, Event, Transcript, TranscriptError
from kuayu_schemas import registers, schema
from kuayu_schemas.models import ConformanceReport, Submission

_FOLLOWS = (
    *("spec_version", "suite_version", "implementation", "run_level", "claims", "nonce", "started_at", "finished_at"),
    *("made_by", "repeat_by"),
)
"""Members that follow from the report and its transcript."""

_OF_HEADER = (
    *("spec_version", "suite_version", "target", "run_level", "nonce", "started_at"),
    *("profiles", "sub_profiles", "selection"),
)
"""Members of a report that its transcript begins with."""


@dataclass(frozen=True, slots=True)
class SubmissionResult:
    """What was found of a submission.

    Attributes:
        folder: Where it lies.
        name: Its name; empty where it does not say one.
        faults: What is wrong with it; it is good where nothing is.
        note: What was looked at and what was not, where nothing is wrong.
    """

    folder: Path
    name: str
    faults: Sequence[str]
    note: str = ""


def check(
    folders: Sequence[Path], data: Path | None = None, passed: Passed | None = None
) -> Iterator[SubmissionResult]:
    """Check submissions, one after the other; a name that an earlier one has is a fault of the later."""
    taken: dict[str, Path] = {REFERENCE: Path(REFERENCE)}
    for folder in folders:
        result = _checked(folder, data, passed)
        if result.name in taken:
            whose = "is that of the reference" if result.name == REFERENCE else f"is also that of {taken[result.name]}"
            result = SubmissionResult(folder, result.name, (*result.faults, f"its name, {result.name}, {whose}"))
        elif result.name:
            taken[result.name] = folder
        yield result


def _checked(folder: Path, data: Path | None, passed: Passed | None) -> SubmissionResult:
    try:
        body = json.loads((folder / SUBMISSION).read_bytes())
    except OSError as error:
        return SubmissionResult(folder, "", (f"{SUBMISSION} cannot be read ({error.strerror})",))
    except ValueError as error:
        return SubmissionResult(folder, "", (f"{SUBMISSION} is no JSON: {error}",))
    if wrong := schema.errors("Submission", body):
        return SubmissionResult(
            folder, "", tuple(f"{SUBMISSION}{entry.pointer}: {entry.detail}" for entry in wrong[:3])
        )
    submission = Submission.model_validate(body)
    if faults := tuple(_of_files(folder, submission)):  # nothing else is worth looking at, for it may have been changed
        return SubmissionResult(folder, submission.name, faults)
    try:
        report = report_of(folder)
        hold_claiming(report)
        transcript = Transcript.read(folder)
        faults = (*_of_declaration(folder, report), *_of_report(submission, report, transcript.header))
        if faults:  # to judge again takes long, and would not make it right
            return SubmissionResult(folder, submission.name, faults)
        left_out = sorted(not_judged_again(report))
        faults = tuple(_of_transcript(folder, transcript, left_out, data, passed))
    except (NotSubmittable, TranscriptError) as refused:
        return SubmissionResult(folder, submission.name, (str(refused),))
    but = f" but for {', '.join(left_out)}, which changed since" if left_out else ""
    outcomes = ", ".join(f"{claim.profile} {claim.outcome}" for claim in submission.claims)
    return SubmissionResult(
        folder, submission.name, faults, f"level {submission.run_level}: {outcomes}; judged again{but}"
    )


def _of_files(folder: Path, submission: Submission) -> Iterator[str]:
    """What is wrong with the files: every one is listed once, is there, and is as it was."""
    listed = Counter(file.name for file in submission.files)
    yield from (f"{name} is listed {count} times" for name, count in listed.items() if count > 1)
    present = {path.name for path in folder.iterdir()} - {SUBMISSION}
    yield from (f"{name} is not among the listed files" for name in sorted(present - listed.keys()))
    for name in sorted({REPORT, PACKED_NAME, DECLARATION, README} - listed.keys()):
        yield f"{name} is missing"
    for file in submission.files:
        path = folder / file.name
        if not path.is_file():
            yield f"{file.name} is missing"
        elif file.name not in OWN | RECORDS | {REPORT}:
            yield f"{file.name} does not belong to a submission"
        elif digest_of(path.read_bytes()) != file.digest:
            yield f"{file.name} is not the file of which {SUBMISSION} has the digest"


def _of_declaration(folder: Path, report: ConformanceReport) -> Iterator[str]:
    if report.declaration is None or (folder / DECLARATION).read_bytes() != text_of(report.declaration):
        yield f"{DECLARATION} is not what the report says that the target declared"


def _of_report(submission: Submission, report: ConformanceReport, header: Event) -> Iterator[str]:
    """What the submission says and the report does not."""
    if not is_name(submission.name):
        yield f"{submission.name} is no name for a submission: it takes small letters, digits and hyphens"
    expected = submission_of(report, header, submission.name, submission.contact, submission.files)
    for member in _FOLLOWS:
        if getattr(submission, member) != getattr(expected, member):
            yield f"{member} does not follow from the report"
    if submission.submitted_at < report.finished_at.replace(microsecond=0):
        yield "submitted_at is before the run had ended"


def _of_transcript(
    folder: Path,
    transcript: Transcript,
    left_out: Sequence[str],
    data: Path | None,
    passed: Passed | None,
) -> Iterator[str]:
    """What of the report does not follow from its transcript."""
    if not left_out:
        for verdict in verify(folder, data, passed):
            if not verdict.agrees and verdict.name not in OWN:
                yield f"{verdict.name} {verdict.why}"
        return
    said: dict[str, Any] = json.loads((folder / REPORT).read_bytes())
    for member in _OF_HEADER:
        if (said.get(member) or None) != (transcript.header.get(member) or None):  # what is empty may be absent
            yield f"{member} of the report is not that of the transcript"
    declared = plan_of(transcript, None, lambda _: False).declaration
    if declared is None or json.loads(text_of(declared)) != said.get("declaration"):
        yield "declaration of the report is not that of the transcript"
    for verdict in verify_some(folder, lambda entry: set(left_out).isdisjoint(entry.requirements), data, passed):
        if not verdict.agrees:
            yield f"{verdict.name}: {verdict.why}"


def not_judged_again(report: ConformanceReport) -> frozenset[str]:
    """Requirements whose verdict cannot be compared: revised or withdrawn since the run, or without a check then."""
    judged = {result.requirement for result in report.results}
    rows = registers.requirements().requirements
    revised = {row.id for row in rows if row.revised and report.finished_at < row.revised and row.id in judged}
    return frozenset(revised | judged & registers.withdrawn().keys() | {row.id for row in testable()} - judged)
