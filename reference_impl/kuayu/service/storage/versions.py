"""Tables that keep every version of what they hold, so that a listing can be shown as it stood at a revision.

Such a table has the columns ``tenant``, ``id``, ``valid_from`` and ``valid_to``; each tenant counts its changes.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Table, delete, insert, or_, select, update

from kuayu.service.storage import quotas
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.tables import allocation, meta, tenant

RecordT = TypeVar("RecordT")


@dataclass(frozen=True, slots=True)
class Listing(Generic[RecordT]):
    """Part of a listing, and the revision that it shows."""

    records: list[RecordT]
    more: bool
    revision: Revision


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions in a table.

    Attributes:
        table: Where they are.
        counter: Column of the table of tenants that counts changes.
    """

    table: Table
    counter: Column[Any]

    def current(self, owner: str, name: str) -> ColumnElement[bool]:
        """The version of something that stands now."""
        return (self.table.c.tenant == owner) & (self.table.c.id == name) & self.valid()

    def valid(self) -> ColumnElement[bool]:
        """Versions that stand now."""
        return self.table.c.valid_to.is_(None)

    def valid_at(self, number: int) -> ColumnElement[bool]:
        """Versions that stood after so many changes."""
        columns = self.table.c
        return (columns.valid_from <= number) & or_(columns.valid_to.is_(None), columns.valid_to > number)

    def retire(self, connection: Connection, owner: str, name: str, number: int) -> None:
        """End the validity of something with the change of this number."""
        connection.execute(update(self.table).where(self.current(owner, name)).values(valid_to=number))

    def number(self, connection: Connection, owner: str) -> int:
        """Changes of a tenant so far."""
        return int(connection.execute(select(self.counter).where(tenant.c.name == owner)).scalar() or 0)

    def next_number(self, connection: Connection, owner: str) -> int:
        """Number of the change of a tenant that is being made."""
        changed = connection.execute(
            update(tenant)
            .where(tenant.c.name == owner)
            .values({self.counter: self.counter + 1})
            .returning(self.counter)
        ).scalar()
        if changed is None:
            connection.execute(insert(tenant).values({tenant.c.name: owner, tenant.c.number: 0, self.counter: 1}))
            return 1
        return int(changed)

    def holds(self, connection: Connection, owner: str, number: int) -> bool:
        """Whether all versions are still held that stood after so many changes, or later."""
        return self._oldest(connection, owner) <= number <= self.number(connection, owner)

    def forget(self, connection: Connection, kept: int) -> None:
        """Forget versions that went more than so many changes ago, for each tenant by itself."""
        for row in connection.execute(select(tenant.c.name, self.counter.label("number"))).all():
            self._forget(connection, row.name, row.number - kept)

    def _forget(self, connection: Connection, owner: str, number: int) -> None:
        if number <= self._oldest(connection, owner):
            return
        if self.table is allocation:  # which count against a quota
            quotas.forget_versions(connection, owner, number, allocation)
            return
        columns, noted = self.table.c, self._noted(owner)
        connection.execute(delete(self.table).where(columns.tenant == owner, columns.valid_to <= number))
        connection.execute(delete(meta).where(meta.c.name == noted))
        connection.execute(insert(meta).values(name=noted, value=str(number)))

    def _oldest(self, connection: Connection, owner: str) -> int:
        """Oldest change from which all versions are still held."""
        return int(connection.execute(select(meta.c.value).where(meta.c.name == self._noted(owner))).scalar() or 0)

    def _noted(self, owner: str) -> str:
        return f"oldest {self.counter.name}:{owner}"
