"""Judge what is told of logs by public data: ``python -m kuayu_training.resilience.logs [--json FILE]``.

1. The data is in the folder that KUAYU_DATA names (default ../shared/data).
2. *Xids* are recognised in lines of kernel logs, and false alarms counted in logs of systems without GPUs. Their forms
   come from NVIDIA's documentation, not from the lines that judge them.
3. *Templates*: grouping accuracy on the nine systems of the data, beside what was published of Drain: the share of
   lines whose group has exactly the lines of a true group (Zhu et al., ICSE-SEIP 2019). The template miner has the
   defaults of its library.
4. *Unusual lines and sessions* are judged in the order of time: what is usual is learned from the first part of each
   log, without labels, and judged on what comes after. Baselines: a template that was not in the first part; a length,
   in characters of a line or templates of a session, that was not between the 0.5 and the 99.5 % quantile there.
"""

import argparse
import csv
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from kuayu.resilience.logs.reader import LogReader, Miner, Rarity, Sessions, is_calm
from kuayu.resilience.logs.recogniser import Follows, Verdict, catalogue
from kuayu_training.forecast.sources import folder


def main() -> int:
    """Print the judgement; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kuayu_training.resilience.logs", description=__doc__)
    parser.add_argument("--data", type=Path, default=folder(), help="folder with failures and logs in it")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    try:
        results = judged(arguments.data)
    except FileNotFoundError as error:
        sys.stderr.write(f"no {error.filename}; set KUAYU_DATA to the folder of the public data\n")
        return 2
    console = Console(width=140)
    for table in tables(results):
        console.print(table)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
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
    scores = []
    for system, rows in sorted(systems.items()):
        numbers = Miner().take("".join(f"{content}\n" for content, _ in rows).encode())
        truth = [event for _, event in rows]
        scores.append(
            {
                "system": system,
                "lines": len(rows),
                "accuracy": accuracy(numbers, truth),
                "published": PUBLISHED[system],
                "templates": len(set(numbers)),
                "true_templates": len(set(truth)),
            }
        )
    return scores


def accuracy(predicted: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """Share of the lines whose predicted group is a true group."""
    true_groups = set(_groups(truth))
    return sum(len(group) for group in _groups(predicted) if group in true_groups) / len(truth)


Flags = npt.NDArray[np.bool_]

TAILS = (0.005, 0.995)
"""Quantiles of the lengths that are usual."""

FIRST = 0.5
"""Share of BGL's lines that is learned."""


def lines_of_bgl(data: Path) -> list[dict[str, Any]]:
    """Lines of BGL's sample: the second half judged after the first was learned; templates as mined, not as labelled.

    As in the log itself, component and level stand before the message.
    """
    with gzip.open(data / "logs" / "loghub_2k.csv.gz", "rt", encoding="utf-8", newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["system"] == "BGL"]
    rows.sort(key=lambda row: int(row["line"]))
    half = int(FIRST * len(rows))
    texts = [f"{row['component']} {row['level']} {row['content']}" for row in rows]
    bad = np.array([row["is_alert"] == "1" for row in rows])
    miner = Miner()
    known = set(miner.take("".join(f"{text}\n" for text in texts[:half]).encode()))
    rarity = Rarity.of({template.number: (template.words, template.seen) for template in miner.templates()})
    numbers = miner.take("".join(f"{text}\n" for text in texts[half:]).encode())
    words = {template.number: template.words for template in miner.templates()}
    surprise = np.array([rarity.of_line(number, words[number]) for number in numbers])
    quiet = np.array([is_calm(words[number]) for number in numbers])
    methods = {
        "new template": np.array([number not in known for number in numbers]),
        "length": _odd([len(text) for text in texts[:half]], [len(text) for text in texts[half:]]),
        "new template, no INFO": np.array([number not in known for number in numbers]) & ~quiet,
        "surprise, no INFO": (surprise > rarity.limit) & ~quiet,
    }
    rows = [_row("BGL lines", name, flags, bad[half:], int(bad[:half].sum()), half) for name, flags in methods.items()]
    return [row | _verdicts(numbers, flags, bad[half:]) for row, flags in zip(rows, methods.values(), strict=True)]


def lines_unlabelled(data: Path) -> list[dict[str, Any]]:
    """What the reader tells of the second half of each sample without alerts; nobody knows which of it is right."""
    by_system: dict[str, list[str]] = {}
    with gzip.open(data / "logs" / "loghub_2k.csv.gz", "rt", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            line = f"{row['component']} {row['level']} {' '.join(row['content'].split())}\n"
            by_system.setdefault(row["system"], []).append(line)
    results = []
    for system, lines in by_system.items():
        half, reader = int(FIRST * len(lines)), LogReader()
        reader.take("".join(lines[:half]).encode())
        anomalies = [verdict for verdict in reader.take("".join(lines[half:]).encode()) if verdict.kind == "anomaly"]
        if system != "BGL":
            count = len(anomalies) + reader.untold
            results.append({"system": system, "judged": len(lines) - half, "told": count, "judges": reader.judges})
    return results


def sessions_100k(data: Path) -> list[dict[str, Any]]:
    """Blocks of HDFS's first 100 000 lines: the source's own train part is learned, faults and all, without labels."""
    with gzip.open(data / "logs" / "hdfs_100k_sessions.csv.gz", "rt", encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    parts = {
        name: [(tuple(map(int, row["sequence"].split())), row["label"] == "1") for row in rows]
        for name, rows in ((name, [row for row in rows if row["source_split"] == name]) for name in ("train", "test"))
    }
    return _sessions("HDFS 100k blocks", parts["train"], parts["test"])


def sessions_normal(data: Path) -> list[dict[str, Any]]:
    """Blocks of HDFS: normal ones are learned; judged are normal and faulty ones, half and half."""
    with gzip.open(data / "logs" / "hdfs_event_sequences.csv.gz", "rt", encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    parts = {
        name: [(tuple(map(int, row["sequence"].split())), row["label"] == "1") for row in rows if row["part"] == name]
        for name in ("normal_train", "mixed_valid")
    }
    return _sessions("HDFS blocks, learned normal", parts["normal_train"], parts["mixed_valid"])


Labelled = Sequence[tuple[tuple[int, ...], bool]]


def recognised(data: Path) -> dict[str, Any]:
    """Xids right, wrong and missed; numbers that the catalogue lacks; device faults told of logs without GPUs.

    Raises:
        FileNotFoundError: A file is not there.
    """
    with (data / "failures" / "nvidia_xid_message_examples.csv").open(encoding="utf-8", newline="") as text:
        examples = list(csv.DictReader(text))
    codes = [[verdict.code for verdict in verdicts(row["message"])] for row in examples]
    wanted = [f"xid.{row['xid']}" for row in examples]
    with (data / "failures" / "nvidia_xid_catalog.csv").open(encoding="utf-8", newline="") as text:
        numbers = {int(row["xid"]) for row in csv.DictReader(text)}
    return {
        "examples": len(examples),
        "right": sum(named == [code] for named, code in zip(codes, wanted, strict=True)),
        "wrong": sum(bool(named) and named != [code] for named, code in zip(codes, wanted, strict=True)),
        "missed": sum(not named for named in codes),
        "catalogue": len(numbers),
        "catalogue_missing": sorted(numbers - catalogue().xids.keys()),
        "others": _others(data),
    }


def verdicts(message: str) -> list[Verdict]:
    """What a text tells; its first line with all that belongs to it."""
    reader = LogReader(unusual=False)
    return reader.take(message.encode()) + reader.end()


GPU = frozenset({"xid", "sxid", "gpu", "cuda", "nccl", "hccl", "npu", "amd"})
"""First words of codes that no log without accelerators can have."""


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """A table for each part."""
    xids = results["xids"]
    table = Table(
        "Xid lines", "right", "wrong", "missed", "numbers of the catalogue", "of them not known", title="Xids"
    )
    cells = (xids["examples"], xids["right"], xids["wrong"], xids["missed"], xids["catalogue"])
    table.add_row(*(str(cell) for cell in cells), str(len(xids["catalogue_missing"])))
    yield table
    title = "Verdicts on systems without GPUs: those about GPUs are false"
    table = Table("system", "lines", "about GPUs", "all", "drain", "which", title=title)
    for row in xids["others"]:
        counts = (str(row[name]) for name in ("lines", "gpu", "all", "drains"))
        table.add_row(row["system"], *counts, ", ".join(row["codes"]))
    yield table
    title = "Grouping accuracy of templates; Drain as published has expressions of each system's own"
    table = Table("system", "here", "Drain, published", "templates", "true templates", title=title)
    rows = results["templates"]
    for row in rows:
        figures = (
            f"{row['accuracy']:.4f}",
            f"{row['published']:.4f}",
            str(row["templates"]),
            str(row["true_templates"]),
        )
        table.add_row(row["system"], *figures)
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in ("accuracy", "published")}
    table.add_row("mean", f"{mean['accuracy']:.4f}", f"{mean['published']:.4f}", "", "")
    yield table
    title = "Lines told as unusual in the second half of samples without labels"
    table = Table("system", "lines judged", "told", "enough learned", title=title)
    for row in results["unlabelled"]:
        table.add_row(row["system"], str(row["judged"]), str(row["told"]), "yes" if row["judges"] else "no")
    yield table
    yield _unusual(results["unusual"])


def _groups(names: Sequence[Hashable]) -> list[frozenset[int]]:
    rows: dict[Hashable, set[int]] = defaultdict(set)
    for row, name in enumerate(names):
        rows[name].add(row)
    return [frozenset(group) for group in rows.values()]


def _verdicts(numbers: Sequence[int], flags: Flags, bad: Flags) -> dict[str, int]:
    """Verdicts when each template is told once, as the reader does, and how many begin with a line that is no alert."""
    first = {number: row for row, number in reversed(list(enumerate(numbers))) if flags[row]}
    return {"verdicts": len(first), "false_verdicts": sum(not bad[row] for row in first.values())}


def _sessions(name: str, learned: Labelled, judged: Labelled) -> list[dict[str, Any]]:
    before, after = [session for session, _ in learned], [session for session, _ in judged]
    bad = np.array([label for _, label in judged])
    usual = Sessions()
    usual.learn(before)
    known = {item for session in before for item in session}
    methods = {
        "new template": np.array([not known.issuperset(session) for session in after]),
        "length": _odd([len(session) for session in before], [len(session) for session in after]),
        "surprise": usual.surprises(after) > usual.limit,
    }
    faulty = sum(label for _, label in learned)
    rows = [_row(name, method, flags, bad, faulty, len(before)) for method, flags in methods.items()]
    like = {session for session, label in learned if not label}
    alike = sum(session in like for session, label in judged if label)
    return [row | {"faulty_like_normal": alike} for row in rows]


def _odd(before: Sequence[int], after: Sequence[int]) -> Flags:
    low, high = np.quantile(before, TAILS)
    lengths = np.asarray(after)
    odd: Flags = (lengths < low) | (lengths > high)
    return odd


def _row(log: str, method: str, flags: Flags, bad: Flags, faulty: int, learned: int) -> dict[str, Any]:
    right = int((flags & bad).sum())
    ratio: Callable[[float, float], float | None] = lambda part, whole: part / whole if whole else None  # noqa: E731
    return {
        "log": log,
        "method": method,
        "learned": learned,
        "learned_faulty": faulty,
        "judged": len(bad),
        "judged_faulty": int(bad.sum()),
        "precision": ratio(right, int(flags.sum())),
        "recall": ratio(right, int(bad.sum())),
        "f1": ratio(2 * right, int(flags.sum()) + int(bad.sum())),
        "false_alarms_per_1000": ratio(1000.0 * int((flags & ~bad).sum()), int((~bad).sum())),
    }


def _others(data: Path) -> list[dict[str, Any]]:
    """Verdicts on logs of systems that have no GPU, so that each about a GPU, NCCL or HCCL is false."""
    by_system: dict[str, list[str]] = {}
    with gzip.open(data / "logs" / "loghub_2k.csv.gz", "rt", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            by_system.setdefault(row["system"], []).append(" ".join(row["content"].split("\n")))
    results = []
    for system, lines in by_system.items():
        judged = verdicts("\n".join(lines) + "\n")
        gpu = [verdict for verdict in judged if verdict.code.split(".")[0] in GPU]
        codes = sorted({verdict.code for verdict in judged})
        drains = sum(verdict.follows is Follows.DRAIN for verdict in judged)
        results.append(
            {
                "system": system,
                "lines": len(lines),
                "gpu": len(gpu),
                "all": len(judged),
                "drains": drains,
                "codes": codes,
            }
        )
    return results


def _unusual(rows: list[dict[str, Any]]) -> Table:
    table = Table("log", "method", "learned (faulty)", "judged (faulty)", title="Unusual lines and sessions")
    for name in ("precision", "recall", "F1", "false alarms/1000 normal", "verdicts (false)"):
        table.add_column(name, justify="right")
    for row in rows:
        alike = row.get("faulty_like_normal")
        judged = f"{row['judged']} ({row['judged_faulty']}" + (f", {alike} like normal)" if alike else ")")
        table.add_row(
            row["log"],
            row["method"],
            f"{row['learned']} ({row['learned_faulty']})",
            judged,
            *("–" if row[name] is None else f"{row[name]:.3f}" for name in ("precision", "recall", "f1")),
            f"{row['false_alarms_per_1000']:.1f}",
            f"{row['verdicts']} ({row['false_verdicts']})" if "verdicts" in row else "",
        )
    return table


if __name__ == "__main__":
    raise SystemExit(main())
