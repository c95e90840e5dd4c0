"""A reader of the resource graph that keeps a ledger: snapshots, events, and what they add up to."""

import contextlib
import socket
import threading
import time
from typing import Any, Self

import httpx
import orjson
from service.conftest import PATIENCE, JsonObject

from kuayu.client.connection import Event, read_events
from kuayu.perception.graph import MEMBERS
from kuayu_schemas import schema

ARRAYS = tuple(MEMBERS.values())


def parts(graph: JsonObject) -> JsonObject:
    """What the digest of a graph is about."""
    return {member: graph[member] for member in ARRAYS}


def applied(graph: JsonObject, change: JsonObject) -> JsonObject:
    """What a snapshot and a change make together."""
    result: JsonObject = {}
    for kind, member in MEMBERS.items():
        held = {vertex["id"]: vertex for vertex in graph[member]}
        for vertex in change["gone"]:
            if vertex["kind"] == kind:
                del held[vertex["id"]]
        held.update({vertex["id"]: vertex for vertex in change[member]})
        result[member] = [held[name] for name in sorted(held)]
    return result


def event_id(graph: JsonObject) -> str:
    """The event after which a snapshot stands."""
    return f"{graph['revision']['epoch']}:{graph['revision']['number']}"


def snapshot(client: httpx.Client, **query: str) -> JsonObject:
    """A snapshot that keeps to the schema, and whose digest is its own."""
    found: JsonObject = client.get("/v1/graph", params=query).raise_for_status().json()
    assert schema.errors("ResourceGraph", found, reader=True) == []
    assert found["digest"] == schema.digest(parts(found))
    return found


def until(client: httpx.Client, wanted: Any, **query: str) -> JsonObject:
    """The first snapshot of which something holds."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = snapshot(client, **query)
        if wanted(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def states(graph: JsonObject) -> dict[str, str]:
    """State of each node."""
    return {node["id"]: node["state"] for node in graph["nodes"]}


class Reader:
    """Follows a stream, as whoever a client speaks for, in a thread of its own until it ends or is left.

    Attributes:
        path: Where the stream is.
    """

    path = "/v1/graph/events"

    def __init__(self, client: httpx.Client, last: str | None = None, **query: str) -> None:
        self.events: list[Event] = []
        self.headers: httpx.Headers = httpx.Headers()
        self.ended = threading.Event()
        self.failure: Exception | None = None
        self._headers = {} if last is None else {"Last-Event-ID": last}
        self._query = query
        self._client = httpx.Client(base_url=client.base_url, headers=client.headers, timeout=PATIENCE)
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._opened.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Break the connection off."""
        with contextlib.suppress(OSError):  # the service may have ended it
            self._response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self._client.close()

    def changes(self) -> list[JsonObject]:
        """What came so far; each keeps to the schema, and its identifier is its revision."""
        found = []
        for event in list(self.events):
            change = orjson.loads(event.data)
            assert event.type == "change"
            assert schema.errors("GraphChange", change, reader=True) == []
            assert event.id == event_id(change)
            assert any(change[member] for member in (*ARRAYS, "gone"))
            found.append(change)
        return found

    def wait_for(self, last: str) -> list[JsonObject]:
        """Changes up to a revision, given as the identifier of its event."""
        deadline = time.monotonic() + PATIENCE
        while not any(event.id == last for event in list(self.events)):
            assert time.monotonic() < deadline, (last, [event.id for event in self.events])
            time.sleep(0.02)
        found = self.changes()
        return found[: 1 + next(index for index, change in enumerate(found) if event_id(change) == last)]

    def _read(self) -> None:
        with self._client.stream("GET", self.path, params=self._query, headers=self._headers) as response:
            self._response = response
            self.headers = response.headers
            try:
                response.raise_for_status()
                chunks = response.iter_bytes()
                next(chunks)  # a comment, by which the reader knows that it is one
                self._opened.set()
                for event in read_events(chunks):
                    self.events.append(event)
            except (httpx.HTTPError, httpx.StreamError, OSError) as error:
                self.failure = error
            finally:
                self.ended.set()
                self._opened.set()
