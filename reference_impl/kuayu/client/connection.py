"""Requests and their answers: sent again where that may help, read as the standard asks."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import quote

import httpx

from kuayu.client.errors import (
    BrokenStreamError,
    RefusedError,
    UnexpectedAnswerError,
    UnreachableError,
    refusal,
    unexpected,
    unreachable,
)
from kuayu.client.reading import read, read_one
from kuayu.event_stream import Event, read_events
from kuayu_schemas.base import KuayuModel
from kuayu_schemas.models import Allocation, Domain, Link, Node

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0
SILENCE_S: Final = 45.0
"""Silence of a stream after which its path is taken for broken; a service says something every 15 s."""
OK: Final = 200
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

Model = TypeVar("Model", bound=KuayuModel)


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
            raise ValueError(f"{url!r} is no http or https URL")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        base = httpx.URL(url.rstrip("/"))
        # A proxy of the environment cannot reach this very host.
        self._http = httpx.Client(
            base_url=base, headers=headers, timeout=timeout_s, trust_env=base.host not in LOOPBACK
        )
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
                asked = error.problem.retry_after if isinstance(error, RefusedError) else None
                time.sleep(min(LONGEST_PAUSE_S, pause if asked is None else asked))
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
        heard, pause = time.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                with self._stream(path, query, {"last-event-id": last}) as chunks:
                    pause = FIRST_PAUSE_S
                    for event in read_events(chunks):
                        if event.type == kind:
                            yield event
                            last = event.id
                heard = time.monotonic()
            except BrokenStreamError:
                heard = time.monotonic()
            except (UnreachableError, RefusedError) as error:
                if isinstance(error, RefusedError) and not error.problem.retryable:
                    raise
                if time.monotonic() - heard + pause > patience_s:
                    raise
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_S, 2 * pause)

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
            raise unexpected(request, response, " or ".join(each.__name__ for each in models)) from error


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
