"""Judge the demand law by measured runs: ``python -m kuayu_training.demand [--json FILE]``.

The table is ``llm_training_runs/runs.csv`` in the folder that KUAYU_DATA names (default ../shared/data).
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from kuayu_training.demand.judgement import report, tables
from kuayu_training.demand.runs import TABLE, folder, read


def main() -> int:
    """Print the tables, and write them as JSON where asked to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.demand", description=__doc__)
    parser.add_argument("--data", type=Path, default=folder(), help="folder with llm_training_runs in it")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    try:
        runs, left = read(arguments.data)
    except FileNotFoundError:
        sys.stderr.write(f"no {TABLE} in {arguments.data}; set KUAYU_DATA to the folder of the public data\n")
        return 2
    figures = report(runs, left)
    console = Console(width=150)
    for table in tables(figures):
        console.print(table)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
