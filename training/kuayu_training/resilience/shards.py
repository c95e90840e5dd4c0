"""Compare shard plans and collectives.

``python -m kuayu_training.resilience.shards [--windows N] [--seed N] [--families NAME ...] [--json FILE]``

Every window is played under fixed shards, every static schedule of a grid (the best is chosen in hindsight, for each
family and measure anew), the reference's plan, and one who knows the bandwidths. Windows are those of the suite's
testbed, drawn from the seed and their number.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from kuayu_conformance.testbed.transfers.shard_simulation import FAMILIES
from kuayu_training.resilience import collectives_compare, shards_compare, shards_report

COLLECTIVES = "collectives"
"""The comparison beside those of shards."""


def main() -> int:
    """Play, print, and write; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.resilience.shards", description=__doc__)
    parser.add_argument("--windows", type=int, default=24, help="windows of each family")
    parser.add_argument("--seed", type=int, default=1, help="what windows are drawn from")
    choices = (*FAMILIES, COLLECTIVES)
    parser.add_argument("--families", nargs="+", choices=choices, default=choices, help="which comparisons; all")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    if arguments.windows < 1 or arguments.seed < 1:
        sys.stderr.write("--windows and --seed must be at least 1\n")
        return 2
    try:
        rows, collectives = _played(arguments.windows, arguments.seed, arguments.families)
    except KeyboardInterrupt:
        sys.stderr.write("stopped; nothing was written\n")
        return 130
    console = Console(width=170)
    for table in shards_report.tables(rows) if rows else ():
        console.print(table)
    for line in shards_report.words(rows):
        console.print(line)
    for table in collectives_compare.tables(collectives) if collectives else ():
        console.print(table)
    for line in collectives_compare.words(collectives):
        console.print(line)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        document = {"seed": arguments.seed, "shards": rows, "collectives": collectives}
        arguments.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def _played(windows: int, seed: int, wanted: Sequence[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    seeds = [100_000 * seed + number for number in range(windows)]
    rows: list[dict[str, Any]] = []
    collectives: list[dict[str, Any]] = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("windows", total=windows * len(wanted))
        for family in wanted:
            if family == COLLECTIVES:
                collectives = collectives_compare.figures(seeds, seed, lambda: progress.advance(task))
            else:
                names = [f"comparison/{number}" for number in seeds]
                results = shards_compare.played(family, names, lambda: progress.advance(task))
                rows += shards_compare.figures(results, seed)
    return rows, collectives


if __name__ == "__main__":
    raise SystemExit(main())
