"""Unusual lines and sessions, judged in the order of time: learn the first part without labels, judge what follows.

Yardsticks: a template that was not in the first part; a length, in characters of a line or templates of a session, that
was not between the 0.5 and the 99.5 % quantile there.
"""

import csv
import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kuayu.resilience.logs.reader import LogReader, Miner, Rarity, Sessions, is_calm

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
    rarity = Rarity.of({each.number: (each.words, each.seen) for each in miner.templates()})
    numbers = miner.take("".join(f"{text}\n" for text in texts[half:]).encode())
    words = {each.number: each.words for each in miner.templates()}
    surprise = np.array([rarity.of_line(number, words[number]) for number in numbers])
    quiet = np.array([is_calm(words[number]) for number in numbers])
    found = {
        "new template": np.array([number not in known for number in numbers]),
        "length": _odd([len(text) for text in texts[:half]], [len(text) for text in texts[half:]]),
        "new template, no INFO": np.array([number not in known for number in numbers]) & ~quiet,
        "surprise, no INFO": (surprise > rarity.limit) & ~quiet,
    }
    rows = [_row("BGL lines", name, flags, bad[half:], int(bad[:half].sum()), half) for name, flags in found.items()]
    return [row | _verdicts(numbers, flags, bad[half:]) for row, flags in zip(rows, found.values(), strict=True)]


def _verdicts(numbers: Sequence[int], flags: Flags, bad: Flags) -> dict[str, int]:
    """Verdicts when each template is told once, as the reader does, and how many begin with a line that is no alert."""
    first = {number: row for row, number in reversed(list(enumerate(numbers))) if flags[row]}
    return {"verdicts": len(first), "false_verdicts": sum(not bad[row] for row in first.values())}


def lines_unlabelled(data: Path) -> list[dict[str, Any]]:
    """What the reader tells of the second half of each sample without alerts; nobody knows which of it is right."""
    by_system: dict[str, list[str]] = {}
    with gzip.open(data / "logs" / "loghub_2k.csv.gz", "rt", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            line = f"{row['component']} {row['level']} {' '.join(row['content'].split())}\n"
            by_system.setdefault(row["system"], []).append(line)
    made = []
    for system, lines in by_system.items():
        half, reader = int(FIRST * len(lines)), LogReader()
        reader.take("".join(lines[:half]).encode())
        told = [each for each in reader.take("".join(lines[half:]).encode()) if each.kind == "anomaly"]
        if system != "BGL":
            count = len(told) + reader.untold
            made.append({"system": system, "judged": len(lines) - half, "told": count, "judges": reader.judges})
    return made


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


def _sessions(name: str, learned: Labelled, judged: Labelled) -> list[dict[str, Any]]:
    before, after = [session for session, _ in learned], [session for session, _ in judged]
    bad = np.array([label for _, label in judged])
    usual = Sessions()
    usual.learn(before)
    known = {item for session in before for item in session}
    found = {
        "new template": np.array([not known.issuperset(session) for session in after]),
        "length": _odd([len(session) for session in before], [len(session) for session in after]),
        "surprise": usual.surprises(after) > usual.limit,
    }
    faulty = sum(label for _, label in learned)
    rows = [_row(name, method, flags, bad, faulty, len(before)) for method, flags in found.items()]
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
