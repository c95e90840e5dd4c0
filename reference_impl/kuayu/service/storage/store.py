"""What requests read. Each method shows one state of the database."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Select, or_, select

from kuayu.service.kinds import COMPUTE_IDENTIFIER, KINDS, NODE, Kind
from kuayu.service.storage import history, newest, series
from kuayu.service.storage.catalogue import Catalogue, subjects_of
from kuayu.service.storage.database import Database
from kuayu.service.storage.history import SampleQuery, SampleSlice
from kuayu.service.storage.newest import Observed
from kuayu.service.storage.packing import Steps
from kuayu.service.storage.resources import Record, Revision, Scope, find
from kuayu.service.storage.series import SeriesQuery
from kuayu.service.storage.tables import reference, resource, subject, tenant
from kuayu.service.storage.versions import Listing

PAGE_CHARACTERS = 8 * 1024 * 1024
"""Characters of JSON after which a page of a listing ends, though it has fewer items than were asked for."""

ROWS_AT_ONCE = 50
"""Rows of a listing that are in memory before it is known whether they still belong to the page."""


@dataclass(frozen=True, slots=True)
class Identifiers:
    """What is known of compute identifiers around one of them.

    Attributes:
        members: Registered services and families with their members.
        nodes: Nodes that bear each identifier of the node tier.
        revision: Revision that this shows.
    """

    members: Mapping[str, Sequence[str]]
    nodes: Mapping[str, Sequence[str]]
    revision: Revision


class Store:
    """Reads of the database, all of them blocking: call them in a worker thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def epoch(self) -> str:
        """Life of the state."""
        return self._database.epoch

    def load(self, catalogue: Catalogue) -> None:
        """Fill the catalogue with what is registered."""
        with self._reading() as connection:
            subjects = connection.execute(select(subject))
            numbers = {(row.tenant, row.kind, row.id, row.device or None): row.no for row in subjects}
            columns = (resource.c.tenant, resource.c.kind, resource.c.id, resource.c.body)
            rows = connection.execute(_valid(select(*columns)))
            for row in rows:
                keys = subjects_of(KINDS[row.kind], row.id, orjson.loads(row.body))
                catalogue.replace(row.tenant, (), {key: numbers[row.tenant, *key] for key in keys})

    def revision(self, owner: str) -> Revision:
        """Where a tenant's resources stand."""
        with self._reading() as connection:
            return self._revision(connection, owner)

    def record(self, owner: str, kind: Kind, name: str) -> Record | None:
        """A resource as it stands, or None."""
        with self._reading() as connection:
            return find(connection, self._scope(owner), kind, name)

    def records(self, kind: Kind) -> list[tuple[str, Record]]:
        """All resources of a kind with their tenants."""
        query = _valid(
            select(resource.c.tenant, resource.c.body, resource.c.valid_from, resource.c.updated).where(
                resource.c.kind == kind.name
            )
        )
        with self._reading() as connection:
            return [(row.tenant, self._record(row)) for row in connection.execute(query)]

    def listing(
        self, owner: str, kind: Kind, *, at: Revision | None, after: str, limit: int, parent: str | None
    ) -> Listing[Record] | None:
        """Part of a listing, in order of identifier.

        Args:
            owner: The tenant.
            kind: What is listed.
            at: Revision that the listing is pinned to; None for the present one.
            after: Identifier after which it goes on; empty at the beginning.
            limit: Most resources.
            parent: Only those of this parent.

        Returns:
            None where the revision is no longer held.
        """
        with self._reading() as connection:
            now = self._revision(connection, owner)
            at = at or now
            if at.epoch != now.epoch or at.number > now.number or at.number < history.oldest(connection, owner):
                return None
            query = (
                select(resource.c.body, resource.c.valid_from, resource.c.updated)
                .where(resource.c.tenant == owner, resource.c.kind == kind.name, resource.c.id > after)
                .where(resource.c.valid_from <= at.number)
                .where(or_(resource.c.valid_to.is_(None), resource.c.valid_to > at.number))
                .order_by(resource.c.id)
                .limit(limit + 1)
            )
            if parent is not None:
                query = query.where(resource.c.parent == parent)
            found: list[Record] = []
            characters = 0
            rows = connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE))
            for row in rows:
                characters += len(row.body)
                if len(found) == limit or (found and characters > PAGE_CHARACTERS):
                    rows.close()
                    return Listing(found, more=True, revision=at)
                found.append(self._record(row))
            return Listing(found, more=False, revision=at)

    def members_of(self, owner: str, domain: str) -> list[Record]:
        """Nodes of a domain, in order."""
        query = _valid(
            select(resource.c.body, resource.c.valid_from, resource.c.updated)
            .where(resource.c.tenant == owner, resource.c.kind == NODE.name, resource.c.parent == domain)
            .order_by(resource.c.id)
        )
        with self._reading() as connection:
            return [self._record(row) for row in connection.execute(query)]

    def identifiers(self, owner: str) -> Identifiers:
        """All compute identifiers of a tenant."""
        query = select(reference.c.kind, reference.c.id, reference.c.target).where(
            reference.c.tenant == owner, reference.c.target_kind == COMPUTE_IDENTIFIER.name
        )
        registered = _valid(
            select(resource.c.id).where(resource.c.tenant == owner, resource.c.kind == COMPUTE_IDENTIFIER.name)
        )
        with self._reading() as connection:
            members: dict[str, list[str]] = {row.id: [] for row in connection.execute(registered)}
            nodes: dict[str, list[str]] = {}
            for row in connection.execute(query):
                if row.kind == NODE.name:
                    nodes.setdefault(row.target, []).append(row.id)
                else:
                    members[row.id].append(row.target)
            return Identifiers(members, nodes, self._revision(connection, owner))

    def subjects(self, owner: str, kind: str, name: str, device: str | None) -> dict[int, str | None]:
        """Numbers of a subject, or of all devices that a node ever had, with the device of each."""
        query = select(subject.c.no, subject.c.device).where(
            subject.c.tenant == owner, subject.c.kind == kind, subject.c.id == name
        )
        if device is not None:
            query = query.where(subject.c.device == device)
        with self._reading() as connection:
            return {row.no: row.device or None for row in connection.execute(query)}

    def samples(self, query: SampleQuery) -> SampleSlice:
        """Part of a series of samples."""
        with self._reading() as connection:
            return history.samples(connection, query)

    def series(self, query: SeriesQuery) -> Steps | None:
        """A series of steps; None where parts of it are kept in coarser steps only."""
        with self._reading() as connection:
            return series.series(connection, query)

    def newest(self, numbers: Sequence[int], at: int) -> dict[int, dict[str, Observed]]:
        """Newest value of each measure at or before an instant, subject by subject."""
        with self._reading() as connection:
            return newest.values(connection, numbers, at)

    def sequence(self) -> int:
        """Number of the newest commit."""
        with self._reading() as connection:
            return history.sequence(connection)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._database.reading() as connection:
            yield connection

    def _scope(self, owner: str) -> Scope:
        return Scope(owner, self.epoch, Catalogue())

    def _revision(self, connection: Connection, owner: str) -> Revision:
        number = connection.execute(select(tenant.c.number).where(tenant.c.name == owner)).scalar()
        return Revision(self.epoch, number or 0)

    def _record(self, row: Any) -> Record:
        return Record(orjson.loads(row.body), Revision(self.epoch, row.valid_from), row.updated)


def _valid(query: Select[Any]) -> Select[Any]:
    return query.where(resource.c.valid_to.is_(None))
