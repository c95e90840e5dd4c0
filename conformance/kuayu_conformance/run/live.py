"""The network as a source of episodes, everything written to the transcript.

1. **Listeners.** Whoever looks at a run as it happens wants more than the transcript keeps: bodies of requests, which a
   replay makes again, and all headers. Listeners are told of them, and no transcript holds them. Credentials are masked
   before: every header that a tenant's credentials consist of, and every other that is known to carry some, on both
   sides.
2. **Streams** of server-sent events are followed from threads of their own, so that arrival is timed while others work.
3. **Resumption.** An episode that is taken up in the middle has what was recorded of it first, then the target.
"""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import httpx

from kuayu_conformance.answers import Answer
from kuayu_conformance.checks.kit.requests import DECISIONS
from kuayu_conformance.episode import PassingOver, Source, Taken, describe
from kuayu_conformance.exporters.server import ExporterServer
from kuayu_conformance.run.replay import ReplaySource
from kuayu_conformance.streams import MEDIA_TYPE, Comment, Reader, StreamEvent, lines
from kuayu_conformance.transcript import Event, Request, Sink, TranscriptError, pack, pack_request

MASK = "***"
"""What stands in place of a credential."""
SECRET = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
"""Headers that carry credentials whoever adds them, in lower case."""
Headers = tuple[tuple[str, str], ...]

LONGEST_BODY = 65_536
"""Bytes that are kept of an answer that is no stream."""

KEPT_HEADERS = ("content-type", "etag", "retry-after", "allow", "idempotency-replayed", "www-authenticate")
"""Headers of answers that checks look at; only they are written to the transcript."""
PORTS = {"http": 80, "https": 443}
CLEAN_UP = "clean-up"
"""What stands for an episode where what episodes made is removed; the transcript has nothing of it."""
PAUSE = 0.5
"""Seconds between two attempts to reach a target that may be gone."""
Credentials = Mapping[str, Mapping[str, str]]
"""Headers to add for each tenant: ``own``, ``other``, ``none``."""
MAX_SENT_TWICE = 0.01
"""Share of segments sent twice beyond which a path loses so much that its round trip says little of its delays."""
_SEGMENTS_SENT_TWICE, _SEGMENTS_SENT, _LEAST_ROUND_TRIP = 100, 136, 148
"""Offsets of ``tcpi_total_retrans``, ``tcpi_segs_out`` and ``tcpi_min_rtt`` (microseconds) in ``struct tcp_info``."""
_OFFSETS = (_SEGMENTS_SENT_TWICE, _SEGMENTS_SENT, _LEAST_ROUND_TRIP)

ANSWERED_ALIKE = {"GET /v1/conformance", *DECISIONS}
"""Operations whose answers follow from the request and the version of the target alone, as far as checks look."""


@dataclass(frozen=True)
class Exchange:
    """One exchange as it went over the network.

    Attributes:
        episode: Episode that it belongs to.
        request: What was asked, without credentials.
        url: Where, without credentials that the target's URL may hold.
        sent: Headers of the request, credentials masked.
        answer: What came back; status 0 where nothing did.
        received: Headers of the answer, credentials masked; none where no answer came.
        reason: Reason phrase of the answer.
        http_version: Such as ``HTTP/1.1``; empty where no answer came.
        is_stream: Whether the body is a stream of events, which is not known when the exchange is told of.
    """

    episode: str
    request: Request
    url: str
    sent: Headers
    answer: Answer
    received: Headers = ()
    reason: str = ""
    http_version: str = ""
    is_stream: bool = False


Listener = Callable[[Exchange], None]
"""Told of each exchange when it is over, from whatever thread made it; must neither raise nor take long."""


def tell(
    listeners: Sequence[Listener],
    episode: str,
    request: Request,
    answer: Answer,
    client: httpx.Client,
    credentials: Mapping[str, Mapping[str, str]],
    response: httpx.Response | None,
    *,
    is_stream: bool = False,
) -> None:
    """Tell listeners of an exchange; ``response`` is None where no answer came."""
    if not listeners:
        return
    secret = SECRET | {name.lower() for headers in credentials.values() for name in headers}
    if response is not None:
        sent = response.request.headers
    else:
        sent = httpx.Headers(client.headers)
        sent.update({**request.headers, **credentials.get(request.tenant, {})})
    base = client.base_url.copy_with(username=None, password=None, query=None, fragment=None)
    exchange = Exchange(
        episode,
        request,
        f"{str(base).rstrip('/')}{request.path}",
        _masked(sent.multi_items(), secret),
        answer,
        _masked(response.headers.multi_items(), secret) if response is not None else (),
        response.reason_phrase if response is not None else "",
        response.http_version if response is not None else "",
        is_stream,
    )
    for listener in listeners:
        listener(exchange)


def _masked(headers: Iterable[tuple[str, str]], secret: frozenset[str]) -> Headers:
    return tuple((name, MASK if name.lower() in secret else value) for name, value in headers)


@dataclass(frozen=True)
class Opening:
    """How the request for a stream was answered; status 0 where no answer came."""

    status: int
    body: bytes
    failure: str
    response: httpx.Response | None


class StreamFollower:
    """One stream, live."""

    def __init__(self, client: httpx.Client, path: str, headers: Mapping[str, str]) -> None:
        """Ask for the stream at once."""
        self._client = client
        self._path = path
        self._headers = dict(headers)
        self._changed = threading.Condition()
        self._opening: Opening | None = None
        self._events: list[StreamEvent] = []
        self._comments: list[Comment] = []
        self._ended = False
        self._thread = threading.Thread(target=self._follow, name=f"stream {path}", daemon=True)
        self._thread.start()

    def opening(self) -> Opening:
        """Wait for the answer as long as the client waits for any."""
        patience = self._client.timeout.read
        with self._changed:
            self._changed.wait_for(lambda: self._opening is not None, patience)
            if self._opening is None:
                self._opening = Opening(0, b"", f"no answer within {patience} s", None)
            return self._opening

    def has(self, events: int) -> bool:
        """Whether so many events wait, or none can come any more."""
        return self._ended or len(self._events) >= events

    def wait(self, seconds: float) -> None:
        """Wait until something comes, at most so long."""
        with self._changed:
            self._changed.wait(seconds)

    def taken(self) -> Taken:
        """What has come since the last time."""
        with self._changed:
            events, self._events = tuple(self._events), []
            comments, self._comments = tuple(self._comments), []
            return Taken(events, comments, self._ended)

    def hang_up(self) -> None:
        """End the stream from this side and wait for its thread."""
        response = self._opening.response if self._opening else None
        if response is not None and not self._ended:
            network = response.extensions["network_stream"]
            # The thread waits in a read, and only closing the connection under it wakes it.
            with contextlib.suppress(OSError):
                network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    def _follow(self) -> None:
        """The thread: silence is no failure of a stream, so that no limit is set on a read; odd text or charset is."""
        timeout = httpx.Timeout(self._client.timeout.connect, read=None)
        try:
            with self._client.stream("GET", self._path, headers=self._headers, timeout=timeout) as response:
                self._read(response)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError) as error:
            self._opened(Opening(0, b"", f"{type(error).__name__}: {error}", None))
        finally:
            self._end()

    def _read(self, response: httpx.Response) -> None:
        if response.status_code != httpx.codes.OK or not response.headers.get("content-type", "").startswith(
            MEDIA_TYPE
        ):
            body = b""
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > LONGEST_BODY:
                    break
            self._opened(Opening(response.status_code, body[:LONGEST_BODY], "", response))
            return
        self._opened(Opening(response.status_code, b"", "", response))
        reader = Reader()
        for line in lines(response.iter_text()):
            entry = reader.take(line, time.time())
            if entry is not None:
                self._came(entry)

    def _opened(self, opening: Opening) -> None:
        with self._changed:
            self._opening = self._opening or opening
            self._changed.notify_all()

    def _came(self, entry: StreamEvent | Comment) -> None:
        with self._changed:
            if isinstance(entry, StreamEvent):
                self._events.append(entry)
            else:
                self._comments.append(entry)
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def round_trip_of(response: httpx.Response) -> float | None:
    """Seconds that a connection's path takes there and back, the least of late; what the target does is no part of it.

    None where the system does not say (Linux does), or where the path loses packets. Source: tcp(7) of the Linux
    man-pages, ``include/uapi/linux/tcp.h``.
    """
    stream = response.extensions.get("network_stream")
    connected = stream.get_extra_info("socket") if stream else None
    if connected is None or not hasattr(socket, "TCP_INFO"):
        return None
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LEAST_ROUND_TRIP + 4)
    except OSError:
        return None
    if len(info) < _LEAST_ROUND_TRIP + 4:
        return None
    twice, sent, least = (int.from_bytes(info[offset : offset + 4], sys.byteorder) for offset in _OFFSETS)
    return None if twice > MAX_SENT_TWICE * sent else round(least / 1e6, 6)


class Interruption(BaseException):
    """The run was called off while an episode was waiting; nothing that looks for faults of a check may take it."""


class TargetGone(BaseException):
    """The target was there and is no longer; like :class:`Interruption`, no fault of a check."""


class LiveSource:
    """Talks to the target for one episode.

    Attributes:
        round_trip: Seconds to the target and back, as TCP has measured it last; None where that is not known.
    """

    def __init__(
        self,
        episode: str,
        client: httpx.Client,
        credentials: Credentials,
        exporter: ExporterServer,
        transcript: Sink,
        stop: threading.Event,
        *,
        patience: float | None = None,
        begin: int = 0,
        listeners: Sequence[Listener] = (),
        full_requests: bool = False,
    ) -> None:
        """Use ``client`` (which knows the target and the time limit) for the episode of that name.

        A target that cannot be reached is taken to be gone after ``patience`` seconds, where these are given. ``begin``
        is the number of the first event. ``listeners`` are told of each exchange, once it is in the transcript, which
        holds ``full_requests`` or their digests alone.
        """
        self._episode = episode
        self._client = client
        self._credentials = credentials
        self._exporter = exporter
        self._transcript = transcript
        self._stop = stop
        self._patience = patience
        self._number = begin
        self._listeners = listeners
        self._full_requests = full_requests
        self.round_trip: float | None = None
        self._streams: dict[int, StreamFollower] = {}

    def _record(self, kind: str, **members: Any) -> None:
        self._transcript.write({"kind": kind, "episode": self._episode, "number": self._number, **members})
        self._number += 1

    def exchange(self, request: Request) -> Answer:
        """Send the request; a failure to connect or a time-out is recorded as an answer with status 0.

        Raises:
            TargetGone: No connection came about, and none does within the time that is waited for the target.
            Interruption: The run was called off.
        """
        if self._stop.is_set():
            raise Interruption
        started, clock = round(time.time(), 3), time.perf_counter()
        failure, status, body, kept_headers, unreached = "", 0, b"", dict[str, str](), False
        answered: httpx.Response | None = None
        try:
            headers = self._headers(request)
            with self._client.stream(request.method, request.path, content=request.body, headers=headers) as response:
                answered, status, kept_headers = response, response.status_code, _recorded_headers(response)
                self.round_trip = round_trip_of(response)  # as long as it is sure to be connected
                if not response.headers.get("content-type", "").lower().startswith(MEDIA_TYPE):
                    body = response.read()  # a stream of events has no end to wait for
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # the latter where the target's own words make a path
            failure = f"{type(error).__name__}: {error}"
            unreached = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        seconds = round(time.perf_counter() - clock, 6)
        if unreached and self._patience is not None:
            self._await_target(self._patience, failure)
        number = self._number
        answer = Answer(number, describe(request), status, kept_headers, body, failure, started, seconds)
        self._record("exchange", **self._recorded(request, answer))
        self._tell(request, answer, answered)
        return answer

    def _tell(self, request: Request, answer: Answer, response: httpx.Response | None) -> None:
        stream = answer.media_type == MEDIA_TYPE
        tell(
            *(self._listeners, self._episode, request, answer, self._client, self._credentials, response),
            is_stream=stream,
        )

    def _await_target(self, patience: float, failure: str) -> None:
        """Return as soon as the target takes connections again: that it did not is its fault then, and recorded."""
        until = time.monotonic() + patience
        url = self._client.base_url
        while time.monotonic() < until:
            try:
                socket.create_connection((url.host, url.port or PORTS[url.scheme]), timeout=patience).close()
            except OSError:
                if self._stop.wait(PAUSE):
                    raise Interruption from None
            else:
                return
        raise TargetGone(f"{self._episode}: {failure}")

    def open(self, request: Request) -> tuple[int, Answer]:
        """Open a stream and follow it from a thread of its own until it is hung up."""
        if self._stop.is_set():
            raise Interruption
        started, clock = round(time.time(), 3), time.perf_counter()
        followed = StreamFollower(self._client, request.path, self._headers(request))
        opening = followed.opening()
        recorded_headers = {} if opening.response is None else _recorded_headers(opening.response)
        seconds = round(time.perf_counter() - clock, 6)
        number = self._number
        answer = Answer(
            number, describe(request), opening.status, recorded_headers, opening.body, opening.failure, started, seconds
        )
        self._streams[number] = followed
        self._record("stream", **self._recorded(request, answer))
        self._tell(request, answer, opening.response)
        return number, answer

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:
        """What came on a stream since the last time."""
        until = time.monotonic() + seconds
        followed = self._streams[stream]
        while not followed.has(at_least) and (left := until - time.monotonic()) > 0:
            if self._stop.is_set():
                raise Interruption
            followed.wait(min(left, 0.5))
        taken = followed.taken()
        self._record(
            "events",
            stream=stream,
            value=[[round(event.received_at, 3), event.id, event.kind, event.data] for event in taken.events],
            comments=[round(comment.received_at, 3) for comment in taken.comments],
            ended=taken.ended,
        )
        return taken

    def hang_up(self, stream: int) -> None:
        """End a stream from this side."""
        self._streams[stream].hang_up()

    def close(self) -> None:
        """End whatever is still followed."""
        for followed in self._streams.values():
            followed.hang_up()

    def branch(self, label: str, begin: int = 0) -> "LiveSource":
        """The network, for a part of the episode that is recorded under a name of its own from some event on."""
        parts = (self._client, self._credentials, self._exporter, self._transcript, self._stop)
        further: dict[str, Any] = {"patience": self._patience, "listeners": self._listeners}
        further["full_requests"] = self._full_requests
        return LiveSource(f"{self._episode}/{label}", *parts, begin=begin, **further)

    def _recorded(self, request: Request, answer: Answer) -> dict[str, Any]:
        """A request and its answer as members of an event."""
        whole_request = pack_request(request.headers, request.body) if self._full_requests else {}
        return {
            "method": request.method,
            "path": request.path,
            "tenant": request.tenant,
            "request": request.digest,
            **whole_request,
            "status": answer.status,
            "headers": answer.headers,
            **pack(answer.body),
            "failure": answer.failure,
            "started": answer.started,
            "seconds": answer.seconds,
        }

    def _headers(self, request: Request) -> dict[str, str]:
        return {**request.headers, **self._credentials.get(request.tenant, {})}

    def now(self) -> float:
        """Unix time in seconds, to the millisecond."""
        value = round(time.time(), 3)
        self._record("clock", value=value)
        return value

    def sleep(self, seconds: float) -> None:
        """Wait, unless the run is called off meanwhile."""
        if self._stop.wait(max(0.0, seconds)):
            raise Interruption

    def publish(self, page: str, text: str) -> str:
        """Serve an exporter's page to the target."""
        url = self._exporter.publish(page, text)
        self._record("page", value=url)
        return url

    def scrapes(self, page: str) -> Sequence[float]:
        """Times at which the target fetched the page."""
        times = self._exporter.fetched(page)
        self._record("scrapes", value=times)
        return times


def _recorded_headers(response: httpx.Response) -> dict[str, str]:
    return {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}


REMOVED_AT_ONCE = 4
"""Things of one kind that are deleted side by side: the round trip to one passes while the next is written down."""


def remove(
    client: httpx.Client,
    credentials: Credentials,
    created: Sequence[tuple[str, str]],
    listeners: Sequence[Listener] = (),
) -> list[tuple[str, str]]:
    """Delete what an episode made, latest first; return what could not be deleted, in the order given. Never scores.

    What stands next to each other and is of one kind is deleted side by side: a node does not need another one, while
    its domain has to outlive it.
    """

    def delete(numbered: tuple[int, tuple[str, str]]) -> bool:
        number, (path, tenant) = numbered
        request = Request("DELETE", path.split("?")[0], {}, b"", tenant)
        started, clock = round(time.time(), 3), time.perf_counter()
        failure, response = "", None
        try:
            response = client.delete(request.path, headers=dict(credentials.get(tenant, {})))
        except httpx.HTTPError as error:
            failure = f"{type(error).__name__}: {error}"
        status = 0 if response is None else response.status_code
        if listeners:
            seconds = round(time.perf_counter() - clock, 6)
            body = b"" if response is None else response.content
            answer = Answer(number, describe(request), status, {}, body, failure, started, seconds)
            tell(listeners, CLEAN_UP, request, answer, client, credentials, response)
        return 200 <= status < 300 or status == 404  # noqa: PLR2004 - any success, or gone already

    latest_first = list(dict.fromkeys(reversed(created)))
    left: list[tuple[str, str]] = []
    with ThreadPoolExecutor(REMOVED_AT_ONCE, thread_name_prefix=CLEAN_UP) as pool:
        try:
            for _, alike in groupby(enumerate(latest_first), key=lambda numbered: numbered[1][0].rpartition("/")[0]):
                some = list(alike)
                gone = pool.map(delete, some)
                left += [entry for (_, entry), is_gone in zip(some, gone, strict=True) if not is_gone]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return left[::-1]


def alike(method: str, path: str) -> bool:
    """Whether a request would be answered alike, whenever it is sent."""
    return f"{method} {path}" in ANSWERED_ALIKE


class Misfit(BaseException):
    """What was recorded is not what the suite asks; like :class:`Unlike`, no fault of a check."""


class Unlike(BaseException):
    """An episode was broken off at a request whose answer does not follow from it alone, so it is to be begun anew.

    Attributes:
        request: Which it was; the target may have carried it out.
    """

    def __init__(self, request: Request) -> None:
        """Name the request."""
        super().__init__(f"{request.method} {request.path}")
        self.request = request


class TakenUp(PassingOver):
    """Gives an episode the recorded answers as long as there are any, then those of another source."""

    def __init__(
        self,
        episode: str,
        events: Sequence[Event] | None,
        live: LiveSource,
        standing: Callable[[str], Sequence[Event]] = lambda _: (),
    ) -> None:
        """Answer from ``events``, which are exchanges, then from ``live``, whose events are numbered behind them.

        ``events`` is None of an episode that had not begun; ``standing`` gives those that stand of a branch, by its
        name.
        """
        self._episode = episode
        self._standing = standing
        self._branches: list[TakenUp] = []
        self._broken_off = events is not None
        self._recorded = ReplaySource(episode, events or ())
        self._left = len(events or ())
        self._live = live
        self._waited = 0.0

    @property
    def waited(self) -> float:
        """Seconds that recorded answers took, those of branches included."""
        return self._waited + sum(branch.waited for branch in self._branches)

    def branch(self, label: str) -> "TakenUp":
        """What was recorded of a branch, then the network."""
        name = f"{self._episode}/{label}"
        events = self._standing(name)
        source = TakenUp(name, events or None, self._live.branch(label, len(events)), self._standing)
        self._branches.append(source)
        return source

    @property
    def _source(self) -> Source:
        return self._recorded if self._left else self._live

    def exchange(self, request: Request) -> Answer:
        """The recorded answer to the same request, or that of the target.

        Raises:
            Misfit: Another request was recorded.
            Unlike: The request at which the record ends may have been carried out, and would be answered otherwise.
        """
        if not self._left:
            if self._broken_off and not alike(request.method, request.path):
                raise Unlike(request)
            self._broken_off = False
            return self._live.exchange(request)
        try:
            answer = self._recorded.exchange(request)
        except TranscriptError as error:
            raise Misfit(str(error)) from error
        self._left -= 1
        self._waited += answer.seconds
        return answer

    def pass_over(self, exchanges: int, digest: str) -> list[tuple[Request, Answer]] | None:
        """The next recorded exchanges, if they are of that digest; else None."""
        passed = self._recorded.pass_over(exchanges, digest) if exchanges <= self._left else None
        if passed is not None:
            self._left -= exchanges
            self._waited += sum(answer.seconds for _, answer in passed)
        return passed

    def now(self) -> float:
        """Unix time in seconds, to the millisecond."""
        return self._source.now()

    def sleep(self, seconds: float) -> None:
        """Let time pass, unless it has passed already."""
        self._source.sleep(seconds)

    def publish(self, page: str, text: str) -> str:
        """Serve an exporter's page to the target."""
        return self._source.publish(page, text)

    def scrapes(self, page: str) -> Sequence[float]:
        """Times at which the target fetched the page."""
        return self._source.scrapes(page)

    def open(self, request: Request) -> tuple[int, Answer]:
        """Open a stream."""
        return self._source.open(request)

    def take(self, stream: int, seconds: float, at_least: int) -> Taken:
        """What came on a stream since the last time."""
        return self._source.take(stream, seconds, at_least)

    def hang_up(self, stream: int) -> None:
        """End a stream from this side."""
        self._source.hang_up(stream)
