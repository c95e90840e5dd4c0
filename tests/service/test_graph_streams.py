"""Streams of changes: broken off and resumed, overtaken, expired, too many, and when the service ends."""

import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from urllib.parse import urlsplit

import httpx
import pytest
from commands import run, running
from service.conftest import PATIENCE, Service, StartService, instant, problem
from service.graph_reader import Reader, applied, event_id, parts, snapshot, states, until
from service.test_graph import put_domains, put_node, report

from kuayu.client import Client
from kuayu.client.connection import read_events
from kuayu.picture import GraphPicture
from kuayu_schemas.models import GraphChange, ResourceGraph

NOBODY = "0123456789abcdef:7"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    database = f"sqlite:///{tmp_path_factory.mktemp('streams') / 'kuayu.db'}"
    with closing(Service(database, "--graph-changes", "200")) as service:
        service.start()
        put_domains(service, "a", "b")
        yield service


COUNT = count(1)


def change_often(service: Service, times: int) -> None:
    """Change the graph so often."""
    for number in islice(COUNT, times):
        put_node(service, f"n{number % 5}", "ab"[number % 2], number % 11)


def test_a_stream_broken_off_at_any_time_goes_on_without_loss_or_repetition(serving: Service) -> None:
    chance = random.Random(11)
    first = snapshot(serving.client)
    with Reader(serving.client, event_id(first)) as whole:
        got: list[str] = []
        last = event_id(first)
        for _ in range(8):
            with Reader(serving.client, last) as piece:
                change_often(serving, 5)
                time.sleep(chance.uniform(0, 0.1))
            got += [event.id for event in piece.events]
            last = got[-1] if got else last
        put_node(serving, "end", "a", 7)
        end = event_id(snapshot(serving.client))
        with Reader(serving.client, last) as piece:
            piece.wait_for(end)
        got += [event.id for event in piece.events]
        whole.wait_for(end)
        assert got == [event.id for event in whole.events][: len(got)]
        assert len(got) == len(set(got)) == 41


def test_an_event_that_was_left_out_of_a_narrower_stream_is_one_to_resume_from(serving: Service) -> None:
    put_node(serving, "other", "b", 1)
    elsewhere = event_id(snapshot(serving.client))
    put_node(serving, "other", "b", 2)
    put_node(serving, "mine", "a", 1)
    with Reader(serving.client, elsewhere, domain="a") as reader:
        changes = reader.wait_for(event_id(snapshot(serving.client)))
    assert [[node["id"] for node in change["nodes"]] for change in changes] == [["mine"]]


def test_events_that_are_not_held_are_expired(serving: Service) -> None:
    old = event_id(snapshot(serving.client))
    epoch, number = old.split(":")
    change_often(serving, 210)
    now = snapshot(serving.client)
    ahead = f"{epoch}:{now['revision']['number'] + 1_000}"
    for last in (old, f"{epoch}:0", ahead, NOBODY, f"{epoch}x:{number}"):
        assert problem(serving.client.get("/v1/graph/events", headers={"Last-Event-ID": last})) == "revision-expired"
    with Reader(serving.client, f"{epoch}:{now['revision']['number'] - 150}") as reader:
        reader.wait_for(event_id(now))
    with Reader(serving.client, event_id(now)) as reader:
        put_node(serving, "after", "a", 3)
        (change,) = reader.wait_for(event_id(snapshot(serving.client)))
        assert applied(parts(now), change) == parts(snapshot(serving.client))


def test_a_reader_of_a_domain_learns_that_it_is_gone(serving: Service) -> None:
    put_domains(serving, "short")
    before = event_id(snapshot(serving.client))
    with Reader(serving.client, before, domain="short") as reader:
        serving.client.delete("/v1/domains/short").raise_for_status()
        (change,) = reader.wait_for(event_id(snapshot(serving.client)))
        assert change["gone"] == [{"kind": "domain", "id": "short"}]
    with Reader(serving.client, before, domain="short") as reader:
        assert len(reader.wait_for(event_id(change))) == 1
    late = serving.client.get(
        "/v1/graph/events", params={"domain": "short"}, headers={"Last-Event-ID": event_id(change)}
    )
    assert problem(late) == "not-found"


@pytest.mark.slow
def test_a_reader_that_takes_nothing_is_let_go_and_resumes_and_others_do_not_wait_for_it(
    start_service: StartService,
) -> None:
    service = start_service("--graph-changes", "100000")
    put_domains(service, "a")
    # Long names of many nodes make changes large; the readers' buffers in the kernel are kept small.
    wide = "w" * 100
    first = snapshot(service.client)
    at = urlsplit(service.url)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((at.hostname, at.port))
        slow.sendall(
            b"GET /v1/graph/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: %s\r\n\r\n" % event_id(first).encode()
        )
        with Reader(service.client, event_id(first)) as quick:
            _register_many(service, f"{wide}-{{}}", 600)
            samples = [
                {"subject": f"{wide}-{number}", "subject_kind": "node", "health_state": "faulty"}
                for number in range(600)
            ]
            deadline = time.monotonic() + 3 * PATIENCE
            while _readers(service) > 1:
                assert time.monotonic() < deadline
                for state in ("faulty", "offline"):
                    service.send(*(one | {"health_state": state, "observed_at": instant()} for one in samples))
                    time.sleep(0.3)
            before = event_id(snapshot(service.client))
            quick.wait_for(before)
        # What it had been sent before it was let go is whole events and the beginning of one.
        slow.settimeout(PATIENCE)
        taken = b""
        while part := slow.recv(1 << 20):
            taken += part
    got = list(read_events([re.sub(rb"\r\n[0-9a-f]+\r\n", b"", taken)]))
    assert all(event.type == "change" for event in got)
    with Reader(service.client, got[-1].id) as again:
        again.wait_for(before)
    everything = [event.id for event in quick.events]
    assert [event.id for event in (*got, *again.events)][: len(everything)] == everything


def _register_many(service: Service, pattern: str, number: int) -> None:
    for each in range(number):
        put_node(service, pattern.format(each), "a", 0)


def _readers(service: Service) -> float:
    page = service.client.get("/metrics").text
    return next(float(line.split()[1]) for line in page.splitlines() if line.startswith("kuayu_graph_subscribers "))


def test_readers_that_leave_are_forgotten(serving: Service) -> None:
    for _ in range(3):
        with Reader(serving.client), Reader(serving.client, domain="a"):
            assert _readers(serving) >= 2
    deadline = time.monotonic() + PATIENCE
    while _readers(serving):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_more_readers_than_the_service_takes_are_asked_to_come_later(start_service: StartService) -> None:
    service = start_service("--max-streams", "2")
    with Reader(service.client), Reader(service.client):
        refused = service.client.get("/v1/graph/events")
        assert problem(refused) == "overloaded"
        assert int(refused.headers["retry-after"]) > 0
        assert service.client.get("/v1/graph").status_code == 200
    with Reader(service.client):
        pass


def test_a_tenant_has_half_of_the_readers(start_service: StartService) -> None:
    service = start_service("--max-streams", "2", "--token", "red=of-red", "--token", "blue=of-blue")
    with service.as_tenant("of-red") as red, service.as_tenant("of-blue") as blue, Reader(red):
        assert problem(red.get("/v1/graph/events")) == "overloaded"
        with Reader(blue):
            assert problem(blue.get("/v1/graph/events")) == "overloaded"


@pytest.mark.slow
def test_a_service_that_has_nothing_to_say_says_so(serving: Service) -> None:
    with httpx.stream("GET", f"{serving.url}/v1/graph/events", timeout=PATIENCE) as response:
        chunks = response.iter_bytes()
        next(chunks)
        began = time.monotonic()
        assert next(chunks).startswith(b":")
        assert 5 < time.monotonic() - began < 15


def test_sigterm_ends_streams_at_once_and_in_order(start_service: StartService) -> None:
    service = start_service()
    put_domains(service, "a")
    with (
        Reader(service.client) as reader,
        Reader(service.client, event_id(snapshot(service.client)), domain="a") as other,
    ):
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < 8  # the service would wait 10 s for readers that do not end
        assert reader.ended.wait(PATIENCE)
        assert other.ended.wait(PATIENCE)
    assert reader.failure is None
    assert other.failure is None


def test_after_kill_9_states_come_back_from_the_database_and_streams_begin_anew(start_service: StartService) -> None:
    service = start_service()
    put_domains(service, "a")
    for name in ("n1", "n2"):
        put_node(service, name, "a")
    service.put("/v1/links/l", {"id": "l", "source": "a", "destination": "a"}).raise_for_status()
    report(service, "n1", "faulty")
    sample = {"subject": "l", "subject_kind": "link", "observed_at": instant(), "packet_loss": 1}
    service.send(sample).raise_for_status()
    before = until(
        service.client, lambda found: states(found)["n1"] == "faulty" and found["links"][0]["state"] == "down"
    )
    with Reader(service.client, event_id(before)) as reader:
        service.stop(signal.SIGKILL)
        assert reader.ended.wait(PATIENCE)
    service.start()
    report(service, "n2", "offline")
    expired = service.client.get("/v1/graph/events", headers={"Last-Event-ID": event_id(before)})
    assert problem(expired) == "revision-expired"
    assert problem(service.client.get("/v1/graph/patch", params={"base": before["digest"]})) == "unknown-base"
    after = until(service.client, lambda found: states(found) == {"n1": "faulty", "n2": "offline"})
    assert after["revision"]["epoch"] != before["revision"]["epoch"]
    assert until(service.client, lambda found: found["links"][0]["state"] == "down")


def test_the_client_follows_over_a_broken_connection_and_over_a_restart(start_service: StartService) -> None:
    service = start_service()
    put_domains(service, "a")
    picture = GraphPicture()
    kinds: list[type[ResourceGraph | GraphChange]] = []

    def see(wanted: str) -> None:
        for each in news:
            kinds.append(type(each))
            picture.take(each)
            if wanted in picture.nodes:
                return

    with Client(service.url, timeout_s=PATIENCE) as client:
        put_node(service, "n1", "a")
        news = client.follow_graph()
        see("n1")
        put_node(service, "n2", "a")
        see("n2")
        assert kinds == [ResourceGraph, GraphChange]
        service.stop(signal.SIGKILL)
        service.start()
        put_node(service, "n3", "a")
        see("n3")
        assert kinds.count(ResourceGraph) == 2
        assert set(picture.nodes) == {"n1", "n2", "n3"}
        assert picture.domains["a"].nodes.unknown == 3
        graph = client.graph()
        assert graph.revision == picture.revision
        assert client.graph(nodes=False, domain="a").nodes == []
        assert client.graph_patch(graph.digest).operations == []


def test_the_command_shows_the_graph(serving: Service) -> None:
    put_node(serving, "shown", "b", 2)
    report(serving, "shown", "faulty")
    until(serving.client, lambda found: states(found)["shown"] == "faulty")

    def said(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run("graph", *arguments, timeout=PATIENCE, COLUMNS="100")

    everything = said("--url", serving.url)
    assert everything.returncode == 0, everything.stderr
    assert "straggling" in everything.stdout
    assert "shown" not in everything.stdout
    one = said("--url", serving.url, "--domain", "b")
    assert [line for line in one.stdout.splitlines() if line.startswith("shown") and "faulty" in line]
    found = ResourceGraph.model_validate_json(said("--url", serving.url, "--json").stdout)
    assert "shown" in {node.id for node in found.nodes}
    for arguments, cause in (
        (("--url", serving.url, "--domain", "nowhere"), "no domain 'nowhere'"),
        (("--url", "http://127.0.0.1:9"), "no answer"),
        (("--url", "ftp://x"), "is not an http or https URL"),
    ):
        failed = said(*arguments)
        assert failed.returncode > 0
        assert cause in " ".join(failed.stderr.split())
        assert "hint" in failed.stderr
        assert "Traceback" not in failed.stderr


def test_the_command_follows_the_graph(serving: Service) -> None:
    with running("graph", "--url", serving.url, "--domain", "a", "--follow") as process:
        deadline = time.monotonic() + PATIENCE
        while not _readers(serving):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        put_node(serving, "seen", "a")
        report(serving, "seen", "faulty")
        while "node seen: unknown → faulty" not in process.stdout.readline():
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
