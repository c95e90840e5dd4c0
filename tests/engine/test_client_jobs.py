"""The client's side of jobs: submitted once, followed without loss, and logs read to their end."""

import json
from typing import Any

import pytest
from engine.recording_service import INSTANT, RecordingService, problem
from engine.scripted_service import EVENTS, Script

from kuayu.client import Client, NotFoundError, RefusedError
from kuayu_schemas import schema
from kuayu_schemas.models import (
    Elasticity,
    JobRecord,
    JobRequest,
    JobState,
    Revision,
    RunLogBatch,
    RunLogLine,
    RunReport,
    RunState,
    Workload,
)

REQUEST = JobRequest(
    id="job-1", workload=Workload(command=["python", "train.py"]), devices=Elasticity(minimum=1, maximum=2)
)
JSON = "application/json"


def record(state: str = "queued", number: int = 1, name: str = "job-1") -> dict[str, Any]:
    """A job as a service holds it."""
    known = {"state": state, "reason": "it waits", "attempt": 0, "failures": 0, "device_hours": 0.0}
    when = {"submitted_at": INSTANT, "transitions": [], "revision": {"epoch": "e1", "number": number}}
    made = REQUEST.to_wire() | {"id": name} | known | when
    if state in {"succeeded", "failed", "cancelled"}:
        made["ended_at"] = INSTANT
    assert schema.errors("JobRecord", made) == []
    return made


def listing(*jobs: dict[str, Any], number: int, cursor: str | None = None) -> tuple[int, str, bytes]:
    page = {"items": list(jobs), "revision": {"epoch": "e1", "number": number}}
    return 200, JSON, json.dumps(page if cursor is None else page | {"next_cursor": cursor}).encode()


def events(*jobs: dict[str, Any]) -> tuple[int, str, bytes]:
    lines = [f"id: e1:{job['revision']['number']}\nevent: job\ndata: {json.dumps(job)}\n\n" for job in jobs]
    return 200, EVENTS, "".join(lines).encode()


def log(*texts: str, cursor: str, ended: bool = False) -> tuple[int, str, bytes]:
    lines = [
        {"number": number, "rank": 0, "at": INSTANT, "text": text, "attempt": 1, "domain": "here"}
        for number, text in enumerate(texts, 1)
    ]
    return 200, JSON, json.dumps({"items": lines, "next_cursor": cursor, "ended": ended}).encode()


def answered(service: RecordingService, body: dict[str, Any] | bytes, status: int = 200) -> None:
    service.canned.append((status, {}, body if isinstance(body, bytes) else json.dumps(body).encode()))


def test_a_job_is_put_under_its_name_and_may_be_put_again(service: RecordingService) -> None:
    answered(service, record(), 201)
    answered(service, problem("overloaded"), 503)
    answered(service, record("running"))
    with Client(service.url) as client:
        assert client.submit_job(REQUEST).state is JobState.queued
        assert client.submit_job(REQUEST).state is JobState.running
    assert {(method, path) for method, path, _ in service.requests} == {("PUT", "/v1/jobs/job-1")}
    assert all(json.loads(body) == REQUEST.to_wire() for _, _, body in service.requests)


def test_another_job_of_the_name_is_refused(service: RecordingService) -> None:
    answered(service, problem("invalid-body"), 422)
    with Client(service.url) as client, pytest.raises(RefusedError) as refused:
        client.submit_job(REQUEST)
    assert refused.value.name == "invalid-body"


def test_a_job_is_called_off_under_its_name(service: RecordingService) -> None:
    answered(service, record("cancelled"))
    with Client(service.url) as client:
        assert client.cancel_job("job-1").state is JobState.cancelled
    assert [(method, path) for method, path, _ in service.requests] == [("DELETE", "/v1/jobs/job-1")]


def test_all_jobs_come_page_after_page(script: Script) -> None:
    service = script(listing(record(), number=7, cursor="c"), listing(record(name="job-2"), number=7))
    with Client(service.url) as client:
        assert [job.id for job in client.jobs(page_size=1)] == ["job-1", "job-2"]
    assert [path for path, _ in service.asked] == ["/v1/jobs?limit=1", "/v1/jobs?limit=1&cursor=c"]


def test_following_goes_on_where_a_stream_broke(script: Script) -> None:
    service = script(
        listing(record(), number=7),
        events(record("starting", 8)),
        events(record("running", 9)),
    )
    with Client(service.url) as client:
        jobs = client.follow_jobs()
        assert [next(jobs).state for _ in range(3)] == [JobState.queued, JobState.starting, JobState.running]
    assert service.asked[1:] == [("/v1/jobs/events", "e1:7"), ("/v1/jobs/events", "e1:8")]


def test_following_lists_all_again_where_changes_are_no_longer_held(script: Script) -> None:
    service = script(
        (410, "application/problem+json", problem("revision-expired")),
        listing(record("failed", 30), number=30),
        events(record("queued", 31, "job-2")),
    )
    with Client(service.url) as client:
        jobs = client.follow_jobs(after=Revision(epoch="e0", number=3))
        assert [(job.id, job.state) for job in (next(jobs), next(jobs))] == [
            ("job-1", JobState.failed),
            ("job-2", JobState.queued),
        ]
    assert [last for _, last in service.asked] == ["e0:3", None, "e1:30"]


def declared(max_page: int) -> tuple[int, str, bytes]:
    """What a service declares that gives so many lines at once."""
    _, body = RecordingService().answer("GET", "/v1/conformance", "", b"")
    declaration = json.loads(body)
    declaration["limits"]["max_page"] = max_page
    return 200, JSON, json.dumps(declaration).encode()


def test_a_log_is_read_as_far_as_it_goes_though_its_job_prints_on(script: Script) -> None:
    """A page that is not full is the last, or a job that prints faster than pages come would have no end."""
    service = script(declared(2), log("a", "b", cursor="1"), log("c", cursor="2"), log("d", cursor="3"))
    with Client(service.url) as client:
        assert [line.text for line in client.job_logs("job-1")] == ["a", "b", "c"]
    assert [path for path, _ in service.asked[1:]] == [
        "/v1/jobs/job-1/logs?limit=2",
        "/v1/jobs/job-1/logs?after=1&limit=2",
    ]


def test_or_followed_to_its_end_waiting_for_lines(script: Script) -> None:
    service = script(
        log("a", cursor="1"),
        log(cursor="1"),
        log("b", cursor="2"),
        log("c", cursor="3", ended=True),
        log(cursor="3", ended=True),
    )
    with Client(service.url) as client:
        assert [line.text for line in client.job_logs("job-1", follow=True, wait_s=5.0)] == ["a", "b", "c"]
    assert service.asked[1][0] == "/v1/jobs/job-1/logs?wait=5&after=1"


def test_nothing_was_decided_yet(script: Script) -> None:
    service = script((404, "application/problem+json", problem("not-found")))
    with Client(service.url) as client, pytest.raises(NotFoundError):
        client.job_decision("job-1")


def test_domains_tell_of_runs(service: RecordingService) -> None:
    answered(service, record("running"))
    answered(service, {"last": 2})
    report = RunReport(
        job="job-1",
        attempt=1,
        domain="here",
        state=RunState.running,
        at=JobRecord.model_validate_json(json.dumps(record())).submitted_at,
    )
    line = RunLogLine(number=2, rank=0, at=report.at, text="hello")
    with Client(service.url) as client:
        assert client.post_run_report(report).state is JobState.running
        assert client.post_run_logs(RunLogBatch(job="job-1", attempt=1, domain="here", lines=[line])).last == 2
    assert [(method, path) for method, path, _ in service.requests] == [
        ("POST", "/v1/run-reports"),
        ("POST", "/v1/run-logs"),
    ]
