"""Faults that logs tell: the words for them, and the catalogue of their forms with its sources.

1. ``faults/*.yaml`` has forms of lines with their sources, ``xids.csv`` the numbers of Xids. Sentences there are the
   project's own; each fact names where it is documented.
2. What follows from an Xid follows from the resolution that NVIDIA's catalogue gives it.
3. In patterns ``%pci%`` stands for a PCI address, which is the subject.
4. Examples of each fault are ``told``; those of ``not_told`` have some of its words and must not be told as it.
5. How sure a verdict is has three grades of evidence rather than a number that nobody has measured.
"""

import csv
import functools
import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from importlib.resources import files
from typing import Any

import yaml

from kuayu.resilience.logs.headers import Channel


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


TEXT = 512
"""Characters of a line that evidence keeps."""


XID_SOURCE, RECOVERY_SOURCE = "xid", "recovery"

FILES = ("nvidia", "amd", "ascend", "torch", "nccl", "host", "network", "storage", "schedulers")
"""Files of the catalogue in order of precedence: what tells of a device comes before what tells of a job."""

_PCI = r"(?P<subject>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"


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
        told: Lines that tell it.
        not_told: Lines that do not.
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
    told: tuple[str, ...]
    not_told: tuple[str, ...]


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
        told=tuple(entry["told"]),
        not_told=tuple(entry["not_told"]),
    )


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.replace("%pci%", _PCI).encode())
