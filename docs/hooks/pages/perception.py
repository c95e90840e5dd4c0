"""What perception costs and how well it does beside what the suite judges: committed figures of the benchmarks."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .made import Made
from .markdown import page, plain, table
from .text import phrases, text
from .translations import figure_name

FOLDER = "docs/results/perception"

NAME = "perception"
RUNS = ("recognition", "false_alarms", "replay", "graph", "outage", "queries", "rollup", "links")
"""Files of committed runs, each with a section of its own."""
DIGITS = 4


def pages(language: Language, root: Path) -> Iterator[Made]:
    """The one page, with a section for each committed run."""
    files = {name: root / FOLDER / f"{name}.json" for name in RUNS}
    found = {
        name: list(figures(language, json.loads(file.read_text("utf-8")))) if file.is_file() else []
        for name, file in files.items()
    }
    yield Made("results-perception.md", page(text(NAME, language, **found)))


def figures(language: Language, measured: Any) -> Iterator[str]:
    """Tables of all figures of a benchmark, by the names that it gives them, in a language."""
    leaves = list(_leaves(measured, ()))
    for path, group in groupby(leaves, key=lambda leaf: leaf[0][:-1]):
        if path:
            yield f"**{plain(' · '.join(figure_name(language, name) for name in path))}**"
        rows = ((plain(figure_name(language, names[-1])), _shown(language, value)) for names, value in group)
        yield table(phrases(NAME, language)["columns"], rows)


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Figures with the names that lead to them; a list of plain values is one figure."""
    if isinstance(value, Mapping):
        plain_first = sorted(value.items(), key=lambda item: isinstance(item[1], Mapping | list))
        for name, member in plain_first:
            yield from _leaves(member, (*path, str(name).replace("_", " ")))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for number, item in enumerate(value, start=1):
            yield from _leaves(item, (*path, str(number)))
    else:
        yield path, value


def _shown(language: Language, value: Any) -> str:
    match value:
        case bool() | None:
            return plain(figure_name(language, str(value)))
        case float():
            return f"{value:,.{DIGITS}g}" if abs(value) < 10**DIGITS else f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case list():
            return plain(", ".join(map(str, value)))
    return plain(figure_name(language, str(value)))
