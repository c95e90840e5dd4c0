"""Rollup: samples older than the retention become packed steps of five minutes.

1. What is left of samples that are rolled up: for each step of time the count, mean, least and greatest value. The
   steps of one measure in one block of time are packed into a row of the table ``rollup``. Nothing is lost by it but
   the last bits of a mean: values that are decimal fractions, as most readings are, become whole numbers of a common
   unit, and all others stay doubles. A block of three hours is short enough for nearly every row to stay below 1002
   bytes; what is longer in a table of SQLite without row numbers fills up pages of its own
   (https://sqlite.org/fileformat2.html, 1.6).
2. Samples that are older than the retention become steps of five minutes, block after block, subject after subject.
   No sample that old can come any more, so a block that lies behind the retention is read, packed and written without
   haste: reading takes no lock, and the writer is given small pieces. How far it has gone, the frontier, is written
   in the transaction of the piece itself. Whoever reads a series takes what lies before the frontier from the table
   ``rollup`` and what lies behind it from ``sample``, so that it does not matter when the samples are deleted, or
   that the service dies in between: nothing counts twice, and nothing is missing. Where the retention is made longer
   afterwards, or the clock was ahead for a while, samples of blocks that are closed are taken and listed. A step of a
   series counts them where they are more than what is rolled up of it, as they are where none was deleted; once they
   are deleted, the series has what was rolled up, for no block is closed twice. Forgetting what need not be kept any
   longer, in pieces that hold up the writer for a few tens of milliseconds.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, case, delete, func, insert, select

from kuayu.service.storage.tables import SCALAR_MEASURES, meta, rollup, sample, subject
from kuayu.service.storage.writer import Outcome, Transaction

FINEST = 300_000
"""Milliseconds of the steps that are kept."""

BLOCK = 10_800_000
"""Milliseconds of a block."""

MAX_DIGITS = 9
"""Most decimal places of a value that is packed as a whole number."""

MAX_WHOLE = 2.0**43
"""Whole numbers below this can be added a million times without leaving 63 bits."""

ROUNDING = 1e-13
"""By how much of itself a sum of decimal fractions may miss a whole number, since it was added up in binary."""

_DOUBLES = 255
"""Stands for the number of decimal places where the values are doubles."""

_HEAD = struct.Struct("<BB")
_UNIT = struct.Struct("<qqBBB")

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Values of a measure over time, step by step in order; steps without values are not there.

    Attributes:
        start: int64[n], where each step begins, in milliseconds since 1970.
        count: int64[n], values observed in it, at least one.
        mean: float64[n], their mean, in the unit of the measure, as the two below.
        minimum: float64[n], the least.
        maximum: float64[n], the greatest.
    """

    start: Integers
    count: Integers
    mean: Doubles
    minimum: Doubles
    maximum: Doubles

    def __len__(self) -> int:
        return len(self.start)

    def between(self, since: int, until: int) -> "Steps":
        """Those that begin at ``since`` or later and before ``until``."""
        first, last = np.searchsorted(self.start, (since, until)).tolist()
        return Steps(
            self.start[first:last],
            self.count[first:last],
            self.mean[first:last],
            self.minimum[first:last],
            self.maximum[first:last],
        )

    def grouped(self, length: int) -> "Steps":
        """The same in steps of ``length`` milliseconds, a multiple of the present ones."""
        if not len(self):
            return self
        start = self.start - self.start % length
        first = np.flatnonzero(np.diff(start, prepend=start[0] - 1))
        sizes = np.diff(first, append=len(start))
        count = np.add.reduceat(self.count, first)
        minimum = np.minimum.reduceat(self.minimum, first)
        maximum = np.maximum.reduceat(self.maximum, first)
        # Weights before values, so that the sum of the largest doubles does not leave their range.
        mean = np.add.reduceat(self.count / np.repeat(count, sizes) * self.mean, first)
        return Steps(start[first], count, mean.clip(minimum, maximum), minimum, maximum)


def joined(parts: Sequence[Steps]) -> Steps:
    """One after the other."""
    return Steps(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.minimum for part in parts]),
        np.concatenate([part.maximum for part in parts]),
    )


def nothing() -> Steps:
    """No step at all."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return Steps(whole, whole, real, real, real)


def pack(steps: Steps, block: int) -> bytes:
    """Pack the steps of a block, each :data:`FINEST` long.

    Args:
        steps: At least one, all within the block.
        block: Where the block begins, in milliseconds.
    """
    slots = ((steps.start - block) // FINEST).astype(np.uint8)
    columns = [np.diff(slots, prepend=np.uint8(0)).tobytes(), _narrow(steps.count)]
    unit = _as_decimals(steps)
    if unit is None:
        columns += [_shuffled(values.view(np.uint64), 8) for values in (steps.minimum, steps.maximum, steps.mean)]
        return _HEAD.pack(_DOUBLES, len(steps)) + _deflated(columns)
    digits, divisor, base, numbers = unit
    widths = [_width(values) for values in numbers]
    columns += [_shuffled(values.view(np.uint64), width) for values, width in zip(numbers, widths, strict=True)]
    return _HEAD.pack(digits, len(steps)) + _UNIT.pack(divisor, base, *widths) + _deflated(columns)


def unpack(packed: bytes, block: int) -> Steps:
    """The steps that were packed."""
    digits, n = _HEAD.unpack_from(packed)
    if digits == _DOUBLES:
        content = memoryview(zlib.decompress(packed[_HEAD.size :], -zlib.MAX_WBITS))
        start, count, place = _places(content, n, block)
        minimum, maximum, mean = (
            _unshuffled(content[place + 8 * n * column :], n, 8).view(np.float64) for column in range(3)
        )
        return Steps(start, count, mean, minimum, maximum)
    divisor, base, *widths = _UNIT.unpack_from(packed, _HEAD.size)
    content = memoryview(zlib.decompress(packed[_HEAD.size + _UNIT.size :], -zlib.MAX_WBITS))
    start, count, place = _places(content, n, block)
    numbers = []
    for width in widths:
        numbers.append(_unshuffled(content[place:], n, width).view(np.int64))
        place += width * n
    return _from_decimals(start, count, digits, divisor, base, numbers)


def _as_decimals(steps: Steps) -> tuple[int, int, int, list[Integers]] | None:
    """Decimal places, common divisor, least number, and three columns of whole numbers that are not negative.

    The columns are the least less the base, the greatest less the least, and the sum less so many times the least. None
    where the values are no such decimal fractions, or would not come out of it as they went in.
    """
    ends = np.concatenate((steps.minimum, steps.maximum))
    if not (np.abs(ends) < MAX_WHOLE).all():
        return None
    for digits in range(MAX_DIGITS + 1):
        scaled = np.rint(ends * 10.0**digits)
        if np.abs(scaled).max() >= MAX_WHOLE:
            return None
        if (scaled / 10.0**digits == ends).all():
            break
    else:
        return None
    # What lies between the least and the greatest may have more places than they have; the sum shows it.
    for finer in range(digits, MAX_DIGITS + 1):
        scaled = np.rint(ends * 10.0**finer)
        exact = steps.mean * steps.count * 10.0**finer
        if np.abs(scaled).max() >= MAX_WHOLE or np.abs(exact).max() >= 2.0**62:
            return None
        sums = np.rint(exact)
        if (np.abs(sums - exact) <= ROUNDING * np.abs(exact)).all():
            return _checked(steps, finer, scaled.astype(np.int64), sums.astype(np.int64))
    return None


def _checked(steps: Steps, digits: int, ends: Integers, sums: Integers) -> tuple[int, int, int, list[Integers]] | None:
    divisor = int(np.gcd(np.gcd.reduce(ends), np.gcd.reduce(sums))) or 1
    least, greatest = np.split(ends // divisor, 2)
    base = int(least.min())
    numbers = [least - base, greatest - least, sums // divisor - steps.count * least]
    if min(int(values.min()) for values in numbers) < 0:
        return None
    again = _from_decimals(steps.start, steps.count, digits, divisor, base, numbers)
    near = np.abs(again.mean - steps.mean) <= 4 * ROUNDING * np.abs(steps.mean)
    same = (again.minimum == steps.minimum) & (again.maximum == steps.maximum) & near
    return (digits, divisor, base, numbers) if same.all() else None


def _from_decimals(
    start: Integers, count: Integers, digits: int, divisor: int, base: int, numbers: Sequence[Integers]
) -> Steps:
    scale = 10.0**digits
    least = numbers[0] + base
    minimum = (least * divisor) / scale
    maximum = ((least + numbers[1]) * divisor) / scale
    mean = (numbers[2] + least * count) * divisor / (count * scale)
    return Steps(start, count, mean.clip(minimum, maximum), minimum, maximum)


def _places(content: memoryview, n: int, block: int) -> tuple[Integers, Integers, int]:
    """Where the steps begin, how many values each has, and where what follows stands in the content."""
    slots = np.cumsum(np.frombuffer(content, np.uint8, n), dtype=np.int64)
    width = content[n]
    counts = _unshuffled(content[n + 1 :], n, width).view(np.int64)
    return block + slots * FINEST, counts, n + 1 + width * n


def _narrow(values: Integers) -> bytes:
    width = _width(values)
    return bytes([width]) + _shuffled(values.view(np.uint64), width)


def _width(values: Integers) -> int:
    """Bytes that the largest value needs."""
    return max(1, (int(values.max()).bit_length() + 7) // 8)


def _shuffled(values: npt.NDArray[np.uint64], width: int) -> bytes:
    """The lowest ``width`` bytes of each value, first the lowest of all, then the next."""
    octets = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
    return octets[:, :width].T.tobytes()


def _unshuffled(content: memoryview, n: int, width: int) -> npt.NDArray[np.uint64]:
    octets = np.zeros((n, 8), np.uint8)
    octets[:, :width] = np.frombuffer(content, np.uint8, n * width).reshape(width, n).T
    return octets.view("<u8").reshape(n).astype(np.uint64, copy=False)


def _deflated(columns: Sequence[bytes]) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(b"".join(columns)) + packer.flush()


DAY = 86_400_000
"""Milliseconds of the longest step."""

ROLLUP_MARGIN_MILLISECONDS = 600_000
"""Milliseconds beyond the retention for which nothing is closed: what was taken may wait to be written, and clocks may
be set back a little."""

ROLLED_SUBJECTS_PER_TRANSACTION = 16
"""Subjects whose blocks make one piece of work."""

SCALE = 2.0**-30
"""What values are multiplied by before the database adds them up: a sum of the largest doubles leaves their range."""

MIN_WEIGHTED_VALUE = 1e-290
"""Below it values add nothing to a sum: PostgreSQL refuses to multiply what becomes zero by it."""

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
class RollupRow:
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

    rows: Sequence[RollupRow]
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
    existing = connection.execute(select(meta.c.value).where(meta.c.name == _NAME)).scalar()
    return None if existing is None else Frontier(**orjson.loads(existing))


def next_advance(connection: Connection, now: int, retention: int, rollup_retention: int) -> Advance | None:
    """The next piece of work, read and packed; None where there is none.

    Args:
        connection: Reads one state of the database.
        now: The present, in milliseconds.
        retention: How long samples are kept, in milliseconds.
        rollup_retention: How long what is rolled up is kept, in milliseconds; not at all where it is no longer than
            the retention.
    """
    due = _floor(now - retention - ROLLUP_MARGIN_MILLISECONDS, BLOCK)
    existing = frontier(connection)
    if existing is None:
        begin = _first_block(connection, None, due)
        return Advance((), Frontier(begin, 0, _floor(begin, DAY)))
    if rollup_retention <= retention:
        return _forget_all(connection, existing, due)
    forgotten = min(_floor(now - rollup_retention, DAY), existing.block)
    if forgotten > existing.forgotten:
        return Advance((), replace(existing, forgotten=forgotten))
    if existing.block >= due:
        return None
    numbers = connection.execute(_subjects_at_work(existing)).scalars().all()
    if not numbers:
        return Advance((), Frontier(_first_block(connection, existing.block + BLOCK, due), 0, existing.forgotten))
    return Advance(list(packed(connection, numbers, existing.block)), replace(existing, subject=numbers[-1]))


def packed(connection: Connection, numbers: Sequence[int], block: int) -> Iterator[RollupRow]:
    """Roll up the samples that subjects have in a block."""
    rows = connection.execute(_totals(numbers, block)).all()
    for number, group in groupby(rows, key=lambda row: int(row[0])):
        yield from _packed(number, list(group), block)


def _packed(number: int, rows: Sequence[Row[Any]], block: int) -> Iterator[RollupRow]:
    """Rows of a subject, one for each step: number, step, and four totals of each measure."""
    table = np.array([tuple(row)[1:] for row in rows], np.float64)
    start = block + table[:, 0].astype(np.int64) * FINEST
    for place, name in enumerate(SCALAR_MEASURES):
        columns = table[:, 1 + 4 * place : 5 + 4 * place]
        present = columns[:, 0] > 0
        if present.any():
            yield RollupRow(number, name, block, pack(steps_of(start[present], columns[present]), block))


def totals(measure: str) -> tuple[ColumnElement[Any], ...]:
    """What the database shall find out about the values of a measure: :func:`steps_of` takes it in this order."""
    column = sample.c[measure]
    scaled = case((func.abs(column) > MIN_WEIGHTED_VALUE, column * SCALE), else_=0.0)
    return func.count(column), func.sum(scaled), func.min(column), func.max(column)


def steps_of(start: Integers, values: Doubles) -> Steps:
    """Steps from what the database has found out.

    Args:
        start: int64[n], where each step begins, in milliseconds.
        values: float64[n, 4], what was asked for by :func:`totals`.
    """
    count, scaled, least, greatest = values.T
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


def _subjects_at_work(progress: Frontier) -> Select[Any]:
    """Next subjects that have samples in the block at work."""
    present = (
        select(sample.c.observed)
        .where(sample.c.subject_no == subject.c.no)
        .where(sample.c.observed >= progress.block, sample.c.observed < progress.block + BLOCK)
        .exists()
    )
    return (
        select(subject.c.no)
        .where(subject.c.no > progress.subject, present)
        .order_by(subject.c.no)
        .limit(ROLLED_SUBJECTS_PER_TRANSACTION)
    )


def _forget_all(connection: Connection, progress: Frontier, due: int) -> Advance | None:
    """Let the frontier pass over samples that are not to be rolled up."""
    if progress.block >= due:
        return None
    first = _first(connection, progress.block)
    lost = first is not None and first < due
    rolled_up = connection.execute(select(rollup.c.start).limit(1)).scalar() is not None
    return Advance((), Frontier(due, 0, due if lost or rolled_up else progress.forgotten))


def _first_block(connection: Connection, since: int | None, due: int) -> int:
    """The first block that has a sample, or the first that may not be closed yet."""
    first = _first(connection, since)
    return due if first is None else min(_floor(first, BLOCK), due)


def _first(connection: Connection, since: int | None) -> int | None:
    """The first instant at which anything was observed, at ``since`` or later."""
    of_subject = select(func.min(sample.c.observed)).where(sample.c.subject_no == subject.c.no)
    if since is not None:
        of_subject = of_subject.where(sample.c.observed >= since)
    first_of = select(of_subject.scalar_subquery().label("first")).select_from(subject).subquery()
    first: int | None = connection.execute(select(func.min(first_of.c.first))).scalar()
    return first


def _floor(instant: int, length: int) -> int:
    return instant - instant % length
