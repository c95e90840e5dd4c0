"""Forgetting what need not be kept any longer, in pieces that hold up the writer for a few tens of milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, delete, select

from kuayu.service.storage import history, quotas
from kuayu.service.storage.tables import SCALAR_MEASURES, answer, rollup, sample, subject, tenant
from kuayu.service.storage.writer import Outcome, Transaction

ROWS_AT_ONCE = 5_000
"""Rows after which a piece ends."""

SUBJECTS_AT_ONCE = 200
"""Subjects that are looked for at once."""


@dataclass(frozen=True, slots=True)
class Prune:
    """Forget old answers and versions of resources.

    Attributes:
        answers_before: Instant before which answers under idempotency keys go, in milliseconds.
        revisions: Revisions that are kept for each tenant.
        weight: How much of the writer's queue it takes.
    """

    answers_before: int
    revisions: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[bool]:
        """Forget; tells whether answers are left that should go."""
        connection = transaction.connection
        expired = answer.c.created < self.answers_before
        oldest = select(answer.c.created).where(expired).order_by(answer.c.created)
        last = connection.execute(oldest.offset(ROWS_AT_ONCE).limit(1)).scalar()
        # Those of one instant go together, so that each piece forgets some.
        connection.execute(delete(answer).where(expired if last is None else answer.c.created <= last))
        for row in connection.execute(select(tenant)).all():
            self._forget_versions(connection, row.name, row.number - self.revisions)
        return Outcome(last is not None)

    def _forget_versions(self, connection: Connection, owner: str, revision: int) -> None:
        if revision <= history.oldest(connection, owner):
            return
        quotas.forget_versions(connection, owner, revision)


@dataclass(frozen=True, slots=True)
class ForgetSamples:
    """Forget old samples of some subjects.

    Attributes:
        subjects: Their numbers, in order.
        before: Instant before which samples go, in milliseconds.
        weight: How much of the writer's queue it takes.
    """

    subjects: Sequence[int]
    before: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Forget as many as make a piece; tells the number of the last subject that has none left."""
        connection = transaction.connection
        left = ROWS_AT_ONCE
        for number in self.subjects:
            old = (sample.c.subject_no == number) & (sample.c.observed < self.before)
            within = select(sample.c.observed).where(old).order_by(sample.c.observed).offset(left).limit(1)
            last = connection.execute(within).scalar()
            if last is not None:
                connection.execute(delete(sample).where(old, sample.c.observed < last))
                return Outcome(number - 1)
            left -= connection.execute(delete(sample).where(old)).rowcount
        return Outcome(self.subjects[-1])


@dataclass(frozen=True, slots=True)
class ForgetRollups:
    """Forget what is rolled up of some subjects; there are few rows of each.

    Attributes:
        subjects: Their numbers, in order.
        before: Instant before which blocks go, in milliseconds.
        weight: How much of the writer's queue it takes.
    """

    subjects: Sequence[int]
    before: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[int]:
        """Forget as many as make a piece; tells the number of the last subject that has none left."""
        left = ROWS_AT_ONCE
        for number in self.subjects:
            old = delete(rollup).where(rollup.c.subject_no == number, *_before(self.before))
            left -= transaction.connection.execute(old).rowcount
            if left <= 0:
                return Outcome(number)
        return Outcome(self.subjects[-1])


def with_old_samples(before: int, after: int) -> Select[int]:
    """Next subjects, by number ``after`` one, that have samples older than an instant in milliseconds."""
    old = select(sample.c.observed).where(sample.c.subject_no == subject.c.no, sample.c.observed < before)
    return _subjects(after).where(old.exists())


def with_old_rollups(before: int, after: int) -> Select[int]:
    """Next subjects, by number ``after`` one, of which blocks are kept that are older than an instant."""
    old = select(rollup.c.start).where(rollup.c.subject_no == subject.c.no, *_before(before))
    return _subjects(after).where(old.exists())


def _subjects(after: int) -> Select[int]:
    return select(subject.c.no).where(subject.c.no > after).order_by(subject.c.no).limit(SUBJECTS_AT_ONCE)


def _before(instant: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions that the primary key leads to: the measures stand between subject and instant in it."""
    return rollup.c.measure.in_(SCALAR_MEASURES), rollup.c.start < instant
