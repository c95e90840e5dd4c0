"""Writing registered resources: every change makes a revision, nothing else does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from sqlalchemy import Connection, and_, delete, insert, select, update

from kuayu.service import instants
from kuayu.service.kinds import NODE, Body, Kind
from kuayu.service.problems import ProblemException, not_found, unknown_reference
from kuayu.service.storage import quotas
from kuayu.service.storage.catalogue import Catalogue, SubjectKey, allocate, subjects_of
from kuayu.service.storage.quotas import Quota
from kuayu.service.storage.tables import reference, resource, tenant, watched
from kuayu.service.storage.writer import Outcome, Transaction


@dataclass(frozen=True, slots=True)
class Revision:
    """Point in the life of a tenant's resources."""

    epoch: str
    number: int

    @property
    def etag(self) -> str:
        """The revision as an entity tag."""
        return f'"{self.epoch}:{self.number}"'

    def to_wire(self) -> dict[str, str | int]:
        """The revision as class Revision has it."""
        return {"epoch": self.epoch, "number": self.number}


@dataclass(frozen=True, slots=True)
class Record:
    """A resource as the service holds it."""

    body: Mapping[str, Any]
    revision: Revision
    updated: int

    def to_wire(self) -> dict[str, Any]:
        """The resource as its class Record has it."""
        return {
            **self.body,
            "revision": self.revision.to_wire(),
            "updated_at": instants.to_text(self.updated),
        }


class Follower(Protocol):
    """Who is told of every change of a registration once it is durable; must not raise."""

    def put(self, tenant: str, kind: str, body: Body, numbers: Mapping[SubjectKey, int]) -> None:
        """A resource was registered or replaced; ``numbers`` are those of its subjects."""

    def drop(self, tenant: str, kind: str, name: str) -> None:
        """A resource was taken away."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What all commands on resources share.

    Attributes:
        tenant: Whose they are.
        epoch: In which epoch.
        catalogue: To be kept in step.
        followers: To be told, in this order; nobody for who only reads.
        quota: What the tenant may have; as much as there is room for where absent.
    """

    tenant: str
    epoch: str
    catalogue: Catalogue
    followers: tuple[Follower, ...] = ()
    quota: Quota | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """Result of a put."""

    record: Record
    created: bool


@dataclass(frozen=True, slots=True)
class PutResource:
    """Register a resource or replace it; a put of what is there already changes nothing.

    Raises when applied: stale-revision, unknown-reference, quota-exceeded.
    """

    scope: Scope
    kind: Kind
    name: str
    body: Body
    expected: Revision | None
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[Stored]:
        """Carry the put out."""
        connection = transaction.connection
        held = find(connection, self.scope, self.kind, self.name)
        check_revision(self.expected, held)
        if held is not None and _canonical(held.body) == _canonical(self.body):
            return Outcome(Stored(held, created=False))
        self._check_references(connection)
        text = orjson.dumps(self.body).decode()
        if self.scope.quota is not None:
            self.scope.quota.check_all(connection, self.scope.tenant, int(held is None), len(text))
        number = _next_number(connection, self.scope.tenant)
        record = Record(self.body, Revision(self.scope.epoch, number), instants.now())
        _retire(connection, self.scope, self.kind, self.name, number)
        self._insert(connection, record, text)
        quotas.count(connection, self.scope.tenant, int(held is None), len(text))
        before = subjects_of(self.kind, self.name, held.body) if held else []
        numbers = allocate(connection, self.scope.tenant, subjects_of(self.kind, self.name, self.body))

        def committed() -> None:
            self.scope.catalogue.replace(self.scope.tenant, before, numbers)
            for follower in self.scope.followers:
                follower.put(self.scope.tenant, self.kind.name, self.body, numbers)

        return Outcome(Stored(record, created=held is None), committed)

    def _check_references(self, connection: Connection) -> None:
        for found in self.kind.references(self.body):
            if found.binding and not _exists(connection, self.scope.tenant, found.kind, found.target):
                raise unknown_reference(found.pointer, f"no {found.kind} {found.target!r} is registered")

    def _insert(self, connection: Connection, record: Record, text: str) -> None:
        key = {"tenant": self.scope.tenant, "kind": self.kind.name, "id": self.name}
        connection.execute(
            insert(resource).values(
                **key,
                valid_from=record.revision.number,
                parent=self.kind.parent(self.body),
                body=text,
                updated=record.updated,
            )
        )
        targets = {(found.kind, found.target) for found in self.kind.references(self.body)}
        if targets:
            rows = [key | {"target_kind": kind, "target": target} for kind, target in sorted(targets)]
            connection.execute(insert(reference), rows)


@dataclass(frozen=True, slots=True)
class DeleteResource:
    """Take a resource away.

    Raises when applied: stale-revision, not-found, in-use.
    """

    scope: Scope
    kind: Kind
    name: str
    expected: Revision | None
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[None]:
        """Carry the removal out."""
        connection = transaction.connection
        held = find(connection, self.scope, self.kind, self.name)
        check_revision(self.expected, held)
        if held is None:
            raise not_found(f"no {self.kind.name} {self.name!r} is registered")
        self._check_unused(connection)
        _retire(connection, self.scope, self.kind, self.name, _next_number(connection, self.scope.tenant))
        quotas.count(connection, self.scope.tenant, -1, 0)
        if self.kind is NODE:
            connection.execute(
                delete(watched).where(watched.c.tenant == self.scope.tenant, watched.c.node == self.name)
            )
        gone = subjects_of(self.kind, self.name, held.body)

        def committed() -> None:
            self.scope.catalogue.replace(self.scope.tenant, gone, {})
            for follower in self.scope.followers:
                follower.drop(self.scope.tenant, self.kind.name, self.name)

        return Outcome(None, committed)

    def _check_unused(self, connection: Connection) -> None:
        user = connection.execute(
            select(reference.c.kind, reference.c.id)
            .where(reference.c.tenant == self.scope.tenant)
            .where(reference.c.target_kind == self.kind.name, reference.c.target == self.name)
            .where(reference.c.target_kind != "compute_identifier")
            .limit(1)
        ).first()
        if user is not None:
            raise ProblemException("in-use", f"the {user.kind} {user.id!r} refers to it")


def find(connection: Connection, scope: Scope, kind: Kind, name: str) -> Record | None:
    """The valid version of a resource, or None."""
    row = connection.execute(
        select(resource.c.body, resource.c.valid_from, resource.c.updated).where(
            _named(scope.tenant, kind.name, name), resource.c.valid_to.is_(None)
        )
    ).first()
    if row is None:
        return None
    return Record(orjson.loads(row.body), Revision(scope.epoch, row.valid_from), row.updated)


def check_revision(expected: Revision | None, held: Record | None) -> None:
    """Hold what a request expects against what is there.

    Raises:
        ProblemException: stale-revision.
    """
    if expected is None or (held is not None and held.revision == expected):
        return
    found = held.revision.etag if held else "nothing"
    raise ProblemException("stale-revision", f"expected {expected.etag}, found {found}")


def _named(owner: str, kind: str, name: str) -> Any:
    return and_(resource.c.tenant == owner, resource.c.kind == kind, resource.c.id == name)


def _exists(connection: Connection, owner: str, kind: str, name: str) -> bool:
    query = select(resource.c.id).where(_named(owner, kind, name), resource.c.valid_to.is_(None))
    return connection.execute(query).first() is not None


def _next_number(connection: Connection, owner: str) -> int:
    changed = connection.execute(
        update(tenant).where(tenant.c.name == owner).values(number=tenant.c.number + 1).returning(tenant.c.number)
    ).scalar()
    if changed is None:
        connection.execute(insert(tenant).values(name=owner, number=1))
        return 1
    return int(changed)


def _retire(connection: Connection, scope: Scope, kind: Kind, name: str, number: int) -> None:
    """End the validity of a resource and of what it names."""
    connection.execute(
        update(resource)
        .where(_named(scope.tenant, kind.name, name), resource.c.valid_to.is_(None))
        .values(valid_to=number)
    )
    connection.execute(
        delete(reference).where(
            reference.c.tenant == scope.tenant, reference.c.kind == kind.name, reference.c.id == name
        )
    )


def _canonical(body: Body) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
