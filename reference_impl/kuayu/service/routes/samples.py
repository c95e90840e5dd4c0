"""Bulk ingest of samples and reading them back."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kuayu.service import bodies, bulk, conditions, instants, openapi
from kuayu.service.paging import Cursors
from kuayu.service.parameters import NoQuery, SampleQueryParameters, milliseconds
from kuayu.service.problems import invalid_parameter, not_found
from kuayu.service.routes.answers import json_answer, kept_answer
from kuayu.service.runtime import Runtime, runtime_of, tenant_of
from kuayu.service.storage.answers import Answer
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.catalogue import DEVICE
from kuayu.service.storage.history import SampleQuery, SampleSlice, StoredSample
from kuayu.service.storage.resources import Revision
from kuayu.service.storage.samples import StoreSamples

router = APIRouter()

LARGE_BODY = 64 * 1024
"""Bytes from which a body is read in a worker thread, so that it does not hold up everyone else."""

FEW = 100
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
    key = conditions.idempotency_key(request)
    body = await bodies.read(request, "application/json", runtime.settings.max_body)
    settings, numbers = runtime.settings, runtime.catalogue.of(tenant)
    large = len(body) >= LARGE_BODY
    quick = None if large else bulk.take_at_once(body, settings.max_batch, numbers, runtime.reception)
    if quick is None or len(quick.result.rejected) > FEW:
        taken, answer, blocks = await runtime.threads.run(tenant, _take, runtime, tenant, body)
    else:
        taken = quick
        answer, blocks = _answer(runtime, taken)
    done = taken.result
    if blocks or key is not None:
        bound = None if key is None else conditions.bind(key, request, tenant, body, done.reception.received)
        command = StoreSamples(blocks, done.reception.received, answer, runtime.feed(tenant))
        answer = await runtime.once(bound, command, tenant)
    if not answer.replayed:
        accepted = done.accepted if blocks else 0
        runtime.metrics.took("batch", accepted, taken.items - accepted)
    return kept_answer(answer)


def _take(runtime: Runtime, tenant: str, body: bytes) -> tuple[bulk.Taken, Answer, list[Block]]:
    taken = bulk.take(body, runtime.settings.max_batch, runtime.catalogue.of(tenant), runtime.reception)
    return taken, *_answer(runtime, taken)


def _answer(runtime: Runtime, taken: bulk.Taken) -> tuple[Answer, list[Block]]:
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
    found: SampleSlice = await runtime.threads.run(
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
        "items": [_record(query.subject, kind, sample) for sample in found.samples],
        "revision": {"epoch": position["epoch"], "number": position["number"]},
    }
    if found.more:
        last = found.samples[-1]
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
