"""What checks share that play telemetry and follow the graph: registering a world, sending in time, and the timeline.

1. Seconds of a simulated world lie in time by a :class:`Clock`, which says how far behind it the suite fell.
2. A :class:`Timeline` says what the stream of the graph showed when.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.graphs import KINDS, PARTS, gone_of, graph_of
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, Stream, instant
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.telemetry import Delivery

if TYPE_CHECKING:
    from kuayu_schemas import documents

ABSENT = ""
"""Shown state of what is not in the graph."""


class Clock:
    """Seconds of the world as Unix time; the world waits where the suite could not keep up."""

    def __init__(self, begin: float) -> None:
        """The world begins at ``begin``, Unix time in seconds."""
        self._begin = begin
        self._since: list[float] = [float("-inf")]
        self._waited: list[float] = [0.0]

    def wait(self, second: float, seconds: float) -> None:
        """From a second of the world on everything is later by so many seconds more."""
        self._since.append(second)
        self._waited.append(self._waited[-1] + seconds)

    def at(self, second: float) -> float:
        """Unix time of a second of the world."""
        return self._begin + second + self._waited[bisect_right(self._since, second) - 1]

    @property
    def waited(self) -> float:
        """Seconds that the world waited in all."""
        return self._waited[-1]


class Track:
    """What was shown of one vertex: values, each from an instant on."""

    def __init__(self, instant: float, value: Any) -> None:
        """It begins with a value."""
        self.instants = [instant]
        self.values = [value]

    def add(self, instant: float, value: Any) -> None:
        """From ``instant`` on another value is shown, if it is another."""
        if value != self.values[-1]:
            self.instants.append(instant)
            self.values.append(value)

    def value(self, instant: float) -> Any:
        """What was shown at an instant; the first value before there was any."""
        return self.values[max(0, bisect_right(self.instants, instant) - 1)]

    def spans(self, end: float) -> Iterable[tuple[float, float, Any]]:
        """From when until when each value was shown."""
        for (since, value), (until, _) in pairwise([*zip(self.instants, self.values, strict=True), (end, None)]):
            yield since, until, value


class Timeline:
    """States of nodes and links and reachability of domains, as the stream showed them."""

    def __init__(self, snapshot: Any, events: Iterable[StreamEvent]) -> None:
        """Begin with a snapshot and take the events of the stream from its revision on."""
        self._tracks: dict[str, dict[str, Track]] = {part: {} for part in PARTS}
        self.end = 0.0
        self._take(float("-inf"), snapshot)
        for event in events:
            self._take(event.received_at, event.json)
            self.end = event.received_at

    def _take(self, instant: float, body: Any) -> None:
        for part, vertices in graph_of(body).items():
            for name, vertex in vertices.items():
                self._show(instant, part, name, _plain(vertex.get("reachable" if part == "domains" else "state")))
        for kind, name in gone_of(body):
            if kind in KINDS:
                self._show(instant, KINDS[kind], name, ABSENT)

    def _show(self, instant: float, part: str, name: str, value: Any) -> None:
        track = self._tracks[part].get(name)
        if track is None:
            track = self._tracks[part][name] = Track(float("-inf"), ABSENT)
        track.add(instant, value)

    def track(self, part: str, name: str) -> Track:
        """What was shown of a vertex; nothing at all where it never was."""
        return self._tracks[part].get(name) or Track(float("-inf"), ABSENT)

    def first(self, part: str, name: str, since: float, wanted: Callable[[Any], bool]) -> float | None:
        """When something wanted came to be shown at or after an instant; None where it never did."""
        track = self.track(part, name)
        shown = zip(track.instants, track.values, strict=True)
        return next((place for place, value in shown if place >= since and wanted(value)), None)


def _plain(value: Any) -> Any:
    """A state or a truth value as it is; whatever else a target may send, in words."""
    return value if isinstance(value, str | bool) else repr(value)


EVENTS = "/v1/graph/events"

SAMPLE_BYTES = 600
"""Room that a sample takes in a request, generously."""

SLACK = 0.25
"""Seconds by which the suite may fall behind its own world before the world waits for it."""

REOPENED_EVERY = 5
"""Seconds after which a stream that has ended is resumed."""

GIVEN_UP = 3
"""Seconds after which a target that takes no batch at all is given up."""


@dataclass(frozen=True)
class Playback:
    """What a target answered while a world was played to it, and what its stream showed.

    Attributes:
        clock: From seconds of the world to Unix time.
        unregistered: Refusals of what the world consists of; where there are any nothing was played.
        snapshot: The graph when nothing had been sent yet.
        streams: Its changes from then on; more than one where a stream ended and was resumed.
        refused: Batches that were not taken whole.
        batches: How many were sent.
    """

    clock: Clock
    unregistered: tuple[Answer, ...]
    snapshot: Answer
    streams: tuple[Stream, ...]
    refused: tuple[Answer, ...]
    batches: int

    @property
    def events(self) -> tuple[StreamEvent, ...]:
        """Events of all streams, in order."""
        return tuple(event for stream in self.streams for event in stream.events)


def registered(
    episode: Episode,
    domains: "Iterable[documents.Domain]",
    nodes: "Iterable[documents.Node]",
    families: "Iterable[documents.ComputeIdentifier]",
    links: "Iterable[documents.Link]" = (),
) -> Iterator[Answer]:
    """Register what a world consists of; yields refusals."""
    kinds: dict[str, Iterable[documents.Resource]] = {"domains": domains, "nodes": nodes, "links": links}
    for kind, bodies in kinds.items():
        yield from refusals(episode, [(f"/v1/{kind}/{body['id']}", body) for body in bodies])
    yield from refusals(episode, [(f"/v1/compute-identifiers/{body['urn']}", body) for body in families])


def refusals(episode: Episode, bodies: Iterable[tuple[str, object]]) -> Iterator[Answer]:
    """Put bodies to their paths; the first that is refused ends it, and is yielded."""
    for path, body in bodies:
        answer = episode.ask_patiently("PUT", path, body)
        if answer.status not in {200, 201} or violation(answer):
            yield answer
            return


def reopen(episode: Episode, streams: list[Stream], begin: str) -> None:
    """Resume the stream behind its last event where it has ended, as everyone has to whose connection breaks."""
    streams[-1].take(0.0, at_least=0)
    if streams[-1].taken[-1].ended:
        events = [event for stream in streams for event in stream.events if event.id]
        streams.append(episode.follow(EVENTS, after=events[-1].id if events else begin))


@dataclass
class Sender:
    """Sends what is due, never before its time; where the suite falls behind, the world's clock waits for it.

    Attributes:
        episode: The conversation.
        clock: From seconds of the world to Unix time.
        refused: Batches that were not taken whole.
        batches: How many were sent.
    """

    episode: Episode
    clock: Clock
    refused: list[Answer] = field(default_factory=list)
    batches: int = 0

    def until(self, due: float) -> None:
        """Wait until a second of the world has come."""
        ahead = self.clock.at(due) - self.episode.now()
        if ahead > 0:
            self.episode.sleep(ahead)
        elif -ahead > SLACK:
            self.clock.wait(due, -ahead)

    def deliver(self, delivery: Delivery) -> None:
        """Send what a domain's aggregator sends, in batches that the target takes."""
        samples = [{**body, "observed_at": instant(self.clock.at(seen))} for seen, body in delivery.samples]
        limits = self.episode.settings.limits
        most = max(1, int(min(limits["max_batch"], limits["max_body"] // SAMPLE_BYTES)))
        for begin in range(0, len(samples), most):
            batch = samples[begin : begin + most]
            answer = self.episode.ask_patiently("POST", "/v1/samples", {"mode": "per_item", "samples": batch})
            self.batches += 1
            if answer.status != 200 or answer.at("accepted") != len(batch):
                self.refused.append(answer)
