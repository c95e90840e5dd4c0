"""Three requirements that a seed picked, made again from annexes A to C, beside what the suite found.

``docs/results/annexes.json`` has the figures; ``python -m second_judge.annexes`` writes it.
"""

import json
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .markdown import plain, table
from .requirements import requirement_link
from .text import phrases

NAME = "remade"

FILE = "docs/results/annexes.json"
MARK = "<!-- remade -->"
"""Stands in a page written by hand where the table goes."""


def figures(language: Language, root: Path) -> str:
    """The table."""
    say = phrases(NAME, language)
    found = json.loads((root / FILE).read_text("utf-8"))
    return table(say["columns"], (_row(language, row) for row in found["rows"]))


def _row(language: Language, row: dict[str, Any]) -> tuple[str, ...]:
    say = phrases(NAME, language)
    unit = "" if row["unit"] == "1" else f" {row['unit']}"
    digits = ".3g" if row["error"] else ".9g"
    suite = f"{row['suite']:{digits}}{unit}" + (f" ({row['suite_error']:.3g})" if "suite_error" in row else "")
    return (
        requirement_link(row["requirement"]),
        plain(say["quantities"][row["quantity"]]),
        plain(f"{row['annex']:{digits}}{unit}"),
        f"{row['error']:.3g}" if row["error"] else say["same"],
        plain(suite),
        str(row["n"]),
    )
