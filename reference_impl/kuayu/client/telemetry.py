"""What a service declares, what is registered with it, and samples."""

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from kuayu.client.connection import Connection, path_of
from kuayu_schemas.base import write_instant
from kuayu_schemas.models import (
    BatchResult,
    BulkMode,
    Declaration,
    Domain,
    DomainRecord,
    IndicatorReport,
    Link,
    LinkRecord,
    Node,
    NodeRecord,
    Sample,
    SampleBatch,
    SamplePage,
    SampleRecord,
    SubjectKind,
)

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

    def node(self, identifier: str) -> NodeRecord:
        """A registered node; :class:`NotFoundError` where there is none."""
        return self._read(NodeRecord, "GET", path_of("nodes", identifier))

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
        return self._read(IndicatorReport, "GET", path_of(f"{subject_kind.value}s", subject) + "/indicators", query)
