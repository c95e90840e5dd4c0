"""Routes of jobs, of their allocations, and of the actions that domains carry out for them.

1. Allocations: devices that are held in several domains together, or not at all.
2. Jobs: submitted, followed, called off; and what domains report of their runs.
3. The action contract: domains fetch what they are asked to do, and say what became of it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from kuayu.service import access, allocation_commands, concurrency, job_commands, openapi, requests
from kuayu.service.allocation_rules import Result
from kuayu.service.allocation_store import AllocationRecord
from kuayu.service.concurrency import Threads
from kuayu.service.problems import Place, invalid_body, invalid_parameter, not_found
from kuayu.service.requests import NoQuery, PageQuery
from kuayu.service.routes import json_answer, read_page
from kuayu.service.runtime import runtime_of, tenant_of
from kuayu_schemas.models import ActionOutcome, ActionPhase, Identifier

router = APIRouter()

ALLOCATIONS_PATH = "/v1/allocations"
ALLOCATION_PATH = f"{ALLOCATIONS_PATH}/{{id}}"

Name = Annotated[str, Path(alias="id")]


@router.put(
    ALLOCATION_PATH,
    operation_id="putAllocation",
    summary="Have devices held for a job",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationRecord", "It was there already; this is how it stands."),
        201: openapi.answer("AllocationRecord", "Domains are being asked."),
        **openapi.problems(*openapi.BODY, "quota-exceeded"),
    },
    openapi_extra=openapi.body("Allocation"),
)
async def put_allocation(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """All of it will be held, or nothing. An allocation is immutable: another body needs another name."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    raw = await requests.read(request, "application/json", runtime.settings.max_body)
    body: documents.Allocation = await requests.parse_aside(raw, "Allocation", runtime.threads, tenant)
    wrong = list(allocation_commands.of_allocation(body))
    if body["id"] != name:
        wrong.insert(0, Place(f"the path names {name!r}, the body {body['id']!r}", "/id"))
    if wrong:
        raise invalid_body(*wrong)
    runtime.settings.quota.check_one("allocation", len(orjson.dumps(body).decode()))
    stored = await runtime.coordinator.put(tenant, body)
    return json_answer(stored.record.to_wire(), 201 if stored.created else 200)


@router.get(
    ALLOCATION_PATH,
    operation_id="getAllocation",
    summary="An allocation and where it stands",
    tags=["scheduling"],
    responses={200: openapi.answer("AllocationRecord", "How it stands."), **openapi.problems("not-found")},
)
async def get_allocation(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """An allocation as it stands."""
    tenant = tenant_of(request)
    record: AllocationRecord | None = await runtime_of(request).threads.run(
        tenant, runtime_of(request).coordinator.store.record, tenant, name
    )
    if record is None:
        raise not_found(f"there is no allocation {name!r}")
    return json_answer(record.to_wire())


@router.delete(
    ALLOCATION_PATH,
    operation_id="deleteAllocation",
    summary="Have devices given back",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationRecord", "How it stands; what was held is being given back."),
        **openapi.problems("not-found"),
    },
)
async def delete_allocation(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """What is held is given back, and what is being asked for is let go. The record stays."""
    record = await runtime_of(request).coordinator.withdraw(tenant_of(request), name)
    return json_answer(record.to_wire())


@router.get(
    ALLOCATIONS_PATH,
    operation_id="listAllocations",
    summary="Allocations and where they stand",
    tags=["scheduling"],
    responses={
        200: openapi.answer("AllocationPage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_allocations(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """Allocations in order of name, all pages as they stood when the first was asked for."""
    tenant = tenant_of(request)
    read = partial(runtime_of(request).coordinator.store.listing, tenant)
    records, members = await read_page(
        request, (tenant, ALLOCATIONS_PATH), query, read, lambda record: str(record.standing.spec["id"])
    )
    return json_answer({"items": [record.to_wire() for record in records], **members})


if TYPE_CHECKING:
    from kuayu.service.job_store import JobRecord
    from kuayu_schemas import documents


JOBS_PATH = "/v1/jobs"
JOB_PATH = f"{JOBS_PATH}/{{id}}"

MAX_WAIT_SECONDS = 30.0
"""Seconds that a reader may wait for lines; proxies give up on silence not much later."""

DEFAULT_LINES = 1_000
"""Lines of a page of a log where the reader does not say."""


class LogQuery(NoQuery):
    """Which part of a log, and how long to wait for it."""

    after: str | None = Field(
        default=None, description="Where to go on: next_cursor of the page before; at the beginning where absent."
    )
    limit: int = Field(default=DEFAULT_LINES, ge=1, description="Most lines; at most limits.max_page.")
    wait: float = Field(
        default=0.0,
        ge=0,
        le=MAX_WAIT_SECONDS,
        allow_inf_nan=False,
        description="Seconds after which an empty page is given where there are no further lines.",
    )


@router.put(
    JOB_PATH,
    operation_id="putJob",
    summary="Submit a job",
    tags=["jobs"],
    responses={
        200: openapi.answer("JobRecord", "It was there already; this is how it stands."),
        201: openapi.answer("JobRecord", "It waits for devices."),
        **openapi.problems(*openapi.BODY, "quota-exceeded"),
    },
    openapi_extra=openapi.body("JobRequest"),
)
async def put_job(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """It will be placed, started, watched and, where it fails, started again. A job does not change afterwards."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    raw = await requests.read(request, "application/json", runtime.settings.max_body)
    body: dict[str, Any] = await requests.parse_aside(raw, "JobRequest", runtime.threads, tenant)
    wrong = list(job_commands.of_request(body))
    if body["id"] != name:
        wrong.insert(0, Place(f"the path names {name!r}, the body {body['id']!r}", "/id"))
    if wrong:
        raise invalid_body(*wrong)
    body = access.settle_account(request, body)
    runtime.settings.quota.check_one("job", len(orjson.dumps(body).decode()))
    stored = await runtime.jobs.submit(tenant, body)
    return json_answer(stored.record.to_wire(), 201 if stored.created else 200)


@router.get(
    JOBS_PATH,
    operation_id="listJobs",
    summary="Jobs and where they stand",
    tags=["jobs"],
    responses={
        200: openapi.answer("JobPage", "Part of the listing."),
        **openapi.problems("invalid-cursor", "revision-expired"),
    },
)
async def list_jobs(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """Jobs in order of name, all pages as they stood when the first was asked for."""
    tenant = tenant_of(request)
    read = partial(runtime_of(request).jobs.store.listing, tenant)
    records, members = await read_page(request, (tenant, JOBS_PATH), query, read, lambda record: record.name)
    return json_answer({"items": [record.to_wire() for record in records], **members})


@router.get(
    "/v1/accounts",
    operation_id="listAccounts",
    summary="What accounts have used",
    tags=["jobs"],
    responses={200: openapi.answer("AccountList", "Accounts in order of name."), **openapi.problems()},
)
async def list_accounts(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Use by which accounts take turns, with their weights and quotas, at one instant."""
    return json_answer(await runtime_of(request).jobs.accounts(tenant_of(request)))


@router.get(
    f"{JOBS_PATH}/events",
    operation_id="streamJobs",
    summary="Changes of jobs as they come",
    tags=["jobs"],
    response_class=Response,
    responses={200: openapi.events("job", "JobRecord"), **openapi.problems("revision-expired")},
    openapi_extra={"parameters": [openapi.LAST_EVENT_ID]},
)
async def stream_jobs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Changes after the event that Last-Event-ID names, or from now on."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    join = partial(runtime.jobs.store.join, tenant, requests.last_event(request))
    return await runtime.jobs.hub.follow(tenant, None, join, runtime.threads)


@router.get(
    JOB_PATH,
    operation_id="getJob",
    summary="A job and where it stands",
    tags=["jobs"],
    responses={200: openapi.answer("JobRecord", "How it stands."), **openapi.problems("not-found")},
)
async def get_job(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """A job as it stands."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    record: JobRecord | None = await runtime.threads.run(tenant, runtime.jobs.store.record, tenant, name)
    if record is None:
        raise not_found(f"there is no job {name!r}")
    return json_answer(record.to_wire())


@router.delete(
    JOB_PATH,
    operation_id="deleteJob",
    summary="Call a job off",
    tags=["jobs"],
    responses={
        200: openapi.answer("JobRecord", "How it stands; what runs of it is being stopped."),
        **openapi.problems("not-found"),
    },
)
async def delete_job(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """What runs is stopped, and what is held given back. The record stays; a job that has ended stays as it is."""
    record = await runtime_of(request).jobs.cancel(tenant_of(request), name)
    return json_answer(record.to_wire())


@router.get(
    f"{JOB_PATH}/decision",
    operation_id="getJobDecision",
    summary="What was last decided about a job, and why",
    tags=["jobs"],
    responses={200: openapi.answer("JobDecision", "The decision."), **openapi.problems("not-found")},
)
async def get_decision(request: Request, name: Name, _: Annotated[NoQuery, Query()]) -> Response:
    """The last decision; there is none before the job was first considered."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    result: bytes | None = await runtime.threads.run(tenant, runtime.jobs.store.decision, tenant, name)
    if result is None:
        raise not_found(f"nothing was decided yet about a job {name!r}")
    return Response(result, media_type="application/json")


@router.get(
    f"{JOB_PATH}/logs",
    operation_id="getJobLogs",
    summary="What the processes of a job have printed",
    tags=["jobs"],
    responses={
        200: openapi.answer("JobLogPage", "Lines in the order in which they came."),
        **openapi.problems("not-found", "invalid-cursor"),
    },
)
async def get_logs(request: Request, name: Name, query: Annotated[LogQuery, Query()]) -> Response:
    """Given at once where there are further lines; otherwise as soon as there are, or when the time to wait is over."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    if query.limit > runtime.settings.max_page:
        raise invalid_parameter("limit", f"a page has at most {runtime.settings.max_page} items")
    page = await concurrency.while_wanted(
        request, runtime.jobs.logs(tenant, name, query.after, query.limit, query.wait)
    )
    return json_answer(page)


@router.post(
    "/v1/run-reports",
    operation_id="postRunReport",
    summary="How a run stands, as its domain says",
    tags=["jobs"],
    responses={
        200: openapi.answer("JobRecord", "How the job stands then."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("RunReport"),
)
async def post_report(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The report of a run's end is its last; later ones, and those of attempts that are over, change nothing."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    body = await _read(request, "RunReport", job_commands.of_report, runtime.urgent)
    record = await runtime.jobs.report(tenant, body)
    return json_answer(record.to_wire())


@router.post(
    "/v1/job-loads",
    operation_id="postJobLoad",
    summary="How many requests come in for a serving job",
    tags=["jobs"],
    responses={
        200: openapi.answer("JobRecord", "How the job stands then; how many replicas it is to have is decided later."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("JobLoad"),
)
async def post_load(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Load and what is announced of it; replicas follow it. What is told of a job that has ended changes nothing."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    body = await _read(request, "JobLoad", job_commands.of_load, runtime.threads)
    record = await runtime.jobs.keep_load(tenant, body)
    return json_answer(record.to_wire())


@router.post(
    "/v1/run-logs",
    operation_id="postRunLogs",
    summary="What the processes of a run have printed",
    tags=["jobs"],
    responses={
        200: openapi.answer("RunLogResult", "Up to which line all are kept; the next batch goes on after it."),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("RunLogBatch"),
)
async def post_logs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Lines that are kept already are passed over; nothing is kept of a batch that would leave a gap."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    body = await _read(request, "RunLogBatch", job_commands.of_lines, runtime.threads)
    last = await runtime.jobs.keep_lines(tenant, body)
    return json_answer({"last": last})


async def _read(
    request: Request, class_name: str, wrong: Callable[[dict[str, Any]], Iterator[Place]], threads: Threads
) -> dict[str, Any]:
    """Read what a domain tells.

    Args:
        request: Its body has not been read yet.
        class_name: Class of the body.
        wrong: Tells what is wrong with it beyond the schema.
        threads: Where a large one is parsed.

    Raises:
        ProblemException: Whatever can be wrong with the body by itself.
    """
    raw = await requests.read(request, "application/json", runtime_of(request).settings.max_body)
    body: dict[str, Any] = await requests.parse_aside(raw, class_name, threads, tenant_of(request))
    result = list(wrong(body))
    if result:
        raise invalid_body(*result)
    return body


"""Seconds that a domain may wait for something to do; proxies give up on silence not much later."""


class ActionQuery(NoQuery):
    """Whose actions, and how long to wait for some."""

    domain: Identifier = Field(description="Domain that carries them out.")
    wait: float = Field(
        default=0.0,
        ge=0,
        le=MAX_WAIT_SECONDS,
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
    asked_for = runtime_of(request).dispatcher.open_actions(tenant, query.domain, query.wait)
    result = await concurrency.while_wanted(request, asked_for)
    return Response(b'{"items":[' + b",".join(result) + b"]}", media_type="application/json")


@router.post(
    "/v1/action-results",
    operation_id="postActionResult",
    summary="What became of an action",
    tags=["scheduling"],
    responses={
        200: openapi.answer_of_any(
            ("AllocationRecord", "JobRecord", "Fault"),
            "How the allocation, the job or the fault stands that the action belongs to.",
        ),
        **openapi.problems(*openapi.BODY, "unknown-reference"),
    },
    openapi_extra=openapi.body("ActionResult"),
)
async def post_result(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The first result of a step counts; a repetition changes nothing."""
    runtime, tenant = runtime_of(request), tenant_of(request)
    raw = await requests.read(request, "application/json", runtime.settings.max_body)
    body: documents.ActionResult = await requests.parse_aside(raw, "ActionResult", runtime.urgent, tenant)
    wrong = list(allocation_commands.of_result(body))
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
    record = await runtime.dispatcher.take(tenant, result)
    return json_answer(record.to_wire())
