"""Listings of registered resources, pinned to the revision of their first page."""

from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from kuayu.service.kinds import Kind
from kuayu.service.paging import Cursors
from kuayu.service.parameters import PageQuery
from kuayu.service.problems import ProblemException
from kuayu.service.runtime import runtime_of
from kuayu.service.storage.resources import Record, Revision
from kuayu.service.storage.store import Listing


async def read_listing(
    request: Request, tenant: str, kind: Kind, query: PageQuery, parent: str | None = None
) -> tuple[list[Record], dict[str, Any]]:
    """Read a page of a listing.

    Returns:
        The records, and the other members of the kind's class Page.

    Raises:
        ProblemException: invalid-parameter, invalid-cursor or revision-expired.
    """
    runtime = runtime_of(request)
    query.check(runtime.settings.max_page)
    cursors = Cursors(runtime.database.secret, (tenant, kind.path, parent))
    at, after = None, ""
    if query.cursor is not None:
        position = cursors.read(query.cursor)
        at, after = Revision(position["epoch"], position["number"]), position["after"]
    listing: Listing | None = await run_in_threadpool(
        runtime.store.listing, tenant, kind, at=at, after=after, limit=query.limit, parent=parent
    )
    if listing is None:
        raise ProblemException("revision-expired", "the listing is too old to go on; begin again without a cursor")
    members: dict[str, Any] = {"revision": listing.revision.to_wire()}
    if listing.more:
        position = {**listing.revision.to_wire(), "after": listing.records[-1].body[kind.key]}
        members["next_cursor"] = cursors.write(position)
    return listing.records, members
