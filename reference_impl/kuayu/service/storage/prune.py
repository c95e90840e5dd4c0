"""Forgetting what need not be kept any longer."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from kuayu.service.storage import history
from kuayu.service.storage.tables import answer, meta, resource, sample, subject, tenant
from kuayu.service.storage.writer import Outcome, Transaction


@dataclass(frozen=True, slots=True)
class Prune:
    """Forget old samples, answers and versions of resources.

    Attributes:
        samples_before: Instant before which samples go, in milliseconds.
        answers_before: Instant before which answers under idempotency keys go.
        revisions: Revisions that are kept for each tenant.
    """

    samples_before: int
    answers_before: int
    revisions: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Forget."""
        connection = transaction.connection
        for number in connection.execute(select(subject.c.no)).scalars().all():
            connection.execute(
                delete(sample).where(sample.c.subject_no == number, sample.c.observed < self.samples_before)
            )
        connection.execute(delete(answer).where(answer.c.created < self.answers_before))
        for row in connection.execute(select(tenant)).all():
            self._forget_versions(connection, row.name, row.number - self.revisions)
        return Outcome(None)

    def _forget_versions(self, connection: Connection, owner: str, revision: int) -> None:
        if revision <= history.oldest(connection, owner):
            return
        connection.execute(delete(resource).where(resource.c.tenant == owner, resource.c.valid_to <= revision))
        connection.execute(delete(meta).where(meta.c.name == f"oldest:{owner}"))
        connection.execute(insert(meta).values(name=f"oldest:{owner}", value=str(revision)))
