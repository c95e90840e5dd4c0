"""A conforming fake in this process, and edits of its answers: a source of episodes without a network.

1. What answers a decision follows from the request alone, so it is worked out once in a process, whoever asks.
2. An edit changes a request before it is answered, or the answer or the problem that comes of it, and nothing else.
3. There are no clocks, streams and pages of exporters here: what needs them is served over HTTP (``mutants.serve``).

What is edited is of the test alone, so an edit may change the document that it is given, or return another one::

    never = Edit(frozenset({INDICES}), answer=lambda request, answer: {**answer, "indices": []})
    episode = Episode("idx_behaviour", settings, InProcess(Fake(service), never))
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from minimal_server.core import Answer as Answered
from minimal_server.service import MinimalServer

from kuayu_conformance.answers import Answer
from kuayu_conformance.episode import Episode, Request, Settings, describe

Json = dict[str, Any]
Change = Callable[[Json, Json], Json]
"""What becomes of an answer: request, answer."""

CREDENTIALS = {"own": {"authorization": "Bearer own"}, "other": {"authorization": "Bearer other"}}
TENANTS = {"own": "own", "other": "other"}
"""Name of each tenant, by its token."""


class Reply(NamedTuple):
    """Status, headers with names in lower case, and body of an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Edit:
    """What is wrong with a fake, as edits of what it is asked and of what it answers.

    Attributes:
        paths: Operations that it is about.
        request: What is answered instead of a request; None where requests stay.
        answer: What becomes of an answer, given the request as it came; None where answers stay.
        problem: What becomes of a problem, likewise.
    """

    paths: frozenset[str]
    request: Callable[[Json], Json] | None = None
    answer: Change | None = None
    problem: Change | None = None

    @property
    def function(self) -> Callable[..., Json] | None:
        """What it consists of; the first where there are several."""
        return self.request or self.answer or self.problem

    def reply(self, body: bytes, ask: Callable[[bytes], Reply]) -> Reply:
        """What is answered to a body by whoever else answers ``ask``; what is no JSON object is left to that."""
        try:
            request = json.loads(body)
        except ValueError:
            request = None
        if not isinstance(request, dict):
            return ask(body)
        reply = ask(body if self.request is None else _dumped(self.request(json.loads(body))))
        change = self.answer if reply.status < 300 else self.problem
        if change is None:
            return reply
        changed = change(request, json.loads(reply.body))
        status = changed["status"] if change is self.problem else reply.status
        return reply._replace(status=status, body=_dumped(changed))


class Fake:
    """A service that is asked in this process."""

    def __init__(self, service: MinimalServer, *, remembers: bool = True) -> None:
        """Ask ``service``, each decision once; one that ``remembers`` nothing is asked whenever it is asked."""
        self._service, self._remembers, self._known = service, remembers, dict[tuple[str, str], Reply]()

    def answer(self, request: Request) -> Reply:
        """The answer to a request."""
        if not (self._remembers and self._service.is_pure(request.method, request.path)):
            return self._ask(request)
        key = request.tenant, request.digest
        if key not in self._known:
            self._known[key] = self._ask(request)
        return self._known[key]

    def _ask(self, request: Request) -> Reply:
        headers = {**request.headers, **CREDENTIALS.get(request.tenant, {})}
        return reply_of(self._service.answer(request.method, request.path, headers, request.body))


def reply_of(answered: Answered) -> Reply:
    """What a service has answered, as it is over HTTP."""
    said = answered.body
    body = said if isinstance(said, bytes) else said.encode() if isinstance(said, str) else _dumped(said)
    headers = {"content-type": "text/plain; version=0.0.4" if isinstance(said, str) else "application/json"}
    headers |= {name.lower(): value for name, value in answered.headers.items()}
    return Reply(answered.status, headers, body)


def _dumped(document: object) -> bytes:
    """A document in the bytes that the minimal server writes: what no edit has changed is the same to the letter."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


class InProcess:
    """A source of episodes that asks a fake.

    Attributes:
        exchanged: Requests and what was answered to them, those of branches among them.
    """

    def __init__(
        self, fake: Fake, edit: Edit | None = None, exchanged: list[tuple[Request, Reply]] | None = None
    ) -> None:
        """Ask ``fake``, and edit what it answers."""
        self._fake, self._edit, self._count = fake, edit, 0
        self.exchanged = [] if exchanged is None else exchanged

    def reply(self, request: Request) -> Reply:
        """What is answered to a request."""
        if self._edit is None or request.method != "POST" or request.path not in self._edit.paths:
            return self._fake.answer(request)
        return self._edit.reply(request.body, lambda body: self._fake.answer(replace(request, body=body)))

    def exchange(self, request: Request) -> Answer:
        """One answer."""
        reply, number = self.reply(request), self._count
        self.exchanged.append((request, reply))
        self._count += 1
        return Answer(number, describe(request), reply.status, reply.headers, reply.body)

    def branch(self, label: str) -> "InProcess":
        """The same fake, whatever is recorded of it."""
        del label
        made = InProcess(self._fake, self._edit)
        made.exchanged = self.exchanged
        return made

    def __getattr__(self, name: str) -> Any:
        """Say what a check needs that is not to be had here."""
        raise AssertionError(f"{name} is not to be had in this process")


class FunctionSource:
    """A source of episodes that answers from a function.

    Attributes:
        bodies: What was asked, in order.
    """

    def __init__(self, decide: Callable[[str, Json], Json | None]) -> None:
        """Answer what ``decide`` makes of a path and a body: an answer, a problem, or a fault where it is None."""
        self._decide = decide
        self.bodies: list[Json] = []

    def exchange(self, request: Request) -> Answer:
        """One answer, which takes a fiftieth of a second."""
        body, number = json.loads(request.body), len(self.bodies)
        self.bodies.append(body)
        document = self._decide(request.path, body)
        content = b"oops" if document is None else json.dumps(document).encode()
        is_problem = document is not None and "type" in document
        status = 500 if document is None else 422 if is_problem else 200
        headers = {"content-type": "application/problem+json" if is_problem else "application/json"}
        return Answer(number, describe(request), status, headers, content, seconds=0.02)

    def __getattr__(self, name: str) -> Any:
        """Say what a check needs that is not to be had here."""
        raise AssertionError(f"{name} is not to be had from a function")


def episode(name: str, source: Any, *, nonce: str = "stories", full: bool = False) -> Episode:
    """An episode that asks a source."""
    return Episode(name, Settings(nonce, "run", full, frozenset(), {}, other_tenant=False), source)
