"""A transcript as a source of episodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Repeating, Said, Taken, answer_digest, describe, digest_of
from kuayu_conformance.streams import Comment, StreamEvent
from kuayu_conformance.transcript import Event, Request, TranscriptError, unpack


class ReplaySource(Repeating):
    """Gives an episode what was recorded for it, and holds the requests against their digests."""

    def __init__(
        self, episode: str, events: Sequence[Event], branches: Mapping[str, Sequence[Event]] | None = None
    ) -> None:
        """Replay these events in order, and those of branches by their names."""
        self._episode = episode
        self._events = events
        self._branches = branches or {}
        self._number = 0

    def _next(self, kind: str) -> Event:
        if self._number >= len(self._events):
            raise TranscriptError(f"{self._episode}: the transcript ends before the check does")
        event = self._events[self._number]
        if event.get("kind") != kind or event.get("number") != self._number:
            raise TranscriptError(
                f"{self._episode} event {self._number}: the check asks for {kind}, the transcript has "
                f"{event.get('kind')} {event.get('number')}"
            )
        self._number += 1
        return event

    def exchange(self, request: Request) -> Answer:
        """The recorded answer to the same request.

        Raises:
            TranscriptError: The request is not the one that was recorded.
        """
        return self._answer(request, self._next("exchange"))

    def repeat(self, said: Sequence[Said]) -> list[Answer] | None:
        """Recorded answers to questions that are known already, if just these come next; else None."""
        begin, answers = self._number, list[Answer]()
        for number, entry in enumerate(said, begin):
            event: Event = self._events[number] if number < len(self._events) else {}
            recorded = event.get("kind"), event.get("number"), event.get("request"), event.get("tenant")
            if recorded != ("exchange", number, entry.digest, entry.request.tenant):
                return None
            answers.append(_answer(event, entry.words))
            if answer_digest(answers[-1]) != entry.answer:
                return None
        self._number = begin + len(said)
        return answers

    def pass_over(self, exchanges: int, digest: str) -> list[tuple[Request, Answer]] | None:
        """The next recorded exchanges, requests without their bodies, if they are of that digest; else None."""
        passed, said = list[tuple[Request, Answer]](), list[tuple[str, str]]()
        for event in self._events[self._number : self._number + exchanges]:
            if event.get("kind") != "exchange":
                return None
            request = Request(str(event["method"]), str(event["path"]), {}, b"", str(event["tenant"]))
            passed.append((request, _answer(event, describe(request))))
            said.append((str(event["request"]), answer_digest(passed[-1][1])))
        if len(passed) != exchanges or digest_of(said) != digest:
            return None
        self._number += exchanges
        return passed

    def open(self, request: Request) -> tuple[int, Answer]:
        """The recorded opening of the same stream.

        Raises:
            TranscriptError: The request is not the one that was recorded.
        """
        event = self._next("stream")
        return int(event["number"]), self._answer(request, event)

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:  # noqa: ARG002 - the wait is over
        """What was recorded of the stream."""
        event = self._next("events")
        if event["stream"] != stream:
            raise TranscriptError(f"{self._episode} event {event['number']}: the events are those of another stream")
        events = tuple(
            StreamEvent(float(place), str(name), str(kind), str(data)) for place, name, kind, data in event["value"]
        )
        return Taken(events, tuple(Comment(float(comment)) for comment in event["comments"]), bool(event["ended"]))

    def hang_up(self, stream: int) -> None:
        """Nothing; the stream has ended long ago."""

    def branch(self, label: str) -> "ReplaySource":
        """What was recorded of a branch."""
        name = f"{self._episode}/{label}"
        return ReplaySource(name, self._branches.get(name, ()), self._branches)

    def _answer(self, request: Request, event: Event) -> Answer:
        if (event.get("request"), event.get("tenant")) != (request.digest, request.tenant):
            raise TranscriptError(
                f"{self._episode} event {event['number']}: the request {request.method} {request.path} is not the "
                f"one that was recorded ({event.get('method')} {event.get('path')})"
            )
        return _answer(event, describe(request))

    def _value(self, kind: str) -> Any:
        return self._next(kind)["value"]

    def now(self) -> float:
        """The recorded clock reading."""
        return float(self._value("clock"))

    def sleep(self, seconds: float) -> None:
        """Nothing; recorded time has passed already."""

    def publish(self, page: str, text: str) -> str:  # noqa: ARG002 - the page was published when the record was made
        """The recorded URL."""
        return str(self._value("page"))

    def scrapes(self, page: str) -> Sequence[float]:  # noqa: ARG002 - recorded in order
        """The recorded times."""
        return [float(value) for value in self._value("scrapes")]


def _answer(event: Event, words: str) -> Answer:
    """The answer that an event holds, to a request in these words."""
    return Answer(
        int(event["number"]),
        words,
        int(event["status"]),
        dict(event["headers"]),
        unpack(event),
        str(event["failure"]),
        float(event["started"]),
        float(event["seconds"]),
    )
