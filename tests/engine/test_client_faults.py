"""The client sends signs of life and log lines once or again as that makes sense, and follows faults over breaks."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from engine.recording_service import INSTANT, RecordingService, problem
from engine.scripted_service import EVENTS, Answer, Script

from kuayu.client import Client, NotFoundError, RefusedError, UnexpectedAnswerError
from kuayu_schemas.models import (
    ActionOutcome,
    ActionPhase,
    ActionResult,
    AllocationRecord,
    Fault,
    FaultKind,
    FaultState,
    Heartbeat,
    LogLine,
    RankStep,
    Revision,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JSON = "application/json"
PROBLEM = "application/problem+json"
BUSY = (503, {"retry-after": "0"}, problem("overloaded", retry_after=0.0))
STREAM, OPEN, ALL = "/v1/faults/events", "/v1/faults?state=open", "/v1/faults"


def fault(name: str, number: int, *, state: str = "open", epoch: str = "e", **members: Any) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "node_dead",
        "state": state,
        "since": INSTANT,
        "told_at": INSTANT,
        "because": "silence",
        "actions": [],
        "revision": {"epoch": epoch, "number": number},
        **({"cleared_at": INSTANT} if state == "cleared" else {}),
        **members,
    }


def page(number: int, *faults: dict[str, Any], epoch: str = "e", **members: Any) -> Answer:
    body = {"items": faults, "revision": {"epoch": epoch, "number": number}, **members}
    return 200, JSON, json.dumps(body).encode()


def event(told: dict[str, Any]) -> bytes:
    revision = told["revision"]
    return f"id: {revision['epoch']}:{revision['number']}\nevent: fault\ndata: {json.dumps(told)}\n\n".encode()


def beat(node: str = "n-1") -> Heartbeat:
    return Heartbeat(node=node, number=1, sent_at=NOW, steps=[RankStep(job="j", rank=0, step=7)])


def test_beats_and_lines_are_taken_and_what_is_not_is_named(service: RecordingService) -> None:
    service.resources["/v1/nodes/n-1"] = {}
    with Client(service.url) as client:
        result = client.send_heartbeats([beat("n-0"), beat()])
        assert (result.accepted, [each.index for each in result.rejected]) == (1, [0])
        line = LogLine(node="n-1", logged_at=NOW, text="NVRM: Xid 79")
        assert client.send_log_lines([line]).rejected == []
    assert service.heard == {"/v1/heartbeats": [beat().to_wire()], "/v1/log-lines": [line.to_wire()]}


def test_a_beat_is_sent_once_and_log_lines_again(service: RecordingService) -> None:
    service.resources["/v1/nodes/n-1"] = {}
    with Client(service.url) as client:
        service.canned.append(BUSY)
        with pytest.raises(RefusedError) as refused:
            client.send_heartbeats([beat()])
        assert refused.value.name == "overloaded"
        service.canned.append(BUSY)
        client.send_log_lines([LogLine(node="n-1", logged_at=NOW, text="x")])
    assert [path for _, path, _ in service.requests] == ["/v1/heartbeats", "/v1/log-lines", "/v1/log-lines"]


def test_faults_come_page_after_page(script: Script) -> None:
    service = script(page(9, fault("a", 3), next_cursor="more"), page(9, fault("b", 9, kind="haunted")))
    with Client(service.url, attempts=1) as client:
        found = list(client.faults(domain="d", state=FaultState.open, page_size=1))
    assert [(each.id, each.kind) for each in found] == [("a", FaultKind.node_dead), ("b", FaultKind.unknown)]
    first = "/v1/faults?domain=d&state=open&limit=1"
    assert [path for path, _ in service.asked] == [first, f"{first}&cursor=more"]


def test_faults_are_followed_over_breaks_and_listed_anew_when_they_must_be(script: Script) -> None:
    service = script(
        page(4, fault("a", 2), next_cursor="more"),
        page(4, fault("b", 4)),
        (200, EVENTS, b": hello\n\n" + event(fault("a", 5, state="cleared")) + event(fault("c", 6))[:-1]),
        (503, PROBLEM, problem("overloaded")),
        (200, EVENTS, event(fault("c", 6)) + b"event: else\ndata: {}\n\n"),
        (410, PROBLEM, problem("revision-expired")),
        page(1, fault("b", 1, state="cleared", epoch="f"), epoch="f"),
        (200, EVENTS, event(fault("d", 2, epoch="f"))),
        (404, PROBLEM, problem("not-found")),
    )
    heard: list[tuple[str, str]] = []

    def follow(client: Client) -> None:
        for each in client.follow_faults():
            heard.append((each.id, each.state))  # noqa: PERF401 - what came before the error counts

    with Client(service.url, attempts=1) as client, pytest.raises(NotFoundError):
        follow(client)
    assert heard == [("a", "open"), ("b", "open"), ("a", "cleared"), ("c", "open"), ("b", "cleared"), ("d", "open")]
    assert service.asked == [
        (OPEN, None),
        (f"{OPEN}&cursor=more", None),
        (STREAM, "e:4"),
        (STREAM, "e:5"),
        (STREAM, "e:5"),
        (STREAM, "e:6"),
        (ALL, None),
        (STREAM, "f:1"),
        (STREAM, "f:2"),
    ]


def test_changes_after_a_revision_are_followed_without_a_listing(script: Script) -> None:
    service = script((200, EVENTS, event(fault("c", 6))), (404, PROBLEM, problem("not-found")))
    with Client(service.url, attempts=1) as client:
        news = client.follow_faults(after=Revision(epoch="e", number=5))
        assert next(news).id == "c"
        with pytest.raises(NotFoundError):
            next(news)
    assert service.asked == [(STREAM, "e:5"), (STREAM, "e:6")]


def test_an_event_that_is_no_fault_is_told(script: Script) -> None:
    service = script((200, EVENTS, b"id: e:6\nevent: fault\ndata: {}\n\n"))
    with Client(service.url, attempts=1) as client, pytest.raises(UnexpectedAnswerError, match="no Fault"):
        next(client.follow_faults(after=Revision(epoch="e", number=5)))


def test_the_answer_to_a_result_is_a_fault_or_an_allocation(service: RecordingService) -> None:
    result = ActionResult(action="x", phase=ActionPhase.commit, outcome=ActionOutcome.committed, at=NOW)
    share = {"domain": "d", "accelerator": "a800", "devices": 8}
    allocation = {
        "id": "a",
        "job": "j",
        "revision": {"epoch": "e", "number": 1},
        "placement": {"shares": [share], "split_mode": "none"},
        "patience": 1,
        "phase": "preparing",
        "created_at": INSTANT,
        "updated_at": INSTANT,
    }
    with Client(service.url, attempts=1) as client:
        for body, kind in ((fault("a", 3, kind="haunted"), Fault), (allocation, AllocationRecord)):
            service.canned.append((200, {}, json.dumps(body).encode()))
            assert isinstance(client.post_action_result(result), kind)
        service.canned.append((200, {}, b"{}"))
        with pytest.raises(UnexpectedAnswerError, match="AllocationRecord or Fault"):
            client.post_action_result(result)
