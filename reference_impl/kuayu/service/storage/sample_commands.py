"""Commands that write samples: bulk requests, exporters' pages, OTLP points.

1. Commands that write samples.
2. Command that turns an exporter's page into samples and writes them. The conversion needs the counters of the page
   before, so it runs where pages of one exporter cannot overtake each other: in the writer. The counters are kept in
   the same transaction as the samples.
3. Command that turns the points of one OTLP request into samples and writes them, node by node.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import orjson
from sqlalchemy import ColumnElement, Connection, delete, insert, select
from typing_extensions import override

from kuayu.perception import collection, otlp
from kuayu.perception.collection import CollectionMap, Conversion, Reading, Refusal
from kuayu.perception.counters import Counters, Known
from kuayu.perception.exposition import Series
from kuayu.perception.otlp import MetricsMap
from kuayu.perception.plausibility import DeviceLimits, Limits
from kuayu.service.ingest import IngestResult, IngestWarning, Reception
from kuayu.service.kinds import NODE
from kuayu.service.problems import Place, ProblemException, unknown_reference
from kuayu.service.storage import blocks
from kuayu.service.storage.blocks import Arrival, Block
from kuayu.service.storage.resources import DEVICE, SubjectKey
from kuayu.service.storage.tables import counter, resource
from kuayu.service.storage.writer import Answer, Outcome, Transaction
from kuayu_schemas import registers
from kuayu_schemas.models import WarningKind

Feed = Callable[[Sequence[Block], int], None]
"""What is told of samples once they are durable, with when they were received in milliseconds."""

ConflictFeed = Callable[[str, str, float], None]
"""What is told that two sources report as a node: its name, what shows that, and how many seconds before the page was
received that was last seen."""


@dataclass(frozen=True, slots=True)
class StoreSamples:
    """Write samples and give an answer that was made beforehand.

    Attributes:
        blocks: The samples.
        received: When they were received, in milliseconds.
        answer: What the sender is told once they are durable.
        feed: Who else is told then.
    """

    blocks: Sequence[Block]
    received: int
    answer: Answer
    feed: Feed

    @property
    def weight(self) -> int:
        """Number of samples."""
        return sum(map(len, self.blocks))

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Have them written together with those of other requests."""
        transaction.put(Arrival(self.blocks, self.received))
        return Outcome(self.answer, committed=partial(self.feed, self.blocks, self.received))


MAX_EVIDENCE = 5
"""Signs of a second source that are named; a node with eight devices has dozens."""

OF_A_MEASURE = frozenset({"out-of-range", "contradictory-series"})
"""Problems of one measure, which leave the rest of its sample as it is."""


@dataclass(frozen=True, slots=True)
class StorePage:
    """Convert a page and write what it gives.

    Attributes:
        tenant: Whose the node is.
        node: Node that the page is about.
        numbers: Numbers of the tenant's subjects.
        exporter: Collection map of the exporter.
        page: Series of the page.
        observed: When it was made, by the sender's clock in milliseconds; None for the time of receipt.
        reception: When it was received.
        durability: What the answer promises.
        feed: Who is told of the samples once they are durable.
        conflicts: Who is told where two sources report as the node.
    """

    tenant: str
    node: str
    numbers: Mapping[SubjectKey, int]
    exporter: CollectionMap
    page: Sequence[Series]
    observed: int | None
    reception: Reception
    durability: str
    feed: Feed
    conflicts: ConflictFeed

    @property
    def weight(self) -> int:
        """About as many samples as a page gives."""
        return max(1, len(self.page) // 8)

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Convert and write."""
        connection = transaction.connection
        timely = [series for series in self.page if self.reception.fault(self._instant(series)) is None]
        conversion = self.exporter.convert(timely, self._instant, self._counters(connection), self._limits(connection))
        readings = conversion.readings
        used = conversion.used
        if len(timely) < len(self.page):
            late = [series for series in self.page if self.reception.fault(self._instant(series)) is not None]
            untimely = self.exporter.convert(late, self._instant, {})
            readings = readings + untimely.readings
            used += untimely.used
        done = self._sort(readings)
        done.warnings = [*self._unused(used), *_warnings(conversion, self.node)]
        blocks.write(connection, done.blocks, self.reception.received, transaction.sequence)
        self._keep(connection, conversion.counters)
        report = partial(self._report, done.blocks, conversion)
        return Outcome(Answer(200, done.result(self.durability)), committed=report)

    def _report(self, stored: Sequence[Block], conversion: Conversion) -> None:
        """Tell what is durable by now."""
        self.feed(stored, self.reception.received)
        if conversion.conflicted is not None:
            age = max(0, self.reception.received - conversion.conflicted) / 1000
            self.conflicts(self.node, _two_sources(conversion), age)

    def _instant(self, series: Series) -> int:
        """The line's own timestamp, else the page's, else the time of receipt; the sender's are corrected."""
        stated = self.observed if series.instant is None else series.instant
        return self.reception.received if stated is None else stated + self.reception.offset

    def _sort(self, readings: Sequence[Reading]) -> IngestResult:
        """What can be taken; a measure that cannot is refused by itself, under the index of its sample."""
        done = IngestResult(self.reception)
        outcome: dict[tuple[str, ...], Block] = {}
        for index, reading in enumerate(readings):
            number = self.numbers.get(self._subject(reading))
            problem = self.reception.fault(reading.observed)
            if number is None:
                problem = unknown_reference("", f"the node {self.node!r} has no device {reading.device!r}")
            if number is None or problem is not None:
                assert problem is not None
                done.reject(index, problem)
                continue
            for refusal in reading.refused:
                done.reject(index, refused_measure(reading, refusal))
            if not reading.measures:
                continue
            done.accepted += 1
            names = tuple(sorted(reading.measures))
            block = outcome.setdefault(names, Block(names))
            block.add(number, reading.observed, (reading.measures[name] for name in names))
        done.blocks = list(outcome.values())
        return done

    def _unused(self, used: int) -> list[IngestWarning]:
        """A page that the map takes nothing of may be another exporter's."""
        if used:
            return []
        detail = collection.why_unused(self.page, self.exporter, registers.indicators())
        return [IngestWarning(WarningKind.nothing_used, detail)]

    def _limits(self, connection: Connection) -> DeviceLimits:
        """What the devices of the node were registered with."""
        existing = select(resource.c.body).where(
            resource.c.tenant == self.tenant,
            resource.c.kind == NODE.name,
            resource.c.id == self.node,
            resource.c.valid_to.is_(None),
        )
        body = connection.execute(existing).scalar()
        devices = () if body is None else orjson.loads(body).get("devices", ())
        return {
            str(device["id"]): Limits(device.get("memory_capacity"), device.get("power_limit")) for device in devices
        }

    def _subject(self, reading: Reading) -> SubjectKey:
        return ("node" if reading.device is None else DEVICE, self.node, reading.device)

    def _counters(self, connection: Connection) -> Counters:
        kept = connection.execute(select(counter.c.state).where(*self._conditions())).scalar()
        existing = {} if kept is None else orjson.loads(kept)
        # Values that were infinite stand as null in what was written before they were left out.
        return {name: Known.from_wire(wire) for name, wire in existing.items() if wire[1] is not None}

    def _keep(self, connection: Connection, counters: Counters) -> None:
        if not counters:
            return
        connection.execute(delete(counter).where(*self._conditions()))
        name = {"tenant": self.tenant, "node": self.node, "exporter": self.exporter.exporter.id}
        state = orjson.dumps({series: known.to_wire() for series, known in counters.items()}).decode()
        connection.execute(insert(counter).values(**name, state=state))

    def _conditions(self) -> list[ColumnElement[bool]]:
        return [
            counter.c.tenant == self.tenant,
            counter.c.node == self.node,
            counter.c.exporter == self.exporter.exporter.id,
        ]


def refused_measure(reading: Reading, refusal: Refusal) -> ProblemException:
    """Why a measure of a sample cannot be taken."""
    whom = f"device {reading.device!r}" if reading.device else "the node"
    detail = f"{refusal.measure} of {whom}: {refusal.reason}"
    return ProblemException(
        "contradictory-series" if refusal.contradictory else "out-of-range", detail, [Place(detail)]
    )


def _warnings(conversion: Conversion, node: str) -> list[IngestWarning]:
    """What the counters of a page tell beside their values."""
    result = []
    if conversion.alternating:
        detail = (
            f"two sources report as {node!r}: {_two_sources(conversion)}; "
            "their counters give nothing until that ends. Give each host an identifier of its own"
        )
        result.append(IngestWarning(WarningKind.identity_conflict, detail))
    if conversion.returned:
        detail = (
            f"{', '.join(conversion.returned)} of {node!r} went back to where it had been before it fell or leapt: "
            "what it showed in between was wrong, or another host reports under this identifier"
        )
        result.append(IngestWarning(WarningKind.counter_returned, detail))
    return result


def _two_sources(conversion: Conversion) -> str:
    """What shows that two sources report under one identity."""
    some = conversion.alternating[:MAX_EVIDENCE]
    more = len(conversion.alternating) - len(some)
    words = ", ".join(some) + (f" and {more} more" if more else "")
    return f"{words} {'goes' if len(conversion.alternating) == 1 else 'go'} to and fro between two histories"


@dataclass(frozen=True)
class StorePoints(StorePage):
    """Write the points of one node as a page, and keep in mind whose samples were refused and why."""

    refused: dict[tuple[int, str | None, str | None], str] = field(default_factory=dict)

    @override
    def _sort(self, readings: Sequence[Reading]) -> IngestResult:
        """As for a page; of a measure that is refused the points of its fields are, of a sample all."""
        done = super()._sort(readings)
        self.refused.clear()
        for index, problem in done.rejected:
            reading = readings[index]
            if problem.name not in OF_A_MEASURE:
                self.refused[reading.observed, reading.device, None] = problem.detail
        for reading in readings:
            for refusal in reading.refused:
                for name in refusal.fields:
                    reason = refused_measure(reading, refusal).detail
                    self.refused.setdefault((reading.observed, reading.device, name), reason)
        return done

    @override
    def _unused(self, used: int) -> list[IngestWarning]:
        """Only points that the map takes come so far."""
        return []

    def refused_points(self) -> Counter[str]:
        """Points of the refused samples, by reason; known once the command has been applied."""
        result: Counter[str] = Counter()
        if not self.refused:
            return result
        assert isinstance(self.exporter, MetricsMap)
        for series in self.page:
            instant = self._instant(series)
            for subject in self.exporter.subjects(series):
                reason = self.refused.get((instant, subject, None)) or self.refused.get((instant, subject, series.name))
                if reason is not None:
                    result[reason] += 1
        return result


@dataclass(slots=True)
class StoreMetrics:
    """Write what a request gives, and answer in its form.

    Attributes:
        nodes: Points of each registered node.
        refused: Points that are of no registered node, by reason.
        left_out: Points of delta sums.
        media_type: Form of the answer.
        unused: Why no point of the request is used, where that is so.
        accepted: Samples that were taken; known once the command has been applied.
        rejected: Points that were not; known then, too.
    """

    nodes: Sequence[StorePoints]
    refused: Counter[str]
    left_out: int
    media_type: str
    unused: str | None = None
    accepted: int = 0
    rejected: int = 0

    @property
    def weight(self) -> int:
        """That of the pages."""
        return max(1, sum(node.weight for node in self.nodes))

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Convert and write."""
        refused = Counter(self.refused)
        self.accepted = 0
        report: list[Callable[[], None]] = []
        warnings: list[str] = []
        for node in self.nodes:
            outcome = node.apply(transaction)
            result = orjson.loads(outcome.result.body)
            self.accepted += result["accepted"]
            warnings += [warning["detail"] for warning in result.get("warnings", ())]
            refused += node.refused_points()
            if outcome.committed is not None:
                report.append(outcome.committed)
        return Outcome(self.answer(refused, warnings), committed=partial(_tell, report))

    def answer(self, refused: Counter[str], warnings: Sequence[str] = ()) -> Answer:
        """The answer that counts these points as refused."""
        self.rejected = refused.total()
        words = [*warnings, *([] if self.unused is None else [self.unused])]
        return Answer(200, otlp.answer(self.media_type, refused, self.left_out, words))


def _tell(listeners: Sequence[Callable[[], None]]) -> None:
    for tell in listeners:
        tell()
