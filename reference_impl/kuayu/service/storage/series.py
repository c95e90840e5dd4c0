"""Series: what was observed of a measure, step by step, from samples and from what older ones are rolled up to."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, select

from kuayu.service.storage.packing import BLOCK, FINEST, Steps, joined, nothing, unpack
from kuayu.service.storage.rollup import frontier, steps_of, totals
from kuayu.service.storage.tables import rollup, sample


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """Which series is asked for.

    Attributes:
        subject: Number of the subject.
        measure: A measure that is one number.
        since: Begin of the first step, in milliseconds; a multiple of ``step``.
        until: End of the last step, likewise.
        step: Length of a step in milliseconds.
    """

    subject: int
    measure: str
    since: int
    until: int
    step: int


def series(connection: Connection, query: SeriesQuery) -> Steps | None:
    """Read a series; None where parts of it are kept in coarser steps only."""
    rolled_until, since = query.since, query.since
    reached = frontier(connection)
    if reached is not None:
        rolled_until = min(max(query.since, reached.of(query.subject)), query.until)
        # A step of which a part is forgotten would state the rest as the whole.
        since = max(query.since, -(-reached.forgotten // query.step) * query.step)
    old = _rolled(connection, query, since - since % FINEST, rolled_until)
    recent = max(since, rolled_until)
    if query.step % FINEST:
        return None if len(old) else _counted(connection, query, since, query.until, query.step)
    left = _counted(connection, query, since, recent, FINEST)
    return joined([_fuller(old, left), _counted(connection, query, recent, query.until, query.step)]).grouped(
        query.step
    )


def _fuller(rolled: Steps, counted: Steps) -> Steps:
    """Of steps that lie before the frontier those with more values: samples may be deleted, or have come too late."""
    if not len(counted):
        return rolled
    both = joined([rolled, counted])
    order = np.lexsort((-both.count, both.start))
    first = order[np.flatnonzero(np.diff(both.start[order], prepend=-1))]
    return Steps(both.start[first], both.count[first], both.mean[first], both.minimum[first], both.maximum[first])


def _rolled(connection: Connection, query: SeriesQuery, since: int, until: int) -> Steps:
    """What is rolled up of the steps that begin at ``since`` or later and before ``until``."""
    rows = connection.execute(
        select(rollup.c.start, rollup.c.packed)
        .where(rollup.c.subject_no == query.subject, rollup.c.measure == query.measure)
        .where(rollup.c.start > since - BLOCK, rollup.c.start < until)
        .order_by(rollup.c.start)
    ).all()
    return joined([nothing(), *(unpack(row.packed, row.start) for row in rows)]).between(since, until)


def _counted(connection: Connection, query: SeriesQuery, since: int, until: int, length: int) -> Steps:
    """Steps made of the samples themselves, which the database adds up."""
    if since >= until:
        return nothing()
    step = ((sample.c.observed - query.since) // length).label("step")
    rows = connection.execute(
        select(step, *totals(query.measure))
        .where(sample.c.subject_no == query.subject, sample.c[query.measure].is_not(None))
        .where(sample.c.observed >= since, sample.c.observed < until)
        .group_by("step")
        .order_by("step")
    ).all()
    if not rows:
        return nothing()
    found = np.array([tuple(row) for row in rows], np.float64)
    return steps_of(query.since + found[:, 0].astype(np.int64) * length, found[:, 1:])
