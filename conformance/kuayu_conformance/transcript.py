"""The record of a run, one JSON object a line: how it is written, read back, and held against its chain.

The first line is the header (what was run and where), the last the footer (when it ended). Between them stands what
the suite learned from outside, each line with its episode and its number therein. Parts of an episode that go on beside
each other are episodes of their own, by its name, a slash and a label. The request itself is not kept but its digest:
whoever replays the run makes the request again from the nonce and must come to the same digest. In a run with
``--full-requests`` the request is kept beside its digest (:func:`pack_request`), and at the end of an episode a line
``truth`` says what was played: then a program that has nothing of the suite can judge the run.

A run that was broken off has no footer; where it had the time to say so, a line ``called off`` says when and why, and
what had ended is judged. Where it was gone on with, a line ``resumed`` says when, and a line ``cut`` how
many events stand of an episode. Nothing is taken out of the file but a last line that is not whole: what does not stand
remains, for whoever wants to see it, and counts for nothing.

Every line carries a link to all before it, the chain:

1. The link of a line is the first ``LINK_DIGITS`` hex digits of the SHA-256 over all lines from the header to it, each
   with its line end and without its own link. It stands last in the line, as member ``chain``, in just the bytes that
   :meth:`Chain.extended` writes; nothing is parsed to find it.
2. So whoever changes, leaves out, puts in or re-times an event breaks the chain there, and the first line that does not
   follow is named. Links are short, since what counts is carried in full from line to line; random digits do not
   compress, and a full run writes 700 000 of them.
3. A chain has no secret: whoever writes the whole transcript anew makes one that holds. What ties it to a person and a
   time is a signature over the file (:mod:`.proof`), and what ties its beginning is a challenge (:mod:`.origin`).
4. Transcripts of before have no chain, and are gone on with without one. A chain that begins later than with the
   header, or stops, is broken.
"""

import base64
import hashlib
import json
import lzma
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self, overload

LINK_DIGITS = 16
_LINK_BEFORE, _LINK_BEHIND = b',"chain":"', b'"}'
_LINK_LENGTH = len(_LINK_BEFORE) + LINK_DIGITS + len(_LINK_BEHIND)

FILE_NAME = "transcript.jsonl"
PACKED_NAME = f"{FILE_NAME}.xz"
"""A transcript that is kept for long may be compressed; digests are of what is in it."""
Event = Mapping[str, Any]
"""A line of a record, whose members depend on its kind; a record of before may lack some, or come from a stranger."""


class Chain:
    """The chain of a transcript, as far as it was written or read.

    Attributes:
        lines: Lines so far.
        linked: Whether they carry links; None before the first.
        broken: What does not follow, and where; empty where all does.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.linked: bool | None = None
        self.broken = ""
        self._sum = hashlib.sha256()

    @property
    def holds(self) -> bool:
        """Whether there is a chain, and every line follows."""
        return bool(self.linked) and not self.broken

    def extended(self, line: bytes) -> bytes:
        """The next line, a JSON object in UTF-8 with at least one member and no line end, with its link."""
        self.lines += 1
        self.linked = True
        return line[:-1] + _LINK_BEFORE + self._next(line) + _LINK_BEHIND

    def check(self, line: bytes) -> None:
        """Hold the next line, without its line end, against its link."""
        self.lines += 1
        if self.broken:
            return
        link = _link_of(line)
        if self.linked is None:
            self.linked = link is not None
        if not self.linked:
            if link is not None:
                self.broken = f"line {self.lines} carries a link of a chain that does not begin with the header"
        elif link is None:
            self.broken = f"the chain stops at line {self.lines}"
        elif self._next(line[:-_LINK_LENGTH] + b"}") != link:
            self.broken = (
                f"line {self.lines} does not follow from the lines before it: there an event was changed, put in or "
                "left out"
            )

    def _next(self, line: bytes) -> bytes:
        self._sum.update(line)
        self._sum.update(b"\n")
        return self._sum.copy().hexdigest()[:LINK_DIGITS].encode()


def _link_of(line: bytes) -> bytes | None:
    """The link that a line ends with; None where it ends otherwise."""
    if not (line.endswith(_LINK_BEHIND) and line[-_LINK_LENGTH:].startswith(_LINK_BEFORE)):
        return None
    return line[len(_LINK_BEFORE) - _LINK_LENGTH : -len(_LINK_BEHIND)]


class Events(Sequence[Event]):
    """Events of an episode, read from the bytes of the file when they are looked at: read, they take ten times as much.

    Args:
        data: The file.
        spans: Where each of them begins and ends in it.
    """

    def __init__(self, data: bytes, spans: Sequence[tuple[int, int]]) -> None:
        self._data, self._spans = data, spans

    def __len__(self) -> int:
        return len(self._spans)

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> "Events": ...

    def __getitem__(self, place: int | slice) -> "Event | Events":
        if isinstance(place, slice):
            return Events(self._data, self._spans[place])
        begin, end = self._spans[place]
        event: Event = json.loads(self._data[begin:end])
        return event


class TranscriptError(Exception):
    """The transcript cannot be read, or does not fit what the suite does on replay."""


def request_digest(method: str, path: str, headers: Mapping[str, str], body: bytes) -> str:
    """Digest that names a request; credentials are not among ``headers``."""
    head = json.dumps([method, path, sorted(headers.items())], ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(head.encode() + b"\n" + body).hexdigest()


@dataclass(frozen=True)
class Request:
    """A request before credentials are added to it.

    Attributes:
        method: HTTP method.
        path: Path and query.
        headers: Beside the credentials.
        body: Bytes to send.
        tenant: Which credentials: ``own``, ``other`` or ``none``.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    tenant: str

    @cached_property
    def digest(self) -> str:
        """Digest that names it in the transcript."""
        return request_digest(self.method, self.path, self.headers, self.body)


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


PLAIN = 512
"""Bytes up to which a request that is text is kept as it is; longer ones are packed, as they are much alike."""


def pack_request(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """What was sent, without credentials, as members of an event.

    These are ``request_headers``, and the body as ``request_body``, or as ``request_body_zlib`` where it is longer than
    :data:`PLAIN` or no UTF-8: base64 of a zlib stream (RFC 1950).
    """
    try:
        plain = body.decode("utf-8") if len(body) <= PLAIN else None
    except UnicodeDecodeError:
        plain = None
    packed = {"request_body": plain} if plain is not None else {"request_body_zlib": _deflated(body)}
    return {"request_headers": dict(headers), **packed}


def _deflated(body: bytes) -> str:
    return base64.b64encode(zlib.compress(body)).decode("ascii")


def unpack_request(event: Event) -> tuple[dict[str, str], bytes]:
    """Inverse of :func:`pack_request`.

    Raises:
        ValueError: The event holds no such request.
    """
    match event:
        case {"request_headers": dict(headers), "request_body": str(plain)}:
            return headers, plain.encode("utf-8", "surrogatepass")
        case {"request_headers": dict(headers), "request_body_zlib": str(packed)}:
            try:
                return headers, zlib.decompress(base64.b64decode(packed, validate=True))
            except zlib.error as error:
                raise ValueError(str(error)) from error
    raise ValueError("it is not whole")


def altered_request(event: Event) -> str:
    """Why the request that an event keeps is not the one whose digest it has; empty where it is, or none is kept."""
    if not any(name.startswith("request_") for name in event):
        return ""
    try:
        headers, body = unpack_request(event)
        digest = request_digest(str(event.get("method")), str(event.get("path")), headers, body)
    except (ValueError, TypeError, AttributeError) as error:
        return f"cannot be read ({error})"
    return "" if digest == event.get("request") else "is not the one whose digest stands beside it"


@dataclass(frozen=True)
class Transcript:
    """A transcript read back.

    Attributes:
        header: What was run, where, with which nonce.
        footer: When it ended; empty where it was broken off.
        called_off: When and why it was broken off, where it could still say so and was not gone on with.
        episodes: Events of each episode that stand, in order.
        digest: Digest of the bytes of the file.
        size: Bytes of the file.
        whole: Bytes of it up to the end of the last whole line.
        resumptions: When a run that was broken off was gone on with, and of which episodes something was asked again.
        begun_anew: How often each episode was begun anew.
        uncleared: Events since what had been made at the target was last removed, whether they stand or not.
        chain: The chain of its lines; reading says what breaks it, and refuses nothing.
        altered: Which request that is kept is not the one whose digest was recorded, and why; empty where all are.
    """

    header: Event
    footer: Event
    episodes: Mapping[str, Sequence[Event]]
    digest: str
    size: int = 0
    whole: int = 0
    resumptions: tuple[Event, ...] = ()
    begun_anew: Mapping[str, int] = field(default_factory=dict)
    uncleared: Sequence[Event] = ()
    called_off: Event = field(default_factory=dict)
    chain: Chain = field(default_factory=Chain, compare=False)
    altered: str = ""

    @property
    def wrong(self) -> str:
        """What in the file cannot be as the suite wrote it; empty where nothing is."""
        return self.chain.broken or self.altered

    @classmethod
    def read(cls, folder: Path, *, broken_off: bool = False) -> Self:
        """Read ``folder``/transcript.jsonl; that of a run that was ``broken_off`` may lack its end.

        Raises:
            TranscriptError: The file is missing, cut short, or not a transcript.
        """
        path = folder / FILE_NAME
        data = _bytes_of(path)
        whole = _whole(data) if broken_off else len(data)
        read, chain = _Read(), Chain()
        for event, span in _events(data, whole, path):
            chain.check(data[slice(*span)])
            read.take(event, span)
        if "origin" in read.header and not (chain.linked or chain.broken):
            chain.broken = "it says where it comes from, as transcripts with a chain do, and has none"
        if not read.header or not (read.footer or read.called_off or broken_off):
            raise TranscriptError(
                f"{path} has no header or no footer; the run was cut short, so go on with it (--resume) or run it again"
            )
        return cls(
            read.header,
            read.footer,
            {name: Events(data, spans) for name, spans in read.episodes.items()},
            "sha256:" + hashlib.sha256(data).hexdigest(),
            len(data),
            whole,
            tuple(read.resumptions),
            read.begun_anew,
            Events(data, read.uncleared),
            read.called_off,
            chain,
            read.altered,
        )


Span = tuple[int, int]


class _Read:
    """A transcript as far as it was read."""

    def __init__(self) -> None:
        self.header: Event = {}
        self.footer: Event = {}
        self.episodes: dict[str, list[Span]] = {}
        self.resumptions: list[dict[str, Any]] = []
        self.begun_anew: Counter[str] = Counter()
        self.uncleared: list[Span] = []
        self.called_off: Event = {}
        self.altered = ""

    def take(self, event: Event, span: Span) -> None:
        """Take the next event, and where it stands in the file.

        Raises:
            TranscriptError: It cannot be understood.
        """
        match event.get("kind"):
            case "header":
                self.header = event
            case "footer":
                self.footer = event
            case "resumed":
                self.resumptions.append({**event, "again": []})
                self.uncleared.clear()
                self.called_off = {}
            case "cut":
                self._cut(event)
            case "cleaned":
                self.uncleared.clear()
            case "called off":
                self.called_off = event
            case _:
                if not self.altered and (why := altered_request(event)):
                    self.altered = f"{event.get('episode')} event {event.get('number')}: the request that is kept {why}"
                self.episodes.setdefault(str(event.get("episode")), []).append(span)
                self.uncleared.append(span)

    def _cut(self, event: Event) -> None:
        """Of an episode that had not ended, only so many events stand."""
        try:
            name, stand = event["episode"], event["stand"]
            events = self.episodes.setdefault(name, [])
            again = self.resumptions[-1]["again"]
            if events[stand:] and name not in again:
                again.append(name)
            del events[stand:]
            self.begun_anew[name] += stand == 0
        except (KeyError, TypeError, IndexError) as error:
            raise TranscriptError(f"the transcript does not say what stands of an episode: {error}") from error


def _bytes_of(path: Path) -> bytes:
    """The transcript as it was written, also where it was compressed since.

    Raises:
        TranscriptError: It is not there, or cannot be read.
    """
    packed = path.with_name(PACKED_NAME)
    try:
        return path.read_bytes() if path.exists() or not packed.exists() else lzma.decompress(packed.read_bytes())
    except lzma.LZMAError as error:
        raise TranscriptError(f"{packed} cannot be unpacked: {error}") from error
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read ({error.strerror}); is {path.parent} a report folder?") from error


def _whole(data: bytes) -> int:
    """Bytes up to the end of the last whole line: the very last may have been cut off with the run."""
    end = data.rfind(b"\n") + 1
    begin = data.rfind(b"\n", 0, max(0, end - 1)) + 1
    try:
        json.loads(data[begin:end])
    except ValueError:
        return begin
    return end


def _events(data: bytes, whole: int, path: Path) -> Iterator[tuple[dict[str, Any], Span]]:
    """Events of the first so many bytes, each with where it begins and ends."""
    begin = number = 0
    while begin < whole:
        number += 1
        end = data.find(b"\n", begin, whole)
        end = whole if end < 0 else end
        try:
            event = json.loads(data[begin:end])
        except ValueError as error:
            raise TranscriptError(f"{path} line {number} is not JSON: {error}") from error
        if not isinstance(event, dict):
            raise TranscriptError(f"{path} line {number} is not an object")
        yield event, (begin, end)
        begin = end + 1


class Sink(Protocol):
    """Takes events as they happen."""

    def write(self, event: Event) -> None:
        """Take one event."""


class TranscriptWriter:
    """Appends events to the file as they happen; episodes may run side by side."""

    def __init__(self, file: BinaryIO, chain: Chain) -> None:
        """Append to a file that nobody else writes to; its chain is gone on with, where it has one."""
        self._file = file
        self._chain = chain
        self._lock = threading.Lock()

    @classmethod
    def begin(cls, folder: Path, header: Event) -> Self:
        """Open ``folder``/transcript.jsonl for writing and put the header into it."""
        writer = cls(_claimed((folder / FILE_NAME).open("wb"), folder), Chain())
        writer.write({"kind": "header", **header})
        return writer

    @classmethod
    def go_on(cls, folder: Path, begun: Transcript) -> Self:
        """Open ``folder``/transcript.jsonl behind the last whole line of what was read of it.

        Raises:
            TranscriptError: Another process writes to it.
        """
        file = _claimed((folder / FILE_NAME).open("r+b"), folder)
        if file.seek(0, 2) != begun.size:
            file.close()
            raise TranscriptError(f"another process has written to {folder / FILE_NAME} meanwhile")
        file.truncate(begun.whole)
        file.seek(begun.whole)
        return cls(file, begun.chain)

    def write(self, event: Event) -> None:
        """Append one event."""
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        with self._lock:
            self._file.write((line if self._chain.linked is False else self._chain.extended(line)) + b"\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file; it may be written to by others then."""
        self._file.close()


def _claimed(file: BinaryIO, folder: Path) -> BinaryIO:
    """The file, locked as long as it is open, so that two runs never write to one transcript.

    Raises:
        TranscriptError: Another process has it.
    """
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise TranscriptError(f"another process writes to {folder / FILE_NAME}; it has to end first") from None
        except OSError:  # a file system without locks
            return file
    return file
