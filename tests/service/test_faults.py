"""Heartbeats, log lines and faults over HTTP: as nodes, domains and readers meet them."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from service.conftest import JsonObject, Service, StartService, instant, problem
from service.graph_reader import event_id
from service.herd import FaultReader, Herd, actions, answer, faults, log, wait_for_faults

from kuayu_schemas import schema

REFUSED: JsonObject = {
    "type": "urn:kuayu:problem:no-capacity",
    "title": "No capacity",
    "status": 409,
    "retryable": False,
}


def beat(node: str, number: int = 1, **members: Any) -> JsonObject:
    return {"node": node, "number": number, "sent_at": instant(), **members}


def register(service: Service, domain: str, *nodes: str, devices: int = 8) -> None:
    for node in nodes:
        service.register(node, devices, domain)


@contextmanager
def living(service: Service, domain: str, *nodes: str, devices: int = 8) -> Iterator[httpx.Client]:
    """Nodes that are registered and beat meanwhile."""
    register(service, domain, *nodes, devices=devices)
    with Herd(service, *nodes):
        yield service.client


def of(domain: str, found: list[JsonObject]) -> list[JsonObject]:
    """Faults of a domain, out of those of all whom a service is shared with."""
    return [fault for fault in found if fault.get("domain") == domain]


@pytest.mark.slow
def test_a_node_that_dies_is_fenced_once_and_released_when_it_is_back(start_service: StartService) -> None:
    service = start_service()
    register(service, "domain", "a", "b", "c")
    client = service.client
    with Herd(service, "a", "b", "c") as herd, FaultReader(client) as reader:
        herd.wait(8)
        assert faults(client) == []
        herd.silent.add("c")
        [fence] = actions(client, wait=20)
        [told] = faults(client, state="open")
        assert (told["kind"], told["node"], told["domain"]) == ("node_dead", "c", "domain")
        assert told["actions"] == [fence["id"]]
        assert (fence["kind"], fence["phase"], fence["domain"]) == ("fence", "commit", "domain")
        assert fence["nodes"] == [{"node": "c", "devices": 8}]
        assert fence["revision"] == told["revision"]

        undecided = answer(client, fence["id"], "unknown").raise_for_status().json()
        assert undecided == told
        assert actions(client) == [fence]
        for outcome in ("committed", "committed", "failed"):
            assert answer(client, fence["id"], outcome).raise_for_status().json() == told
            assert actions(client) == []

        herd.silent.discard("c")
        [release] = actions(client, wait=20)
        [cleared] = faults(client)
        assert (release["kind"], release["reservation"], release["nodes"]) == ("release", fence["id"], fence["nodes"])
        assert cleared["actions"] == [fence["id"], release["id"]]
        assert (cleared["id"], cleared["state"]) == (told["id"], "cleared")
        assert faults(client, state="open") == []
        refused = answer(client, release["id"], "refused", problem=REFUSED)
        assert refused.raise_for_status().json() == cleared
        assert actions(client) == []
        assert reader.wait_until(lambda found: len(found) > 1) == [told, cleared]


def test_what_a_log_tells_is_durable_when_the_line_is_answered(shared: Service) -> None:
    with living(shared, "logged", "log-1", "log-2") as client:
        taken = log(client, "log-1").raise_for_status().json()
        [failing] = faults(client, domain="logged")
        assert schema.errors("IntakeResult", taken) == []
        assert (taken["accepted"], taken["rejected"]) == (1, [])
        assert (failing["kind"], failing["node"], failing["code"]) == ("node_failing", "log-1", "xid.79")
        assert [action["nodes"] for action in actions(client, "logged")] == [[{"node": "log-1", "devices": 8}]]
        log(client, "log-2", "systemd[1]: Started Daily apt download activities.").raise_for_status()
        assert faults(client, domain="logged") == [failing]


def test_a_node_without_devices_is_fenced_as_one(shared: Service) -> None:
    with living(shared, "bare", "bare-1", devices=0) as client:
        log(client, "bare-1").raise_for_status()
        [fence] = actions(client, "bare")
        assert fence["nodes"] == [{"node": "bare-1", "devices": 1}]


def test_actions_of_allocations_and_faults_come_together_the_oldest_first(shared: Service) -> None:
    def reserve(name: str) -> None:
        shares = [{"domain": "both", "accelerator": "a800", "devices": 8}]
        body = {
            "id": name,
            "job": "job",
            "revision": {"epoch": "e", "number": 0},
            "placement": {"shares": shares, "split_mode": "none"},
            "patience": 300,
        }
        shared.put(f"/v1/allocations/{name}", body).raise_for_status()

    with living(shared, "both", "both-1", "both-2") as client:
        reserve("first")
        log(client, "both-1").raise_for_status()
        reserve("third")
        log(client, "both-2").raise_for_status()
        asked = actions(client, "both")
        about = [each["nodes"][0]["node"] if "nodes" in each else each["id"].partition(".")[0] for each in asked]
        assert about == ["first", "both-1", "third", "both-2"]
        prepared = {"phase": "prepare", "expires_at": instant(60)}
        held = answer(client, asked[0]["id"], "prepared", **prepared).raise_for_status().json()
        assert schema.errors("AllocationRecord", held) == []
        assert schema.errors("Fault", answer(client, asked[1]["id"]).raise_for_status().json()) == []
        left = {action["id"] for action in actions(client, "both")}
        assert {each["id"] for each in asked[2:]} <= left
        assert asked[1]["id"] not in left


def test_who_waits_for_actions_is_woken_by_a_fault(shared: Service) -> None:
    got: list[JsonObject] = []
    with living(shared, "waiting", "waits") as client:
        waiter = threading.Thread(target=lambda: got.extend(actions(client, "waiting", wait=25)))
        waiter.start()
        time.sleep(0.3)
        assert got == []
        log(client, "waits").raise_for_status()
        waiter.join(10)
    assert [action["kind"] for action in got] == ["fence"]


def test_an_answer_that_does_not_fit_what_was_asked_is_refused(shared: Service) -> None:
    with living(shared, "misfit", "misfit-1") as client:
        log(client, "misfit-1").raise_for_status()
        [fence] = actions(client, "misfit")
        assert problem(answer(client, fence["id"], phase="prepare")) == "invalid-body"
        assert problem(answer(client, fence["id"], phase="abort", outcome="aborted")) == "invalid-body"
        for outcome in ("prepared", "aborted", "expired"):
            assert problem(answer(client, fence["id"], outcome, expires_at=instant(60))) == "invalid-body"
        assert problem(answer(client, f"{fence['id']}x")) == "unknown-reference"
        assert actions(client, "misfit") == [fence]
        answer(client, fence["id"]).raise_for_status()
        assert actions(client, "misfit") == []


@pytest.mark.parametrize(
    ("path", "member", "item"),
    [
        ("/v1/heartbeats", "beats", {"number": 1, "sent_at": "2026-01-01T00:00:00Z"}),
        ("/v1/log-lines", "lines", {"logged_at": "2026-01-01T00:00:00Z", "text": "a: line"}),
    ],
)
def test_bad_items_are_named_and_the_others_taken(shared: Service, path: str, member: str, item: JsonObject) -> None:
    register(shared, "sorted", "sorted-1")
    good, stranger, broken = ({"node": node} | item for node in ("sorted-1", "stranger", "no name"))
    undated = good | {name: "2026-06-30T23:59:60Z" for name in ("sent_at", "logged_at") if name in good}

    def rejected(*items: Any) -> tuple[int, dict[int, str]]:
        result = shared.client.post(path, json={member: items}).raise_for_status().json()
        assert schema.errors("IntakeResult", result) == []
        problems = {each["index"]: each["problem"]["type"].rpartition(":")[2] for each in result["rejected"]}
        assert list(problems) == sorted(problems)
        return result["accepted"], problems

    assert rejected(good) == (1, {})
    assert rejected(stranger, good, broken, 7, good, {}, undated) == (
        2,
        {0: "unknown-reference", **dict.fromkeys((2, 3, 5, 6), "invalid-body")},
    )
    assert rejected(broken, stranger) == (0, {0: "invalid-body", 1: "unknown-reference"})
    most = 10_000
    assert rejected(*[good] * most) == (most, {})
    whole: list[Any] = [
        {member: [good] * (most + 1)},
        {member: []},
        {member: good},
        {},
        [good],
        {member: [good], "x": 1},
    ]
    for refused in whole:
        assert problem(shared.client.post(path, json=refused)) == "invalid-body"
    assert problem(shared.client.post(path, content=b"{", headers={"Content-Type": "application/json"})) == (
        "malformed-json"
    )


def test_faults_are_listed_in_pages_as_they_stood_and_narrowed_down(shared: Service) -> None:
    nodes = [f"page-{number}" for number in range(5)]
    with living(shared, "paged", *nodes[:3]) as client, living(shared, "paged-too", *nodes[3:]):
        for node in nodes[:4]:
            log(client, node).raise_for_status()
        before = faults(client, domain="paged")
        assert sorted(fault["node"] for fault in before) == nodes[:3]
        assert [fault["id"] for fault in before] == sorted(fault["id"] for fault in before)
        page = client.get("/v1/faults", params={"domain": "paged", "limit": 1}).json()
        cursor = page["next_cursor"]
        log(client, nodes[4]).raise_for_status()
        assert client.delete(f"/v1/nodes/{nodes[2]}").status_code == 204
        [cleared] = wait_for_faults(client, (nodes[2], "cleared"), domain="paged", state="cleared")
        found = list(page["items"])
        while "next_cursor" in page:
            query = {"domain": "paged", "limit": 1, "cursor": page["next_cursor"]}
            page = client.get("/v1/faults", params=query).raise_for_status().json()
            found += page["items"]
        assert found == before
        assert faults(client, domain="paged") == [*before[:2], cleared]
        assert faults(client, domain="paged", state="open") == before[:2]
        assert sorted(fault["node"] for fault in faults(client, domain="paged-too")) == nodes[3:]
        others = client.get("/v1/faults", params={"domain": "paged-too", "limit": 1, "cursor": cursor})
        assert problem(others) == "invalid-cursor"


def test_a_stream_goes_on_after_the_event_that_is_named(shared: Service) -> None:
    nodes = [f"stream-{number}" for number in range(3)]
    with living(shared, "streamed", *nodes) as client, FaultReader(client) as reader:
        for node in nodes:
            log(client, node).raise_for_status()
        found = of("streamed", reader.wait_until(lambda found: len(of("streamed", found)) == 3))
        assert [fault["node"] for fault in found] == nodes
        numbers = [fault["revision"]["number"] for fault in found]
        assert numbers == sorted(set(numbers))
        with FaultReader(client, event_id(found[0])) as again:
            resumed = again.wait_until(lambda found: len(of("streamed", found)) == 2)
            assert of("streamed", resumed) == found[1:]
        epoch, number = found[-1]["revision"]["epoch"], numbers[-1]
        for unknown in (f"another:{number}", f"{epoch}:{number + 1_000}"):
            refused = client.get("/v1/faults/events", headers={"Last-Event-ID": unknown})
            assert problem(refused) == "revision-expired"


@pytest.mark.slow
def test_what_is_deleted_is_not_at_fault(start_service: StartService) -> None:
    service = start_service()
    register(service, "domain", "a", "b", "living", "failing")
    client = service.client
    with Herd(service, "a", "b") as herd, Herd(service, "living", "failing") as others:
        herd.wait(8)
        log(client, "failing").raise_for_status()
        [fault] = faults(client)
        for node in ("living", "failing"):
            assert client.delete(f"/v1/nodes/{node}").status_code == 204
        others.silent.update(("living", "failing"))
        [cleared] = wait_for_faults(client, ("failing", "cleared"))
        assert cleared["id"] == fault["id"]
        assert [action["kind"] for action in actions(client)] == ["fence", "release"]
        herd.wait(12)
        assert faults(client) == [cleared]


@pytest.mark.slow
def test_a_service_that_was_stopped_does_not_take_its_own_silence_for_that_of_nodes(
    start_service: StartService,
) -> None:
    service = start_service()
    register(service, "domain", "a", "b", "c")
    with Herd(service, "a", "b", "c") as herd:
        herd.wait(10)
        assert service.process is not None
        service.process.send_signal(signal.SIGSTOP)
        time.sleep(6)
        service.process.send_signal(signal.SIGCONT)
        herd.wait(8)
        assert faults(service.client) == []
        herd.silent.add("b")
        wait_for_faults(service.client, ("b", "open"))


def test_tenants_do_not_see_each_others_faults(start_service: StartService) -> None:
    service = start_service("--token", "one=1", "--token", "two=2")
    one, two = service.as_tenant("1"), service.as_tenant("2")
    for client in (one, two):
        client.put("/v1/domains/domain", json={"id": "domain"}).raise_for_status()
        client.put("/v1/nodes/node", json={"id": "node", "domain": "domain"}).raise_for_status()
        client.post("/v1/heartbeats", json={"beats": [beat("node")]}).raise_for_status()
    with FaultReader(one) as ours, FaultReader(two) as theirs:
        log(one, "node").raise_for_status()
        [fault] = faults(one)
        assert faults(two) == actions(two) == []
        [fence] = actions(one)
        assert problem(answer(two, fence["id"])) == "unknown-reference"
        log(two, "node").raise_for_status()
        [another] = theirs.wait_until(bool)
        assert ours.wait_until(bool) == [fault]
        assert another["node"] == "node"
    one.close()
    two.close()


def test_the_service_tells_how_it_does(shared: Service) -> None:
    with living(shared, "counted", "counted-1") as client:
        client.post("/v1/heartbeats", json={"beats": [beat("nobody")]}).raise_for_status()
        log(client, "counted-1").raise_for_status()
        lines = (line.rpartition(" ") for line in client.get("/metrics").text.splitlines())
    figures = {name: value for name, _, value in lines}
    for name in (
        'kuayu_intake_total{item="beats",outcome="accepted"}',
        'kuayu_intake_total{item="beats",outcome="rejected"}',
        'kuayu_intake_total{item="lines",outcome="accepted"}',
        'kuayu_faults_total{kind="node_failing"}',
        'kuayu_open_faults{kind="node_failing"}',
        "kuayu_fault_look_seconds_count",
        "kuayu_fault_telling_seconds_count",
    ):
        assert float(figures[name]) >= 1, name
