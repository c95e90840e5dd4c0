"""Judge what is told of logs by public data: ``python -m kuayu_training.resilience.logs [--json FILE]``.

The data is in the folder that KUAYU_DATA names (default ../shared/data). Forms of Xids come from NVIDIA's
documentation, not from the lines that judge them; the template miner has the defaults of its library; what is usual is
learned from the first part of each log, without labels, and judged on what comes after.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from kuayu_training.forecast.sources import folder
from kuayu_training.resilience.logs_report import tables
from kuayu_training.resilience.logs_templates import grouped
from kuayu_training.resilience.logs_unusual import lines_of_bgl, lines_unlabelled, sessions_100k, sessions_normal
from kuayu_training.resilience.logs_xids import recognised


def main() -> int:
    """Print the judgement; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.resilience.logs", description=__doc__)
    parser.add_argument("--data", type=Path, default=folder(), help="folder with failures and logs in it")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    try:
        found = judged(arguments.data)
    except FileNotFoundError as error:
        sys.stderr.write(f"no {error.filename}; set KUAYU_DATA to the folder of the public data\n")
        return 2
    console = Console(width=140)
    for each in tables(found):
        console.print(each)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def judged(data: Path) -> dict[str, Any]:
    """All figures.

    Raises:
        FileNotFoundError: A file is not there.
    """
    return {
        "xids": recognised(data),
        "templates": grouped(data),
        "unlabelled": lines_unlabelled(data),
        "unusual": [*lines_of_bgl(data), *sessions_100k(data), *sessions_normal(data)],
    }


if __name__ == "__main__":
    raise SystemExit(main())
