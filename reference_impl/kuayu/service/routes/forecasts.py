"""Forecasts, phases, waveforms, peaks and reservations: pure computations on what travels in the request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import forecasting, openapi
from kuayu.service.parameters import NoQuery
from kuayu.service.routes import pure
from kuayu.service.runtime import runtime_of

router = APIRouter()


@router.post(
    "/v1/forecasts",
    operation_id="forecastDemand",
    summary="What series of demand will show after each horizon",
    tags=["forecast"],
    responses={
        200: openapi.answer("ForecastReport", "Forecasts in the order of the series."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("ForecastRequest"),
)
async def forecast_demand(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Forecasts with their quantiles; nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "forecastDemand", forecasting.forecast))


@router.post(
    "/v1/training-phases",
    operation_id="recogniseTrainingPhases",
    summary="In which phase trainings are",
    tags=["forecast"],
    responses={
        200: openapi.answer("PhaseReport", "Phases in the order of the curves."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("PhaseRequest"),
)
async def recognise_phases(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Phases of trainings; nothing is kept, so a request may be repeated freely."""
    decided = await pure.decide(request, "recogniseTrainingPhases", forecasting.recognise_phases)
    for labels, number in decided.counted.items():
        runtime_of(request).metrics.training_phases.labels(*labels).inc(number)
    return pure.answer(decided)


@router.post(
    "/v1/waveforms",
    operation_id="makeWaveform",
    summary="How demand runs over a coming period",
    tags=["forecast"],
    responses={
        200: openapi.answer("Waveform", "Demand from now, one point each step."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("WaveformRequest"),
)
async def make_waveform(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The waveform of jobs; nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "makeWaveform", forecasting.make_waveform))


@router.post(
    "/v1/peak-plans",
    operation_id="planPeaks",
    summary="When to do movable work so that peaks are low",
    tags=["forecast"],
    responses={
        200: openapi.answer("PeakPlan", "Steps in which each load runs, in the order of the loads."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("PeakRequest"),
)
async def plan_peaks(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A plan that lowers peaks; nothing is kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "planPeaks", forecasting.plan_peaks))


@router.post(
    "/v1/reservations",
    operation_id="reserveForTenants",
    summary="How many devices to reserve for tenants",
    tags=["forecast"],
    responses={
        200: openapi.answer("ReservationReport", "Reservations in the order of the series."),
        **openapi.problems(*openapi.BODY),
    },
    openapi_extra=openapi.body("ReservationRequest"),
)
async def reserve_for_tenants(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What to reserve; nothing is held by that or kept, so a request may be repeated freely."""
    return pure.answer(await pure.decide(request, "reserveForTenants", forecasting.reserve))
