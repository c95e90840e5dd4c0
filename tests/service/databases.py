"""Databases as the service opens them, filled without it, and what their series must say."""

import asyncio
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction

from sqlalchemy import Connection, delete, func, insert, select

from kuayu.service.maintenance import Maintenance
from kuayu.service.metrics import Metrics
from kuayu.service.settings import Settings
from kuayu.service.storage import queries, rollup
from kuayu.service.storage.database import Database, open_database
from kuayu.service.storage.rollup import Steps
from kuayu.service.storage.tables import meta, sample, subject
from kuayu.service.storage.tables import rollup as rollup_table
from kuayu.service.storage.writer import Transaction, Writer
from kuayu_schemas.models import Durability

DAY = 86_400_000

Values = Mapping[int, float]
"""Values of a measure by instant in milliseconds."""

Points = list[tuple[int, int, float, float, float]]
"""Start in milliseconds, count, mean, least and greatest of each step."""


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """The database while it is needed."""
    database = open_database(url, Durability.process)
    try:
        yield database
    finally:
        database.close()


def clear(connection: Connection) -> None:
    """Leave nothing of samples and of what they were rolled up to."""
    for table in (sample, rollup_table, subject):
        connection.execute(delete(table))
    connection.execute(delete(meta).where(meta.c.name == "rollup"))


def fill(connection: Connection, held: Mapping[int, Values], measure: str = "power") -> None:
    """Put subjects and their samples into the tables."""
    names = [{"no": number, "tenant": "t", "kind": "node", "id": str(number), "device": ""} for number in held]
    connection.execute(insert(subject), names)
    for number, values in held.items():
        add(connection, number, values, measure)


def add(connection: Connection, number: int, values: Values, measure: str = "power") -> None:
    """Put samples of a subject into the table."""
    row = {"subject_no": number, "received": 0, "sequence": 0}
    if values:
        connection.execute(insert(sample), [row | {"observed": at, measure: value} for at, value in values.items()])


def advance(database: Database, now: int, retention: int, kept: int, pieces: int = 10_000) -> int:
    """Roll up at most so many pieces as if it were ``now``; tells how many there were."""
    for done in range(pieces):
        with database.read.connect() as connection, connection.begin():
            piece = rollup.next_advance(connection, now, retention, kept)
        if piece is None:
            return done
        with database.write.begin() as connection:
            piece.apply(Transaction(connection, 0))
    return pieces


def points(database: Database, query: queries.SeriesQuery) -> Points | None:
    """What the series says."""
    with database.read.connect() as connection, connection.begin():
        found = queries.series(connection, query)
    return None if found is None else listed(found)


def listed(steps: Steps) -> Points:
    """Steps one by one."""
    columns = (steps.start, steps.count, steps.mean, steps.minimum, steps.maximum)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def direct(values: Values, step: int, since: int, until: int) -> Points:
    """What the series must say, computed from the values themselves and without a rounding on the way."""
    found: dict[int, list[float]] = defaultdict(list)
    for instant, value in values.items():
        if since <= instant < until:
            found[instant - instant % step].append(value)
    return [
        (start, len(held), float(sum(map(Fraction, held)) / len(held)), min(held), max(held))
        for start, held in sorted(found.items())
    ]


def same(found: Points | None, expected: Points) -> bool:
    """Whether two series agree, the means to 1e-12 of themselves."""
    assert found is not None
    exact = [(start, count, least, most) for start, count, _, least, most in found]
    near = all(
        abs(one[2] - other[2]) <= 1e-12 * abs(other[2]) + 1e-290 for one, other in zip(found, expected, strict=False)
    )
    return exact == [(start, count, least, most) for start, count, _, least, most in expected] and near


def rows(database: Database, *numbers: int) -> int:
    """Samples that are still in the table."""
    query = select(func.count()).select_from(sample)
    with database.read.connect() as connection:
        return connection.execute(query.where(sample.c.subject_no.in_(numbers)) if numbers else query).scalar_one()


def maintain(database: Database, settings: Settings) -> None:
    """One round of maintenance, with a writer of its own."""
    writer = Writer(database.write, settings.max_queue, Metrics())
    writer.start()
    try:
        asyncio.run(Maintenance(settings, database, writer).round())
    finally:
        writer.close()


def main(arguments: Iterable[str]) -> None:
    """Maintain a database in a process of its own: URL and retention in seconds."""
    url, retention = arguments
    with opened(url) as database:
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        maintain(database, Settings(retention=float(retention)))


if __name__ == "__main__":
    os.chdir(tempfile.gettempdir())
    main(sys.argv[1:])
