"""Grouping accuracy of mined templates on the nine systems of the data, beside what was published of Drain.

Grouping accuracy (Zhu et al., ICSE-SEIP 2019): share of lines whose group has exactly the lines of a true group.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from kuayu.resilience.logs.reader import Miner

PUBLISHED = {
    "BGL": 0.9625,
    "HDFS": 0.9975,
    "HPC": 0.887,
    "Hadoop": 0.9475,
    "Linux": 0.69,
    "OpenStack": 0.7325,
    "Spark": 0.92,
    "Thunderbird": 0.955,
    "Zookeeper": 0.9665,
}
"""Drain of github.com/logpai/logparser (its README), with settings and expressions of each system's own."""


def grouped(data: Path) -> list[dict[str, Any]]:
    """A row for each system.

    Raises:
        FileNotFoundError: The file is not there.
    """
    systems: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with gzip.open(data / "logs" / "loghub_2k.csv.gz", "rt", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            systems[row["system"]].append((" ".join(row["content"].split("\n")), row["event_id"]))
    made = []
    for system, rows in sorted(systems.items()):
        numbers = Miner().take("".join(f"{content}\n" for content, _ in rows).encode())
        truth = [event for _, event in rows]
        made.append(
            {
                "system": system,
                "lines": len(rows),
                "accuracy": accuracy(numbers, truth),
                "published": PUBLISHED[system],
                "templates": len(set(numbers)),
                "true_templates": len(set(truth)),
            }
        )
    return made


def accuracy(found: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """Share of the lines whose found group is a true group."""
    true_groups = set(_groups(truth))
    return sum(len(group) for group in _groups(found) if group in true_groups) / len(truth)


def _groups(names: Sequence[Hashable]) -> list[frozenset[int]]:
    rows: dict[Hashable, set[int]] = defaultdict(set)
    for row, name in enumerate(names):
        rows[name].add(row)
    return [frozenset(each) for each in rows.values()]
