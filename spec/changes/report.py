"""What differs between two versions, as Markdown for people and as JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from changes import interface, requirements, stability
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
    found = (module.differences(old, new) for module in (requirements, interface, stability))
    return Report(old, new, ordered(stability.with_marks(chain.from_iterable(found), old, new)))


def as_markdown(report: Report) -> str:
    """Headings by severity, a table below each; breaking changes with the mark of what they break."""
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
            weighed = severity == "breaking"
            heads = ["where", "what", "rule", *(["mark"] if weighed else [])]
            cells = (
                [_cell(one.place), _cell(one.detail), f"`{one.rule}`", *([_mark(one)] if weighed else [])]
                for one in rows
            )
            table = "\n".join(map(_row, (heads, ["---"] * len(heads), *cells)))
            blocks += [f"## {severity.capitalize()}", f"{MEANINGS[severity].capitalize()}."]
            blocks += [_promises(rows)] if weighed else []
            blocks.append(table)
    return "\n\n".join(blocks) + "\n"


def _promises(breaking: Sequence[Change]) -> str:
    """How many breaking changes a mark permits, and how many not."""
    permitted = sum(one.permitted for one in breaking)
    stable = sum(one.mark == stability.STABLE for one in breaking)
    other = len(breaking) - permitted - stable
    told = f"{stable} of stable items, {permitted} permitted by the mark of their item, {other} of others"
    return f"{told}. What is not permitted needs a major version, before 1.0 a minor one, and word of what to do."


def _mark(one: Change) -> str:
    return f"{one.mark or 'none'}: {'permitted' if one.permitted else 'not permitted by it'}"


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


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")
