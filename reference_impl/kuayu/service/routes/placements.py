"""Placements, Pareto fronts, allocation plans and routes: pure decisions on a state that travels in the request."""

from functools import partial
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.scheduling import Scheduler
from kuayu.service import openapi, scheduling
from kuayu.service.parameters import NoQuery
from kuayu.service.routes import pure
from kuayu.service.runtime import runtime_of

router = APIRouter()


@router.post(
    "/v1/placements",
    operation_id="placeJobs",
    summary="What to do with the jobs of a state",
    tags=["scheduling"],
    responses={
        200: openapi.answer("PlacementReport", "What is to be done, in this order."),
        **openapi.problems(*openapi.BODY, "unknown-reference", "unknown-base"),
    },
    openapi_extra=openapi.body("PlacementRequest"),
)
async def place_jobs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Where jobs run, and why where that is asked for; no devices are held, so a request may be repeated freely.

    A state whose digest is stated may be held for a while, so that a patch can follow.
    """
    runtime = runtime_of(request)
    metrics = runtime.metrics
    place = partial(scheduling.place, learned=runtime.settings.scheduler is Scheduler.PPO)
    decided = await pure.decide_on_bases(request, "placeJobs", place, scheduling.may_need_bases)
    for labels, number in decided.counted.items():
        metrics.placements.labels(*labels).inc(number)
    if decided.fallback:
        metrics.placement_fallbacks.inc()
    return pure.answer(decided)


@router.post(
    "/v1/pareto-fronts",
    operation_id="findParetoFront",
    summary="The best compromises between the period of jobs and the money for communication",
    tags=["scheduling"],
    responses={
        200: openapi.answer("ParetoFront", "Schedules, from the quickest to the cheapest."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("ParetoRequest"),
)
async def find_front(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Schedules that no other beats in both ends; nothing is kept, so a request may be repeated freely.

    Without a time limit the search takes up to some ten seconds; with one, what has been found by then is answered.
    """
    find_front = partial(scheduling.find_front, arrived=monotonic())
    return pure.answer(await pure.decide(request, "findParetoFront", find_front, search=True))


@router.post(
    "/v1/allocation-plans",
    operation_id="planAllocation",
    summary="How much of which capacity to use, and how to buy it",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationPlan", "Capacity by domain, accelerator and way of buying."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("AllocationPlanRequest"),
)
async def plan_allocation(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A plan over a horizon; nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "planAllocation", scheduling.plan_allocation, search=True))


@router.post(
    "/v1/routes",
    operation_id="findRoutes",
    summary="Paths, and the places at their ends",
    tags=["scheduling"],
    responses={
        200: openapi.answer("RoutePlan", "Paths in the order of the demands."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("RouteRequest"),
)
async def find_routes(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Paths for demands; nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "findRoutes", scheduling.find_routes))
