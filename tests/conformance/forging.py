"""What somebody can do to a transcript who has the file, an editor, and this suite."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.folder import write
from kuayu_conformance.run.judgement import judge
from kuayu_conformance.transcript import FILE_NAME, Chain, Transcript

Line = dict[str, Any]


def lines_of(folder: Path) -> list[bytes]:
    """Lines of a transcript, with their ends."""
    return (folder / FILE_NAME).read_bytes().splitlines(keepends=True)


def number_of(folder: Path, fits: Callable[[Line], bool]) -> int:
    """Number, from nought, of the first line that fits."""
    return next(number for number, line in enumerate(lines_of(folder)) if fits(json.loads(line)))


def put(folder: Path, lines: Sequence[bytes]) -> None:
    """Write lines as they are."""
    (folder / FILE_NAME).write_bytes(b"".join(lines))


def edited(line: bytes, **members: Any) -> bytes:
    """A line with other members, under the link that it had."""
    return json.dumps({**json.loads(line), **members}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def without_links(lines: Sequence[bytes]) -> list[bytes]:
    """Lines as they were written before there were chains."""
    events = [{name: value for name, value in json.loads(line).items() if name != "chain"} for line in lines]
    return [json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for event in events]


def with_links_anew(lines: Sequence[bytes]) -> list[bytes]:
    """Lines with links that hold: whoever writes all of a transcript can write these too."""
    chain = Chain()
    return [chain.extended(line.rstrip(b"\n")) + b"\n" for line in without_links(lines)]


def report_made_anew(folder: Path) -> None:
    """Make the report that follows from the transcript as it is by now."""
    write(folder, judge(Transcript.read(folder)))
