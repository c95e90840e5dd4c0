"""The newest sample of each of many subjects, found by a step into the primary key for each.

That is not the newest value of each measure: one that is reported less often than others stands in an older sample.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import select

from kuayu.service.storage.database import Database
from kuayu.service.storage.newest import LIFE
from kuayu.service.storage.tables import sample, subject

CHUNK = 10_000
"""Subjects that one statement asks for."""


def newest_samples(
    database: Database, numbers: Sequence[int], measures: Sequence[str], at: int
) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Newest samples that may live at an instant, some at a time; of subjects without one, nothing. Blocking.

    Args:
        database: Where they are.
        numbers: Numbers of the subjects.
        measures: What is wanted of each sample.
        at: The instant, in milliseconds.

    Yields:
        Rows of number, instant and measures, None for one that was not observed.
    """
    within = (sample.c.observed <= at, sample.c.observed >= at - LIFE)
    newest = select(sample.c.observed).where(sample.c.subject_no == subject.c.no, *within)
    instant = newest.order_by(sample.c.observed.desc()).limit(1).correlate(subject).scalar_subquery()
    found = (sample.c.subject_no == subject.c.no) & (sample.c.observed == instant)
    columns = (sample.c.subject_no, sample.c.observed, *(sample.c[name] for name in measures))
    query = select(*columns).select_from(subject.join(sample, found))
    for start in range(0, len(numbers), CHUNK):
        with database.reading() as connection:
            chosen = query.where(subject.c.no.in_(numbers[start : start + CHUNK]))
            yield [tuple(row) for row in connection.execute(chosen)]
