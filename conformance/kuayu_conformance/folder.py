"""The report folder: what is in it, how it is written, and how it is held against its transcript."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kuayu_conformance
from kuayu_conformance import kept_scores
from kuayu_conformance.check import Check
from kuayu_conformance.kept_scores import SPOT_CHECKS, KeptScores
from kuayu_conformance.proof import SIGNATURE
from kuayu_conformance.rendering import badge, junit, page
from kuayu_conformance.run.judgement import judge, judge_some
from kuayu_conformance.transcript import FILE_NAME, PACKED_NAME, Transcript, TranscriptError
from kuayu_schemas.models import ConformanceReport, Verdict

REPORT, BADGE = "report.json", "badge.svg"

RECORDS = frozenset({FILE_NAME, PACKED_NAME, kept_scores.FILE_NAME, kept_scores.PACKED_NAME, SIGNATURE})
"""Files of which the report follows, as they are or compressed, and signatures over both."""


class FolderTaken(Exception):
    """The output folder holds something that is not a report."""


def rendered(report: ConformanceReport) -> dict[str, bytes]:
    """Every file of the folder but the transcript, by name; the same report gives the same bytes.

    There is a badge only where something is claimed.
    """
    files = {
        REPORT: (report.model_dump_json(indent=2, exclude_none=True) + "\n").encode(),
        "report.html": page(report).encode(),
        "junit.xml": junit(report).encode(),
    }
    drawn = badge(report)
    return files if drawn is None else {**files, BADGE: drawn.encode()}


def hold_free(folder: Path) -> None:
    """See that a folder is not there yet, or holds an earlier report and nothing else.

    Raises:
        FolderTaken: It holds other files.
    """
    ours = {REPORT, "report.html", "junit.xml", BADGE, *RECORDS}
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in ours) if folder.is_dir() else []
    if foreign:
        raise FolderTaken(f"{folder} holds {', '.join(foreign[:3])}, which is not of a report")


def make_ready(folder: Path) -> None:
    """Make the folder, or empty it where it holds an earlier report and nothing else.

    Raises:
        FolderTaken: It holds other files, which are left alone.
    """
    hold_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in list(folder.iterdir()):
        path.unlink()


def write(folder: Path, report: ConformanceReport) -> None:
    """Write everything that is rendered from the report."""
    for name, data in rendered(report).items():
        (folder / name).write_bytes(data)


@dataclass(frozen=True)
class FileVerdict:
    """Whether one file of the folder, or one result in it, is what the transcript leads to, and why not."""

    name: str
    agrees: bool
    why: str = ""


def verify_some(
    folder: Path,
    wanted: Callable[[Check[Any]], bool],
    data: Path | None = None,
    passed: Callable[[str, int, int], None] | None = None,
    spot_checks: int | None = SPOT_CHECKS,
    processes: int = 1,
    transcript: Transcript | None = None,
) -> Iterator[FileVerdict]:
    """Judge some checks of a report again, and hold each result in it against the outcome.

    With several ``processes`` checks are judged side by side.

    Raises:
        TranscriptError: As :func:`verify`.
    """
    transcript = transcript or transcript_of(folder)
    report = ConformanceReport.model_validate_json((folder / REPORT).read_bytes())
    why = transcript.wrong or "is not the one that the report names"
    yield FileVerdict(FILE_NAME, not transcript.wrong and report.transcript == transcript.digest, why)
    said = {result.requirement: result for result in report.results}
    score_store = KeptScores.of(folder, spot_checks=spot_checks)
    for name, result in judge_some(transcript, wanted, data, passed, score_store, processes).items():
        why = f"the transcript leads to {result.verdict.value}"
        if result.verdict is Verdict.harness_error:
            why += f": {result.reason}"
        yield FileVerdict(name, said.get(name) == result, why)


def transcript_of(folder: Path) -> Transcript:
    """The transcript of a folder, where this version of the suite can judge it again.

    Raises:
        TranscriptError: It cannot be read, or was made by another version of the suite.
    """
    transcript = Transcript.read(folder)
    made_by = transcript.header.get("suite_version")
    if made_by != kuayu_conformance.__version__:
        raise TranscriptError(
            f"the report was made by version {made_by} of the suite, this is {kuayu_conformance.__version__}; "
            f"install that version to judge it again"
        )
    return transcript


def verify(
    folder: Path,
    data: Path | None = None,
    passed: Callable[[str, int, int], None] | None = None,
    spot_checks: int | None = SPOT_CHECKS,
    transcript: Transcript | None = None,
) -> Iterator[FileVerdict]:
    """Judge the transcript again and hold every file of the folder against the outcome, byte for byte.

    A folder that is kept for long, with its transcript compressed, need not hold what can be drawn from the report.

    ``data`` is the folder of measurements and traces that do not come with the suite; ``passed`` is told how much of a
    long check has been judged. Of the scores that are kept beside the transcript so many are computed again, all of
    them where it is None. A ``transcript`` that was read already is not read again.

    Raises:
        TranscriptError: The transcript cannot be read, or was made by another version of the suite.
    """
    score_store = KeptScores.of(folder, spot_checks=spot_checks)
    transcript = transcript or transcript_of(folder)
    if transcript.wrong:
        yield FileVerdict(FILE_NAME, agrees=False, why=transcript.wrong)
    expected = rendered(judge(transcript, data, passed, score_store))
    for name, content in expected.items():
        path = folder / name
        if not path.is_file():
            if name == REPORT or (folder / FILE_NAME).is_file():
                yield FileVerdict(name, agrees=False, why="is missing")
        elif path.read_bytes() != content:
            yield FileVerdict(name, agrees=False, why=_first_difference(path.read_bytes(), content))
        else:
            yield FileVerdict(name, agrees=True)
    for path in sorted(folder.iterdir()):
        if path.name not in expected and path.name not in RECORDS:
            yield FileVerdict(path.name, agrees=False, why="does not belong to a report")


def _first_difference(actual: bytes, expected: bytes) -> str:
    length = min(len(actual), len(expected))
    place = next((i for i in range(length) if actual[i] != expected[i]), length)
    line = expected[:place].count(b"\n") + 1
    return f"differs from what the transcript leads to, first in line {line} (byte {place})"
