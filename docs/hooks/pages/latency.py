"""How long a placement takes over HTTP: committed figures of ``tests/benchmarks/patched_states.py``, and their aims.

The aims are those of decision 39: p99 over HTTP, in milliseconds.
"""

import json
from pathlib import Path

from kuayu_conformance.rendering.words import Language

from .results import FOLDER
from .text import phrases, text

NAME = "latency"
AIMS = {"5 domains, whole": 50.0, "5 domains, as a patch": 20.0, "64 domains, whole": 300.0}
"""What p99 is to be at most, in milliseconds, by kinds of requests, as the benchmark names them (decision 39)."""


def section(language: Language, root: Path) -> str:
    """The section for the results page."""
    say = phrases(NAME, language)
    figures = json.loads((root / f"docs/{FOLDER}/latency.json").read_text("utf-8"))
    rows = []
    for kind, aim in AIMS.items():
        row = figures["ms"][f"{kind}, this"]
        rows.append(
            (
                say["kinds"][kind],
                f"{row['requests']}",
                f"{row['p50']:.0f}",
                f"{row['p99']:.0f}",
                f"{aim:.0f}",
                say["met" if row["p99"] <= aim else "missed"],
                f"{row['processor']:.0f}",
            )
        )
    return text(NAME, language, **figures, load=f"{figures['machine']['load'][0]:.1f}", rows=rows) + "\n"
