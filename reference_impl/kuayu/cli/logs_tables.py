"""Faults of a log as a table for people, and as JSON."""

import json
from typing import Any

from rich.console import Console
from rich.markup import escape

from kuayu.cli.tables import plain_table
from kuayu.resilience.logs.reading import LogReader
from kuayu.resilience.logs.summary import Group, Summary
from kuayu.resilience.logs.values import Follows, Severity, Verdict

ROWS = 40
"""Different faults that are printed at most."""

COLOURS = {Follows.DRAIN: "bold red", Follows.RESTART: "yellow", Follows.WATCH: "", Follows.NONE: "dim"}

console = Console(highlight=False)


def plain(verdict: Verdict) -> dict[str, Any]:
    """A verdict as an object of JSON."""
    return {
        "code": verdict.code,
        "kind": verdict.kind,
        "severity": verdict.severity.name.lower(),
        "about": verdict.about.value,
        "subject": verdict.subject,
        "node": verdict.node,
        "follows": verdict.follows.value,
        "what": verdict.what,
        "confidence": verdict.confidence.value,
        "line": verdict.evidence.line,
        "text": verdict.evidence.text,
        "template": verdict.evidence.template,
        "source": verdict.source.url if verdict.source else None,
    }


def line(verdict: Verdict, *, as_json: bool) -> str:
    """A verdict in one line."""
    if as_json:
        return json.dumps(plain(verdict), ensure_ascii=False)
    where = " ".join(each for each in (verdict.node, verdict.subject) if each)
    parts = (f"{verdict.evidence.line}:", verdict.follows.value, verdict.code, where, f"{verdict.what} |")
    return " ".join((*(each for each in parts if each), verdict.evidence.text))


def to_json(reader: LogReader, summary: Summary) -> dict[str, Any]:
    """All that was found, as an object of JSON."""
    return {
        "lines": reader.lines,
        "bytes": reader.bytes,
        "templates": len(reader.miner.templates()),
        "faults": [plain(each.verdict) | {"count": each.count, "last_line": each.last} for each in summary.groups()],
    }


def show(reader: LogReader, summary: Summary) -> None:
    """Print what was found."""
    groups = summary.groups()
    table = plain_table("follows", "fault", "of", ">lines", ">first", "what")
    for group in groups[:ROWS]:
        table.add_row(*_cells(group))
    if groups:
        console.print(table)
    if len(groups) > ROWS:
        console.print(f"and {len(groups) - ROWS} more; --json has all")
    worst = sum(each.verdict.severity is Severity.CRITICAL for each in groups)
    found = f"{len(groups)} faults and oddities, {worst} of them critical" if groups else "no fault"
    console.print(f"{found} in {reader.lines} lines of {len(reader.miner.templates())} templates")
    if reader.untold:
        console.print(f"[dim]{reader.untold} more forms of lines were unusual[/]")


def _cells(group: Group) -> tuple[str, ...]:
    verdict, colour = group.verdict, COLOURS[group.verdict.follows]
    follows = f"[{colour}]{verdict.follows.value}[/]" if colour else verdict.follows.value
    of = " ".join(each for each in (verdict.about.value, verdict.node, verdict.subject) if each)
    what = verdict.what if verdict.source else f"{verdict.what}: {verdict.evidence.template or verdict.evidence.text}"
    return follows, verdict.code, escape(of), f"{group.count}", f"{verdict.evidence.line}", escape(what)
