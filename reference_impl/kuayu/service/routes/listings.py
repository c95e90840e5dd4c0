"""Listings, each pinned to the revision of its first page."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from fastapi import Request

from kuayu.service.kinds import Kind
from kuayu.service.paging import Cursors
from kuayu.service.parameters import PageQuery
from kuayu.service.problems import ProblemException
from kuayu.service.runtime import runtime_of
from kuayu.service.storage.resources import Record, Revision
from kuayu.service.storage.versions import Listing

RecordT = TypeVar("RecordT")

Read = Callable[..., Listing[RecordT] | None]
"""Reads part of a listing: at a revision (``at``), after an identifier (``after``), so many records (``limit``). None
where the revision is no longer held."""


async def read_listing(
    request: Request, tenant: str, kind: Kind, query: PageQuery, parent: str | None = None
) -> tuple[list[Record], dict[str, Any]]:
    """Read a page of a listing of resources.

    Returns:
        The records, and the other members of the kind's class Page.

    Raises:
        ProblemException: invalid-parameter, invalid-cursor or revision-expired.
    """
    read = partial(runtime_of(request).store.listing, tenant, kind, parent=parent)
    return await read_page(request, (tenant, kind.path, parent), query, read, lambda record: record.body[kind.key])


async def read_page(
    request: Request,
    listing: tuple[str | None, ...],
    query: PageQuery,
    read: Read[RecordT],
    name: Callable[[RecordT], str],
) -> tuple[list[RecordT], dict[str, Any]]:
    """Read a page of a listing.

    Args:
        request: What asks for it.
        listing: What tells this listing from others: tenant, path, filters.
        query: Which page.
        read: Reads it; called in a worker thread.
        name: Identifier of a record, by which the listing is in order.

    Returns:
        The records, and the other members of the page's class.

    Raises:
        ProblemException: invalid-parameter, invalid-cursor or revision-expired.
    """
    runtime = runtime_of(request)
    query.check(runtime.settings.max_page)
    cursors = Cursors(runtime.database.secret, listing)
    at, after, tenant = None, "", str(listing[0])
    if query.cursor is not None:
        position = cursors.read(query.cursor)
        at, after = Revision(position["epoch"], position["number"]), position["after"]
    found = await runtime.threads.run(tenant, partial(read, at=at, after=after, limit=query.limit))
    if found is None:
        raise ProblemException("revision-expired", "the listing is too old to go on; begin again without a cursor")
    members: dict[str, Any] = {"revision": found.revision.to_wire()}
    if found.more:
        members["next_cursor"] = cursors.write({**found.revision.to_wire(), "after": name(found.records[-1])})
    return found.records, members
