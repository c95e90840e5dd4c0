"""Shard plans and choices of collectives: pure computations on what travels in the request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import openapi, transferring
from kuayu.service.parameters import NoQuery
from kuayu.service.routes import pure
from kuayu.service.runtime import runtime_of

router = APIRouter()


@router.post(
    "/v1/shard-plans",
    operation_id="planShards",
    summary="What training data to fetch, from where, in what pieces and how early",
    tags=["resilience"],
    responses={
        200: openapi.answer("ShardPlan", "Shards in the order in which each link is to take its own."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("ShardPlanRequest"),
)
async def plan_shards(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A plan of transfers; none is begun by that and nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "planShards", transferring.plan_shards))


@router.post(
    "/v1/collectives",
    operation_id="chooseCollective",
    summary="By which collective replicas are to agree",
    tags=["resilience"],
    responses={
        200: openapi.answer("CollectiveChoice", "The choice, with what was looked at."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("CollectiveRequest"),
)
async def choose_collective(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The choice of a collective; nothing is kept, so a request may be repeated freely."""
    decided = await pure.decide(request, "chooseCollective", transferring.choose_collective)
    for labels, number in decided.counted.items():
        runtime_of(request).metrics.collective_choices.labels(*labels).inc(number)
    return pure.answer(decided)
