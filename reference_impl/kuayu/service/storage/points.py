"""Command that turns the points of one OTLP request into samples and writes them, node by node."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import orjson
from typing_extensions import override

from kuayu.perception import otlp
from kuayu.perception.collection import Reading
from kuayu.perception.otlp import MetricsMap
from kuayu.service.ingest import Sorted, Warned
from kuayu.service.storage.answers import Answer
from kuayu.service.storage.pages import OF_A_MEASURE, StorePage, refused_measure
from kuayu.service.storage.writer import Outcome, Transaction


@dataclass(frozen=True)
class StorePoints(StorePage):
    """Write the points of one node as a page, and keep in mind whose samples were refused and why."""

    refused: dict[tuple[int, str | None, str | None], str] = field(default_factory=dict)

    @override
    def _sort(self, readings: Sequence[Reading]) -> Sorted:
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
    def _unused(self, used: int) -> list[Warned]:
        """Only points that the map takes come so far."""
        return []

    def refused_points(self) -> Counter[str]:
        """Points of the refused samples, by reason; known once the command has been applied."""
        found: Counter[str] = Counter()
        if not self.refused:
            return found
        assert isinstance(self.exporter, MetricsMap)
        for series in self.page:
            instant = self._instant(series)
            for subject in self.exporter.subjects(series):
                reason = self.refused.get((instant, subject, None)) or self.refused.get((instant, subject, series.name))
                if reason is not None:
                    found[reason] += 1
        return found


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
        told: list[Callable[[], None]] = []
        warnings: list[str] = []
        for node in self.nodes:
            outcome = node.apply(transaction)
            result = orjson.loads(outcome.result.body)
            self.accepted += result["accepted"]
            warnings += [warning["detail"] for warning in result.get("warnings", ())]
            refused += node.refused_points()
            if outcome.committed is not None:
                told.append(outcome.committed)
        return Outcome(self.answer(refused, warnings), committed=partial(_tell, told))

    def answer(self, refused: Counter[str], warnings: Sequence[str] = ()) -> Answer:
        """The answer that counts these points as refused."""
        self.rejected = refused.total()
        words = [*warnings, *([] if self.unused is None else [self.unused])]
        return Answer(200, otlp.answer(self.media_type, refused, self.left_out, words))


def _tell(told: Sequence[Callable[[], None]]) -> None:
    for tell in told:
        tell()
