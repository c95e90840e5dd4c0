"""A minimal server without a network whose clock the test moves, and nodes that beat by it; for tests of faults."""

import json
from collections.abc import Iterable
from typing import Any

from minimal_server.client import SCHEMAS
from minimal_server.core import Answer, Json, instant
from minimal_server.service import MinimalServer

BEGIN = 1_790_000_000_000
TICK = 100
"""Milliseconds after which the service looks again."""

PERIOD = 500


class Timed(MinimalServer):
    """Its clock stands until the test moves it."""

    def __init__(self) -> None:
        self.now = BEGIN
        super().__init__(SCHEMAS, {})

    def read_clock(self) -> int:
        """The time that the test has set."""
        return self.now


class Ground:
    """Domains of nodes that beat every 0.5 s, each at a time of its own.

    Attributes:
        silent: Nodes of which nothing comes.
        numbers: Number of the last beat of each node.
        steps: What each node tells of its ranks, by node; set it, or change it as time goes on.
        sent: The last beat that each node has sent.
    """

    def __init__(self, **domains: int) -> None:
        """Register domains with so many nodes each: ``north=4`` has ``north-0`` to ``north-3``."""
        self.service = Timed()
        self.silent: set[str] = set()
        self.numbers: dict[str, int] = {}
        self.steps: dict[str, list[Json]] = {}
        self.sent: dict[str, Json] = {}
        for domain, count in domains.items():
            assert self.ask("PUT", f"/v1/domains/{domain}", {"id": domain}).status == 201
            for place in range(count):
                name = f"{domain}-{place}"
                self.put_node(name, domain)
                self.numbers[name] = 0

    def put_node(self, name: str, domain: str, devices: int = 0) -> None:
        """Register a node, or register it anew."""
        device = {"kind": "gpu", "vendor": "NVIDIA", "model": "H200", "memory_capacity": 1.5e11}
        body = {"id": name, "domain": domain, "devices": [{"id": str(place), **device} for place in range(devices)]}
        assert self.ask("PUT", f"/v1/nodes/{name}", body).status in {200, 201}

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """The answer to a request."""
        content = b"" if body is None else json.dumps(body).encode()
        return self.service.answer(method, path, {"content-type": "application/json"}, content)

    def beat(self, beats: Iterable[Any]) -> Any:
        """Send beats; what became of them."""
        answer = self.ask("POST", "/v1/heartbeats", {"beats": list(beats)})
        assert answer.status == 200, answer.body
        return answer.body

    def log(self, node: str, text: str) -> Any:
        """Send a line of a log; what became of it."""
        line = {"node": node, "logged_at": instant(self.service.now), "text": text}
        answer = self.ask("POST", "/v1/log-lines", {"lines": [line]})
        assert answer.status == 200, answer.body
        return answer.body

    def next_beat(self, node: str) -> Json:
        """The beat that a node sends now."""
        self.numbers[node] += 1
        beat = {"node": node, "number": self.numbers[node], "sent_at": instant(self.service.now)}
        self.sent[node] = {**beat, **({"steps": self.steps[node]} if node in self.steps else {})}
        return self.sent[node]

    def go(self, seconds: float) -> None:
        """Let time pass; whoever is not silent beats."""
        for _ in range(round(seconds * 1000 / TICK)):
            self.service.now += TICK
            due = [
                node
                for place, node in enumerate(self.numbers)
                if (self.service.now + TICK * place) % PERIOD == 0 and node not in self.silent
            ]
            if due:
                self.beat(map(self.next_beat, due))
            self.look()

    def look(self) -> None:
        """Let the service look at what it has heard."""
        with self.service.lock:
            self.service.moment = self.service.now
            self.service.look_after(self.service.tenant(""))

    def faults(self, query: str = "") -> list[Json]:
        """Faults as they are listed, each valid by its schema."""
        answer = self.ask("GET", f"/v1/faults{query}")
        assert answer.status == 200, answer.body
        items: list[Json] = answer.body["items"]
        for item in items:
            assert self.service.schema_errors("Fault", item) == []
        return items

    def told(self, query: str = "?state=open") -> list[tuple[str, str]]:
        """Kinds of faults, and the node, or else the job or the domain, that each is about."""
        return [(f["kind"], f.get("node") or f.get("job") or f["domain"]) for f in self.faults(query)]

    def actions(self, domain: str) -> list[Json]:
        """Open actions of a domain, each valid by its schema."""
        answer = self.ask("GET", f"/v1/actions?domain={domain}")
        assert answer.status == 200
        items: list[Json] = answer.body["items"]
        for item in items:
            assert self.service.schema_errors("Action", item) == []
        return items

    def answer(self, action: Json, outcome: str = "committed", phase: str = "commit") -> Answer:
        """Tell what became of an action."""
        body = {"action": action["id"], "phase": phase, "outcome": outcome, "at": instant(self.service.now)}
        more = {"prepared": {"expires_at": body["at"]}, "refused": {"problem": PROBLEM}}
        return self.ask("POST", "/v1/action-results", {**body, **more.get(outcome, {})})


PROBLEM = {"type": "urn:kuayu:problem:no-capacity", "title": "full", "status": 409, "retryable": True}
