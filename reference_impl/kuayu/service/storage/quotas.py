"""How much a tenant may have registered, so that no tenant fills the database that all of them share."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from kuayu.service.problems import ProblemException
from kuayu.service.storage.tables import meta, resource, tenant


@dataclass(frozen=True, slots=True)
class Quota:
    """What a tenant may have.

    Attributes:
        resources: Registered resources.
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
            raise _exceeded(f"a tenant may have {self.resources} registered resources, and has {row.resources}")
        if row.characters + characters <= self.together:
            return
        valid = select(func.coalesce(func.sum(func.length(resource.c.body)), 0)).where(
            resource.c.tenant == owner, resource.c.valid_to.is_(None)
        )
        held = connection.execute(valid).scalar_one()
        if held + characters > self.together:
            words = f"the resources of a tenant may have {self.together} characters of JSON together"
            raise _exceeded(f"{words}, these have {held}, and {characters} would come to them")
        forget_versions(connection, owner, row.number)


def count(connection: Connection, owner: str, resources: int, characters: int) -> None:
    """Note that a tenant has so many more."""
    connection.execute(
        update(tenant)
        .where(tenant.c.name == owner)
        .values(resources=tenant.c.resources + resources, characters=tenant.c.characters + characters)
    )


def forget_versions(connection: Connection, owner: str, revision: int) -> None:
    """Forget versions of resources that were over by a revision; listings can be pinned to later ones only."""
    over = (resource.c.tenant == owner, resource.c.valid_to <= revision)
    characters = connection.execute(select(func.coalesce(func.sum(func.length(resource.c.body)), 0)).where(*over))
    gone = int(characters.scalar_one())
    connection.execute(delete(resource).where(*over))
    count(connection, owner, 0, -gone)
    connection.execute(delete(meta).where(meta.c.name == f"oldest:{owner}"))
    connection.execute(insert(meta).values(name=f"oldest:{owner}", value=str(revision)))


def _exceeded(detail: str) -> ProblemException:
    return ProblemException("quota-exceeded", detail)
