"""Recognition of known faults in logs: the catalogue of their forms with its sources, and the search for them.

1. ``faults/*.yaml`` has forms of lines with their sources, ``xids.csv`` the numbers of Xids. Sentences there are the
   project's own; each fact names where it is documented. What follows from an Xid follows from the resolution that
   NVIDIA's catalogue gives it.
2. In patterns ``%pci%`` stands for a PCI address, which is the subject. Examples of each fault are ``told``; those of
   ``not_told`` have some of its words and must not be told as it.
3. How sure a verdict is has three grades of evidence rather than a number that nobody has measured.
4. Fixed words are found at the speed of memory, and lines without any cost nothing more; a pattern is tried where one
   was found. Of each word four bytes are taken, the rarest in ordinary text; all places of a block are looked up by a
   hash of the four bytes there, and where they are those of a word, the whole word is compared (R. Karp, M. Rabin,
   "Efficient randomized pattern-matching algorithms", IBM Journal of Research and Development 31, 1987; with Knuth's
   multiplicative hash).
5. A pattern must stand where the message of its line begins, behind a header of the channel that the fault's source
   writes to (``headers``): what is quoted, printed as a sample or talked about has none. What a form without its header
   may tell is counted and drains nothing. A form of the kernel that may do without a header is told so where a log
   begins, and behind a line of the kernel; in the midst of a program's lines it is a quotation.
6. Patterns look only at ``REACH`` bytes before and after a word, and none has a repetition within a repetition, so that
   no line takes long.
"""

import bisect
import csv
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from kuayu.resilience.logs.headers import KERNEL, Before, Channel, Start, Starts, entry_start, host_of, starts

GRAM = 4
"""Bytes of a word that are looked up; no word is shorter."""

_BITS = 16
_FACTOR = np.uint32(0x9E3779B1)

_USUAL = {byte: place for place, byte in enumerate(b"zqjxk'[]<>()#/v0123456789:-,.bygpwfmucdlhrsniaote ")}
"""Bytes from rare to frequent in text in lower case; what is not named is rarer still."""

_EVERYWHERE = b" kernel: gpu nvidia device driver version task process memory job node error failed link info python "
"""Words of logs without any fault; four bytes of them would be found in nearly every line."""


class WordSearch:
    """Finds where words stand in blocks of bytes.

    Args:
        words: In lower case, of four bytes at least.

    Raises:
        ValueError: A word is too short.
    """

    def __init__(self, words: Iterable[bytes]) -> None:
        by_gram: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for word in words:
            if len(word) < GRAM:
                raise ValueError(f"{word!r} has fewer than {GRAM} bytes")
            offset = min(range(len(word) - GRAM + 1), key=lambda offset: _usual(word[offset : offset + GRAM]))
            by_gram[int.from_bytes(word[offset : offset + GRAM], "little")].append((offset, word))
        self._by_gram = dict(by_gram)
        self._grams = np.array(sorted(by_gram), np.uint32)
        self._known = np.zeros(1 << _BITS, np.bool_)
        self._known[_hash(self._grams)] = True

    def find(self, low: bytes, since: int, until: int) -> Iterator[tuple[int, bytes]]:
        """Places from ``since`` to before ``until`` at which a word begins, with the word; in no order."""
        for shift in range(GRAM):
            count = (len(low) - shift) // GRAM
            if count <= 0:
                continue
            values = np.frombuffer(low, np.dtype("<u4"), count, shift)
            rows = np.flatnonzero(self._known[_hash(values)])
            grams = values[rows]
            near = np.minimum(np.searchsorted(self._grams, grams), len(self._grams) - 1)
            same = self._grams[near] == grams
            for row, gram in zip(rows[same].tolist(), grams[same].tolist(), strict=True):
                for before, word in self._by_gram[gram]:
                    places = row * GRAM + shift - before
                    if since <= places < until and low.startswith(word, places):
                        yield places, word


REACH = 1024
"""Bytes before and after a word within which a line must tell a fault."""

MAX_IN_LINE = 64
"""Verdicts of one line; a line that is a whole log in itself tells no more."""

BEFORE_LINES, BEFORE_BYTES = 16, 2048
"""Lines, and bytes, before a line in which the subject of its fault may stand."""


class Follows(StrEnum):
    """What follows from a fault, from least to most.

    A job's own fault, such as asking for too much memory, never makes more than ``RESTART`` follow.
    """

    NONE = "none"
    """Nothing to do for a scheduler; perhaps for the author of the program."""
    WATCH = "watch"
    """Count it; alone it is no reason to act."""
    RESTART = "restart"
    """The job is lost and may be started again where it was."""
    DRAIN = "drain"
    """The device or node must be reset or repaired; its jobs go on elsewhere."""


_ORDER = tuple(Follows)

# Plain numbers, since flags as such cost more than the patterns.
_OF_KERNEL, _OF_LOGGER = int(Before.KERNEL), int(Before.LOGGER | Before.LOCAL)
_NOT_BARE, _STAMPED = int(Before.GATHERED | Before.LOCAL), int(Before.INSTANT)
_OF_PROGRAM = int(Before.LOGGER | Before.JOB)

_ALL, _RESTARTED, _COUNTED = (Follows.DRAIN, True), (Follows.RESTART, True), (Follows.WATCH, False)
"""What may follow at most of a form behind a header, and whether that header is its channel's."""

_MAX_LOOSE = 120
"""Bytes of a job's own words before the words of a library, as in ``training failed: CUDA out of memory``."""

_QUOTES = re.compile(rb"[\"'`<>|=?\[\]{}#/\\]|\xe2\x80[\x98-\x9f]")
_TALK = re.compile(
    rb"\s*(?:user|assistant|human|system|bot|q|a|question|answer|prompt|completion|response|reply|generat\w*|samples?"
    rb"|texts?|inputs?|outputs?|labels?|targets?|instructions?|examples?|titles?|subject|comments?|note|todo|fixme|re"
    rb"|eval\w*|decoded|tokens?|retr\w*|on|on_\w+|if|when|patterns?|rules?|polic\w*|config\w*|see|usage|help|expected"
    rb"|restart\w*|we|to|how|what|why|the log|my|i)\b"
)
"""Words with which somebody begins who talks about a fault, and quotations."""

_FAILING = re.compile(
    rb"\b(?:\w*warning|fail\w*|error\w*|exception\w*|crash\w*|abort\w*|died|dead|lost|caught|fatal|unable"
    rb"|could not|cannot|rank|worker|process|task|node|gpu|npu|device|trainer|training)\b"
)
"""Words of a job's own before those of a library: what failed, or that something did."""


_SUBSYSTEM = re.compile(
    rb"\s*[a-z][a-z0-9_/.-]{0,30}!?(?: [0-9a-f]{4,8}:[0-9a-f:.]{5,8}| \d{1,4}-\d[0-9.:-]{0,12})?"
    rb"(?: [a-z][a-z0-9_.@-]{0,15})?: {1,3}(?=[a-z(\[{<*])"
)
"""How a message of the kernel without a header begins: subsystem or driver, device, interface."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line in its block.

    Attributes:
        block: Lines, one after the other.
        low: The same in lower case.
        begin: Where the line begins.
        end: Where it ends.
        number: Its number.
        cut: Whether the line began before the block, so that its header is not there.
    """

    block: bytes
    low: bytes
    begin: int
    end: int
    number: int
    cut: bool


class Severity(IntEnum):
    """How bad a fault is; larger is worse."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2


class About(StrEnum):
    """What a fault is about."""

    DEVICE = "device"
    NODE = "node"
    JOB = "job"
    LINK = "link"
    STORAGE = "storage"


class Confidence(StrEnum):
    """How sure a verdict is; three grades of evidence rather than a number that nobody has measured."""

    CERTAIN = "certain"
    """The line has a documented form, and the catalogue knows what it names."""
    LIKELY = "likely"
    """The line has documented words, or the form names a number that the catalogue lacks."""
    POSSIBLE = "possible"
    """The line is only unlike what was usual."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact is documented."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The line that told it.

    Attributes:
        line: Its number, from 1.
        text: Its text, at most ``TEXT`` characters around what told it; bytes that are no UTF-8 stand
            with a backslash and their value.
        template: Its template, where templates are mined.
    """

    line: int
    text: str
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fault that a line tells.

    Attributes:
        code: Which fault, such as ``xid.79`` or ``nccl.timeout``.
        kind: Its class: ecc, bus, driver, engine, nvlink, nccl, hccl, memory, network, storage, host or anomaly.
        severity: How bad it is.
        about: What it is about.
        subject: Name of that in the line, such as a PCI address, an interface or a rank; None where it is not told.
        node: Host that the line's header names, or None.
        follows: What follows from it.
        what: What it is, in words.
        confidence: How sure it is.
        evidence: The line.
        source: Where the fact is documented; None for what is only unusual.
    """

    code: str
    kind: str
    severity: Severity
    about: About
    subject: str | None
    node: str | None
    follows: Follows
    what: str
    confidence: Confidence
    evidence: Evidence
    source: Source | None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that lines of one form tell.

    Attributes:
        code: Its name.
        vendor: Whose form it is.
        channel: Who must have written the line.
        bare: Of the kernel's channel, whether the form names driver and device so that it needs no header.
        programs: Of the system's channel, names that its header may have.
        needles: Lower-case bytes of which a line has at least one.
        pattern: With what the line's message begins, in lower case. The groups ``subject``, ``number`` and ``grade``
            are read where they are; ``subject2`` where the subject stands elsewhere in another form of the line.
        subject_before: With what the message of a line shortly before begins that names the subject, or None.
        certain: Whether the form is documented, and not only its words.
        examples: Lines that tell it.
        counterexamples: Lines that do not.
    """

    code: str
    vendor: str
    kind: str
    severity: Severity
    about: About
    follows: Follows
    what: str
    channel: Channel
    bare: bool
    programs: frozenset[bytes]
    needles: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    subject_before: re.Pattern[bytes] | None
    certain: bool
    source: Source
    examples: tuple[str, ...]
    counterexamples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Xid:
    """What NVIDIA's catalogue tells of an Xid: its kind, the resolution named there, and what it is."""

    kind: str
    resolution: str
    what: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All that is known.

    Attributes:
        faults: In order of precedence: of two that one place of a line tells, the first counts.
        xids: By number.
        sources: By name.
    """

    faults: tuple[Fault, ...]
    xids: dict[int, Xid]
    sources: dict[str, Source]


class Recogniser:
    """Finds known faults in blocks of lines; keeps nothing of them, so that one serves all logs."""

    def __init__(self, known: Catalogue | None = None) -> None:
        self._known = known or catalogue()
        self._by_needle: dict[bytes, list[int]] = {}
        for place, fault in enumerate(self._known.faults):
            for needle in fault.needles:
                self._by_needle.setdefault(needle, []).append(place)
        self._needles = WordSearch(self._by_needle)

    def scan(
        self,
        block: bytes,
        ends: Sequence[int],
        first: int,
        since: int = 0,
        until: int | None = None,
        before: bytes | None = None,
    ) -> Iterator[Verdict]:
        """Verdicts of a block, in the order of its lines.

        Args:
            block: Lines, one after the other.
            ends: Where each line ends in the block, ascending.
            first: Number of the block's first line.
            since: Where to begin; what is before was scanned with another block, and the first line began in it.
            until: Where to stop; what is after will be scanned with another block.
            before: What the log had before the block, ``BEFORE_BYTES`` at least or all of it; None where the lines are
                no log but each by itself, so that none says who wrote the next.
        """
        low = block.lower()
        until = len(block) if until is None else until
        hits: dict[int, list[tuple[int, int]]] = {}
        for hit, needle in self._needles.find(low, since, until):
            row = bisect.bisect_right(ends, hit)
            hits.setdefault(row, []).extend((hit, place) for place in self._by_needle[needle])
        for row in sorted(hits):
            begin = ends[row - 1] if row else 0
            end = ends[row] if row < len(ends) else len(block)
            line = _Line(block, low, begin, end, first + row, cut=row == 0 and since > 0)
            yield from self._line(line, sorted(hits[row]), before)

    def _line(self, line: _Line, hits: list[tuple[int, int]], before: bytes | None) -> Iterator[Verdict]:
        """One verdict for each span of ``REACH`` bytes in which something is told."""
        count = 0
        next_hit = 0
        known: dict[int, Starts] = {}
        while next_hit < len(hits) and count < MAX_IN_LINE:
            beyond = bisect.bisect_right(hits, (hits[next_hit][0] + REACH, len(self._known.faults)))
            near = {place: hit for hit, place in reversed(hits[next_hit:beyond])}
            next_hit = beyond
            for place, hit in sorted(near.items()):
                verdict = self._verdict_near(self._known.faults[place], line, hit, known, before)
                if verdict is not None:
                    count += 1
                    yield verdict
                    break

    def _verdict_near(
        self, fault: Fault, line: _Line, hit: int, known: dict[int, Starts], before: bytes | None
    ) -> Verdict | None:
        """The verdict where a line tells a fault near a place."""
        # What a program has written over its own line, such as a bar of progress, is another line.
        begin = line.low.rfind(b"\r", max(line.begin, hit - REACH), hit) + 1 or line.begin
        if begin < hit - REACH or (line.cut and begin == line.begin):
            return None
        if begin not in known:
            first = None
            if before is not None and line.low.find(b"message", begin, begin + 16) >= 0:
                first = entry_start(line.block[begin : line.end], _lines_before(line, before))
                first = first and first._replace(position=begin + first.position)
            known[begin] = Starts(starts(line.block, line.low, begin, line.end, first))
        stop = min(line.end, hit + REACH)
        matched = _match(fault, line.low, hit, stop, known[begin])
        if matched is None:
            return None
        match, most, sure = matched
        if before is not None and fault.bare and begin == line.begin and not _is_kernel_s(known[begin]):
            most, sure = (most, sure) if _follows_the_kernel(line, before) else _COUNTED
        subject = _group(line.block, match, "subject") or _group(line.block, match, "subject2")
        if fault.subject_before is not None:
            subject = _subject_before(fault.subject_before, line, before or b"")
        verdict = Verdict(
            code=fault.code,
            kind=fault.kind,
            severity=fault.severity,
            about=fault.about,
            subject=subject,
            node=known[begin].host if begin == line.begin else host_of(line.block[line.begin : line.begin + 256]),
            follows=fault.follows,
            what=fault.what,
            confidence=Confidence.CERTAIN if fault.certain and sure else Confidence.LIKELY,
            evidence=Evidence(line.number, shown(line.block, line.begin, line.end, match.start())),
            source=fault.source,
        )
        if fault.code == "xid":
            verdict = self._xid(verdict, int(_group(line.block, match, "number") or 0), line.low[match.start() : stop])
        if fault.code == "sxid":
            verdict = _sxid(verdict, _group(line.low, match, "number") or "", _group(line.low, match, "grade") or "")
        return _at_most(verdict, most)

    def _xid(self, verdict: Verdict, number: int, rest: bytes) -> Verdict:
        """The verdict of an Xid by its number, and by what the line adds."""
        code, known = f"xid.{number}", self._known.xids.get(number)
        if known is None:
            return replace(verdict, code=code, confidence=Confidence.LIKELY)
        severity, follows = RESOLUTIONS[known.resolution]
        about = About.LINK if known.kind == "nvlink" else About.DEVICE
        if follows is Follows.RESTART and known.kind != "ecc":
            about = About.JOB
        if known.resolution == "NVLINK5" and (b"nonfatal" in rest or b"non-fatal" in rest):
            severity, follows = Severity.WARNING, Follows.WATCH
        source = self._known.sources[XID_SOURCE]
        if known.resolution == "XID_154":
            severity, follows = _recovery(rest)
            source = self._known.sources[RECOVERY_SOURCE]
        return replace(
            verdict,
            code=code,
            kind=known.kind,
            severity=severity,
            about=about,
            follows=follows,
            what=known.what,
            source=source,
        )


_ACTION = re.compile(rb"changed from [^()\n]{1,40}\([^()\n]{1,40}\) to [^()\n]{1,40}\(([^()\n]{1,40})\)")


@functools.cache
def recogniser() -> Recogniser:
    """The recogniser of the catalogue that comes with the package."""
    return Recogniser()


def shown(block: bytes, begin: int, end: int, around: int) -> str:
    """The text of a line, or what stands around a place in it where it is long."""
    if end - begin > TEXT:
        begin, end = max(begin, around - TEXT // 4), min(end, around + 3 * TEXT // 4)
    text = block[begin:end].decode("utf-8", "backslashreplace").rstrip("\r\n")
    if text.isprintable():
        return text[:TEXT]
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)[:TEXT]


TEXT = 512
"""Characters of a line that evidence keeps."""

XID_SOURCE, RECOVERY_SOURCE = "xid", "recovery"

FILES = ("nvidia", "amd", "ascend", "intel", "torch", "nccl", "host", "network", "storage", "schedulers")
"""Files of the catalogue in order of precedence: what tells of a device comes before what tells of a job."""

_PCI = r"(?P<subject>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"

RESOLUTIONS: dict[str, tuple[Severity, Follows]] = {
    "IGNORE": (Severity.INFO, Follows.WATCH),
    "UPDATE_SWFW": (Severity.WARNING, Follows.WATCH),
    "CONTACT_SUPPORT": (Severity.WARNING, Follows.WATCH),
    "XID_154": (Severity.INFO, Follows.WATCH),
    "RESTART_APP": (Severity.WARNING, Follows.RESTART),
    "RESET_GPU": (Severity.CRITICAL, Follows.DRAIN),
    "RESTART_VM": (Severity.CRITICAL, Follows.DRAIN),
    "RESTART_BM": (Severity.CRITICAL, Follows.DRAIN),
    "CHECK_MECHANICALS": (Severity.CRITICAL, Follows.DRAIN),
    "NVLINK5": (Severity.CRITICAL, Follows.DRAIN),
}
"""What follows from the resolutions of NVIDIA's catalogue.

A GPU can be reset only when no program runs on it, so that the device is drained. The work flow of NVLink 5 begins with
whether the line says ``Nonfatal``, which the recogniser reads.
"""


@functools.cache
def catalogue() -> Catalogue:
    """The catalogue that comes with the package."""
    folder = files(__package__)
    faults: list[Fault] = []
    sources: dict[str, Source] = {}
    for name in FILES:
        read: dict[str, Any] = yaml.load((folder / "faults" / f"{name}.yaml").read_text("utf-8"), _LOADER)  # noqa: S506 - a safe one
        own = {key: Source(**source) for key, source in read["sources"].items()}
        sources |= own
        faults += (_fault(fault, read["vendor"], own) for fault in read["faults"])
    rows = csv.DictReader((folder / "xids.csv").read_text("utf-8").splitlines())
    xids = {int(row["xid"]): Xid(row["kind"], row["resolution"], row["what"]) for row in rows}
    return Catalogue(tuple(faults), xids, sources)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""LibYAML is twenty times as fast, where it is there."""


def _hash(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    hashed: npt.NDArray[np.uint32] = (values * _FACTOR) >> np.uint32(32 - _BITS)
    return hashed


def _usual(gram: bytes) -> tuple[bool, int, int]:
    """How usual four bytes are: whether words of all logs have them, by the sum over them, by the rarest of them."""
    places = [_USUAL.get(byte, -1) for byte in gram]
    return gram in _EVERYWHERE, sum(places), min(places)


def _match(
    fault: Fault, low: bytes, hit: int, stop: int, begins: Starts
) -> tuple[re.Match[bytes], Follows, bool] | None:
    """Where a fault's form begins a message, what may follow at most, and whether the header is its channel's."""
    start = None
    for start in begins:
        if start.position > hit:
            return None
        allowed = _allowed(fault, start)
        match = fault.pattern.match(low, start.position, stop) if allowed else None
        if match is not None and allowed is not None and not _is_talk(fault, low, start.position, hit):
            return match, *allowed
    if start is not None and fault.channel is Channel.JOB and fault.follows is not Follows.DRAIN:
        return _loose(fault, low, hit, stop, start)
    return None


def _allowed(fault: Fault, start: Start) -> tuple[Follows, bool] | None:
    """What may follow at most where a message begins so, and how sure it is; None where the channel is another."""
    before, program = start.before, start.program
    if fault.channel is Channel.KERNEL:
        if before & _OF_PROGRAM or (program is not None and program not in KERNEL):
            return None
        return _ALL if before & _OF_KERNEL or (fault.bare and not before & _NOT_BARE) else _COUNTED
    if fault.channel is Channel.SYSTEM:
        if before & _OF_PROGRAM:
            return None
        if program in fault.programs:
            return _ALL
        return _COUNTED if program is None and before & _STAMPED else None
    if before & _OF_KERNEL:
        return None
    return _RESTARTED if before & _OF_LOGGER else _ALL


def _is_talk(fault: Fault, low: bytes, begin: int, hit: int) -> bool:
    """Whether somebody begins to speak where a message of a job begins, and tells the fault after a colon."""
    return (
        fault.channel is Channel.JOB and low.find(b": ", begin, hit) >= 0 and _TALK.match(low, begin, hit) is not None
    )


def _loose(fault: Fault, low: bytes, hit: int, stop: int, last: Start) -> tuple[re.Match[bytes], Follows, bool] | None:
    """Where a job puts a few words of its own and a colon before those of a library; not where it quotes or talks."""
    if last.before & _OF_KERNEL or hit - last.position > _MAX_LOOSE or _TALK.match(low, last.position, hit):
        return None
    begin = low.find(b": ", last.position, hit) + 2
    if not _FAILING.search(low, last.position, begin):
        return None
    while begin >= 2:  # noqa: PLR2004 - the length of what was looked for
        if _QUOTES.search(low, last.position, begin):
            return None
        match = fault.pattern.match(low, begin, stop)
        if match is not None:
            return match, Follows.RESTART, False
        begin = low.find(b": ", begin, hit) + 2
    return None


def _at_most(verdict: Verdict, most: Follows) -> Verdict:
    """A verdict after which no more follows than its header proves."""
    if _ORDER.index(verdict.follows) <= _ORDER.index(most):
        return verdict
    what = f"{verdict.what}, by a line whose header does not prove it"
    return replace(verdict, follows=most, severity=min(verdict.severity, Severity.WARNING), what=what)


def _is_kernel_s(begins: Starts) -> bool:
    return any(start.before & _OF_KERNEL for start in begins)


def _follows_the_kernel(line: _Line, before: bytes) -> bool:
    """Whether lines that look like the kernel's, without headers, go back to one of it or to where the log begins."""
    for last in reversed(_lines_before(line, before).split(b"\n")):
        if not last.strip() or last[:1].isspace():  # a line that goes on
            continue
        low = last.lower()
        headers = 0
        for start in starts(last, low, 0, len(last)):
            headers |= start.before
        if headers & _OF_KERNEL:
            return True
        if headers & _OF_PROGRAM or not _SUBSYSTEM.match(low) or _TALK.match(low):
            return False
    return True


def _lines_before(line: _Line, before: bytes) -> bytes:
    begin = max(0, line.begin - BEFORE_BYTES)
    return ((before if begin == 0 else b"") + line.block[begin : line.begin])[-BEFORE_BYTES:]


def _subject_before(pattern: re.Pattern[bytes], line: _Line, before: bytes) -> str | None:
    """The subject that one of the lines shortly before names, the nearest first, in a log of the same host."""
    text = _lines_before(line, before)
    host = host_of(line.block[line.begin : min(line.end, line.begin + 256)])
    for earlier in reversed(text.split(b"\n")[-BEFORE_LINES - 1 : -1]):
        if host_of(earlier[:256]) != host:
            continue
        for start in starts(earlier, earlier.lower(), 0, len(earlier)):
            match = pattern.match(earlier.lower(), start.position)
            if match is not None:
                return _group(earlier, match, "subject")
    return None


def _recovery(rest: bytes) -> tuple[Severity, Follows]:
    """What follows from the action that an Xid 154 names; ``none`` means that the GPU may be used again."""
    match = _ACTION.search(rest)
    if match is None:
        return Severity.WARNING, Follows.WATCH
    return (Severity.INFO, Follows.NONE) if match[1] == b"none" else (Severity.CRITICAL, Follows.DRAIN)


def _sxid(verdict: Verdict, number: str, grade: str) -> Verdict:
    """The verdict of an NVSwitch error: the line itself says whether it is fatal."""
    verdict = replace(verdict, code=f"sxid.{number}")
    if grade == "fatal":
        return replace(verdict, severity=Severity.CRITICAL, follows=Follows.DRAIN, what="fatal NVSwitch error")
    return verdict


def _group(block: bytes, match: re.Match[bytes] | None, name: str) -> str | None:
    """A group as it stands in the line, in its own case; None where it is not there."""
    if match is None or name not in match.re.groupindex or match[name] is None:
        return None
    return block[match.start(name) : match.end(name)].decode("utf-8", "backslashreplace")


def _fault(entry: dict[str, Any], vendor: str, sources: dict[str, Source]) -> Fault:
    return Fault(
        code=entry["code"],
        vendor=vendor,
        kind=entry["kind"],
        severity=Severity[entry["severity"].upper()],
        about=About(entry["about"]),
        follows=Follows(entry["follows"]),
        what=entry["what"],
        channel=Channel(entry["channel"]),
        bare=entry.get("bare", False),
        programs=frozenset(program.encode() for program in entry.get("programs", ())),
        needles=tuple(needle.encode() for needle in entry["needles"]),
        pattern=_pattern(entry["pattern"]),
        subject_before=_pattern(entry["subject_before"]) if "subject_before" in entry else None,
        certain=entry.get("certain", True),
        source=sources[entry["source"]],
        examples=tuple(entry["told"]),
        counterexamples=tuple(entry["not_told"]),
    )


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.replace("%pci%", _PCI).encode())
