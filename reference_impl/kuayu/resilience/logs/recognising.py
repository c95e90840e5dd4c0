"""Recognition of known faults: a search for fixed words over whole blocks, then a pattern where one was found.

Fixed words are found at the speed of memory, and lines without any cost nothing more. Patterns look only at ``REACH``
bytes before and after a word, and none has a repetition within a repetition, so that no line takes long.
"""

import bisect
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kuayu.resilience.logs.catalogue import RECOVERY_SOURCE, RESOLUTIONS, XID_SOURCE, Catalogue, Fault, catalogue
from kuayu.resilience.logs.headers import host_of
from kuayu.resilience.logs.values import TEXT, About, Confidence, Evidence, Follows, Severity, Verdict

REACH = 1024
"""Bytes before and after a word within which a line must tell a fault."""

MOST_IN_LINE = 64
"""Verdicts of one line; a line that is a whole log in itself tells no more."""


class Recogniser:
    """Finds known faults in blocks of lines; keeps nothing of them, so that one serves all logs."""

    def __init__(self, known: Catalogue | None = None) -> None:
        self._known = known or catalogue()
        self._by_needle: dict[bytes, list[int]] = {}
        for place, fault in enumerate(self._known.faults):
            for needle in fault.needles:
                self._by_needle.setdefault(needle, []).append(place)

    def scan(
        self, block: bytes, ends: Sequence[int], first: int, since: int = 0, until: int | None = None
    ) -> Iterator[Verdict]:
        """Verdicts of a block, in the order of its lines.

        Args:
            block: Lines, one after the other.
            ends: Where each line ends in the block, ascending.
            first: Number of the block's first line.
            since: Where to begin; what is before was scanned with another block.
            until: Where to stop; what is after will be scanned with another block.
        """
        low = block.lower()
        until = len(block) if until is None else until
        hits: dict[int, list[tuple[int, int]]] = {}
        for needle, places in self._by_needle.items():
            at = low.find(needle, since)
            while 0 <= at < until:
                row = bisect.bisect_right(ends, at)
                hits.setdefault(row, []).extend((at, place) for place in places)
                at = low.find(needle, at + len(needle))
        for row in sorted(hits):
            begin = ends[row - 1] if row else 0
            end = ends[row] if row < len(ends) else len(block)
            yield from self._line(block, low, (begin, end), sorted(hits[row]), first + row)

    def _line(
        self, block: bytes, low: bytes, line: tuple[int, int], hits: list[tuple[int, int]], number: int
    ) -> Iterator[Verdict]:
        """One verdict for each stretch of ``REACH`` bytes in which something is told."""
        told = 0
        next_hit = 0
        while next_hit < len(hits) and told < MOST_IN_LINE:
            beyond = bisect.bisect_right(hits, (hits[next_hit][0] + REACH, len(self._known.faults)))
            near = {place: at for at, place in reversed(hits[next_hit:beyond])}
            next_hit = beyond
            for place, at in sorted(near.items()):
                found = self._told(self._known.faults[place], block, low, (*line, at), number)
                if found is not None:
                    told += 1
                    yield found
                    break

    def _told(self, fault: Fault, block: bytes, low: bytes, where: tuple[int, int, int], number: int) -> Verdict | None:
        """The verdict where a line (its begin and end) tells a fault near a place."""
        begin, end, at = where
        start, stop = max(begin, at - REACH), min(end, at + REACH)
        match = None
        if fault.pattern is not None:
            match = fault.pattern.search(low, start, stop)
            if match is None:
                return None
        middle = match.start() if match else at
        made = Verdict(
            code=fault.code,
            kind=fault.kind,
            severity=fault.severity,
            about=fault.about,
            subject=_group(block, match, "subject"),
            node=host_of(block[begin : min(end, begin + 256)]),
            follows=fault.follows,
            what=fault.what,
            confidence=Confidence.CERTAIN if fault.certain else Confidence.LIKELY,
            evidence=Evidence(number, shown(block, begin, end, middle)),
            source=fault.source,
        )
        if fault.code == "xid":
            return self._xid(made, int(_group(block, match, "number") or 0), low[middle:stop])
        if fault.code == "sxid":
            return _sxid(made, _group(low, match, "number") or "", _group(low, match, "grade") or "")
        return made

    def _xid(self, made: Verdict, number: int, rest: bytes) -> Verdict:
        """The verdict of an Xid by its number, and by what the line adds."""
        made = replace(made, code=f"xid.{number}")
        known = self._known.xids.get(number)
        if known is None:
            return replace(made, confidence=Confidence.LIKELY)
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
            made, kind=known.kind, severity=severity, about=about, follows=follows, what=known.what, source=source
        )


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
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)[:TEXT]


def _group(block: bytes, match: re.Match[bytes] | None, name: str) -> str | None:
    """A group as it stands in the line, in its own case; None where it is not there."""
    if match is None or name not in match.re.groupindex or match[name] is None:
        return None
    return block[match.start(name) : match.end(name)].decode("utf-8", "backslashreplace")
