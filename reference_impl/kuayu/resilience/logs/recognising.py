"""Recognition of known faults: a search for fixed words over whole blocks, then a pattern where one was found.

Fixed words are found at the speed of memory, and lines without any cost nothing more. A pattern must stand where the
message of its line begins, behind a header of the channel that the fault's source writes to (``channels``): what is
quoted, printed as a sample or talked about has none. What a form without its header may tell is counted and drains
nothing. Patterns look only at ``REACH`` bytes before and after a word, and none has a repetition within a repetition,
so that no line takes long.
"""

import bisect
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kuayu.resilience.logs.catalogue import RECOVERY_SOURCE, RESOLUTIONS, XID_SOURCE, Catalogue, Fault, catalogue
from kuayu.resilience.logs.channels import KERNEL, Before, Channel, Start, Starts, starts
from kuayu.resilience.logs.headers import host_of
from kuayu.resilience.logs.needles import Needles
from kuayu.resilience.logs.values import TEXT, About, Confidence, Evidence, Follows, Severity, Verdict

REACH = 1024
"""Bytes before and after a word within which a line must tell a fault."""

MOST_IN_LINE = 64
"""Verdicts of one line; a line that is a whole log in itself tells no more."""

BEFORE_LINES, BEFORE_BYTES = 16, 2048
"""Lines, and bytes, before a line in which the subject of its fault may stand."""

_ORDER = tuple(Follows)

# Plain numbers, since flags as such cost more than the patterns.
_OF_KERNEL, _OF_LOGGER = int(Before.KERNEL), int(Before.LOGGER | Before.LOCAL)
_NOT_BARE, _STAMPED = int(Before.GATHERED | Before.LOCAL), int(Before.INSTANT)
_OF_PROGRAM = int(Before.LOGGER | Before.JOB)

_ALL, _RESTARTED, _COUNTED = (Follows.DRAIN, True), (Follows.RESTART, True), (Follows.WATCH, False)
"""What may follow at most of a form behind a header, and whether that header is its channel's."""

_MOST_LOOSE = 120
"""Bytes of a job's own words before the words of a library, as in ``training failed: CUDA out of memory``."""

_QUOTES = re.compile(rb"[\"'`<>|=?\[\]{}#/\\]|\xe2\x80[\x98-\x9f]")
_TALK = re.compile(
    rb"\s*(?:user|assistant|human|system|bot|q|a|question|answer|prompt|completion|response|reply|generat\w*|samples?"
    rb"|texts?|inputs?|outputs?|labels?|targets?|instructions?|examples?|titles?|subject|comments?|note|todo|fixme|re"
    rb"|eval\w*|decoded|tokens?|retr\w*|on|on_\w+|if|when|patterns?|rules?|polic\w*|config\w*|see|usage|help|expected"
    rb"|restart\w*|we|to|how|what|why|the log|my|i)\b"
)
"""Words with which somebody begins who talks about a fault, and quotations."""


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


class Recogniser:
    """Finds known faults in blocks of lines; keeps nothing of them, so that one serves all logs."""

    def __init__(self, known: Catalogue | None = None) -> None:
        self._known = known or catalogue()
        self._by_needle: dict[bytes, list[int]] = {}
        for place, fault in enumerate(self._known.faults):
            for needle in fault.needles:
                self._by_needle.setdefault(needle, []).append(place)
        self._needles = Needles(self._by_needle)

    def scan(
        self,
        block: bytes,
        ends: Sequence[int],
        first: int,
        since: int = 0,
        until: int | None = None,
        before: bytes = b"",
    ) -> Iterator[Verdict]:
        """Verdicts of a block, in the order of its lines.

        Args:
            block: Lines, one after the other.
            ends: Where each line ends in the block, ascending.
            first: Number of the block's first line.
            since: Where to begin; what is before was scanned with another block, and the first line began in it.
            until: Where to stop; what is after will be scanned with another block.
            before: What the log had before the block, ``BEFORE_BYTES`` at least or all of it.
        """
        low = block.lower()
        until = len(block) if until is None else until
        hits: dict[int, list[tuple[int, int]]] = {}
        for at, needle in self._needles.find(low, since, until):
            row = bisect.bisect_right(ends, at)
            hits.setdefault(row, []).extend((at, place) for place in self._by_needle[needle])
        for row in sorted(hits):
            begin = ends[row - 1] if row else 0
            end = ends[row] if row < len(ends) else len(block)
            line = _Line(block, low, begin, end, first + row, cut=row == 0 and since > 0)
            yield from self._line(line, sorted(hits[row]), before)

    def _line(self, line: _Line, hits: list[tuple[int, int]], before: bytes) -> Iterator[Verdict]:
        """One verdict for each stretch of ``REACH`` bytes in which something is told."""
        told = 0
        next_hit = 0
        known: dict[int, Starts] = {}
        while next_hit < len(hits) and told < MOST_IN_LINE:
            beyond = bisect.bisect_right(hits, (hits[next_hit][0] + REACH, len(self._known.faults)))
            near = {place: at for at, place in reversed(hits[next_hit:beyond])}
            next_hit = beyond
            for place, at in sorted(near.items()):
                found = self._told(self._known.faults[place], line, at, known, before)
                if found is not None:
                    told += 1
                    yield found
                    break

    def _told(self, fault: Fault, line: _Line, at: int, known: dict[int, Starts], before: bytes) -> Verdict | None:
        """The verdict where a line tells a fault near a place."""
        # What a program has written over its own line, such as a bar of progress, is another line.
        begin = line.low.rfind(b"\r", max(line.begin, at - REACH), at) + 1 or line.begin
        if begin < at - REACH or (line.cut and begin == line.begin):
            return None
        if begin not in known:
            known[begin] = Starts(starts(line.block, line.low, begin, line.end))
        stop = min(line.end, at + REACH)
        found = _match(fault, line.low, at, stop, known[begin])
        if found is None:
            return None
        match, most, sure = found
        subject = _group(line.block, match, "subject") or _group(line.block, match, "subject2")
        if fault.subject_before is not None:
            subject = _subject_before(fault.subject_before, line, before)
        made = Verdict(
            code=fault.code,
            kind=fault.kind,
            severity=fault.severity,
            about=fault.about,
            subject=subject,
            node=host_of(line.block[line.begin : min(line.end, line.begin + 256)]),
            follows=fault.follows,
            what=fault.what,
            confidence=Confidence.CERTAIN if fault.certain and sure else Confidence.LIKELY,
            evidence=Evidence(line.number, shown(line.block, line.begin, line.end, match.start())),
            source=fault.source,
        )
        if fault.code == "xid":
            made = self._xid(made, int(_group(line.block, match, "number") or 0), line.low[match.start() : stop])
        if fault.code == "sxid":
            made = _sxid(made, _group(line.low, match, "number") or "", _group(line.low, match, "grade") or "")
        return _at_most(made, most)

    def _xid(self, made: Verdict, number: int, rest: bytes) -> Verdict:
        """The verdict of an Xid by its number, and by what the line adds."""
        code, known = f"xid.{number}", self._known.xids.get(number)
        if known is None:
            return replace(made, code=code, confidence=Confidence.LIKELY)
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
            made,
            code=code,
            kind=known.kind,
            severity=severity,
            about=about,
            follows=follows,
            what=known.what,
            source=source,
        )


def _match(
    fault: Fault, low: bytes, at: int, stop: int, begins: Starts
) -> tuple[re.Match[bytes], Follows, bool] | None:
    """Where a fault's form begins a message, what may follow at most, and whether the header is its channel's."""
    start = None
    for start in begins:
        if start.at > at:
            return None
        allowed = _allowed(fault, start)
        match = fault.pattern.match(low, start.at, stop) if allowed else None
        if match is not None and allowed is not None:
            return match, *allowed
    if start is not None and fault.channel is Channel.JOB and fault.follows is not Follows.DRAIN:
        return _loose(fault, low, at, stop, start)
    return None


def _allowed(fault: Fault, start: Start) -> tuple[Follows, bool] | None:
    """What may follow at most where a message begins so, and how sure it is; None where the channel is another."""
    _, before, program = start
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


def _loose(fault: Fault, low: bytes, at: int, stop: int, last: Start) -> tuple[re.Match[bytes], Follows, bool] | None:
    """Where a job puts a few words of its own and a colon before those of a library; not where it quotes or talks."""
    if last.before & _OF_KERNEL or at - last.at > _MOST_LOOSE or _TALK.match(low, last.at, at):
        return None
    begin = low.find(b": ", last.at, at) + 2
    while begin >= 2:  # noqa: PLR2004 - the length of what was looked for
        if _QUOTES.search(low, last.at, begin):
            return None
        match = fault.pattern.match(low, begin, stop)
        if match is not None:
            return match, Follows.RESTART, False
        begin = low.find(b": ", begin, at) + 2
    return None


def _at_most(made: Verdict, most: Follows) -> Verdict:
    """A verdict after which no more follows than its header proves."""
    if _ORDER.index(made.follows) <= _ORDER.index(most):
        return made
    what = f"{made.what}, by a line whose header does not prove it"
    return replace(made, follows=most, severity=min(made.severity, Severity.WARNING), what=what)


def _subject_before(pattern: re.Pattern[bytes], line: _Line, before: bytes) -> str | None:
    """The subject that one of the lines shortly before names, the nearest first, in a log of the same host."""
    text = (before + line.block[: line.begin])[-BEFORE_BYTES:]
    host = host_of(line.block[line.begin : min(line.end, line.begin + 256)])
    for each in reversed(text.split(b"\n")[-BEFORE_LINES - 1 : -1]):
        if host_of(each[:256]) != host:
            continue
        for start in starts(each, each.lower(), 0, len(each)):
            match = pattern.match(each.lower(), start.at)
            if match is not None:
                return _group(each, match, "subject")
    return None


_ACTION = re.compile(rb"changed from [^()\n]{1,40}\([^()\n]{1,40}\) to [^()\n]{1,40}\(([^()\n]{1,40})\)")


@functools.cache
def recogniser() -> Recogniser:
    """The recogniser of the catalogue that comes with the package."""
    return Recogniser()


def _recovery(rest: bytes) -> tuple[Severity, Follows]:
    """What follows from the action that an Xid 154 names; ``none`` means that the GPU may be used again."""
    found = _ACTION.search(rest)
    if found is None:
        return Severity.WARNING, Follows.WATCH
    return (Severity.INFO, Follows.NONE) if found[1] == b"none" else (Severity.CRITICAL, Follows.DRAIN)


def _sxid(made: Verdict, number: str, grade: str) -> Verdict:
    """The verdict of an NVSwitch error: the line itself says whether it is fatal."""
    made = replace(made, code=f"sxid.{number}")
    if grade == "fatal":
        return replace(made, severity=Severity.CRITICAL, follows=Follows.DRAIN, what="fatal NVSwitch error")
    return made


def shown(block: bytes, begin: int, end: int, around: int) -> str:
    """The text of a line, or what stands around a place in it where it is long."""
    if end - begin > TEXT:
        begin, end = max(begin, around - TEXT // 4), min(end, around + 3 * TEXT // 4)
    text = block[begin:end].decode("utf-8", "backslashreplace").rstrip("\r\n")
    if text.isprintable():
        return text[:TEXT]
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)[:TEXT]


def _group(block: bytes, match: re.Match[bytes] | None, name: str) -> str | None:
    """A group as it stands in the line, in its own case; None where it is not there."""
    if match is None or name not in match.re.groupindex or match[name] is None:
        return None
    return block[match.start(name) : match.end(name)].decode("utf-8", "backslashreplace")
