"""Placements that keep to shares: the domain that is furthest behind is given the next job."""

from minimal_server.choosing import Ledger, Seat
from minimal_server.core import Json
from minimal_server.explaining import Explaining
from minimal_server.scene import Scene
from minimal_server.speeds import Prospect
from minimal_server.weighing import Weights


class Sharing(Explaining):
    """What starts keeps to planned shares."""

    def shared_seats(self, scene: Scene, weights: Weights, ledger: Ledger, shares: list[Json]) -> list[Seat]:
        """Jobs by priority, the largest first; one that does not fit where its turn is waits."""
        planned = {row["domain"]: row["share"] for row in shares if row["share"] > 0}
        given = dict.fromkeys(planned, 0.0)
        seats = []
        for job in sorted(scene.waiting, key=lambda job: (-job.spec.get("priority", 0), -job.requested)):
            behind = self.furthest_behind(planned, given)
            room = [
                free if pool.domain == behind else 0
                for pool, free in zip(scene.pools, self.purchasable(scene, ledger), strict=True)
            ]
            ways = self.prospects(scene, job, self.ways(scene, job, room))
            outlooks = [self.outlook(scene, weights, job, prospect, 0.0) for prospect in ways]
            best = min(outlooks, key=lambda one: one.score, default=None)
            seat = Seat(job, best.prospect.way if best else None, best)
            if seat.outlook and self.buy(scene, ledger, seat):
                seat.starts = True
                seat.outlook = self.outlook(scene, weights, job, seat.outlook.prospect, 0.0, seat.offers)
                given[behind] += self.compute(scene, seat, seat.outlook.prospect)
            seats.append(seat)
        return seats

    def furthest_behind(self, planned: dict[str, float], given: dict[str, float]) -> str:
        """The domain that has been given least of its share."""
        return min(planned, key=lambda domain: (given[domain] / planned[domain], -planned[domain]), default="")

    def compute(self, scene: Scene, seat: Seat, prospect: Prospect) -> float:
        """Devices of a job, weighted by compute index."""
        return sum(self.worth(scene.pools[number], seat.job) * devices for number, devices in prospect.way.shares)
