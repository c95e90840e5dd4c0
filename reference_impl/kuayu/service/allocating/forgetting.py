"""Forgetting allocations that hold nothing any more, and versions that no listing needs."""

from sqlalchemy import Connection, delete, select

from kuayu.service.allocating.standing import FINISHED
from kuayu.service.allocating.storage import ALLOCATIONS
from kuayu.service.storage import quotas
from kuayu.service.storage.tables import allocation, step

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
        .where(
            ALLOCATIONS.valid(),
            allocation.c.phase.in_([phase.value for phase in FINISHED]),
            allocation.c.updated < before,
        )
        .where(~unanswered.exists())
        .limit(FORGOTTEN_AT_ONCE)
    ).all()
    for row in gone:
        ALLOCATIONS.retire(connection, row.tenant, row.id, ALLOCATIONS.next_number(connection, row.tenant))
        quotas.count(connection, row.tenant, -1, 0)
        connection.execute(delete(step).where(step.c.tenant == row.tenant, step.c.allocation == row.id))
    ALLOCATIONS.forget(connection, revisions)
    return len(gone) == FORGOTTEN_AT_ONCE
