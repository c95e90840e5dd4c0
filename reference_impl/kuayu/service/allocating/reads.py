"""What requests read of allocations, each time one state of the database."""

from sqlalchemy import func, select

from kuayu.service.allocating.leases import Leased
from kuayu.service.allocating.storage import ALLOCATIONS, Record, find, leased, record_of
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import allocation
from kuayu.service.storage.versions import Listing


class AllocationStore:
    """Reads of allocations, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, owner: str, name: str) -> Record | None:
        """An allocation as it stands, or None."""
        with self._database.reading() as connection:
            return find(connection, owner, name)

    def listing(self, owner: str, *, at: Revision | None, after: str, limit: int) -> Listing[Record] | None:
        """Part of the list in order of identifier, pinned to a revision; None where that is no longer held."""
        with self._database.reading() as connection:
            at = at or Revision(self._database.epoch, ALLOCATIONS.number(connection, owner))
            if at.epoch != self._database.epoch or not ALLOCATIONS.holds(connection, owner, at.number):
                return None
            rows = connection.execute(
                select(allocation)
                .where(allocation.c.tenant == owner, allocation.c.id > after, ALLOCATIONS.valid_at(at.number))
                .order_by(allocation.c.id)
                .limit(limit + 1)
            ).mappings()
            found = [record_of(row) for row in rows]
            return Listing(found[:limit], len(found) > limit, at)

    def leased(self) -> list[Leased]:
        """Allocations with a lease that domains may hold."""
        with self._database.reading() as connection:
            return leased(connection)

    def earliest_deadline(self) -> int | None:
        """When time is up for the first of all allocations, in milliseconds; None where nothing depends on time."""
        query = select(func.min(allocation.c.deadline)).where(ALLOCATIONS.valid(), allocation.c.deadline.is_not(None))
        with self._database.reading() as connection:
            found: int | None = connection.execute(query).scalar()
            return found
