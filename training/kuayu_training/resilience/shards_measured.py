"""How throughput between cloud regions differs after five days.

``python -m kuayu_training.resilience.shards_measured``

Reads ``wan/throughput.csv.gz`` in the folder that KUAYU_DATA names (default ../shared/data).
"""

import csv
import gzip
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

FIRST, SECOND = "2022-01-24", "2022-01-29"
ENDS = ("src_region", "src_tier", "src_instance_class", "dst_region", "dst_tier", "dst_instance_class")


def ratios(file: Path) -> list[float]:
    """Received throughput of each pair on the second day over that on the first."""
    by_pair: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if float(row["received_gbps"] or 0.0) > 0.0:
                by_pair[tuple(row[name] for name in ENDS)][row["measured"]].append(float(row["received_gbps"]))
    return [
        float(np.mean(days[SECOND]) / np.mean(days[FIRST])) for days in by_pair.values() if {FIRST, SECOND} <= set(days)
    ]


def main() -> int:
    """Print the quantiles; the exit code."""
    file = Path(os.environ.get("KUAYU_DATA", "../shared/data")) / "wan" / "throughput.csv.gz"
    try:
        quotients = np.array(ratios(file))
    except FileNotFoundError:
        sys.stderr.write(f"no {file}; set KUAYU_DATA to the folder of the public data\n")
        return 2
    quantiles = np.quantile(quotients, np.linspace(0.05, 0.95, 19)).round(3).tolist()
    within = float((np.abs(quotients - 1.0) <= 0.3).mean())
    sys.stdout.write(json.dumps({"pairs": len(quotients), "quantiles": quantiles, "within_30_percent": within}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
