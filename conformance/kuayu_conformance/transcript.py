"""The record of a run, one JSON object a line.

The first line is the header (what was run and where), the last the footer (when it ended). Between them stands what
the suite learned from outside, each line with its episode and its number therein. The request itself is not kept but
its digest: whoever replays the run makes the request again from the nonce and must come to the same digest.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

FILE_NAME = "transcript.jsonl"

Event = Mapping[str, Any]


class TranscriptError(Exception):
    """The transcript cannot be read, or does not fit what the suite does on replay."""


def request_digest(method: str, path: str, headers: Mapping[str, str], body: bytes) -> str:
    """Digest that names a request; credentials are not among ``headers``."""
    head = json.dumps([method, path, sorted(headers.items())], ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(head.encode() + b"\n" + body).hexdigest()


def pack(body: bytes) -> dict[str, str]:
    """Body as members of an event: text where it is UTF-8, otherwise base64."""
    try:
        return {"body": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode("ascii")}


def unpack(event: Event) -> bytes:
    """Inverse of :func:`pack`."""
    if "body_base64" in event:
        return base64.b64decode(event["body_base64"])
    return str(event.get("body", "")).encode("utf-8")


class TranscriptWriter:
    """Appends events to the file as they happen; episodes may run side by side."""

    def __init__(self, folder: Path, header: Event) -> None:
        """Open ``folder``/transcript.jsonl for writing and put the header into it."""
        self._file: BinaryIO = (folder / FILE_NAME).open("wb")
        self._lock = threading.Lock()
        self.write({"kind": "header", **header})

    def write(self, event: Event) -> None:
        """Append one event."""
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def close(self, footer: Event) -> None:
        """Put the footer into the file and close it."""
        self.write({"kind": "footer", **footer})
        self._file.close()


@dataclass(frozen=True)
class Transcript:
    """A transcript read back.

    Attributes:
        header: What was run, where, with which nonce.
        footer: When it ended.
        episodes: Events of each episode, in order.
        digest: Digest of the bytes of the file.
    """

    header: Event
    footer: Event
    episodes: Mapping[str, tuple[Event, ...]]
    digest: str

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``folder``/transcript.jsonl.

        Raises:
            TranscriptError: The file is missing, cut short, or not a transcript.
        """
        path = folder / FILE_NAME
        try:
            data = path.read_bytes()
        except OSError as error:
            raise TranscriptError(f"{path} cannot be read ({error.strerror}); is {folder} a report folder?") from error
        header, footer, episodes = None, None, dict[str, list[Event]]()
        for event in _events(data, path):
            match event.get("kind"):
                case "header":
                    header = event
                case "footer":
                    footer = event
                case _:
                    episodes.setdefault(str(event.get("episode")), []).append(event)
        if header is None or footer is None:
            raise TranscriptError(f"{path} has no header or no footer; the run was cut short, so run it again")
        return cls(
            header,
            footer,
            {name: tuple(events) for name, events in episodes.items()},
            "sha256:" + hashlib.sha256(data).hexdigest(),
        )


def _events(data: bytes, path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            event = json.loads(line)
        except ValueError as error:
            raise TranscriptError(f"{path} line {number} is not JSON: {error}") from error
        if not isinstance(event, dict):
            raise TranscriptError(f"{path} line {number} is not an object")
        yield event
