"""Exporters' pages, converted by the collection map."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import bodies, conditions, openapi
from kuayu.service.parameters import ExpositionQuery, milliseconds
from kuayu.service.problems import Place, ProblemException
from kuayu.service.routes.answers import kept_answer
from kuayu.service.runtime import collection_map, runtime_of, tenant_of
from kuayu.service.storage.answers import Refuse

router = APIRouter()


@router.post(
    "/v1/expositions",
    operation_id="postExposition",
    summary="Give an exporter's page",
    tags=["perception"],
    responses={
        200: openapi.answer("BatchResult", "What became of the samples that the page gave.", openapi.REPLAYED),
        **openapi.problems(
            "payload-too-large",
            "unsupported-media-type",
            "unknown-reference",
            "unknown-exporter",
            "malformed-exposition",
            "idempotency-mismatch",
        ),
    },
    openapi_extra=openapi.page_body(openapi.IDEMPOTENCY_KEY),
)
async def post_exposition(request: Request, query: Annotated[ExpositionQuery, Query()]) -> Response:
    """A page in the Prometheus text format about a registered node."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    key = conditions.idempotency_key(request)
    observed = milliseconds("observed_at", query.observed_at)
    sent = milliseconds("sent_at", query.sent_at)
    body = await bodies.read(request, "text/plain", runtime.settings.max_body)
    exporter = collection_map(query.exporter)
    reception = runtime.reception(sent)
    bound = None if key is None else conditions.bind(key, request, tenant, body, reception.received)
    if ("node", query.node, None) not in runtime.catalogue.of(tenant):
        detail = f"no node {query.node!r} is registered"
        refusal = ProblemException("unknown-reference", detail, [Place(detail, parameter="node")])
        if bound is None:
            raise refusal
        return kept_answer(await runtime.once(bound, Refuse(refusal), tenant))
    try:
        page = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProblemException("malformed-exposition", f"the page is not UTF-8: {error.reason}") from error
    answer = await runtime.take_page(tenant, query.node, exporter, page, observed, reception, bound)
    return kept_answer(answer)
