"""Stories of the resource graph over HTTP: snapshots, patches and streams."""

import hashlib
import http.client
import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import jsonpatch
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from minimal_server.canonical import canonical, digest
from minimal_server.client import Client, ago, register, start, stop

PARTS = ("domains", "nodes", "links")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 2**53, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture
def client() -> Iterator[Client]:
    client = start()
    yield client
    stop(client)


class Stream:
    """Reads one stream of changes."""

    def __init__(self, client: Client, query: str = "", last: str | None = None) -> None:
        where = urlsplit(client.url)
        self.connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
        self.connection.request(
            "GET", f"/v1/graph/events{query}", headers={} if last is None else {"Last-Event-ID": last}
        )
        self.answer = self.connection.getresponse()

    def event(self) -> tuple[str, Any]:
        """Identifier and change of the next event."""
        fields: dict[str, str] = {}
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if not name and not value and fields:
                assert fields["event"] == "change"
                return fields["id"], json.loads(fields["data"])
            if name:
                fields[name] = value
        raise AssertionError("the stream has ended")

    def until(self, part: str, name: str) -> tuple[str, Any]:
        """The first event that holds a vertex."""
        while True:
            identifier, change = self.event()
            if name in {vertex["id"] for vertex in change[part]}:
                return identifier, change

    def close(self) -> None:
        """End it."""
        self.answer.close()
        self.connection.close()


def snapshot(client: Client, query: str = "") -> Any:
    status, graph, _ = client.ask("GET", f"/v1/graph{query}")
    assert status == 200
    return graph


def document(graph: Any) -> Any:
    return {part: graph[part] for part in PARTS}


def pair(client: Client) -> None:
    """Two domains with a node each, and a link."""
    register(client)
    register(client, "south", "rack-2")
    link = {"id": "ns", "source": "north", "destination": "south", "capacity": 1e10}
    assert client.ask("PUT", "/v1/links/ns", link)[0] == 201


@given(JSON)
def test_canonical_json_is_that_of_rfc_8785(value: Any) -> None:
    assert canonical(value).encode() == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_canonical_numbers_lead_back_to_themselves(value: float) -> None:
    assert math.isclose(float(canonical(value)), value, rel_tol=0, abs_tol=0)


def test_the_graph_holds_what_is_registered(client: Client) -> None:
    pair(client)
    graph = snapshot(client)
    assert {part: [vertex["id"] for vertex in graph[part]] for part in PARTS} == {
        "domains": ["north", "south"],
        "nodes": ["rack-1", "rack-2"],
        "links": ["ns"],
    }
    assert graph["digest"] == "sha256:" + hashlib.sha256(rfc8785.dumps(document(graph))).hexdigest()
    assert graph["domains"][0]["nodes"]["unknown"] == 1
    assert snapshot(client, "?detail=domains")["nodes"] == []
    of_north = snapshot(client, "?domain=north")
    assert [[vertex["id"] for vertex in of_north[part]] for part in PARTS] == [["north"], ["rack-1"], ["ns"]]
    assert client.ask("GET", "/v1/graph?domain=east")[0] == 404
    assert client.ask("GET", "/v1/graph?detail=nodes")[0] == 400


def test_a_link_is_shown_as_it_was_measured(client: Client) -> None:
    pair(client)
    assert snapshot(client)["links"][0] == {
        "id": "ns",
        "source": "north",
        "destination": "south",
        "state": "unknown",
        "provenance": "unknown",
    }
    reports: list[dict[str, float]] = [
        {"inter_domain_bandwidth": 9e9},
        {"packet_loss": 0.25},
        {"packet_loss": 1},
        {"packet_loss": 0, "inter_domain_bandwidth": 4e9},
    ]
    shown = []
    for seconds, measures in enumerate(reports):
        sample = {"subject": "ns", "subject_kind": "link", "observed_at": ago(10 - seconds), **measures}
        assert client.ask("POST", "/v1/samples", {"mode": "atomic", "samples": [sample]})[0] == 200
        link = snapshot(client)["links"][0]
        assert {name: link[name] for name in measures} == measures
        assert link["provenance"] == "measured"
        shown.append(link["state"])
    assert shown == ["up", "degraded", "down", "degraded"]


def test_patches_lead_from_each_snapshot_to_the_present_one(client: Client) -> None:
    pair(client)
    bases = [snapshot(client)]
    for name, domain in (("a", "north"), ("rack-1b", "south"), ("z", "north"), ("rack-1", "south")):
        client.ask("PUT", f"/v1/nodes/{name}", {"id": name, "domain": domain})
        bases.append(snapshot(client))
    for path in ("nodes/rack-2", "nodes/a", "links/ns"):
        assert client.ask("DELETE", f"/v1/{path}")[0] == 204
    for base in bases:
        _, patch, _ = client.ask("GET", f"/v1/graph/patch?base={base['digest']}")
        made = jsonpatch.apply_patch(document(base), patch["operations"])
        assert digest(made) == patch["result"] == snapshot(client)["digest"]
    assert client.ask("GET", f"/v1/graph/patch?base={digest('nothing')}")[0] == 409
    assert client.ask("GET", "/v1/graph/patch?base=sha256:0")[0] == client.ask("GET", "/v1/graph/patch")[0] == 400


def test_others_are_answered_while_streams_are_open_and_what_they_change_is_told(client: Client) -> None:
    streams = [Stream(client), Stream(client, "?detail=domains")]
    pair(client)
    for stream in streams:
        assert stream.answer.getheader("Content-Type") == "text/event-stream"
        identifier, change = stream.until("links", "ns")
        assert identifier == "{epoch}:{number}".format(**change["revision"])
        assert identifier.startswith(snapshot(client)["revision"]["epoch"])
        stream.close()


def test_a_stream_goes_on_behind_the_event_that_it_is_resumed_from(client: Client) -> None:
    register(client)
    first = snapshot(client)["revision"]
    for number in range(4):
        client.ask("PUT", f"/v1/nodes/n{number}", {"id": f"n{number}", "domain": "north"})
        snapshot(client)
    whole = Stream(client, last="{epoch}:{number}".format(**first))
    told = [whole.event() for _ in range(4)]
    for place, (identifier, _) in enumerate(told[:-1]):
        resumed = Stream(client, last=identifier)
        assert [resumed.event() for _ in told[place + 1 :]] == told[place + 1 :]
        resumed.close()
    whole.close()


def test_a_stream_cannot_be_resumed_from_what_is_not_held(client: Client) -> None:
    register(client)
    revision = snapshot(client)["revision"]
    epoch, number = revision["epoch"], revision["number"]
    for last, status in ((f"{epoch}:{number + 1}", 410), (f"x{epoch}:{number}", 410), ("yesterday", 400), ("", 400)):
        assert client.ask("GET", "/v1/graph/events", Last_Event_ID=last)[0] == status


def test_a_node_that_moves_is_gone_from_where_it_was(client: Client) -> None:
    pair(client)
    snapshot(client)
    north, south = Stream(client, "?domain=north"), Stream(client, "?domain=south")
    client.ask("PUT", "/v1/nodes/rack-1", {"id": "rack-1", "domain": "south"})
    assert north.event()[1]["gone"] == [{"kind": "node", "id": "rack-1"}]
    assert south.until("nodes", "rack-1")[1]["nodes"][0]["domain"] == "south"
    north.close()
    south.close()
