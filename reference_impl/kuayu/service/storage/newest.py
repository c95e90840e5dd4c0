"""Newest values of measures, at or before an instant.

A measure with a period is looked for in the few periods for which a value lives: first in the newest sample of each
subject, where nearly all are, then in those before it. A lasting measure is looked for as far back as there are
samples, by way of its own index.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, TextClause, bindparam, func, or_, select, text

from kuayu.service.storage.history import measures
from kuayu.service.storage.tables import LASTING_MEASURES, MEASURES, sample, subject

LIFE = 300_000
"""Milliseconds for which a value of any dynamic measure may live: five periods of at most a minute."""

CHUNK = 400
"""Subjects or rows that one statement asks for."""

_DYNAMIC = tuple(name for name in MEASURES if name not in LASTING_MEASURES)

_NEVER_LATE = 1 << 62

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Observed:
    """A value and when it was observed, in milliseconds."""

    quantity: Any
    instant: int


Found = dict[int, dict[str, Observed]]


def values(connection: Connection, numbers: Sequence[int], at: int) -> Found:
    """Newest value of each measure, subject by subject; subjects and measures without any are left out."""
    found: Found = {}
    for chunk in _chunks(numbers):
        lacking = _of_newest_samples(connection, chunk, at, found)
        for names, subjects in lacking.items():
            _of_earlier_samples(connection, names, subjects, at, found)
        _lasting(connection, chunk, at, found)
    return {number: held for number, held in found.items() if held}


def _of_newest_samples(
    connection: Connection, numbers: Sequence[int], at: int, found: Found
) -> dict[tuple[str, ...], list[int]]:
    """Note what the newest sample of each subject states; the subjects by the dynamic measures that it does not."""
    instant = (
        select(func.max(sample.c.observed))
        .where(sample.c.subject_no == subject.c.no, sample.c.observed <= at, sample.c.observed >= at - LIFE)
        .scalar_subquery()
    )
    newest = connection.execute(select(subject.c.no, instant).where(subject.c.no.in_(numbers)))
    lacking: dict[tuple[str, ...], list[int]] = {}
    for row in _samples(connection, [(number, observed) for number, observed in newest if observed is not None]):
        number, observed = row["subject_no"], row["observed"]
        held = {name: Observed(row[name], observed) for name in _DYNAMIC if row[name] is not None}
        found[number] = held
        if len(held) < len(_DYNAMIC):
            lacking.setdefault(tuple(name for name in _DYNAMIC if name not in held), []).append(number)
    return lacking


def _of_earlier_samples(
    connection: Connection, names: tuple[str, ...], numbers: Sequence[int], at: int, found: Found
) -> None:
    """Note measures that the newest samples of some subjects lack and others before them have."""
    columns = [sample.c[name] for name in names]
    query = (
        select(sample.c.subject_no, sample.c.observed, *columns)
        .where(sample.c.subject_no.in_(numbers), sample.c.observed <= at, sample.c.observed >= at - LIFE)
        .where(or_(*(column.is_not(None) for column in columns)))
        .order_by(sample.c.subject_no, sample.c.observed.desc())
    )
    for number, instant, *quantities in connection.execute(query):
        held = found[number]
        for name, value in zip(names, quantities, strict=True):
            if value is not None and name not in held:
                held[name] = Observed(value, instant)


def _lasting(connection: Connection, numbers: Sequence[int], at: int, found: Found) -> None:
    """Note lasting measures."""
    wanted: dict[tuple[int, int], list[str]] = {}
    query = _lasting_instants(connection.dialect.name)
    for number, *newest in connection.execute(query, {"numbers": list(numbers), "at": at}):
        for name, instant in zip(LASTING_MEASURES, newest, strict=True):
            if instant is not None:
                wanted.setdefault((number, instant), []).append(name)
    for row in _samples(connection, list(wanted)):
        held = measures(row, _NEVER_LATE)
        number, instant = row["subject_no"], row["observed"]
        for name in wanted[number, instant]:
            found.setdefault(number, {})[name] = Observed(held[name], instant)


@cache
def _lasting_instants(dialect: str) -> TextClause:
    """Statement for the newest instant of each lasting measure.

    SQLite has to be told which index to use. It would take the primary key, and where a subject never had a measure it
    would look at all samples of that subject.
    """
    instants = ", ".join(
        f"(SELECT max(observed) FROM sample {f'INDEXED BY sample_{name}' if dialect == 'sqlite' else ''} "  # noqa: S608
        f"WHERE subject_no = subject.no AND observed <= :at AND {name} IS NOT NULL)"
        for name in LASTING_MEASURES
    )
    statement = f"SELECT no, {instants} FROM subject WHERE no IN :numbers"  # noqa: S608 - names of our own
    return text(statement).bindparams(bindparam("numbers", expanding=True))


def _samples(connection: Connection, keys: Sequence[tuple[int, int]]) -> Iterator[RowMapping]:
    """Samples by subject and instant. SQLite finds them by their key only where they are joined with what is wanted."""
    pair = "(?, ?)" if connection.dialect.name == "sqlite" else "(%s::bigint, %s::bigint)"
    for chunk in _chunks(keys):
        statement = (
            f"WITH wanted (no, instant) AS (VALUES {', '.join([pair] * len(chunk))}) SELECT sample.* FROM wanted "  # noqa: S608
            "JOIN sample ON sample.subject_no = wanted.no AND sample.observed = wanted.instant"
        )
        yield from connection.exec_driver_sql(statement, tuple(chain.from_iterable(chunk))).mappings()


def _chunks(items: Sequence[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk
