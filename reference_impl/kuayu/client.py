"""Client of the standard's HTTP interface for integrators, synchronous.

>>> with Client("https://kuayu.example", token="...") as client:          # doctest: +SKIP
...     client.put_domain(Domain(id="gz-1"))
...     client.post_samples([sample])

Values go in and come out as :mod:`kuayu_schemas.models`. Answers are read as the standard asks of readers: unknown
members are passed over, unknown values of extensible enumerations become ``unknown``. Every failure is a
:class:`ClientError` that says its cause and a hint.
"""

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from kuayu.event_stream import Event, read_events
from kuayu_schemas import registers
from kuayu_schemas.base import KuayuModel, write_instant
from kuayu_schemas.models import (
    BatchResult,
    BulkMode,
    Declaration,
    Domain,
    DomainRecord,
    GraphChange,
    IndexReport,
    IndexRequest,
    IndicatorReport,
    Link,
    LinkRecord,
    Node,
    NodeRecord,
    Patch,
    ProbePlan,
    ProbePlanRequest,
    Problem,
    ResourceGraph,
    Revision,
    Sample,
    SampleBatch,
    SamplePage,
    SampleRecord,
    SubjectKind,
)

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0
SILENCE_S: Final = 45.0
"""Silence of a stream after which its path is taken for broken; a service says something every 15 s."""
SERVER_ERROR: Final = 500
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
PROBLEM_PREFIX: Final = "urn:kuayu:problem:"

Model = TypeVar("Model", bound=KuayuModel)


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
    """The token is missing or unknown."""


_REFUSALS: Final[Mapping[int, type[RefusedError]]] = {401: UnauthorisedError, 404: NotFoundError}


class Client:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def conformance(self) -> Declaration:
        """What the service declares to conform to, and its limits."""
        return self._read(Declaration, "GET", "/v1/conformance")

    def domain(self, identifier: str) -> DomainRecord:
        """A registered domain; :class:`NotFoundError` where there is none."""
        return self._read(DomainRecord, "GET", _path("domains", identifier))

    def put_domain(self, domain: Domain) -> DomainRecord:
        """Register a domain, or change its registration."""
        return self._put(DomainRecord, "domains", domain)

    def node(self, identifier: str) -> NodeRecord:
        """A registered node; :class:`NotFoundError` where there is none."""
        return self._read(NodeRecord, "GET", _path("nodes", identifier))

    def put_node(self, node: Node) -> NodeRecord:
        """Register a node, or change its registration."""
        return self._put(NodeRecord, "nodes", node)

    def put_link(self, link: Link) -> LinkRecord:
        """Register a link, or change its registration."""
        return self._put(LinkRecord, "links", link)

    def post_samples(
        self,
        samples: Sequence[Sample],
        *,
        mode: BulkMode = BulkMode.per_item,
        sent_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> BatchResult:
        """Hand over samples; what the result counts as accepted is durable.

        Args:
            samples: At most ``limits.max_batch`` of them.
            mode: What one bad sample does to the others.
            sent_at: This host's clock, for the service to correct a clock that is off. Such a batch is sent once only:
                a repetition would have to carry the same time and make the service see its delay as an offset.
            idempotency_key: Names this batch; give the same one with the same samples to repeat a batch whose fate is
                unknown. One is made up where it is None.
        """
        batch = SampleBatch(mode=mode, sent_at=sent_at, samples=list(samples))
        headers = {"content-type": "application/json", "idempotency-key": idempotency_key or str(uuid.uuid4())}
        attempts = self._attempts if sent_at is None else 1
        return self._read(
            BatchResult, "POST", "/v1/samples", content=batch.to_json(), headers=headers, attempts=attempts
        )

    def post_exposition(
        self,
        page: str,
        *,
        node: str,
        exporter: str,
        observed_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> BatchResult:
        """Hand over an exporter's page in the Prometheus text format.

        Args:
            page: The page as the exporter wrote it.
            node: Node that it reports on.
            exporter: Exporter of the collection map.
            observed_at: When it was fetched; the time of receipt where it is None.
            idempotency_key: As for samples.
        """
        query = {"node": node, "exporter": exporter}
        if observed_at is not None:
            query["observed_at"] = write_instant(observed_at)
        headers = {"content-type": EXPOSITION, "idempotency-key": idempotency_key or str(uuid.uuid4())}
        return self._read(BatchResult, "POST", "/v1/expositions", query, content=page.encode(), headers=headers)

    def samples(
        self,
        subject: str,
        subject_kind: SubjectKind = SubjectKind.node,
        *,
        device: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        page_size: int | None = None,
    ) -> Iterator[SampleRecord]:
        """Samples of a subject by time, from ``start`` (inclusive) to ``end`` (exclusive), page after page.

        All pages show what the service held when the first was asked for.
        """
        query = {
            "subject": subject,
            "subject_kind": subject_kind.value,
            "device": device,
            "from": None if start is None else write_instant(start),
            "to": None if end is None else write_instant(end),
            "limit": None if page_size is None else str(page_size),
        }
        known = {name: value for name, value in query.items() if value is not None}
        cursor: dict[str, str] = {}
        while True:
            page = self._read(SamplePage, "GET", "/v1/samples", known | cursor)
            yield from page.items
            if page.next_cursor is None:
                return
            cursor = {"cursor": page.next_cursor}

    def indicators(
        self, subject: str, subject_kind: SubjectKind = SubjectKind.node, *, at: datetime | None = None
    ) -> IndicatorReport:
        """Indicators of a node, domain or link at an instant, now where it is None."""
        query = {} if at is None else {"at": write_instant(at)}
        return self._read(IndicatorReport, "GET", _path(f"{subject_kind.value}s", subject) + "/indicators", query)

    def graph(self, *, nodes: bool = True, domain: str | None = None) -> ResourceGraph:
        """The resource graph as it stands.

        Args:
            nodes: Whether nodes are wanted, beside domains and links.
            domain: The one domain that is; all where it is None.
        """
        return self._read(ResourceGraph, "GET", "/v1/graph", _part(domain, nodes=nodes))

    def graph_patch(self, base: str, *, nodes: bool = True, domain: str | None = None) -> Patch:
        """What leads from a graph that was given before, named by its digest, to the present one.

        It is to be applied to an object of the members domains, nodes and links. A base that the service does not hold
        any longer is a :class:`RefusedError` of the name ``unknown-base``; take a whole graph then.
        """
        return self._read(Patch, "GET", "/v1/graph/patch", {"base": base, **_part(domain, nodes=nodes)})

    def follow_graph(
        self, *, nodes: bool = True, domain: str | None = None, patience_s: float = 60.0
    ) -> Iterator[ResourceGraph | GraphChange]:
        """The resource graph and then its changes as they come; :class:`kuayu.picture.GraphPicture` puts them together.

        A connection that breaks is made anew, and no change is lost by that. Where the service no longer holds the
        changes that were missed, as after its restart, a new graph comes, which takes the place of everything before.

        Args:
            nodes: As for :meth:`graph`.
            domain: As for :meth:`graph`.
            patience_s: How long a service that was there may be away, in seconds; then :class:`UnreachableError`.
        """
        part = _part(domain, nodes=nodes)
        while True:
            graph = self._read(ResourceGraph, "GET", "/v1/graph", part)
            yield graph
            try:
                yield from self._changes(part, graph.revision, patience_s)
            except RefusedError as error:
                if error.name != "revision-expired":
                    raise

    def compute_indices(self, request: IndexRequest) -> IndexReport:
        """How many of a reference device other devices are worth for training tasks.

        The service keeps nothing of the request, so all that it is to know has to be in the corpus. A name that the
        corpus does not hold is a :class:`RefusedError` that points to it.
        """
        return self._ask(IndexReport, "/v1/compute-indices", request)

    def probe_plan(self, request: ProbePlanRequest) -> ProbePlan:
        """Which of the candidates to measure to make the targets surest, the most telling first."""
        return self._ask(ProbePlan, "/v1/probe-plans", request)

    def _ask(self, answer: type[Model], path: str, request: KuayuModel) -> Model:
        """Have something decided; that may be repeated, since nothing is kept."""
        headers = {"content-type": "application/json"}
        return self._read(answer, "POST", path, content=request.to_json(), headers=headers)

    def _put(self, record: type[Model], collection: str, resource: Domain | Node | Link) -> Model:
        headers = {"content-type": "application/json"}
        return self._read(record, "PUT", _path(collection, resource.id), content=resource.to_json(), headers=headers)

    def _read(
        self,
        model: type[Model],
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        attempts: int | None = None,
    ) -> Model:
        """Send a request, again where that may help, and read the answer."""
        request = self._http.build_request(method, path, params=query, content=content, headers=headers)
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

    def _changes(self, part: Mapping[str, str], revision: Revision, patience_s: float) -> Iterator[GraphChange]:
        """Changes after a revision, over as many connections as it takes."""
        last = f"{revision.epoch}:{revision.number}"
        heard, pause = time.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                with self._stream("/v1/graph/events", part, {"last-event-id": last}) as chunks:
                    pause = FIRST_PAUSE_S
                    for event in read_events(chunks):
                        if event.type == "change":
                            yield self._change(event)
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

    @staticmethod
    def _change(event: Event) -> GraphChange:
        try:
            return read(GraphChange, event.data.encode())
        except ValueError as error:
            raise UnexpectedAnswerError(f"the event {event.id} is no GraphChange", 200) from error

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
            raise _unreachable(request, error) from error
        try:
            if not response.is_success:
                response.read()
                raise _refusal(request, response)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise _unexpected(request, response, "stream of events")
            yield response.iter_bytes()
        except httpx.HTTPError as error:
            raise BrokenStreamError(
                f"the stream of {request.url} broke ({error})", "read on from its last event", transient=True
            ) from error
        finally:
            response.close()

    def _send(self, model: type[Model], request: httpx.Request) -> Model:
        try:
            response = self._http.send(request)
        except httpx.HTTPError as error:
            raise _unreachable(request, error) from error
        if not response.is_success:
            raise _refusal(request, response)
        try:
            return read(model, response.content)
        except ValueError as error:
            raise _unexpected(request, response, model.__name__) from error


def _unreachable(request: httpx.Request, error: httpx.HTTPError) -> UnreachableError:
    return UnreachableError(
        f"no answer from {request.url.scheme}://{request.url.netloc.decode()} ({error})",
        "check that the service runs and that the URL leads to it",
        transient=True,
    )


def _unexpected(request: httpx.Request, response: httpx.Response, expected: str) -> UnexpectedAnswerError:
    cause = f"{request.method} {request.url.path} was answered with {response.status_code} and a body that is no"
    return UnexpectedAnswerError(f"{cause} {expected}", response.status_code)


def _refusal(request: httpx.Request, response: httpx.Response) -> ClientError:
    """What an answer that is no success says."""
    try:
        problem = read(Problem, response.content)
    except ValueError:
        return _unexpected(request, response, "Problem")
    return _REFUSALS.get(response.status_code, RefusedError)(problem)


def _part(domain: str | None, *, nodes: bool) -> dict[str, str]:
    """Query for a part of the graph."""
    return ({} if nodes else {"detail": "domains"}) | ({} if domain is None else {"domain": domain})


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
        if any(each["type"] == "json_invalid" for each in error.errors()):
            raise
        document: Any = json.loads(content)
        for each in error.errors():
            if each["type"] == "enum" and "'unknown'" in each["ctx"]["expected"]:
                _put_at(document, each["loc"], "unknown")
        return model.model_validate_json(json.dumps(document), extra="ignore")


def _put_at(document: Any, place: Sequence[str | int], value: str) -> None:
    for step in place[:-1]:
        document = document[step]
    document[place[-1]] = value


def _path(collection: str, identifier: str) -> str:
    return f"/v1/{collection}/{quote(identifier, safe='')}"


def _remedy(problem: Problem) -> str:
    """What the register of problems advises."""
    remedies = {each.type: each.remedy_en for each in registers.problems().problems}
    return remedies.get(problem.type, "see the service's documentation of this problem type")
