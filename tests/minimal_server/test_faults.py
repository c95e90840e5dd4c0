"""Stories of what is done about faults: fences, results, listings, and streams of changes."""

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minimal_server.client import SCHEMAS, Client, ago, register, start, stop
from minimal_server.core import LIMITS, Request
from minimal_server.ground import Ground
from minimal_server.service import MinimalServer

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus."


def changes(ground: Ground, behind: str | None = None, most: int = 100) -> list[Any]:
    """Faults as the stream tells them, from an event on."""
    service, headers = ground.service, {} if behind is None else {"last-event-id": behind}
    with service.lock:
        service.moment = service.now
        tenant = service.tenant("")
        count = service.docket(tenant).number
        answer = service.get_fault_events(Request(tenant, "GET", "/v1/faults/events", {}, headers, b""))
    first = int(behind.partition(":")[2]) if behind else count
    told: list[Any] = []
    stream = answer.body
    assert next(stream).startswith(b":")
    while len(told) < min(most, count - first):
        for block in next(stream).decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.splitlines())
            assert fields["event"] == "fault"
            told.append(json.loads(fields["data"]))
            assert fields["id"] == "{epoch}:{number}".format(**told[-1]["revision"])
    return told


def beginning(ground: Ground) -> str:
    return f"{ground.service.fault_epoch}:0"


def test_a_dead_node_is_fenced_once_and_given_back_when_it_is_alive() -> None:
    ground = Ground(north=4)
    ground.put_node("north-1", "north", devices=8)
    ground.go(5)
    ground.silent = {"north-1"}
    ground.go(4)
    (fence,) = ground.actions("north")
    (fault,) = ground.faults()
    assert (fence["kind"], fence["phase"], fence["domain"]) == ("fence", "commit", "north")
    assert fence["nodes"] == [{"node": "north-1", "devices": 8}]
    assert (fault["actions"], fence["revision"]) == ([fence["id"]], fault["revision"])
    answer = ground.answer(fence)
    assert (answer.status, answer.body) == (200, fault)
    assert ground.actions("north") == []
    ground.silent = set()
    ground.go(12)
    (release,) = ground.actions("north")
    assert (release["kind"], release["reservation"], release["nodes"]) == ("release", fence["id"], fence["nodes"])
    assert ground.answer(release).body["actions"] == [fence["id"], release["id"]]
    assert ground.actions("north") == []


def test_a_node_without_devices_is_fenced_with_one() -> None:
    ground = Ground(north=1)
    ground.go(1)
    ground.log("north-0", XID)
    assert ground.actions("north")[0]["nodes"] == [{"node": "north-0", "devices": 1}]


@pytest.mark.parametrize("outcome", ["committed", "failed", "refused"])
def test_every_answer_but_unknown_closes_an_action_and_a_repetition_changes_nothing(outcome: str) -> None:
    ground = Ground(north=2)
    ground.go(1)
    ground.log("north-1", XID)
    ground.log("north-0", XID)
    first, fence = ground.actions("north")
    before = ground.faults()
    fault = before[1]
    assert (ground.answer(fence, "unknown").body, ground.actions("north")) == (fault, [first, fence])
    assert ground.answer(fence, outcome).body == fault
    assert ground.actions("north") == [first]
    assert (ground.answer(fence, outcome).body, ground.answer(fence, "unknown").body) == (fault, fault)
    assert (ground.faults(), ground.actions("north")) == (before, [first])


def test_a_result_that_does_not_fit_is_refused_and_leaves_the_action_open() -> None:
    ground = Ground(north=1)
    ground.go(1)
    ground.log("north-0", XID)
    (fence,) = ground.actions("north")
    for outcome, phase, pointer in (
        ("prepared", "commit", "/outcome"),
        ("aborted", "commit", "/outcome"),
        ("expired", "commit", "/outcome"),
        ("committed", "prepare", "/phase"),
        ("unknown", "abort", "/phase"),
    ):
        answer = ground.answer(fence, outcome, phase)
        assert (answer.status, answer.body["errors"][0]["pointer"]) == (422, pointer)
    answer = ground.answer({"id": "nobody"})
    assert (answer.status, answer.body["type"]) == (422, "urn:kuayu:problem:unknown-reference")
    assert ground.actions("north") == [fence]


def test_a_fence_goes_where_the_node_was_and_is_given_back_there() -> None:
    ground = Ground(north=2, south=2)
    ground.go(2)
    ground.log("north-0", XID)
    ground.put_node("north-0", "south")
    ground.numbers["north-0"] = -1
    ground.go(5)
    assert [action["kind"] for action in ground.actions("north")] == ["fence", "release"]
    assert ground.actions("south") == []


def three(ground: Ground) -> None:
    """Three faults, of which the first is cleared."""
    ground.go(2)
    for node in ("north-0", "south-0", "north-1"):
        ground.log(node, XID)
    ground.numbers["north-0"] = -1
    ground.go(3)


def test_faults_are_listed_by_domain_and_state_and_page_by_page_at_one_revision() -> None:
    ground = Ground(north=3, south=3)
    three(ground)
    every = ground.faults()
    assert [fault["id"] for fault in every] == sorted(fault["id"] for fault in every)
    assert [fault["node"] for fault in ground.faults("?domain=north")] == ["north-0", "north-1"]
    assert [fault["node"] for fault in ground.faults("?domain=north&state=open")] == ["north-1"]
    assert ground.faults("?domain=nowhere") == []
    page = ground.ask("GET", "/v1/faults?limit=2").body
    assert ground.service.schema_errors("FaultPage", page) == []
    assert page["revision"] == {"epoch": ground.service.fault_epoch, "number": 4}
    ground.log("south-1", XID)
    rest = ground.ask("GET", f"/v1/faults?limit=2&cursor={page['next_cursor']}").body
    assert page["items"] + rest["items"] == every
    assert rest["revision"] == page["revision"]
    ground.service.pins.clear()
    expired = ground.ask("GET", f"/v1/faults?limit=2&cursor={page['next_cursor']}")
    assert expired.body["type"] == "urn:kuayu:problem:revision-expired"
    for query in ("?state=closed", "?domain=a/b", f"?limit={LIMITS['max_page'] + 1}"):
        assert ground.ask("GET", f"/v1/faults{query}").status == 400


def test_changes_of_faults_are_none_of_resources() -> None:
    ground = Ground(north=3, south=3)
    ground.go(1)
    before = ground.ask("GET", "/v1/conformance").body["revision"]
    three(ground)
    assert ground.ask("GET", "/v1/conformance").body["revision"] == before


def test_each_change_is_an_event_and_the_last_of_each_fault_is_what_is_listed() -> None:
    ground = Ground(north=3, south=3)
    three(ground)
    told = changes(ground, beginning(ground))
    assert [fault["revision"]["number"] for fault in told] == [1, 2, 3, 4]
    assert [fault["state"] for fault in told] == ["open", "open", "open", "cleared"]
    assert sorted({fault["id"]: fault for fault in told}.values(), key=lambda f: str(f["id"])) == ground.faults()
    second = "{epoch}:{number}".format(**told[1]["revision"])
    assert changes(ground, second) == told[2:]


def test_a_position_that_is_not_held_is_expired_and_what_is_none_is_refused() -> None:
    ground = Ground(north=3, south=3)
    three(ground)

    def problem(last: str) -> tuple[int, str]:
        headers = {"last-event-id": last}
        answer = ground.service.answer("GET", "/v1/faults/events", headers, b"")
        return answer.status, str(answer.body["type"]).rpartition(":")[2]

    assert problem(f"{ground.service.fault_epoch}:5") == (410, "revision-expired")
    assert problem("other:1") == (410, "revision-expired")
    assert problem("1") == (400, "invalid-parameter")
    ground.service.docket(ground.service.tenant("")).changes.popleft()
    assert problem(beginning(ground)) == (410, "revision-expired")
    assert len(changes(ground, f"{ground.service.fault_epoch}:1")) == 3


def test_what_was_cleared_long_ago_is_dropped_once_nothing_is_asked_for_because_of_it() -> None:
    ground = Ground(north=3, south=3)
    three(ground)
    fence, _, release = ground.actions("north")
    ground.answer(fence)
    ground.service.now += 3 * 3600 * 1000
    ground.log("south-1", XID)
    ground.numbers["south-1"] = -1
    ground.go(3)
    assert ground.told()[0] == ("node_failing", "south-0")
    assert len(ground.faults()) == 4
    assert (release["kind"], ground.answer(release).status) == ("release", 200)
    ground.log("south-2", XID)
    ground.numbers["south-2"] = -1
    ground.go(3)
    assert [fault["node"] for fault in ground.faults()] == ["south-0", "north-1", "south-1", "south-2"]
    assert ground.answer(release).status == 422


@pytest.fixture
def client() -> Iterator[Client]:
    client = start()
    register(client, "north", "rack-1")
    yield client
    stop(client)


def beat(client: Client, number: int, *nodes: str) -> None:
    beats = [{"node": node, "number": number, "sent_at": ago(0)} for node in nodes]
    assert client.ask("POST", "/v1/heartbeats", {"beats": beats})[1]["accepted"] == len(nodes)


def test_whoever_waits_for_actions_gets_a_fence_within_three_seconds_of_a_death(client: Client) -> None:
    for node in ("rack-2", "rack-3"):
        assert client.ask("PUT", f"/v1/nodes/{node}", {"id": node, "domain": "north"})[0] == 201
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.extend(client.ask("GET", "/v1/actions?domain=north&wait=9")[1]["items"])
    )
    for number in range(4):
        beat(client, number, "rack-1", "rack-2", "rack-3")
        time.sleep(0.5)
    waiting.start()
    for number in range(4, 14):
        beat(client, number, "rack-1", "rack-3")
        time.sleep(0.5)
        if found:
            break
    waiting.join()
    assert (found[0]["kind"], found[0]["nodes"]) == ("fence", [{"node": "rack-2", "devices": 1}])
    assert number <= 4 + 5


def test_faults_are_followed_over_http_as_they_come(client: Client) -> None:
    beat(client, 1, "rack-1")
    with urllib.request.urlopen(f"{client.url}/v1/faults/events", timeout=10) as stream:  # noqa: S310 - our own
        assert stream.headers["Content-Type"] == "text/event-stream"
        stream.readline(), stream.readline()
        line = {"node": "rack-1", "logged_at": ago(0), "text": XID}
        assert client.ask("POST", "/v1/log-lines", {"lines": [line]})[0] == 200
        lines = [stream.readline().decode().strip() for _ in range(4)]
    assert [line.partition(":")[0] for line in lines] == ["id", "event", "data", ""]
    fault = json.loads(lines[2].partition(": ")[2])
    assert client.ask("GET", "/v1/faults")[1]["items"] == [fault]


def test_neither_beats_nor_results_about_faults_are_kept_beyond_the_process(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    client = start("--journal", str(journal))
    register(client, "north", "rack-1")
    size = journal.stat().st_size
    beat(client, 1, "rack-1")
    line = {"node": "rack-1", "logged_at": ago(0), "text": XID}
    client.ask("POST", "/v1/log-lines", {"lines": [line]})
    (fence,) = client.ask("GET", "/v1/actions?domain=north")[1]["items"]
    result = {"action": fence["id"], "phase": "commit", "outcome": "committed", "at": ago(0)}
    assert client.ask("POST", "/v1/action-results", result)[0] == 200
    stop(client)
    assert journal.stat().st_size == size
    client = start("--journal", str(journal))
    assert client.ask("GET", "/v1/faults")[1]["items"] == []
    stop(client)


def test_tenants_do_not_see_each_others_faults() -> None:
    service = MinimalServer(SCHEMAS, {"1": "one", "2": "two"})

    def ask(token: str, method: str, path: str, body: Any = None) -> Any:
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        return service.answer(method, path, headers, json.dumps(body).encode()).body

    ask("1", "PUT", "/v1/domains/north", {"id": "north"})
    ask("1", "PUT", "/v1/nodes/rack", {"id": "rack", "domain": "north"})
    ask("1", "POST", "/v1/heartbeats", {"beats": [{"node": "rack", "number": 1, "sent_at": ago(0)}]})
    ask("1", "POST", "/v1/log-lines", {"lines": [{"node": "rack", "logged_at": ago(0), "text": XID}]})
    (action,) = ask("1", "GET", "/v1/actions?domain=north")["items"]
    assert len(ask("1", "GET", "/v1/faults")["items"]) == 1
    assert ask("2", "GET", "/v1/faults")["items"] == ask("2", "GET", "/v1/actions?domain=north")["items"] == []
    result = {"action": action["id"], "phase": "commit", "outcome": "committed", "at": ago(0)}
    assert ask("2", "POST", "/v1/action-results", result)["type"] == "urn:kuayu:problem:unknown-reference"
