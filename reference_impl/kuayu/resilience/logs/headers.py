"""Headers of lines: where the message begins, who wrote it, and the host that it names.

1. Where the message of a line begins, who wrote it, and on which host: the kernel, a named program, or a job and its
   loggers.

   What stands before a message is read piece by piece: colours of terminals, prefixes of launchers and containers
   (``srun --label``, ``mpirun --tag-output``, ``torchrun --tee``, Ray, pdsh, Docker Compose, CRI, ``kubectl logs
   --prefix``, stern), instants, priorities and headers of syslog (RFC 3164, RFC 5424), of journals, of ``dmesg`` in
   each of its formats and of ``/dev/kmsg``, levels and names that Python's logging, glog, klog and CANN put there, and
   names of exceptions. A message may begin after each piece; text that is no such piece ends the header, so that what
   is quoted later in a line has none.
2. A record of JSON that names host and program is such a header in another notation: those of journals
   (``journalctl -o json``), of syslog-ng and rsyslog, of Fluentd and Vector. The kernel's are those of a journal whose
   transport is ``kernel``, and those of the others whose program is. Other records are a logger's, but for what a
   container or a shipper of files puts around a whole line. Entries of journals may have a line for each field
   (``-o verbose``, ``export``, ``json-pretty``); those before the message say who wrote it.
3. Names of months and days are those of the host's language, as ``journalctl`` and ``dmesg -T`` write them. A word that
   is none of English counts as a month only where host and program follow, and within the brackets of ``dmesg``.
4. Lines whose numbers were made one zero each, as templates are mined, have the headers of syslog (RFC 3164), of
   journals and tools that begin with an instant of RFC 3339 or its likes, of the kernel's ring buffer, and of klog.

Sources: systemd, journalctl(1) and systemd.journal-fields(7) (``_TRANSPORT``, ``_HOSTNAME``, ``SYSLOG_IDENTIFIER``);
util-linux, dmesg(1) and sys-utils/dmesg.c (``-d``, ``-T``; names by strftime); BusyBox, sysklogd/syslogd.c (facility
and level before the program); Slurm, src/common/log.c (the step before messages of slurmstepd in slurmd's log);
Fluentd, in_syslog (``host``, ``ident``); syslog-ng, format-json; rsyslog, ``jsonmesg``; Vector, syslog source
(``hostname``, ``appname``); Docker, json-file logging driver; Elastic Common Schema, ``log.file.path`` (Filebeat).
"""

import re
from collections.abc import Iterator
from enum import IntFlag, StrEnum
from typing import NamedTuple


class Channel(StrEnum):
    """Which writer a fault's line must have."""

    KERNEL = "kernel"
    """The kernel: by its header, or without any header where the form names driver and device itself."""
    SYSTEM = "system"
    """A program that the header names: a resource manager or a daemon of the vendor."""
    JOB = "job"
    """A job's own output."""


class Before(IntFlag):
    """What stands before a message."""

    KERNEL = 1
    """The kernel's header."""
    LOGGER = 2
    """A logger of a program: a level, a module, a field of a structured log."""
    JOB = 4
    """What only jobs write: a rank, an exception, a place in native code."""
    GATHERED = 8
    """What a launcher, a container or a tool that gathers lines puts there."""
    INSTANT = 16
    """An instant."""
    LOCAL = 32
    """An instant as loggers write it, with a blank between date and time, a comma before milliseconds or no date."""


class Start(NamedTuple):
    """Where a message may begin.

    Attributes:
        position: Its place.
        before: Flags of ``Before``, as a plain number.
        program: Program that the header names, in lower case.
        host: Host that the header names, as it stands there.
    """

    position: int
    before: int
    program: bytes | None
    host: bytes | None = None


MAX_PIECES = 16
"""Pieces of a header that are read."""

KERNEL = frozenset({b"kernel", b"kern", b"dmesg", b"klogd", b"vmunix"})
"""Names by which the kernel's messages go in syslog."""

_MONTH = rb"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_DAY = rb"(?:mon|tue|wed|thu|fri|sat|sun)"
_CLOCK = rb"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DATE = rb"\d{4}[-/]\d\d[-/]\d\d[-t ]" + _CLOCK + rb"(?:z| ?[+-]\d\d:?\d\d)?(?:\.\d{1,9}){0,2}"
_LEVEL = rb"(?:trace|debug|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|severe|success)"
_NAME = rb"[a-z0-9][a-z0-9._-]{0,62}"
_WORD = rb"(?:\d{1,2}[\x80-\xff]{2,9}|[a-z\x80-\xff]{1,16}\.?)"
"""Name of a month or a day in any language."""
_SINCE = rb"(?: ?< {0,8}\d{1,9}\.\d{1,9} ?>)?"
"""Time since the message before, as ``dmesg -d`` and ``journalctl -o short-delta`` add it."""

_PIECE = re.compile(
    # Colours of terminals.
    rb"(?P<colour>\x1b\[[0-9;]{0,16}[a-z])"
    # The kernel: its ring buffer as dmesg and consoles print it (-T, -H, -x, --time-format=iso), and /dev/kmsg.
    rb"|(?P<kernel>(?:<\d{1,3}>)?\[ {0,8}\d{1,9}\.\d{1,9}" + _SINCE + rb"\](?: ?\[ {0,8}[tc]\d{1,10}\])?"
    rb"|\[" + _WORD + rb" {1,2}" + _WORD + rb" [ \d]\d " + _CLOCK + rb" \d{4}" + _SINCE + rb"\]"
    rb"|\[< {0,8}\d{1,9}\.\d{1,9}>\]"
    rb"|\[ {1,8}\+\d{1,9}\.\d{1,9}\]|\[" + _MONTH + rb" ?\d{1,2} \d\d:\d\d\]"
    rb"|\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d(?= )"
    rb"|kern {0,4}:[a-z]{2,7} {0,4}:|\d{1,3},\d{1,12},\d{1,16},[-c+][^;\n]{0,64};"
    rb"|kernel: )"
    # Syslog and journals, and logs of daemons that have a form of their own.
    rb"|(?P<priority><\d{1,3}>(?:1 )?)"
    rb"|(?P<fabric>\["
    + _MONTH
    + rb" \d\d \d{4} "
    + _CLOCK
    + rb"\] \[(?:info|warning|error|fatal)\](?: \[tid \d{1,10}\])?)"
    rb"|(?P<repeated>message repeated \d{1,9} times: \[ ?)"
    rb"|(?P<daemon>(?:slurm(?:(?:stepd|d)(?:-[a-z0-9][a-z0-9._-]{0,62})?|ctld|dbd)|srun|salloc|sbatch|nv-fabricmanager)"
    rb"(?:\[\d{1,10}\])?: )"
    rb"|(?P<ray>\[" + _DATE + rb" [iwefd] \d{1,10} \d{1,10}\])"
    rb"|(?P<instant>(?:"
    + _DAY
    + rb"|[a-z]{0,3}[\x80-\xff]{2,9}\.?) "
    + _DATE
    + rb" [a-z]{3,5}|\[?(?:"
    + _DATE
    + rb"|(?:"
    + _DAY
    + rb" )?"
    + _MONTH
    + rb" {1,2}\d{1,2} (?:\d{4} )?"
    + _CLOCK
    + rb"(?: \d{4})?|\d\d-\d\d "
    + _CLOCK
    + rb"|"
    + _CLOCK
    + rb")\]?|(?:\d{4} )?"
    + _WORD
    + rb" {1,2}\d{1,2} "
    + _CLOCK
    + rb"(?= [a-z0-9][a-z0-9._-]{0,62} (?:kernel|[a-z][\w./@-]{0,62}\[\d{1,10}\]): )|\d{10}\.\d{6}(?= ))"
    # Launchers and containers.
    rb"|(?P<prefixed>\[pod/[^\]\n]{1,200}\]|std(?:out|err) [fp] |[\w.-]{1,80}[-_]\d{1,4} {1,8}\| "
    rb"|[a-z0-9.-]{1,80} \xe2\x80\xba [a-z0-9.-]{1,63} |[\w.-]{1,80}\t(?=\{))"
    rb"|(?P<task>(?:[0-9a-f]{8} )?(?:\[rank=\d{1,7}\] )?\|\| )"
    rb"|(?P<launched>\d{1,7}:(?= )|\[(?:rank|default)[ _]?\d{1,7}\]:?|\[\d{1,4},\d{1,7}\]<std(?:err|out)>:"
    rb"|\([a-z_][\w:.]{0,80}(?: [\w:]{1,40}){0,2},? (?:pid|ip)=[^)\n]{1,60}\)|\(raylet(?:, ip=[\d.]{7,15})?\)"
    rb"|\[pg [^\]\n]{1,160}\]"
    rb"|" + _NAME + rb":\d{1,10}:\d{1,10} \[\d{1,4}\])"
    # CANN and torch_npu: their own logs, no logger of the job.
    rb"|(?P<cann>\[[a-z_]{1,60}\.cc:\d{1,6}\] ?(?:\[?\d{1,10}\]? ?)?(?:[a-z]\w{2,60}:)?(?:\[\w{1,40}\]){1,8}"
    rb"|\[(?:error|warning)\] (?=(?:hccl|hccp|runtime|drv|ge|tdt|aicpu|ascendcl)\(|\d{4}-\d\d-\d\d-)"
    rb"|(?:hccl|hccp|runtime|drv|ge|tdt|aicpu|ascendcl)\(\d{1,10},[^)\n]{0,80}\):[\d.:-]{10,32}"
    rb"|\(pid:\d{1,10}, device:-?\d{1,5}, rankid:-?\d{1,7}\)"
    rb"|(?:warning: )?e[a-z]\d{4}:? ?\[pid: ?\d{1,10}\]|(?:warning: )?e[a-z]\d{4}: (?=inner|the error)"
    rb"|\[pid: ?\d{1,10}\]|\(e[a-z]\d{4}\):|[a-z][a-z_]{3,60}\((?=ei\d{4}\):))"
    # Native code: glog of PyTorch in brackets, NCCL's place in its source.
    rb"|(?P<native>\[[iwefcd]\d{0,4} [^\]\n]{1,100}\.(?:cpp|cc|cu|h|hpp|ts):\d{1,6}\]"
    rb"|[\w./-]{1,160}\.(?:cc|h|cu|cpp):\d{1,6}(?= nccl)"
    rb"|nccl warn|terminate called after throwing an instance of '[^'\n]{1,80}'|what\(\):)"
    # Loggers: Python's, glog's and klog's without brackets, Loguru's.
    rb"|(?P<logger>torch\.[a-z_.]{1,80}:(?=[^ ])|[iwefd]\d{4} " + _CLOCK + rb" {1,8}\d{1,10} [^\s\]]{1,120}\]"
    rb"|\[?" + _LEVEL + rb"\]?(?:[:|]| -)?(?=[ :\[|])|:[\w.]{1,80}:|[|] |- "
    rb"|(?:[a-z_][\w]{0,40}\.){1,8}[a-z_]\w{0,40}:(?= ?\[" + _LEVEL + rb")"
    rb"|(?<= - )[a-z_][\w.]{0,80}(?= - )|[a-z_][\w.]{0,80}:[\w<>]{1,60}:\d{1,6} -|\[tid \d{1,10}\]"
    rb"|\[[\w./<>-]{1,100}:\d{1,6}(?::[\w<>]{1,60})?\])"
    # The exception that ends a traceback, and the exceptions that it names in turn.
    rb"|(?P<raised>(?:[a-z_]\w{0,60}\.){0,8}[a-z_]\w{0,60}(?:error|exception|exit|interrupt)\w{0,20}:(?= ))",
)

_IS_LOCAL = re.compile(rb"\[?(?:\d{4}[-/]\d\d[-/]\d\d(?: |.{9},)|\d\d[-:])")

_NAMED = re.compile(
    rb"(" + _NAME + rb") (?:(?:kern|user|daemon|syslog|local\d)\.[a-z]{3,7} )?([a-z0-9_./()@-]{1,64})(?:\[\d{1,10}\])?:"
    rb"(?:\x1b\[[0-9;]{0,16}m)? "
)
"""Host and program of syslog."""

_STEP = re.compile(rb"\[\d{1,10}(?:[_+]\d{1,8})?\.(?:batch|extern|interactive|\d{1,5})\] ")
"""The step before what slurmstepd writes into slurmd's log; stamps of the kernel have six places."""

_NO_HOST = re.compile(_LEVEL)
"""Words before a colon and behind an instant that are a level."""

_SYSLOG = re.compile(
    _MONTH + rb" [ \d]\d \d\d:\d\d:\d\d (" + _NAME + rb") kernel: (?:\[ {0,8}\d{1,9}\.\d{1,9}\] )?(?=[a-z])"
)
"""The kernel's header in a syslog of RFC 3164."""

_STRUCTURED = re.compile(rb"(" + _NAME + rb") (\S{1,48}) \S{1,128} \S{1,32} (?:-|\[[^\]\n]{0,512}\]) ")
"""Host and program of RFC 5424."""

_ALONE = re.compile(rb"([a-z][\w./@-]{0,63})\[\d{1,10}\]: ")
"""A program without a host, as in short forms of journals."""

_HOST_ONLY = re.compile(
    rb"(?!(?:samples?|examples?|prompt|gen|case|item|line|test|step|q|a|out|output|text|txt|msg|log|row|doc|ex|idx|id|batch"
    rb"|epoch|seq|resp|ans|turn|user|human|assistant|entry|record|token|label|question|answer)\d)"
    rb"(?:[a-z][a-z.-]{0,40}\d[a-z0-9.-]{0,40}|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}): "
)
"""A host as pdsh and clush put it before each line; without a digit it could be any word, such as a speaker's."""

_FIELD = re.compile(rb'\{[^{}]{0,512}?"(?:log|msg|message|error|err|exception|exc_info|reason|event)" ?: ?"')
"""A field of a structured log that has a message."""

_STRING = rb'" ?: ?"((?:[^"\\\n]|\\.){0,256})"'
_RECORD_HOST = re.compile(rb'[{,]\s?"(?:_hostname|hostname|host)' + _STRING)
_RECORD_PROGRAM = re.compile(rb'[{,]\s?"(?:syslog_identifier|ident|appname|programname|program)' + _STRING)
_RECORD_TRANSPORT = re.compile(rb'[{,]\s?"_transport' + _STRING)
_RECORD_MESSAGE = re.compile(rb'[{,]\s?"(?:message|msg)" ?: ?"')
"""Fields of a record of JSON that a daemon of logs wrote."""

_CONTAINER = re.compile(
    rb'\{"log":"(?=[^\n]{0,8000}","stream":"std(?:out|err)",(?:"attrs":\{[^{}\n]{0,1000}\},)?"time":")'
)
"""Docker's record of what a container wrote."""

_ENTRY_MESSAGE = re.compile(rb'\s*(?:message=|"message" : ")')
_ENTRY_FIELD = re.compile(rb'\s*"?(_?[A-Z][A-Z0-9_]{1,40})(?:=|" : "?)([^"\r\n]*)')
"""Lines of an entry of a journal that has one for each field."""

_SHIPPED = re.compile(rb'"file" ?: ?\{ ?"path" ?: ?"')
"""What a shipper of files of logs notes beside the line: where it stood."""

MAX_RECORD_BYTES = 4096
"""Bytes of a line in which fields of a record are looked for."""


_KERNEL, _LOGGER, _JOB, _GATHERED, _INSTANT, _LOCAL = (int(flag) for flag in Before)

_ADDS = {
    "kernel": _KERNEL,
    "instant": _INSTANT,
    "prefixed": _GATHERED,
    "launched": _JOB,
    "task": _JOB,
    "native": _JOB,
    "ray": _JOB,
    "cann": _JOB,
    "raised": _JOB,
    "logger": _LOGGER,
}
"""What each kind of piece adds to what stands before the message."""

_OWN_HEADERS = frozenset({"instant", "fabric", "daemon"})
"""Pieces with which the line of a program begins."""

_BEFORE_NAMES = frozenset({"instant", "priority", "prefixed", "kernel"})
"""Pieces that host and program may follow."""


class Starts:
    """Places at which the message of a line may begin, read as far as they are asked for and kept.

    Args:
        places: As ``starts`` yields them.
    """

    def __init__(self, places: Iterator[Start]) -> None:
        self._read: list[Start] = []
        self._places = places

    def __iter__(self) -> Iterator[Start]:
        """From the first on."""
        yield from self._read
        for place in self._places:
            self._read.append(place)
            yield place

    @property
    def host(self) -> str | None:
        """Host that the header names, or None."""
        name = next((start.host for start in reversed([*self]) if start.host is not None), None)
        return None if name is None else name.decode("utf-8", "backslashreplace")


def entry_start(line: bytes, before: bytes) -> Start | None:
    """Where the message of a journal's entry begins that has a line for each field; None where a line is none such.

    Args:
        line: The line; the start is counted from its beginning.
        before: Lines before it, the nearest last.
    """
    message = _ENTRY_MESSAGE.match(line.lower())
    if message is None:
        return None
    fields: dict[bytes, bytes] = {}
    for earlier in reversed(before.removesuffix(b"\n").split(b"\n")):
        field = _ENTRY_FIELD.match(earlier)
        if field is None:
            break
        fields.setdefault(field[1], field[2])
    transport, host = fields.get(b"_TRANSPORT"), fields.get(b"_HOSTNAME")
    if transport is None or host is None:
        return None
    if transport == b"kernel":
        return Start(message.end(), _KERNEL | _INSTANT, b"kernel", host)
    program = fields.get(b"SYSLOG_IDENTIFIER", b"").lower()
    return None if program in KERNEL else Start(message.end(), _INSTANT, program or None, host)


def starts(block: bytes, low: bytes, begin: int, end: int, first: Start | None = None) -> Iterator[Start]:
    """Places at which the message of a line may begin, from the first on.

    Args:
        block: Bytes as they came.
        low: The same in lower case.
        begin: Where the line begins.
        end: Where it ends.
        first: Where its message begins by lines before it.
    """
    # Most lines of faults are the kernel's in a syslog; their pieces one by one would come to the same.
    syslog = None if first else _SYSLOG.match(low, begin, end)
    if first:
        start = first
    elif syslog:
        start = Start(syslog.end(), _KERNEL | _INSTANT, b"kernel", block[syslog.start(1) : syslog.end(1)])
    else:
        start = Start(_blanks(low, begin, end), 0, None)
    yield start
    structured, nameable = False, syslog is None
    for count in range(MAX_PIECES):
        kind = ""
        after = _named(block, low, start, end, structured=structured) if nameable else None
        if after is None and (piece := _PIECE.match(low, start.position, end)):
            kind = piece.lastgroup or ""
            if kind != "raised" or _is_class(block, piece):
                program, host = _daemon(kind, block, piece)
                program, host = program or start.program, host or start.host
                before = start.before | _ADDS.get(kind, 0)
                if start.before & _LOCAL and kind in _OWN_HEADERS:
                    before |= _LOGGER  # what a logger cites has a header of its own
                if kind == "instant" and _IS_LOCAL.match(piece[0]):
                    before |= _LOCAL
                after = Start(piece.end(), before, program, host)
                structured = structured or (kind == "priority" and piece[0].endswith(b" "))
        if after is None and not start.before & _KERNEL:
            after = _rare(block, low, start, end, first=count <= 1)
        if after is None:
            return
        nameable = kind in _BEFORE_NAMES
        start = after._replace(position=_blanks(low, after.position, end))
        yield start


def _daemon(kind: str, block: bytes, piece: re.Match[bytes]) -> tuple[bytes | None, bytes | None]:
    """Program, and host, that a piece is the header of; the fabric manager's own log is known by its form."""
    if kind == "daemon":
        name = re.split(rb"[\[:]", block[piece.start() : piece.end()])[0]
        program, _, host = (name, b"", b"") if name.lower() == b"nv-fabricmanager" else name.partition(b"-")
        return program.lower(), host or None
    return (b"nv-fabricmanager" if kind == "fabric" else None), None


def _blanks(low: bytes, place: int, end: int) -> int:
    """Where blanks end."""
    while place < end and low[place] in b" \t":
        place += 1
    return place


def _rare(block: bytes, low: bytes, start: Start, end: int, *, first: bool) -> Start | None:
    """A program without a host, a host without a program, a record, or a field of a structured log."""
    if start.program is None and (alone := _ALONE.match(low, start.position, end)):
        return start._replace(position=alone.end(), program=alone[1])
    if first and start.program is None and (host := _HOST_ONLY.match(low, start.position, end)):
        return start._replace(position=host.end(), before=start.before | _GATHERED)
    if not low.startswith(b"{", start.position):
        return None
    if start.program is None and (record := _record(block, low, start, end)):
        return record
    if container := _CONTAINER.match(low, start.position, end):
        return start._replace(position=container.end(), before=start.before | _GATHERED)
    if (line := _RECORD_MESSAGE.search(low, start.position, end)) and _SHIPPED.search(low, start.position, end):
        return start._replace(position=line.end(), before=start.before | _GATHERED)
    field = _FIELD.match(low, start.position, end)
    return start._replace(position=field.end(), before=start.before | _LOGGER) if field else None


def _record(block: bytes, low: bytes, start: Start, end: int) -> Start | None:
    """A record that names host and program beside its message."""
    end = min(end, start.position + MAX_RECORD_BYTES)
    host, program, message, transport = (
        field.search(low, start.position, end)
        for field in (_RECORD_HOST, _RECORD_PROGRAM, _RECORD_MESSAGE, _RECORD_TRANSPORT)
    )
    if message is None or host is None or program is None:
        return None
    kernel = program[1] in KERNEL if transport is None else transport[1] == b"kernel"
    if program[1] in KERNEL and not kernel:
        return None
    before = start.before | (_KERNEL if kernel else 0) | _INSTANT
    return Start(message.end(), before, b"kernel" if kernel else program[1], block[host.start(1) : host.end(1)])


def _named(block: bytes, low: bytes, start: Start, end: int, *, structured: bool) -> Start | None:
    """What follows host and program: two words and a colon behind an instant, or where the program is the kernel."""
    stamped = start.before & _INSTANT
    if start.program is not None:
        return None
    if stamped and (step := _STEP.match(low, start.position, end)):
        return start._replace(position=step.end(), program=b"slurmstepd")
    match = (_STRUCTURED if structured and stamped else _NAMED).match(low, start.position, end)
    if match is None:
        return None
    program = match[2].rsplit(b"/", 1)[-1]
    host = None if _NO_HOST.fullmatch(match[1]) else block[match.start(1) : match.end(1)]
    if program in KERNEL:
        return Start(match.end(), start.before | _KERNEL, program, host)
    if not stamped:
        return None
    # Of a program without number nobody knows whether it is one: what a logger writes looks alike.
    sure = structured or b"]:" in match[0]
    return Start(match.end(), start.before | (0 if sure else _LOGGER), program, host)


def _is_class(block: bytes, match: re.Match[bytes]) -> bool:
    """Whether an exception's name begins with a capital, as names of classes do."""
    name = block[match.start() : match.end()].rsplit(b".", 1)[-1]
    return name[:1].isupper()


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
"""A header in a line whose numbers have been made one zero each (``masking.plain``)."""

MAX_HEADERS = 4
"""Headers that may stand one after the other, such as syslog's and the kernel's."""


def host_of(line: bytes) -> str | None:
    """Host that a line's header names, or None."""
    return Starts(starts(line, line.lower(), 0, len(line))).host


def message(line: bytes) -> bytes:
    """The line without its headers; numbers must have been made noughts."""
    place = 0
    for _ in range(MAX_HEADERS):
        match = _BEFORE.match(line, place)
        if match is None:
            break
        place = match.end()
    return line[place:]
