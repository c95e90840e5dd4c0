"""What requests read: samples, newest values, series and listings, each from one state of the database.

1. Samples of the past, page by page, and how much of the past is kept.
2. Newest values of measures, at or before an instant. A measure with a period is looked for in the few periods for
   which a value lives: first in the newest sample of each subject, where nearly all are, then in those before it. A
   lasting measure is looked for as far back as there are samples, by way of its own index.
3. The newest sample of each of many subjects, found by a step into the primary key for each. That is not the newest
   value of each measure: one that is reported less often than others stands in an older sample.
4. Series: what was observed of a measure, step by step, from samples and from what older ones are rolled up to.
5. What requests read. Each method shows one state of the database.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import orjson
from sqlalchemy import Connection, RowMapping, Select, TextClause, bindparam, func, or_, select, text

from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import (
    COMPUTE_IDENTIFIER,
    KINDS,
    NODE,
    Catalogue,
    Kind,
    Listing,
    ResourceRecord,
    Revision,
    Scope,
    find,
    subjects_of,
)
from kuayu.service.storage.rollup import BLOCK, FINEST, Steps, frontier, joined, nothing, steps_of, totals, unpack
from kuayu.service.storage.tables import (
    LASTING_MEASURES,
    MEASURES,
    PRECISION_MEASURES,
    meta,
    reference,
    resource,
    rollup,
    sample,
    subject,
    tenant,
)


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
    merged = heapq.merge(*streams, key=lambda sample: (sample.observed, sample.device or ""))
    result = list(islice(merged, query.limit + 1))
    return SampleSlice(result[: query.limit], len(result) > query.limit)


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
    stored = connection.execute(select(meta.c.value).where(meta.c.name == f"oldest:{owner}")).scalar()
    return int(stored or 0)


MAX_LIFE_MILLISECONDS = 300_000
"""Milliseconds for which a value of any dynamic measure may live: five periods of at most a minute."""

VALUES_PER_STATEMENT = 400
"""Subjects or rows that one statement asks for."""

_DYNAMIC = tuple(name for name in MEASURES if name not in LASTING_MEASURES)

_NEVER_LATE = 1 << 62

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObservedValue:
    """A value and when it was observed, in milliseconds."""

    quantity: Any
    instant: int


ObservedValues = dict[int, dict[str, ObservedValue]]


def values(connection: Connection, numbers: Sequence[int], instant: int) -> ObservedValues:
    """Newest value of each measure, subject by subject; subjects and measures without any are left out."""
    result: ObservedValues = {}
    for chunk in _chunks(numbers):
        lacking = _of_newest_samples(connection, chunk, instant, result)
        for names, subjects in lacking.items():
            _of_earlier_samples(connection, names, subjects, instant, result)
        _lasting(connection, chunk, instant, result)
    return {number: existing for number, existing in result.items() if existing}


def _of_newest_samples(
    connection: Connection, numbers: Sequence[int], limit: int, result: ObservedValues
) -> dict[tuple[str, ...], list[int]]:
    """Note what the newest sample of each subject states; the subjects by the dynamic measures that it does not."""
    instant = (
        select(func.max(sample.c.observed))
        .where(
            sample.c.subject_no == subject.c.no,
            sample.c.observed <= limit,
            sample.c.observed >= limit - MAX_LIFE_MILLISECONDS,
        )
        .scalar_subquery()
    )
    newest = connection.execute(select(subject.c.no, instant).where(subject.c.no.in_(numbers)))
    lacking: dict[tuple[str, ...], list[int]] = {}
    for row in _samples(connection, [(number, observed) for number, observed in newest if observed is not None]):
        number, observed = row["subject_no"], row["observed"]
        existing = {name: ObservedValue(row[name], observed) for name in _DYNAMIC if row[name] is not None}
        result[number] = existing
        if len(existing) < len(_DYNAMIC):
            lacking.setdefault(tuple(name for name in _DYNAMIC if name not in existing), []).append(number)
    return lacking


def _of_earlier_samples(
    connection: Connection, names: tuple[str, ...], numbers: Sequence[int], limit: int, result: ObservedValues
) -> None:
    """Note measures that the newest samples of some subjects lack and others before them have."""
    columns = [sample.c[name] for name in names]
    query = (
        select(sample.c.subject_no, sample.c.observed, *columns)
        .where(
            sample.c.subject_no.in_(numbers),
            sample.c.observed <= limit,
            sample.c.observed >= limit - MAX_LIFE_MILLISECONDS,
        )
        .where(or_(*(column.is_not(None) for column in columns)))
        .order_by(sample.c.subject_no, sample.c.observed.desc())
    )
    for number, instant, *quantities in connection.execute(query):
        existing = result[number]
        for name, value in zip(names, quantities, strict=True):
            if value is not None and name not in existing:
                existing[name] = ObservedValue(value, instant)


def _lasting(connection: Connection, numbers: Sequence[int], limit: int, result: ObservedValues) -> None:
    """Note lasting measures."""
    wanted: dict[tuple[int, int], list[str]] = {}
    query = _lasting_instants(connection.dialect.name)
    for number, *newest in connection.execute(query, {"numbers": list(numbers), "at": limit}):
        for name, instant in zip(LASTING_MEASURES, newest, strict=True):
            if instant is not None:
                wanted.setdefault((number, instant), []).append(name)
    for row in _samples(connection, list(wanted)):
        existing = measures(row, _NEVER_LATE)
        number, instant = row["subject_no"], row["observed"]
        for name in wanted[number, instant]:
            result.setdefault(number, {})[name] = ObservedValue(existing[name], instant)


@cache
def _lasting_instants(dialect: str) -> TextClause:
    """Statement for the newest instant of each lasting measure.

    SQLite has to be told which index to use. It would take the primary key, and where a subject never had a measure it
    would look at all samples of that subject.
    """
    indexed = "INDEXED BY sample_{}" if dialect == "sqlite" else ""
    instants = ", ".join(
        f"(SELECT max(observed) FROM sample {indexed.format(name)} "  # noqa: S608 - names of our own
        f"WHERE subject_no = subject.no AND observed <= :at AND {name} IS NOT NULL)"
        for name in LASTING_MEASURES
    )
    statement = f"SELECT no, {instants} FROM subject WHERE no IN :numbers"  # noqa: S608 - names of our own
    return text(statement).bindparams(bindparam("numbers", expanding=True))


def _samples(connection: Connection, keys: Sequence[tuple[int, int]]) -> Iterator[RowMapping]:
    """Samples by subject and instant. SQLite finds them by their key only where they are joined with what is wanted."""
    pair = "(?, ?)" if connection.dialect.name == "sqlite" else "(%s::bigint, %s::bigint)"
    for chunk in _chunks(keys):
        places = ", ".join([pair] * len(chunk))
        statement = (
            f"WITH wanted (no, instant) AS (VALUES {places}) SELECT sample.* FROM wanted "  # noqa: S608 - places alone
            "JOIN sample ON sample.subject_no = wanted.no AND sample.observed = wanted.instant"
        )
        yield from connection.exec_driver_sql(statement, tuple(chain.from_iterable(chunk))).mappings()


def _chunks(items: Sequence[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, VALUES_PER_STATEMENT)):
        yield chunk


SUBJECTS_PER_STATEMENT = 10_000
"""Subjects that one statement asks for."""


def newest_samples(
    database: Database, numbers: Sequence[int], measures: Sequence[str], instant: int
) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Newest samples that may live at an instant, some at a time; of subjects without one, nothing. Blocking.

    Args:
        database: Where they are.
        numbers: Numbers of the subjects.
        measures: What is wanted of each sample.
        instant: The instant, in milliseconds.

    Yields:
        Rows of number, instant and measures, None for one that was not observed.
    """
    within = (sample.c.observed <= instant, sample.c.observed >= instant - MAX_LIFE_MILLISECONDS)
    newest = select(sample.c.observed).where(sample.c.subject_no == subject.c.no, *within)
    last = newest.order_by(sample.c.observed.desc()).limit(1).correlate(subject).scalar_subquery()
    result = (sample.c.subject_no == subject.c.no) & (sample.c.observed == last)
    columns = (sample.c.subject_no, sample.c.observed, *(sample.c[name] for name in measures))
    query = select(*columns).select_from(subject.join(sample, result))
    for start in range(0, len(numbers), SUBJECTS_PER_STATEMENT):
        with database.reading() as connection:
            chosen = query.where(subject.c.no.in_(numbers[start : start + SUBJECTS_PER_STATEMENT]))
            yield [tuple(row) for row in connection.execute(chosen)]


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """Which series is asked for.

    Attributes:
        subject: Number of the subject.
        measure: A measure that is one number.
        since: Begin of the first step, in milliseconds; a multiple of ``step``.
        until: End of the last step, likewise.
        step: Length of a step in milliseconds.
    """

    subject: int
    measure: str
    since: int
    until: int
    step: int


def series(connection: Connection, query: SeriesQuery) -> Steps | None:
    """Read a series; None where parts of it are kept in coarser steps only."""
    rolled_until, since = query.since, query.since
    reached = frontier(connection)
    if reached is not None:
        rolled_until = min(max(query.since, reached.of(query.subject)), query.until)
        # A step of which a part is forgotten would state the rest as the whole.
        since = max(query.since, -(-reached.forgotten // query.step) * query.step)
    old = _rolled(connection, query, since - since % FINEST, rolled_until)
    recent = max(since, rolled_until)
    if query.step % FINEST:
        return None if len(old) else _counted(connection, query, since, query.until, query.step)
    left = _counted(connection, query, since, recent, FINEST)
    return joined([_fuller(old, left), _counted(connection, query, recent, query.until, query.step)]).grouped(
        query.step
    )


def _fuller(rolled: Steps, counted: Steps) -> Steps:
    """Of steps that lie before the frontier those with more values: samples may be deleted, or have come too late."""
    if not len(counted):
        return rolled
    both = joined([rolled, counted])
    order = np.lexsort((-both.count, both.start))
    first = order[np.flatnonzero(np.diff(both.start[order], prepend=-1))]
    return Steps(both.start[first], both.count[first], both.mean[first], both.minimum[first], both.maximum[first])


def _rolled(connection: Connection, query: SeriesQuery, since: int, until: int) -> Steps:
    """What is rolled up of the steps that begin at ``since`` or later and before ``until``."""
    rows = connection.execute(
        select(rollup.c.start, rollup.c.packed)
        .where(rollup.c.subject_no == query.subject, rollup.c.measure == query.measure)
        .where(rollup.c.start > since - BLOCK, rollup.c.start < until)
        .order_by(rollup.c.start)
    ).all()
    return joined([nothing(), *(unpack(row.packed, row.start) for row in rows)]).between(since, until)


def _counted(connection: Connection, query: SeriesQuery, since: int, until: int, length: int) -> Steps:
    """Steps made of the samples themselves, which the database adds up."""
    if since >= until:
        return nothing()
    step = ((sample.c.observed - query.since) // length).label("step")
    rows = connection.execute(
        select(step, *totals(query.measure))
        .where(sample.c.subject_no == query.subject, sample.c[query.measure].is_not(None))
        .where(sample.c.observed >= since, sample.c.observed < until)
        .group_by("step")
        .order_by("step")
    ).all()
    if not rows:
        return nothing()
    result = np.array([tuple(row) for row in rows], np.float64)
    return steps_of(query.since + result[:, 0].astype(np.int64) * length, result[:, 1:])


PAGE_CHARACTERS = 8 * 1024 * 1024
"""Characters of JSON after which a page of a listing ends, though it has fewer items than were asked for."""

LISTED_ROWS_PER_READ = 50
"""Rows of a listing that are in memory before it is known whether they still belong to the page."""


@dataclass(frozen=True, slots=True)
class Identifiers:
    """What is known of compute identifiers around one of them.

    Attributes:
        members: Registered services and families with their members.
        nodes: Nodes that bear each identifier of the node tier.
        revision: Revision that this shows.
    """

    members: Mapping[str, Sequence[str]]
    nodes: Mapping[str, Sequence[str]]
    revision: Revision


class Store:
    """Reads of the database, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def epoch(self) -> str:
        """Life of the state."""
        return self._database.epoch

    def load(self, catalogue: Catalogue) -> None:
        """Fill the catalogue with what is registered."""
        with self._reading() as connection:
            subjects = connection.execute(select(subject))
            numbers = {(row.tenant, row.kind, row.id, row.device or None): row.no for row in subjects}
            columns = (resource.c.tenant, resource.c.kind, resource.c.id, resource.c.body)
            rows = connection.execute(_valid(select(*columns)))
            for row in rows:
                keys = subjects_of(KINDS[row.kind], row.id, orjson.loads(row.body))
                catalogue.replace(row.tenant, (), {key: numbers[row.tenant, *key] for key in keys})

    def revision(self, owner: str) -> Revision:
        """Where a tenant's resources stand."""
        with self._reading() as connection:
            return self._revision(connection, owner)

    def record(self, owner: str, kind: Kind, name: str) -> ResourceRecord | None:
        """A resource as it stands, or None."""
        with self._reading() as connection:
            return find(connection, self._scope(owner), kind, name)

    def records(self, kind: Kind) -> list[tuple[str, ResourceRecord]]:
        """All resources of a kind with their tenants."""
        query = _valid(
            select(resource.c.tenant, resource.c.body, resource.c.valid_from, resource.c.updated).where(
                resource.c.kind == kind.name
            )
        )
        with self._reading() as connection:
            return [(row.tenant, self._record(row)) for row in connection.execute(query)]

    def listing(
        self, owner: str, kind: Kind, *, revision: Revision | None, after: str, limit: int, parent: str | None
    ) -> Listing[ResourceRecord] | None:
        """Part of a listing, in order of identifier.

        Args:
            owner: The tenant.
            kind: What is listed.
            revision: Revision that the listing is pinned to; None for the present one.
            after: Identifier after which it goes on; empty at the beginning.
            limit: Most resources.
            parent: Only those of this parent.

        Returns:
            None where the revision is no longer held.
        """
        with self._reading() as connection:
            now = self._revision(connection, owner)
            revision = revision or now
            if (
                revision.epoch != now.epoch
                or revision.number > now.number
                or revision.number < oldest(connection, owner)
            ):
                return None
            query = (
                select(resource.c.body, resource.c.valid_from, resource.c.updated)
                .where(resource.c.tenant == owner, resource.c.kind == kind.name, resource.c.id > after)
                .where(resource.c.valid_from <= revision.number)
                .where(or_(resource.c.valid_to.is_(None), resource.c.valid_to > revision.number))
                .order_by(resource.c.id)
                .limit(limit + 1)
            )
            if parent is not None:
                query = query.where(resource.c.parent == parent)
            result: list[ResourceRecord] = []
            characters = 0
            rows = connection.execute(query.execution_options(yield_per=LISTED_ROWS_PER_READ))
            for row in rows:
                characters += len(row.body)
                if len(result) == limit or (result and characters > PAGE_CHARACTERS):
                    rows.close()
                    return Listing(result, more=True, revision=revision)
                result.append(self._record(row))
            return Listing(result, more=False, revision=revision)

    def members_of(self, owner: str, domain: str) -> list[ResourceRecord]:
        """Nodes of a domain, in order."""
        query = _valid(
            select(resource.c.body, resource.c.valid_from, resource.c.updated)
            .where(resource.c.tenant == owner, resource.c.kind == NODE.name, resource.c.parent == domain)
            .order_by(resource.c.id)
        )
        with self._reading() as connection:
            return [self._record(row) for row in connection.execute(query)]

    def identifiers(self, owner: str) -> Identifiers:
        """All compute identifiers of a tenant."""
        query = select(reference.c.kind, reference.c.id, reference.c.target).where(
            reference.c.tenant == owner, reference.c.target_kind == COMPUTE_IDENTIFIER.name
        )
        registered = _valid(
            select(resource.c.id).where(resource.c.tenant == owner, resource.c.kind == COMPUTE_IDENTIFIER.name)
        )
        with self._reading() as connection:
            members: dict[str, list[str]] = {row.id: [] for row in connection.execute(registered)}
            nodes: dict[str, list[str]] = {}
            for row in connection.execute(query):
                if row.kind == NODE.name:
                    nodes.setdefault(row.target, []).append(row.id)
                else:
                    members[row.id].append(row.target)
            return Identifiers(members, nodes, self._revision(connection, owner))

    def subjects(self, owner: str, kind: str, name: str, device: str | None) -> dict[int, str | None]:
        """Numbers of a subject, or of all devices that a node ever had, with the device of each."""
        query = select(subject.c.no, subject.c.device).where(
            subject.c.tenant == owner, subject.c.kind == kind, subject.c.id == name
        )
        if device is not None:
            query = query.where(subject.c.device == device)
        with self._reading() as connection:
            return {row.no: row.device or None for row in connection.execute(query)}

    def samples(self, query: SampleQuery) -> SampleSlice:
        """Part of a series of samples."""
        with self._reading() as connection:
            return samples(connection, query)

    def series(self, query: SeriesQuery) -> Steps | None:
        """A series of steps; None where parts of it are kept in coarser steps only."""
        with self._reading() as connection:
            return series(connection, query)

    def newest(self, numbers: Sequence[int], instant: int) -> dict[int, dict[str, ObservedValue]]:
        """Newest value of each measure at or before an instant, subject by subject."""
        with self._reading() as connection:
            return values(connection, numbers, instant)

    def sequence(self) -> int:
        """Number of the newest commit."""
        with self._reading() as connection:
            return sequence(connection)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._database.reading() as connection:
            yield connection

    def _scope(self, owner: str) -> Scope:
        return Scope(owner, self.epoch, Catalogue())

    def _revision(self, connection: Connection, owner: str) -> Revision:
        number = connection.execute(select(tenant.c.number).where(tenant.c.name == owner)).scalar()
        return Revision(self.epoch, number or 0)

    def _record(self, row: Any) -> ResourceRecord:
        return ResourceRecord(orjson.loads(row.body), Revision(self.epoch, row.valid_from), row.updated)


def _valid(query: Select[Any]) -> Select[Any]:
    return query.where(resource.c.valid_to.is_(None))
