"""Series of measures: what was observed, step by step of time."""

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import instants, openapi
from kuayu.service.parameters import SeriesQueryParameters, milliseconds
from kuayu.service.problems import ProblemException, invalid_parameter, not_found
from kuayu.service.routes.answers import json_answer
from kuayu.service.runtime import Runtime, runtime_of, tenant_of
from kuayu.service.storage.catalogue import DEVICE
from kuayu.service.storage.packing import Steps
from kuayu.service.storage.series import SeriesQuery
from kuayu_schemas import registers
from kuayu_schemas.models import Measure, ValueKind

router = APIRouter()

MOST_STEPS = 10_000
"""Most steps of a range that is asked for, and so most points of an answer."""


@router.get(
    "/v1/series",
    operation_id="getSeries",
    summary="A measure of a subject over time",
    tags=["perception"],
    responses={
        200: openapi.answer("Series", "Count, mean, minimum and maximum of each step that has values."),
        **openapi.problems("not-found", "revision-expired"),
    },
)
async def get_series(request: Request, query: Annotated[SeriesQueryParameters, Query()]) -> Response:
    """A measure of a subject in steps of time; of what is older than the retention, coarse steps only are kept."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    measure = _scalar(query.measure)
    since, until = _range(query)
    number = _registered(runtime, tenant, query)
    wanted = SeriesQuery(number, measure.name, since, until, query.step * 1000)
    found: Steps | None = await runtime.threads.run(tenant, runtime.store.series, wanted)
    if found is None:
        detail = "what is older than the retention is kept in steps of 300 s; ask for a coarser step or a later range"
        raise ProblemException("revision-expired", detail)
    revision = await runtime.threads.run(tenant, runtime.store.revision, tenant)
    return json_answer(_about(query, measure) | {"points": _points(found), "revision": revision.to_wire()})


def _scalar(name: str) -> Measure:
    measure = _measures().get(name)
    if measure is None:
        raise invalid_parameter("measure", f"the register has no measure {name!r}")
    if measure.kind is not ValueKind.number:
        raise invalid_parameter("measure", f"{name} is not one number, so it has no series")
    return measure


@cache
def _measures() -> dict[str, Measure]:
    return {measure.name: measure for indicator in registers.indicators().indicators for measure in indicator.measures}


def _range(query: SeriesQueryParameters) -> tuple[int, int]:
    """First and last instant, widened to whole steps, in milliseconds."""
    since, until = milliseconds("from", query.since), milliseconds("to", query.until)
    assert since is not None
    assert until is not None
    if until < since:
        raise invalid_parameter("to", "it lies before from")
    step = query.step * 1000
    first, last = since // step, -(-until // step)
    if last - first > MOST_STEPS:
        raise invalid_parameter("step", f"these are {last - first} steps, and a series has at most {MOST_STEPS}")
    return first * step, last * step


def _registered(runtime: Runtime, tenant: str, query: SeriesQueryParameters) -> int:
    """Number of the subject."""
    kind = query.subject_kind.value
    if kind == DEVICE and query.device is None:
        raise invalid_parameter("device", "say which device of the node")
    if kind != DEVICE and query.device is not None:
        raise invalid_parameter("device", "only a subject of the kind device has one")
    number = runtime.catalogue.of(tenant).get((kind, query.subject, query.device))
    if number is None:
        raise not_found(f"no {kind} {query.device or query.subject!r} is registered")
    return number


def _about(query: SeriesQueryParameters, measure: Measure) -> dict[str, Any]:
    device = {} if query.device is None else {"device": query.device}
    return {
        "subject": query.subject,
        "subject_kind": query.subject_kind.value,
        **device,
        "measure": measure.name,
        "unit": measure.unit,
        "step": query.step,
    }


def _points(steps: Steps) -> list[dict[str, Any]]:
    """Steps as class SeriesPoint has them."""
    columns = (steps.start, steps.count, steps.mean, steps.minimum, steps.maximum)
    return [
        {"start": instants.to_text(start), "count": count, "mean": mean, "minimum": minimum, "maximum": maximum}
        for start, count, mean, minimum, maximum in zip(*(column.tolist() for column in columns), strict=True)
    ]
