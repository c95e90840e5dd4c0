"""Submissions: results that vendors hand in, each a folder that anybody can judge again.

1. What a submission says follows from its report, and the report from its transcript. Name, contact and notes alone are
   the vendor's words.
2. A report that does not follow from its transcript, a diagnosis, and a report by which nothing is claimed are none.
   What failed or stayed open may be in one, and is said when it is made.
3. The folder holds the report and what it follows from, transcript and scores compressed; what the target declared; how
   the run was made and can be made again; and digests of all of it. Its README says so in both languages, and is a pure
   function of its members: what a vendor declares may hold anything, so it stands between backticks, on one line, and
   cannot become Markdown.
4. All of it is made before anything is written, so that what is refused leaves no trace.

:func:`check` says whether submissions are right, and relies on nothing in one:

1. Every file is listed, is there, and has its digest; where one does not, nothing else is looked at.
2. Claims, declaration and commands are worked out of the report again, and must be the same.
3. The transcript is judged again, and must lead to the report. Requirements whose method was revised since the run, or
   that had no check then, are left out of that, and so are those that were withdrawn; the line says so.
4. Names are small letters, digits and hyphens, and unique among all that are checked together; the reference has one.
"""

import hashlib
import json
import lzma
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kuayu_conformance import kept_scores
from kuayu_conformance.claims import Outcome, claims, is_diagnosis
from kuayu_conformance.folder import RECORDS, REPORT, verify, verify_some
from kuayu_conformance.rendering.words import Language, Words
from kuayu_conformance.run.judgement import plan_of
from kuayu_conformance.run.plan import testable
from kuayu_conformance.transcript import FILE_NAME, PACKED_NAME, Event, Transcript, TranscriptError
from kuayu_schemas import registers, schema
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import (
    ClaimOutcome,
    ConformanceReport,
    ProfileClaim,
    Submission,
    SubmittedFile,
    Verdict,
)

OUTCOMES = {
    ClaimOutcome.met: Words("conforms", "符合"),
    ClaimOutcome.not_met: Words("does not conform", "不符合"),
    ClaimOutcome.undecided: Words("undecided", "未能判定"),
    ClaimOutcome.not_claimed: Words("not claimed", "不作结论"),
}
"""What becomes of a claim, in a word or two."""
_TITLE = Words("Result handed in: {}", "提交的结果：{}")
_SAID = Words(
    "{implementation}, tested by version {suite} of the suite against version {spec} of the standard, level `{level}`, "
    "{date}. Contact: {contact}",
    "{implementation}，以套件 {suite} 版按标准 {spec} 版测试，级别 `{level}`，{date}。联系方式：{contact}",
)
_COUNTED = Words(
    "- **{profile}**: {outcome}; of {judged} requirements that count {passed} are passed, {failed} not met{lacking}.",
    "- **{profile}**：{outcome}；计入结论的 {judged} 项要求中 {passed} 项通过、{failed} 项未满足{lacking}。",
)
_LACKING = Words(", left out: {}", "，未测：{}")
_AGAIN = Words("How to reproduce", "如何复现")
_MADE = Words(
    "The run was made by this command, with credentials in place of `{}`:", "本次运行由以下命令完成（`{}` 处为凭据）："
)
_REPEAT = Words(
    "Install version {suite} of the suite (`pip install .` in a clone of that version). In this folder, the first "
    "command judges the recorded answers again: it needs no service, and the claims must come out the same. The second "
    "makes the run again, against a service of your own:",
    "安装套件 {suite} 版（在该版本的克隆中执行 `pip install .`）。在本文件夹中，第一条命令对记录的响应重新判定，"
    "无需服务，结论应与此相同；第二条命令对您自己的服务重新运行：",
)
_LIMIT = Words(
    "That the report follows from the recorded answers can be checked by anybody. Who gave the answers, the files do "
    "not show: whoever has to know runs the second command, with a nonce of his own.",
    "任何人均可核实报告出自所记录的响应。文件不能说明响应出自何者：需要确知者可自选随机种子，执行第二条命令。",
)
_NOTES = Words("The vendor's own words are in `{}`.", "厂商说明见 `{}`。")
HEADER = "NAME: VALUE"
"""What stands for a header with credentials in a command."""

SUBMISSION, DECLARATION, README, NOTES = "submission.json", "declaration.json", "README.md", "notes.md"
OWN = frozenset({SUBMISSION, DECLARATION, README, NOTES})
"""Files of a submission that are not of its report."""
PACKED = {FILE_NAME: PACKED_NAME, kept_scores.FILE_NAME: kept_scores.PACKED_NAME}
"""Files of a report that are kept compressed, and their names then."""
REFERENCE = "reference"
"""Name under which the reference stands among the implementations; its results are those of the committed runs."""
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_SLUG = 64
LARGEST_NOTES = 1 << 16
"""Bytes of the vendor's words."""
Passed = Callable[[str, int, int], None]

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


def readme(submission: Submission, notes: str = "") -> str:
    """Markdown, English before Chinese; ``notes`` is the name of the file with the vendor's words."""
    return "\n".join([*_in_one("en", submission, notes), *_in_one("zh", submission, notes)])


def quoted(text: str) -> str:
    """Text of others as Markdown that shows it and means nothing: code on one line."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"


def _in_one(language: Language, submission: Submission, notes: str) -> list[str]:
    product = submission.implementation
    vendor = f" ({product.vendor})" if product.vendor else ""
    said = _SAID.in_(language).format(
        implementation=quoted(f"{product.name} {product.version}{vendor}"),
        suite=submission.suite_version,
        spec=submission.spec_version,
        level=submission.run_level,
        date=f"{submission.finished_at:%Y-%m-%d}",
        contact=quoted(submission.contact),
    )
    return [
        f"# {_TITLE.in_(language).format(submission.name)}\n",
        f"{said}\n",
        *_claims(language, submission),
        *([_NOTES.in_(language).format(notes), ""] if notes else []),
        f"## {_AGAIN.in_(language)}\n",
        _MADE.in_(language).format(HEADER),
        f"\n```sh\n{submission.made_by}\n```\n",
        _REPEAT.in_(language).format(suite=submission.suite_version),
        "\n```sh\n" + "\n".join(submission.repeat_by) + "\n```\n",
        f"{_LIMIT.in_(language)}\n",
    ]


def _claims(language: Language, submission: Submission) -> list[str]:
    lines = [
        _COUNTED.in_(language).format(
            profile=claim.profile,
            outcome=OUTCOMES[claim.outcome].in_(language),
            passed=claim.passed,
            judged=claim.judged,
            failed=claim.failed,
            lacking=_LACKING.in_(language).format(", ".join(claim.lacking)) if claim.lacking else "",
        )
        for claim in submission.claims
    ]
    return [*lines, ""]


class NotSubmittable(Exception):
    """A report cannot be handed in as it is.

    Attributes:
        hint: What to do about it.
    """

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(cause)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class PendingSubmission:
    """A submission that is not written yet.

    Attributes:
        submission: What is said in it.
        files: Content of each of its files, by name.
        warnings: What whoever hands it in should know.
    """

    submission: Submission
    files: Mapping[str, bytes]
    warnings: Sequence[str]


def slug_of(name: str) -> str:
    """A name for folders and addresses out of that of a product; empty where it has no letter of ASCII and no digit."""
    return "-".join(re.findall(r"[a-z0-9]+", name.lower()))[:LONGEST_SLUG].strip("-")


def is_name(text: str) -> bool:
    """Whether a submission may be named so."""
    return len(text) <= LONGEST_SLUG and SLUG.fullmatch(text) is not None


def prepare(
    folder: Path,
    contact: str,
    name: str = "",
    notes: Path | None = None,
    data: Path | None = None,
    passed: Passed | None = None,
) -> PendingSubmission:
    """Make a submission of a report, after judging it again.

    Args:
        folder: Of the report.
        contact: Who answers questions about it.
        name: Of the submission; made of the implementation's where it is empty.
        notes: File with the vendor's own words, UTF-8.
        data: Folder of measurements that do not come with the suite, where the run used any.
        passed: Told how much of a long check has been judged.

    Raises:
        NotSubmittable: The report is none that can be handed in, or something given with it is not right.
    """
    if not contact.strip():
        raise NotSubmittable("the contact is empty", "name with --contact who answers questions, such as an address")
    report = report_of(folder)
    hold_claiming(report)
    words = _notes_of(notes)
    slug = _slug(name, report)
    _hold_following(folder, data, passed)
    files = dict(_records(folder)) | words
    assert report.declaration is not None  # nothing is claimed without one
    files[DECLARATION] = text_of(report.declaration)
    header = Transcript.read(folder).header
    submission = submission_of(report, header, slug, contact.strip(), ())
    files[README] = readme(submission, NOTES if words else "").encode()
    listed = [SubmittedFile(name=file, digest=digest_of(files[file])) for file in sorted(files)]
    submission = submission.model_copy(update={"files": listed})
    files[SUBMISSION] = text_of(submission)
    wrong = schema.errors("Submission", json.loads(files[SUBMISSION]))
    if wrong:
        cause = f"{wrong[0].pointer.lstrip('/') or 'the submission'}: {wrong[0].detail}"
        raise NotSubmittable(cause, "a contact is a line of at most 2048 characters, such as a name and an address")
    return PendingSubmission(submission, files, tuple(_warnings(report)))


def write(folder: Path, prepared: PendingSubmission, report: Path) -> None:
    """Write a submission into a folder that is not there yet, is empty, or holds an earlier submission alone.

    Raises:
        NotSubmittable: It holds other files, or is that of the ``report``.
    """
    if folder.resolve() == report.resolve():
        raise NotSubmittable(f"{folder} is the folder of the report", "name another folder for the submission")
    if folder.exists() and not folder.is_dir():
        raise NotSubmittable(f"{folder} is a file", "name a folder for the submission")
    present = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    foreign = [name for name in present if name not in OWN | RECORDS | {REPORT}]
    if foreign or (present and SUBMISSION not in present):
        raise NotSubmittable(
            f"{folder} holds {', '.join((foreign or present)[:3])}, which is not of a submission",
            "give an empty folder or one of an earlier submission",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in present:
        (folder / name).unlink()
    for name, content in prepared.files.items():
        (folder / name).write_bytes(content)


def report_of(folder: Path) -> ConformanceReport:
    """The report of a folder.

    Raises:
        NotSubmittable: There is none that can be read.
    """
    try:
        return ConformanceReport.model_validate_json((folder / REPORT).read_bytes())
    except OSError as error:
        raise NotSubmittable(
            f"{folder / REPORT} cannot be read ({error.strerror})",
            "give the folder that `kuayu conformance run -o` wrote",
        ) from error
    except ValidationError as error:
        raise NotSubmittable(
            f"{folder / REPORT} is no report of this version of the suite ({_first(error)})",
            "give the folder as `kuayu conformance run -o` wrote it",
        ) from error


def hold_claiming(report: ConformanceReport) -> None:
    """See that something is claimed, met or not.

    Raises:
        NotSubmittable: Nothing is.
    """
    whole = "run without --requirement, at level quick or full"
    if is_diagnosis(report):
        raise NotSubmittable(f"the run was limited to {len(report.selection)} requirements: it is a diagnosis", whole)
    report_claims = claims(report)
    if not report_claims:
        raise NotSubmittable(
            "no profile but COM and no sub-profile was declared and asked for, so that nothing is claimed",
            "declare the profiles that you implement, or parts of them, and run over at least one of them",
        )
    if all(claim.outcome is Outcome.NOT_CLAIMED for claim in report_claims):
        lacking = report_claims[0].lacking
        raise NotSubmittable(
            f"nothing is claimed at level {report.run_level}: {len(lacking)} requirements of "
            f"{report_claims[0].profile} and COM were left out, {', '.join(lacking[:3])} among them",
            whole,
        )


def _hold_following(folder: Path, data: Path | None, passed: Passed | None) -> None:
    """See that the report follows from its transcript.

    Raises:
        NotSubmittable: It does not, or nobody can tell.
    """
    try:
        differing = [verdict for verdict in verify(folder, data, passed) if not verdict.agrees]
    except TranscriptError as error:
        raise NotSubmittable(
            f"the report cannot be judged again: {error}", "hand in what can be judged again"
        ) from error
    if differing:
        raise NotSubmittable(
            f"{differing[0].name} {differing[0].why}",
            f"`kuayu conformance verify {folder}` shows all that differs; hand in the folder as the run wrote it",
        )


def _notes_of(path: Path | None) -> dict[str, bytes]:
    if path is None:
        return {}
    try:
        content = path.read_bytes()
        content.decode("utf-8")
    except OSError as error:
        raise NotSubmittable(f"{path} cannot be read ({error.strerror})", "name a text file") from error
    except UnicodeDecodeError as error:
        raise NotSubmittable(f"{path} is not UTF-8 (byte {error.start})", "name a text file in UTF-8") from error
    if len(content) > LARGEST_NOTES:
        raise NotSubmittable(f"{path} has {len(content)} bytes", f"notes have at most {LARGEST_NOTES}")
    return {NOTES: content}


def _slug(name: str, report: ConformanceReport) -> str:
    assert report.declaration is not None
    product = report.declaration.implementation.name
    slug = name or slug_of(product)
    hint = "give one with --name: small letters of ASCII and digits, joined by hyphens, such as acme-scheduler"
    if not slug:
        raise NotSubmittable(f"the name {product} has no letters of ASCII to make a name for the submission of", hint)
    if not is_name(slug):
        raise NotSubmittable(f"{slug} is no name for a submission", hint)
    if slug == REFERENCE:
        raise NotSubmittable(f"the name {REFERENCE} is that of the reference", hint)
    return slug


def _records(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The report and the files from which it follows, compressed where they are long."""
    yield REPORT, (folder / REPORT).read_bytes()
    for name in sorted(RECORDS):
        if not (folder / name).is_file():
            continue
        content = (folder / name).read_bytes()
        yield (PACKED[name], lzma.compress(content, preset=6)) if name in PACKED else (name, content)


def submission_of(
    report: ConformanceReport, header: Event, name: str, contact: str, files: Iterable[SubmittedFile]
) -> Submission:
    """What is said of a report.

    Args:
        report: The report.
        header: What its transcript begins with.
        name: Of the submission.
        contact: Who answers questions about it.
        files: All other files of its folder.
    """
    assert report.declaration is not None
    run = run_command(report, header)
    return Submission.model_construct(
        spec_version=report.spec_version,
        suite_version=report.suite_version,
        name=name,
        implementation=report.declaration.implementation,
        contact=contact,
        run_level=report.run_level,
        claims=[
            ProfileClaim(
                profile=claim.profile,
                outcome=ClaimOutcome(claim.outcome.value),
                judged=claim.judged,
                passed=claim.passed,
                failed=claim.failed,
                lacking=list(claim.lacking),
            )
            for claim in claims(report)
        ],
        nonce=report.nonce,
        started_at=report.started_at,
        finished_at=report.finished_at,
        submitted_at=datetime.now(UTC).replace(microsecond=0),
        made_by=run,
        repeat_by=["kuayu conformance check-submission .", run_command(report, header, target="URL", output="again")],
        files=list(files),
    )


def run_command(report: ConformanceReport, header: Event, target: str = "", output: str = "report") -> str:
    """The command that makes a run, as far as its transcript tells; credentials are none of it.

    Args:
        report: Of the run.
        header: What its transcript begins with.
        target: Another target than that of the run.
        output: Folder for the report.
    """
    seed = report.nonce.removeprefix("seed-")
    drawn = ["--seed", seed] if seed != report.nonce and re.fullmatch(r"-?\d+", seed) else ["--nonce", report.nonce]
    command = ["kuayu", "conformance", "run", "--target", target or report.target]
    if header.get("other_tenant"):
        command += ["--header", HEADER, "--other-tenant-header", HEADER]
    for profile in (*report.profiles, *(report.sub_profiles or ())):
        command += ["--profile", profile]
    for requirement, reason in header.get("excluded", {}).items():
        command += ["--exclude", f"{requirement}={reason}"]
    data = ["--data", "DIR"] if report.data else []
    return shlex.join([*command, "--level", report.run_level.value, *drawn, *data, "-o", output])


def _warnings(report: ConformanceReport) -> Iterator[str]:
    counted = Counter(result.verdict for result in report.results if result.required)
    for verdict in (Verdict.fail, Verdict.harness_error, Verdict.inconclusive, Verdict.not_testable):
        if counted[verdict]:
            named = [row.requirement for row in report.results if row.required and row.verdict is verdict]
            rest = f" and {len(named) - 5} more" if len(named) > 5 else ""  # noqa: PLR2004 - as many as fit a line
            yield f"{counted[verdict]} {verdict.value}: {', '.join(named[:5])}{rest}; the table shows it so"
    if report.called_off:
        yield f"the run ended before all checks had: {report.called_off}"


def digest_of(content: bytes) -> str:
    """Digest of the bytes of a file, as type Digest of the model."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def text_of(model: KuayuModel) -> bytes:
    """Content of the file that a part of the model is written to."""
    text: str = model.model_dump_json(indent=2, exclude_none=True)
    return (text + "\n").encode()


def _first(error: ValidationError) -> str:
    place = error.errors()[0]
    return f"{'/'.join(map(str, place['loc']))}: {place['msg']}"


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
