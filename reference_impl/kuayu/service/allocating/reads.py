"""What requests read of allocations, each time one state of the database."""

from dataclasses import dataclass

from sqlalchemy import func, or_, select

from kuayu.service.allocating.forgetting import oldest
from kuayu.service.allocating.storage import Record, find, record_of, valid
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import allocation, step, tenant

MOST_SHOWN = 1000
"""Actions that a domain is shown at once."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Part of the list of allocations, without their steps, and the revision that it shows."""

    records: list[Record]
    more: bool
    revision: Revision


class AllocationStore:
    """Reads of allocations, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, owner: str, name: str) -> Record | None:
        """An allocation as it stands, or None."""
        with self._database.read.connect() as connection, connection.begin():
            return find(connection, owner, name)

    def listing(self, owner: str, *, at: Revision | None, after: str, limit: int) -> Listing | None:
        """Part of the list in order of identifier, pinned to a revision; None where that is no longer held."""
        with self._database.read.connect() as connection, connection.begin():
            number = connection.execute(select(tenant.c.allocations).where(tenant.c.name == owner)).scalar() or 0
            at = at or Revision(self._database.epoch, number)
            if at.epoch != self._database.epoch or not oldest(connection, owner) <= at.number <= number:
                return None
            rows = connection.execute(
                select(allocation)
                .where(allocation.c.tenant == owner, allocation.c.id > after, allocation.c.valid_from <= at.number)
                .where(or_(allocation.c.valid_to.is_(None), allocation.c.valid_to > at.number))
                .order_by(allocation.c.id)
                .limit(limit + 1)
            ).mappings()
            found = [record_of(row) for row in rows]
            return Listing(found[:limit], len(found) > limit, at)

    def open_actions(self, owner: str, domain: str) -> list[bytes]:
        """What a domain is asked and has not answered, class Action as JSON, the oldest first."""
        query = (
            select(step.c.body)
            .where(step.c.tenant == owner, step.c.domain == domain, step.c.open_since.is_not(None))
            .order_by(step.c.open_since, step.c.action)
            .limit(MOST_SHOWN)
        )
        with self._database.read.connect() as connection, connection.begin():
            return [body.encode() for body in connection.execute(query).scalars()]

    def earliest_deadline(self) -> int | None:
        """When time is up for the first of all allocations, in milliseconds; None where nothing depends on time."""
        query = select(func.min(allocation.c.deadline)).where(valid(), allocation.c.deadline.is_not(None))
        with self._database.read.connect() as connection, connection.begin():
            found: int | None = connection.execute(query).scalar()
            return found
