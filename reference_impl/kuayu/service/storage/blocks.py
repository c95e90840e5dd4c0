"""Samples on their way into the table.

Samples with the same measures share a statement of many rows. The statement is long, but it crosses into SQLite once
for hundreds of rows, and the interpreter lock is free meanwhile. (executemany takes and drops the lock for each row,
and a busy event loop makes each of those takes wait.) A row that is there already is merged measure by measure, and a
measure that is there already stays; what a later commit adds is noted in ``late``, so that a listing that was pinned
before does not show it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from sqlalchemy import Connection

from kuayu_schemas.models import Measures

MAX_VALUES = 32_000
"""Values bound at once; SQLite takes 32 766."""

MAX_ROWS = 2048
LEADING = 2
"""Values of a row before its measures: number of the subject, instant."""

_KNOWN = frozenset(Measures.model_fields)


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


def write(connection: Connection, blocks: Sequence[Block], received: int, sequence: int) -> None:
    """Put blocks of samples into the table.

    Args:
        connection: Inside a transaction.
        blocks: What to write; of samples that are equal in subject and instant the first counts.
        received: When they were received, in milliseconds.
        sequence: Number of the commit.
    """
    for block in blocks:
        if connection.dialect.name == "sqlite":
            _write_sqlite(connection, block, received, sequence)
        else:
            _write_rows(connection, block, received, sequence)


def _write_sqlite(connection: Connection, block: Block, received: int, sequence: int) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    for rows, values in _chunks(block):
        statement = _many(block.measures, rows)
        try:
            driver.execute(statement, [received, sequence, *values])
        except OverflowError:  # an integer of more than 63 bits, which only a double column can be meant to hold
            driver.execute(statement, [received, sequence, *map(_bound, values)])


def _write_rows(connection: Connection, block: Block, received: int, sequence: int) -> None:
    width = block.width
    rows = [
        (received, sequence, *map(_bound, block.values[start : start + width]))
        for start in range(0, len(block.values), width)
    ]
    connection.exec_driver_sql(_one(block.measures), rows)


def _chunks(block: Block) -> Iterator[tuple[int, Sequence[int | float | str]]]:
    """Cut a block into pieces of few different sizes, so that few statements have to be prepared."""
    width, total, start = block.width, len(block), 0
    largest = min(MAX_ROWS, 1 << (MAX_VALUES // width).bit_length() - 1)
    while start < total:
        rows = min(largest, 1 << (total - start).bit_length() - 1)
        yield rows, block.values[start * width : (start + rows) * width]
        start += rows


def _bound(value: float | str) -> float | str:
    return float(value) if isinstance(value, int) and abs(value) >= 1 << 63 else value


@lru_cache(maxsize=512)
def _many(measures: tuple[str, ...], rows: int) -> str:
    """Statement for many rows; ?1 and ?2 are the same in all of them."""
    row = "(?1,?2," + ",".join("?" * (LEADING + len(measures))) + ")"
    return _head(measures) + ",".join([row] * rows) + _tail(measures)


@lru_cache(maxsize=512)
def _one(measures: tuple[str, ...]) -> str:
    return _head(measures) + "(" + ",".join(["%s"] * (2 + LEADING + len(measures))) + ")" + _tail(measures)


def _head(measures: tuple[str, ...]) -> str:
    assert _KNOWN.issuperset(measures)  # the names go into the statement
    columns = ",".join(chain(("received", "sequence", "subject_no", "observed"), measures))
    return f"INSERT INTO sample ({columns}) VALUES "  # noqa: S608 - only names that the line above has checked


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
