"""What the service is: declaration, health, registers, its own metrics."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from kuayu import __version__
from kuayu.service import access, instants, openapi
from kuayu.service.problems import not_found
from kuayu.service.requests import NoQuery
from kuayu.service.routes import json_answer
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu_schemas import registers
from kuayu_schemas.models import Feature, Profile

router = APIRouter()

PROFILES = (Profile.COM, Profile.MET, Profile.IDX, Profile.DEM, Profile.FCT, Profile.SCH, Profile.RES, Profile.JOB)
"""Profiles that the service conforms to, or tries to."""

HEALTHY = {
    "description": "The service answers, and its database does.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"status": {"const": "ok"}},
                "required": ["status"],
                "additionalProperties": False,
            }
        }
    },
}


@router.get(
    "/v1/conformance",
    operation_id="getDeclaration",
    summary="What the service declares to conform to",
    tags=["common"],
    responses={200: openapi.answer("Declaration", "The declaration."), **openapi.problems()},
)
async def get_declaration(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Profiles, features and limits of this service, and where its state and its clock stand."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    settings = runtime.settings
    revision = await runtime.threads.run(tenant, runtime.store.revision, tenant)
    features = [
        (Feature.scrape, settings.scrape_allow),
        (Feature.otlp, True),
        (Feature.tenancy, settings.asks_for_tokens),
        (Feature.accounts, True),
        (Feature.elastic, True),
        (Feature.serving, True),
    ]
    return json_answer(
        {
            "spec_version": registers.SPEC_VERSION,
            "implementation": {"name": "Kuayu reference", "version": __version__, "vendor": "Kuayu"},
            "profiles": [profile.value for profile in PROFILES],
            "features": [feature.value for feature, given in features if given],
            "limits": {
                "max_body": settings.max_body,
                "max_batch": settings.max_batch,
                "max_page": settings.max_page,
                "retention": settings.retention,
                "idempotency": settings.idempotency,
                "max_resource": settings.quota.largest,
                "max_resources": settings.quota.resources,
                "max_resources_together": settings.quota.together,
            },
            "durability": settings.durability.value,
            "revision": revision.to_wire(),
            "now": instants.to_text(instants.now()),
        }
    )


@router.get(
    "/v1/health",
    operation_id="getHealth",
    summary="Whether the service answers",
    tags=["common"],
    responses={200: HEALTHY, **openapi.problems()},
)
async def get_health(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """For load balancers; asks for no token, and not the database: whether that can be used is looked at anyway."""
    runtime_of(request).database.presence.check()
    return json_answer({"status": "ok"})


@router.get(
    "/v1/problems",
    operation_id="getProblems",
    summary="Problem types that answers may name",
    tags=["common"],
    responses={200: openapi.answer("ProblemRegister", "The register."), **openapi.problems()},
)
async def get_problems(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The register of problem types."""
    tenant_of(request)
    return Response(registers.problems().to_json(), media_type="application/json")


@router.get(
    "/v1/indicators",
    operation_id="getIndicators",
    summary="The twelve indicators and the collection map",
    tags=["perception"],
    responses={200: openapi.answer("IndicatorRegister", "The register."), **openapi.problems()},
)
async def get_indicators(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The register of indicators, with the collection map that exporters' pages are converted by."""
    tenant_of(request)
    return Response(registers.indicators().to_json(), media_type="application/json")


@router.get("/metrics", include_in_schema=False)
async def get_metrics(request: Request) -> Response:
    """The service's own metrics, which are not part of the standard, for whom the operator lets have them."""
    settings = request.app.state.settings
    if settings.metrics == "off":
        raise not_found("there is no /metrics")
    access.check_metrics(request, settings)
    return Response(runtime_of(request).metrics.page(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
