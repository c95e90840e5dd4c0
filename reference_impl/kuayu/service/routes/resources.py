"""Routes of registered resources and of compute identifiers.

1. Registered resources: domains, nodes, links and compute identifiers.
2. Resolution of compute identifiers.
"""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from kuayu.perception.identifiers import UnknownIdentifierError, resolve
from kuayu.service import openapi, requests
from kuayu.service.problems import Place, invalid_body, not_found
from kuayu.service.requests import NodePageQuery, NoQuery, PageQuery
from kuayu.service.routes import json_answer, read_listing
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu.service.storage.resources import (
    COMPUTE_IDENTIFIER,
    DOMAIN,
    LINK,
    NODE,
    DeleteResource,
    Kind,
    PutResource,
    ResourceRecord,
    StoredResource,
)

router = APIRouter()


async def read_resource(request: Request, tenant: str, kind: Kind, name: str) -> dict[str, Any]:
    """Read a resource out of a body.

    Raises:
        ProblemException: Whatever can be wrong with the body by itself.
    """
    runtime = runtime_of(request)
    raw = await requests.read(request, "application/json", runtime.settings.max_body)
    body: dict[str, Any] = await requests.parse_aside(raw, kind.class_name, runtime.threads, tenant)
    faults = list(kind.faults(body))
    if body[kind.key] != name:
        faults.insert(0, Place(f"the path names {name!r}, the body {body[kind.key]!r}", f"/{kind.key}"))
    if faults:
        raise invalid_body(*faults)
    runtime.settings.quota.check_one(kind.name.replace("_", " "), len(orjson.dumps(body).decode()))
    return body


async def put_resource(request: Request, tenant: str, kind: Kind, body: dict[str, Any]) -> StoredResource:
    """Register a resource or replace it."""
    runtime = runtime_of(request)
    expected = requests.if_match(request)
    return await runtime.writer.write(PutResource(runtime.scope(tenant), kind, body[kind.key], body, expected))


async def get_resource(request: Request, tenant: str, kind: Kind, name: str) -> ResourceRecord:
    """A resource as it stands.

    Raises:
        ProblemException: not-found.
    """
    record: ResourceRecord | None = await runtime_of(request).threads.run(
        tenant, runtime_of(request).store.record, tenant, kind, name
    )
    if record is None:
        raise not_found(f"no {kind.name} {name!r} is registered")
    return record


async def delete_resource(request: Request, tenant: str, kind: Kind, name: str) -> None:
    """Take a resource away."""
    runtime = runtime_of(request)
    await runtime.writer.write(DeleteResource(runtime.scope(tenant), kind, name, requests.if_match(request)))


def record_answer(record: ResourceRecord, members: dict[str, Any] | None = None, *, created: bool = False) -> Response:
    """A record as an answer, perhaps with members that are not registered but live."""
    headers = {"ETag": record.revision.etag}
    return json_answer(record.to_wire() | (members or {}), 201 if created else 200, headers)


def _add_put(kind: Kind, path: str) -> None:
    described = f"{kind.class_name}Record"
    answers: dict[int | str, dict[str, Any]] = {
        200: openapi.answer(described, "It was there already; this is how it is now.", openapi.ETAG),
        201: openapi.answer(described, "It was registered.", openapi.ETAG),
    }
    problems = openapi.problems(*openapi.BODY, "unknown-reference", "stale-revision", "quota-exceeded")

    @router.put(
        path,
        operation_id=f"put{kind.class_name}",
        summary=f"Register or replace a {_words(kind)}",
        tags=["resources"],
        responses=answers | problems,
        openapi_extra=openapi.body(kind.class_name, openapi.IF_MATCH),
    )
    async def put(
        request: Request, name: Annotated[str, Path(alias=kind.key)], _: Annotated[NoQuery, Query()]
    ) -> Response:
        tenant = tenant_of(request)
        requests.if_match(request)
        stored = await put_resource(request, tenant, kind, await read_resource(request, tenant, kind, name))
        return record_answer(stored.record, created=stored.created)


def _add_get(kind: Kind, path: str) -> None:
    @router.get(
        path,
        operation_id=f"get{kind.class_name}",
        summary=f"A registered {_words(kind)}",
        tags=["resources"],
        responses={
            200: openapi.answer(f"{kind.class_name}Record", "It is registered.", openapi.ETAG),
            **openapi.problems("not-found"),
        },
    )
    async def get(
        request: Request, name: Annotated[str, Path(alias=kind.key)], _: Annotated[NoQuery, Query()]
    ) -> Response:
        return record_answer(await get_resource(request, tenant_of(request), kind, name))


def _add_delete(kind: Kind, path: str) -> None:
    @router.delete(
        path,
        operation_id=f"delete{kind.class_name}",
        summary=f"Take a {_words(kind)} away",
        tags=["resources"],
        status_code=204,
        response_class=Response,
        responses={204: {"description": "It is gone."}, **openapi.problems("not-found", "in-use", "stale-revision")},
        openapi_extra={"parameters": [openapi.IF_MATCH]},
    )
    async def delete(
        request: Request, name: Annotated[str, Path(alias=kind.key)], _: Annotated[NoQuery, Query()]
    ) -> Response:
        await delete_resource(request, tenant_of(request), kind, name)
        return Response(status_code=204)


def _add_list(kind: Kind) -> None:
    @router.get(
        kind.path,
        operation_id=f"list{kind.class_name}s",
        summary=f"Registered {_words(kind)}s",
        tags=["resources"],
        responses={
            200: openapi.answer(f"{kind.class_name}Page", "Part of the listing."),
            **openapi.problems("invalid-cursor", "revision-expired"),
        },
    )
    async def listing(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
        records, members = await read_listing(request, tenant_of(request), kind, query)
        return json_answer({"items": [record.to_wire() for record in records], **members})


@router.get(
    NODE.path,
    operation_id="listNodes",
    summary="Registered nodes",
    tags=["resources"],
    responses={
        200: openapi.answer("NodePage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_nodes(request: Request, query: Annotated[NodePageQuery, Query()]) -> Response:
    """Registered nodes, perhaps only those of one domain."""
    records, members = await read_listing(request, tenant_of(request), NODE, query, query.domain)
    return json_answer({"items": [record.to_wire() for record in records], **members})


def _words(kind: Kind) -> str:
    return kind.name.replace("_", " ")


for _kind in (DOMAIN, NODE, LINK, COMPUTE_IDENTIFIER):
    for _add in (_add_put, _add_get, _add_delete):
        _add(_kind, f"{_kind.path}/{{{_kind.key}}}")
for _kind in (DOMAIN, LINK):
    _add_list(_kind)


@router.get(
    "/v1/compute-identifiers/{urn}/resolution",
    operation_id="resolveComputeIdentifier",
    summary="What a compute identifier leads to, downwards and upwards",
    tags=["resources"],
    responses={200: openapi.answer("Resolution", "All that it leads to."), **openapi.problems("not-found")},
)
async def resolve_identifier(request: Request, urn: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Services, families and nodes around a compute identifier of any tier."""
    tenant = tenant_of(request)
    known = await runtime_of(request).threads.run(tenant, runtime_of(request).store.identifiers, tenant)
    try:
        result = resolve(urn, known.members, known.nodes)
    except UnknownIdentifierError as error:
        raise not_found(f"nothing is known of {urn!r}") from error
    return json_answer(
        {
            "urn": urn,
            "tier": result.tier,
            "services": result.services,
            "families": result.families,
            "nodes": result.nodes,
            "unresolved": result.unresolved,
            "revision": known.revision.to_wire(),
        }
    )
