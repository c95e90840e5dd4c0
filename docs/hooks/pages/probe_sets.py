"""Which workloads a device should run once: the committed experiment of tests/benchmarks/probe_sets.py."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .made import Made
from .markdown import page, percent, plain
from .text import phrases, text
from .translations import source_text, table_text

NAME = "probe_sets"
FILE = "docs/results/index/probe_sets.json"

SHOWN = 4
"""Probes for which the chosen tasks are listed: as many as figures of the standard allow for."""


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page of the experiment."""
    figures = json.loads((root / FILE).read_text("utf-8"))
    shown = {
        **figures,
        "method": plain(table_text(language, figures["method"])),
        "tables": [_table(language, each) for each in figures["tables"]],
    }
    yield Made("index/probe-sets.md", page(text(NAME, language, **shown)))


def _table(language: Language, figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """A table of measurements: what was chosen of it, and how well each way of choosing did."""
    say = phrases(NAME, language)
    none, *rows = figures["rows"]
    names = {task: plain(source_text(language, name)) for task, name in figures["names"].items()}
    last = next((row for row in rows if row["probes"] == SHOWN), rows[-1])
    chosen = (say["numbered"].format(names[task], times) for task, times in last["nested_tasks"])
    return {
        **figures,
        "table": plain(figures["table"]),
        "title": plain(table_text(language, figures["title"])),
        "none": percent(none["none"], 1),
        "rows": [_row(say["separator"], row, names) for row in rows],
        "probes": last["probes"],
        "chosen": say["separator"].join(chosen),
    }


def _row(separator: str, row: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, ...]:
    tenths = f"({percent(row['random_tenth'], 1)} – {percent(row['random_ninetieth'], 1)})"
    return (
        str(row["probes"]),
        f"{percent(row['random'], 1)} {tenths}",
        *(percent(row[kind], 1) for kind in ("fixed", "nested", "planned")),
        separator.join(names[task] for task in row["fixed_tasks"]),
    )
