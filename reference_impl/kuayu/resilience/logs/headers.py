"""Headers of lines: what stands before the message, and the host it names.

Known are those of syslog (RFC 3164), of journals and tools that begin with an instant of RFC 3339 or its likes, of the
kernel's ring buffer, and of klog.
"""

import re

_MONTH = rb"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"

_HOST = re.compile(
    rb"(?:<\d{1,3}>)?"
    rb"(?:" + _MONTH + rb" [ \d]\d \d\d:\d\d:\d\d"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]{0,12}(?:z|[+-]\d\d:?\d\d)?)"
    rb" ([a-z0-9][a-z0-9._-]{0,62}) [a-z0-9_./()-]{1,64}(?:\[\d{1,10}\])?: ",
    re.IGNORECASE,
)

_BEFORE = re.compile(
    rb"(?:<0>)?(?:"
    rb"" + _MONTH + rb" {1,2}0 0 [^\s]{1,63} "
    rb"|\[?0(?:t0| 0)z?\]? "
    rb"|[iwef]0 0 {1,8}0 [^\s\]]{1,80}\] "
    rb"|\[ {0,8}0\] "
    rb"|kernel: "
    rb")",
    re.IGNORECASE,
)
"""A header in a line whose numbers have been made one nought each (``masking.plain``)."""

DEEPEST = 4
"""Headers that may stand one after the other, such as syslog's and the kernel's."""


def host_of(line: bytes) -> str | None:
    """Host that a header of syslog or of a journal names, or None."""
    found = _HOST.match(line)
    return found[1].decode() if found else None


def message(line: bytes) -> bytes:
    """The line without its headers; numbers must have been made noughts."""
    at = 0
    for _ in range(DEEPEST):
        found = _BEFORE.match(line, at)
        if found is None:
            break
        at = found.end()
    return line[at:]
