"""Telemetry of a client: resources, samples, the resource graph, heartbeats and faults.

1. What a service declares, what is registered with it, and samples.
2. The resource graph, whole and as it changes.
3. Signs of life of nodes, lines of their logs, and the faults that a service recognises in them.
"""

import uuid
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from typing import Final, TypeVar

from kuayu.client.connection import Connection, RefusedError, event_of, path_of
from kuayu_schemas.base import write_instant
from kuayu_schemas.models import (
    BatchResult,
    BulkMode,
    Declaration,
    Domain,
    DomainPage,
    DomainRecord,
    Fault,
    FaultPage,
    FaultState,
    GraphChange,
    Heartbeat,
    HeartbeatBatch,
    IndicatorReport,
    IntakeResult,
    Link,
    LinkPage,
    LinkRecord,
    LogBatch,
    LogLine,
    Node,
    NodePage,
    NodeRecord,
    Patch,
    ResourceGraph,
    Revision,
    Sample,
    SampleBatch,
    SamplePage,
    SampleRecord,
    SubjectKind,
)

ResourcePage = TypeVar("ResourcePage", DomainPage, NodePage, LinkPage)
EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"


class Telemetry(Connection):
    """Domains, nodes and links, their samples and indicators."""

    def conformance(self) -> Declaration:
        """What the service declares to conform to, and its limits."""
        return self._read(Declaration, "GET", "/v1/conformance")

    def domain(self, identifier: str) -> DomainRecord:
        """A registered domain; :class:`NotFoundError` where there is none."""
        return self._read(DomainRecord, "GET", path_of("domains", identifier))

    def put_domain(self, domain: Domain) -> DomainRecord:
        """Register a domain, or change its registration."""
        return self._put(DomainRecord, "domains", domain)

    def domains(self) -> Iterator[DomainRecord]:
        """Registered domains in order of name, page after page, as they stood when the first page was asked for."""
        for page in self._pages(DomainPage, "/v1/domains"):
            yield from page.items

    def node(self, identifier: str) -> NodeRecord:
        """A registered node; :class:`NotFoundError` where there is none."""
        return self._read(NodeRecord, "GET", path_of("nodes", identifier))

    def put_node(self, node: Node) -> NodeRecord:
        """Register a node, or change its registration."""
        return self._put(NodeRecord, "nodes", node)

    def nodes(self) -> Iterator[NodeRecord]:
        """Registered nodes, as :meth:`domains` gives domains."""
        for page in self._pages(NodePage, "/v1/nodes"):
            yield from page.items

    def link(self, identifier: str) -> LinkRecord:
        """A registered link; :class:`NotFoundError` where there is none."""
        return self._read(LinkRecord, "GET", path_of("links", identifier))

    def put_link(self, link: Link) -> LinkRecord:
        """Register a link, or change its registration."""
        return self._put(LinkRecord, "links", link)

    def links(self) -> Iterator[LinkRecord]:
        """Registered links, as :meth:`domains` gives domains."""
        for page in self._pages(LinkPage, "/v1/links"):
            yield from page.items

    def _pages(self, model: type[ResourcePage], path: str) -> Iterator[ResourcePage]:
        """Pages of a listing, all as of one revision."""
        query: dict[str, str] = {}
        while True:
            page = self._read(model, "GET", path, query)
            yield page
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

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
        return self._read(IndicatorReport, "GET", path_of(f"{subject_kind.value}s", subject) + "/indicators", query)


class Graphs(Connection):
    """The resource graph of a service."""

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
                last = f"{graph.revision.epoch}:{graph.revision.number}"
                for event in self._follow("/v1/graph/events", part, last, "change", patience_s):
                    yield event_of(GraphChange, event)
            except RefusedError as error:
                if error.name != "revision-expired":
                    raise


def _part(domain: str | None, *, nodes: bool) -> dict[str, str]:
    """Query for a part of the graph."""
    return ({} if nodes else {"detail": "domains"}) | ({} if domain is None else {"domain": domain})


JSON = {"content-type": "application/json"}


class Faults(Connection):
    """What is wrong with nodes, domains and jobs, as far as a service can tell."""

    def send_heartbeats(self, beats: Sequence[Heartbeat]) -> IntakeResult:
        """Tell that nodes live, and how far the ranks on them are.

        They are sent once only, however the client is set: an old beat is worth nothing, and the next is a better one.

        Args:
            beats: At least one, at most ``limits.max_batch`` of them.
        """
        batch = HeartbeatBatch(beats=list(beats))
        return self._read(IntakeResult, "POST", "/v1/heartbeats", content=batch.to_json(), headers=JSON, attempts=1)

    def send_log_lines(self, lines: Sequence[LogLine]) -> IntakeResult:
        """Hand over lines of logs; a line that comes twice tells the same fault, so that this may be repeated.

        Args:
            lines: In the order of each log; at least one, at most ``limits.max_batch`` of them.
        """
        return self._ask(IntakeResult, "/v1/log-lines", LogBatch(lines=list(lines)))

    def faults(
        self, *, domain: str | None = None, state: FaultState | None = None, page_size: int | None = None
    ) -> Iterator[Fault]:
        """Faults in order of identifier, page after page, as they stood when the first page was asked for.

        Args:
            domain: Only those about this domain or a node of it.
            state: Only those that are open, or cleared; both where it is None. Cleared ones are kept for an hour at
                least.
            page_size: Faults of a page; the service's choice where it is None.
        """
        for page in self._fault_pages(domain, state, page_size):
            yield from page.items

    def follow_faults(self, *, after: Revision | None = None, patience_s: float = 60.0) -> Iterator[Fault]:
        """Faults, each as it has come to be: it takes the place of the one of its identifier.

        A connection that breaks is made anew, and no change is lost by that. Where the service no longer holds the
        changes that were missed, every fault that it lists comes instead.

        Args:
            after: Revision of the faults after which changes are wanted. Where it is None, all that are open come
                first, then each change.
            patience_s: How long a service that was there may be away, in seconds; then :class:`UnreachableError`.
        """
        last = (yield from self._listed(FaultState.open)) if after is None else _named(after)
        while True:
            try:
                for event in self._follow("/v1/faults/events", {}, last, "fault", patience_s):
                    yield event_of(Fault, event)
            except RefusedError as error:
                if error.name != "revision-expired":
                    raise
                last = yield from self._listed(None)

    def _listed(self, state: FaultState | None) -> Generator[Fault, None, str]:
        """Faults of a state; returns the revision of the listing, as events are identified by it."""
        last = ""
        for page in self._fault_pages(None, state, None):
            yield from page.items
            last = _named(page.revision)
        return last

    def _fault_pages(self, domain: str | None, state: FaultState | None, page_size: int | None) -> Iterator[FaultPage]:
        """Pages of a listing, all as of one revision."""
        request = {
            "domain": domain,
            "state": None if state is None else state.value,
            "limit": None if page_size is None else str(page_size),
        }
        query = {name: value for name, value in request.items() if value is not None}
        while True:
            page = self._read(FaultPage, "GET", "/v1/faults", query)
            yield page
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor


def _named(revision: Revision) -> str:
    """A revision as events are identified by it."""
    return f"{revision.epoch}:{revision.number}"
