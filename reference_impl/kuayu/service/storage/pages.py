"""Command that turns an exporter's page into samples and writes them.

The conversion needs the counters of the page before, so it runs where pages of one exporter cannot overtake each
other: in the writer. The counters are kept in the same transaction as the samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import orjson
from sqlalchemy import ColumnElement, Connection, delete, insert, select

from kuayu.perception.collection import CollectionMap, Counters, Reading
from kuayu.perception.exposition import Series
from kuayu.service.ingest import Reception, Sorted
from kuayu.service.problems import Place, ProblemException, unknown_reference
from kuayu.service.storage import blocks
from kuayu.service.storage.answers import Answer
from kuayu.service.storage.blocks import Block
from kuayu.service.storage.catalogue import DEVICE, SubjectKey
from kuayu.service.storage.samples import Feed
from kuayu.service.storage.tables import counter
from kuayu.service.storage.writer import Outcome, Transaction


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

    @property
    def weight(self) -> int:
        """About as many samples as a page gives."""
        return max(1, len(self.page) // 8)

    def apply(self, transaction: Transaction) -> Outcome[Answer]:
        """Convert and write."""
        connection = transaction.connection
        timely = [series for series in self.page if self.reception.fault(self._instant(series)) is None]
        conversion = self.exporter.convert(timely, self._instant, self._counters(connection))
        readings = conversion.readings
        if len(timely) < len(self.page):
            late = [series for series in self.page if self.reception.fault(self._instant(series)) is not None]
            readings = readings + self.exporter.convert(late, self._instant, {}).readings
        done = self._sort(readings)
        blocks.write(connection, done.blocks, self.reception.received, transaction.sequence)
        self._keep(connection, conversion.counters)
        told = partial(self.feed, done.blocks, self.reception.received)
        return Outcome(Answer(200, done.result(self.durability)), committed=told)

    def _instant(self, series: Series) -> int:
        """The line's own timestamp, else the page's, else the time of receipt; the sender's are corrected."""
        stated = self.observed if series.instant is None else series.instant
        return self.reception.received if stated is None else stated + self.reception.offset

    def _sort(self, readings: Sequence[Reading]) -> Sorted:
        done = Sorted(self.reception)
        made: dict[tuple[str, ...], Block] = {}
        for index, reading in enumerate(readings):
            number = self.numbers.get(self._subject(reading))
            problem = self.reception.fault(reading.observed) or _out_of_range(reading)
            if number is None:
                problem = unknown_reference("", f"the node {self.node!r} has no device {reading.device!r}")
            if number is None or problem is not None:
                assert problem is not None
                done.reject(index, problem)
                continue
            names = tuple(sorted(reading.measures))
            block = made.setdefault(names, Block(names))
            block.values.extend((number, reading.observed, *(reading.measures[name] for name in names)))
        done.blocks = list(made.values())
        done.accepted = len(readings) - len(done.rejected)
        return done

    def _subject(self, reading: Reading) -> SubjectKey:
        return ("node" if reading.device is None else DEVICE, self.node, reading.device)

    def _counters(self, connection: Connection) -> Counters:
        kept = connection.execute(select(counter.c.state).where(*self._conditions())).scalar()
        held = {} if kept is None else orjson.loads(kept)
        # Values that were infinite stand as null in what was written before they were left out.
        return {name: (instant, value) for name, (instant, value) in held.items() if value is not None}

    def _keep(self, connection: Connection, counters: Counters) -> None:
        if not counters:
            return
        connection.execute(delete(counter).where(*self._conditions()))
        name = {"tenant": self.tenant, "node": self.node, "exporter": self.exporter.exporter.id}
        connection.execute(insert(counter).values(**name, state=orjson.dumps(counters).decode()))

    def _conditions(self) -> list[ColumnElement[bool]]:
        return [
            counter.c.tenant == self.tenant,
            counter.c.node == self.node,
            counter.c.exporter == self.exporter.exporter.id,
        ]


def _out_of_range(reading: Reading) -> ProblemException | None:
    if not reading.out_of_range:
        return None
    names = ", ".join(reading.out_of_range)
    detail = f"of device {reading.device!r}" if reading.device else "of the node"
    return ProblemException(
        "out-of-range", f"{names} {detail} outside the range of the register", [Place(f"{names} out of range")]
    )
