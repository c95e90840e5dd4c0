"""MET-004 and MET-005, domains that join and the delay of changes, from the stream of the graph.

Clause met-06-graph and the methods of the two requirements. The world is what was registered before the first node of
the pair of domains beside it; each second of the world one node is registered, one reported as faulty, one as offline,
one deleted, one link goes down and, from second 32 on, the link of 32 seconds before comes up again, in this order. The
world begins a second after the clock was read that follows the opening of the stream; it ends with its seconds, and the
stream is watched for 8 s more. Nothing here holds for a world that waited.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from second_judge.bounds import printed, quantile, quantile_upper
from second_judge.reading import Json, Judged, episode, told

LEVEL = 0.99
VISIBLE, WATCHED, NEVER, HELD = 30.0, 8.0, 3600.0, 32
ABSENT, UNKNOWN = "absent", "unknown"
OWN = re.compile(r"-(registered|faulty|offline|deleted|link)(\d+)$")
"""Names of what is changed beside the world, in runs that name things by what they are for."""

Shown = list[tuple[float, str]]
"""From when on each state of a vertex was shown."""


@dataclass
class Stream:
    """States of vertices as the stream showed them, by kind and name."""

    shown: dict[tuple[str, str], Shown] = field(default_factory=dict)

    def take(self, at: float, body: Json) -> None:
        """A snapshot, or a change of it."""
        for part in ("nodes", "links"):
            for vertex in body.get(part, []):
                self._show(at, (part, vertex["id"]), vertex["state"])
        for gone in body.get("gone", []):
            self._show(at, (f"{gone['kind']}s", gone["id"]), ABSENT)

    def _show(self, at: float, vertex: tuple[str, str], state: str) -> None:
        states = self.shown.setdefault(vertex, [(float("-inf"), ABSENT)])
        if states[-1][1] != state:
            states.append((at, state))

    def first(self, part: str, name: str, since: float, wanted: Callable[[str], bool]) -> float | None:
        """When something wanted came to be shown."""
        states = self.shown.get((part, name), [])
        return next((at for at, state in states if at >= since and wanted(state)), None)


@dataclass
class Watched:
    """What a run shows of a world: its nodes by domain, when it began, what was changed beside it, and the stream."""

    nodes: dict[str, list[str]]
    begin: float
    seconds: int
    changes: list[tuple[str, str, float]]
    stream: Stream


def watched(folder: Path) -> Watched:
    """Read a run whose world did not wait."""
    events = list(episode(folder, "met_states"))
    opened = next(place for place, event in enumerate(events) if event["kind"] == "stream")
    clock = next(event["value"] for event in events[opened:] if event["kind"] == "clock")
    stream = Stream()
    stream.take(float("-inf"), next(told(event) for event in events if event.get("path") == "/v1/graph"))
    for event in events:
        for at, _, _, data in event["value"] if event["kind"] == "events" else ():
            stream.take(at, json.loads(data))
    changes = list(_changes(events[opened:]))
    return Watched(_nodes(events), clock + 1.0, sum(what == "registered" for what, _, _ in changes), changes, stream)


def _nodes(events: list[Json]) -> dict[str, list[str]]:
    nodes = defaultdict(list)
    for event in events:
        if event.get("method") == "PUT" and event["path"].startswith("/v1/nodes/"):
            node = told(event)
            if not OWN.search(node["id"]):
                nodes[node["domain"]].append(node["id"])
    return nodes


def _changes(events: list[Json]) -> Iterator[tuple[str, str, float]]:
    """What was changed, of which vertex, and when it was sent.

    A state is reported by a sample of one node or link, right before which the clock is read a second time. So it is
    before other samples too where no link comes up yet, but then all reports of the second have been made.
    """
    prefix = ""
    reports: Iterator[tuple[str, str]] = iter(())
    for place, event in enumerate(events):
        path = event.get("path", "")
        if event.get("method") in {"PUT", "DELETE"} and (own := OWN.search(path)):
            what = own[1]
            if what == "registered":
                prefix, reports = path[len("/v1/nodes/") : own.start()], _reports(int(own[2]))
            yield what, path.rpartition("/")[2], event["started"]
        elif path == "/v1/samples" and all(before["kind"] == "clock" for before in events[place - 2 : place]):
            for what, of in islice(reports, 1):
                yield what, f"{prefix}-{of}", event["started"]


def _reports(second: int) -> Iterator[tuple[str, str]]:
    yield "faulty", f"faulty{second}"
    yield "offline", f"offline{second}"
    yield "down", f"link{second}"
    if second >= HELD:
        yield "up", f"link{second - HELD}"


def judge_domains(run: Watched) -> Judged:
    """MET-004: domains of which every node was shown in a state that is not unknown."""

    def known(state: str) -> bool:
        return state not in {ABSENT, UNKNOWN}

    joined = sum(
        all(run.stream.first("nodes", name, run.begin, known) is not None for name in names)
        for names in run.nodes.values()
    )
    return Judged(float(joined), float(joined), len(run.nodes))


def judge_changes(run: Watched) -> Judged:
    """MET-005: from sending a change to the event that shows it; those that might yet be shown are left out."""
    end = run.begin + run.seconds + WATCHED
    delays = []
    for what, name, sent in run.changes:
        if sent <= end - VISIBLE:
            at = run.stream.first("links" if what in {"down", "up"} else "nodes", name, sent, _shows(what))
            delays.append(NEVER if at is None else max(0.0, at - sent))
    return Judged(printed(quantile(delays, LEVEL)), printed(min(NEVER, quantile_upper(delays, LEVEL))), len(delays))


def _shows(what: str) -> Callable[[str], bool]:
    match what:
        case "registered":
            return lambda state: state != ABSENT
        case "deleted":
            return lambda state: state == ABSENT
        case _:
            return lambda state: state == what
