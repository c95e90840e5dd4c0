"""Worlds of heartbeats of which everything is told by hand: faults as events, and actions that could be fetched."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.timeline import Clock
from kuayu_conformance.checks.resilience.detection import RESPONSES, DetectionRun, Response
from kuayu_conformance.episode import instant
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.heartbeats import QUICK, Incident, World

BEGIN = 1_700_000_000.0
"""Unix time at which the world begins."""

OPENED = Answer(0, "GET /v1/faults/events", 200, {"content-type": "text/event-stream"})

Delay = Callable[[Incident], float | None]
"""Seconds from the begin of an incident; None for never."""


@cache
def world() -> World:
    """A quick one."""
    return World(QUICK, "told", lambda label: f"run-{label}")


def demanded() -> list[Incident]:
    """What has to be told."""
    return [each for each in world().incidents if each.demanded]


def about(incident: Incident) -> dict[str, object]:
    """Members of a fault that say what it is about."""
    names = {"domain": incident.domain, "node": incident.node, "job": incident.job, "rank": incident.rank}
    return {"kind": incident.kind} | {name: value for name, value in names.items() if value is not None}


@dataclass
class Story:
    """Collects what was told and fetched; seconds are those of the world."""

    events: list[StreamEvent] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)

    def tell(self, fault: str, at: float, members: Mapping[str, object], state: str = "open") -> None:
        """An event comes."""
        when = instant(BEGIN + at)
        body = {
            "id": fault,
            "state": state,
            "since": when,
            "told_at": when,
            "because": "it is so",
            "actions": [],
            "revision": {"epoch": "e", "number": len(self.events) + 1},
            **({"cleared_at": when} if state == "cleared" else {}),
            **members,
        }
        self.events.append(StreamEvent(BEGIN + at, f"e:{len(self.events) + 1}", "fault", json.dumps(body)))

    def fetch(self, fault: str, at: float, domains: Iterable[str]) -> None:
        """Its actions could be fetched."""
        self.responses += [Response(fault, domain, BEGIN + at) for domain in domains]

    def observed(self) -> DetectionRun:
        """What a check would have seen."""
        events = tuple(sorted(self.events, key=lambda event: event.received_at))
        return DetectionRun(world(), Clock(BEGIN), (), (OPENED,), events, tuple(self.responses), (), 2000)


def story(
    told: Delay = lambda _: 2.0, acted: Delay = lambda _: 2.4, incidents: Sequence[Incident] | None = None
) -> Story:
    """All incidents are told, and answered by actions, after so many seconds."""
    its = Story()
    for number, incident in enumerate(demanded() if incidents is None else incidents):
        after, until_acted = told(incident), acted(incident)
        if after is not None:
            its.tell(f"f{number}", incident.onset + after, about(incident))
        if after is not None and until_acted is not None and incident.kind in RESPONSES:
            its.fetch(f"f{number}", incident.onset + until_acted, incident.queried_domains)
    return its
