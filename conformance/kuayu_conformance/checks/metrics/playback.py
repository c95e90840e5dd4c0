"""What checks share that play telemetry and follow the graph: registering a world, sending in time, and the stream."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.metrics.timeline import Clock
from kuayu_conformance.contract import violation
from kuayu_conformance.episode import Episode, Stream, instant
from kuayu_conformance.streams import StreamEvent
from kuayu_conformance.testbed.telemetry import Delivery

if TYPE_CHECKING:
    from kuayu_schemas import documents

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
