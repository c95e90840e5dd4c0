"""Samples on their way into the table.

What several requests brought is written together: rows with the same measures share a statement and stand in it by
subject, so that neighbours in the table are written one after another. SQLite takes statements of hundreds of rows:
each crosses into it once, and the interpreter lock is free meanwhile. (executemany takes and drops the lock for each
row, and a busy event loop makes each of those takes wait.) PostgreSQL takes them by COPY, which has no rule for what is
there already: where a row is, it takes them anew into a table of the connection's own, and from there into the table of
samples. Only a repetition is there already, or another exporter's sample of the same instant.

A row that is there already is merged measure by measure, and a measure that is there already stays; what a later commit
adds is noted in ``late``, so that a listing that was pinned before does not show it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from kuayu.service.storage.tables import PRECISION_MEASURES, STATE_MEASURES
from kuayu_schemas.models import Measures

if TYPE_CHECKING:
    from psycopg import Copy, Cursor

MAX_VALUES = 32_000
"""Values bound at once; SQLite takes 32 766."""

MAX_ROWS = 1024
"""Rows of a statement. SQLite can undo a statement, for which it copies all pages that the statement touches; a large
one has it do so in a file."""

LEADING = 2
"""Values of a row before its measures: number of the subject, instant."""

ENVELOPE = ("subject_no", "observed", "received")
"""Columns that every row fills, beside the number of the commit."""

RETRY_EVERY_WRITES = 64
"""Writes of which one is tried where samples keep meeting such as are there already."""

COPY_ROWS = 4096
"""Rows that COPY is given at a time: PostgreSQL takes them while the next are made ready."""

_EIGHT_BYTES = 8
_COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"

_KNOWN = frozenset(Measures.model_fields)

_TEXTS = PRECISION_MEASURES | STATE_MEASURES

Value = float | str
"""A measure: a number, the name of a state, or a table as JSON text."""

Integers = NDArray[np.int64]
Column = NDArray[np.float64] | list[str]
"""Values of a measure: float64[n], or texts."""

Row = tuple[Any, ...]
"""Number of the subject, instant, when it was received, measures."""

BlockGroup = list[tuple["Block", int]]
"""Blocks with the same measures, each with when it was received."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with the same measures, column by column.

    Attributes:
        measures: Names of the measures.
        subjects: int64[n], numbers of the subjects.
        instants: int64[n], when each was observed, in milliseconds.
        columns: For each measure its values, n of them.
    """

    measures: tuple[str, ...]
    subjects: Integers
    instants: Integers
    columns: Sequence[Column]

    @classmethod
    def of_rows(cls, measures: tuple[str, ...], rows: Iterable[Sequence[Any]]) -> "Block":
        """Rows laid out; each has the number of the subject, the instant and the measures."""
        columns = list(zip(*rows, strict=True)) or [()] * (LEADING + len(measures))
        return cls.of_columns(measures, *columns)

    @classmethod
    def of_columns(
        cls, measures: tuple[str, ...], subjects: Sequence[int], instants: Sequence[int], *columns: Sequence[Any]
    ) -> "Block":
        """Values as they come, n of each."""
        count = len(subjects)
        return cls(
            measures,
            np.fromiter(subjects, np.int64, count),
            np.fromiter(instants, np.int64, count),
            [
                list(column) if name in _TEXTS else np.fromiter(column, np.float64, count)
                for name, column in zip(measures, columns, strict=True)
            ],
        )

    @classmethod
    def joined(cls, blocks: Sequence["Block"]) -> "Block":
        """Rows of some blocks with the same measures, one after the other."""
        if len(blocks) == 1:
            return blocks[0]
        return cls(
            blocks[0].measures,
            np.concatenate([block.subjects for block in blocks]),
            np.concatenate([block.instants for block in blocks]),
            [_joined(parts) for parts in zip(*(block.columns for block in blocks), strict=True)],
        )

    def __len__(self) -> int:
        return len(self.subjects)

    def part(self, start: int, until: int) -> "Block":
        """Some of the rows."""
        own = slice(start, until)
        return Block(self.measures, self.subjects[own], self.instants[own], [column[own] for column in self.columns])

    def ordered(self, order: Integers) -> "Block":
        """The rows in another order."""
        places = order.tolist() if not _TEXTS.isdisjoint(self.measures) else []
        columns = [
            [column[place] for place in places] if isinstance(column, list) else column[order]
            for column in self.columns
        ]
        return Block(self.measures, self.subjects[order], self.instants[order], columns)

    def rows(self, received: Iterable[int]) -> Iterator[Row]:
        """The rows, each with when it was received."""
        columns = (column if isinstance(column, list) else column.tolist() for column in self.columns)
        return zip(self.subjects.tolist(), self.instants.tolist(), received, *columns, strict=False)


def _joined(parts: Sequence[Column]) -> Column:
    numbers = [part for part in parts if not isinstance(part, list)]
    texts = [part for part in parts if isinstance(part, list)]
    return [*chain.from_iterable(texts)] if texts else np.concatenate(numbers)


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
    write_together = _write_sqlite if connection.dialect.name == "sqlite" else _write_postgresql
    for layer in _layers(arrivals):
        for measures, together in layer.items():
            write_together(connection, measures, together, sequence)


def _layers(arrivals: Iterable[Arrival]) -> Iterator[dict[tuple[str, ...], BlockGroup]]:
    """Bring rows with the same measures together, as long as no subject comes with others: then the order counts."""
    layer: dict[tuple[str, ...], BlockGroup] = {}
    shown: dict[int, tuple[str, ...]] = {}
    for arrival in arrivals:
        for block in filter(len, arrival.blocks):
            subjects = set(block.subjects.tolist())
            if any(shown.setdefault(subject, block.measures) != block.measures for subject in subjects):
                yield layer
                layer, shown = {}, dict.fromkeys(subjects, block.measures)
            layer.setdefault(block.measures, []).append((block, arrival.received))
    yield layer


def _by_subject(together: BlockGroup) -> tuple[Block, Integers]:
    """Rows by subject, and when each was received; of equal samples the first stays the first."""
    block = Block.joined([block for block, _ in together])
    received = np.repeat([received for _, received in together], [len(block) for block, _ in together])
    order = np.argsort(block.subjects, kind="stable")
    return block.ordered(order), received[order]


def _rows(together: BlockGroup) -> list[Row]:
    """The same, row by row."""
    block, received = _by_subject(together)
    return list(block.rows(received.tolist()))


def _write_sqlite(connection: Connection, measures: tuple[str, ...], together: BlockGroup, sequence: int) -> None:

    driver = connection.connection.driver_connection
    assert driver is not None
    for part in _parts(_rows(together), 1 + LEADING + len(measures)):
        driver.execute(_many(measures, len(part)), [sequence, *chain.from_iterable(part)])


def _parts(rows: Sequence[Row], width: int) -> Iterator[Sequence[Row]]:
    """Cut rows into pieces of few different sizes, so that few statements have to be prepared."""
    total, start = len(rows), 0
    largest = min(MAX_ROWS, 1 << (MAX_VALUES // width).bit_length() - 1)
    while start < total:
        count = min(largest, 1 << (total - start).bit_length() - 1)
        yield rows[start : start + count]
        start += count


def _write_postgresql(connection: Connection, measures: tuple[str, ...], together: BlockGroup, sequence: int) -> None:
    """Write straight into the table of samples, and where a row is there already, by way of another table."""
    from psycopg.errors import UniqueViolation

    driver = connection.connection.driver_connection
    assert driver is not None
    meetings: _Meetings = connection.info.setdefault("meetings", _Meetings())
    cursor: Cursor[Any]
    with driver.cursor() as cursor:
        if meetings.expected():
            _merge(cursor, measures, together, sequence)
            return
        cursor.execute("SAVEPOINT before_samples", prepare=True)
        try:
            with _copying(cursor, "sample", measures) as copy:
                if _TEXTS.isdisjoint(measures):
                    for piece in _packed(together, sequence):
                        copy.write(piece)
                else:
                    _write_rows(copy, measures, _rows(together), sequence)
        except UniqueViolation:
            meetings.note(met=True)
            cursor.execute("ROLLBACK TO SAVEPOINT before_samples", prepare=True)
            _merge(cursor, measures, together, sequence)
        else:
            meetings.note(met=False)
        cursor.execute("RELEASE SAVEPOINT before_samples", prepare=True)


@dataclass(slots=True)
class _Meetings:
    """Whether samples are likely to meet such as are there already: to find out by trying costs a second COPY.

    Attributes:
        apart: Writes that are left until the next try.
        distance: Writes between the last two tries.
    """

    apart: int = 0
    distance: int = 0

    def expected(self) -> bool:
        """Whether this write is not to be a try."""
        self.apart -= 1
        return self.apart >= 0

    def note(self, *, met: bool) -> None:
        """What a try has come to: of writes that always meet, few are tried."""
        self.distance = min(max(1, 2 * self.distance), RETRY_EVERY_WRITES) if met else 0
        self.apart = self.distance


def _merge(cursor: "Cursor[Any]", measures: tuple[str, ...], together: BlockGroup, sequence: int) -> None:
    """Write by way of a table of the connection's own. A statement cannot merge into the same row twice."""
    first = {(row[0], row[1]): row for row in reversed(_rows(together))}
    if cursor.execute("SELECT to_regclass('pg_temp.arriving')", prepare=True).fetchone() == (None,):
        cursor.execute("CREATE TEMPORARY TABLE arriving ON COMMIT DELETE ROWS AS SELECT * FROM sample WITH NO DATA")
    cursor.execute("DELETE FROM arriving", prepare=True)  # what was written earlier in the transaction
    with _copying(cursor, "arriving", measures) as copy:
        _write_rows(copy, measures, reversed(first.values()), sequence)
    cursor.execute(_moved(measures), prepare=True)


def _copying(cursor: "Cursor[Any]", table: str, measures: tuple[str, ...]) -> "AbstractContextManager[Copy]":
    return cursor.copy(f"COPY {table} (sequence,{_columns(measures)}) FROM STDIN (FORMAT BINARY)")


def _write_rows(copy: "Copy", measures: tuple[str, ...], rows: Iterable[Row], sequence: int) -> None:
    whole = ["int8"] * (1 + len(ENVELOPE))
    copy.set_types(whole + ["text" if name in _TEXTS else "float8" for name in measures])
    for row in rows:
        copy.write_row((sequence, *row))


def _packed(together: BlockGroup, sequence: int) -> Iterator[bytes]:
    """Rows of numbers as COPY takes them, each value behind its length: piece by piece, the rows of each by subject.

    Source: PostgreSQL 16, "COPY", Binary Format.
    """
    yield _COPY_HEAD
    for piece in _pieces(together):
        yield _piece(piece, sequence)
    yield _COPY_END


def _pieces(together: BlockGroup) -> Iterator[BlockGroup]:
    """Blocks in groups of about ``COPY_ROWS`` rows; larger ones are cut."""
    piece: BlockGroup = []
    remaining = COPY_ROWS
    for block, received in together:
        start = 0
        while start < len(block):
            until = min(start + remaining, len(block))
            part = block if until - start == len(block) else block.part(start, until)
            piece.append((part, received))
            remaining -= until - start
            start = until
            if not remaining:
                yield piece
                piece, remaining = [], COPY_ROWS
    if piece:
        yield piece


def _piece(together: BlockGroup, sequence: int) -> bytes:
    block, received = _by_subject(together)
    columns = (block.subjects, block.instants, received, *block.columns)
    packed = np.empty(len(block), _copied(len(ENVELOPE), len(block.columns)))
    packed["fields"] = 1 + len(columns)
    packed["length0"] = _EIGHT_BYTES
    packed["0"] = sequence
    for place, values in enumerate(columns, 1):
        packed[f"length{place}"] = _EIGHT_BYTES
        packed[f"{place}"] = values
    return packed.tobytes()


@lru_cache(maxsize=512)
def _copied(whole: int, doubles: int) -> np.dtype[Any]:
    """A row of COPY: the number of fields; the sequence and whole numbers, then doubles, each behind its length."""
    kinds = [">i8"] * (1 + whole) + [">f8"] * doubles
    fields = [field for place, kind in enumerate(kinds) for field in ((f"length{place}", ">i4"), (f"{place}", kind))]
    return np.dtype([("fields", ">i2"), *fields])


@lru_cache(maxsize=512)
def _many(measures: tuple[str, ...], rows: int) -> str:
    """Statement for many rows; ?1, the sequence, is the same in all of them."""
    row = "(?1," + ",".join("?" * (1 + LEADING + len(measures))) + ")"
    return _head(measures) + "VALUES " + ",".join([row] * rows) + _tail(measures)


@lru_cache(maxsize=512)
def _moved(measures: tuple[str, ...]) -> bytes:
    """Statement that moves what has arrived."""
    columns = _columns(measures)
    selected = f"SELECT sequence,{columns} FROM arriving"  # noqa: S608 - only names that were checked
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
