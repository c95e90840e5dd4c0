"""Wrong in shares of compute that domains are given, and in which jobs are near."""

from collections.abc import Collection

from minimal_server.choosing import Ledger, Seat
from minimal_server.core import Json
from minimal_server.scene import Scene
from minimal_server.service import MinimalServer
from minimal_server.speeds import Prospect
from minimal_server.weighing import Weights
from typing_extensions import override

from mutants.declaration import breaks, control, near_miss


class Leaning(MinimalServer):
    """The first domain that is named is taken to be planned some more than it is."""

    more: float

    @override
    def shared_seats(self, scene: Scene, weights: Weights, ledger: Ledger, shares: list[Json]) -> list[Seat]:
        first, *others = shares
        return super().shared_seats(
            scene, weights, ledger, [{**first, "share": first["share"] * (1 + self.more)}, *others]
        )


@near_miss("SCH-007")
class SharesAreOffBySixPerCent(Leaning):
    """The first domain is given some six per cent more than its share."""

    more = 0.075


@control("SCH-007")
class SharesAreOffByFourPerCent(Leaning):
    """The first domain is given some four per cent more than its share."""

    more = 0.055


@breaks("SCH-007")
class SharesAreOfDevices(MinimalServer):
    """Domains are given shares of devices, however fast these are."""

    @override
    def compute(self, scene: Scene, seat: Seat, prospect: Prospect) -> float:
        return float(prospect.way.devices)


@breaks("SCH-007")
class SharesAreNotHeard(MinimalServer):
    """Jobs start where they are best off, whatever share of them was planned for a domain."""

    @override
    def shared_seats(self, scene: Scene, weights: Weights, ledger: Ledger, shares: list[Json]) -> list[Seat]:
        return self.seats(scene, weights, ledger, everybody=False)


class Ranked(MinimalServer):
    """Of each eight jobs, some by their rank in traffic are near, and the others have what is left over."""

    near: Collection[int]

    @override
    def settle(self, scene: Scene, seats: list[Seat], ledger: Ledger) -> None:
        starting = sorted((seat for seat in seats if seat.starts), key=lambda seat: -seat.job.talks())
        ranks = {seat.job.name: 8 * rank // len(starting) for rank, seat in enumerate(starting)}
        for near in (True, False):
            for seat in starting:
                if seat.way is not None and (ranks[seat.job.name] in self.near) is near:
                    need = seat.job.spec.get("nodes")
                    seat.nodes = self.nodes(scene, ledger, seat.way, near=near, need=need)


@near_miss("SCH-010")
class HeavyTrafficIsHardlyFarther(Ranked):
    """Of pairs of jobs, the one that sends more is the farther one slightly more often."""

    near = (0, 2, 4, 7)


@control("SCH-010")
class HeavyTrafficIsHardlyNearer(Ranked):
    """Of pairs of jobs, the one that sends more is the nearer one slightly more often."""

    near = (0, 1, 4, 6)


@breaks("SCH-010")
class TrafficIsNotLookedAt(Ranked):
    """As many that send much are near as such that send little, so that there is nothing that chance could show."""

    near = (0, 3, 4, 7)


@breaks("SCH-010")
class HeavyTrafficIsScattered(MinimalServer):
    """Jobs that send much are spread over what is left over on many switches."""

    @override
    def is_near(self, seat: Seat, middle: float) -> bool:
        return not super().is_near(seat, middle)
