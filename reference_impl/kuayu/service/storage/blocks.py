"""Samples on their way into the table.

What several requests brought is written together: rows with the same measures share a statement and stand in it by
subject, so that neighbours in the table are written one after another. SQLite takes statements of hundreds of rows:
each crosses into it once, and the interpreter lock is free meanwhile. (executemany takes and drops the lock for each
row, and a busy event loop makes each of those takes wait.) PostgreSQL takes them by COPY, which has no rule for what is
there already, into a table of the connection's own, and from there into the table of samples.

A row that is there already is merged measure by measure, and a measure that is there already stays; what a later commit
adds is noted in ``late``, so that a listing that was pinned before does not show it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from psycopg import Cursor
from sqlalchemy import Connection

from kuayu.service.storage.tables import PRECISION_MEASURES, STATE_MEASURES
from kuayu_schemas.models import Measures

MAX_VALUES = 32_000
"""Values bound at once; SQLite takes 32 766."""

MAX_ROWS = 1024
"""Rows of a statement. SQLite can undo a statement, for which it copies all pages that the statement touches; a large
one has it do so in a file."""

LEADING = 2
"""Values of a row before its measures: number of the subject, instant."""

ENVELOPE = ("subject_no", "observed", "received")
"""Columns that every row fills, beside the number of the commit."""

_KNOWN = frozenset(Measures.model_fields)

Row = tuple[Any, ...]
"""Number of the subject, instant, when it was received, measures."""


@dataclass(slots=True)
class Block:
    """Rows with the same measures, laid flat.

    Attributes:
        measures: Names of the measures.
        values: Number of the subject, instant in milliseconds and the measures of one row after another.
    """

    measures: tuple[str, ...]
    values: list[int | float | str] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Values in a row."""
        return LEADING + len(self.measures)

    def __len__(self) -> int:
        return len(self.values) // self.width

    def rows(self, received: int) -> Iterator[Row]:
        """The rows, each with when it was received."""
        value = iter(self.values)
        return zip(value, value, repeat(received), *[value] * len(self.measures), strict=False)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Blocks that came together.

    Attributes:
        blocks: The samples; of those that are equal in subject and instant the first counts.
        received: When they were received, in milliseconds.
    """

    blocks: Sequence[Block]
    received: int


def write(connection: Connection, blocks: Sequence[Block], received: int, sequence: int) -> None:
    """Put into the table what came together; takes what :class:`Arrival` and :func:`write_all` take."""
    write_all(connection, [Arrival(blocks, received)], sequence)


def write_all(connection: Connection, arrivals: Iterable[Arrival], sequence: int) -> None:
    """Put samples into the table, as if block after block were written in the order given.

    Args:
        connection: Inside a transaction.
        arrivals: What to write.
        sequence: Number of the commit.
    """
    write_rows = _write_sqlite if connection.dialect.name == "sqlite" else _write_postgresql
    for layer in _layers(arrivals):
        for measures, rows in layer.items():
            rows.sort(key=itemgetter(0))  # stable: of equal samples the first stays the first
            if rows:
                write_rows(connection, measures, rows, sequence)


def _layers(arrivals: Iterable[Arrival]) -> Iterator[dict[tuple[str, ...], list[Row]]]:
    """Bring rows with the same measures together, as long as no subject comes with others: then the order counts."""
    layer: dict[tuple[str, ...], list[Row]] = {}
    shown: dict[int | float | str, tuple[str, ...]] = {}
    for arrival in arrivals:
        for block in arrival.blocks:
            subjects = set(block.values[:: block.width])
            if any(shown.setdefault(subject, block.measures) != block.measures for subject in subjects):
                yield layer
                layer, shown = {}, dict.fromkeys(subjects, block.measures)
            layer.setdefault(block.measures, []).extend(block.rows(arrival.received))
    yield layer


def _write_sqlite(connection: Connection, measures: tuple[str, ...], rows: Sequence[Row], sequence: int) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    for part in _parts(rows, 1 + LEADING + len(measures)):
        statement = _many(measures, len(part))
        values = [sequence, *chain.from_iterable(part)]
        try:
            driver.execute(statement, values)
        except OverflowError:  # an integer of more than 63 bits, which only a double column can be meant to hold
            driver.execute(statement, [*map(_bound, values)])


def _parts(rows: Sequence[Row], width: int) -> Iterator[Sequence[Row]]:
    """Cut rows into pieces of few different sizes, so that few statements have to be prepared."""
    total, start = len(rows), 0
    largest = min(MAX_ROWS, 1 << (MAX_VALUES // width).bit_length() - 1)
    while start < total:
        count = min(largest, 1 << (total - start).bit_length() - 1)
        yield rows[start : start + count]
        start += count


def _bound(value: float | str) -> float | str:
    return float(value) if isinstance(value, int) and abs(value) >= 1 << 63 else value


def _write_postgresql(connection: Connection, measures: tuple[str, ...], rows: Sequence[Row], sequence: int) -> None:
    """Write by way of a table of the connection's own. A statement cannot merge into the same row twice."""
    key = itemgetter(0, 1)
    if len(set(map(key, rows))) < len(rows):
        rows = list({key(row): row for row in reversed(rows)}.values())
    driver = connection.connection.driver_connection
    assert driver is not None
    cursor: Cursor[Any]
    with driver.cursor() as cursor:
        if cursor.execute("SELECT to_regclass('pg_temp.arriving')", prepare=True).fetchone() == (None,):
            cursor.execute("CREATE TEMPORARY TABLE arriving ON COMMIT DELETE ROWS AS SELECT * FROM sample WITH NO DATA")
        cursor.execute("DELETE FROM arriving", prepare=True)  # what was written earlier in the transaction
        with cursor.copy(f"COPY arriving ({_columns(measures)}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_types(measures))
            for row in rows:
                copy.write_row(row)
        cursor.execute(_moved(measures), (sequence,), prepare=True)


def _types(measures: tuple[str, ...]) -> list[str]:
    texts = PRECISION_MEASURES | STATE_MEASURES
    return ["int8"] * len(ENVELOPE) + ["text" if name in texts else "float8" for name in measures]


@lru_cache(maxsize=512)
def _many(measures: tuple[str, ...], rows: int) -> str:
    """Statement for many rows; ?1, the sequence, is the same in all of them."""
    row = "(?1," + ",".join("?" * (1 + LEADING + len(measures))) + ")"
    return _head(measures) + "VALUES " + ",".join([row] * rows) + _tail(measures)


@lru_cache(maxsize=512)
def _moved(measures: tuple[str, ...]) -> bytes:
    """Statement that moves what has arrived."""
    columns = _columns(measures)
    selected = f"SELECT %s::bigint,{columns} FROM arriving"  # noqa: S608 - only names that were checked
    return (_head(measures) + selected + _tail(measures)).encode()


def _head(measures: tuple[str, ...]) -> str:
    return f"INSERT INTO sample (sequence,{_columns(measures)}) "


def _columns(measures: tuple[str, ...]) -> str:
    assert _KNOWN.issuperset(measures)  # the names go into statements
    return ",".join((*ENVELOPE, *measures))


def _tail(measures: tuple[str, ...]) -> str:
    conflict = " ON CONFLICT (subject_no, observed) DO "
    if not measures:
        return conflict + "NOTHING"
    merged = ", ".join(f"{name} = coalesce(sample.{name}, excluded.{name})" for name in measures)
    late = " || ".join(
        f"CASE WHEN sample.{name} IS NULL THEN '{name}=' || excluded.sequence || ' ' ELSE '' END" for name in measures
    )
    return (
        f"{conflict}UPDATE SET {merged}, late = CASE WHEN excluded.sequence > sample.sequence "
        f"THEN nullif(coalesce(sample.late, '') || {late}, '') ELSE sample.late END"
    )
