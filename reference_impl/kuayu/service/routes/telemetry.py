"""Routes of telemetry: samples, series, exposition pages and OTLP metrics.

1. Bulk ingest of samples and reading them back.
2. Series of measures: what was observed, step by step of time.
3. Exporters' pages, converted by the collection map.
4. OpenTelemetry metrics over HTTP.
"""

from collections import Counter
from functools import cache
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from kuayu.perception import collection, otlp
from kuayu.perception.otlp import JSON, PROTOBUF, MetricsMap
from kuayu.service import ingest, instants, openapi, requests
from kuayu.service.ingest import Reception, StoreMetrics, StorePoints, StoreSamples
from kuayu.service.problems import Place, ProblemException, invalid_body, invalid_parameter, not_found
from kuayu.service.requests import (
    Cursors,
    ExpositionQuery,
    NoQuery,
    SampleQueryParameters,
    SeriesQueryParameters,
    milliseconds,
)
from kuayu.service.routes import json_answer, kept_answer
from kuayu.service.runtime import Runtime, collection_map, runtime_of, tenant_of
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.queries import SampleQuery, SampleSlice, SeriesQuery, StoredSample
from kuayu.service.storage.resources import DEVICE, Revision
from kuayu.service.storage.rollup import Steps
from kuayu.service.storage.writer import Answer, Refuse
from kuayu_schemas import registers
from kuayu_schemas.models import Measure, ValueKind

router = APIRouter()

LARGE_BODY = 64 * 1024
"""Bytes from which a body is read in a worker thread, so that it does not hold up everyone else."""

MAX_ITEMS_ANSWERED_INLINE = 100
"""Items of a batch that may be refused before the answer is written in a thread as well."""

END_OF_TIME = 1 << 62


@router.post(
    "/v1/samples",
    operation_id="postSamples",
    summary="Give samples in bulk",
    tags=["perception"],
    responses={
        200: openapi.answer("BatchResult", "What became of the items; those taken are durable.", openapi.REPLAYED),
        **openapi.problems(*openapi.BODY, "batch-refused", "idempotency-mismatch"),
    },
    openapi_extra=openapi.body("SampleBatch", openapi.IDEMPOTENCY_KEY),
)
async def post_samples(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Samples of registered subjects, in any order; a repetition of what is held changes nothing."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    key = requests.idempotency_key(request)
    body = await requests.read(request, "application/json", runtime.settings.max_body)
    settings, numbers = runtime.settings, runtime.catalogue.of(tenant)
    large = len(body) >= LARGE_BODY
    quick = None if large else ingest.take_at_once(body, settings.max_batch, numbers, runtime.reception)
    if quick is None or len(quick.result.rejected) > MAX_ITEMS_ANSWERED_INLINE:
        taken, answer, blocks = await runtime.threads.run(tenant, _take, runtime, tenant, body)
    else:
        taken = quick
        answer, blocks = _answer(runtime, taken)
    done = taken.result
    if blocks or key is not None:
        bound = None if key is None else requests.bind(key, request, tenant, body, done.reception.received)
        command = StoreSamples(blocks, done.reception.received, answer, runtime.feed(tenant))
        answer = await runtime.once(bound, command, tenant)
    if not answer.replayed:
        accepted = done.accepted if blocks else 0
        runtime.metrics.took("batch", accepted, taken.items - accepted)
    return kept_answer(answer)


def _take(runtime: Runtime, tenant: str, body: bytes) -> tuple[ingest.BulkRequest, Answer, list[Block]]:
    taken = ingest.take(body, runtime.settings.max_batch, runtime.catalogue.of(tenant), runtime.reception)
    return taken, *_answer(runtime, taken)


def _answer(runtime: Runtime, taken: ingest.BulkRequest) -> tuple[Answer, list[Block]]:
    """The answer to a batch, and what of it is to be written."""
    done = taken.result
    if taken.atomic and done.rejected:
        refusal = done.refusal()
        return Answer(refusal.status, orjson.dumps(refusal.to_wire())), []
    return Answer(200, done.result(runtime.settings.durability.value)), done.blocks


@router.get(
    "/v1/samples",
    operation_id="listSamples",
    summary="Samples of a subject by time",
    tags=["perception"],
    responses={
        200: openapi.answer("SamplePage", "Part of the series."),
        **openapi.problems("not-found", "invalid-cursor"),
    },
)
async def list_samples(request: Request, query: Annotated[SampleQueryParameters, Query()]) -> Response:
    """Samples of a subject as they had been received when the first page was made."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    query.check(runtime.settings.max_page)
    kind = query.subject_kind.value
    if query.device is not None and kind != DEVICE:
        raise invalid_parameter("device", "only samples of devices have a device")
    since = milliseconds("from", query.since)
    until = milliseconds("to", query.until)
    _check_registered(runtime, tenant, query)
    subjects = await runtime.threads.run(tenant, runtime.store.subjects, tenant, kind, query.subject, query.device)
    cursors = Cursors(
        runtime.database.secret,
        (tenant, request.url.path, query.subject, kind, query.device, query.since, query.until),
    )
    position = await _first_position(runtime, tenant) if query.cursor is None else cursors.read(query.cursor)
    result: SampleSlice = await runtime.threads.run(
        tenant,
        runtime.store.samples,
        SampleQuery(
            subjects=subjects,
            since=-END_OF_TIME if since is None else since,
            until=END_OF_TIME if until is None else until,
            sequence=position["sequence"],
            after=position["after"],
            limit=query.limit,
        ),
    )
    page: dict[str, Any] = {
        "items": [_record(query.subject, kind, sample) for sample in result.samples],
        "revision": {"epoch": position["epoch"], "number": position["number"]},
    }
    if result.more:
        last = result.samples[-1]
        page["next_cursor"] = cursors.write(position | {"after": (last.observed, last.device or "")})
    return json_answer(page)


def _check_registered(runtime: Runtime, tenant: str, query: SampleQueryParameters) -> None:
    kind, device = query.subject_kind.value, query.device
    key = (kind, query.subject, device) if kind != DEVICE or device else ("node", query.subject, None)
    if key not in runtime.catalogue.of(tenant):
        raise not_found(f"no {'device' if device else key[0]} {device or query.subject!r} is registered")


async def _first_position(runtime: Runtime, tenant: str) -> dict[str, Any]:
    """Where a listing begins: what it is pinned to, and after nothing."""
    sequence = await runtime.threads.run(tenant, runtime.store.sequence)
    revision: Revision = await runtime.threads.run(tenant, runtime.store.revision, tenant)
    return {"sequence": sequence, "epoch": revision.epoch, "number": revision.number, "after": None}


def _record(subject: str, kind: str, sample: StoredSample) -> dict[str, Any]:
    """A sample as class SampleRecord has it."""
    record: dict[str, Any] = {"subject": subject, "subject_kind": kind}
    if sample.device is not None:
        record["device"] = sample.device
    return record | {
        "observed_at": instants.to_text(sample.observed),
        "received_at": instants.to_text(sample.received),
        **sample.measures,
    }


MAX_STEPS = 10_000
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
    result: Steps | None = await runtime.threads.run(tenant, runtime.store.series, wanted)
    if result is None:
        detail = "what is older than the retention is kept in steps of 300 s; ask for a coarser step or a later range"
        raise ProblemException("revision-expired", detail)
    revision = await runtime.threads.run(tenant, runtime.store.revision, tenant)
    return json_answer(_about(query, measure) | {"points": _points(result), "revision": revision.to_wire()})


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
    if last - first > MAX_STEPS:
        raise invalid_parameter("step", f"these are {last - first} steps, and a series has at most {MAX_STEPS}")
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
    key = requests.idempotency_key(request)
    observed = milliseconds("observed_at", query.observed_at)
    sent = milliseconds("sent_at", query.sent_at)
    body = await requests.read(request, "text/plain", runtime.settings.max_body)
    exporter = collection_map(query.exporter)
    reception = runtime.reception(sent)
    bound = None if key is None else requests.bind(key, request, tenant, body, reception.received)
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
    key = requests.idempotency_key(request)
    media_type, body = await _read(request, runtime, tenant)
    reception = runtime.reception(None)
    command = await runtime.threads.run(tenant, _command, runtime, tenant, media_type, body, reception)
    bound = None if key is None else requests.bind(key, request, tenant, body, reception.received)
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
            nodes.append(StorePoints(*page, feed=runtime.feed(tenant), conflicts=runtime.conflicts(tenant)))
        else:
            refused[_unknown(node)] += len(points)
    unused = None
    if metrics.unused and not metrics.nodes and not metrics.left_out:
        unused = collection.why_unused(metrics.unused, _map(), registers.indicators())
    return StoreMetrics(nodes, refused, metrics.left_out, media_type, unused)


def _message(media_type: str, body: bytes, max_batch: int) -> ExportMetricsServiceRequest:
    if media_type == PROTOBUF:
        if otlp.wire_exceeds(body, FIELDS * max_batch):
            raise ProblemException("payload-too-large", f"more than {FIELDS * max_batch} fields of protobuf")
        message = otlp.from_protobuf(body)
        if otlp.exceeds(message, PARTS * max_batch):
            detail = f"more than {PARTS * max_batch} resources, scopes, metrics, points and attributes"
            raise ProblemException("payload-too-large", detail)
        return message
    value = requests.parse_json(body)
    if otlp.json_exceeds(value, JSON_VALUES * max_batch):
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
        return media_type, await requests.read(request, media_type, limit)
    # The encoding is undone here, so that what reads the bytes need not know of it.
    headers = [header for header in request.scope["headers"] if header[0] != b"content-encoding"]
    plain = Request({**request.scope, "headers": headers}, request.receive)
    packed = await requests.read(plain, media_type, limit)
    return media_type, await runtime.threads.run(tenant, _unpacked, packed, limit)


def _unpacked(packed: bytes, limit: int) -> bytes:
    """What gzip packed; no more than ``limit`` bytes are ever unpacked."""
    try:
        return requests.unpack(packed, limit)
    except requests.TooLargeError as error:
        raise ProblemException("payload-too-large", f"the body cannot be taken: {error}") from error
    except requests.UnpackingError as error:
        raise invalid_body(Place(f"the body cannot be unpacked: {error}")) from error


@cache
def _map() -> MetricsMap:
    return MetricsMap.of_register(registers.indicators())
