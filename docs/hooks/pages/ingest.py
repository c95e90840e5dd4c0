"""How fast the reference takes samples in, beside the raw store: the committed figures of ``make benchmark-ingest``.

The limit of each database is the fastest raw store among those that wait for their commits, as the service does
(decision 38); what is measured without waiting is shown, and is no limit.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .markdown import percent, plain
from .results import FOLDER
from .text import text, vocabulary

NAME = "ingest"
AIM = 0.6


def section(language: Language, root: Path) -> str:
    """The section for the results page: a table for each database."""
    figures = json.loads((root / f"docs/{FOLDER}/ingest.json").read_text("utf-8"))
    postgresql = figures["postgresql"]
    databases = [
        _of_one(language, f"SQLite {figures['sqlite']}", figures["results"]),
        _of_one(language, f"PostgreSQL {postgresql['version']}", postgresql["results"]),
    ]
    return text(NAME, language, **figures, databases=databases) + "\n"


def _of_one(language: Language, database: str, results: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
    """What one database comes to, and rows of its table."""
    best = max(row["of_limit"] for row in results if row["way"].startswith("HTTP"))
    rows = [
        (
            plain(_way(language, row["way"])),
            f"{row['rows_per_second']:,}",
            percent(row["of_limit"]),
            f"{row['processor_microseconds']:.1f}",
        )
        for row in results
    ]
    return {"name": database, "best": percent(best), "met": best >= AIM, "rows": rows}


def _way(language: Language, way: str) -> str:
    """A way of writing in a language."""
    if language == "en":
        return way
    return "，".join(map(vocabulary(NAME).said, way.split(", ")))
