"""What requests read of faults, each time one state of the database."""

from dataclasses import dataclass

from sqlalchemy import select

from kuayu.service.problems import ProblemException
from kuayu.service.storage.database import Database
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import fault, watched
from kuayu.service.storage.versions import Listing
from kuayu.service.streams import Joined
from kuayu.service.watching.storage import FAULTS, Record, record_of


@dataclass(frozen=True, slots=True)
class Past:
    """What a tenant's watch has to go on from.

    Attributes:
        nodes: Nodes that have sent a heartbeat.
        open: Faults that are open.
    """

    nodes: set[str]
    open: list[Record]


class FaultStore:
    """Reads of faults, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def listing(
        self, owner: str, *, at: Revision | None, after: str, limit: int, domain: str | None, state: str | None
    ) -> Listing[Record] | None:
        """Part of the list in order of identifier, pinned to a revision; None where that is no longer held."""
        with self._database.reading() as connection:
            at = at or Revision(self._database.epoch, FAULTS.number(connection, owner))
            if at.epoch != self._database.epoch or not FAULTS.holds(connection, owner, at.number):
                return None
            query = (
                select(fault.c.body, fault.c.valid_from)
                .where(fault.c.tenant == owner, fault.c.id > after, FAULTS.valid_at(at.number))
                .order_by(fault.c.id)
                .limit(limit + 1)
            )
            if domain is not None:
                query = query.where(fault.c.domain == domain)
            if state is not None:
                query = query.where(fault.c.state == state)
            found = [record_of(self._database.epoch, row) for row in connection.execute(query)]
            return Listing(found[:limit], len(found) > limit, at)

    def join(self, owner: str, last: Revision | None) -> Joined[Record]:
        """Begin to follow faults: each version is a change, so a stream goes on across restarts of the service.

        Args:
            owner: The tenant.
            last: Revision of the last event that the reader has seen; None to begin with the next change.

        Raises:
            ProblemException: revision-expired.
        """
        with self._database.reading() as connection:
            number = FAULTS.number(connection, owner)
            if last is None:
                return Joined(number, [])
            if last.epoch != self._database.epoch or not FAULTS.holds(connection, owner, last.number):
                raise ProblemException(
                    "revision-expired", f"the changes after {last.epoch}:{last.number} are not held; list the faults"
                )
            missed = (
                select(fault.c.body, fault.c.valid_from)
                .where(fault.c.tenant == owner, fault.c.valid_from > last.number)
                .order_by(fault.c.valid_from)
            )
            return Joined(number, [record_of(self._database.epoch, row) for row in connection.execute(missed)])

    def past(self) -> dict[str, Past]:
        """What each tenant's watch has to go on from after a restart of the service."""
        found: dict[str, Past] = {}
        with self._database.reading() as connection:
            for row in connection.execute(select(watched)):
                found.setdefault(row.tenant, Past(set(), [])).nodes.add(row.node)
            opened = select(fault.c.tenant, fault.c.body, fault.c.valid_from)
            for row in connection.execute(opened.where(fault.c.cleared.is_(None), FAULTS.valid())):
                record = record_of(self._database.epoch, row)
                found.setdefault(row.tenant, Past(set(), [])).open.append(record)
        return found
