"""Wrong in what follows from two pages."""

from minimal_server.conversion import Change, Counters, Value
from minimal_server.core import Json
from minimal_server.exposition import Line
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("MET-003")
class ResetsGoBackwards(MinimalServer):
    """A counter that was reset has a negative increase."""

    @override
    def increase(self, before: float, now: float) -> float:
        return now - before


@breaks("MET-003")
class ResetsCountForNothing(MinimalServer):
    """A counter that was reset has not increased."""

    @override
    def increase(self, before: float, now: float) -> float:
        return max(0.0, now - before)


@breaks("MET-003")
class RatesAreIncreases(MinimalServer):
    """Increases are not divided by the time between the pages."""

    @override
    def rate(self, entry: Json, change: Change, factor: float) -> float:
        return change.increase * factor


@breaks("MET-003", "MET-008")
class GapsAreZeros(MinimalServer):
    """A rate that cannot be told is nought."""

    @override
    def transformed(self, entry: Json, line: Line, change: Change | None) -> Value | None:
        value = super().transformed(entry, line, change)
        return 0.0 if value is None else value


@breaks("MET-003")
class LatePagesAreCountedFrom(MinimalServer):
    """A page that comes late is what the next one is counted from."""

    @override
    def in_turn(self, at: int, newest: int | None) -> bool:
        return True


@breaks("MET-003", "MET-008")
class LatePagesGiveRates(MinimalServer):
    """A page older than the newest gives a rate, counted from the newest backwards."""

    @override
    def changes(self, counters: Counters, lines: list[tuple[Line, int]]) -> dict[tuple[object, int], Change]:
        found = super().changes(counters, lines)
        for line, at in lines:
            value, then = counters.last.get(line.series, (0.0, at))
            if then > at:
                found[line.series, at] = Change(abs(value - line.value), (then - at) / 1000)
        return found
