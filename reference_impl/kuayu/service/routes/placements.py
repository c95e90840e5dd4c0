"""Placements, Pareto fronts, allocation plans and routes: pure decisions on a state that travels in the request."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import bodies, openapi, scheduling
from kuayu.service.parameters import NoQuery
from kuayu.service.problems import MEDIA_TYPE
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu.service.scheduling import Decided

router = APIRouter()


@router.post(
    "/v1/placements",
    operation_id="placeJobs",
    summary="What to do with the jobs of a state",
    tags=["scheduling"],
    responses={
        200: openapi.answer("PlacementReport", "What is to be done, in this order."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("PlacementRequest"),
)
async def place_jobs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Where jobs run, and why where that is asked for; nothing is kept or held, so a request may be repeated freely."""
    metrics = runtime_of(request).metrics
    decided = await _decide(request, "placeJobs", scheduling.place)
    for verb, number in decided.decisions.items():
        metrics.placements.labels(verb).inc(number)
    if decided.fallback:
        metrics.placement_fallbacks.inc()
    return _answer(decided)


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
    """Schedules that no other beats in both ends; nothing is kept, so a request may be repeated freely."""
    return _answer(await _decide(request, "findParetoFront", scheduling.find_front))


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
    return _answer(await _decide(request, "planAllocation", scheduling.plan_allocation))


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
    return _answer(await _decide(request, "findRoutes", scheduling.find_routes))


async def _decide(request: Request, operation: str, decide: Callable[[bytes], Decided]) -> Decided:
    runtime = runtime_of(request)
    tenant_of(request)
    body = await bodies.read(request, "application/json", runtime.settings.max_body)
    return await runtime.decisions.compute(operation, decide, body)


def _answer(decided: Decided) -> Response:
    failed = decided.status >= 400  # noqa: PLR2004 - where HTTP's failures begin
    return Response(decided.body, decided.status, media_type=MEDIA_TYPE if failed else "application/json")
