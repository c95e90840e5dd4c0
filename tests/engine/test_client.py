"""The client speaks the standard: closed requests, open answers, repetition only where it is harmless."""

import json
from datetime import UTC, datetime

import pytest
from engine.recording_service import INSTANT, RecordingService, problem

from kuayu.client import (
    Client,
    NotFoundError,
    RefusedError,
    UnauthorisedError,
    UnexpectedAnswerError,
    UnreachableError,
    read,
)
from kuayu_schemas.models import Device, Domain, Node, Sample, SubjectKind

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAMPLE = Sample(subject="n-1", subject_kind=SubjectKind.node, observed_at=NOW, power=3.5)
BUSY = (503, {"retry-after": "0"}, problem("overloaded", retry_after=0.0))


def test_a_host_is_registered_and_its_samples_are_taken(service: RecordingService) -> None:
    with Client(service.url) as client:
        client.put_domain(Domain(id="d-1"))
        assert client.put_node(Node(id="n-1", domain="d-1")).revision.number == 2
        assert client.domain("d-1").id == "d-1"
        assert client.post_samples([SAMPLE]).accepted == 1
    assert service.taken == [SAMPLE.to_wire()]


def test_a_retryable_problem_is_met_with_the_same_request_under_the_same_key(service: RecordingService) -> None:
    with Client(service.url) as client:
        client.put_domain(Domain(id="d-1"))
        client.put_node(Node(id="n-1", domain="d-1"))
        service.canned += [BUSY, BUSY]
        client.post_samples([SAMPLE])
    posted = [body for method, _, body in service.requests if method == "POST"]
    assert len(posted) == 3
    assert len(set(posted)) == len(service.keys) == 1


def test_an_answer_that_got_lost_does_not_double_the_samples(service: RecordingService) -> None:
    with Client(service.url) as client:
        client.put_domain(Domain(id="d-1"))
        client.put_node(Node(id="n-1", domain="d-1"))
        service.lose_answers = 1
        assert client.post_samples([SAMPLE]).accepted == 1
    assert len(service.taken) == 1


def test_a_batch_that_says_when_it_was_sent_is_sent_once(service: RecordingService) -> None:
    service.canned.append(BUSY)
    with Client(service.url) as client, pytest.raises(RefusedError):
        client.post_samples([SAMPLE], sent_at=NOW)
    assert len(service.requests) == 1


def test_other_problems_are_not_repeated_and_say_cause_and_remedy(service: RecordingService) -> None:
    errors = [{"pointer": "/samples/0/power", "detail": "-1 is less than 0"}]
    service.canned.append((422, {}, problem("invalid-body", detail="bad sample", errors=errors)))
    with Client(service.url) as client, pytest.raises(RefusedError) as raised:
        client.post_samples([SAMPLE])
    assert raised.value.name == "invalid-body"
    assert not raised.value.transient
    assert "bad sample" in raised.value.cause
    assert "/samples/0/power: -1 is less than 0" in raised.value.cause
    assert raised.value.hint
    assert len(service.requests) == 1


def test_what_is_absent_and_who_is_unknown_have_errors_of_their_own(service: RecordingService) -> None:
    with Client(service.url) as client:
        with pytest.raises(NotFoundError):
            client.node("absent")
        service.canned.append((401, {"www-authenticate": "Bearer"}, problem("unauthorised")))
        with pytest.raises(UnauthorisedError):
            client.conformance()


def test_an_answer_that_is_not_of_the_standard_is_told_apart(service: RecordingService) -> None:
    service.canned += [(200, {}, b"<html>welcome</html>"), (502, {}, b"<html>bad gateway</html>")]
    with Client(service.url) as client:
        with pytest.raises(UnexpectedAnswerError, match="no Declaration") as raised:
            client.conformance()
        assert not raised.value.transient
        with pytest.raises(UnexpectedAnswerError, match="no Problem") as raised:
            client.conformance()
        assert raised.value.transient


def test_a_service_that_is_away_is_unreachable(service: RecordingService) -> None:
    service.die()
    with Client(service.url, attempts=2) as client, pytest.raises(UnreachableError, match="no answer from http://127"):
        client.conformance()


def test_only_http_urls_are_taken() -> None:
    with pytest.raises(ValueError, match="is not an http or https URL"):
        Client("ftp://example.org")


def test_samples_are_read_page_after_page(service: RecordingService) -> None:
    record = SAMPLE.to_wire() | {"received_at": INSTANT}
    revision = {"epoch": "e1", "number": 1}
    for cursor in ("c1", None):
        page = {"items": [record], "revision": revision} | ({"next_cursor": cursor} if cursor else {})
        service.canned.append((200, {}, json.dumps(page).encode()))
    with Client(service.url) as client:
        assert [each.power for each in client.samples("n-1", start=NOW, page_size=1)] == [3.5, 3.5]
    paths = [path for _, path, _ in service.requests]
    assert paths[0] == "/v1/samples?subject=n-1&subject_kind=node&from=2026-01-01T00%3A00%3A00.000Z&limit=1"
    assert paths[1] == paths[0] + "&cursor=c1"


@pytest.mark.parametrize("collection", ["domains", "nodes", "links"])
def test_what_is_registered_is_read_page_after_page(service: RecordingService, collection: str) -> None:
    members = {"nodes": {"domain": "d"}, "links": {"source": "d", "destination": "e"}}.get(collection, {})
    revision = {"epoch": "e1", "number": 1}
    for name, cursor in (("a", "c1"), ("b", None)):
        page = {"items": [{"id": name, **members, "revision": revision, "updated_at": INSTANT}], "revision": revision}
        page |= {"next_cursor": cursor} if cursor else {}
        service.canned.append((200, {}, json.dumps(page).encode()))
    with Client(service.url) as client:
        assert [record.id for record in getattr(client, collection)()] == ["a", "b"]
    assert [path for _, path, _ in service.requests] == [f"/v1/{collection}", f"/v1/{collection}?cursor=c1"]


def test_indicators_and_expositions_go_to_their_own_paths(service: RecordingService) -> None:
    report = {
        "subject": "d-1",
        "subject_kind": "domain",
        "at": INSTANT,
        "values": [],
        "revision": {"epoch": "e", "number": 0},
    }
    result = {"accepted": 1, "rejected": [], "durability": "process", "received_at": INSTANT, "clock_offset": 0}
    service.canned += [(200, {}, json.dumps(report).encode()), (200, {}, json.dumps(result).encode())]
    with Client(service.url) as client:
        assert client.indicators("d-1", SubjectKind.domain, at=NOW).values == []
        assert client.post_exposition("up 1\n", node="n-1", exporter="node-exporter").accepted == 1
    assert service.requests[0][1] == "/v1/domains/d-1/indicators?at=2026-01-01T00%3A00%3A00.000Z"
    assert service.requests[1] == ("POST", "/v1/expositions?node=n-1&exporter=node-exporter", b"up 1\n")


def test_readers_pass_over_what_they_do_not_know() -> None:
    answer = {"id": "0", "kind": "photonic", "vendor": "v", "model": "m", "colour": "red"}
    device = read(Device, json.dumps(answer).encode())
    assert device.kind == "unknown"
    with pytest.raises(ValueError, match="vendor"):
        read(Device, b'{"id": "0", "kind": "gpu", "model": "m"}')
