"""Scrape targets: exporters' pages that the service fetches by itself."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from kuayu.service import conditions, openapi
from kuayu.service.allowlist import NotAllowedError
from kuayu.service.kinds import SCRAPE_TARGET
from kuayu.service.parameters import NoQuery, PageQuery
from kuayu.service.problems import Place, ProblemException, unknown_reference
from kuayu.service.routes.answers import json_answer
from kuayu.service.routes.listings import read_listing
from kuayu.service.routes.resources import delete_resource, get_resource, put_resource, read_resource, record_answer
from kuayu.service.runtime import Runtime, runtime_of, tenant_of
from kuayu_schemas import registers

router = APIRouter()

ONE = f"{SCRAPE_TARGET.path}/{{id}}"

Name = Annotated[str, Path(alias="id")]


@router.put(
    ONE,
    operation_id="putScrapeTarget",
    summary="Register or replace a scrape target",
    tags=["perception"],
    responses={
        200: openapi.answer("ScrapeTargetRecord", "It was there already; this is how it is now.", openapi.ETAG),
        201: openapi.answer("ScrapeTargetRecord", "It was registered.", openapi.ETAG),
        **openapi.problems(*openapi.BODY, "unknown-reference", "target-not-allowed", "stale-revision"),
    },
    openapi_extra=openapi.body("ScrapeTarget", openapi.IF_MATCH),
)
async def put_target(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """The first scrape is at once, the others every period."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    conditions.if_match(request)
    body = await read_resource(request, tenant, SCRAPE_TARGET, name)
    if all(exporter.id != body["exporter"] for exporter in registers.indicators().exporters):
        raise unknown_reference("/exporter", f"the collection map has no exporter {body['exporter']!r}")
    try:
        await runtime.scraper.allowed.check(body["url"])
    except NotAllowedError as error:
        raise ProblemException("target-not-allowed", str(error), [Place(str(error), "/url")]) from error
    before = runtime.scraper.target(tenant, name)
    stored = await put_resource(request, tenant, SCRAPE_TARGET, body)
    target = runtime.target(tenant, stored.record)
    if target != before:
        runtime.scraper.start(target)
    return record_answer(stored.record, _state(runtime, tenant, name), created=stored.created)


@router.get(
    ONE,
    operation_id="getScrapeTarget",
    summary="A registered scrape target and how its last scrape went",
    tags=["perception"],
    responses={
        200: openapi.answer("ScrapeTargetRecord", "It is registered.", openapi.ETAG),
        **openapi.problems("not-found"),
    },
)
async def get_target(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """A registered scrape target."""
    tenant = tenant_of(request)
    record = await get_resource(request, tenant, SCRAPE_TARGET, name)
    return record_answer(record, _state(runtime_of(request), tenant, name))


@router.delete(
    ONE,
    operation_id="deleteScrapeTarget",
    summary="Take a scrape target away",
    tags=["perception"],
    status_code=204,
    response_class=Response,
    responses={204: {"description": "It is gone."}, **openapi.problems("not-found", "stale-revision")},
    openapi_extra={"parameters": [openapi.IF_MATCH]},
)
async def delete_target(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """It is scraped no longer; the samples that it gave stay."""
    tenant = tenant_of(request)
    await delete_resource(request, tenant, SCRAPE_TARGET, name)
    runtime_of(request).scraper.stop(tenant, name)
    return Response(status_code=204)


@router.get(
    SCRAPE_TARGET.path,
    operation_id="listScrapeTargets",
    summary="Registered scrape targets",
    tags=["perception"],
    responses={
        200: openapi.answer("ScrapeTargetPage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_targets(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """Registered scrape targets. What is pinned is their registration; how their last scrape went is live."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    records, members = await read_listing(request, tenant, SCRAPE_TARGET, query)
    items = [record.to_wire() | _state(runtime, tenant, record.body["id"]) for record in records]
    return json_answer({"items": items, **members})


def _state(runtime: Runtime, tenant: str, name: str) -> dict[str, Any]:
    return runtime.scraper.status(tenant, name).to_wire()
