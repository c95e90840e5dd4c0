"""Samples of the past, page by page, and how much of the past is kept."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, select

from kuayu.service.storage.tables import MEASURES, PRECISION_MEASURES, meta, sample


@dataclass(frozen=True, slots=True)
class SampleQuery:
    """Which samples are asked for.

    Attributes:
        subjects: Numbers of the subjects, with the device of each.
        since: First instant, in milliseconds.
        until: First instant that is not asked for any more.
        sequence: Commit that the listing is pinned to; what came later is not shown.
        after: Instant and device of the last sample that was given, None at the beginning.
        limit: Most samples.
    """

    subjects: Mapping[int, str | None]
    since: int
    until: int
    sequence: int
    after: tuple[int, str] | None
    limit: int


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample as it is held; instants in milliseconds."""

    observed: int
    device: str | None
    received: int
    measures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SampleSlice:
    """Samples in order of instant and device, and whether there are more."""

    samples: list[StoredSample]
    more: bool


def samples(connection: Connection, query: SampleQuery) -> SampleSlice:
    """Read samples. Each subject's are in order in the table; they are merged here."""
    streams = (_stream(connection, query, number, device) for number, device in query.subjects.items())
    merged = heapq.merge(*streams, key=lambda found: (found.observed, found.device or ""))
    found = [found for found, _ in zip(merged, range(query.limit + 1), strict=False)]
    return SampleSlice(found[: query.limit], len(found) > query.limit)


def _stream(connection: Connection, query: SampleQuery, number: int, device: str | None) -> Iterator[StoredSample]:
    since = query.since
    if query.after is not None:
        instant, last_device = query.after
        since = max(since, instant if (device or "") > last_device else instant + 1)
    rows = connection.execute(
        select(sample)
        .where(sample.c.subject_no == number, sample.c.observed >= since, sample.c.observed < query.until)
        .where(sample.c.sequence <= query.sequence)
        .order_by(sample.c.observed)
        .limit(query.limit + 1)
    )
    for row in rows.mappings():
        yield StoredSample(row["observed"], device, row["received"], measures(row, query.sequence))


def measures(row: Mapping[Any, Any], sequence: int) -> dict[str, Any]:
    """Measures of a row as they stood after a commit."""
    additions = (word.partition("=") for word in (row["late"] or "").split())
    late = {name for name, _, came in additions if int(came) > sequence}
    return {
        name: orjson.loads(row[name]) if name in PRECISION_MEASURES else row[name]
        for name in MEASURES
        if row[name] is not None and name not in late
    }


def sequence(connection: Connection) -> int:
    """Number of the newest commit."""
    return int(connection.execute(select(meta.c.value).where(meta.c.name == "sequence")).scalar_one())


def oldest(connection: Connection, owner: str) -> int:
    """Oldest revision of a tenant's resources that is still held whole."""
    kept = connection.execute(select(meta.c.value).where(meta.c.name == f"oldest:{owner}")).scalar()
    return int(kept or 0)
