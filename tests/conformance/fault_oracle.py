"""A target that knows the world of heartbeats, in time that is made up: what it tells, and when, is said by a test."""

import json
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.told_faults import about

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.resilience.detection import RESPONSES
from kuayu_conformance.episode import Episode, Request, Settings, Taken, describe, instant
from kuayu_conformance.streams import MEDIA_TYPE, StreamEvent
from kuayu_conformance.testbed.heartbeats import Incident, Scale, World

FAULT = Path(__file__).parents[2] / "spec" / "examples" / "Fault" / "valid" / "node-dead.json"
"""What a result is answered with; nobody looks at which it is."""

STEP = 0.002
"""Seconds that a request takes."""

Json = dict[str, Any]


@dataclass
class Oracle:
    """Answers as a service would that tells each incident ``delay`` seconds after its begin.

    Attributes:
        world: What will be played.
        delay: Seconds until it is told.
        lag: Seconds from there until its actions can be fetched; before that where it is negative.
        refuses: Whether a request is refused.
        slow: Seconds that a batch takes more.
        settling: Seconds that the result of an action takes more.
        ends: Seconds of the world in which a stream ends.
        posted: Bodies by path.
        results: Actions that were answered.
        asked: How often actions were asked for.
    """

    world: World
    delay: float = 2.0
    lag: float = -0.05
    refuses: Callable[[Request], bool] = lambda _: False
    slow: float = 0.0
    settling: float = 0.0
    ends: tuple[float, ...] = ()
    clock: float = 1_700_000_000.0
    begin: float = float("inf")
    posted: dict[str, list[Json]] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    asked: int = 0
    opened: list[str] = field(default_factory=list)
    _told: int = 0

    def exchange(self, request: Request) -> Answer:
        """An answer, a little later."""
        started = self.clock
        self.clock += STEP
        body: object = {}
        if request.path in {"/v1/heartbeats", "/v1/log-lines"}:
            self.begin = min(self.begin, started)
            self.clock += self.slow
            sent = json.loads(request.body)
            self.posted.setdefault(request.path, []).append(sent)
            body = {"accepted": len(next(iter(sent.values()))), "rejected": [], "received_at": instant(started)}
        elif request.path.startswith("/v1/actions"):
            self.asked += 1
            body = {"items": self._open(request.path.partition("=")[2])}
        elif request.path == "/v1/action-results":
            self.clock += self.settling
            self.results.append(json.loads(request.body)["action"])
            body = json.loads(FAULT.read_bytes())
        elif request.method == "PUT":
            revision = {"epoch": "e", "number": len(self.posted)}
            body = {**json.loads(request.body), "revision": revision, "updated_at": instant(started)}
        status = 503 if self.refuses(request) else 200
        kind = {"content-type": "application/json"}
        content = json.dumps(body).encode()
        return Answer(0, describe(request), status, kind, content, started=started, seconds=self.clock - started)

    def open(self, request: Request) -> tuple[int, Answer]:
        """A stream begins."""
        self.opened.append(request.headers.get("last-event-id", ""))
        status = 404 if self.refuses(request) else 200
        return len(self.opened), Answer(0, describe(request), status, {"content-type": MEDIA_TYPE})

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:
        """What has been told; time goes on to the next event, or by so many seconds."""
        del stream
        until = self.clock + seconds
        ended = len(self.opened) <= bisect_right([self.begin + each for each in self.ends], self.clock)
        rows = self._rows()
        if ended or self._told >= len(rows) or rows[self._told][0] > until:
            self.clock = self.clock if ended else until
            return Taken((), (), ended)
        if at_least:
            self.clock = max(self.clock, rows[self._told][0])
        number = self._told
        self._told = bisect_right([at for at, _ in rows], self.clock)
        events = [self._event(place, *rows[place]) for place in range(number, self._told)]
        return Taken(tuple(events), (), ended)

    def hang_up(self, stream: int) -> None:
        """Nothing is left to do."""

    def now(self) -> float:
        """The made up time."""
        return self.clock

    def sleep(self, seconds: float) -> None:
        """Let it go on."""
        self.clock += seconds

    def _rows(self) -> list[tuple[float, Incident]]:
        """When what is told."""
        its = [each for each in self.world.incidents if each.demanded]
        return sorted(((self.begin + each.onset + self.delay, each) for each in its), key=lambda row: row[0])

    def _event(self, place: int, at: float, incident: Incident) -> StreamEvent:
        body = {
            "id": self._name(incident),
            "state": "open",
            "since": instant(at),
            "told_at": instant(at),
            "because": "the oracle knows",
            "actions": [f"a-{self._name(incident)}-{domain}" for domain in incident.queried_domains],
            "revision": {"epoch": "e", "number": place + 1},
            **about(incident),
        }
        return StreamEvent(at, f"e:{place + 1}", "fault", json.dumps(body))

    def _name(self, incident: Incident) -> str:
        return f"f{self.world.incidents.index(incident)}"

    def _open(self, domain: str) -> list[Json]:
        """Actions that a domain has not answered."""
        found = []
        for at, incident in self._rows():
            name = f"a-{self._name(incident)}-{domain}"
            if domain in incident.queried_domains and at + self.lag <= self.clock and name not in self.results:
                what = {"job": incident.job} if incident.job else {"nodes": [{"node": incident.node, "devices": 4}]}
                kind = RESPONSES[incident.kind]
                found.append({"id": name, "kind": kind, "phase": "commit", "domain": domain, **what})
        return found


def played(scale: Scale, kind: type[Oracle] = Oracle, **members: Any) -> tuple[Episode, Oracle]:
    """An episode with an oracle that knows its world."""
    settings = Settings("oracle", "run", False, frozenset(), {"max_batch": 60, "max_body": 1 << 20}, False)
    oracle = kind(World(scale, "unnamed", str), **members)
    episode = Episode("res_detection", settings, oracle)  # type: ignore[arg-type]  # nothing of it is published
    oracle.world = World(scale, "oracle/heartbeats", episode.name_of)
    return episode, oracle
