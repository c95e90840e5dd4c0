"""Wrong in what is refused: requests for forecasts that name one thing twice, or ask for what cannot be."""

from collections.abc import Iterator, Sequence

from minimal_server.core import Json, Refusal
from minimal_server.naming import Wrong
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-042")
class TenantsMayBePromisedTwice(MinimalServer):
    """Of two promises to a tenant the later one counts."""

    @override
    def check_forecast(self, body: Json) -> None:
        super().check_forecast({name: value for name, value in body.items() if name != "qualities"})


@breaks("COM-042")
class SeriesMayHaveOneName(MinimalServer):
    """Of two series of one name both are forecast."""

    @override
    def check_forecast(self, body: Json) -> None:
        rows = [{**row, "id": f"{number}"} for number, row in enumerate(body.get("series", ()))]
        super().check_forecast({**body, "series": rows})


@breaks("COM-042")
class WhatCannotBeIsUnknown(MinimalServer):
    """What contradicts itself is answered with unknown-reference."""

    @override
    def check_forecast(self, body: Json) -> None:
        try:
            super().check_forecast(body)
        except Refusal as refusal:
            raise Refusal("unknown-reference", refusal.detail, refusal.errors) from refusal


@breaks("COM-042")
class SeriesMayReachBeyondNow(MinimalServer):
    """Values that are later than now are taken for known."""

    @override
    def beyond_now(self, body: Json) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class TheFirstSeriesIsBlamed(MinimalServer):
    """Whichever series reaches beyond now, the first one is named."""

    @override
    def beyond_now(self, body: Json) -> Iterator[Wrong]:
        for _, what in super().beyond_now(body):
            yield "/series/0/values", what


@breaks("COM-042")
class SeriesBeyondNowFailTheService(MinimalServer):
    """Whoever asks with a value that is later than now is told that the service failed."""

    @override
    def beyond_now(self, body: Json) -> Iterator[Wrong]:
        for pointer, _ in super().beyond_now(body):
            raise ValueError(pointer)
        yield from ()


@breaks("COM-042")
class HorizonsNeedNotRise(MinimalServer):
    """Horizons are taken in any order, and twice."""

    @override
    def unordered(self, body: Json) -> Iterator[Wrong]:
        return (wrong for wrong in super().unordered(body) if not wrong[0].startswith("/horizons"))


@breaks("COM-042")
class LevelsMayBeNoughtAndOne(MinimalServer):
    """The least and the most that can be are taken for quantiles."""

    @override
    def unordered(self, body: Json) -> Iterator[Wrong]:
        levels = [0.5 + (level - 0.5) * 0.999 for level in body["levels"]]
        return super().unordered({**body, "levels": levels})


@breaks("COM-042")
class StepsOfCurvesMayFall(MinimalServer):
    """Points of a curve are taken in any order."""

    @override
    def falling_steps(self, curves: Sequence[Json]) -> Iterator[Wrong]:
        return iter(())


@breaks("COM-042")
class StepsOfCurvesMayStandTwice(MinimalServer):
    """Two points of a curve may be of one step."""

    @override
    def falling_steps(self, curves: Sequence[Json]) -> Iterator[Wrong]:
        for pointer, what in super().falling_steps(curves):
            _, _, curve, _, point, _ = pointer.split("/")
            rows = curves[int(curve)]["points"]
            if rows[int(point)]["step"] < rows[int(point) - 1]["step"]:
                yield pointer, what


@breaks("COM-042")
class LoadsMayHaveOneName(MinimalServer):
    """Of two loads of one name both are planned."""

    @override
    def twice(self, place: str, rows: Sequence[Json], member: str) -> Iterator[Wrong]:
        return iter(()) if place == "/loads" else super().twice(place, rows, member)


@breaks("COM-042")
class LoadsLongerThanTheirWindowsAreTaken(MinimalServer):
    """A load that does not fit into its window runs on behind it."""

    @override
    def cramped(self, loads: Sequence[Json], steps: int) -> Iterator[Wrong]:
        return super().cramped([{**load, "latest": max(load["latest"], steps - 1)} for load in loads], steps)
