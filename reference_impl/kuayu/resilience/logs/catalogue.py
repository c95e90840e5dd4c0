"""The catalogue of faults: ``faults.json`` has forms of lines with their sources, ``xids.csv`` the numbers of Xids.

Sentences there are the project's own; each fact names where it is documented. What follows from an Xid follows from the
resolution that NVIDIA's catalogue gives it.
"""

import csv
import functools
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from kuayu.resilience.logs.values import About, Follows, Severity, Source

XID_SOURCE, RECOVERY_SOURCE = "xid", "recovery"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that lines of one form tell.

    Attributes:
        code: Its name.
        needles: Lower-case bytes of which a line has at least one.
        pattern: What such a line has, in lower case, near a needle; None where the needle says all. The groups
            ``subject``, ``number`` and ``grade`` are read where they are.
        certain: Whether the form is documented, and not only its words.
    """

    code: str
    kind: str
    severity: Severity
    about: About
    follows: Follows
    what: str
    needles: tuple[bytes, ...]
    pattern: re.Pattern[bytes] | None
    certain: bool
    source: Source


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
    told: dict[str, Any] = json.loads((folder / "faults.json").read_text("utf-8"))
    sources = {name: Source(**each) for name, each in told["sources"].items()}
    rows = csv.DictReader((folder / "xids.csv").read_text("utf-8").splitlines())
    xids = {int(row["xid"]): Xid(row["kind"], row["resolution"], row["what"]) for row in rows}
    return Catalogue(tuple(_fault(each, sources) for each in told["faults"]), xids, sources)


def _fault(told: dict[str, Any], sources: dict[str, Source]) -> Fault:
    return Fault(
        code=told["code"],
        kind=told["kind"],
        severity=Severity[told["severity"].upper()],
        about=About(told["about"]),
        follows=Follows(told["follows"]),
        what=told["what"],
        needles=tuple(each.encode() for each in told["needles"]),
        pattern=None if told["pattern"] is None else re.compile(told["pattern"].encode()),
        certain=told["certain"],
        source=sources[told["source"]],
    )
