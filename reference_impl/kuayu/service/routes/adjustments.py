"""Adjustments of running jobs: a pure computation on what travels in the request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import adjusting, openapi
from kuayu.service.parameters import NoQuery
from kuayu.service.routes import pure
from kuayu.service.runtime import runtime_of

router = APIRouter()


@router.post(
    "/v1/adjustments",
    operation_id="planAdjustments",
    summary="Whether and how to adjust running jobs as load and latency change",
    tags=["resilience"],
    responses={
        200: openapi.answer("Adjustment", "What has changed, and jobs in the order of the request."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("AdjustmentRequest"),
)
async def plan_adjustments(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Changes of policies; none is carried out by that and nothing is kept, so a request may be repeated freely."""
    decided = await pure.decide(request, "planAdjustments", adjusting.plan_adjustments)
    for labels, number in decided.counted.items():
        runtime_of(request).metrics.adjustments.labels(*labels).inc(number)
    return pure.answer(decided)
