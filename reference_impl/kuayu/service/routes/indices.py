"""Compute indices and probe plans: pure computations on a corpus that travels in the request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import bodies, indexing, openapi
from kuayu.service.parameters import NoQuery
from kuayu.service.problems import MEDIA_TYPE
from kuayu.service.runtime import runtime_of, tenant_of

router = APIRouter()


@router.post(
    "/v1/compute-indices",
    operation_id="computeIndices",
    summary="How many of a reference device others are worth for each task",
    tags=["index"],
    responses={
        200: openapi.answer("IndexReport", "An index for each device and task, and for each group and task."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("IndexRequest"),
)
async def compute_indices(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Compute indices of devices and groups; nothing is kept, so a request may be repeated freely."""
    runtime = runtime_of(request)
    tenant_of(request)
    body = await bodies.read(request, "application/json", runtime.settings.max_body)
    most = runtime.settings.max_indices
    decided = await runtime.decisions.compute("computeIndices", indexing.compute_indices, body, most)
    for (basis, abstained), number in decided.indices.items():
        runtime.metrics.indices.labels(basis, "abstained" if abstained else "given").inc(number)
    return _answer(decided)


@router.post(
    "/v1/probe-plans",
    operation_id="planProbes",
    summary="Which measurements would make indices surest",
    tags=["index"],
    responses={
        200: openapi.answer("ProbePlan", "Measurements to make, the most telling first."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("ProbePlanRequest"),
)
async def plan_probes(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A plan of probes; nothing is kept, so a request may be repeated freely."""
    runtime = runtime_of(request)
    tenant_of(request)
    body = await bodies.read(request, "application/json", runtime.settings.max_body)
    return _answer(await runtime.decisions.compute("planProbes", indexing.plan_probes, body))


def _answer(decided: indexing.Decided) -> Response:
    failed = decided.status >= 400  # noqa: PLR2004 - where HTTP's failures begin
    return Response(decided.body, decided.status, media_type=MEDIA_TYPE if failed else "application/json")
