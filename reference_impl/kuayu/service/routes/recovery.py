"""Backup plans and failover plans: pure computations on what travels in the request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import openapi, recovering
from kuayu.service.parameters import NoQuery
from kuayu.service.routes import pure
from kuayu.service.runtime import runtime_of

router = APIRouter()


@router.post(
    "/v1/backup-plans",
    operation_id="planBackups",
    summary="How many spare nodes and which copies of checkpoints to hold against faults",
    tags=["resilience"],
    responses={
        200: openapi.answer("BackupPlan", "Pools in the order of domains, and copies."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("BackupRequest"),
)
async def plan_backups(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A plan of what to hold; nothing is held by that and nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "planBackups", recovering.plan_backups))


@router.post(
    "/v1/failover-plans",
    operation_id="planFailover",
    summary="How jobs go on after faults, and on which nodes",
    tags=["resilience"],
    responses={
        200: openapi.answer("FailoverPlan", "Recoveries in the order of the request's jobs."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("FailoverRequest"),
)
async def plan_failover(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A plan of recoveries; nothing is begun by that and nothing is kept, so a request may be repeated freely."""
    decided = await pure.decide(request, "planFailover", recovering.plan_failover)
    for labels, number in decided.counted.items():
        runtime_of(request).metrics.recoveries.labels(*labels).inc(number)
    return pure.answer(decided)
