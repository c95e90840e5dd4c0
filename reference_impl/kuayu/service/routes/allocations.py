"""Allocations: devices that are held in several domains together, or not at all."""

from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from kuayu.service import bodies, openapi
from kuayu.service.allocating import faults
from kuayu.service.allocating.storage import Record
from kuayu.service.parameters import NoQuery, PageQuery
from kuayu.service.problems import Place, invalid_body, not_found
from kuayu.service.routes.answers import json_answer
from kuayu.service.routes.listings import read_page
from kuayu.service.runtime import runtime_of, tenant_of

router = APIRouter()

PATH = "/v1/allocations"
ONE = f"{PATH}/{{id}}"

Name = Annotated[str, Path(alias="id")]


@router.put(
    ONE,
    operation_id="putAllocation",
    summary="Have devices held for a job",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationRecord", "It was there already; this is how it stands."),
        201: openapi.answer("AllocationRecord", "Domains are being asked."),
        **openapi.problems(*openapi.BODY, "quota-exceeded"),
    },
    openapi_extra=openapi.body("Allocation"),
)
async def put_allocation(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """All of it will be held, or nothing. An allocation is immutable: another body needs another name."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    raw = await bodies.read(request, "application/json", runtime.settings.max_body)
    body: dict[str, Any] = await bodies.parse_aside(raw, "Allocation", runtime.threads, tenant)
    wrong = list(faults.of_allocation(body))
    if body["id"] != name:
        wrong.insert(0, Place(f"the path names {name!r}, the body {body['id']!r}", "/id"))
    if wrong:
        raise invalid_body(*wrong)
    runtime.settings.quota.check_one("allocation", len(orjson.dumps(body).decode()))
    stored = await runtime.coordinator.put(tenant, body)
    return json_answer(stored.record.to_wire(), 201 if stored.created else 200)


@router.get(
    ONE,
    operation_id="getAllocation",
    summary="An allocation and where it stands",
    tags=["scheduling"],
    responses={200: openapi.answer("AllocationRecord", "How it stands."), **openapi.problems("not-found")},
)
async def get_allocation(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """An allocation as it stands."""
    tenant = tenant_of(request)
    record: Record | None = await runtime_of(request).threads.run(
        tenant, runtime_of(request).coordinator.store.record, tenant, name
    )
    if record is None:
        raise not_found(f"there is no allocation {name!r}")
    return json_answer(record.to_wire())


@router.delete(
    ONE,
    operation_id="deleteAllocation",
    summary="Have devices given back",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationRecord", "How it stands; what was held is being given back."),
        **openapi.problems("not-found"),
    },
)
async def delete_allocation(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """What is held is given back, and what is being asked for is let go. The record stays."""
    record = await runtime_of(request).coordinator.withdraw(tenant_of(request), name)
    return json_answer(record.to_wire())


@router.get(
    PATH,
    operation_id="listAllocations",
    summary="Allocations and where they stand",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationPage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_allocations(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """Allocations in order of name, all pages as they stood when the first was asked for."""
    tenant = tenant_of(request)
    read = partial(runtime_of(request).coordinator.store.listing, tenant)
    records, members = await read_page(
        request, (tenant, PATH), query, read, lambda record: str(record.standing.spec["id"])
    )
    return json_answer({"items": [record.to_wire() for record in records], **members})
