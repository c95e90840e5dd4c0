"""What is committed of runs of the suite, read without the code that makes pages of it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from kuayu_schemas.models import ConformanceReport

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "docs/results/runs"
SUBMISSIONS = ROOT / "docs/results/submissions"
TABLE = ROOT / "docs/results/results.json"


@cache
def results() -> dict[str, dict[str, Any]]:
    """The table of results, by requirement."""
    return {row["requirement"]: row for row in json.loads(TABLE.read_text("utf-8"))}


@cache
def report(run: str) -> ConformanceReport:
    """The report of a run."""
    return ConformanceReport.model_validate_json((RUNS / run / "report.json").read_bytes())


def report_on(requirement: str) -> ConformanceReport:
    """The report that decides on a requirement."""
    return report(results()[requirement]["run"])
