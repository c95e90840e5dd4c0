"""The catalogue of faults: ``faults/*.yaml`` has forms of lines with their sources, ``xids.csv`` the numbers of Xids.

Sentences there are the project's own; each fact names where it is documented. What follows from an Xid follows from the
resolution that NVIDIA's catalogue gives it. In patterns ``%pci%`` stands for a PCI address, which is the subject.
Examples of each fault are ``told``; those of ``not_told`` have some of its words and must not be told as it.
"""

import csv
import functools
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from kuayu.resilience.logs.channels import Channel
from kuayu.resilience.logs.values import About, Follows, Severity, Source

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
        own = {key: Source(**each) for key, each in read["sources"].items()}
        sources |= own
        faults += (_fault(each, read["vendor"], own) for each in read["faults"])
    rows = csv.DictReader((folder / "xids.csv").read_text("utf-8").splitlines())
    xids = {int(row["xid"]): Xid(row["kind"], row["resolution"], row["what"]) for row in rows}
    return Catalogue(tuple(faults), xids, sources)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""LibYAML is twenty times as fast, where it is there."""


def _fault(told: dict[str, Any], vendor: str, sources: dict[str, Source]) -> Fault:
    return Fault(
        code=told["code"],
        vendor=vendor,
        kind=told["kind"],
        severity=Severity[told["severity"].upper()],
        about=About(told["about"]),
        follows=Follows(told["follows"]),
        what=told["what"],
        channel=Channel(told["channel"]),
        bare=told.get("bare", False),
        programs=frozenset(each.encode() for each in told.get("programs", ())),
        needles=tuple(each.encode() for each in told["needles"]),
        pattern=_pattern(told["pattern"]),
        subject_before=_pattern(told["subject_before"]) if "subject_before" in told else None,
        certain=told.get("certain", True),
        source=sources[told["source"]],
        told=tuple(told["told"]),
        not_told=tuple(told["not_told"]),
    )


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.replace("%pci%", _PCI).encode())
