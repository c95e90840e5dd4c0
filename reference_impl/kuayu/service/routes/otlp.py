"""OpenTelemetry metrics over HTTP."""

from collections import Counter
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from kuayu.perception import otlp, otlp_size, page_hints
from kuayu.perception.otlp import JSON, PROTOBUF, MetricsMap
from kuayu.service import bodies, conditions, openapi, unpacking
from kuayu.service.ingest import Reception
from kuayu.service.parameters import NoQuery
from kuayu.service.problems import Place, ProblemException, invalid_body
from kuayu.service.runtime import Runtime, runtime_of, tenant_of
from kuayu.service.storage.points import StoreMetrics, StorePoints
from kuayu_schemas import registers

router = APIRouter()

PARTS = 10
"""Resources, scopes, metrics, points and attributes that a request may have for each item of the largest batch."""

JSON_VALUES = 30
"""Values that it may have in JSON for each: an attribute is four of them."""

FIELDS = 50
"""Fields that it may have on the wire for each: an attribute is four of them, a point five without its attributes."""

BODY: dict[str, Any] = {
    JSON: {
        "schema": {
            "type": "object",
            "description": "ExportMetricsServiceRequest in the JSON form of OTLP.",
            "properties": {"resourceMetrics": {"type": ["array", "null"], "items": {"type": "object"}}},
        }
    },
    PROTOBUF: {"schema": {"type": "string", "contentMediaType": PROTOBUF}},
}
ANSWER: dict[str, Any] = {
    "description": "What became of the points, in the form of the request.",
    "headers": openapi.REPLAYED,
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "description": "ExportMetricsServiceResponse in the JSON form of OTLP.",
                "properties": {
                    "partialSuccess": {
                        "type": "object",
                        "properties": {
                            "rejectedDataPoints": {"type": ["string", "integer"]},
                            "errorMessage": {"type": "string"},
                        },
                    }
                },
            }
        },
        PROTOBUF: {"schema": {"type": "string", "contentMediaType": PROTOBUF}},
    },
}


@router.post(
    "/v1/metrics",
    operation_id="postMetrics",
    summary="Give OpenTelemetry metrics",
    tags=["perception"],
    responses={200: ANSWER, **openapi.problems(*openapi.BODY, "idempotency-mismatch")},
    openapi_extra={
        "requestBody": {"required": True, "content": BODY},
        "parameters": [
            openapi.IDEMPOTENCY_KEY,
            {
                "name": "Content-Encoding",
                "in": "header",
                "description": "gzip where the body is compressed.",
                "schema": {"type": "string", "enum": ["gzip", "identity"]},
            },
        ],
    },
)
async def post_metrics(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Metrics of registered nodes, which become the samples that a page of otel-hw would give."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    key = conditions.idempotency_key(request)
    media_type, body = await _read(request, runtime, tenant)
    reception = runtime.reception(None)
    command = await runtime.threads.run(tenant, _command, runtime, tenant, media_type, body, reception)
    bound = None if key is None else conditions.bind(key, request, tenant, body, reception.received)
    answer = await runtime.once(bound, command, tenant) if bound or command.nodes else command.answer(command.refused)
    if not answer.replayed:
        runtime.metrics.took("metrics", command.accepted, command.rejected)
    headers = {"Idempotency-Replayed": "true"} if answer.replayed else None
    return Response(answer.body, answer.status, headers, media_type)


def _command(runtime: Runtime, tenant: str, media_type: str, body: bytes, reception: Reception) -> StoreMetrics:
    """What a body asks for.

    Raises:
        ProblemException: malformed-json, invalid-body or payload-too-large.
    """
    try:
        message = _message(media_type, body, runtime.settings.max_batch)
    except otlp.MalformedMetricsError as error:
        raise invalid_body(Place(f"no ExportMetricsServiceRequest: {error}", error.pointer)) from error
    metrics, numbers = _map().read(message), runtime.catalogue.of(tenant)
    durability = runtime.settings.durability.value
    nodes: list[StorePoints] = []
    refused: Counter[str] = Counter()
    for node, points in metrics.nodes.items():
        if ("node", node, None) in numbers:
            page = (tenant, node, numbers, _map(), points, None, reception, durability)
            nodes.append(StorePoints(*page, feed=runtime.feed(tenant)))
        else:
            refused[_unknown(node)] += len(points)
    unused = None
    if metrics.unused and not metrics.nodes and not metrics.left_out:
        unused = page_hints.unused(metrics.unused, _map(), registers.indicators())
    return StoreMetrics(nodes, refused, metrics.left_out, media_type, unused)


def _message(media_type: str, body: bytes, max_batch: int) -> ExportMetricsServiceRequest:
    if media_type == PROTOBUF:
        if otlp_size.wire_exceeds(body, FIELDS * max_batch):
            raise ProblemException("payload-too-large", f"more than {FIELDS * max_batch} fields of protobuf")
        message = otlp.from_protobuf(body)
        if otlp_size.exceeds(message, PARTS * max_batch):
            detail = f"more than {PARTS * max_batch} resources, scopes, metrics, points and attributes"
            raise ProblemException("payload-too-large", detail)
        return message
    value = bodies.parse_json(body)
    if otlp_size.json_exceeds(value, JSON_VALUES * max_batch):
        raise ProblemException("payload-too-large", f"more than {JSON_VALUES * max_batch} values of JSON")
    return otlp.from_json(value)


def _unknown(node: str) -> str:
    if not node:
        return f"no resource attribute {' or '.join(otlp.NODE_ATTRIBUTES)} names the node"
    return f"no node {node[:128]!r} is registered"


async def _read(request: Request, runtime: Runtime, tenant: str) -> tuple[str, bytes]:
    """Media type and body of a request, uncompressed.

    Raises:
        ProblemException: unsupported-media-type, payload-too-large, or invalid-body where gzip cannot unpack it.
    """
    limit = runtime.settings.max_body
    stated = request.headers.get("content-type", "")
    media_type = next((name for name in (JSON, PROTOBUF) if name == stated.partition(";")[0].strip().lower()), "")
    if not media_type:
        raise ProblemException("unsupported-media-type", f"expected {JSON} or {PROTOBUF}, got {stated or 'no type'!r}")
    if request.headers.get("content-encoding", "").lower() != "gzip":
        return media_type, await bodies.read(request, media_type, limit)
    # The encoding is undone here, so that what reads the bytes need not know of it.
    headers = [header for header in request.scope["headers"] if header[0] != b"content-encoding"]
    plain = Request({**request.scope, "headers": headers}, request.receive)
    packed = await bodies.read(plain, media_type, limit)
    return media_type, await runtime.threads.run(tenant, _unpacked, packed, limit)


def _unpacked(packed: bytes, limit: int) -> bytes:
    """What gzip packed; no more than ``limit`` bytes are ever unpacked."""
    try:
        return unpacking.unpack(packed, limit)
    except unpacking.TooLargeError as error:
        raise ProblemException("payload-too-large", f"the body cannot be taken: {error}") from error
    except unpacking.UnpackingError as error:
        raise invalid_body(Place(f"the body cannot be unpacked: {error}")) from error


@cache
def _map() -> MetricsMap:
    return MetricsMap.of_register(registers.indicators())
