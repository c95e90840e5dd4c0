"""HTTP routes, one module for each group of operations; each only reads the request and writes the answer.

What they share stands here: answers in JSON, and listings, each pinned to the revision of its first page.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import orjson
from fastapi import Request
from fastapi.responses import Response

from kuayu.service.problems import MEDIA_TYPE, ProblemException
from kuayu.service.requests import Cursors, PageQuery
from kuayu.service.runtime import runtime_of
from kuayu.service.storage.resources import Kind, Listing, ResourceRecord, Revision
from kuayu.service.storage.writer import Answer


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON value as an answer."""
    return Response(orjson.dumps(value), status, headers, "application/json")


def kept_answer(answer: Answer) -> Response:
    """An answer that is kept under an idempotency key, or might have been."""
    headers = {"Idempotency-Replayed": "true"} if answer.replayed else None
    failed = answer.status >= 400  # noqa: PLR2004 - where HTTP's failures begin
    return Response(answer.body, answer.status, headers, MEDIA_TYPE if failed else "application/json")


RecordT = TypeVar("RecordT")

Read = Callable[..., Listing[RecordT] | None]
"""Reads part of a listing: at a ``revision``, ``after`` an identifier, as many records as ``limit``. None where the
revision is no longer held."""


async def read_listing(
    request: Request, tenant: str, kind: Kind, query: PageQuery, parent: str | None = None
) -> tuple[list[ResourceRecord], dict[str, Any]]:
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
    revision, after, tenant = None, "", str(listing[0])
    if query.cursor is not None:
        position = cursors.read(query.cursor)
        revision, after = Revision(position["epoch"], position["number"]), position["after"]
    result = await runtime.threads.run(tenant, partial(read, revision=revision, after=after, limit=query.limit))
    if result is None:
        raise ProblemException("revision-expired", "the listing is too old to go on; begin again without a cursor")
    members: dict[str, Any] = {"revision": result.revision.to_wire()}
    if result.more:
        members["next_cursor"] = cursors.write({**result.revision.to_wire(), "after": name(result.records[-1])})
    return result.records, members
