"""Samples that are older than the retention become steps of five minutes, block after block, subject after subject.

No sample that old can come any more, so a block that lies behind the retention is read, packed and written without
haste: reading takes no lock, and the writer is given small pieces. How far it has gone, the frontier, is written in the
transaction of the piece itself. Whoever reads a series takes what lies before the frontier from the table ``rollup``
and what lies behind it from ``sample``, so that it does not matter when the samples are deleted, or that the service
dies in between: nothing counts twice, and nothing is missing.

Where the retention is made longer afterwards, or the clock was ahead for a while, samples of blocks that are closed are
taken and listed. A step of a series counts them where they are more than what is rolled up of it, as they are where
none was deleted; once they are deleted, the series has what was rolled up, for no block is closed twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, case, delete, func, insert, select

from kuayu.service.storage.packing import BLOCK, FINEST, Doubles, Integers, Steps, pack
from kuayu.service.storage.tables import SCALAR_MEASURES, meta, rollup, sample, subject
from kuayu.service.storage.writer import Outcome, Transaction

DAY = 86_400_000
"""Milliseconds of the longest step."""

MARGIN = 600_000
"""Milliseconds beyond the retention for which nothing is closed: what was taken may wait to be written, and clocks may
be set back a little."""

SUBJECTS_AT_ONCE = 16
"""Subjects whose blocks make one piece of work."""

SCALE = 2.0**-30
"""What values are multiplied by before the database adds them up: a sum of the largest doubles leaves their range."""

LEAST = 1e-290
"""Below it values add nothing to a sum: PostgreSQL refuses to multiply what becomes nought by it."""

_NAME = "rollup"


@dataclass(frozen=True, slots=True)
class Frontier:
    """How far samples are rolled up; instants in milliseconds.

    Attributes:
        block: Begin of the block that is at work; what was observed before is rolled up.
        subject: Highest number of a subject whose part of the block at work is rolled up as well.
        forgotten: Steps that begin earlier may lack values, since their block is not kept any longer.
    """

    block: int
    subject: int
    forgotten: int

    def of(self, number: int) -> int:
        """Instant before which a subject's samples are rolled up."""
        return self.block + BLOCK if number <= self.subject else self.block


@dataclass(frozen=True, slots=True)
class Packed:
    """A row of the table of what is rolled up."""

    subject: int
    measure: str
    block: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Advance:
    """Write what was rolled up, and with it how far that leads.

    Attributes:
        rows: Blocks of the subjects that the frontier passes.
        frontier: The frontier from then on.
        weight: How much of the writer's queue it takes.
    """

    rows: Sequence[Packed]
    frontier: Frontier
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Write."""
        connection = transaction.connection
        if self.rows:
            values = [
                {"subject_no": row.subject, "measure": row.measure, "start": row.block, "packed": row.content}
                for row in self.rows
            ]
            connection.execute(insert(rollup), values)
        state = {"block": self.frontier.block, "subject": self.frontier.subject, "forgotten": self.frontier.forgotten}
        connection.execute(delete(meta).where(meta.c.name == _NAME))
        connection.execute(insert(meta).values(name=_NAME, value=orjson.dumps(state).decode()))
        return Outcome(None)


def frontier(connection: Connection) -> Frontier | None:
    """How far samples are rolled up; None where that has never begun."""
    held = connection.execute(select(meta.c.value).where(meta.c.name == _NAME)).scalar()
    return None if held is None else Frontier(**orjson.loads(held))


def next_advance(connection: Connection, now: int, retention: int, kept: int) -> Advance | None:
    """The next piece of work, read and packed; None where there is none.

    Args:
        connection: Reads one state of the database.
        now: The present, in milliseconds.
        retention: How long samples are kept, in milliseconds.
        kept: How long what is rolled up is kept, in milliseconds; not at all where it is no longer than the retention.
    """
    due = _floor(now - retention - MARGIN, BLOCK)
    held = frontier(connection)
    if held is None:
        begin = _first_block(connection, None, due)
        return Advance((), Frontier(begin, 0, _floor(begin, DAY)))
    if kept <= retention:
        return _forget_all(connection, held, due)
    forgotten = min(_floor(now - kept, DAY), held.block)
    if forgotten > held.forgotten:
        return Advance((), replace(held, forgotten=forgotten))
    if held.block >= due:
        return None
    numbers = connection.execute(_subjects_at_work(held)).scalars().all()
    if not numbers:
        return Advance((), Frontier(_first_block(connection, held.block + BLOCK, due), 0, held.forgotten))
    return Advance(list(packed(connection, numbers, held.block)), replace(held, subject=numbers[-1]))


def packed(connection: Connection, numbers: Sequence[int], block: int) -> Iterator[Packed]:
    """Roll up the samples that subjects have in a block."""
    rows = connection.execute(_totals(numbers, block)).all()
    for number, group in groupby(rows, key=lambda row: int(row[0])):
        yield from _packed(number, list(group), block)


def _packed(number: int, rows: Sequence[Row[Any]], block: int) -> Iterator[Packed]:
    """Rows of a subject, one for each step: number, step, and four totals of each measure."""
    table = np.array([tuple(row)[1:] for row in rows], np.float64)
    start = block + table[:, 0].astype(np.int64) * FINEST
    for place, name in enumerate(SCALAR_MEASURES):
        columns = table[:, 1 + 4 * place : 5 + 4 * place]
        there = columns[:, 0] > 0
        if there.any():
            yield Packed(number, name, block, pack(steps_of(start[there], columns[there]), block))


def totals(measure: str) -> tuple[ColumnElement[Any], ...]:
    """What the database shall find out about the values of a measure: :func:`steps_of` takes it in this order."""
    column = sample.c[measure]
    scaled = case((func.abs(column) > LEAST, column * SCALE), else_=0.0)
    return func.count(column), func.sum(scaled), func.min(column), func.max(column)


def steps_of(start: Integers, found: Doubles) -> Steps:
    """Steps from what the database has found out.

    Args:
        start: int64[n], where each step begins, in milliseconds.
        found: float64[n, 4], what was asked for by :func:`totals`.
    """
    count, scaled, least, greatest = found.T
    # A rounding may carry the mean of equal values out of their range, and the largest doubles out of theirs.
    mean = np.clip(scaled / count, least * SCALE, greatest * SCALE) / SCALE
    return Steps(start, count.astype(np.int64), mean.clip(least, greatest), least, greatest)


def _totals(numbers: Sequence[int], block: int) -> Select[Any]:
    step = ((sample.c.observed - block) // FINEST).label("step")
    return (
        select(sample.c.subject_no, step, *(total for name in SCALAR_MEASURES for total in totals(name)))
        .where(sample.c.subject_no.in_(numbers), sample.c.observed >= block, sample.c.observed < block + BLOCK)
        .group_by(sample.c.subject_no, "step")  # by name: PostgreSQL does not see that two parameters are equal
        .order_by(sample.c.subject_no, "step")
    )


def _subjects_at_work(held: Frontier) -> Select[Any]:
    """Next subjects that have samples in the block at work."""
    there = (
        select(sample.c.observed)
        .where(sample.c.subject_no == subject.c.no)
        .where(sample.c.observed >= held.block, sample.c.observed < held.block + BLOCK)
        .exists()
    )
    return select(subject.c.no).where(subject.c.no > held.subject, there).order_by(subject.c.no).limit(SUBJECTS_AT_ONCE)


def _forget_all(connection: Connection, held: Frontier, due: int) -> Advance | None:
    """Let the frontier pass over samples that are not to be rolled up."""
    if held.block >= due:
        return None
    first = _first(connection, held.block)
    lost = first is not None and first < due
    kept = connection.execute(select(rollup.c.start).limit(1)).scalar() is not None
    return Advance((), Frontier(due, 0, due if lost or kept else held.forgotten))


def _first_block(connection: Connection, since: int | None, due: int) -> int:
    """The first block that has a sample, or the first that may not be closed yet."""
    first = _first(connection, since)
    return due if first is None else min(_floor(first, BLOCK), due)


def _first(connection: Connection, since: int | None) -> int | None:
    """The first instant at which anything was observed, at ``since`` or later."""
    of_subject = select(func.min(sample.c.observed)).where(sample.c.subject_no == subject.c.no)
    if since is not None:
        of_subject = of_subject.where(sample.c.observed >= since)
    each = select(of_subject.scalar_subquery().label("first")).select_from(subject).subquery()
    first: int | None = connection.execute(select(func.min(each.c.first))).scalar()
    return first


def _floor(instant: int, length: int) -> int:
    return instant - instant % length
