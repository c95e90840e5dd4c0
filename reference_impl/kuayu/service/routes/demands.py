"""Demands of trainings, layouts and sizes of tasks: pure computations on what travels in the request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import demanding, openapi
from kuayu.service.parameters import NoQuery
from kuayu.service.routes import pure
from kuayu.service.runtime import runtime_of

router = APIRouter()


@router.post(
    "/v1/training-demands",
    operation_id="demandTrainings",
    summary="What trainings need of compute, memory and network",
    tags=["demand"],
    responses={
        200: openapi.answer("TrainingDemandReport", "Demands in the order of the cases."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("TrainingDemandRequest"),
)
async def demand_trainings(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Demands of trainings; nothing is kept, so a request may be repeated freely."""
    decided = await pure.decide(request, "demandTrainings", demanding.demand_trainings)
    for labels, number in decided.counted.items():
        runtime_of(request).metrics.training_demands.labels(*labels).inc(number)
    return pure.answer(decided)


@router.post(
    "/v1/layouts",
    operation_id="rankLayouts",
    summary="The quickest strategies of a model on so many accelerators",
    tags=["demand"],
    responses={
        200: openapi.answer("LayoutReport", "Strategies that can run, the quickest first."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("LayoutRequest"),
)
async def rank_layouts(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Strategies of a model; nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "rankLayouts", demanding.rank_layouts))


@router.post(
    "/v1/task-sizes",
    operation_id="sizeTasks",
    summary="What tasks need, as those show that ran before",
    tags=["demand"],
    responses={
        200: openapi.answer("SizingReport", "Sizes in the order of the tasks."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("SizingRequest"),
)
async def size_tasks(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Sizes of tasks; nothing is kept, so a request may be repeated freely."""
    decided = await pure.decide(request, "sizeTasks", demanding.size_tasks)
    for labels, number in decided.counted.items():
        runtime_of(request).metrics.sized_tasks.labels(*labels).inc(number)
    return pure.answer(decided)
