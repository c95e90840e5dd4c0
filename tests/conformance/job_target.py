"""The second server in this process, as a source of an episode about jobs; time passes as soon as somebody waits."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from minimal_server.client import SCHEMAS
from minimal_server.service import MinimalServer

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode, Request, Settings, Taken, describe
from kuayu_conformance.streams import Comment, Reader, StreamEvent

BEGIN = 1_800_000_000_000
"""When it begins, in milliseconds since 1970."""

STRIDE = 0.05
"""Seconds between two looks while somebody waits."""


class Clock:
    """Time that passes when somebody waits, and a little with each request; stands for what wakes who waits."""

    def __init__(self) -> None:
        """Milliseconds since 1970."""
        self.now = BEGIN
        self.passed: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nobody else is there."""

    def wait(self, seconds: float) -> bool:
        """Let time pass."""
        until = self.now + max(1, round(1000 * seconds))
        while self.now < until:
            self.now = min(until, self.now + round(1000 * STRIDE))
            self.passed()
        return True

    def wait_for(self, so: Callable[[], bool], _seconds: float | None = None) -> bool:
        """Who follows a stream is only asked when there is something."""
        return so()

    def notify_all(self) -> None:
        """Nobody else waits."""


@dataclass
class Followed:
    """A stream that is followed: its pieces, what makes events of them, and how far it was read."""

    pieces: Iterator[bytes]
    reader: Reader = field(default_factory=Reader)
    number: int = -1
    events: list[StreamEvent] = field(default_factory=list)


class Timed:
    """A service in this process as a source of an episode."""

    def __init__(self, kind: type[MinimalServer]) -> None:
        """The service has just begun."""
        self.clock = Clock()
        self.service = kind(Path(SCHEMAS), {})
        self.service.read_clock = lambda: self.clock.now  # type: ignore[method-assign]
        self.service.changed_actions = self.clock  # type: ignore[assignment]
        self.service.changed_jobs = self.clock  # type: ignore[assignment]
        self.clock.passed = self._pass_on
        self.tenant = self.service.tenant("")
        self.followed: list[Followed] = []
        self.number = 0

    def _pass_on(self) -> None:
        self.service.moment = self.clock.now
        self.service.pass_on(self.tenant)

    def _answer(self, request: Request) -> tuple[Answer, object]:
        started = self.clock.now
        self.clock.wait(0.001)
        found = self.service.answer(request.method, request.path, dict(request.headers), request.body)
        self.number += 1
        headers = {"content-type": "application/json", **{name.lower(): text for name, text in found.headers.items()}}
        streams = isinstance(found.body, Iterator)
        body = b"" if streams or found.status == 204 else json.dumps(found.body).encode()
        seconds = (self.clock.now - started) / 1000
        return Answer(
            self.number, describe(request), found.status, headers, body, "", started / 1000, seconds
        ), found.body

    def exchange(self, request: Request) -> Answer:
        """Ask the service."""
        return self._answer(request)[0]

    def now(self) -> float:
        """The time."""
        return self.clock.now / 1000

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.wait(seconds)

    def publish(self, page: str, text: str) -> str:  # noqa: ARG002
        """Nothing is scraped."""
        return ""

    def scrapes(self, page: str) -> Sequence[float]:  # noqa: ARG002
        """Nothing is."""
        return ()

    def open(self, request: Request) -> tuple[int, Answer]:
        """Open a stream."""
        answer, pieces = self._answer(request)
        self.followed.append(Followed(pieces if isinstance(pieces, Iterator) else iter(())))
        if answer.status == 200:
            next(self.followed[-1].pieces)  # the comment that it begins with
        return len(self.followed) - 1, answer

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:
        """What came on a stream."""
        followed, until = self.followed[stream], self.clock.now + round(1000 * seconds)
        self._read(followed)
        while len(followed.events) < at_least and self.clock.now < until:
            self.clock.wait(STRIDE)
            self._read(followed)
        taken, followed.events = tuple(followed.events), []
        return Taken(taken, (), ended=False)

    def _read(self, followed: Followed) -> None:
        number = self.service.job_queue(self.tenant).number
        if number == followed.number:
            return
        followed.number = number
        try:
            piece = next(followed.pieces) if self._has_news(followed) else b""
        except StopIteration:
            return
        for line in piece.decode().split("\n"):
            event = followed.reader.take(line, self.now())
            if event is not None and not isinstance(event, Comment):
                followed.events.append(event)

    def _has_news(self, followed: Followed) -> bool:
        frame = getattr(followed.pieces, "gi_frame", None)
        return frame is not None and frame.f_locals["number"] < self.service.job_queue(self.tenant).number

    def hang_up(self, stream: int) -> None:
        """End a stream."""

    def branch(self, label: str) -> "Timed":
        """Nothing goes on beside others."""
        raise NotImplementedError


def episode(
    name: str, kind: type[MinimalServer] = MinimalServer, *, profiles: frozenset[str] = frozenset({"MET", "JOB"})
) -> Episode:
    """An episode of a check with a service in this process."""
    target = Timed(kind)
    limits = target.service.answer("GET", "/v1/conformance", {}, b"").body["limits"]
    return Episode(name, Settings("nonce", "run", False, frozenset(), limits, False, profiles=profiles), target)
