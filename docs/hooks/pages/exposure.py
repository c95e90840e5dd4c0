"""What another tenant notices of attacks, and what is lost in crashes: committed figures of two benchmarks.

1. ``tests/benchmarks/siege.py`` says what is wanted: a wait beyond the usual, seconds of detection, MiB.
2. ``tests/benchmarks/crashes.py`` is run twice: for writes that were acknowledged, and with ``--jobs`` for jobs.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kuayu_conformance.rendering.words import Language

from .markdown import code
from .results import FOLDER
from .text import phrases, text

NAME = "exposure"


def section(language: Language, root: Path) -> str:
    """The section for the results page."""
    say = phrases(NAME, language)
    siege, writes, jobs = (
        json.loads((root / f"docs/{FOLDER}/{name}.json").read_text("utf-8"))
        for name in ("siege", "crashes", "crashes_jobs")
    )
    attacks = [
        (
            code(row["attack"]) if row["attack"] else say["none"],
            f"{1000 * row['wait']:.0f}",
            f"{1000 * row['median']:.0f}",
            f"{row['detection']:.2f}",
            f"{row['memory']}",
            say["missed" if row["missed"] else "met"],
        )
        for row in siege["attacks"]
    ]
    crashes = [*_writes(say, writes["rounds"]), *_jobs(say, jobs["jobs"])]
    given = {"siege": siege, "load": f"{siege['load']:.1f}", "writes": writes, "jobs": jobs}
    return text(NAME, language, attacks=attacks, crashes=crashes, **given) + "\n"


def _writes(say: Mapping[str, Any], rounds: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Rows of acknowledged writes: what was played, crashes, what was acknowledged, what of it was lost."""
    for kind, played in rounds.items():
        acknowledged, lost = (sum(each[name] for each in played) for name in ("acknowledged", "lost"))
        yield say["crashes"][kind], say["writes"], f"{len(played)}", f"{acknowledged:,}", f"{lost}", ""


def _jobs(say: Mapping[str, Any], outcomes: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Rows of jobs; what must not be is that one runs twice or beside what it holds."""
    for kind, outcome in outcomes.items():
        lost, wrong = len({*outcome["lost"], *outcome["unfinished"]}), len(outcome["wrong"])
        yield say["crashes"][kind], say["jobs"], f"{outcome['crashes']}", f"{outcome['jobs']}", f"{lost}", f"{wrong}"
