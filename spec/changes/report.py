"""What differs between two versions, as Markdown for people and as JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from changes import interface, requirements
from changes.change import MEANINGS, SEVERITIES, Change, counts, next_version, ordered
from changes.versions import Version


@dataclass(frozen=True)
class Report:
    """Two versions and all that differs between them, the heaviest first."""

    old: Version
    new: Version
    changes: Sequence[Change]

    @property
    def next_version(self) -> str:
        """Number that the versioning policy gives to what the changes lead to."""
        return next_version(self.old.number, self.changes)


def compare(old: Version, new: Version) -> Report:
    """Compare the registers and the published interfaces of two versions."""
    return Report(old, new, ordered([*requirements.differences(old, new), *interface.differences(old, new)]))


def as_markdown(report: Report) -> str:
    """Headings by severity, a table below each."""
    found = counts(report.changes)
    told = ", ".join(f"{found[severity]} {severity}" for severity in SEVERITIES)
    names = " to ".join(f"{version.name} ({version.number})" for version in (report.old, report.new))
    blocks = [
        f"# Changes from {names}",
        f"{told}. By the versioning policy what follows {report.old.number} is {report.next_version}.",
    ]
    for severity in SEVERITIES:
        rows = [one for one in report.changes if one.severity == severity]
        if rows:
            cells = (f"| {_cell(one.place)} | {_cell(one.detail)} | `{one.rule}` |" for one in rows)
            table = "\n".join(("| where | what | rule |", "|---|---|---|", *cells))
            blocks += [f"## {severity.capitalize()}", f"{MEANINGS[severity].capitalize()}.", table]
    return "\n\n".join(blocks) + "\n"


def as_json(report: Report) -> str:
    """Members ``old``, ``new``, ``counts``, ``next_version`` and ``changes``, in the order of the Markdown."""
    document = {
        "old": {"name": report.old.name, "spec_version": report.old.number},
        "new": {"name": report.new.name, "spec_version": report.new.number},
        "counts": counts(report.changes),
        "next_version": report.next_version,
        "changes": [asdict(one) for one in report.changes],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")
