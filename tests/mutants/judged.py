"""The suite against one implementation, for its verdicts alone: no page is made, and nothing is drawn on a terminal.

Pages and lines on a terminal take a good part of a second, and of all rows of the matrix nobody reads them.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kuayu_conformance.cli import nonce_of
from kuayu_conformance.folder import REPORT
from kuayu_conformance.run.runner import Options, Progress, Run

SEED = 1
PATIENCE = 60.0
"""Seconds to wait for one answer; with as many processes as there are processors, some wait long for their turn."""


def main(arguments: Sequence[str]) -> None:
    """Hold an implementation against requirements.

    Args:
        arguments: URL of the implementation, folder for the transcript and the report, and requirements.
    """
    target, folder, *requirements = arguments
    options = Options(
        target=target,
        nonce=nonce_of(SEED, None),
        headers={"Authorization": "Bearer own"},
        other_headers={"Authorization": "Bearer other"},
        selection=tuple(requirements),
        timeout=PATIENCE,
        watch=False,  # runs beside this one keep the machine busy, and what is wrong is wrong all the same
    )
    report = Run(options, Path(folder), Progress()).execute()
    (Path(folder) / REPORT).write_text(report.model_dump_json(exclude_none=True), "utf-8")


def results(folder: Path) -> list[dict[str, Any]] | None:
    """Results of the report in a folder; None where the suite came to none."""
    path = folder / REPORT
    found: list[dict[str, Any]] | None = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else None
    return found
