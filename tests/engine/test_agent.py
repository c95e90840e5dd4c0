"""The aggregator's answers, its clock, its retries and its command, before a service that dies and forgets."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import run
from engine.agent_process import AgentProcess
from engine.recording_service import RecordingService, problem
from service.conftest import free_port, instant
from service.conftest import problem as problem_of

from kuayu_schemas import schema

PATIENCE_S = 30.0
JsonObject = dict[str, Any]
Start = Callable[..., AgentProcess]


class Clocked(RecordingService):
    """A service whose declared clock is right, as far off as it is told."""

    ahead_s = 0.0

    def _declaration(self) -> JsonObject:
        declared = super()._declaration()
        declared["limits"]["retention"] = 3600
        return declared | {"now": instant(self.ahead_s)}


@pytest.fixture
def service() -> Iterator[Clocked]:
    """A service that is alive and knows the node n-1."""
    alive = Clocked()
    alive.start()
    httpx.put(f"{alive.url}/v1/nodes/n-1", json={"id": "n-1", "domain": "domain"})
    alive.requests.clear()
    yield alive
    alive.die()


@pytest.fixture
def start(service: Clocked, tmp_path: Path) -> Iterator[Start]:
    """Starts aggregators that end with the test."""
    agents: list[AgentProcess] = []

    def start(*options: str, spool: str = "spool.db") -> AgentProcess:
        agent = AgentProcess(service.url, tmp_path / spool, *options)
        agents.append(agent)
        agent.start()
        return agent

    yield start
    for agent in agents:
        agent.close()


def sample(number: int = 1, seconds: float = 0.0, node: str = "n-1", **measures: Any) -> JsonObject:
    return {
        "subject": node,
        "subject_kind": "node",
        "observed_at": instant(seconds - 60 + number),
        **(measures or {"power": float(number)}),
    }


def send(agent: AgentProcess, *samples: JsonObject, key: str | None = None, **members: Any) -> httpx.Response:
    body = {"mode": "per_item", "samples": list(samples), **members}
    headers = {"Idempotency-Key": key} if key else {}
    return agent.client.post("/v1/samples", json=body, headers=headers)


def until(holds: Callable[[], bool], why: str = "it never came to that") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, why
        time.sleep(0.02)


def posts(service: RecordingService) -> list[JsonObject]:
    """Batches that the service was sent, taken or not."""
    return [json.loads(body) for method, path, body in service.requests if (method, path) == ("POST", "/v1/samples")]


def test_samples_are_judged_as_a_service_judges_them(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.05")
    answer = send(
        agent,
        sample(1),
        {"subject": "n-1", "subject_kind": "node", "observed_at": instant(), "heat": 3},
        sample(2, seconds=600),
        sample(3, seconds=-30 * 86_400),
        sample(4),
    )
    result = answer.json()
    assert answer.status_code == 200
    assert schema.errors("BatchResult", result) == []
    assert (result["accepted"], result["durability"], result["clock_offset"]) == (2, "process", 0)
    named = {each["index"]: each["problem"]["type"].rpartition(":")[2] for each in result["rejected"]}
    assert named == {1: "invalid-body", 2: "clock-skew", 3: "too-old"}
    until(lambda: [each["power"] for each in service.taken] == [1.0, 4.0])


@pytest.mark.parametrize(
    ("parts", "status", "name"),
    [
        ({"content": b"{"}, 400, "malformed-json"),
        ({"content": b'{"mode":"per_item","mode":"per_item","samples":[]}'}, 400, "malformed-json"),
        ({"json": {"mode": "per_item", "samples": []}}, 422, "invalid-body"),
        ({"json": {}, "params": {"x": "1"}}, 400, "invalid-parameter"),
        ({"content": b"x", "headers": {"content-type": "text/plain"}}, 415, "unsupported-media-type"),
        ({"json": {}, "headers": {"idempotency-key": "ä".encode("latin-1")}}, 400, "invalid-parameter"),
        ({"content": b" " * (17 << 20)}, 413, "payload-too-large"),
    ],
)
def test_requests_are_refused_with_the_problems_of_the_standard(
    shared_agent: AgentProcess, parts: JsonObject, status: int, name: str
) -> None:
    parts = {"headers": {"content-type": "application/json"}, **parts}
    parts["headers"] = {"content-type": "application/json", **parts["headers"]}
    answer = shared_agent.client.post("/v1/samples", **parts)
    assert (answer.status_code, problem_of(answer)) == (status, name)


@pytest.fixture(scope="module")
def shared_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """An aggregator whose service never was there."""
    agent = AgentProcess("http://127.0.0.1:9", tmp_path_factory.mktemp("agent") / "spool.db")
    agent.start()
    yield agent
    agent.close()


def test_without_a_service_it_starts_takes_samples_and_says_how_it_stands(shared_agent: AgentProcess) -> None:
    assert send(shared_agent, sample(1), sample(2)).json()["accepted"] == 2
    figures = shared_agent.figures()
    assert (figures["spooled_samples"], figures["up"], figures["received_samples_total/accepted"]) == (2, 0, 2)
    until(lambda: shared_agent.figures()["oldest_seconds"] > 0)
    assert shared_agent.client.get("/v1/health").json() == {"status": "ok"}
    for method, path in (("GET", "/v1/nodes"), ("PUT", "/v1/nodes/n-1"), ("GET", "/v1/conformance")):
        answer = shared_agent.client.request(method, path, json={} if method == "PUT" else None)
        assert (answer.status_code, problem_of(answer)) == (503, "overloaded")
        assert int(answer.headers["retry-after"]) > 0


def test_a_repeated_request_gets_its_first_answer_also_after_kill_9(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.05")
    batch = [sample(1), sample(2)]
    first = send(agent, *batch, key="k")
    agent.stop(signal.SIGKILL)
    agent.start()
    again = send(agent, *batch, key="k")
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert problem_of(send(agent, sample(3), key="k")) == "idempotency-mismatch"
    until(lambda: len(service.taken) >= 2)
    agent.until("spooled_samples", 0)
    assert service.taken == batch


def test_clocks_of_senders_are_corrected(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.05")
    result = send(agent, sample(1, seconds=-1000), sent_at=instant(-1000)).json()
    assert result["clock_offset"] == pytest.approx(1000, abs=5)
    until(lambda: bool(service.taken))
    observed = datetime.fromisoformat(service.taken[0]["observed_at"])
    assert abs((datetime.now(UTC) - observed).total_seconds() - 59) < 20
    assert "sent_at" not in posts(service)[0], "its own clock is near enough"


def test_an_answer_that_is_lost_makes_nothing_be_taken_twice(start: Start, service: Clocked) -> None:
    service.lose_answers = 2
    agent = start("--linger", "0.05")
    for number in range(5):
        send(agent, sample(number))
    until(lambda: len(service.taken) == 5)
    agent.until("spooled_samples", 0)
    assert [each["power"] for each in service.taken] == [0, 1, 2, 3, 4]


def test_a_clock_that_is_off_is_stated_and_a_lost_answer_is_still_fetched(start: Start, service: Clocked) -> None:
    service.ahead_s = 100.0
    service.lose_answers = 2
    agent = start("--linger", "0.05")
    batch = [sample(number) for number in range(5)]
    send(agent, *batch)
    agent.until("spooled_samples", 0)
    assert service.taken == batch
    sent = posts(service)
    assert len(sent) > 2
    assert all("sent_at" in each for each in sent)
    agent.until("forwarded_samples_total", 5)


def test_kill_9_after_sending_and_before_the_answer_sends_the_same_batch_again(start: Start, service: Clocked) -> None:
    service.lose_answers = 1
    agent = start("--linger", "0.5")
    batch = [sample(number) for number in range(5)]
    send(agent, *batch)
    until(lambda: service.lose_answers == 0)
    agent.stop(signal.SIGKILL)
    agent.start()
    agent.until("spooled_samples", 0)
    assert service.taken == batch
    assert len(service.keys) == 1


def test_a_node_that_is_registered_a_moment_later_loses_nothing(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.05")
    send(agent, sample(1, node="late"), sample(2), sample(3, node="late"))
    agent.until("held_samples", 2)
    assert [each["power"] for each in service.taken] == [2.0]
    agent.client.put("/v1/nodes/late", json={"id": "late", "domain": "domain"}).raise_for_status()
    agent.until("spooled_samples", 0)
    assert sorted(each["power"] for each in service.taken) == [1.0, 2.0, 3.0]
    assert "rejected_samples_total/unknown-reference" not in agent.figures()


def test_a_node_that_is_never_registered_is_given_up_and_counted(start: Start) -> None:
    agent = start("--linger", "0.05", "--hold", "2")
    send(agent, sample(1, node="nobody"), sample(2))
    agent.until("rejected_samples_total/unknown-reference", 1)
    assert agent.figures()["spooled_samples"] == 0
    assert "nobody" not in agent.client.get("/metrics").text
    assert "refused 1 samples for good: unknown-reference" in agent.log.read_text("utf-8")


@pytest.mark.parametrize(("status", "name"), [(413, "payload-too-large"), (422, "invalid-body")])
def test_a_batch_that_is_too_large_travels_in_parts(start: Start, service: Clocked, status: int, name: str) -> None:
    agent = start("--linger", "0.2")
    until(lambda: len(service.requests) > 0)
    service.canned += [(status, {}, problem(name))] * 2
    batch = [sample(number) for number in range(16)]
    send(agent, *batch)
    agent.until("spooled_samples", 0)
    assert service.taken == batch
    assert [len(each["samples"]) for each in posts(service)][:3] == [16, 8, 4]


def test_a_proxy_that_finds_a_batch_too_large_gets_smaller_ones(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.2")
    until(lambda: len(service.requests) > 0)
    batch = [sample(1), sample(2)]
    service.canned += [(413, {}, b"<html>413 Request Entity Too Large</html>")]
    send(agent, *batch)
    agent.until("spooled_samples", 0)
    assert service.taken == batch
    assert [len(each["samples"]) for each in posts(service)][:2] == [2, 1]
    service.canned += [(413, {}, b"<html>413 Request Entity Too Large</html>")]
    send(agent, sample(3))
    until(lambda: len(service.taken) == 3, "a single sample was given up on the word of a proxy")


def test_a_sample_that_the_service_will_never_take_is_given_up_alone(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.2")
    until(lambda: len(service.requests) > 0)
    service.canned.append((422, {}, problem("invalid-body")))
    send(agent, sample(1))
    agent.until("rejected_samples_total/invalid-body", 1)
    send(agent, sample(2))
    agent.until("spooled_samples", 0)
    assert [each["power"] for each in service.taken] == [2.0]


def test_retry_after_is_honoured(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.05")
    until(lambda: len(service.requests) > 0)
    service.canned.append((503, {"retry-after": "3"}, problem("overloaded")))
    send(agent, sample(1))
    until(lambda: bool(posts(service)))
    began = time.monotonic()
    agent.until("spooled_samples", 0)
    assert time.monotonic() - began > 2.5
    assert len(service.taken) == 1


def test_thinning_keeps_what_tells_of_trouble(start: Start, service: Clocked) -> None:
    agent = start("--linger", "0.05", "--thin", "10")
    states = [(0, "healthy", 0), (2, "healthy", 0), (3, "degraded", 0), (4, "degraded", 0), (5, "degraded", 2)]
    states += [(6, "degraded", 2), (7, "degraded", 0), (8, "degraded", 0), (20, "degraded", 0)]
    for number, health, faults in states:
        assert send(agent, sample(number, health_state=health, faults=faults, power=number)).json()["accepted"] == 1
    agent.until("spooled_samples", 0)
    assert [each["power"] for each in service.taken] == [0, 3, 5, 6, 7, 20]
    assert agent.figures()["dropped_samples_total/thinned"] == 3


def test_an_atomic_batch_is_left_to_the_service(start: Start, service: Clocked) -> None:
    agent = start()
    answer = agent.client.post("/v1/samples", json={"mode": "atomic", "samples": [sample(1)]})
    assert (answer.status_code, len(service.taken)) == (200, 1)
    service.die()
    answer = agent.client.post("/v1/samples", json={"mode": "atomic", "samples": [sample(2)]})
    assert problem_of(answer) == "overloaded"


def test_a_stream_of_the_service_comes_through_event_by_event(tmp_path: Path) -> None:
    goes_on = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    head = connection.recv(65536)
                    if not head.startswith(b"GET /v1/graph/events?detail=domains HTTP"):
                        continue
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
                    goes_on.wait(PATIENCE_S)
                    connection.sendall(b"data: 2\n\n")
                    return

        threading.Thread(target=serve, daemon=True).start()
        agent = AgentProcess(f"http://127.0.0.1:{port}", tmp_path / "spool.db")
        try:
            agent.start()
            with agent.client.stream("GET", "/v1/graph/events", params={"detail": "domains"}) as answer:
                assert answer.headers["content-type"] == "text/event-stream"
                events = answer.iter_text()
                assert next(events) == "data: 1\n\n"
                goes_on.set()
                assert next(events) == "data: 2\n\n"
        finally:
            agent.close()


@pytest.mark.parametrize("dies", [False, True])
def test_an_open_stream_ends_with_the_service_and_with_the_agent_and_no_traceback(tmp_path: Path, dies: bool) -> None:
    dead = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    if not connection.recv(65536).startswith(b"GET /v1/graph/events"):
                        continue
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                    connection.sendall(head + b"9\r\ndata: 1\n\n\r\n")
                    dead.wait(PATIENCE_S)
                    return

        threading.Thread(target=serve, daemon=True).start()
        agent = AgentProcess(f"http://127.0.0.1:{port}", tmp_path / "spool.db", "--drain", "0")
        try:
            agent.start()
            assert agent.process is not None
            with agent.client.stream("GET", "/v1/graph/events") as answer:
                events = answer.iter_text()
                assert next(events) == "data: 1\n\n"
                if dies:
                    dead.set()
                else:
                    agent.process.send_signal(signal.SIGTERM)
                assert list(events) == []
            if dies:
                agent.process.send_signal(signal.SIGTERM)
            assert agent.process.wait(PATIENCE_S) == 0
        finally:
            dead.set()
            agent.close()
    said = agent.log.read_text("utf-8")
    assert "Traceback" not in said, said
    assert "Cancel" not in said, "it waited for the stream"
    assert said.count("broke off its answer to GET /v1/graph/events") == dies


def test_the_declaration_is_the_services_with_what_the_aggregator_promises(start: Start, service: Clocked) -> None:
    agent = start("--durability", "host")
    declared = agent.client.get("/v1/conformance").json()
    assert schema.errors("Declaration", declared, reader=True) == []
    assert (declared["durability"], declared["limits"]["max_batch"]) == ("host", service.max_batch)
    assert declared["implementation"]["name"] == "recording"
    assert send(agent, sample(1)).json()["durability"] == "host"


def test_senders_without_a_token_are_turned_away_and_the_service_sees_the_agents_own(
    start: Start, service: Clocked
) -> None:
    agent = start("--sender-token", "inner", "--token", "outer")
    assert problem_of(send(agent, sample(1))) == "unauthorised"
    assert problem_of(agent.client.get("/v1/nodes/n-1")) == "unauthorised"
    agent.client.headers["authorization"] = "Bearer inner"
    assert send(agent, sample(1)).status_code == 200
    assert agent.client.get("/v1/nodes/n-1").status_code == 200
    until(lambda: bool(service.taken))
    assert set(service.tokens[-2:]) == {"Bearer outer"}


def test_a_senders_token_goes_no_further(start: Start, service: Clocked) -> None:
    agent = start("--sender-token", "inner,other")
    service.tokens.clear()
    assert agent.client.get("/v1/nodes/n-1", headers={"authorization": "Bearer other"}).status_code == 200
    assert set(service.tokens) == {None}


@pytest.mark.parametrize("path", ["/v1/%2e%2e/x", "/%2E./x", "/v1/nodes/..%2f..%2fx", "/v1/%2e/nodes", "/v1/..%5cx"])
def test_no_path_leads_out_of_the_service(shared_agent: AgentProcess, path: str) -> None:
    with socket.create_connection(("127.0.0.1", shared_agent.port)) as plain:
        plain.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: plain.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"not-found" in answer


def test_the_collector_works_through_it_and_survives_an_outage(start: Start, service: Clocked) -> None:
    service.resources.clear()
    agent = start("--linger", "0.05")
    arguments = ("--url", agent.url, "--domain", "domain", "--node", "here", "--period", "0.1", "--no-probe")
    process = subprocess.Popen(
        [sys.executable, "-c", "from kuayu.cli import main; main()", "collect", *arguments],
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until(lambda: len(service.taken) > 4)
        service.die()
        until(lambda: agent.figures()["spooled_samples"] > 4)
        service.start()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0, output
    agent.until("spooled_samples", 0)
    assert f"taken {len(service.taken)}" in output.splitlines()[-1]
    assert "/v1/nodes/here" in service.resources


def test_the_command_says_what_is_wrong_without_a_traceback(start: Start, service: Clocked, tmp_path: Path) -> None:
    start(spool="taken.db")
    start(spool="other.db").stop()
    (tmp_path / "text.db").write_text("this is a letter and not a database" * 100, "utf-8")
    own = free_port()
    good = {"--url": service.url, "--domain": "domain", "--spool": str(tmp_path / "new.db"), "--port": "0"}
    for change, words in (
        ({"--spool": str(tmp_path / "taken.db")}, "another agent has the spool"),
        ({"--spool": str(tmp_path / "other.db"), "--domain": "another"}, "holds samples of the domain domain"),
        ({"--spool": str(tmp_path / "text.db")}, "does not open as a spool"),
        ({"--spool": str(tmp_path / "no" / "folder.db")}, "cannot write"),
        ({"--url": "localhost:8080"}, "http://HOST:PORT"),
        ({"--url": "http://"}, "http://HOST:PORT"),
        ({"--url": "http://localhost:99999"}, "http://HOST:PORT"),
        ({"--url": "http://.."}, "http://HOST:PORT"),
        ({"--url": f"http://localhost:{own}", "--port": str(own)}, "the agent itself"),
        ({"--spool": "."}, "is no file"),
        ({"--spool": ""}, "is no file"),
        ({"--spool": "/"}, "is no file"),
        ({"--host": ".."}, "cannot listen"),
        ({"--thin": "inf"}, "is not a valid time"),
        ({"--drain": "inf"}, "is not a valid time"),
        ({"--token": "é"}, "not a bearer token"),
        ({"--sender-token": ""}, "is blank"),
        ({"--domain": "a b"}, "not a valid identifier"),
        ({"--spool-limit": "12 parsecs"}, "2GiB"),
        ({"--log-level": "loud"}, "debug"),
        ({"--port": service.url.rpartition(":")[2]}, "cannot listen"),
    ):
        arguments = [word for pair in (good | change).items() for word in pair]
        done = run("agent", *arguments, timeout=PATIENCE_S)
        said = done.stdout + done.stderr
        assert done.returncode != 0, said
        assert "Traceback" not in said
        assert words in " ".join(said.split()), said
        assert "hint" in said


def test_starting_it_imports_nothing_heavy() -> None:
    code = "import sys, kuayu.engine.agent.app; print({'torch', 'scipy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
