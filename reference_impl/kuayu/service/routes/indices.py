"""Compute indices and probe plans: pure computations on a corpus that travels in the request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import indexing, openapi
from kuayu.service.parameters import NoQuery
from kuayu.service.routes import pure
from kuayu.service.runtime import runtime_of

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
    most = runtime.settings.max_indices
    decided = await pure.decide(request, "computeIndices", indexing.compute_indices, most)
    for labels, number in decided.counted.items():
        runtime.metrics.indices.labels(*labels).inc(number)
    return pure.answer(decided)


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
    return pure.answer(await pure.decide(request, "planProbes", indexing.plan_probes))
