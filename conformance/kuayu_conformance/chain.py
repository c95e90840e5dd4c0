"""The chain of a transcript: every line carries a link that follows from all lines up to it.

1. The link of a line is the first ``DIGITS`` hex digits of the SHA-256 over all lines from the header to it, each with
   its line end and without its own link. It stands last in the line, as member ``chain``, in just the bytes that
   :meth:`Chain.extended` writes; nothing is parsed to find it.
2. So whoever changes, leaves out, puts in or re-times an event breaks the chain there, and the first line that does not
   follow is named. Links are short, since what counts is carried in full from line to line; random digits do not
   compress, and a full run writes 700 000 of them.
3. A chain has no secret: whoever writes the whole transcript anew makes one that holds. What ties it to a person and a
   time is a signature over the file (:mod:`.sealing`), and what ties its beginning is a challenge (:mod:`.challenge`).
4. Transcripts of before have no chain, and are gone on with without one. A chain that begins later than with the
   header, or stops, is broken.
"""

import hashlib

DIGITS = 16
_BEFORE, _BEHIND = b',"chain":"', b'"}'
_LENGTH = len(_BEFORE) + DIGITS + len(_BEHIND)


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
        return line[:-1] + _BEFORE + self._next(line) + _BEHIND

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
        elif self._next(line[:-_LENGTH] + b"}") != link:
            self.broken = (
                f"line {self.lines} does not follow from the lines before it: there an event was changed, put in or "
                "left out"
            )

    def _next(self, line: bytes) -> bytes:
        self._sum.update(line)
        self._sum.update(b"\n")
        return self._sum.copy().hexdigest()[:DIGITS].encode()


def _link_of(line: bytes) -> bytes | None:
    """The link that a line ends with; None where it ends otherwise."""
    if not (line.endswith(_BEHIND) and line[-_LENGTH:].startswith(_BEFORE)):
        return None
    return line[len(_BEFORE) - _LENGTH : -len(_BEHIND)]
