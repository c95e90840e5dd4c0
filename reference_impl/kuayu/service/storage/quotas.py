"""How much a tenant may have registered and allocated, so that no tenant fills the database that all of them share.

An allocation counts until it is forgotten, and each of its versions: what it comes to by itself is never refused, but
leaves less room for what is new.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, select, update

from kuayu.service.problems import ProblemException
from kuayu.service.storage.tables import allocation, meta, resource, tenant


@dataclass(frozen=True, slots=True)
class Quota:
    """What a tenant may have.

    Attributes:
        resources: Registered resources and allocations.
        each: Characters of one of them, as JSON without spaces.
        together: Characters of all of them, with the versions that are still held for listings.
    """

    resources: int
    each: int
    together: int

    def check_one(self, kind: str, characters: int) -> None:
        """Hold one object against the quota.

        Raises:
            ProblemException: quota-exceeded.
        """
        if characters > self.each:
            raise _exceeded(f"a {kind} may have {self.each} characters of JSON, and this has {characters}")

    def check_all(self, connection: Connection, owner: str, new: int, characters: int) -> None:
        """See that there is room for more; where there is none, old versions go first.

        Raises:
            ProblemException: quota-exceeded.
        """
        row = connection.execute(select(tenant).where(tenant.c.name == owner)).first()
        if row is None:
            return
        if row.resources + new > self.resources:
            words = f"a tenant may have {self.resources} registered resources and allocations"
            raise _exceeded(f"{words}, and has {row.resources}")
        if row.characters + characters <= self.together:
            return
        held = sum(_characters(connection, each, owner, each.c.valid_to.is_(None)) for each in (resource, allocation))
        if held + characters > self.together:
            words = f"the resources and allocations of a tenant may have {self.together} characters of JSON together"
            raise _exceeded(f"{words}, these have {held}, and {characters} would come to them")
        forget_versions(connection, owner, row.number)
        forget_versions(connection, owner, row.allocations, allocation)


def count(connection: Connection, owner: str, resources: int, characters: int) -> None:
    """Note that a tenant has so many more, resources and allocations together."""
    connection.execute(
        update(tenant)
        .where(tenant.c.name == owner)
        .values(resources=tenant.c.resources + resources, characters=tenant.c.characters + characters)
    )


def forget_versions(connection: Connection, owner: str, number: int, table: Table = resource) -> None:
    """Forget versions of resources, or of allocations, that were over by a change; listings show later ones only."""
    over = table.c.valid_to <= number
    count(connection, owner, 0, -_characters(connection, table, owner, over))
    connection.execute(delete(table).where(table.c.tenant == owner, over))
    noted = f"oldest:{owner}" if table is resource else f"oldest allocations:{owner}"
    connection.execute(delete(meta).where(meta.c.name == noted))
    connection.execute(insert(meta).values(name=noted, value=str(number)))


def _characters(connection: Connection, table: Table, owner: str, condition: ColumnElement[bool]) -> int:
    query = select(func.coalesce(func.sum(func.length(table.c.body)), 0))
    return int(connection.execute(query.where(table.c.tenant == owner, condition)).scalar_one())


def _exceeded(detail: str) -> ProblemException:
    return ProblemException("quota-exceeded", detail)
