"""Newest values of measures, at or before an instant.

A measure with a period is looked for in the few periods for which a value lives; a lasting one as far back as there
are samples, by way of its own index.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select, tuple_

from kuayu.service.storage.history import measures
from kuayu.service.storage.tables import LASTING_MEASURES, MEASURES, sample, subject

LIFE = 300_000
"""Milliseconds for which a value of any dynamic measure may live: five periods of at most a minute."""

CHUNK = 400
"""Subjects or rows that one statement asks for."""

_NEVER_LATE = 1 << 62

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Observed:
    """A value and when it was observed, in milliseconds."""

    quantity: Any
    instant: int


def values(connection: Connection, numbers: Sequence[int], at: int) -> dict[int, dict[str, Observed]]:
    """Newest value of each measure, subject by subject; subjects and measures without any are left out."""
    found: dict[int, dict[str, Observed]] = {}
    wanted: dict[tuple[int, int], list[str]] = {}
    for chunk in _chunks(numbers):
        for number, name, instant in _instants(connection, chunk, at):
            wanted.setdefault((number, instant), []).append(name)
    for keys in _chunks(list(wanted)):
        rows = connection.execute(select(sample).where(tuple_(sample.c.subject_no, sample.c.observed).in_(keys)))
        for row in rows.mappings():
            held = measures(row, _NEVER_LATE)
            number, instant = row["subject_no"], row["observed"]
            for name in wanted[number, instant]:
                found.setdefault(number, {})[name] = Observed(held[name], instant)
    return found


def _instants(connection: Connection, numbers: Sequence[int], at: int) -> Iterator[tuple[int, str, int]]:
    """Subject, measure and instant of each newest value."""
    dynamic = [name for name in MEASURES if name not in LASTING_MEASURES]
    newest = [func.max(sample.c.observed).filter(sample.c[name].is_not(None)).label(name) for name in dynamic]
    yield from _named(
        connection.execute(
            select(sample.c.subject_no, *newest)
            .where(sample.c.subject_no.in_(numbers), sample.c.observed <= at, sample.c.observed >= at - LIFE)
            .group_by(sample.c.subject_no)
        ).mappings(),
        dynamic,
    )
    lasting = [
        select(func.max(sample.c.observed))
        .where(sample.c.subject_no == subject.c.no, sample.c.observed <= at, sample.c[name].is_not(None))
        .scalar_subquery()
        .label(name)
        for name in LASTING_MEASURES
    ]
    query = select(subject.c.no.label("subject_no"), *lasting).where(subject.c.no.in_(numbers))
    yield from _named(connection.execute(query).mappings(), LASTING_MEASURES)


def _named(rows: Iterable[Mapping[Any, Any]], names: Sequence[str]) -> Iterator[tuple[int, str, int]]:
    for row in rows:
        for name in names:
            if row[name] is not None:
                yield row["subject_no"], name, row[name]


def _chunks(items: Sequence[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk
