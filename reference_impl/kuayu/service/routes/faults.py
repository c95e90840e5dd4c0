"""Heartbeats and log lines in, faults out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from kuayu.service import fault_store, instants, openapi, requests
from kuayu.service.fault_store import Intake
from kuayu.service.requests import ItemForm, NoQuery, PageQuery
from kuayu.service.routes import json_answer, read_page
from kuayu.service.routes.telemetry import LARGE_BODY, MAX_ITEMS_ANSWERED_INLINE
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu_schemas.models import FaultState, Identifier

router = APIRouter()

PATH = "/v1/faults"


class FaultPageQuery(PageQuery):
    """Part of the list of faults."""

    domain: Identifier | None = Field(default=None, description="Only faults of this domain or its nodes.")
    state: FaultState | None = Field(default=None, description="Only faults that stand so.")


@router.post(
    "/v1/heartbeats",
    operation_id="postHeartbeats",
    summary="Give heartbeats of nodes in bulk",
    tags=["resilience"],
    responses={
        200: openapi.answer("IntakeResult", "What became of the beats."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("HeartbeatBatch"),
)
async def post_heartbeats(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Signs of life of registered nodes, in any order; a repetition is none."""
    return await _take(request, fault_store.BEATS, runtime_of(request).watcher.hear)


@router.post(
    "/v1/log-lines",
    operation_id="postLogLines",
    summary="Give lines of nodes' logs in bulk",
    tags=["resilience"],
    responses={
        200: openapi.answer("IntakeResult", "What became of the lines; what they tell is durable."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("LogBatch"),
)
async def post_log_lines(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Lines of registered nodes, in the order of each log."""
    return await _take(request, fault_store.LINES, runtime_of(request).watcher.read)


async def _take(request: Request, form: ItemForm, watch: Callable[[str, Sequence[Any]], Awaitable[None]]) -> Response:
    """Take the good items of a batch, and name the others."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    body = await requests.read(request, "application/json", runtime.settings.max_body)
    registered = runtime.watcher.registry.domains(tenant)
    take = partial(_taken, body, form, runtime.settings.max_batch, registered, instants.now())
    small = len(body) < LARGE_BODY and body.count(b"{") <= MAX_ITEMS_ANSWERED_INLINE
    taken, answer = take() if small else await runtime.urgent.run(tenant, take)
    if taken.good:
        await watch(tenant, taken.good)
    runtime.metrics.took_in(form.member, len(taken.good), len(taken.rejected))
    return Response(answer, media_type="application/json")


def _taken(
    body: bytes, form: ItemForm, max_batch: int, registered: Mapping[str, str], received: int
) -> tuple[Intake, bytes]:
    """What can be taken of a batch, and the answer."""
    taken = fault_store.read_batch(body, form, max_batch, registered, received)
    return taken, taken.result()


@router.get(
    PATH,
    operation_id="listFaults",
    summary="Faults and how they stand",
    tags=["resilience"],
    responses={
        200: openapi.answer("FaultPage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_faults(request: Request, query: Annotated[FaultPageQuery, Query()]) -> Response:
    """Faults in order of identifier, all pages as they stood when the first was asked for."""
    tenant = tenant_of(request)
    state = None if query.state is None else query.state.value
    read = partial(runtime_of(request).watcher.store.listing, tenant, domain=query.domain, state=state)
    records, members = await read_page(
        request, (tenant, PATH, query.domain, state), query, read, lambda record: record.name
    )
    return json_answer({"items": [record.to_wire() for record in records], **members})


@router.get(
    f"{PATH}/events",
    operation_id="followFaults",
    summary="Changes of faults as they come",
    tags=["resilience"],
    response_class=Response,
    responses={200: openapi.events("fault", "Fault"), **openapi.problems("revision-expired")},
    openapi_extra={"parameters": [openapi.LAST_EVENT_ID]},
)
async def follow_faults(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Changes after the event that Last-Event-ID names, or from now on."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    join = partial(runtime.watcher.store.join, tenant, requests.last_event(request))
    return await runtime.watcher.hub.follow(tenant, None, join, runtime.urgent)
