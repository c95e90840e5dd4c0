"""Registered resources: their kinds, versions, the catalogue of subjects, quotas, retention, and commands that write.

1. The kinds of registered resources, and all that differs between them.
2. Tables that keep every version of what they hold, so that a listing can be shown as it stood at a revision. Such a
   table has the columns ``tenant``, ``id``, ``valid_from`` and ``valid_to``; each tenant counts its changes.
3. Which subjects samples may be about, kept in memory because every sample asks. Only what is registered stands here.
   The writer changes it after a commit and before anyone is told of the commit; requests read it. Both replace or
   look up single entries of dictionaries, which needs no lock.
4. How much a tenant may have registered, allocated and submitted, so that no tenant fills the database that all
   share. An allocation and a job count until they are forgotten, and each of their versions: what they come to by
   themselves is never refused, but leaves less room for what is new.
5. Writing registered resources: every change makes a revision, nothing else does.
6. Statements that each change of an allocation or a job makes are built once: to build one and to find what it was
   compiled to takes SQLAlchemy several times as long as SQLite takes to carry it out.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import orjson
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Executable,
    Select,
    Table,
    Update,
    bindparam,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    type_coerce,
    union_all,
    update,
)

from kuayu.perception.identifiers import misplaced_members, tier_of
from kuayu.service import instants
from kuayu.service.problems import Place, ProblemException, not_found, unknown_reference
from kuayu.service.storage.tables import allocation, job, meta, reference, resource, subject, tenant, watched
from kuayu.service.storage.writer import Outcome, Transaction

if TYPE_CHECKING:
    from kuayu_schemas import documents

Body = Mapping[str, Any]
"""A registered resource: a document of the class that its kind names, which only who knows the kind can tell."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A member of a resource that names another resource.

    Attributes:
        pointer: Where it stands in the body.
        kind: Kind of what is named.
        target: Its identifier.
        binding: Whether the target must exist, and may not go while it is named.
    """

    pointer: str
    kind: str
    target: str
    binding: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource.

    Attributes:
        name: Its name in the database and in messages.
        class_name: Class of the model; with Record and Page appended, of its answers.
        path: Path of the listing.
        key: Member of the body that must equal the identifier in the path.
        references: What a resource names.
        faults: What is wrong with a body beyond what the schema can state.
        parent: What listings can be narrowed down by.
    """

    name: str
    class_name: str
    path: str
    references: Callable[[Any], Iterator[Reference]]
    faults: Callable[[Any], Iterator[Place]]
    key: str = "id"
    parent: Callable[[Any], str | None] = lambda _: None


def _no_references(_: Body) -> Iterator[Reference]:
    yield from ()


def _no_faults(_: Body) -> Iterator[Place]:
    yield from ()


def _node_references(node: "documents.Node") -> Iterator[Reference]:
    yield Reference("/domain", "domain", node["domain"])
    if urn := node.get("compute_identifier"):
        yield Reference("/compute_identifier", "compute_identifier", urn, binding=False)


def _node_faults(node: "documents.Node") -> Iterator[Place]:
    seen: set[str] = set()
    for position, device in enumerate(node.get("devices", ())):
        if device["id"] in seen:
            yield Place(f"the node has two devices {device['id']!r}", f"/devices/{position}/id")
        seen.add(device["id"])
    urn = node.get("compute_identifier")
    if urn and tier_of(urn) != "node":
        yield Place("a node bears an identifier of the tier node", "/compute_identifier")


def _link_references(link: "documents.Link") -> Iterator[Reference]:
    yield Reference("/source", "domain", link["source"])
    yield Reference("/destination", "domain", link["destination"])


def _target_references(target: "documents.ScrapeTarget") -> Iterator[Reference]:
    yield Reference("/node", "node", target["node"])


def _identifier_references(identifier: "documents.ComputeIdentifier") -> Iterator[Reference]:
    for position, member in enumerate(identifier["members"]):
        yield Reference(f"/members/{position}", "compute_identifier", member, binding=False)


def _identifier_faults(identifier: "documents.ComputeIdentifier") -> Iterator[Place]:
    urn, members = identifier["urn"], identifier["members"]
    if tier_of(urn) == "node":
        yield Place("identifiers of the tier node stand in the registration of their node", "/urn")
        return
    for position in misplaced_members(urn, members):
        yield Place(f"a {tier_of(urn)} has no member of this tier", f"/members/{position}")
    seen: set[str] = set()
    for position, member in enumerate(members):
        if member in seen:
            yield Place("stands here for the second time", f"/members/{position}")
        seen.add(member)


DOMAIN = Kind("domain", "Domain", "/v1/domains", _no_references, _no_faults)
NODE = Kind("node", "Node", "/v1/nodes", _node_references, _node_faults, parent=lambda node: str(node["domain"]))
LINK = Kind("link", "Link", "/v1/links", _link_references, _no_faults)
SCRAPE_TARGET = Kind("scrape_target", "ScrapeTarget", "/v1/scrape-targets", _target_references, _no_faults)
COMPUTE_IDENTIFIER = Kind(
    "compute_identifier",
    "ComputeIdentifier",
    "/v1/compute-identifiers",
    _identifier_references,
    _identifier_faults,
    key="urn",
)
KINDS = {kind.name: kind for kind in (DOMAIN, NODE, LINK, SCRAPE_TARGET, COMPUTE_IDENTIFIER)}


RecordT = TypeVar("RecordT")

Statement = tuple[Executable, Mapping[str, Any] | Sequence[Mapping[str, Any]]]
"""Something to be carried out in the database, with its parameters; with several of them, once with each."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Point in the life of a tenant's resources."""

    epoch: str
    number: int

    @property
    def etag(self) -> str:
        """The revision as an entity tag."""
        return f'"{self.epoch}:{self.number}"'

    def to_wire(self) -> "documents.Revision":
        """The revision as class Revision has it."""
        return {"epoch": self.epoch, "number": self.number}


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

    def current(self, owner: str | BindParameter[Any], name: str | BindParameter[Any]) -> ColumnElement[bool]:
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
        connection.execute(*self.retirement(owner, name, number))

    def retirement(self, owner: str, name: str, number: int) -> Statement:
        """What ends the validity of something with the change of this number."""
        return _retiring(self), {"owner": owner, "name": name, "number": number}

    def number(self, connection: Connection, owner: str) -> int:
        """Changes of a tenant so far, as they were committed."""
        return int(connection.execute(_counting(self), {"owner": owner}).scalar() or 0)

    def next_number(self, transaction: Transaction, owner: str, new: int = 0, characters: int = 0) -> int:
        """Number of the change of a tenant that is being made.

        Args:
            transaction: Of the writer.
            owner: The tenant.
            new: How many more it has by that, of what counts against its quota.
            characters: How many more characters that is.
        """
        more = {self.counter.name: 1, "resources": new, "characters": characters}
        return transaction.counters.add(owner, **more)[self.counter.name]

    def holds(self, connection: Connection, owner: str, number: int) -> bool:
        """Whether all versions are still held that stood after so many changes, or later."""
        return self._oldest(connection, owner) <= number <= self.number(connection, owner)

    def forget(self, transaction: Transaction, changes: int) -> None:
        """Forget versions that went more than so many changes ago, for each tenant by itself."""
        for owner in transaction.counters.owners():
            self._forget(transaction, owner, transaction.counters.of(owner)[self.counter.name] - changes)

    def _forget(self, transaction: Transaction, owner: str, number: int) -> None:
        connection = transaction.connection
        if number <= self._oldest(connection, owner):
            return
        if self.table is allocation or self.table is job:  # which count against a quota
            forget_versions(transaction, owner, number, self.table)
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


OWNER: BindParameter[Any] = bindparam("owner")
NAME: BindParameter[Any] = bindparam("name")
"""Parameters of statements that are built once."""


@cache
def _retiring(versions: Versions) -> Update:
    return update(versions.table).where(versions.current(OWNER, NAME)).values(valid_to=bindparam("number"))


@cache
def _counting(versions: Versions) -> Select[Any]:
    return select(versions.counter).where(tenant.c.name == OWNER)


SubjectKey = tuple[str, str, str | None]
"""Kind of subject, identifier, device; the device is None unless the kind is device."""

DEVICE = "device"


class Catalogue:
    """Numbers of the registered subjects, tenant by tenant."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[SubjectKey, int]] = {}

    def of(self, tenant: str) -> Mapping[SubjectKey, int]:
        """Numbers of a tenant's subjects."""
        return self._numbers.setdefault(tenant, {})

    def devices(self, tenant: str, node: str) -> list[str]:
        """Devices of a node, in order."""
        numbers = self.of(tenant)
        return sorted(device for kind, name, device in list(numbers) if kind == DEVICE and name == node and device)

    def replace(self, tenant: str, gone: Iterable[SubjectKey], come: Mapping[SubjectKey, int]) -> None:
        """Take subjects out and put others in."""
        numbers = self._numbers.setdefault(tenant, {})
        for key in gone:
            if key not in come:
                numbers.pop(key, None)
        numbers.update(come)


def subjects_of(kind: Kind, name: str, body: Body) -> list[SubjectKey]:
    """What samples may be about once a resource is registered: itself, and the devices of a node."""
    if kind not in (DOMAIN, NODE, LINK):
        return []
    devices = [(DEVICE, name, str(device["id"])) for device in body.get("devices", ())]
    return [(kind.name, name, None), *devices]


def allocate(connection: Connection, tenant: str, keys: Iterable[SubjectKey]) -> dict[SubjectKey, int]:
    """Numbers of subjects; those that were never seen get new ones."""
    wanted = list(keys)
    kinds, names = {kind for kind, _, _ in wanted}, {name for _, name, _ in wanted}
    existing = select(subject).where(subject.c.tenant == tenant, subject.c.kind.in_(kinds), subject.c.id.in_(names))
    numbers = {(row.kind, row.id, row.device or None): row.no for row in connection.execute(existing)}
    new = [key for key in dict.fromkeys(wanted) if key not in numbers]
    if new:
        rows = [{"tenant": tenant, "kind": kind, "id": name, "device": device or ""} for kind, name, device in new]
        outcome = insert(subject).returning(subject.c.no, subject.c.kind, subject.c.id, subject.c.device)
        for row in connection.execute(outcome, rows):
            numbers[row.kind, row.id, row.device or None] = row.no
    return {key: numbers[key] for key in wanted}


_NOTED = {allocation: "oldest allocations", job: "oldest jobs", resource: "oldest"}
"""By what is noted from which change on versions are held, in each table whose versions count."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What a tenant may have.

    Attributes:
        resources: Registered resources, allocations and jobs.
        largest: Characters of one of them, as JSON without spaces.
        together: Characters of all of them, with the versions that are still held for listings.
    """

    resources: int
    largest: int
    together: int

    def check_one(self, kind: str, characters: int) -> None:
        """Hold one object against the quota.

        Raises:
            ProblemException: quota-exceeded.
        """
        if characters > self.largest:
            raise _exceeded(f"a {kind} may have {self.largest} characters of JSON, and this has {characters}")

    def check_all(self, transaction: Transaction, owner: str, new: int, characters: int) -> None:
        """See that there is room for more; where there is none, old versions go first.

        Raises:
            ProblemException: quota-exceeded.
        """
        has = transaction.counters.of(owner)
        if has["resources"] + new > self.resources:
            words = f"a tenant may have {self.resources} registered resources, allocations and jobs"
            raise _exceeded(f"{words}, and has {has['resources']}")
        if has["characters"] + characters <= self.together:
            return
        connection = transaction.connection
        existing = sum(_characters(connection, entry, owner, entry.c.valid_to.is_(None)) for entry in _NOTED)
        if existing + characters > self.together:
            words = f"resources, allocations and jobs of a tenant may have {self.together} characters of JSON together"
            raise _exceeded(f"{words}, these have {existing}, and {characters} would come to them")
        forget_versions(transaction, owner, has["number"])
        forget_versions(transaction, owner, has["allocations"], allocation)
        forget_versions(transaction, owner, has["jobs"], job)


def with_parts(whole: Select[Any], parts: Select[Any]) -> CompoundSelect[Any]:
    """Rows of both in one statement, since each waits for its answer; each has nulls in the columns of the other.

    Joined, what is large in the whole would come once more with each of its parts.
    """
    own, others = whole.selected_columns, parts.selected_columns
    return union_all(
        whole.add_columns(*(type_coerce(null(), column.type).label(column.key) for column in others)),
        parts.with_only_columns(*(type_coerce(null(), column.type).label(column.key) for column in own), *others),
    )


def execute_all(connection: Connection, statements: Sequence[Statement]) -> None:
    """Carry out statements whose results nobody needs, in their order.

    PostgreSQL gets all of them before it has answered the first; else each would wait for an answer.
    """
    together: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if connection.dialect.name == "postgresql" and len(statements) > 1:
        from kuayu.service.storage.postgresql import pipelined

        together = pipelined(connection)
    with together:
        for statement, parameters in statements:
            connection.execute(statement, parameters)


def forget_versions(transaction: Transaction, owner: str, number: int, table: Table = resource) -> None:
    """Forget versions in a table whose versions count that were over by a change; listings show later ones only."""
    connection, over = transaction.connection, table.c.valid_to <= number
    transaction.counters.add(owner, characters=-_characters(connection, table, owner, over))
    connection.execute(delete(table).where(table.c.tenant == owner, over))
    noted = f"{_NOTED[table]}:{owner}"
    connection.execute(delete(meta).where(meta.c.name == noted))
    connection.execute(insert(meta).values(name=noted, value=str(number)))


def _characters(connection: Connection, table: Table, owner: str, condition: ColumnElement[bool]) -> int:
    query = select(func.coalesce(func.sum(func.length(table.c.body)), 0))
    return int(connection.execute(query.where(table.c.tenant == owner, condition)).scalar_one())


def _exceeded(detail: str) -> ProblemException:
    return ProblemException("quota-exceeded", detail)


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept in versions, asks domains for actions, and is forgotten some time after it is over.

    Attributes:
        versions: Where it is.
        over: Column that says since when it is over, in milliseconds.
        condition: What has to hold as well.
        actions: Table of what domains were asked because of it; while one of them is open, nothing is forgotten.
        owner: Column of that table which names it.
        parts: Tables with rows of it, by the column that names it there.
        per_transaction: How many are forgotten in one transaction.
        counted: Whether it counts towards the tenant's quota.
        forget_part: Forgets what else there is of one: called with the connection, the tenant and the name.
    """

    versions: Versions
    over: Column[Any]
    condition: ColumnElement[bool]
    actions: Table
    owner: Column[Any]
    parts: tuple[Column[Any], ...]
    per_transaction: int
    counted: bool = True
    forget_part: Callable[[Connection, str, str], None] | None = None

    def forget(self, before: int, revisions: int) -> "Forget":
        """The command that forgets what has been over since before an instant, in milliseconds.

        Args:
            before: The instant.
            revisions: Changes that are kept for each tenant.
        """
        return Forget(self, before, revisions)


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget what has been over for long, with all that belongs to it, and versions that no listing needs.

    Attributes:
        retention: What is forgotten.
        before: Since when it has been over, in milliseconds.
        revisions: Changes that are kept for each tenant.
        weight: How much of the writer's queue it takes.
    """

    retention: Retention
    before: int
    revisions: int
    weight: int = 1

    def apply(self, transaction: Transaction) -> Outcome[bool]:
        """Forget some; tells whether some are left that should go."""
        connection, kind = transaction.connection, self.retention
        table, versions, actions = kind.versions.table, kind.versions, kind.actions
        unanswered = select(actions.c.action).where(
            actions.c.tenant == table.c.tenant, kind.owner == table.c.id, actions.c.open_since.is_not(None)
        )
        gone = connection.execute(
            select(table.c.tenant, table.c.id)
            .where(versions.valid(), kind.over.is_not(None), kind.over < self.before, kind.condition)
            .where(~unanswered.exists())
            .limit(kind.per_transaction)
        ).all()
        for row in gone:
            number = versions.next_number(transaction, row.tenant, -1 if kind.counted else 0)
            versions.retire(connection, row.tenant, row.id, number)
            for column in kind.parts:
                part = column.table
                assert isinstance(part, Table)
                connection.execute(delete(part).where(part.c.tenant == row.tenant, column == row.id))
            if kind.forget_part is not None:
                kind.forget_part(connection, row.tenant, row.id)
        versions.forget(transaction, self.revisions)
        return Outcome(len(gone) == kind.per_transaction)


@dataclass(frozen=True, slots=True)
class ResourceRecord:
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
class StoredResource:
    """Result of a put."""

    record: ResourceRecord
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

    def apply(self, transaction: Transaction) -> Outcome[StoredResource]:
        """Carry the put out."""
        connection = transaction.connection
        existing = find(connection, self.scope, self.kind, self.name)
        check_revision(self.expected, existing)
        if existing is not None and _canonical(existing.body) == _canonical(self.body):
            return Outcome(StoredResource(existing, created=False))
        self._check_references(connection)
        text = orjson.dumps(self.body).decode()
        if self.scope.quota is not None:
            self.scope.quota.check_all(transaction, self.scope.tenant, int(existing is None), len(text))
        number = _next_number(transaction, self.scope.tenant, int(existing is None), len(text))
        record = ResourceRecord(self.body, Revision(self.scope.epoch, number), instants.now())
        if existing is not None:
            _retire(connection, self.scope, self.kind, self.name, number)
        self._insert(connection, record, text)
        before = subjects_of(self.kind, self.name, existing.body) if existing else []
        numbers = allocate(connection, self.scope.tenant, subjects_of(self.kind, self.name, self.body))

        def committed() -> None:
            self.scope.catalogue.replace(self.scope.tenant, before, numbers)
            for follower in self.scope.followers:
                follower.put(self.scope.tenant, self.kind.name, self.body, numbers)

        return Outcome(StoredResource(record, created=existing is None), committed)

    def _check_references(self, connection: Connection) -> None:
        for result in self.kind.references(self.body):
            if result.binding and not _exists(connection, self.scope.tenant, result.kind, result.target):
                raise unknown_reference(result.pointer, f"no {result.kind} {result.target!r} is registered")

    def _insert(self, connection: Connection, record: ResourceRecord, text: str) -> None:
        key = {"tenant": self.scope.tenant, "kind": self.kind.name, "id": self.name}
        row = {"valid_from": record.revision.number, "parent": self.kind.parent(self.body), "body": text}
        connection.execute(_INSERT, key | row | {"updated": record.updated})
        targets = {(result.kind, result.target) for result in self.kind.references(self.body)}
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
        existing = find(connection, self.scope, self.kind, self.name)
        check_revision(self.expected, existing)
        if existing is None:
            raise not_found(f"no {self.kind.name} {self.name!r} is registered")
        self._check_unused(connection)
        _retire(connection, self.scope, self.kind, self.name, _next_number(transaction, self.scope.tenant, -1, 0))
        if self.kind is NODE:
            connection.execute(
                delete(watched).where(watched.c.tenant == self.scope.tenant, watched.c.node == self.name)
            )
        gone = subjects_of(self.kind, self.name, existing.body)

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


def find(connection: Connection, scope: Scope, kind: Kind, name: str) -> ResourceRecord | None:
    """The valid version of a resource, or None."""
    row = connection.execute(_FIND, _named(scope.tenant, kind.name, name)).first()
    if row is None:
        return None
    return ResourceRecord(orjson.loads(row.body), Revision(scope.epoch, row.valid_from), row.updated)


def check_revision(expected: Revision | None, record: ResourceRecord | None) -> None:
    """Hold what a request expects against what is there.

    Raises:
        ProblemException: stale-revision.
    """
    if expected is None or (record is not None and record.revision == expected):
        return
    result = record.revision.etag if record else "nothing"
    raise ProblemException("stale-revision", f"expected {expected.etag}, found {result}")


# Statements are built once: a put consists of ten of them.
_NAMED = (resource.c.tenant == OWNER, resource.c.kind == bindparam("of_kind"), resource.c.id == NAME)
_VALID = (*_NAMED, resource.c.valid_to.is_(None))
_FIND = select(resource.c.body, resource.c.valid_from, resource.c.updated).where(*_VALID)
_EXISTS = select(resource.c.id).where(*_VALID)
_INSERT = insert(resource)
_RETIRE = update(resource).where(*_VALID).values(valid_to=bindparam("over"))
_DROP_REFERENCES = delete(reference).where(
    reference.c.tenant == OWNER, reference.c.kind == bindparam("of_kind"), reference.c.id == NAME
)


def _named(owner: str, kind: str, name: str) -> dict[str, str]:
    return {"owner": owner, "of_kind": kind, "name": name}


def _exists(connection: Connection, owner: str, kind: str, name: str) -> bool:
    return connection.execute(_EXISTS, _named(owner, kind, name)).first() is not None


def _next_number(transaction: Transaction, owner: str, new: int, characters: int) -> int:
    """Number of the change that is being made, by which a tenant has so many more resources and characters."""
    return transaction.counters.add(owner, number=1, resources=new, characters=characters)["number"]


def _retire(connection: Connection, scope: Scope, kind: Kind, name: str, number: int) -> None:
    """End the validity of a resource and of what it names."""
    named = _named(scope.tenant, kind.name, name)
    connection.execute(_RETIRE, named | {"over": number})
    connection.execute(_DROP_REFERENCES, named)


def _canonical(body: Body) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
