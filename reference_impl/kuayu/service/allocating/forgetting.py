"""Forgetting allocations that hold nothing any more, and versions that no listing needs."""

from sqlalchemy import Connection, delete, insert, select

from kuayu.service.allocating.rules import FINISHED
from kuayu.service.allocating.storage import next_number, retire, valid
from kuayu.service.storage.tables import allocation, meta, step, tenant

FORGOTTEN_AT_ONCE = 500
"""Allocations that are forgotten in one transaction."""


def forget(connection: Connection, before: int, revisions: int) -> bool:
    """Forget allocations that hold nothing since ``before``, in milliseconds, and versions that no listing needs.

    Those whose aborts a domain has not answered stay. Tells whether some are left that should go.
    """
    unanswered = select(step.c.action).where(
        step.c.tenant == allocation.c.tenant, step.c.allocation == allocation.c.id, step.c.open_since.is_not(None)
    )
    gone = connection.execute(
        select(allocation.c.tenant, allocation.c.id)
        .where(valid(), allocation.c.phase.in_([phase.value for phase in FINISHED]), allocation.c.updated < before)
        .where(~unanswered.exists())
        .limit(FORGOTTEN_AT_ONCE)
    ).all()
    for row in gone:
        retire(connection, row.tenant, row.id, next_number(connection, row.tenant))
        connection.execute(delete(step).where(step.c.tenant == row.tenant, step.c.allocation == row.id))
    for row in connection.execute(select(tenant)).all():
        _forget_versions(connection, row.name, row.allocations - revisions)
    return len(gone) == FORGOTTEN_AT_ONCE


def _forget_versions(connection: Connection, owner: str, number: int) -> None:
    if number <= oldest(connection, owner):
        return
    connection.execute(delete(allocation).where(allocation.c.tenant == owner, allocation.c.valid_to <= number))
    connection.execute(delete(meta).where(meta.c.name == _oldest_name(owner)))
    connection.execute(insert(meta).values(name=_oldest_name(owner), value=str(number)))


def oldest(connection: Connection, owner: str) -> int:
    """Oldest change of a tenant's allocations from which all versions are still held."""
    kept = connection.execute(select(meta.c.value).where(meta.c.name == _oldest_name(owner))).scalar()
    return int(kept or 0)


def _oldest_name(owner: str) -> str:
    return f"oldest allocations:{owner}"
