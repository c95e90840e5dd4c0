"""The action contract: domains fetch what they are asked to do, and say what became of it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from kuayu.service import bodies, lanes, openapi
from kuayu.service.allocating import faults
from kuayu.service.allocating.rules import Result
from kuayu.service.parameters import NoQuery
from kuayu.service.problems import invalid_body
from kuayu.service.routes.answers import json_answer
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu_schemas.models import ActionOutcome, ActionPhase, Identifier

router = APIRouter()

LONGEST_WAIT = 30.0
"""Seconds that a domain may wait for something to do; proxies give up on silence not much later."""


class ActionQuery(NoQuery):
    """Whose actions, and how long to wait for some."""

    domain: Identifier = Field(description="Domain that carries them out.")
    wait: float = Field(
        default=0.0,
        ge=0,
        le=LONGEST_WAIT,
        allow_inf_nan=False,
        description="Seconds after which an empty answer is given where there is nothing to do.",
    )


@router.get(
    "/v1/actions",
    operation_id="getActions",
    summary="What a domain is asked to do",
    tags=["scheduling"],
    responses={
        200: openapi.answer("OpenActions", "What it has not answered yet, the oldest first."),
        **openapi.problems(),
    },
)
async def get_actions(request: Request, query: Annotated[ActionQuery, Query()]) -> Response:
    """Given at once where there are some; otherwise as soon as there are, or when the time to wait is over."""
    tenant = tenant_of(request)
    asked = runtime_of(request).asking.open_actions(tenant, query.domain, query.wait)
    found = await lanes.while_wanted(request, asked)
    return Response(b'{"items":[' + b",".join(found) + b"]}", media_type="application/json")


@router.post(
    "/v1/action-results",
    operation_id="postActionResult",
    summary="What became of an action",
    tags=["scheduling"],
    responses={
        200: openapi.answer_of_any(
            ("AllocationRecord", "Fault"), "How the allocation or the fault stands that the action belongs to."
        ),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("ActionResult"),
)
async def post_result(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The first result of a step counts; a repetition changes nothing."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    raw = await bodies.read(request, "application/json", runtime.settings.max_body)
    body: dict[str, Any] = await bodies.parse_aside(raw, "ActionResult", runtime.urgent, tenant)
    wrong = list(faults.of_result(body))
    if wrong:
        raise invalid_body(*wrong)
    problem = body.get("problem", {})
    result = Result(
        action=body["action"],
        phase=ActionPhase(body["phase"]),
        outcome=ActionOutcome(body["outcome"]),
        nodes=tuple(body["nodes"]) if "nodes" in body else None,
        why=problem.get("detail") or problem.get("title"),
    )
    record = await runtime.asking.take(tenant, result)
    return json_answer(record.to_wire())
