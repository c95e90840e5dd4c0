"""Nodes that send heartbeats, who carries out what is asked because of them, and a reader of their faults."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import httpx
import orjson
from service.conftest import PATIENCE, JsonObject, Service, instant
from service.graph_reader import Reader, event_id

from kuayu_schemas import schema

BROKEN = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


class Herd:
    """Nodes that beat every half a second unless they are silent, also while the service is away.

    Attributes:
        silent: Nodes that do not beat now.
    """

    def __init__(self, service: Service, *nodes: str) -> None:
        self.silent: set[str] = set()
        self._numbers = dict.fromkeys(nodes, 0)
        self._client = httpx.Client(base_url=service.url, timeout=PATIENCE)
        self._ended = threading.Event()
        self._rounds = threading.Condition()
        self._round = 0
        self._thread = threading.Thread(target=self._beat)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(PATIENCE)
        self._client.close()

    def anew(self, node: str) -> None:
        """A node is started anew."""
        self._numbers[node] = 0
        self.silent.discard(node)

    def wait(self, rounds: int) -> None:
        """Wait until every node that is not silent has been heard so many times."""
        with self._rounds:
            until = self._round + rounds
            assert self._rounds.wait_for(lambda: self._round >= until, PATIENCE)

    def _beat(self) -> None:
        while not self._ended.is_set():
            beats = []
            for node in self._numbers.keys() - self.silent:
                self._numbers[node] += 1
                beats.append({"node": node, "number": self._numbers[node], "sent_at": instant()})
            with contextlib.suppress(httpx.TransportError):  # the service may be away
                if beats:
                    self._client.post("/v1/heartbeats", json={"beats": beats}).raise_for_status()
                with self._rounds:
                    self._round += 1
                    self._rounds.notify_all()
            self._ended.wait(0.5)


class FaultReader(Reader):
    """Follows faults."""

    path = "/v1/faults/events"

    def changes(self) -> list[JsonObject]:
        """Faults as they came to be; each keeps to the schema, and its identifier is its revision."""
        found = []
        for event in list(self.events):
            fault = orjson.loads(event.data)
            assert event.type == "fault"
            assert schema.errors("Fault", fault, reader=True) == []
            assert event.id == event_id(fault)
            found.append(fault)
        return found

    def wait_until(self, wanted: Callable[[list[JsonObject]], bool]) -> list[JsonObject]:
        """What came until something holds of it."""
        deadline = time.monotonic() + PATIENCE
        while not wanted(found := self.changes()):
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found


def faults(client: httpx.Client, **query: str) -> list[JsonObject]:
    """Faults as they are listed, page after page."""
    found: list[JsonObject] = []
    while True:
        page = client.get("/v1/faults", params=query).raise_for_status().json()
        assert schema.errors("FaultPage", page, reader=True) == []
        found += page["items"]
        if "next_cursor" not in page:
            return found
        query["cursor"] = page["next_cursor"]


def wait_for_faults(client: httpx.Client, *states: tuple[str, str], **query: str) -> list[JsonObject]:
    """The faults once they are just these: node and state of each, in any order; a domain has no node.

    Where none of a domain is among them, those are passed over: a machine without time for the herd silences it whole.
    """
    deadline = time.monotonic() + PATIENCE
    domains = any(not node for node, _ in states)
    while True:
        found = [fault for fault in faults(client, **query) if domains or "node" in fault]
        if sorted((fault.get("node", ""), fault["state"]) for fault in found) == sorted(states):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def actions(client: httpx.Client, domain: str = "domain", wait: float = 0.0) -> list[JsonObject]:
    """What a domain is asked."""
    answer = client.get("/v1/actions", params={"domain": domain, "wait": wait}).raise_for_status().json()
    assert schema.errors("OpenActions", answer, reader=True) == []
    found: list[JsonObject] = answer["items"]
    return found


def answer(client: httpx.Client, action: str, outcome: str = "committed", **members: Any) -> httpx.Response:
    """Say what became of an action."""
    result = {"action": action, "phase": "commit", "outcome": outcome, "at": instant(), **members}
    return client.post("/v1/action-results", json=result)


def log(client: httpx.Client, node: str, text: str = BROKEN) -> httpx.Response:
    """Send a line of a node's log."""
    return client.post("/v1/log-lines", json={"lines": [{"node": node, "logged_at": instant(), "text": text}]})
