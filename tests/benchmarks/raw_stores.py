"""How fast the databases themselves take rows, from one process that has nothing else to do: the limit of ingest.

The service's own tables, ten thousand rows a transaction, in several ways; the fastest is the limit. A commit is as
durable as the service's: on PostgreSQL it is waited for. What a store takes that need not wait is measured as well, and
is no limit: nobody may acknowledge by it.
"""

import sqlite3
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import psycopg
from serving import NewDatabase, Speed, Stopwatch, plain

from kuayu.service.storage.database import open_database
from kuayu_schemas.models import Durability

TRANSACTION, ROWS_AT_ONCE, ROWS_IN_ORDER = 10_000, 512, 128
"""Rows of a transaction, of a statement as they come, and of a statement where they are in order."""

LEADING = ("subject_no", "observed", "received", "sequence")

Rows = list[tuple[Any, ...]]


def sqlite_rates(new: NewDatabase, rows: Rows, measures: tuple[str, ...]) -> Iterator[tuple[str, Speed]]:
    """Speed of each way of writing to SQLite."""
    columns = (*LEADING, *measures)
    for way in (row_by_row, many_at_once, many_in_order):
        url = new()
        open_database(url, Durability.process).close()
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint=16000")
        stopwatch = Stopwatch()
        for start in range(0, len(rows), TRANSACTION):
            connection.execute("BEGIN")
            way(connection, columns, rows[start : start + TRANSACTION])
            connection.execute("COMMIT")
        yield way.__name__.replace("_", " "), stopwatch.speed(len(rows))
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


def postgresql_rates(new: NewDatabase, rows: Rows, measures: tuple[str, ...]) -> Iterator[tuple[str, Speed]]:
    """Speed of each way of writing to PostgreSQL."""
    columns = (*LEADING, *measures)
    for durable in (True, False):
        for way in (copy, copy_packed, copy_and_merge):
            url = new()
            open_database(url, Durability.process).close()
            with psycopg.connect(plain(url), autocommit=True) as connection:
                connection.execute(f"SET synchronous_commit = {'on' if durable else 'off'}".encode())
                connection.execute("CREATE TEMPORARY TABLE arriving ON COMMIT DELETE ROWS AS TABLE sample WITH NO DATA")
                stopwatch = Stopwatch(connection.info.backend_pid)
                for start in range(0, len(rows), TRANSACTION):
                    with connection.transaction():
                        way(connection, columns, rows[start : start + TRANSACTION])
                words = way.__name__.replace("copy", "COPY").replace("_", " ")
                yield words + ("" if durable else ", not waiting"), stopwatch.speed(len(rows), durable=durable)


def copy(connection: psycopg.Connection[Any], columns: tuple[str, ...], rows: Rows) -> None:
    """Put rows into the table by COPY, which has no rule for those that are there already."""
    _copy_into("sample", connection, columns, rows)


def copy_packed(connection: psycopg.Connection[Any], columns: tuple[str, ...], rows: Rows) -> None:
    """Put rows into the table by COPY, in one piece that NumPy makes."""
    kinds = [">i8"] * len(LEADING) + [">f8"] * (len(columns) - len(LEADING))
    fields = [field for place, kind in enumerate(kinds) for field in ((f"length{place}", ">i4"), (f"{place}", kind))]
    packed = np.empty(len(rows), [("fields", ">i2"), *fields])
    packed["fields"] = len(kinds)
    for place in range(len(kinds)):
        packed[f"length{place}"] = 8
        packed[f"{place}"] = np.fromiter(map(itemgetter(place), rows), kinds[place][1:])
    statement = f"COPY sample ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    with connection.cursor().copy(statement.encode()) as copying:
        copying.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + packed.tobytes() + b"\xff\xff")


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
