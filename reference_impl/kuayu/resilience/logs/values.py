"""What is told of a log: verdicts, their grounds, and what follows from them."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


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
