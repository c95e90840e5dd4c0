"""What the second judge reads: transcripts, reports, the published register, and tables of measurements.

A transcript is one JSON object a line, compressed or not; lines of an episode carry its name. A request that is kept
has its body as ``request_body``, or as ``request_body_zlib``: base64 of a zlib stream (RFC 1950). What was played is in
the line ``truth`` of an episode. Nothing here holds for a run that was broken off and gone on with.
"""

import base64
import json
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "docs" / "results" / "runs"
REGISTER = ROOT / "schemas" / "kuayu_schemas" / "published" / "requirements.json"
TABLES = ROOT / "conformance" / "kuayu_conformance" / "corpora" / "tables"

Json = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """What a judge comes to: the figure, its bound, and the number of observations.

    The other bound is the best that the figure may be, where its clause gives one; a report does not print it.
    """

    estimate: float
    bound: float
    n: int
    other: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Printed:
    """What a report says of a requirement."""

    judged: Judged
    verdict: str


def episode(folder: Path, name: str) -> Iterator[Json]:
    """Lines of an episode, in order; a long transcript is not held in memory."""
    packed, plain = folder / "transcript.jsonl.xz", folder / "transcript.jsonl"
    mark = f'"episode":"{name}"'.encode()
    with lzma.open(packed) if packed.exists() else plain.open("rb") as lines:
        yield from (json.loads(line) for line in lines if mark in line[:200])


def exchanges(events: list[Json], path: str, status: int = 200) -> list[Json]:
    """Exchanges of a path that were answered with a status."""
    return [each for each in events if each["kind"] == "exchange" and each["path"] == path and each["status"] == status]


def asked(event: Json) -> Any:
    """JSON body of a request that is kept."""
    packed = event.get("request_body_zlib")
    return json.loads(event["request_body"] if packed is None else zlib.decompress(base64.b64decode(packed)))


def told(event: Json) -> Any:
    """JSON body of an answer."""
    return json.loads(event["body"])


def truth(events: list[Json]) -> list[Any]:
    """What was played in an episode."""
    found: list[Any] = next(each["value"] for each in events if each["kind"] == "truth")
    return found


def seconds(instant: str) -> float:
    """Unix time of an RFC 3339 instant."""
    return datetime.fromisoformat(instant).timestamp()


@cache
def report(folder: Path) -> dict[str, Printed]:
    """What the report of a run prints of each requirement that has a figure."""
    results = json.loads((folder / "report.json").read_text("utf-8"))["results"]
    return {
        row["requirement"]: Printed(Judged(row["estimate"], row["bound"], row["n"]), row["verdict"])
        for row in results
        if "estimate" in row
    }


def verdict(requirement: str, judged: Judged) -> str:
    """Verdict of a figure whose other expectations are met, by the threshold of the published register.

    It is open what misses the threshold while its other bound reaches it.
    """
    rows = json.loads(REGISTER.read_text("utf-8"))["requirements"]
    threshold = next(row["threshold"] for row in rows if row["id"] == requirement)
    sign = 1.0 if threshold["comparison"] == "at_least" else -1.0
    best = judged.estimate if judged.other is None else judged.other
    estimate, bound, other = (
        sign * value >= sign * threshold["value"] for value in (judged.estimate, judged.bound, best)
    )
    return "pass" if estimate and bound else "inconclusive" if estimate or other else "fail"


def table(name: str) -> Json:
    """A table of measurements that comes with the suite, as it is kept."""
    found: Json = json.loads((TABLES / f"{name}.json").read_text("utf-8"))
    return found
