"""Near-misses of figures, and controls that are as near on the right side."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minimal_server.conversion import Part, Value
from minimal_server.core import Json
from minimal_server.otlp import EXPORTER
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import control, near_miss


@near_miss("MET-001", "MET-020")
class ElevenIndicators(MinimalServer):
    """The indicator NET-3 is missing."""

    @override
    def __init__(self, schemas: Path, *arguments: Any) -> None:
        super().__init__(schemas, *arguments)
        rows = self.indicators["indicators"]
        self.indicators = {**self.indicators, "indicators": [row for row in rows if row["id"] != "NET-3"]}


@near_miss("MET-002")
class SampledEverySixtySixSeconds(MinimalServer):
    """Where a target does not say how often, it is scraped every 66 s."""

    @override
    def period(self, target: Json) -> float:
        return float(target.get("period", 66))


@control("MET-002")
class SampledEveryFiftyFiveSeconds(MinimalServer):
    """Where a target does not say how often, it is scraped every 55 s."""

    @override
    def period(self, target: Json) -> float:
        return float(target.get("period", 55))


class Unreliable(MinimalServer):
    """Of the numbers that pages yield, one in so many is a tenth too small.

    But for those of otel-hw: how many of the few numbers that MET-021 compares would be wrong is chance.
    """

    one_in = 0
    made = 0
    exact = False

    @override
    def convert(self, entry: Json, exporter: Json, *page: Any) -> Iterator[tuple[Part, Value]]:
        self.exact = exporter["id"] == EXPORTER
        yield from super().convert(entry, exporter, *page)

    @override
    def combined(self, values: list[Value]) -> Value:
        value = super().combined(values)
        if isinstance(value, str) or self.exact:
            return value
        self.made += 1
        return value if self.made % self.one_in else 0.9 * value if value else 1.0


@near_miss("MET-003")
class ThreePercentWrong(Unreliable):
    """Three numbers in a hundred are wrong, where two may be."""

    one_in = 33


@control("MET-003")
class ThreePerMilleWrong(Unreliable):
    """Three numbers in a thousand are wrong, where twenty may be."""

    one_in = 333
