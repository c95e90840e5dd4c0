"""Wrong in how pages are read."""

from collections.abc import Iterable
from dataclasses import replace

from miniature.conversion import Value
from miniature.core import Json
from miniature.exposition import Line, read_page
from miniature.service import Miniature
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-003", "MET-008")
class LinesHaveNoTime(Miniature):
    """The time that a line gives is ignored."""

    @override
    def timed(self, lines: Iterable[Line], observed: int, offset: int) -> list[tuple[Line, int]]:
        return super().timed((replace(line, at=None) for line in lines), observed, offset)


@breaks("MET-008")
class BrokenPagesArePartlyTaken(Miniature):
    """Lines that are not in the format are skipped."""

    @override
    def lines(self, page: bytes) -> list[Line]:
        taken: list[Line] = []
        for line in page.splitlines():
            try:
                taken += read_page(line)
            except ValueError:
                continue
        return taken


@breaks("MET-003")
class StatesAreTakenAsHealthy(Miniature):
    """Every state is healthy."""

    @override
    def state(self, entry: Json, value: float) -> str:
        return "healthy"


@breaks("MET-003")
class OneSeriesCounts(Miniature):
    """Of several series of a subject only the first counts."""

    @override
    def combined(self, values: list[Value]) -> Value:
        return values[0]


@breaks("MET-008")
class OneBadValueDropsTheSample(Miniature):
    """A sample with a value that its measure cannot have is dropped whole, a fault that it tells of included."""

    @override
    def rest(self, measures: Json) -> Json:
        return {}


@breaks("MET-008")
class StatesBesideABadValueAreDropped(Miniature):
    """Of a sample with a value that its measure cannot have numbers are taken, and no state."""

    @override
    def rest(self, measures: Json) -> Json:
        return {name: value for name, value in measures.items() if not isinstance(value, str)}
