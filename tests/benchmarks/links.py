"""How well the quality of unmeasured links is estimated, on real links between clouds.

``python tests/benchmarks/links.py --data DIR`` takes the round-trip times and throughputs of DIR/wan (the data folder
says where they come from), hides pairs of regions with both directions, estimates them from the rest, and prints the
error beside that of the median of all links. Places of regions are not in the data, so distance plays no part.
"""

import argparse
import csv
import gzip
import json
import os
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kuayu.perception.links import Path as Link
from kuayu.perception.links import estimate


def read(folder: Path) -> list[Link]:
    """Links between regions of which both time and throughput were measured; medians over what was repeated."""
    times: dict[tuple[str, str], list[float]] = {}
    for row in _rows(folder / "rtt.csv.gz"):
        if row["avg_rtt_ms"]:
            times.setdefault((row["src_region"], row["dst_region"]), []).append(float(row["avg_rtt_ms"]) / 1e3)
    widths: dict[tuple[str, str], list[float]] = {}
    for row in _rows(folder / "throughput.csv.gz"):
        if row["received_gbps"] and float(row["received_gbps"]) > 0:
            widths.setdefault((row["src_region"], row["dst_region"]), []).append(float(row["received_gbps"]) * 1e9)
    pairs = sorted(pair for pair in times.keys() & widths.keys() if pair[0] != pair[1])
    return [
        Link(f"{a}>{b}", a, b, None, statistics.median(widths[a, b]), statistics.median(times[a, b])) for a, b in pairs
    ]


def _rows(file: Path) -> list[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def errors(links: Sequence[Link], hidden: float, chance: random.Random) -> dict[str, list[float]]:
    """Relative errors of what was hidden: estimated, and by the median of what was not."""
    pairs = sorted({frozenset((link.source, link.destination)) for link in links}, key=sorted)
    gone = set(chance.sample(pairs, round(hidden * len(pairs))))
    shown = [
        replace(link, bandwidth=None, round_trip=None) if {link.source, link.destination} in gone else link
        for link in links
    ]
    found = estimate({}, shown)
    kept = [link for link in shown if link.round_trip is not None]
    usual_time = statistics.median(link.round_trip or 0.0 for link in kept)
    usual_width = statistics.median(link.bandwidth or 0.0 for link in kept)
    measured: dict[str, list[float]] = {name: [] for name in ("time", "time by median", "width", "width by median")}
    for link in links:
        if link.id in found and link.round_trip and link.bandwidth:
            guess = found[link.id]
            if guess.round_trip is not None:
                measured["time"].append(abs(guess.round_trip / link.round_trip - 1))
            if guess.bandwidth is not None:
                measured["width"].append(abs(guess.bandwidth / link.bandwidth - 1))
            measured["time by median"].append(abs(usual_time / link.round_trip - 1))
            measured["width by median"].append(abs(usual_width / link.bandwidth - 1))
    return measured


def main() -> None:
    """Hide a share of the pairs, again and again, and print the errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("KUAYU_DATA"), help="folder with wan/ in it")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    if options.data is None or not (Path(options.data) / "wan").is_dir():
        parser.error("no folder wan; name the data folder with --data or KUAYU_DATA")
    links = read(Path(options.data) / "wan")
    chance = random.Random(options.seed)
    rows = []
    for hidden in (0.1, 0.5, 0.9):
        runs = [errors(links, hidden, chance) for _ in range(options.repetitions)]
        row: dict[str, Any] = {"hidden": hidden, "links": len(links)}
        for name in runs[0]:
            together = [error for run in runs for error in run[name]]
            row[name] = {"median": statistics.median(together), "p90": statistics.quantiles(together, n=10)[-1]}
        rows.append(row)
    table = Table(
        "hidden", "round trip", "by the median", "bandwidth", "by the median", title="relative error, median (p90)"
    )
    for row in rows:
        cells = [
            f"{row[name]['median']:.1%} ({row[name]['p90']:.0%})"
            for name in ("time", "time by median", "width", "width by median")
        ]
        table.add_row(f"{row['hidden']:.0%}", *cells)
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
