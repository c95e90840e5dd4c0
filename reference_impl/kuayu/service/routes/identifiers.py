"""Resolution of compute identifiers."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.perception.identifiers import UnknownIdentifierError, resolve
from kuayu.service import openapi
from kuayu.service.parameters import NoQuery
from kuayu.service.problems import not_found
from kuayu.service.routes.answers import json_answer
from kuayu.service.runtime import runtime_of, tenant_of

router = APIRouter()


@router.get(
    "/v1/compute-identifiers/{urn}/resolution",
    operation_id="resolveComputeIdentifier",
    summary="What a compute identifier leads to, downwards and upwards",
    tags=["resources"],
    responses={200: openapi.answer("Resolution", "All that it leads to."), **openapi.problems("not-found")},
)
async def resolve_identifier(request: Request, urn: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Services, families and nodes around a compute identifier of any tier."""
    tenant = tenant_of(request)
    known = await runtime_of(request).threads.run(tenant, runtime_of(request).store.identifiers, tenant)
    try:
        found = resolve(urn, known.members, known.nodes)
    except UnknownIdentifierError as error:
        raise not_found(f"nothing is known of {urn!r}") from error
    return json_answer(
        {
            "urn": urn,
            "tier": found.tier,
            "services": found.services,
            "families": found.families,
            "nodes": found.nodes,
            "unresolved": found.unresolved,
            "revision": known.revision.to_wire(),
        }
    )
