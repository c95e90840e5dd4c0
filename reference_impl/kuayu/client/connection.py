"""The connection to a service: requests, retries, server-sent events, problems, and lenient reading of answers.

1. Server-sent events as a client reads them (WHATWG HTML, section 9.2.6).
2. Answers, read as the standard asks of readers.
3. What can go wrong with a request: every failure says its cause and a hint.
4. Requests and their answers: sent again where that may help, read as the standard asks.
"""

import json
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from kuayu_schemas import registers
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import Allocation, Domain, Link, Node, Problem

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    Attributes:
        id: Identifier of the last event that had one, this one included; empty where none had.
        type: Its type, ``message`` where none was stated.
        data: Its data.
    """

    id: str
    type: str
    data: str


def read_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Events out of a stream of bytes, however it is cut; what stands after the last empty line is no event."""
    last, kind = "", ""
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield Event(last, kind or "message", "\n".join(data))
            kind, data = "", []
            continue
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last = value


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest, first, after_return = b"", True, False
    for chunk in chunks:
        if not chunk:
            continue
        part = chunk[1:] if after_return and chunk.startswith(b"\n") else chunk
        after_return = chunk.endswith(b"\r")
        *whole, rest = _LINE_END.split(rest + part)
        for line in whole:
            yield line.removeprefix(_BYTE_ORDER_MARK) if first else line
            first = False


Model = TypeVar("Model", bound=KuayuModel)


def read(model: type[Model], content: bytes) -> Model:
    """Read an answer as the standard asks of readers.

    Members that the model does not know are passed over; values of extensible enumerations that it does not know become
    ``unknown``.

    Raises:
        ValueError: It is no JSON, or no instance of the class all the same.
    """
    try:
        return model.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        if any(entry["type"] == "json_invalid" for entry in error.errors()):
            raise
        document: Any = json.loads(content)
        for entry in error.errors():
            if entry["type"] == "enum" and "'unknown'" in entry["ctx"]["expected"]:
                _put_at(document, entry["loc"], "unknown")
        return model.model_validate_json(json.dumps(document), extra="ignore")


def read_one(models: Sequence[type[Model]], content: bytes) -> Model:
    """Read an answer that may be of several classes: as the first that it is an instance of.

    Raises:
        ValueError: It is an instance of none.
    """
    *former, last = models
    for model in former:
        with suppress(ValueError):
            return read(model, content)
    return read(last, content)


def _put_at(document: Any, place: Sequence[str | int], value: str) -> None:
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value


SERVER_ERROR: Final = 500
PROBLEM_PREFIX: Final = "urn:kuayu:problem:"


class ClientError(Exception):
    """A request failed.

    Attributes:
        cause: What went wrong.
        hint: What the caller can do about it.
        transient: Whether the same request may succeed later.
    """

    def __init__(self, cause: str, hint: str, *, transient: bool) -> None:
        super().__init__(f"{cause}; {hint}")
        self.cause = cause
        self.hint = hint
        self.transient = transient


class UnreachableError(ClientError):
    """No answer came: the service is away, the name is wrong, or the time limit passed."""


class BrokenStreamError(UnreachableError):
    """A stream broke off."""


class UnexpectedAnswerError(ClientError):
    """What answered does not follow the standard.

    Attributes:
        status: HTTP status code of the answer.
    """

    def __init__(self, cause: str, status: int) -> None:
        hint = "check that the URL is that of a service of the standard, not of a proxy or another program"
        super().__init__(cause, hint, transient=status >= SERVER_ERROR)
        self.status = status


class RefusedError(ClientError):
    """The service answered with a problem.

    Attributes:
        problem: The problem as it was sent.
    """

    def __init__(self, problem: Problem) -> None:
        places = "; ".join(
            f"{place.parameter or place.pointer or 'body'}: {place.detail}" for place in problem.errors or ()
        )
        cause = ": ".join(part for part in (problem.title, problem.detail, places) if part)
        super().__init__(cause, _remedy(problem), transient=problem.retryable or problem.status >= SERVER_ERROR)
        self.problem = problem

    @property
    def name(self) -> str:
        """Registered name of the problem type, such as ``not-found``."""
        return self.problem.type.removeprefix(PROBLEM_PREFIX)


class NotFoundError(RefusedError):
    """Nothing is known under that identifier."""


class UnauthorisedError(RefusedError):
    """The token is missing or unknown: it is the sender that is refused, and nothing is said of what was sent."""


_REFUSALS: Final[Mapping[int, type[RefusedError]]] = {401: UnauthorisedError, 404: NotFoundError}


def unreachable(request: httpx.Request, error: httpx.HTTPError) -> UnreachableError:
    """No answer came to a request."""
    return UnreachableError(
        f"no answer from {request.url.scheme}://{request.url.netloc.decode()} ({error})",
        "check that the service runs and that the URL leads to it",
        transient=True,
    )


def unexpected(request: httpx.Request, response: httpx.Response, expected: str) -> UnexpectedAnswerError:
    """An answer is not what the standard has for it."""
    cause = f"{request.method} {request.url.path} was answered with {response.status_code} and a body that is no"
    return UnexpectedAnswerError(f"{cause} {expected}", response.status_code)


def refusal(request: httpx.Request, response: httpx.Response) -> ClientError:
    """What an answer that is no success says."""
    try:
        problem = read(Problem, response.content)
    except ValueError:
        return unexpected(request, response, "Problem")
    return _REFUSALS.get(response.status_code, RefusedError)(problem)


def _remedy(problem: Problem) -> str:
    """What the register of problems advises."""
    remedies = {entry.type: entry.remedy_en for entry in registers.problems().problems}
    return remedies.get(problem.type, "see the service's documentation of this problem type")


FIRST_PAUSE_S: Final = 0.2
MAX_PAUSE_S: Final = 10.0
SILENCE_S: Final = 45.0
"""Silence of a stream after which its path is taken for broken; a service says something every 15 s."""
OK: Final = 200
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def authorities(base: httpx.URL) -> ssl.SSLContext | bool:
    """Whose certificates a client takes: those of the system, and nobody's where it speaks to this host without TLS.

    To read those of the system takes a while, which a command that asks one thing need not wait for.
    """
    is_plain = base.scheme == "http" and base.host in LOOPBACK
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True


def http_client(url: str, token: str | None, timeout: float | httpx.Timeout) -> httpx.Client:
    """What speaks HTTP to a service, with its token where there is one. A proxy cannot reach this very host."""
    base = httpx.URL(url.rstrip("/"))
    headers = {"authorization": f"Bearer {token}"} if token else {}
    trusts_environment = base.host not in LOOPBACK
    return httpx.Client(
        base_url=base, headers=headers, timeout=timeout, trust_env=trusts_environment, verify=authorities(base)
    )


class Connection:
    """Connection to one service; safe to share between threads.

    Args:
        url: Where the service is, without ``/v1``.
        token: Bearer token, where the service asks for one.
        timeout_s: Longest time in seconds for connecting and for each answer.
        attempts: How often a request is sent at most. It is repeated only where no answer came or the problem says that
            it is retryable; writes are idempotent, and what is posted carries an Idempotency-Key.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout_s: float = 10.0, attempts: int = 4) -> None:
        """Connect when the first request is made.

        Raises:
            ValueError: The URL is neither http nor https.
        """
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url!r} is not an http or https URL")
        self._http = http_client(url, token, timeout_s)
        self._attempts = attempts
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def _ask(self, answer: type[Model] | Sequence[type[Model]], path: str, request: KuayuModel) -> Model:
        """Have something decided; that may be repeated, since nothing is kept."""
        headers = {"content-type": "application/json"}
        return self._read(answer, "POST", path, content=request.to_json(), headers=headers)

    def _put(self, record: type[Model], collection: str, resource: Domain | Node | Link | Allocation) -> Model:
        headers = {"content-type": "application/json"}
        return self._read(record, "PUT", path_of(collection, resource.id), content=resource.to_json(), headers=headers)

    def _read(
        self,
        model: type[Model] | Sequence[type[Model]],
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        attempts: int | None = None,
        patience_s: float = 0.0,
    ) -> Model:
        """Send a request, again where that may help, and read the answer.

        Args:
            model: Class of the answer; several where the answer may be of any of them.
            method: Of HTTP.
            path: With ``/v1``.
            query: Parameters of the query.
            content: Body, where there is one.
            headers: Beside those of every request.
            attempts: How often it is sent at most; as often as any request where it is None.
            patience_s: Seconds that the service was asked to wait for something before it answers.
        """
        patient = httpx.Timeout(self._timeout_s, read=self._timeout_s + patience_s)
        request = self._http.build_request(
            method, path, params=query, content=content, headers=headers, timeout=patient
        )
        left, pause = attempts or self._attempts, FIRST_PAUSE_S
        while True:
            try:
                return self._send(model, request)
            except (UnreachableError, RefusedError) as error:
                left -= 1
                if left <= 0 or not (isinstance(error, UnreachableError) or error.problem.retryable):
                    raise
                asked_for = error.problem.retry_after if isinstance(error, RefusedError) else None
                time.sleep(min(MAX_PAUSE_S, pause if asked_for is None else asked_for))
                pause *= 2

    @contextmanager
    def _stream(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[Iterator[bytes]]:
        """Bytes of a stream.

        Raises:
            UnreachableError: It could not be begun; where it broke after that, BrokenStreamError.
        """
        timeout = httpx.Timeout(self._http.timeout.connect, read=SILENCE_S)
        request = self._http.build_request("GET", path, params=query, headers=headers, timeout=timeout)
        try:
            response = self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            raise unreachable(request, error) from error
        try:
            if not response.is_success:
                response.read()
                raise refusal(request, response)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise unexpected(request, response, "stream of events")
            yield response.iter_bytes()
        except httpx.HTTPError as error:
            raise BrokenStreamError(
                f"the stream of {request.url} broke ({error})", "read on from its last event", transient=True
            ) from error
        finally:
            response.close()

    def _follow(self, path: str, query: Mapping[str, str], last: str, kind: str, patience_s: float) -> Iterator[Event]:
        """Events of a type after the one that ``last`` names, over as many connections as it takes.

        Raises:
            UnreachableError: A service that was there stays away for longer than so many seconds.
            RefusedError: As with ``revision-expired``, where it no longer holds what comes next.
        """
        heard_at, pause = time.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                with self._stream(path, query, {"last-event-id": last}) as chunks:
                    pause = FIRST_PAUSE_S
                    for event in read_events(chunks):
                        if event.type == kind:
                            yield event
                            last = event.id
                heard_at = time.monotonic()
            except BrokenStreamError:
                heard_at = time.monotonic()
            except (UnreachableError, RefusedError) as error:
                if isinstance(error, RefusedError) and not error.problem.retryable:
                    raise
                if time.monotonic() - heard_at + pause > patience_s:
                    raise
            time.sleep(pause)
            pause = min(MAX_PAUSE_S, 2 * pause)

    def _send(self, model: type[Model] | Sequence[type[Model]], request: httpx.Request) -> Model:
        models = [model] if isinstance(model, type) else model
        try:
            response = self._http.send(request)
        except httpx.HTTPError as error:
            raise unreachable(request, error) from error
        if not response.is_success:
            raise refusal(request, response)
        try:
            return read_one(models, response.content)
        except ValueError as error:
            raise unexpected(request, response, " or ".join(entry.__name__ for entry in models)) from error


def event_of(model: type[Model], event: Event) -> Model:
    """What an event holds.

    Raises:
        UnexpectedAnswerError: Something else.
    """
    try:
        return read(model, event.data.encode())
    except ValueError as error:
        raise UnexpectedAnswerError(f"the event {event.id} is no {model.__name__}", OK) from error


def path_of(collection: str, identifier: str) -> str:
    """Path of one of a collection."""
    return f"/v1/{collection}/{quote(identifier, safe='')}"
