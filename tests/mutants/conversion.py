"""Wrong in how pages are read."""

from collections.abc import Iterable
from dataclasses import replace

from minimal_server.conversion import Value
from minimal_server.core import Json
from minimal_server.exposition import Line, read_page
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-003", "MET-008")
class LinesHaveNoTime(MinimalServer):
    """The time that a line gives is ignored."""

    @override
    def timed(self, lines: Iterable[Line], observed: int, offset: int) -> list[tuple[Line, int]]:
        return super().timed((replace(line, at=None) for line in lines), observed, offset)


@breaks("MET-008")
class BrokenPagesArePartlyTaken(MinimalServer):
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


@breaks("MET-003", "MET-008")
class StatesAreTakenForOthers(MinimalServer):
    """Whatever is healthy is taken as faulty, and whatever is not as healthy."""

    @override
    def state(self, entry: Json, value: float) -> str:
        return "faulty" if super().state(entry, value) == "healthy" else "healthy"


@breaks("MET-003", "MET-008")
class OneSeriesCounts(MinimalServer):
    """Of several series of a subject only the first counts."""

    @override
    def combined(self, values: list[Value]) -> Value:
        return values[0]


@breaks("MET-008")
class OneBadValueDropsTheSample(MinimalServer):
    """A sample with a value that its measure cannot have is dropped whole, a fault that it tells of included."""

    @override
    def rest(self, measures: Json) -> Json:
        return {}


@breaks("MET-008")
class StatesBesideABadValueAreDropped(MinimalServer):
    """Of a sample with a value that its measure cannot have numbers are taken, and no state."""

    @override
    def rest(self, measures: Json) -> Json:
        return {name: value for name, value in measures.items() if not isinstance(value, str)}
