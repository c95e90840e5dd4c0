"""Recognition of Xids in lines of kernel logs, and false alarms in logs of systems without GPUs."""

import csv
import gzip
from pathlib import Path
from typing import Any

from kuayu.resilience.logs.reader import LogReader
from kuayu.resilience.logs.recogniser import Follows, Verdict, catalogue


def recognised(data: Path) -> dict[str, Any]:
    """Xids right, wrong and missed; numbers that the catalogue lacks; device faults told of logs without GPUs.

    Raises:
        FileNotFoundError: A file is not there.
    """
    with (data / "failures" / "nvidia_xid_message_examples.csv").open(encoding="utf-8", newline="") as text:
        examples = list(csv.DictReader(text))
    told = [[each.code for each in verdicts(row["message"])] for row in examples]
    wanted = [f"xid.{row['xid']}" for row in examples]
    with (data / "failures" / "nvidia_xid_catalog.csv").open(encoding="utf-8", newline="") as text:
        numbers = {int(row["xid"]) for row in csv.DictReader(text)}
    return {
        "examples": len(examples),
        "right": sum(found == [code] for found, code in zip(told, wanted, strict=True)),
        "wrong": sum(bool(found) and found != [code] for found, code in zip(told, wanted, strict=True)),
        "missed": sum(not found for found in told),
        "catalogue": len(numbers),
        "catalogue_missing": sorted(numbers - catalogue().xids.keys()),
        "others": _others(data),
    }


def verdicts(message: str) -> list[Verdict]:
    """What a text tells; its first line with all that belongs to it."""
    reader = LogReader(unusual=False)
    return reader.take(message.encode()) + reader.end()


def _others(data: Path) -> list[dict[str, Any]]:
    """Verdicts on logs of systems that have no GPU, so that each about a GPU, NCCL or HCCL is false."""
    by_system: dict[str, list[str]] = {}
    with gzip.open(data / "logs" / "loghub_2k.csv.gz", "rt", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            by_system.setdefault(row["system"], []).append(" ".join(row["content"].split("\n")))
    made = []
    for system, lines in by_system.items():
        found = verdicts("\n".join(lines) + "\n")
        gpu = [each for each in found if each.code.split(".")[0] in GPU]
        codes = sorted({each.code for each in found})
        drains = sum(each.follows is Follows.DRAIN for each in found)
        made.append(
            {
                "system": system,
                "lines": len(lines),
                "gpu": len(gpu),
                "all": len(found),
                "drains": drains,
                "codes": codes,
            }
        )
    return made


GPU = frozenset({"xid", "sxid", "gpu", "cuda", "nccl", "hccl", "npu", "amd"})
"""First words of codes that no log without accelerators can have."""
