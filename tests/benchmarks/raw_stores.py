"""How fast the databases themselves take rows, from one process that has nothing else to do: the limit of ingest.

The service's own tables, ten thousand rows a transaction, in several ways; the fastest is the limit.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import psycopg
from serving import NewDatabase, plain

from kuayu.service.storage.database import open_database
from kuayu_schemas.models import Durability

TRANSACTION, ROWS_AT_ONCE, ROWS_IN_ORDER = 10_000, 512, 128
"""Rows of a transaction, of a statement as they come, and of a statement where they are in order."""

LEADING = ("subject_no", "observed", "received", "sequence")

Rows = list[tuple[Any, ...]]


def sqlite_rates(new: NewDatabase, rows: Rows, measures: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    """Rows in a second for each way of writing to SQLite."""
    columns = (*LEADING, *measures)
    for way in (row_by_row, many_at_once, many_in_order):
        url = new()
        open_database(url, Durability.process).close()
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint=16000")
        began = time.perf_counter()
        for start in range(0, len(rows), TRANSACTION):
            connection.execute("BEGIN")
            way(connection, columns, rows[start : start + TRANSACTION])
            connection.execute("COMMIT")
        yield way.__name__.replace("_", " "), len(rows) / (time.perf_counter() - began)
        connection.close()


def row_by_row(connection: sqlite3.Connection, columns: tuple[str, ...], rows: Rows) -> None:
    """Put rows into the table with executemany."""
    connection.executemany(_statement(columns, 1), rows)


def many_at_once(connection: sqlite3.Connection, columns: tuple[str, ...], rows: Rows) -> None:
    """Put rows into the table with statements of hundreds of rows."""
    _in_parts(connection, columns, rows, ROWS_AT_ONCE)


def many_in_order(connection: sqlite3.Connection, columns: tuple[str, ...], rows: Rows) -> None:
    """Put rows into the table in the table's order, which is sorted out here, with statements of many rows."""
    _in_parts(connection, columns, sorted(rows), ROWS_IN_ORDER)


def _in_parts(connection: sqlite3.Connection, columns: tuple[str, ...], rows: Rows, at_once: int) -> None:
    for start in range(0, len(rows), at_once):
        part = rows[start : start + at_once]
        connection.execute(_statement(columns, len(part)), list(chain.from_iterable(part)))


def _statement(columns: tuple[str, ...], rows: int) -> str:
    marks = ", ".join([f"({', '.join('?' * len(columns))})"] * rows)
    return f"INSERT INTO sample ({', '.join(columns)}) VALUES {marks} {_merging(columns)}"  # noqa: S608 - own names


def _merging(columns: tuple[str, ...]) -> str:
    merged = ", ".join(f"{name} = coalesce(sample.{name}, excluded.{name})" for name in columns[len(LEADING) :])
    return f"ON CONFLICT (subject_no, observed) DO UPDATE SET {merged}"


def postgresql_rates(new: NewDatabase, rows: Rows, measures: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    """Rows in a second for each way of writing to PostgreSQL."""
    columns = (*LEADING, *measures)
    ways: tuple[Callable[[psycopg.Connection[Any], tuple[str, ...], Rows], None], ...] = (copy, copy_and_merge)
    for way in ways:
        url = new()
        open_database(url, Durability.process).close()
        with psycopg.connect(plain(url), autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute("CREATE TEMPORARY TABLE arriving ON COMMIT DELETE ROWS AS TABLE sample WITH NO DATA")
            began = time.perf_counter()
            for start in range(0, len(rows), TRANSACTION):
                with connection.transaction():
                    way(connection, columns, rows[start : start + TRANSACTION])
            yield way.__name__.replace("copy", "COPY").replace("_", " "), len(rows) / (time.perf_counter() - began)


def copy(connection: psycopg.Connection[Any], columns: tuple[str, ...], rows: Rows) -> None:
    """Put rows into the table by COPY, which has no rule for those that are there already."""
    _copy_into("sample", connection, columns, rows)


def copy_and_merge(connection: psycopg.Connection[Any], columns: tuple[str, ...], rows: Rows) -> None:
    """Put rows into the table by way of another, with the rule for those that are there already."""
    _copy_into("arriving", connection, columns, rows)
    named = ", ".join(columns)
    moved = f"INSERT INTO sample ({named}) SELECT {named} FROM arriving {_merging(columns)}"  # noqa: S608 - own names
    connection.execute(moved.encode())


def _copy_into(table: str, connection: psycopg.Connection[Any], columns: tuple[str, ...], rows: Rows) -> None:
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    with connection.cursor().copy(statement.encode()) as copying:
        copying.set_types(["int8"] * len(LEADING) + ["float8"] * (len(columns) - len(LEADING)))
        for row in rows:
            copying.write_row(row)
