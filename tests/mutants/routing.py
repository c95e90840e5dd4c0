"""Wrong in routes: where they lead, what is given out, and what is told of it."""

from collections.abc import Iterator

from minimal_server.core import Json
from minimal_server.routing import Found, Wires
from minimal_server.service import MinimalServer
from typing_extensions import override

from mutants.declaration import breaks


@breaks("COM-030", "SCH-016")
class BandwidthIsGivenTwice(MinimalServer):
    """Every demand is routed as if it had all links to itself."""

    @override
    def give_out(self, wires: Wires, found: Found, bandwidth: float) -> None:
        return


@breaks("SCH-016")
class EndsAreChosenFirst(MinimalServer):
    """A demand goes to the first of its ends, by the best path that leads there."""

    @override
    def candidates(self, wires: Wires, demand: Json) -> Iterator[Found]:
        return super().candidates(wires, {**demand, "targets": demand["targets"][:1]})


@breaks("SCH-016")
class BytesPassForBits(MinimalServer):
    """Durations are those of as many bits as there are bytes."""

    @override
    def route(self, wires: Wires, demand: Json, found: Found) -> Json:
        told = super().route(wires, demand, found)
        return {**told, "duration": told["duration"] / 8}


@breaks("SCH-016")
class OneLinkIsPaidFor(MinimalServer):
    """A path costs what its dearest link does."""

    @override
    def route(self, wires: Wires, demand: Json, found: Found) -> Json:
        told = super().route(wires, demand, found)
        tariff = max((wires.links[number]["tariff"] for number in found.links), default=0.0)
        return {**told, "communication_cost": 8 * demand["size"] * tariff}


@breaks("SCH-016")
class RoundTripsMayBeLong(MinimalServer):
    """Demands are routed over paths with longer round trips than they may have."""

    @override
    def is_quick(self, wires: Wires, demand: Json, found: Found) -> bool:
        return True


@breaks("SCH-016")
class LinksAreForOneDemand(MinimalServer):
    """A link of which some was given to one demand is given to no other."""

    @override
    def candidates(self, wires: Wires, demand: Json) -> Iterator[Found]:
        for found in super().candidates(wires, demand):
            if all(wires.left[number] == wires.links[number]["available"] for number in found.links):
                yield found
