"""Allocations in the database: one row for each version, and one for each step."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import Connection, insert, select, update

from kuayu.service import instants
from kuayu.service.allocating.leases import Leased
from kuayu.service.allocating.standing import FINISHED, MAYBE_HELD, Standing
from kuayu.service.allocating.steps import Json, Step, domains
from kuayu.service.storage import quotas
from kuayu.service.storage.tables import allocation, step, tenant
from kuayu.service.storage.versions import Versions
from kuayu_schemas.models import ActionOutcome, AllocationPhase

ALLOCATIONS = Versions(allocation, tenant.c.allocations)
"""Versions of allocations."""

_STEP = ("body", "attempt", "open_since", "outcome", "nodes")


@dataclass(frozen=True, slots=True)
class Record:
    """An allocation as it is held.

    Attributes:
        standing: How it stands.
        updated: When it last changed, in milliseconds.
    """

    standing: Standing
    updated: int

    @property
    def name(self) -> str:
        """Name of the allocation."""
        return str(self.standing.spec["id"])

    def to_wire(self) -> Json:
        """The allocation as class AllocationRecord has it."""
        wire = {
            **self.standing.spec,
            "phase": self.standing.phase.value,
            "created_at": instants.to_text(self.standing.created),
            "updated_at": instants.to_text(self.updated),
        }
        if self.standing.held is not None:
            wire["held"] = self.standing.held
        if self.standing.reason is not None:
            wire["reason"] = self.standing.reason
        return wire


def find(connection: Connection, owner: str, name: str) -> Record | None:
    """An allocation as it stands with all its steps, or None."""
    row = connection.execute(select(allocation).where(ALLOCATIONS.current(owner, name))).mappings().first()
    if row is None:
        return None
    columns = [step.c[column] for column in _STEP]
    order = (step.c.attempt, step.c.domain, step.c.action, step.c.phase)
    rows = connection.execute(
        select(*columns).where(step.c.tenant == owner, step.c.allocation == name).order_by(*order)
    ).mappings()
    record = record_of(row)
    steps = tuple(map(_step, rows))
    return replace(record, standing=replace(record.standing, steps=steps))


def allocation_of(connection: Connection, owner: str, action: str) -> str | None:
    """Allocation that an action belongs to, or None."""
    found = connection.execute(
        select(step.c.allocation).where(step.c.tenant == owner, step.c.action == action).limit(1)
    ).scalar()
    return None if found is None else str(found)


def of_job(connection: Connection, owner: str, job: str) -> list[Record]:
    """Allocations of a job that are not over, or have asked something that was not answered; the oldest first."""
    unanswered = select(step.c.action).where(
        step.c.tenant == allocation.c.tenant, step.c.allocation == allocation.c.id, step.c.open_since.is_not(None)
    )
    finished = allocation.c.phase.in_([phase.value for phase in FINISHED])
    names = connection.execute(
        select(allocation.c.id)
        .where(allocation.c.tenant == owner, allocation.c.job == job, ALLOCATIONS.valid())
        .where(~finished | unanswered.exists())
        .order_by(allocation.c.created, allocation.c.id)
    ).scalars()
    return [record for name in names.all() if (record := find(connection, owner, name)) is not None]


def due(connection: Connection, now: int, limit: int) -> list[tuple[str, str]]:
    """Tenant and name of allocations whose time is up."""
    query = select(allocation.c.tenant, allocation.c.id).where(
        ALLOCATIONS.valid(), allocation.c.deadline.is_not(None), allocation.c.deadline <= now
    )
    return [(row.tenant, row.id) for row in connection.execute(query.order_by(allocation.c.deadline).limit(limit))]


def leased(connection: Connection) -> list[Leased]:
    """Allocations with a lease that domains may hold, with the domains of all of their placements."""
    columns = allocation.c
    query = select(columns.tenant, columns.id, columns.lease, columns.body).where(
        ALLOCATIONS.valid(), columns.lease.is_not(None), columns.phase.in_([phase.value for phase in MAYBE_HELD])
    )
    return [Leased(row.tenant, row.id, row.lease, domains(orjson.loads(row.body))) for row in connection.execute(query)]


def waiting(connection: Connection) -> list[tuple[str, str]]:
    """Tenant and name of all allocations that wait for answers until some instant."""
    query = select(allocation.c.tenant, allocation.c.id).where(ALLOCATIONS.valid(), allocation.c.deadline.is_not(None))
    return [(row.tenant, row.id) for row in connection.execute(query)]


def save(connection: Connection, owner: str, before: Record | None, after: Standing, now: int, sequence: int) -> Record:
    """Keep an allocation as it stands now; it must differ from what it was. ``sequence`` is that of the commit."""
    record = Record(after, now)
    if before is not None and before.to_wire() == replace(record, updated=before.updated).to_wire():
        record = replace(record, updated=before.updated)  # nobody sees that it has changed
    number, name = ALLOCATIONS.next_number(connection, owner), after.spec["id"]
    ALLOCATIONS.retire(connection, owner, name, number)
    body = orjson.dumps(after.spec).decode()
    quotas.count(connection, owner, int(before is None), len(body))
    values: Json = {
        "job": after.spec["job"],
        "body": body,
        "phase": after.phase.value,
        "attempt": after.attempt,
        "withdrawn": after.withdrawn,
        "reason": after.reason,
        "held": None if after.held is None else orjson.dumps(after.held).decode(),
        "deadline": after.deadline,
        "lease": after.spec.get("lease"),
        "created": after.created,
        "updated": record.updated,
    }
    connection.execute(insert(allocation).values(tenant=owner, id=name, valid_from=number, **values))
    held = {} if before is None else {each.key: each for each in before.standing.steps}
    for each in after.steps:
        if each != held.get(each.key):
            _save_step(connection, owner, name, each, sequence, new=each.key not in held)
    return record


def postpone(connection: Connection, owner: str, name: str, deadline: int) -> None:
    """Give an allocation's domains time until ``deadline``, in milliseconds; nobody sees that."""
    connection.execute(update(allocation).where(ALLOCATIONS.current(owner, name)).values(deadline=deadline))


def _save_step(connection: Connection, owner: str, name: str, each: Step, sequence: int, *, new: bool) -> None:
    action, phase = each.key
    values: Json = {
        "open_since": sequence if each.open else None,
        "outcome": None if each.outcome is None else each.outcome.value,
        "nodes": None if each.nodes is None else orjson.dumps(each.nodes).decode(),
    }
    key = {"tenant": owner, "action": action, "phase": phase.value}
    if new:
        made = {"allocation": name, "attempt": each.attempt, "domain": each.domain}
        body = orjson.dumps(dict(each.body)).decode()
        connection.execute(insert(step).values(**key, **made, body=body, **values))
    else:
        conditions = [step.c[column] == value for column, value in key.items()]
        connection.execute(update(step).where(*conditions).values(**values))


def record_of(row: Mapping[Any, Any]) -> Record:
    """The version of an allocation in a row, without its steps."""
    standing = Standing(
        spec=orjson.loads(row["body"]),
        created=row["created"],
        phase=AllocationPhase(row["phase"]),
        attempt=row["attempt"],
        deadline=row["deadline"],
        withdrawn=row["withdrawn"],
        reason=row["reason"],
        held=None if row["held"] is None else orjson.loads(row["held"]),
    )
    return Record(standing, row["updated"])


def _step(row: Mapping[Any, Any]) -> Step:
    return Step(
        attempt=row["attempt"],
        body=orjson.loads(row["body"]),
        open=row["open_since"] is not None,
        outcome=None if row["outcome"] is None else ActionOutcome(row["outcome"]),
        nodes=None if row["nodes"] is None else tuple(orjson.loads(row["nodes"])),
    )
